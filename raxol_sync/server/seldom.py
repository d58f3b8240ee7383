"""Warnings that a peer could cause at will, logged now and then only. Floor 2."""

from __future__ import annotations

from raxol_sync._deadline import now

INTERVAL = 60.0  # seconds between two warnings of one kind


class Seldom:
    """Tells whether a warning of one kind is due. Thread-safe.

    Without a lock: two threads that ask at the same moment may both be told that it is.
    """

    def __init__(self) -> None:
        self._next = 0.0
        self._left_out = 0

    def due(self) -> str | None:
        """Return ``None`` if one was logged lately, else how many were left out since, in words."""
        moment = now()
        if moment < self._next:
            self._left_out += 1
            return None
        self._next = moment + INTERVAL
        left_out, self._left_out = self._left_out, 0
        return f" ({left_out} more since the last such line)" if left_out else ""
