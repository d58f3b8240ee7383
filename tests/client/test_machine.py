"""The session's rules: tables for the handshake, a random walk for the window and the queue."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from raxol_sync.client.effects import (
    Deliver,
    Effect,
    Entry,
    Ignored,
    Restart,
    Retract,
    Send,
    Settle,
)
from raxol_sync.client.frames import Frame
from raxol_sync.client.machine import Machine
from raxol_sync.errors import Busy, ConnectFailed, InvalidResponse, NotReady, RPCError, ServerExited
from raxol_sync.protocol.wire import Malformed, Notification, Request, Response

INFO = {"name": "test", "version": "1"}


class Slot:
    """A token that counts its outcomes."""

    def __init__(self) -> None:
        self.outcomes: list[Any] = []

    def store(self, result: dict[str, Any] | None, error: BaseException | None) -> None:
        self.outcomes.append(error or result)

    def release(self) -> None:
        """Unused here."""


def machine(window: int = 2, queue_limit: int = 2, pinned: str | None = None) -> Machine:
    return Machine(window=window, queue_limit=queue_limit, client_info=INFO, pinned=pinned)


def ready(window: int = 2, queue_limit: int = 2, era: str = "modern") -> Machine:
    found = machine(window, queue_limit, "2025-11-25" if era == "legacy" else None)
    if era == "modern":
        found.begin("modern")
    else:
        (opening,) = sends(found.begin("initialize"))
        found.receive(Response(opening.frame.id, {"protocolVersion": "2025-11-25"}, None))
    assert found.state == "ready"
    return found


def entry(method: str = "tools/call", *, progress: bool = False) -> Entry:
    return Entry(method, b'{"name":"t"}', Slot(), progress=progress)


def sends(effects: list[Effect]) -> list[Send]:
    return [effect for effect in effects if isinstance(effect, Send)]


def message(frame: Frame) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(frame.data)
    return found


def methods(effects: list[Effect]) -> list[str]:
    return [effect.frame.method for effect in sends(effects)]


# ---------------------------------------------------------------- the handshake

DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
AGREED = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": INFO}
UNSUPPORTED = {"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}}


def test_c22_a_discover_result_is_modern() -> None:
    """Ready, and each request says what it speaks."""
    found = machine()
    (probe,) = sends(found.begin("discover"))
    assert message(probe.frame)["method"] == "server/discover"
    found.receive(Response(probe.frame.id, DISCOVERED, None))
    assert (found.state, found.era) == ("ready", "modern")
    (sent,) = sends(found.submit(entry(progress=True)))
    meta = message(sent.frame)["params"]["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert meta["progressToken"] == sent.frame.id


def test_c22_any_other_error_falls_back_to_initialize() -> None:
    """`initialized` is sent before anything else may be."""
    found = machine()
    (probe,) = sends(found.begin("discover"))
    error = {"code": -32601, "message": "Method not found"}
    (opening,) = sends(found.receive(Response(probe.frame.id, None, error)))
    assert message(opening.frame)["params"]["protocolVersion"] == "2025-11-25"
    effects = found.receive(Response(opening.frame.id, AGREED, None))
    assert methods(effects) == ["notifications/initialized"]
    assert (found.state, found.era) == ("ready", "legacy")
    (sent,) = sends(found.submit(entry()))
    assert "_meta" not in message(sent.frame)["params"]


def test_c22_a_modern_error_is_retried_once() -> None:
    """A second one leaves nothing to try."""
    found = machine()
    (probe,) = sends(found.begin("discover"))
    (again,) = sends(found.receive(Response(probe.frame.id, None, UNSUPPORTED)))
    assert again.frame.method == "server/discover"
    found.receive(Response(again.frame.id, None, UNSUPPORTED))
    assert found.state == "closed"
    assert isinstance(found.error, ConnectFailed)


@pytest.mark.parametrize("late", ["discover", "initialize"])
def test_c22_after_silence_the_first_answer_wins(late: str) -> None:
    """Both are open; whichever comes first decides, the other is ignored."""
    found = machine()
    (probe,) = sends(found.begin("discover"))
    (opening,) = sends(found.silence())
    assert found.silence() == []
    answers = [(probe, DISCOVERED, "modern"), (opening, AGREED, "legacy")]
    if late == "discover":
        answers.reverse()
    found.receive(Response(answers[0][0].frame.id, answers[0][1], None))
    assert found.era == answers[0][2]
    effects = found.receive(Response(answers[1][0].frame.id, answers[1][1], None))
    assert [type(effect) for effect in effects] == [Ignored]
    assert found.era == answers[0][2]


def test_c22_a_refused_initialize_waits_for_the_open_probe() -> None:
    """A slow modern server refuses `initialize` and answers the probe after it."""
    refusal = {"code": -32601, "message": "no"}
    for answer in (DISCOVERED, None):
        found = machine()
        (probe,) = sends(found.begin("discover"))
        (opening,) = sends(found.silence())
        found.receive(Response(opening.frame.id, None, refusal))
        assert found.state == "initializing"
        found.receive(Response(probe.frame.id, answer, None if answer else refusal))
        assert found.state == ("ready" if answer else "closed")


def test_c22_a_pinned_modern_revision_is_never_given_up_for_silence() -> None:
    """There is nothing to fall back to: the handshake's deadline ends it."""
    found = machine(pinned="2026-07-28")
    found.begin("discover")
    assert not found.probing
    assert found.silence() == []


def test_c22_an_exit_on_the_probe_restarts_once() -> None:
    """And never when the revision is pinned, or for another reason than an exit."""
    found = machine()
    found.begin("discover")
    assert found.lost(ServerExited(1)) == [Restart("initialize")]
    found.begin("initialize")
    found.lost(ServerExited(1))
    assert found.state == "closed"
    for other, error in (
        (machine(pinned="2026-07-28"), ServerExited(1)),
        (machine(), ConnectFailed("no")),
    ):
        other.begin("discover")
        other.lost(error)
        assert other.state == "closed"


def test_c10_handshakes_are_never_cancelled() -> None:
    """They are no entries: nothing can abandon them."""
    found = machine()
    found.begin("discover")
    assert found.pending == 0
    assert not [e for e in found.close(NotReady("closed")) if isinstance(e, (Send, Retract))]


# ---------------------------------------------------------------- answers


def test_c11_a_malformed_answer_fails_its_request() -> None:
    """Where the id is known."""
    found = ready()
    asked = entry()
    found.submit(asked)
    (settle,) = found.receive(Malformed(-32600, "odd", asked.id, answer=False))
    assert isinstance(settle, Settle)
    assert isinstance(settle.error, InvalidResponse)
    assert found.pending == 0


def test_c14_unknown_and_second_answers_are_ignored() -> None:
    """So is a string that looks like the id, and an error without one."""
    found = ready()
    asked = entry()
    found.submit(asked)
    for strange in (str(asked.id), 10_000, None):
        (ignored,) = found.receive(Response(strange, {}, None))
        assert isinstance(ignored, Ignored)
    assert len(found.receive(Response(asked.id, {}, None))) == 1
    assert isinstance(found.receive(Response(asked.id, {}, None))[0], Ignored)


def test_c14_progress_goes_to_its_request_while_it_is_open() -> None:
    """Not to one that did not ask for it, not after the answer."""
    found = ready(window=3)
    asked, other = entry(progress=True), entry()
    for one in (asked, other):
        found.submit(one)

    def told(token: object) -> Entry | None:
        params = {"progressToken": token, "progress": 1}
        (effect,) = found.receive(Notification("notifications/progress", params))
        assert isinstance(effect, Deliver)
        return effect.entry

    assert told(asked.id) is asked
    assert told(other.id) is None
    assert told(str(asked.id)) is None
    assert told([]) is None
    found.receive(Response(asked.id, {}, None))
    assert told(asked.id) is None


@pytest.mark.parametrize(("method", "member"), [("ping", "result"), ("roots/list", "error")])
def test_c14_server_requests_in_a_legacy_session(method: str, member: str) -> None:
    """`ping` is answered, what has no handler refused."""
    found = ready(era="legacy")
    (answer,) = sends(found.receive(Request("r1", method, {})))
    body = message(answer.frame)
    assert body["id"] == "r1"
    assert member in body


def test_c12_a_frame_without_room_settles_its_request() -> None:
    """It was never sent, so nothing is cancelled."""
    found = ready()
    asked = entry()
    found.submit(asked)
    (settle,) = found.drop(asked, Busy("outbox", 1))
    assert isinstance(settle, Settle)
    assert found.drop(asked, Busy("outbox", 1)) == []
    assert found.abandon(asked, "again") is None


# ---------------------------------------------------------------- the window


class Window(RuleBasedStateMachine):
    """Any order of requests, answers, cancellations and loss."""

    def __init__(self) -> None:
        super().__init__()
        self.window, self.limit = 3, 4
        self.machine = ready(self.window, self.limit)
        self.entries: list[Entry] = []  # admitted, in order
        self.on_wire: dict[int, Entry] = {}
        self.order: list[Entry] = []  # as they went on the wire
        self.given_up: set[Entry] = set()
        self.settled: dict[Entry, int] = {}

    def perform(self, effects: list[Effect]) -> None:
        """Do what a session does, in order, and watch the window after each step."""
        for effect in effects:
            if isinstance(effect, Settle):
                self.settled[effect.entry] = self.settled.get(effect.entry, 0) + 1
                self.on_wire.pop(effect.entry.id or 0, None)
            elif isinstance(effect, Retract):
                self.on_wire.pop(effect.frame.id or 0)
                cancelled = message(effect.cancelled)
                assert cancelled["params"]["requestId"] == effect.frame.id
            elif isinstance(effect, Send) and effect.entry is not None:
                assert effect.frame.id not in self.on_wire
                self.on_wire[effect.frame.id or 0] = effect.entry
                self.order.append(effect.entry)
            assert len(self.on_wire) <= self.window

    @rule(patient=st.booleans())
    def submit(self, patient: bool) -> None:
        asked = entry()
        full = len(self.on_wire) >= self.window or self.machine.queued > 0
        try:
            self.perform(self.machine.submit(asked, patient=patient))
        except Busy:
            assert full
            assert not patient or self.machine.queued >= self.limit
            assert asked.state == "new"
        else:
            self.entries.append(asked)

    @precondition(lambda self: self.on_wire)
    @rule(data=st.data(), good=st.booleans())
    def answer(self, data: st.DataObject, good: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.on_wire)))
        error = None if good else {"code": 1, "message": "no"}
        effects = self.machine.receive(Response(key, {} if good else None, error))
        first = effects[0]
        assert isinstance(first, Settle)
        assert isinstance(first.error, RPCError) is not good
        self.perform(effects)

    @rule(number=st.integers(-5, 200))
    def stray_answer(self, number: int) -> None:
        if number not in self.on_wire:
            assert isinstance(self.machine.receive(Response(number, {}, None))[0], Ignored)

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def abandon(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(self.entries))
        effects = self.machine.abandon(chosen, "given up")
        over = chosen in self.settled or chosen in self.given_up
        assert (effects is None) is over
        if effects is not None:
            self.given_up.add(chosen)
            self.perform(effects)

    @precondition(lambda self: len(self.entries) > 10)
    @rule()
    def lose(self) -> None:
        self.perform(self.machine.lost(ServerExited(1)))
        assert not self.on_wire
        assert all((e in self.settled) != (e in self.given_up) for e in self.entries)
        self.entries.clear()
        self.order.clear()
        self.machine.begin("modern")

    @invariant()
    def bounds_and_order_hold(self) -> None:
        assert self.machine.pending == len(self.on_wire) <= self.window
        assert self.machine.queued <= self.limit
        assert self.machine.queued == 0 or self.machine.pending == self.window
        assert all(count == 1 for count in self.settled.values())
        place = {id(asked): index for index, asked in enumerate(self.entries)}
        places = [place[id(asked)] for asked in self.order]
        assert places == sorted(places)


TestWindow = Window.TestCase
