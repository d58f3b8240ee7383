"""Compare raxol_sync with the official SDK 2.x on this machine, in one run.

    python tests/benchmarks/compare.py --peer DIR/mcp2/bin/python

Both sides take turns in every round, and who goes first changes from round to round, so that a
slow minute of the machine hits both. A figure is the median of the rounds; a ratio is the median
of the rounds' own ratios. The load comes over bare pipes: no client library is measured.
For a fair comparison both pythons should be of one version.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LEGACY, MODERN = "2025-11-25", "2026-07-28"
STUCK = 60.0  # seconds after which a server is killed, so that a measurement fails and not hangs
BLOCKING, BLOCKING_MS, PING_AFTER = 32, 100, 0.03  # calls, milliseconds each, seconds
ROUNDS, CALLS, STARTS = 9, 1000, 9


@dataclass(frozen=True)
class Side:
    """One of the two that are compared."""

    name: str
    python: str
    program: str
    module: str

    def command(self) -> list[str]:
        """How its stdio server is started."""
        return [self.python, str(HERE / self.program)]


class Pipe:
    """A server process and its two pipes. Not thread-safe."""

    def __init__(self, side: Side, era: str, errors: IO[bytes]) -> None:
        self._errors = errors
        self._process = subprocess.Popen(
            side.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
        self._era = era
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._guard = threading.Timer(STUCK, self._process.kill)
        self._guard.daemon = True
        self._guard.start()

    def frame(self, ident: int, method: str, **params: object) -> bytes:
        """A request as bytes; modern ones carry their envelope."""
        if self._era == MODERN:
            prefix = "io.modelcontextprotocol/"
            params["_meta"] = {
                f"{prefix}protocolVersion": MODERN,
                f"{prefix}clientInfo": {"name": "load", "version": "1"},
                f"{prefix}clientCapabilities": {},
            }
        message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
        return json.dumps(message).encode() + b"\n"

    def call(self, ident: int, name: str, **arguments: object) -> bytes:
        """A `tools/call` as bytes."""
        return self.frame(ident, "tools/call", name=name, arguments=arguments)

    def send(self, data: bytes) -> None:
        """Write frames."""
        self._stdin.write(data)
        self._stdin.flush()

    def receive(self) -> bytes:
        """The next line; raises when the server has ended."""
        line = self._stdout.readline()
        if not line:
            self._errors.seek(0)
            tail = self._errors.read()[-2000:].decode(errors="replace")
            raise RuntimeError(f"the server ended or hung; its stderr: {tail}")
        return line

    def open(self) -> None:
        """The legacy handshake; nothing in the modern era."""
        if self._era == LEGACY:
            info = {"name": "load", "version": "1"}
            hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info}
            self.send(self.frame(0, "initialize", **hello))
            self.receive()
            self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def close(self) -> None:
        """End the process and wait for it."""
        self._guard.cancel()
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()


@contextlib.contextmanager
def opened(side: Side, era: str) -> Iterator[Pipe]:
    """A server that is ready for calls."""
    with tempfile.TemporaryFile() as errors:
        pipe = Pipe(side, era, errors)
        try:
            pipe.open()
            yield pipe
        finally:
            pipe.close()


def answered(line: bytes, ident: int) -> None:
    """Check one answer to an echo or sleep call."""
    message = json.loads(line)
    if message.get("id") != ident or message.get("result", {}).get("isError"):
        raise RuntimeError(f"a wrong answer: {message}")


def echo_rate(side: Side, era: str) -> float:
    """Echo calls a second, one at a time."""
    with opened(side, era) as pipe:
        for ident in range(1, 51):  # warm up
            pipe.send(pipe.call(ident, "echo", text="hello"))
            answered(pipe.receive(), ident)
        frames = [pipe.call(ident, "echo", text="hello") for ident in range(100, 100 + CALLS)]
        begun = time.perf_counter()
        lines = []
        for frame in frames:
            pipe.send(frame)
            lines.append(pipe.receive())
        seconds = time.perf_counter() - begun
    for ident, line in enumerate(lines, 100):
        answered(line, ident)
    return CALLS / seconds


def import_time(side: Side) -> float:
    """Milliseconds of a whole process that imports the package and ends."""
    begun = time.perf_counter()
    subprocess.run([side.python, "-c", f"import {side.module}"], check=True, cwd=ROOT)
    return (time.perf_counter() - begun) * 1000


def first_result(side: Side, era: str) -> float:
    """Milliseconds from the start of the process to its first tool result."""
    begun = time.perf_counter()
    with opened(side, era) as pipe:
        pipe.send(pipe.call(1, "echo", text="hello"))
        answered(pipe.receive(), 1)
        return (time.perf_counter() - begun) * 1000


def blocking(side: Side, era: str) -> tuple[float, float]:
    """Milliseconds until 32 blocking calls are done, and of a ping sent while they run."""
    with opened(side, era) as pipe:
        pipe.send(pipe.call(1, "sleep", ms=1))
        answered(pipe.receive(), 1)
        calls = [pipe.call(100 + n, "sleep", ms=BLOCKING_MS) for n in range(BLOCKING)]
        ping = pipe.frame(99, "ping" if era == LEGACY else "server/discover")
        begun = time.perf_counter()
        pipe.send(b"".join(calls))
        time.sleep(PING_AFTER)
        pinged = time.perf_counter()
        pipe.send(ping)
        ping_seconds = 0.0
        for _ in range(BLOCKING + 1):
            if json.loads(pipe.receive()).get("id") == 99:
                ping_seconds = time.perf_counter() - pinged
        return (time.perf_counter() - begun) * 1000, ping_seconds * 1000


def compare(sides: list[Side], rounds: int, measure: Callable[[Side], float]) -> list[list[float]]:
    """One list of figures a side; the sides take turns."""
    figures: list[list[float]] = [[] for _ in sides]
    for turn in range(rounds):
        order = range(len(sides)) if turn % 2 == 0 else reversed(range(len(sides)))
        for index in order:
            figures[index].append(measure(sides[index]))
    return figures


def row(title: str, unit: str, figures: list[list[float]], more_is_better: bool, aim: str) -> None:
    """Print one line of the table: both medians, and how many times better ours is."""
    ours, theirs = figures
    ratios = [a / b if more_is_better else b / a for a, b in zip(ours, theirs, strict=True)]
    cells = [f"{statistics.median(side):>10,.1f}" for side in (ours, theirs)]
    better = f"{statistics.median(ratios):.1f}"
    spread = f"({min(ratios):.1f}-{max(ratios):.1f})"
    print(f"{title:<38} {unit:<8} {cells[0]} {cells[1]} {better:>8} {spread:<13} {aim}", flush=True)


def both_sides(about: str, kind: str, module: str) -> list[Side]:
    """Return the programs to compare, by what the command line says of their pythons.

    ``kind``: of the programs, as their files are named; ``module``: what theirs imports.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--peer", required=True, help="the python that has mcp 2.x")
    parser.add_argument("--ours", default=sys.executable, help="the python that runs raxol_sync")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)
    return [
        Side("raxol_sync", options.ours, f"{kind}_ours.py", "raxol_sync"),
        Side("mcp", options.peer, f"{kind}_sdk.py", module),
    ]


def main() -> None:
    """Measure everything and print the table."""
    sides = both_sides(__doc__, "server", "mcp.server")
    title, unit, cells = "measured", "unit", ("raxol_sync", "mcp 2")
    print(f"{title:<38} {unit:<8} {cells[0]:>10} {cells[1]:>10} {'better':>8} {'(range)':<13} aim")
    for name, era in (("legacy", LEGACY), ("modern", MODERN)):
        rates = compare(sides, ROUNDS, partial(echo_rate, era=era))
        row(f"echo, one at a time, {name}", "calls/s", rates, True, "6 times")
    for name, era in (("legacy", LEGACY), ("modern", MODERN)):
        starts = compare(sides, STARTS, partial(first_result, era=era))
        row(f"spawn to first tool result, {name}", "ms", starts, False, "4 times")
    row("import, whole process", "ms", compare(sides, STARTS, import_time), False, "6 times")
    for name, era in (("legacy", LEGACY), ("modern", MODERN)):
        pings: list[list[float]] = [[], []]

        def measure(side: Side, era: str = era, pings: list[list[float]] = pings) -> float:
            total, ping = blocking(side, era)
            pings[sides.index(side)].append(ping)
            return total

        totals = compare(sides, STARTS, measure)
        row(f"32 tools that block 100 ms, {name}", "ms", totals, False, "at most 150 ms")
        row(f"a ping while they run, {name}", "ms", pings, False, "at most 10 ms")


if __name__ == "__main__":
    main()
