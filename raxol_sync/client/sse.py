"""Events out of a ``text/event-stream`` (row C21). Floor 3; the only importer of ``sseclient``.

``sseclient`` reads the fields of an event. Alone it would also deliver an event whose end never
came, swallow events that have only an id, and hold any amount of data. So it is handed one whole
block at a time, of bounded size, and ids and ``retry`` are read here as well.

Spec: the HTML standard, "Server-sent events"; 2025-11-25 basic/transports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from raxol_sync.errors import MessageTooLarge

# A line ends with CRLF, LF or CR; an empty line ends a block. The second CR must not be half of a
# CRLF, and the first must not take the LF of its own line for an empty one.
_BLOCK_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n))")
_ANY_END = re.compile(rb"\r\n|\r")
_BOM = b"\xef\xbb\xbf"
_LONGEST_ID = 4096  # characters: an id goes back in a header
_LONGEST_RETRY = 3600.0  # seconds


class Event(NamedTuple):
    """One event that carries data.

    Attributes:
        kind: its ``event`` field, ``message`` without one.
        data: its data, lines joined with a line feed; ``None`` where it is not UTF-8.
    """

    kind: str
    data: str | None


class EventReader:
    """Reads one response. For one thread.

    Attributes:
        last_id: what ``Last-Event-ID`` would say now; ``None`` while no event had an id.
        retry: the seconds that the server wants to pass before a reconnection, if it said so.
    """

    def __init__(self, chunks: Iterable[bytes], *, max_event: int, max_total: int | None) -> None:
        """Bound an event and, with ``max_total``, the whole response; both in bytes."""
        self._chunks = iter(chunks)
        self._max_event = max_event
        self._max_total = max_total
        self.last_id: str | None = None
        self.retry: float | None = None

    def __iter__(self) -> Iterator[Event]:
        """Yield the events as they become whole; what is unfinished at the end is dropped.

        Raises:
            MessageTooLarge: a bound was passed.
        """
        from sseclient import SSEClient

        for block in self._blocks():
            self._note(block)
            try:
                for event in SSEClient(iter((block,))).events():
                    # An empty data field makes sseclient deliver an event without data.
                    if event.data:
                        yield Event(event.event, event.data)
            except UnicodeDecodeError:
                yield Event("message", None)

    def _blocks(self) -> Iterator[bytes]:
        """Yield whole blocks with their line ends made LF, an empty line at the end."""
        rest = bytearray()  # grows in place: a large event may come in very small pieces
        seen = total = 0
        first = True
        for chunk in self._chunks:
            total += len(chunk)
            if self._max_total is not None and total > self._max_total:
                raise MessageTooLarge(self._max_total, "an event stream")
            rest += chunk
            if first and len(rest) >= len(_BOM):
                first = False
                if rest.startswith(_BOM):
                    del rest[: len(_BOM)]
            # A CR at the very end may be half of a CRLF: it is looked at with what follows.
            whole = len(rest) - 1 if rest.endswith(b"\r") else len(rest)
            start = 0
            while (end := _BLOCK_END.search(rest, max(start, seen), whole)) is not None:
                block = bytes(rest[start : end.start()])
                self._check(len(block))
                start = seen = end.end()
                if block:
                    yield _ANY_END.sub(b"\n", block) + b"\n\n"
            del rest[:start]
            seen = max(0, len(rest) - 4)  # a block's end may have begun there
            self._check(len(rest) - 4)

    def _check(self, size: int) -> None:
        if size > self._max_event:
            raise MessageTooLarge(self._max_event, "an event")

    def _note(self, block: bytes) -> None:
        """Take a block's id and retry, whether or not it has data."""
        if b"id" not in block and b"retry" not in block:
            return
        for line in block.split(b"\n"):
            name, _, value = line.partition(b":")
            text = value.removeprefix(b" ").decode("utf-8", "replace")
            if name == b"id" and "\0" not in text and len(text) <= _LONGEST_ID:
                self.last_id = text
            elif name == b"retry" and text.isascii() and text.isdigit():
                self.retry = min(int(text[:9]) / 1000, _LONGEST_RETRY)
