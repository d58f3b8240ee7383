"""Parking on the real server against a naive model: bounds, fairness, owners, deadlines (S34-S40).

Nothing here waits for time: deadlines are stepped by the action that the timer would hand over.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.server.approvals import NO, Person, denial_of, expire, served
from tests.server.helpers import WAIT, Json, call, cancelled, eventually, text

SHARE, TOTAL = 2, 4
OWNERS = st.sampled_from("abcd")


@dataclass
class Waiting:
    """One parked call as the model knows it: who made it, and how to reach it."""

    owner: str
    id: int
    question: Json
    future: Future[Json | None]
    call: Any = field(repr=False)


class ServerParking(RuleBasedStateMachine):
    """A server whose every call is asked about, and a plain list of what is parked."""

    def __init__(self) -> None:
        super().__init__()
        self.server = served(max_parked_elicitations=SHARE, max_parked_elicitations_total=TOTAL)
        self.ran: list[int] = []

        @self.server.tool
        def work(n: int) -> str:
            self.ran.append(n)
            return f"ran {n}"

        self.people = {name: Person(self.server, name) for name in "abcd"}
        self.model: list[Waiting] = []
        self.approved: list[int] = []
        self.number = 0

    def teardown(self) -> None:
        """Close, and see that what is left resolves to nothing."""
        self.server.close(WAIT)
        assert all(waiting.future.result(WAIT) is None for waiting in self.model)

    def held(self, owner: str) -> int:
        """How many the model says that an owner holds."""
        return sum(waiting.owner == owner for waiting in self.model)

    def pick(self, data: st.DataObject) -> Waiting:
        """One of the parked calls."""
        return self.model[data.draw(st.integers(0, len(self.model) - 1))]

    def denied(self, future: Future[Json | None], detail: str) -> None:
        """It was answered with this denial."""
        assert denial_of(future.result(WAIT))["detail"] == detail

    @rule(owner=OWNERS)
    def ask(self, owner: str) -> None:
        """Somebody calls: parked, refused, or parked in the place of the fullest one's oldest."""
        self.number += 1
        future = self.server.request(call("work", {"n": self.number}, self.number), owner)
        if self.held(owner) >= SHARE:
            return self.denied(future, "too many elicitations pending")
        full = "too many elicitations pending on this server"
        if len(self.model) >= TOTAL:
            most = max(self.held(waiting.owner) for waiting in self.model)
            if self.held(owner) >= most:
                return self.denied(future, full)
            victim = next(w for w in self.model if self.held(w.owner) == most)
            self.model.remove(victim)
            self.denied(victim.future, full)
        self.remember(owner, future)

    def remember(self, owner: str, future: Future[Json | None]) -> None:
        """Note a call that was parked."""
        inbox = self.people[owner].inbox
        known = {waiting.question["id"] for waiting in self.model}

        def fresh() -> list[Json]:
            return [m for m in inbox.messages if "method" in m and m["id"] not in known]

        eventually(lambda: self.number in [c.id for c in self.server._engine.outstanding()])
        (parked,) = [c for c in self.server._engine.outstanding() if c.id == self.number]
        eventually(lambda: parked.place is not None and parked.place.timer is not None)
        assert parked.place is not None
        asked = parked.place.question
        eventually(lambda: any(m["id"] == asked for m in fresh()))
        (question,) = [m for m in fresh() if m["id"] == asked]
        self.model.append(Waiting(owner, self.number, question, future, parked))

    @precondition(lambda self: self.model)
    @rule(data=st.data(), who=OWNERS, approve=st.booleans())
    def answer(self, data: st.DataObject, who: str, approve: bool) -> None:
        """Somebody answers a question; to all but its owner it does not exist."""
        waiting = self.pick(data)
        self.people[who].answer(waiting.question, None if approve else NO)
        if who != waiting.owner:
            assert not waiting.future.done()
            return
        self.model.remove(waiting)
        if approve:
            self.approved.append(waiting.id)
            assert text(waiting.future.result(WAIT)) == f"ran {waiting.id}"
        else:
            self.denied(waiting.future, "declined")

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        """A deadline passes."""
        waiting = self.pick(data)
        self.model.remove(waiting)
        expire(waiting.call)
        self.denied(waiting.future, "no answer in time")

    @precondition(lambda self: self.model)
    @rule(data=st.data(), by_id=st.booleans())
    def cancel(self, data: st.DataObject, by_id: bool) -> None:
        """A call is cancelled, by its caller or by its client; then its question is no more."""
        waiting = self.pick(data)
        self.model.remove(waiting)
        if by_id:
            self.server.handle_message(cancelled(waiting.id), waiting.owner)
        else:
            assert waiting.future.cancel()
        assert waiting.future.result(WAIT) is None
        self.people[waiting.owner].answer(waiting.question)

    @rule(owner=OWNERS, take_over=st.booleans())
    def vanish(self, owner: str, take_over: bool) -> None:
        """A connection goes and comes back, or is taken over: what it had parked is dropped."""
        if not take_over:
            self.people[owner].subscription.close()
        self.people[owner] = Person(self.server, owner)
        for waiting in [w for w in self.model if w.owner == owner]:
            self.model.remove(waiting)
            assert waiting.future.result(WAIT) is None

    @invariant()
    def agrees(self) -> None:
        """The counts are the model's, the bounds hold, and only what was approved has run."""
        eventually(lambda: self.server.stats().in_flight == 0)
        stats = self.server.stats()
        assert stats.parked == len(self.model) <= TOTAL
        held = {waiting.owner: self.held(waiting.owner) for waiting in self.model}
        assert stats.parked_by_connection == held
        assert all(count <= SHARE for count in held.values())
        assert sorted(self.ran) == sorted(self.approved)
        assert all(not waiting.future.done() for waiting in self.model)


TestServerParking = ServerParking.TestCase
TestServerParking.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
