"""What a server has at the moment: connections, event streams, bodies. Floor 2."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from raxol_sync._deadline import Deadline
from raxol_sync.server.web.connection import Connection
from raxol_sync.server.web.limits import Limits


@dataclass(frozen=True)
class Counts:
    """What a server has at the moment: connections, threads, and streams that are open."""

    connections: int
    threads: int
    streams: int


class Ledger:
    """Counts what is bounded. Thread-safe.

    Attributes:
        connections: all that are open, by their descriptors. Only the poller's thread adds to it.
        ending: no new request is taken.
        ended: answers that still run are broken off.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.connections: dict[int, Connection] = {}
        self.ending = False
        self.ended = False
        # Guards: _streams, _bodies, _readers, what leaves connections. Told when one does. Leaf.
        self._changed = threading.Condition()
        self._streams = 0
        self._bodies = 0
        self._readers = 0

    @property
    def streams(self) -> int:
        """How many event streams are open."""
        return self._streams

    def take_stream(self) -> bool:
        """Take a place among the event streams, if one is free."""
        with self._changed:
            if self._streams >= self._limits.max_streams:
                return False
            self._streams += 1
            return True

    def give_stream(self) -> None:
        """Give it back."""
        with self._changed:
            self._streams -= 1

    def take_reader(self) -> bool:
        """Let one more thread wait for a body, if few enough do."""
        with self._changed:
            if self._readers >= max(1, self._limits.max_threads // 4):
                return False
            self._readers += 1
            return True

    def give_reader(self) -> None:
        """It waits no longer."""
        with self._changed:
            self._readers -= 1

    def weigh(self, more: int) -> bool:
        """Count bytes of bodies; return whether they are not too many."""
        with self._changed:
            self._bodies += more
            return self._bodies <= self._limits.max_bodies

    def forget(self, connection: Connection) -> None:
        """A connection is closed."""
        with self._changed:
            self.connections.pop(connection.descriptor, None)
            if self.ending:
                self._changed.notify_all()

    def await_empty(self, deadline: Deadline) -> bool:
        """Wait until no connection is left; return whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.connections, deadline.left())
