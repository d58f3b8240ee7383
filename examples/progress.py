#!/usr/bin/env python3
"""Progress and log messages of a long call, and what happens when nobody waits any more."""

import time

from raxol_sync import Client, Context, RequestTimeout, Server

server = Server("kitchen")


@server.tool
def bake(minutes: int, context: Context) -> str:
    """Bake a cake; a minute is a hundredth of a second here."""
    for minute in range(1, minutes + 1):
        context.check_cancelled()  # raises once the caller has given up: the oven goes off
        context.progress(minute, minutes, "in the oven")
        time.sleep(0.01)
    return "a cake"


def main() -> None:
    """Bake one cake, and give up on another."""
    with server, Client("cook", server=server) as cook:
        cake = cook.call_tool("bake", {"minutes": 3}, progress=lambda *step: print(*step))
        print(cake.text)
        try:
            cook.call_tool("bake", {"minutes": 6000}, timeout=0.1)
        except RequestTimeout as error:
            print("gave up:", error)


if __name__ == "__main__":
    main()
