"""Newline-delimited messages out of a stream of bytes, as the stdio binding frames them. Pure.

Only a line feed ends a line: ``str.splitlines`` and text files would also split at U+2028, U+0085
and others, which JSON strings may hold. A carriage return before it is dropped, empty lines are
skipped.
"""

from __future__ import annotations

from typing import NamedTuple


class Overlong(NamedTuple):
    """Stands for a line that was longer than the limit; its bytes were thrown away."""

    limit: int


class LineSplitter:
    """Cuts bytes into lines, holding at most ``max_bytes`` (and a return) of an unfinished one.

    Not thread-safe: its owner, a reader thread, serialises.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._rest = bytearray()
        self._skipping = False  # inside a line that was given up as too long

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        """Take the next bytes; return the lines that they complete, without their ends."""
        lines: list[bytes | Overlong] = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._finish(data[start:end], lines)
            start = end + 1
        self._keep(data[start:] if start else data, lines)
        return lines

    def end(self) -> list[bytes | Overlong]:
        """Say that the stream has ended; return its last line, if that had no end."""
        lines: list[bytes | Overlong] = []
        if self._rest:
            self._finish(b"", lines)
        return lines

    def _keep(self, part: bytes, lines: list[bytes | Overlong]) -> None:
        if self._skipping:
            return
        excess = len(self._rest) + len(part) - self._max
        if excess > 1 or (excess == 1 and part and not part.endswith(b"\r")):
            # One byte too many is still held where it may be the return of a split line end.
            self._rest = bytearray()
            self._skipping = True
            lines.append(Overlong(self._max))
        else:
            self._rest += part

    def _finish(self, part: bytes, lines: list[bytes | Overlong]) -> None:
        if self._skipping:
            self._skipping = False
            return
        line = bytes(self._rest) + part if self._rest else part
        if self._rest:
            self._rest = bytearray()
        line = line.removesuffix(b"\r")
        if len(line) > self._max:
            lines.append(Overlong(self._max))
        elif line.strip():
            lines.append(line)
