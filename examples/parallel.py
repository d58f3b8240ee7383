#!/usr/bin/env python3
"""Many calls at once: futures, and an answer to each in the order of asking."""

import sys
from pathlib import Path

from raxol_sync import Client

SERVER = Path(__file__).with_name("server.py")


def main() -> None:
    """Ask for every city at once."""
    with Client("weather", command=sys.executable, args=[str(SERVER)]) as weather:
        names = weather.call_tool("cities").structured_content["result"]
        futures = {
            name: weather.submit_tool("temperature", {"city": name, "unit": "F"}) for name in names
        }
        for name, future in futures.items():
            print(f"{name}: {future.result().text} F")


if __name__ == "__main__":
    main()
