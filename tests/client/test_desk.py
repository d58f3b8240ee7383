"""Input rounds and server requests in the session's rules: any order of events (rows C14, C28)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from raxol_sync.client import frames
from raxol_sync.client.desk import MAX_HANDLERS, MAX_ROUNDS
from raxol_sync.client.effects import (
    Deliver,
    Effect,
    Entry,
    Failure,
    Inquiry,
    Retract,
    Send,
    Settle,
)
from raxol_sync.client.machine import Machine
from raxol_sync.client.unsendable import encode_params
from raxol_sync.errors import Busy, HandlerFailed, InputRequired, InvalidResponse, ServerExited
from raxol_sync.protocol.wire import Notification, Request, Response

Json = dict[str, Any]
WINDOW, QUEUE = 2, 3
HANDLED = ("elicitation/create", "roots/list")


class Slot:
    def store(self, result: Json | None, error: BaseException | None) -> None:
        """Unused: outcomes are read from the effects."""

    def release(self) -> None:
        """Unused."""


def machine(era: str, **more: Any) -> Machine:
    pinned = "2025-11-25" if era == "legacy" else None
    found = Machine(window=WINDOW, queue_limit=QUEUE, client_info={}, pinned=pinned,
                    handled=HANDLED, **more)  # fmt: skip
    begin(found, era)
    return found


def begin(found: Machine, era: str) -> None:
    if era == "modern":
        found.begin("modern")
        return
    opening = [effect for effect in found.begin("initialize") if isinstance(effect, Send)]
    found.receive(Response(opening[0].frame.id, {"protocolVersion": "2025-11-25"}, None))


def message(effect: Send) -> Json:
    found: Json = json.loads(effect.frame.data)
    return found


def needs(method: str | None = "roots/list", state: str | None = "s") -> Json:
    result: Json = {"resultType": "input_required"}
    if method is not None:
        result["inputRequests"] = {"k": {"method": method}}
    if state is not None:
        result["requestState"] = state
    return result


# ---------------------------------------------------------------- input rounds


class Rounds(RuleBasedStateMachine):
    """A modern session: calls, rounds, answers in any order, cancels, loss.

    The model: each call is in exactly one of queue, wire, asking, done; it is settled once or given
    up; each sending has an id of its own and exactly the input of the round before it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.machine = machine("modern")
        self.entries: list[Entry] = []
        self.wire: dict[int, Entry] = {}
        self.asking: dict[Inquiry, Entry] = {}  # jobs that are out, wanted or not
        self.expected: dict[Entry, Json] = {}  # what the next sending must add
        self.over: dict[Entry, int] = {}
        self.ids: set[int] = set()
        self.number = 0

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Settle):
                self.over[effect.entry] = self.over.get(effect.entry, 0) + 1
                self.wire.pop(effect.entry.id or 0, None)
            elif isinstance(effect, Retract):
                del self.wire[effect.frame.id or 0]
            elif isinstance(effect, Inquiry):
                assert effect.entry is not None
                self.asking[effect] = effect.entry
            elif isinstance(effect, Send):
                assert effect.entry is not None
                self.sent(effect, effect.entry)
            assert len(self.wire) <= WINDOW

    def sent(self, effect: Send, entry: Entry) -> None:
        body = message(effect)
        assert body["id"] not in self.ids
        self.ids.add(body["id"])
        params = dict(body["params"])
        del params["_meta"]
        assert params.pop("name") == entry.method + str(id(entry))
        assert params == self.expected.get(entry, {})
        self.wire[body["id"]] = entry

    @rule(patient=st.booleans())
    def submit(self, patient: bool) -> None:
        entry = Entry("tools/call", b"", Slot())
        entry.params = json.dumps({"name": entry.method + str(id(entry))}).encode()
        try:
            effects = self.machine.submit(entry, patient=patient)
        except Busy:
            assert len(self.wire) == WINDOW
            return
        self.entries.append(entry)
        self.perform(effects)

    @precondition(lambda self: self.wire)
    @rule(data=st.data(), kind=st.sampled_from(["done", "ask", "state", "both", "none", "bad"]))
    def answer(self, data: st.DataObject, kind: str) -> None:
        key = data.draw(st.sampled_from(sorted(self.wire)))
        entry = self.wire.pop(key)
        self.number += 1
        state = f"state {self.number} \u2028"
        results: dict[str, Json] = {
            "done": {},
            "ask": needs(state=None),
            "state": needs(None, state),
            "both": needs(state=state),
            "none": needs("sampling/createMessage"),
            "bad": needs("tools/list"),
        }
        if kind in ("state", "both", "ask"):
            self.expected[entry] = {} if kind == "ask" else {"requestState": state}
        rounds, jobs = entry.rounds, len(self.asking)
        effects = self.machine.receive(Response(key, results[kind], None))
        self.perform(effects)
        settled = [e for e in effects if isinstance(e, Settle)]
        error = settled[0].error if settled else None
        if kind == "done":
            assert settled
            assert error is None
        elif kind == "none":
            assert isinstance(error, InputRequired)
        elif kind == "bad" or rounds == MAX_ROUNDS:
            assert isinstance(error, InvalidResponse)
        elif kind != "state" and jobs >= MAX_HANDLERS + QUEUE:
            assert isinstance(error, Busy)
        else:
            assert not settled
            assert (entry.state == "asking") is (kind != "state")

    @precondition(lambda self: self.asking)
    @rule(data=st.data(), good=st.booleans())
    def handlers_return(self, data: st.DataObject, good: bool) -> None:
        jobs = sorted(self.asking, key=lambda ask: self.entries.index(self.asking[ask])
                      if self.asking[ask] in self.entries else -1)  # fmt: skip
        ask = data.draw(st.sampled_from(jobs))
        entry = self.asking.pop(ask)
        wanted = ask.open
        assert wanted is (entry not in self.over)
        self.number += 1
        if wanted and good:
            self.expected[entry] = {**self.expected[entry], "inputResponses": {"k": self.number}}
        answer: bytes | Failure = b'{"k":%d}' % self.number
        if not good:
            answer = Failure("roots/list", -32603, "no")
        effects = self.machine.answered(ask, answer)
        assert wanted or not effects
        if wanted and not good:
            assert isinstance(effects[0], Settle)
            assert isinstance(effects[0].error, HandlerFailed)
        self.perform(effects)

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def abandon(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from(self.entries))
        before = entry.state
        effects = self.machine.abandon(entry, "given up")
        assert (effects is None) is (entry in self.over)
        if effects is not None:
            self.over[entry] = 1
            assert any(isinstance(e, Retract) for e in effects) is (before == "sent")
            self.perform(effects)

    @precondition(lambda self: len(self.entries) > 8)
    @rule()
    def lose(self) -> None:
        self.perform(self.machine.lost(ServerExited(1)))
        assert all(entry in self.over for entry in self.entries)
        assert not any(ask.open for ask in self.asking)
        self.entries.clear()
        self.machine.begin("modern")

    @invariant()
    def bounds_hold(self) -> None:
        counted = self.machine
        waiting = [e for e in self.entries if e.state == "queued"]
        assert counted.pending == len(self.wire) <= WINDOW
        assert counted.queued == len(waiting)
        assert not waiting or counted.pending == WINDOW
        assert counted._desk.jobs == len(self.asking) <= MAX_HANDLERS + QUEUE
        assert counted.queued <= 2 * QUEUE + MAX_HANDLERS + WINDOW
        assert all(count == 1 for count in self.over.values())


TestRounds = Rounds.TestCase


# ---------------------------------------------------------------- a legacy server's requests


class Requests(RuleBasedStateMachine):
    """A legacy session: the server's requests and cancels, handlers that return in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = machine("legacy")
        self.open: dict[int | str, Inquiry] = {}
        self.jobs: list[Inquiry] = []
        self.answered: list[int | str] = []

    @rule(
        key=st.sampled_from([0, 1, "0", "1", "a", "b", 2, 3, 4, 5, 6, 7]),
        method=st.sampled_from([*HANDLED, "sampling/createMessage", "tools/call"]),
    )
    def request(self, key: int | str, method: str) -> None:
        (effect,) = self.machine.receive(Request(key, method, {}))
        if key in self.open:
            assert not isinstance(effect, (Send, Inquiry))
        elif method not in HANDLED:
            assert isinstance(effect, Send)
            assert message(effect)["error"]["code"] == -32601
        elif len(self.jobs) >= MAX_HANDLERS:
            assert isinstance(effect, Send)
            assert message(effect)["error"]["code"] == -31429
        else:
            assert isinstance(effect, Inquiry)
            assert effect.wanted[""].method == method
            self.open[key] = effect
            self.jobs.append(effect)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def cancel_open(self, data: st.DataObject) -> None:
        self.cancel(data.draw(st.sampled_from(list(self.open))))

    @rule(key=st.sampled_from([0, 1, "0", "a", None, 1.0, True, (), "zz"]))
    def cancel_any(self, key: Any) -> None:
        self.cancel(key)

    def cancel(self, key: Any) -> None:
        given = [] if key == () else key
        (effect,) = self.machine.receive(
            Notification("notifications/cancelled", {"requestId": given})
        )
        assert isinstance(effect, Deliver)
        if type(key) in (int, str):
            self.open.pop(key, None)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), good=st.booleans())
    def handlers_return(self, data: st.DataObject, good: bool) -> None:
        ask = self.jobs.pop(data.draw(st.integers(0, len(self.jobs) - 1)))
        key = next((k for k, found in self.open.items() if found is ask), None)
        outcome = b'{"roots":[]}' if good else Failure("roots/list", -32603, "no")
        effects = self.machine.answered(ask, outcome)
        if key is None:
            assert effects == []
            return
        del self.open[key]
        (effect,) = effects
        assert isinstance(effect, Send)
        body = message(effect)
        assert body["id"] == key
        assert type(body["id"]) is type(key)
        assert body.get("result") == ({"roots": []} if good else None)

    @rule()
    def lose(self) -> None:
        self.machine.lost(ServerExited(1))
        self.open.clear()
        begin(self.machine, "legacy")

    @invariant()
    def counts_hold(self) -> None:
        assert self.machine._desk.jobs == len(self.jobs) <= MAX_HANDLERS
        assert [ask for ask in self.jobs if ask.open] == [
            ask for ask in self.jobs if ask in self.open.values()
        ]


TestRequests = Requests.TestCase


# ---------------------------------------------------------------- what a round adds

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(
        st.characters(exclude_categories=["Cs"])), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PARAMS = st.dictionaries(st.sampled_from(["name", "inputResponses", "requestState", "x"]), JSON)


@given(params=PARAMS, answers=st.none() | st.dictionaries(TEXT, JSON), state=st.none() | TEXT)
def test_c28_a_round_adds_its_members_and_keeps_the_rest(
    params: Json, answers: Json | None, state: str | None
) -> None:
    """Whatever the params are, also ones that have such members already."""
    if answers is None and state is None:
        return
    encoded = None if answers is None else encode_params(answers)
    found = json.loads(frames.with_extras(encode_params(params), frames.extras(encoded, state)))
    kept = {k: v for k, v in params.items() if k not in ("inputResponses", "requestState")}
    added = {"inputResponses": answers, "requestState": state}
    assert found == {**kept, **{k: v for k, v in added.items() if v is not None}}
