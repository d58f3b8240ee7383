"""What is known of HTTP servers' eras, for 15 minutes (row C22). Floor 2."""

from __future__ import annotations

import threading
from typing import Literal

from raxol_sync._deadline import now

Kind = Literal["modern", "legacy", "sse"]
Key = tuple[str, str]  # origin, path

TTL = 900.0  # seconds
_MAX_KNOWN = 1024

# Guards: _known. Leaf.
_lock = threading.Lock()
_known: dict[Key, tuple[Kind, float]] = {}


def recall(key: Key) -> Kind | None:
    """Return what a server was found to be less than 15 minutes ago. Thread-safe, as all here."""
    with _lock:
        found = _known.get(key)
        if found is not None and now() >= found[1]:
            del _known[key]
            found = None
        return None if found is None else found[0]


def remember(key: Key, kind: Kind) -> None:
    """Keep a verdict; the oldest ones make room."""
    with _lock:
        _known.pop(key, None)
        _known[key] = (kind, now() + TTL)
        if len(_known) > _MAX_KNOWN:
            del _known[next(iter(_known))]


def forget(key: Key) -> None:
    """Drop a verdict that has turned out to be wrong."""
    with _lock:
        _known.pop(key, None)
