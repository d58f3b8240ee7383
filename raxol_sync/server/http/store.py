"""The bound over all that is kept of event streams which ended or broke. Floor 3."""

from __future__ import annotations

import threading

from raxol_sync.server.channel import Channel

MAX_STORED = 64 * 2**20  # as ``weight`` counts it, of one application


class EventStore:
    """Counts what finished streams hold; past the bound the oldest ones forget. Thread-safe."""

    def __init__(self, limit: int = MAX_STORED) -> None:
        self._limit = limit
        # Guards: _held, bytes. Leaf.
        self._lock = threading.Lock()
        self._held: dict[Channel, int] = {}  # oldest first
        self.bytes = 0

    def settled(self, channel: Channel) -> None:
        """Note what a stream holds now that its last message is in it."""
        size = channel.held
        dropped = []
        with self._lock:
            self.bytes -= self._held.pop(channel, 0)
            self._held[channel] = size
            self.bytes += size
            while self.bytes > self._limit:
                oldest = next(iter(self._held))
                self.bytes -= self._held.pop(oldest)
                dropped.append(oldest)
        for old in dropped:
            old.empty()

    def forget(self, channel: Channel) -> None:
        """Count a stream no more."""
        with self._lock:
            self.bytes -= self._held.pop(channel, 0)
