"""The circuit breaker of one origin (row C24). Floor 2."""

from __future__ import annotations

import threading
from typing import Literal

from raxol_sync._deadline import now
from raxol_sync.breaker import Breaker, State, Ticket
from raxol_sync.errors import BreakerOpen

How = Literal["good", "fault", "nothing"]


class Guard:
    """A breaker and its lock. Thread-safe."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        # Guards: _breaker. Leaf.
        self._lock = threading.Lock()
        self._breaker = Breaker()

    def admit(self) -> Ticket:
        """Let a request through; ``BreakerOpen`` while the origin is left alone."""
        with self._lock:
            moment = now()
            ticket = self._breaker.admit(moment)
            left = self._breaker.retry_after(moment)
        if ticket is None:
            raise BreakerOpen(self.origin, left)
        return ticket

    def report(self, ticket: Ticket, how: How) -> bool:
        """Take a request's outcome; return whether it opened or closed the breaker."""
        with self._lock:
            if how == "good":
                return self._breaker.succeed(ticket)
            if how == "fault":
                return self._breaker.fail(ticket, now())
            self._breaker.withdraw(ticket)
            return False

    def state(self) -> State:
        """Return ``closed``, ``open`` or ``half_open``."""
        with self._lock:
            return self._breaker.state(now())
