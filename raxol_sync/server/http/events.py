"""Server-sent events as bytes, and the ids that resume a stream. Floor 1; pure."""

from __future__ import annotations

import re
from typing import NamedTuple

KEEP_ALIVE = b": keep-alive\n\n"
_ID = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")


class EventId(NamedTuple):
    """The id of an event: which of the session's streams, and where in it."""

    stream: int
    number: int

    def __str__(self) -> str:
        return f"{self.stream}-{self.number}"


def event(data: bytes, event_id: EventId | None = None) -> bytes:
    """Return a ``message`` event; ``data`` is JSON on one line."""
    head = b"event: message\n"
    if event_id is not None:
        head = b"event: message\nid: %d-%d\n" % event_id
    return head + b"data: " + data + b"\n\n"


def priming(event_id: EventId, retry: float) -> bytes:
    """Return the first event of a stream that may be resumed: an id, no data, when to come back.

    ``retry`` is in seconds, on the wire in milliseconds.
    """
    return b"id: %d-%d\nretry: %d\ndata: \n\n" % (*event_id, milliseconds(retry))


def retry_after(seconds: float) -> bytes:
    """Return what tells a client when to come back to a stream that is about to be closed."""
    return b"retry: %d\n\n" % milliseconds(seconds)


def endpoint(url: str) -> bytes:
    """Return the first event of the older HTTP+SSE transport: where to POST messages."""
    return b"event: endpoint\ndata: " + url.encode("ascii") + b"\n\n"


def milliseconds(seconds: float) -> int:
    """Return seconds as whole milliseconds, at least 0."""
    return max(0, round(seconds * 1000))


def read_id(text: str) -> EventId | None:
    """Return the id that ``Last-Event-ID`` holds, ``None`` if it is none of ours."""
    found = _ID.fullmatch(text.strip(" \t"))
    return EventId(int(found[1]), int(found[2])) if found is not None else None
