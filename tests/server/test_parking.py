"""Parked calls: bounds, fairness, ownership; checked against a model that is naive on purpose."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from raxol_sync.server.parking import CONNECTION_FULL, SERVER_FULL, Parking, Place


def place(question: str, owner: str) -> Place[str]:
    """Return a place whose call is its question's name."""
    return Place(question, owner, question)


def test_s39_past_the_connections_bound_its_call_is_refused() -> None:
    """Checked first, also on a full server."""
    parking: Parking[str] = Parking(per_connection=2, total=2)
    for n in range(2):
        assert parking.park(place(f"a{n}", "a")).refused is None
    assert parking.park(place("a2", "a")).refused == CONNECTION_FULL
    assert len(parking) == 2


def test_s40_a_full_server_makes_room_for_who_holds_fewer() -> None:
    """The oldest call of the fullest connection goes."""
    parking: Parking[str] = Parking(per_connection=3, total=4)
    for question, owner in (("a0", "a"), ("b0", "b"), ("a1", "a"), ("a2", "a")):
        parking.park(place(question, owner))
    outcome = parking.park(place("c0", "c"))
    assert outcome.refused is None
    assert outcome.victim is not None
    assert outcome.victim.question == "a0"
    assert parking.counts() == {"a": 2, "b": 1, "c": 1}


def test_s40_of_several_fullest_the_oldest_call_goes() -> None:
    """Order of parking decides between connections that hold as many."""
    parking: Parking[str] = Parking(per_connection=2, total=4)
    for question, owner in (("b0", "b"), ("a0", "a"), ("a1", "a"), ("b1", "b")):
        parking.park(place(question, owner))
    outcome = parking.park(place("c0", "c"))
    assert outcome.victim is not None
    assert outcome.victim.question == "b0"


def test_s40_who_holds_as_many_as_the_fullest_is_refused() -> None:
    """Nobody crowds out another by holding as much."""
    parking: Parking[str] = Parking(per_connection=2, total=2)
    parking.park(place("a0", "a"))
    parking.park(place("b0", "b"))
    assert parking.park(place("a1", "a")).refused == SERVER_FULL
    assert parking.counts() == {"a": 1, "b": 1}


def test_s36_only_the_owner_takes_a_place() -> None:
    """To anyone else the question does not exist; to the owner it exists once."""
    parking: Parking[str] = Parking(per_connection=2, total=2)
    parking.park(place("q", "a"))
    assert parking.take("q", "b") is None
    taken = parking.take("q", "a")
    assert taken is not None
    assert parking.take("q", "a") is None
    assert parking.remove(taken) is False


class ParkingModel(RuleBasedStateMachine):
    """Parking against a plain list of (owner, question), oldest first."""

    SHARE, TOTAL = 3, 6

    def __init__(self) -> None:
        super().__init__()
        self.parking: Parking[str] = Parking(self.SHARE, self.TOTAL)
        self.model: list[Place[str]] = []
        self.closed: list[str] = []
        self.number = 0

    def held(self, owner: object) -> int:
        """How many the model says that an owner holds."""
        return sum(known.owner == owner for known in self.model)

    @rule(owner=st.sampled_from("abcde"))
    def park(self, owner: str) -> None:
        """A call asks to park; every refusal and every victim is the model's."""
        self.number += 1
        new = place(f"q{self.number}", owner)
        outcome = self.parking.park(new)
        if self.held(owner) >= self.SHARE:
            assert outcome.refused == CONNECTION_FULL
            return
        if len(self.model) >= self.TOTAL:
            most = max(self.held(known.owner) for known in self.model)
            if self.held(owner) >= most:
                assert outcome.refused == SERVER_FULL
                return
            victim = next(known for known in self.model if self.held(known.owner) == most)
            assert outcome.victim is victim
            self.model.remove(victim)
            self.closed.append(victim.question)
        else:
            assert outcome.victim is None
        assert outcome.refused is None
        self.model.append(new)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), owner=st.sampled_from("abcde"))
    def answer(self, data: st.DataObject, owner: str) -> None:
        """Somebody answers a question: only its owner gets it."""
        known = self.model[data.draw(st.integers(0, len(self.model) - 1))]
        taken = self.parking.take(known.question, owner)
        assert (taken is known) == (owner == known.owner)
        if taken is not None:
            self.model.remove(known)
            self.closed.append(known.question)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        """A deadline passes, or the call is cancelled."""
        known = self.model.pop(data.draw(st.integers(0, len(self.model) - 1)))
        assert self.parking.remove(known) is True
        assert self.parking.remove(known) is False
        self.closed.append(known.question)

    @invariant()
    def agrees(self) -> None:
        """Counts agree, bounds hold, and nothing closed twice."""
        assert len(self.parking) == len(self.model) <= self.TOTAL
        counts = {known.owner: self.held(known.owner) for known in self.model}
        assert self.parking.counts() == counts
        assert all(count <= self.SHARE for count in counts.values())
        assert len(self.closed) == len(set(self.closed))


TestParkingModel = ParkingModel.TestCase
TestParkingModel.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
