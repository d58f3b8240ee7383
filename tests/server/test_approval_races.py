"""All ways to close one parked call, raced in pairs: exactly one of them counts (rows S35, S36)."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from raxol_sync import RPCError, Server
from raxol_sync.server.connections import Call
from tests.server.approvals import NO, Person, denial_of, served
from tests.server.helpers import WAIT, Json, Recorder, ask, call, cancelled, eventually, initialize


class Parked:
    """One parked call, and all that can happen to it."""

    def __init__(self, caller: str) -> None:
        self.server = served(max_parked_elicitations=2, max_parked_elicitations_total=2)
        self.ran: list[int] = []
        self.events: list[tuple[str, Any]] = []

        @self.server.tool
        def work() -> str:
            self.ran.append(1)
            return "ran"

        self.owner, self.rival = Person(self.server, "c"), Person(self.server, "rival")
        self.sink = Recorder()
        self.settled: list[Any] = []
        self.future: Future[Json | None] | None = None
        message = call("work", id=1)
        if caller == "handle_message":
            assert self.server.handle_message(message, "c") is None
        else:
            sink = self.sink if caller == "sink" else None
            self.future = self.server.request(message, "c", sink=sink)
            self.future.add_done_callback(lambda f: self.settled.append(f.result()))
        eventually(lambda: self.server.stats().parked == 1)
        asked = self.sink if caller == "sink" else self.owner.inbox
        eventually(lambda: any("id" in m and "method" in m for m in asked.messages))
        self.question = next(m for m in asked.messages if "id" in m and "method" in m)
        (self.call,) = self.server._engine.outstanding()
        assert self.call.place is not None
        eventually(lambda: self.call.place is not None and self.call.place.timer is not None)
        self.expiry = self.call.place.timer.action
        self.fill()

    def fill(self) -> None:
        """Make the server full with a second call of the same owner's."""
        self.server.request(call("work", id=2), "c")
        eventually(lambda: self.server.stats().parked == 2)

    def evict(self) -> None:
        """Have a connection that holds fewer park, so that the oldest call has to go."""
        self.server.request(call("work", id=3), "rival")

    def take_over(self) -> None:
        """Subscribe under the owner's id."""
        with contextlib.suppress(RPCError):  # closed
            self.server.subscribe(Recorder(), "c")

    def cancel(self) -> None:
        """Cancel the future; a `handle_message` caller has none, so the request itself."""
        if self.future is not None:
            self.future.cancel()
        else:
            self.server._engine.cancel(self.call)


WAYS: dict[str, Callable[[Parked], object]] = {
    "approve": lambda p: p.owner.answer(p.question),
    "decline": lambda p: p.owner.answer(p.question, NO),
    "expiry": lambda p: p.expiry(),
    "cancel": lambda p: p.cancel(),
    "cancelled": lambda p: p.server.handle_message(cancelled(1), "c"),
    "loss": lambda p: p.owner.subscription.close(0),
    "take over": lambda p: p.take_over(),
    "eviction": lambda p: p.evict(),
    "close": lambda p: p.server.close(WAIT),
}
DENYING = {
    "decline": "declined",
    "expiry": "no answer in time",
    "eviction": "too many elicitations pending on this server",
}


def race(parked: Parked, *ways: str) -> None:
    """Let all these ways act at once."""
    barrier = threading.Barrier(len(ways))

    def act(way: str) -> None:
        barrier.wait(WAIT)
        WAYS[way](parked)

    threads = [threading.Thread(target=act, args=(way,)) for way in ways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
        assert not thread.is_alive()


def possible(answer: Json | None, ways: tuple[str, ...]) -> bool:
    """Whether this outcome is one that one of the ways has."""
    if answer is None:
        return bool({"cancel", "cancelled", "loss", "take over", "close"} & set(ways))
    if answer["result"].get("isError"):
        return denial_of(answer)["detail"] in {DENYING.get(way) for way in ways}
    return "approve" in ways


def check(parked: Parked, caller: str, ways: tuple[str, ...]) -> None:
    """One settling, one response at most, to the right connection; nothing parked or counted."""
    server = parked.server
    eventually(lambda: parked.call.settled)
    eventually(lambda: server.stats().in_flight == 0)
    server.close(WAIT)
    first = [m for m in parked.owner.inbox.messages if "method" not in m and m.get("id") == 1]
    sent = [m for m in parked.sink.messages if "method" not in m]
    if caller == "handle_message":
        outcome = first[0] if first else None
        assert len(first) <= 1
        assert sent == []
    else:
        eventually(lambda: bool(parked.settled))
        assert len(parked.settled) == 1
        outcome = parked.settled[0]
        assert first == []
        assert sent == ([outcome] if caller == "sink" and outcome is not None else [])
    assert possible(outcome, ways), outcome
    assert len(parked.ran) <= (1 if "approve" in ways else 0)
    assert [m for m in parked.rival.inbox.messages if m.get("id") == 1] == []
    stats = server.stats()
    assert (stats.parked, stats.in_flight, stats.abandoned) == (0, 0, 0)
    assert (stats.parked_by_connection, stats.in_flight_by_connection) == ({}, {})
    assert server._engine.outstanding() == []
    assert server._engine.parking.counts() == {}


@pytest.mark.usefixtures("quick_switches")
@pytest.mark.parametrize("caller", ["handle_message", "request", "sink"])
@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(WAYS, 2)))
def test_s35_a_parked_call_is_closed_exactly_once(first: str, second: str, caller: str) -> None:
    """Whichever of two ways wins, the other finds nothing to do."""
    for _ in range(4):
        parked = Parked(caller)
        race(parked, first, second)
        check(parked, caller, (first, second))


@pytest.mark.usefixtures("quick_switches")
@pytest.mark.parametrize("caller", ["handle_message", "request", "sink"])
def test_s35_all_ways_at_once(caller: str) -> None:
    """Nine of them together."""
    for _ in range(15):
        parked = Parked(caller)
        race(parked, *WAYS)
        check(parked, caller, tuple(WAYS))


@pytest.mark.parametrize("way", WAYS)
def test_s35_each_way_alone_has_its_own_outcome(way: str) -> None:
    """Approval runs; the denying ways deny; the dropping ways say nothing."""
    parked = Parked("request")
    WAYS[way](parked)
    check(parked, "request", (way,))


def test_s35_an_answer_that_comes_while_it_is_parked_keeps_the_next_time_out() -> None:
    """The approved run's own deadline survives what parking does to the authorizer's."""
    server = served(callback_timeout=WAIT)
    engine = server._engine
    ran, go = threading.Event(), threading.Event()

    @server.tool
    def slow() -> str:
        ran.set()
        go.wait(WAIT)
        return "late"

    real = engine._scheduler.cancel
    armed: list[Call] = []

    def cancel_late(entry: Any) -> None:
        """What parking does to the old deadline comes when the approved tool runs already."""
        if threading.current_thread().name.startswith("raxol-sync-worker") and not armed:
            armed.append(engine.outstanding()[0])
            assert ran.wait(WAIT)
        real(entry)

    engine._scheduler.cancel = cancel_late  # type: ignore[method-assign]

    def at_once(message: Json) -> None:
        if message.get("method") == "elicitation/create":
            content = {"action": "accept", "content": {"approve": True}}
            server.handle_message({"jsonrpc": "2.0", "id": message["id"], "result": content}, "c")

    with server:
        server.subscribe(at_once, "c")
        ask(server, initialize(elicitation={}), "c")
        future = server.request(call("slow"), "c")
        assert ran.wait(WAIT)
        eventually(lambda: bool(armed) and armed[0].thread is not None)
        running = armed[0]
        assert running.timer is not None
        assert running.timer.action is not None
        running.timer.action()
        answer = future.result(WAIT)
        assert answer is not None
        assert answer["error"]["code"] == -31504
        go.set()


def test_s35_a_parked_call_without_a_timer_ends_at_once() -> None:
    """Where the system starts no more threads a call must not wait for ever."""
    server = served(callback_timeout=None)
    server.tool(name="t")(lambda: "ran")

    def no_thread(due: float, action: object) -> Any:
        raise RuntimeError("can't start new thread")

    with server:
        Person(server)
        server._engine._scheduler.at = no_thread  # type: ignore[method-assign]
        future = server.request(call("t"), "c")
        assert denial_of(future.result(WAIT))["detail"] == "no answer in time"
        eventually(lambda: server.stats().in_flight == 0)
        assert server.stats().in_flight_by_connection == {}


def test_s16_a_call_without_a_timer_gives_its_slot_back() -> None:
    """Nor may a slot be lost where a callback's deadline cannot be armed."""
    server = Server()
    server.tool(name="t")(lambda: "ran")

    def no_thread(due: float, action: object) -> Any:
        raise RuntimeError("can't start new thread")

    with server:
        before = server._engine._scheduler.at
        server._engine._scheduler.at = no_thread  # type: ignore[method-assign]
        assert ask(server, call("t"))["error"]["code"] == -32603
        assert server.stats().in_flight == 0
        server._engine._scheduler.at = before  # type: ignore[method-assign]
        assert "result" in ask(server, call("t"))
