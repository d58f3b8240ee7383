"""Named events to one callable: every event with its fields, in order, and no harm from it."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from raxol_sync import Server
from raxol_sync.server.callbacks import _report
from raxol_sync.telemetry import EVENTS, MAX_WAITING
from tests.server.approvals import NO, Person, expire, served
from tests.server.approvals import the_call as one_call
from tests.server.helpers import (
    WAIT,
    Gate,
    ask,
    call,
    cancelled,
    eventually,
    gated,
    initialize,
    req,
)
from tests.telemetry import Heard

# `is_error` and such are told only where they apply.
OPTIONAL = {"is_error"}


def documented(event: str) -> set[str]:
    """The fields that the table promises."""
    return set(re.findall(r"\b(?!for\b|a\b|tool that\b)[a-z_]+\b", EVENTS[event].split(";")[0]))


def test_every_event_is_told_with_the_fields_of_the_table() -> None:
    """One story in which each happens; names and fields are exactly the documented ones."""
    heard = Heard()
    server = served(telemetry=heard, max_in_flight=1, max_client_capabilities=1)
    with server:
        gate = gated(server, "wait")

        @server.tool
        def fail() -> str:
            raise ValueError

        server.prompt(name="p")(fail)
        person = Person(server)
        ask(server, initialize(elicitation={}), "evicts")  # has no subscriber: it goes itself
        ask(server, initialize(), "evicts too")
        future = server.request(call("wait", id=1), "c")
        person.answer(person.questions(1)[0])
        gate.wait_entered()
        ask(server, req("prompts/get", {"name": "p"}, 2), "x")  # busy
        future.cancel()
        gate.open()
        eventually(lambda: server.stats().in_flight == 0)
        for n in range(5):
            ask(server, req("prompts/get", {"name": "p"}, n))
        server.registry.circuits._breakers["prompt", "p"]._opened_at -= 31
        server.registry.register_prompts(server.registry.list_prompts())
        circuit = server.registry.circuits
        admission = circuit.admit(server.registry.list_prompts()[0])
        assert admission is not None

        _report(server._app, admission, "good")
        gate.opened.clear()
        late = server.request(call("wait", id=3), "c")
        person.answer(person.questions(2)[1])
        gate.wait_entered()
        running = one_call(server)
        server._engine._expire(running, running.runs)
        late.result(WAIT)
        gate.open()
        eventually(lambda: server.stats().in_flight == 0)
        person.subscription.close()
    told = {name for name, _ in heard.events}
    assert told == set(EVENTS) - {"events_dropped"}
    for name, fields in heard.events:
        assert set(fields) - OPTIONAL == documented(name), name
    assert heard.threads == {"raxol-sync-telemetry"}
    assert all(type(f["seconds"]) is float for _, f in heard.events if "seconds" in f)
    assert all(0 <= f["seconds"] < WAIT for _, f in heard.events if "seconds" in f)


def test_the_events_of_a_request_come_in_order() -> None:
    """Started, parked, closed with its reason, finished; each once."""
    heard = Heard()
    with served(telemetry=heard) as server:
        server.tool(name="t")(lambda: "ran")
        person = Person(server)
        heard.wait("request_finished", method="initialize")
        for n, reply in enumerate((None, NO)):
            heard.events.clear()
            server.request(call("t", id=f"t{n}"), "c")
            person.answer(person.questions(n + 1)[n], reply)
            heard.wait("request_finished", id=f"t{n}")
            assert heard.names() == [
                "request_started", "parked", "parked_closed", "request_finished",
            ]  # fmt: skip
            reason = heard.wait("parked_closed")["reason"]
            assert reason == ("approved" if reply is None else "declined")
            assert heard.wait("request_finished")["is_error"] is (reply is not None)


@pytest.mark.parametrize(
    ("way", "reason"),
    [("expiry", "no answer in time"), ("cancelled", "cancelled"), ("loss", "cancelled"),
     ("eviction", "too many elicitations pending on this server")],
)  # fmt: skip
def test_each_end_of_a_parked_call_is_told_once_with_its_reason(way: str, reason: str) -> None:
    """However it ended."""
    heard = Heard()
    bounds: dict[str, Any] = {"max_parked_elicitations": 2, "max_parked_elicitations_total": 2}
    with served(telemetry=heard, **bounds) as server:
        server.tool(name="t")(lambda: "ran")
        person, rival = Person(server), Person(server, "rival")
        future = server.request(call("t", id=1), "c")
        person.questions()
        if way == "expiry":
            expire(one_call(server))
        elif way == "cancelled":
            server.handle_message(cancelled(1), "c")
        elif way == "loss":
            person.subscription.close()
        else:
            server.request(call("t", id=2), "c")
            person.questions(2)
            server.request(call("t", id=3), "rival")
            rival.questions()
        future.result(WAIT)
        fields = heard.wait("parked_closed", reason=reason)
        assert fields == {"tool": "t", "conn_id": "c", "reason": reason}
        ended = "request_cancelled" if reason == "cancelled" else "request_finished"
        heard.wait(ended, id=1)
        assert heard.names("parked_closed") == ["parked_closed"]


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1)])
def test_what_the_callable_raises_is_contained(error: BaseException) -> None:
    """Later events still come, and requests do not notice."""
    seen: list[str] = []

    def sink(event: str, fields: Mapping[str, Any]) -> None:
        seen.append(event)
        raise error

    with Server(telemetry=sink) as server:
        for n in range(3):
            assert "result" in ask(server, req("ping", id=n))
    assert seen == ["request_started", "request_finished"] * 3


def test_a_callable_that_blocks_holds_up_nothing_and_events_are_dropped_and_counted() -> None:
    """At most so many wait; how many were dropped is told when there is room again."""
    heard, gate = Heard(), Gate()

    def sink(event: str, fields: Mapping[str, Any]) -> None:
        gate()
        heard(event, fields)

    with Server(telemetry=sink) as server:
        ask(server, req("ping", id="first"))
        gate.wait_entered()
        for n in range(MAX_WAITING // 2 + 100):
            ask(server, req("ping", id=n))
        gate.open()
        eventually(lambda: server._app.telemetry._waiting == 0)
        ask(server, req("ping", id="last"))
        count = heard.wait("events_dropped")["count"]
        heard.wait("request_finished", id="last")
        total = 2 * (MAX_WAITING // 2 + 102)
        eventually(lambda: len(heard.events) - 1 + count == total)


def test_a_callable_may_call_back_in() -> None:
    """Also close the server that it hears of."""
    done = threading.Event()

    def sink(event: str, fields: Mapping[str, Any]) -> None:
        if fields.get("id") == "stop" and event == "request_finished":
            server.stats()
            server.handle_message(req("ping", id="inner"), "t")
            server.close(WAIT)
            done.set()

    server = Server(telemetry=sink)
    ask(server, req("ping", id="stop"))
    assert done.wait(WAIT)
    assert ask(server, req("ping"))["error"]["message"] == "server closed"


def test_after_the_close_nothing_is_told_on_the_callers_thread() -> None:
    """A closed server's requests would else run the callable there."""
    heard = Heard()
    server = Server(telemetry=heard)
    server.close()
    ask(server, req("ping"))
    assert heard.threads <= {"raxol-sync-telemetry"}


def test_s23_each_eviction_is_told() -> None:
    """Also where a level or a subscription makes room for itself; never one that had nothing."""
    heard = Heard()
    with Server(telemetry=heard, max_client_capabilities=2) as server:
        for conn_id in ("a", "b"):
            ask(server, initialize(), conn_id)
        ask(server, req("logging/setLevel", {"level": "debug"}), "level")
        heard.wait("client_capabilities_evicted", conn_id="a")
        ask(server, req("resources/subscribe", {"uri": "a://x"}), "uri")
        heard.wait("client_capabilities_evicted", conn_id="b")
        ask(server, req("logging/setLevel", {"level": "debug"}, id=2), "more")
        ask(server, req("ping", id="end"), "level")
        heard.wait("request_finished", id="end")
        assert len(heard.names("client_capabilities_evicted")) == 2
