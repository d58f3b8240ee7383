"""The circuit breaker of one origin (row C24). Floor 2."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

from raxol_sync._deadline import now
from raxol_sync.breaker import Breaker, State, Ticket
from raxol_sync.errors import BreakerOpen

How = Literal["good", "fault", "nothing"]


class Guard:
    """A breaker and its lock. Thread-safe.

    Attributes:
        on_change: called with the origin and the state that it has now; must be quick.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.on_change: Callable[[str, State], object] = lambda origin, state: None
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
        if ticket.probe:
            self.on_change(self.origin, "half_open")
        return ticket

    def report(self, ticket: Ticket, how: How) -> bool:
        """Take a request's outcome; return whether it opened or closed the breaker."""
        with self._lock:
            changed = False
            if how == "good":
                changed = self._breaker.succeed(ticket)
            elif how == "fault":
                changed = self._breaker.fail(ticket, now())
            else:
                self._breaker.withdraw(ticket)
            state = self._breaker.state(now())
        if changed:
            self.on_change(self.origin, state)
        return changed

    def state(self) -> State:
        """Return ``closed``, ``open`` or ``half_open``."""
        with self._lock:
            return self._breaker.state(now())
