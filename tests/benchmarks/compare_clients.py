"""Compare our client with the official SDK 2.x's, driven from synchronous code, in one run.

    python -m tests.benchmarks.compare_clients --peer DIR/mcp2/bin/python

Both call the same raw server (`server_raw.py`) and take turns; a ratio is the median of the
rounds' own ratios. For a fair comparison both pythons should be of one version.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import partial

from tests.benchmarks.compare import HERE, Side, both_sides, compare, row

ROUNDS = 7
CALLS = {"one": 1500, "threads": 3200}
STUCK = 120.0  # seconds
RAW = str(HERE / "server_raw.py")


def rate(side: Side, target: str, mode: str) -> float:
    """Calls a second of one client program."""
    command = [side.python, str(HERE / side.program), target, mode, str(CALLS[mode])]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=STUCK, check=True)
    return float(run.stdout)


def measure(sides: list[Side], name: str, target: str) -> None:
    """Print the two lines of one transport."""
    aims = {"stdio": ("3 times", "4 times"), "HTTP": ("1.8 times", "2 times")}[name]
    for (mode, title), aim in zip(
        (("one", "one at a time"), ("threads", "16 threads")), aims, strict=True
    ):
        timed: Callable[[Side], float] = partial(rate, target=target, mode=mode)
        row(f"call_tool over {name}, {title}", "calls/s", compare(sides, ROUNDS, timed), True, aim)


def main() -> None:
    """Measure everything and print the table."""
    sides = both_sides(__doc__, "client", "mcp")
    measure(sides, "stdio", RAW)
    server = subprocess.Popen([sides[0].python, RAW, "http"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        measure(sides, "HTTP", f"http://127.0.0.1:{port}/mcp")
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
