"""The circuit breakers of a registry, by what they guard (row S45). Floor 2.

A breaker comes into being with the first fault of its callback: what never fails costs nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

from raxol_sync._deadline import now
from raxol_sync.breaker import Breaker, State, Ticket
from raxol_sync.definitions import Definition

Key = tuple[str, str]  # ("tool", name), ("resource", uri or template), ("prompt", name)
How = Literal["good", "fault", "nothing"]
_FIRST = Ticket(0, False)  # what a breaker that does not exist yet would have given


class Admission:
    """The right to one run of a callback; its outcome counts once, whoever reports it first."""

    __slots__ = ("definition", "key", "spent", "ticket")

    def __init__(self, definition: Definition, ticket: Ticket) -> None:
        self.definition = definition
        self.key = definition.circuit
        self.ticket = ticket
        self.spent = False


class Circuits:
    """Breakers by key. Thread-safe."""

    def __init__(self, registered: Callable[[Key], object]) -> None:
        """``registered(key)`` is the definition of that key now, or ``None``; takes no lock."""
        self._registered = registered
        # Guards: _breakers and every breaker and admission. Leaf.
        self._lock = threading.Lock()
        self._breakers: dict[Key, Breaker] = {}

    def admit(self, definition: Definition) -> Admission | None:
        """Let a callback run, or return ``None`` while it is left alone."""
        key = definition.circuit
        if key not in self._breakers:
            return Admission(definition, _FIRST)
        with self._lock:
            breaker = self._breakers.get(key)
            ticket = _FIRST if breaker is None else breaker.admit(now())
        return None if ticket is None else Admission(definition, ticket)

    def report(self, admission: Admission, how: How) -> State | None:
        """Take an outcome; return the state that it brought about, ``None`` where it changed none.

        Only the first report of an admission counts. One of a callback that is not registered any
        more, or was replaced, says nothing about who has its name now.
        """
        if how != "fault" and admission.key not in self._breakers:
            admission.spent = True
            return None
        with self._lock:
            if admission.spent:
                return None
            admission.spent = True
            if self._registered(admission.key) is not admission.definition:
                how = "nothing"
            breaker = self._breakers.get(admission.key)
            if breaker is None:
                if how != "fault":
                    return None
                breaker = self._breakers[admission.key] = Breaker()
            if how == "good":
                return "closed" if breaker.succeed(admission.ticket) else None
            if how == "fault":
                return "open" if breaker.fail(admission.ticket, now()) else None
            breaker.withdraw(admission.ticket)
        return None

    def state(self, key: Key) -> State:
        """Return a breaker's state: ``closed``, ``open`` or ``half_open``."""
        with self._lock:
            breaker = self._breakers.get(key)
            return breaker.state(now()) if breaker is not None else "closed"

    def retry_after(self, key: Key) -> float:
        """Return in how many seconds a call has a chance again."""
        with self._lock:
            breaker = self._breakers.get(key)
            return breaker.retry_after(now()) if breaker is not None else 0.0

    def reset(self, key: Key) -> None:
        """Close a breaker; what is still running says nothing about it any more."""
        with self._lock:
            breaker = self._breakers.get(key)
            if breaker is not None:
                breaker.reset()

    def forget(self, key: Key) -> None:
        """Drop the breaker of what is no longer registered."""
        with self._lock:
            self._breakers.pop(key, None)
