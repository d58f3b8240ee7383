"""Calls that wait for a person's approval: who may park how many, who makes room. Floor 1; pure.

Theory of operation (rows S34 to S40). A parked call holds no worker, only a place here. Places are
bounded for each connection and in all. Past the connection's own bound its call is refused. On a
full server a connection that holds fewer than the fullest one takes the place of the fullest one's
oldest call; so a client that parks many calls crowds out its own, never another's.

An entry leaves exactly once: by ``take`` (an answer from its owner), by ``remove`` (expiry, cancel,
the end of its connection), or as the victim that ``park`` returns. Whoever got it settles the call.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

CallT = TypeVar("CallT")


class Place(Generic[CallT]):
    """One parked call: the id of its question, its owner, and what is kept for it.

    ``timer`` is whatever its holder keeps of its deadline.
    """

    __slots__ = ("call", "owner", "question", "timer", "turn")

    def __init__(self, question: str, owner: Hashable, call: CallT) -> None:
        self.question = question
        self.owner = owner
        self.call = call
        self.timer: Any = None
        self.turn = 0  # in the order of parking


@dataclass(frozen=True)
class Outcome(Generic[CallT]):
    """What ``park`` decided.

    Attributes:
        refused: why the call may not park, in the words that its caller is told; else ``None``.
        victim: the place that was cleared for it, whose call is to be closed; else ``None``.
    """

    refused: str | None = None
    victim: Place[CallT] | None = None


CONNECTION_FULL = "too many elicitations pending"
SERVER_FULL = "too many elicitations pending on this server"


class Parking(Generic[CallT]):
    """All parked calls of a server. Not thread-safe: the owner serialises."""

    def __init__(self, per_connection: int, total: int) -> None:
        self.per_connection = per_connection
        self.total = total
        self._places: dict[str, Place[CallT]] = {}
        # By owner, oldest first. Owners without places are not kept.
        self._by_owner: dict[Hashable, dict[str, Place[CallT]]] = {}
        self._turns = 0

    def __len__(self) -> int:
        return len(self._places)

    def counts(self) -> dict[Hashable, int]:
        """Return how many calls each connection has parked; no zero entries."""
        return {owner: len(places) for owner, places in self._by_owner.items()}

    def park(self, place: Place[CallT]) -> Outcome[CallT]:
        """Park a call if the bounds allow it, perhaps at the cost of another one."""
        own = len(self._by_owner.get(place.owner, ()))
        if own >= self.per_connection:
            return Outcome(refused=CONNECTION_FULL)
        victim: Place[CallT] | None = None
        if len(self._places) >= self.total:
            victim = self._fullest_oldest()
            if victim is None or own >= len(self._by_owner[victim.owner]):
                return Outcome(refused=SERVER_FULL)
            self.remove(victim)
        self._turns += 1
        place.turn = self._turns
        self._places[place.question] = place
        self._by_owner.setdefault(place.owner, {})[place.question] = place
        return Outcome(victim=victim)

    def take(self, question: str, owner: Hashable) -> Place[CallT] | None:
        """Take a place out for its owner's answer; ``None`` to anyone else (row S36)."""
        place = self._places.get(question)
        if place is None or place.owner != owner:
            return None
        self.remove(place)
        return place

    def remove(self, place: Place[CallT]) -> bool:
        """Take a place out; return whether it was still there."""
        if self._places.get(place.question) is not place:
            return False
        del self._places[place.question]
        places = self._by_owner[place.owner]
        del places[place.question]
        if not places:
            del self._by_owner[place.owner]
        return True

    def _fullest_oldest(self) -> Place[CallT] | None:
        """Return the oldest place of the fullest connection; of several, the oldest of them."""
        oldest = (next(iter(places.values())) for places in self._by_owner.values())
        best = None
        for place in oldest:
            rank = (-len(self._by_owner[place.owner]), place.turn)
            if best is None or rank < best[0]:
                best = (rank, place)
        return best[1] if best is not None else None
