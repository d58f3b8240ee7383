"""The benchmark's stdio server, made with raxol_sync."""

import time

from raxol_sync import Server

server = Server("bench", max_in_flight=64, max_in_flight_per_connection=32)


@server.tool
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool
def sleep(ms: int) -> str:
    """Block for ms milliseconds."""
    time.sleep(ms / 1000)
    return "slept"


if __name__ == "__main__":
    server.run()
