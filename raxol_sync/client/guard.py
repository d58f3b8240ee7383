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
        # Guards: _breaker, _last. Leaf.
        self._lock = threading.Lock()
        self._breaker = Breaker()
        self._last = ""  # how the last request that failed did so, in words

    def admit(self) -> Ticket:
        """Let a request through; ``BreakerOpen`` while the origin is left alone."""
        with self._lock:
            moment = now()
            ticket = self._breaker.admit(moment)
            left, last = self._breaker.retry_after(moment), self._last
        if ticket is None:
            raise BreakerOpen(self.origin, left, last)
        if ticket.probe:
            self.on_change(self.origin, "half_open")
        return ticket

    def report(self, ticket: Ticket, how: How, why: str = "") -> bool:
        """Take a request's outcome; return whether it opened or closed the breaker.

        ``why``: the fault in words, without a header, userinfo or a query.
        """
        with self._lock:
            changed = False
            if how == "good":
                changed = self._breaker.succeed(ticket)
            elif how == "fault":
                changed = self._breaker.fail(ticket, now())
                self._last = why
            else:
                self._breaker.withdraw(ticket)
            state = self._breaker.state(now())
        if changed:
            self.on_change(self.origin, state)
        return changed

    def problem(self) -> str | None:
        """Return why requests are refused now, ``None`` where they are not."""
        with self._lock:
            moment = now()
            if self._breaker.state(moment) != "open":
                return None
            left, last = self._breaker.retry_after(moment), self._last
        return str(BreakerOpen(self.origin, left, last))

    def state(self) -> State:
        """Return ``closed``, ``open`` or ``half_open``."""
        with self._lock:
            return self._breaker.state(now())
