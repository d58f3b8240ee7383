"""Circuit breakers: a callback that keeps failing is left alone for a while. Floor 1; pure.

Row S45. ``CLOSED -n faults-> OPEN -after a time-> HALF_OPEN (one probe out) -> CLOSED | OPEN``.
Each admission carries the generation of the breaker that gave it; an outcome of an older generation
(a call that began before the last change) says nothing about the callback as it is now, and is
ignored.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

State = Literal["closed", "open", "half_open"]

FAULTS = 5  # in a row, until a breaker opens
OPEN_FOR = 30.0  # seconds


class Ticket(NamedTuple):
    """An admission; hand it back with the outcome."""

    generation: int
    probe: bool


class Breaker:
    """One callback's breaker. Not thread-safe: the owner serialises."""

    __slots__ = (
        "_faults",
        "_generation",
        "_limit",
        "_open_for",
        "_opened_at",
        "_probing",
        "_state",
    )

    def __init__(self, limit: int = FAULTS, open_for: float = OPEN_FOR) -> None:
        self._limit = limit
        self._open_for = open_for
        self._state: State = "closed"
        self._faults = 0
        self._opened_at = 0.0
        self._probing = False
        self._generation = 0

    @property
    def faults(self) -> int:
        """How many faults in a row were counted."""
        return self._faults

    def state(self, now: float) -> State:
        """Return the state at a moment of the monotonic clock, in seconds."""
        if self._state == "open" and now >= self._opened_at + self._open_for:
            return "half_open"
        return self._state

    def retry_after(self, now: float) -> float:
        """Return in how many seconds the next call has a chance; 0 where it has one now."""
        if self.state(now) != "open":
            return 0.0
        return self._opened_at + self._open_for - now

    def admit(self, now: float) -> Ticket | None:
        """Let a call through, or return ``None``. Half open lets exactly one through."""
        state = self.state(now)
        if state == "closed":
            return Ticket(self._generation, False)
        if state == "open" or self._probing:
            return None
        if self._state == "open":
            self._state = "half_open"
            self._generation += 1
        self._probing = True
        return Ticket(self._generation, True)

    def succeed(self, ticket: Ticket) -> bool:
        """Take a good outcome; return whether it closed the breaker."""
        if ticket.generation != self._generation:
            return False
        self._faults = 0
        if not ticket.probe:
            return False
        self._change("closed")
        return True

    def fail(self, ticket: Ticket, now: float) -> bool:
        """Take a fault; return whether it opened the breaker."""
        if ticket.generation != self._generation:
            return False
        self._faults += 1
        if not ticket.probe and self._faults < self._limit:
            return False
        self._opened_at = now
        self._change("open")
        return True

    def withdraw(self, ticket: Ticket) -> None:
        """Give an admission back without an outcome: the next call may be the probe."""
        if ticket.probe and ticket.generation == self._generation:
            self._probing = False

    def reset(self) -> None:
        """Close the breaker; outcomes of calls that began before are ignored."""
        self._change("closed")

    def _change(self, state: State) -> None:
        self._state = state
        self._faults = 0
        self._probing = False
        self._generation += 1
