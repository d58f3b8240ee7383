"""The benchmark's client, made with raxol_sync. Arguments: see `client_timing.py`."""

import sys

from raxol_sync import Client
from tests.benchmarks import client_timing


def main() -> None:
    """Connect, and time calls."""
    target = sys.argv[1]
    if target.startswith("http"):
        client = Client("bench", url=target, fail_fast=True)
    else:
        client = Client(
            "bench", command=sys.executable, args=[target, "stdio"], fail_fast=True, queue_limit=64
        )
    with client:
        client_timing.run(lambda: client.call_tool("echo", {"text": client_timing.TEXT}))


if __name__ == "__main__":
    main()
