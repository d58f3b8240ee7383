"""Event streams as WSGI iterators, and how many there may be. Floor 3.

The host's thread comes for each chunk: it waits on the stream's channel, and after some silence
gets a comment, which shows whether the client is still there.

A client knows that its request has ended when it reads the last message, and not only when the
response ends. So a stream gives its place back, and leaves its session, before it hands out the
chunk with that message: the client's next request must not be refused for the sake of this one.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from raxol_sync.server.channel import Item, Reader
from raxol_sync.server.http import events
from raxol_sync.server.http.events import EventId
from raxol_sync.server.http.host import HOST_KEY
from raxol_sync.server.http.presence import Presence
from raxol_sync.server.http.replies import Header, encode

_log = logging.getLogger("raxol_sync.server")

CHUNK = 256 * 1024  # bytes that are written at once, unless one event is larger

HEADERS: list[Header] = [
    ("Content-Type", "text/event-stream"),
    ("Cache-Control", "no-cache, no-transform"),
    ("X-Accel-Buffering", "no"),
]


class Places:
    """The event-stream places of one application. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # Guards: open. Leaf.
        self._lock = threading.Lock()
        self.open = 0
        self._warned = False

    def take(self, environ: Mapping[str, Any]) -> bool:
        """Take a place, here and where the host counts its own; ``False``: all are taken."""
        with self._lock:
            if self.open >= self.limit:
                return False
            self.open += 1
        host = environ.get(HOST_KEY)
        if host is not None and not host.begin_stream():
            self.give_back()
            return False
        if not environ.get("wsgi.multithread", True) and not self._warned:
            self._warned = True
            _log.warning(
                "! an event stream holds up every other request of this process: its WSGI server "
                "has one thread; give it more (gunicorn: --worker-class gthread --threads 16)"
            )
        return True

    def give_back(self) -> None:
        """Give a place back."""
        with self._lock:
            self.open -= 1


class EventStream:
    """The body of one event stream. The host's thread has it; ``close`` is for any thread."""

    def __init__(
        self,
        reader: Reader,
        presence: Presence,
        *,
        first: bytes = b"",
        number: int | None = None,
        keep_alive: float,
        at_end: Callable[[], bytes] | None = None,
        on_close: Callable[[bool], object],
    ) -> None:
        """Make one; ``Places.take`` has been called for it.

        Args:
            reader: of the channel whose messages it carries.
            presence: its client.
            first: what goes out at once.
            number: the stream's number, where its events have ids.
            keep_alive: seconds of silence after which a comment is sent.
            at_end: returns the last bytes, when the channel has ended.
            on_close: called once, before its last chunk is handed out, or when it is broken off;
                true: the stream had come to its end.
        """
        self._reader = reader
        self._presence = presence
        # Headers leave with the first bytes: a client must not wait for them until there is news.
        self._first = first or events.KEEP_ALIVE
        self._number = number
        self._keep_alive = keep_alive
        self._at_end = at_end
        # Guards: _on_close, and _done with it. Leaf.
        self._lock = threading.Lock()
        self._on_close: Callable[[bool], object] | None = on_close
        self._done = False
        self._items: deque[Item] = deque()  # taken, and not gone out
        presence.leads_to(self.close)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._first:
            chunk, self._first = self._first, b""
            return chunk + self._end_if_over()
        while not self._done and self._on_close is not None:
            chunk = self._next_chunk()
            if chunk:
                return chunk
        raise StopIteration

    def _next_chunk(self) -> bytes:
        """Return what comes next; nothing at the end, which ``_done`` tells."""
        if self._items:
            return self._joined() + self._end_if_over()
        left = self._keep_alive
        while True:
            step = self._presence.step(left)
            items = self._reader.take(step)
            if items is None:
                return self._finish()
            if items:
                self._items.extend(items)
                return self._joined() + self._end_if_over()
            if self._presence.gone():
                self.close()  # not at its end
                return b""
            left -= step
            if left <= 0:
                return events.KEEP_ALIVE

    def _joined(self) -> bytes:
        """Return as many events as make one chunk: a client that reads none costs no more."""
        parts: list[bytes] = []
        size = 0
        while self._items and size < CHUNK:
            parts.append(encode_item(self._items.popleft(), self._number))
            size += len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _end_if_over(self) -> bytes:
        """End if all is handed out and nothing more will come; return what is still to be said."""
        if self._items or self._on_close is None:
            return b""
        items = self._reader.take(0)
        if items is None:
            return self._finish()
        self._items.extend(items)
        return b""

    def _finish(self) -> bytes:
        """It has come to its end: return its last words, with its place given back already."""
        words = self._last_chunk()
        self._done = True
        self.close()
        return words

    def _last_chunk(self) -> bytes:
        if self._reader.retry is not None:
            return events.retry_after(self._reader.retry)
        return self._at_end() if self._at_end is not None else b""

    def close(self) -> None:
        """End it; the host calls this when the response is over, for whatever reason.

        Twice is harmless. From any thread: also called where a client is noticed to have gone.
        """
        with self._lock:
            on_close, self._on_close = self._on_close, None
            finished, self._done = self._done, True
        if on_close is not None:
            self._reader.stop()
            self._presence.end_stream()
            on_close(finished)


def encode_item(item: Item, number: int | None) -> bytes:
    """Return a message as an event of the stream of that number; nothing if it cannot be sent."""
    data = encode(item.message)
    if not data:
        return b""
    return events.event(data, None if number is None else EventId(number, item.number))
