"""The ``subscriptions/listen`` requests that a modern session has open (row C31). Floor 1; pure.

Spec: basic/patterns/subscriptions (2026-07-28). A listen is answered when it ends, and takes no
place in the window. What is sent for it names it in ``_meta``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raxol_sync.client.effects import Entry
from raxol_sync.protocol.modern import SUBSCRIPTION_KEY


class Listens:
    """The open listens by their ids. Not thread-safe: the machine's owner serialises."""

    def __init__(self) -> None:
        self._open: dict[int | str, Entry] = {}

    def add(self, entry: Entry) -> None:
        """Keep a listen that is sent now."""
        assert entry.id is not None
        assert entry.frame is not None
        entry.state = "listening"
        entry.frame.stream = True
        self._open[entry.id] = entry

    def take(self, request_id: object) -> Entry | None:
        """Return a listen that ends now; ``None`` if there is none with this id."""
        if type(request_id) is not int or request_id not in self._open:
            return None
        entry = self._open.pop(request_id)
        entry.state = "done"
        return entry

    def of(self, params: Mapping[str, Any]) -> Entry | None:
        """Return the listen that a notification is sent for; ``None`` without one."""
        meta = params.get("_meta")
        found = meta.get(SUBSCRIPTION_KEY) if isinstance(meta, dict) else None
        return self._open.get(found) if type(found) is int else None

    def clear(self) -> list[Entry]:
        """The session has ended: return the listens that it had."""
        entries = list(self._open.values())
        self._open.clear()
        return entries
