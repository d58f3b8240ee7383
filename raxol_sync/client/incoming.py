"""A line from a server into messages (rows C11, C20). Floor 1; pure.

What cannot be read comes back as a ``Malformed``. Where such a line is plainly the answer to one of
our requests (a NaN in a result, say), the ``Malformed`` has that request's id, so that the request
fails at once instead of when its time is up.
"""

from __future__ import annotations

import json

from raxol_sync.protocol import wire
from raxol_sync.protocol.wire import Incoming, Malformed

_LONGEST_SALVAGE = 4 * 2**20  # bytes; a larger broken line is not read a second time


def parse(line: bytes, *, max_bytes: int) -> list[Incoming]:
    """Return the messages of one line: one, or several where a server sends a batch.

    A batch is unpacked whatever the revision: refusing it would lose the answers in it.
    """
    value = wire.decode(line, max_bytes=max_bytes)
    if isinstance(value, Malformed):
        return [value._replace(id=_answered_id(line), answer=False)]
    if type(value) is list:
        return [wire.classify(item) for item in value]
    return [wire.classify(value)]


def shortened(line: bytes, limit: int = 120) -> str:
    """Return a line for a log record: cut, and with what a terminal would act on escaped."""
    text = line[:limit].decode("utf-8", "backslashreplace")
    shown = text.encode("unicode_escape").decode("ascii")
    return f"{shown}... ({len(line)} bytes)" if len(line) > limit else shown


def _answered_id(line: bytes) -> int | str | None:
    """Return the id of a response that a strict reading refuses, if a lenient one finds it."""
    if not line.startswith(b"{") or len(line) > _LONGEST_SALVAGE:
        return None
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or "method" in value:
        return None
    found = value.get("id")
    return found if type(found) is int or type(found) is str else None
