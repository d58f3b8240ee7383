"""Approvals of legacy clients: asked, answered, refused, bounded (rows S34 to S41)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from raxol_sync import Context, Tool
from tests.server.approvals import NO, YES, Person, asks, denial_of, expire, idle, served, wiping
from tests.server.approvals import the_call as one_call
from tests.server.helpers import (
    WAIT,
    Gate,
    Json,
    Recorder,
    ask,
    call,
    cancelled,
    initialize,
    text,
)


def test_s34_a_call_is_parked_asked_about_and_answered_later() -> None:
    """`handle_message` returns `None` at once; after the approval the response is pushed."""
    server, wiped = wiping()
    with server:
        person, other = Person(server), Person(server, "other")
        assert server.handle_message(call("wipe", {"disk": 1}, 7), "c", timeout=WAIT) is None
        (question,) = person.questions()
        assert question["method"] == "elicitation/create"
        assert question["params"]["message"] == "Run wipe?"
        form = question["params"]["requestedSchema"]
        assert form["required"] == ["approve"]
        assert form["properties"]["approve"]["type"] == "boolean"
        assert server.stats().parked_by_connection == {"c": 1}
        assert server.stats().in_flight == 0
        assert wiped == []
        person.answer(question)
        (response,) = person.responses()
        assert response["id"] == 7
        assert text(response) == "wiped 1"
        assert other.inbox.messages == []
        idle(server)


def test_s34_a_future_gets_the_response_and_the_subscriber_the_question() -> None:
    """Who asked with `request` holds the future; nothing else is pushed."""
    server, _ = wiping()
    with server:
        person = Person(server)
        future = server.request(call("wipe", {"disk": 2}), "c")
        person.answer(person.questions()[0])
        assert text(future.result(WAIT)) == "wiped 2"
        assert len(person.inbox.messages) == 1


def test_s34_a_request_with_a_sink_is_asked_there() -> None:
    """Without a subscriber the sink is where the question and the response go, in that order."""
    server, _ = wiping()
    with server:
        ask(server, initialize(elicitation={}), "c")
        sink = Recorder()
        future = server.request(call("wipe", {"disk": 3}), "c", sink=sink)
        question = sink.wait_for(1)[0]
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": YES}
        assert server.handle_message(reply, "c") is None
        assert text(future.result(WAIT)) == "wiped 3"
        assert sink.wait_for(2)[1] == future.result()


@pytest.mark.parametrize(
    "capabilities", [{}, {"sampling": {}}, {"elicitation": {"url": {}}}, {"elicitation": True}]
)
def test_s34_who_cannot_be_asked_is_denied(capabilities: Json) -> None:
    """No form elicitation: the deny, decision `ask`, and nothing runs."""
    server, wiped = wiping()
    with server:
        Person(server, **(capabilities or {"roots": {}}))
        words = denial_of(ask(server, call("wipe", {"disk": 1})))
        assert words == {
            "error": "authorization_required",
            "tool": "wipe",
            "decision": "ask",
            "detail": "the client cannot be asked for an approval",
        }
        assert wiped == []


def test_s34_without_subscriber_or_sink_nobody_can_be_asked() -> None:
    """Declaring the capability is not enough."""
    server, wiped = wiping()
    with server:
        ask(server, initialize(elicitation={}), "c")
        assert denial_of(ask(server, call("wipe", {"disk": 1})))["decision"] == "ask"
        assert wiped == []
        idle(server)


@pytest.mark.parametrize("form", [{}, {"form": {}}, {"form": {}, "url": {}}])
def test_s34_declaring_forms_is_an_empty_object_or_form(form: Json) -> None:
    """Both ways to declare it count."""
    server, _ = wiping()
    with server:
        person = Person(server, elicitation=form)
        assert server.handle_message(call("wipe", {"disk": 1}), "c") is None
        person.answer(person.questions()[0], NO)
        assert denial_of(person.responses()[0])["detail"] == "declined"


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        ({"result": NO}, "declined"),
        ({"result": {"action": "cancel"}}, "cancelled"),
        ({"result": {"action": "accept"}}, "not approved"),
        ({"result": {"action": "accept", "content": {"approve": False}}}, "not approved"),
        ({"result": {"action": "accept", "content": {"approve": "true"}}}, "not approved"),
        ({"result": {"action": "accept", "content": {"approve": 1}}}, "not approved"),
        ({"result": {"action": "accept", "content": [True]}}, "not approved"),
        ({"result": {"action": ["accept"]}}, "the answer is not valid"),
        ({"result": {}}, "the answer is not valid"),
        ({"error": {"code": -1, "message": "no"}}, "the client answered with an error"),
        ({"error": {"code": "x"}}, "the client answered with an error"),
        ({"result": 5}, "the client answered with an error"),
        ({}, "the client answered with an error"),
    ],
)
def test_s35_whatever_is_no_approval_denies(reply: Json, detail: str) -> None:
    """Each in its own words; silence, garbage and malformed responses are not consent."""
    server, wiped = wiping()
    with server:
        person = Person(server)
        future = server.request(call("wipe", {"disk": 1}), "c")
        question = person.questions()[0]
        server.handle_message({"jsonrpc": "2.0", "id": question["id"], **reply}, "c")
        if not reply:  # no response at all: it is dropped, and so still waits
            expire(one_call(server))
            detail = "no answer in time"
        words = denial_of(future.result(WAIT))
        assert (words["decision"], words["detail"]) == ("ask", detail)
        assert wiped == []
        idle(server)


def test_s35_an_answer_that_does_not_come_denies_in_time() -> None:
    """`elicitation_timeout` is real: a short one ends by itself."""
    server, wiped = wiping(elicitation_timeout=0.01)
    with server:
        Person(server)
        future = server.request(call("wipe", {"disk": 1}), "c")
        assert denial_of(future.result(WAIT))["detail"] == "no answer in time"
        assert wiped == []
        idle(server)


@pytest.mark.parametrize("way", ["future", "cancel", "notification", "disconnect", "take over"])
def test_s35_dropping_a_parked_call_ends_it_without_an_answer(way: str) -> None:
    """No response anywhere; a later approval of it runs nothing."""
    server, wiped = wiping()
    with server:
        person = Person(server)
        future = server.request(call("wipe", {"disk": 1}, 5), "c")
        question = person.questions()[0]
        if way == "future":
            assert future.cancel()
        elif way == "cancel":
            assert server.cancel(future)
        elif way == "notification":
            server.handle_message(cancelled(5), "c")
        elif way == "disconnect":
            person.subscription.close()
        else:
            Person(server)
        assert future.result(WAIT) is None
        server.handle_message({"jsonrpc": "2.0", "id": question["id"], "result": YES}, "c")
        assert wiped == []
        idle(server)


@pytest.mark.parametrize("way", ["future", "notification", "disconnect"])
def test_s35_dropping_an_approved_call_stops_its_tool(way: str) -> None:
    """It runs under its original request, so all that cancels that reaches it."""
    gate, stopped = Gate(), threading.Event()
    with served() as server:

        @server.tool
        def slow(context: Context) -> str:
            gate()
            if context.cancelled:
                stopped.set()
            return "never"

        person = Person(server)
        future = server.request(call("slow", id=5), "c")
        person.answer(person.questions()[0])
        gate.wait_entered()
        if way == "future":
            future.cancel()
        elif way == "notification":
            server.handle_message(cancelled(5), "c")
        else:
            person.subscription.close()
        assert future.result(WAIT) is None
        gate.open()
        assert stopped.wait(WAIT)
        idle(server)


def test_s17_a_callbacks_time_out_is_not_a_parked_calls() -> None:
    """The authorizer's deadline, come late, closes nothing: not the parked call, nor its run."""
    gate = Gate()
    with served() as server:

        @server.tool
        def slow() -> str:
            gate()
            return "ran"

        person = Person(server)
        future = server.request(call("slow"), "c")
        question = person.questions()[0]
        parked = one_call(server)
        asked_in = parked.runs
        server._engine._expire(parked, asked_in)
        assert server.stats().parked == 1
        person.answer(question)
        gate.wait_entered()
        server._engine._expire(parked, asked_in)
        assert not future.done()
        gate.open()
        assert text(future.result(WAIT)) == "ran"


def test_s36_only_the_connection_that_parked_may_answer() -> None:
    """From another connection it is an unknown id; a second answer of the owner's too."""
    server, wiped = wiping()
    with server:
        person, thief = Person(server), Person(server, "thief")
        future = server.request(call("wipe", {"disk": 1}), "c")
        question = person.questions()[0]
        thief.answer(question)
        assert not future.done()
        assert server.stats().parked == 1
        person.answer(question)
        person.answer(question)
        assert text(future.result(WAIT)) == "wiped 1"
        person.answer(question)
        assert wiped == [1]
        assert thief.inbox.messages == []


def test_s36_ids_cannot_be_guessed() -> None:
    """A fixed prefix and at least 96 random bits, none of them twice."""
    server, _ = wiping(max_parked_elicitations=32)
    with server:
        person = Person(server)
        for n in range(32):
            server.request(call("wipe", {"disk": n}, n), "c")
        ids = [question["id"] for question in person.questions(32)]
        assert len(set(ids)) == 32
        for question_id in ids:
            assert question_id.startswith("raxol-elicit-")
            assert len(bytes.fromhex(question_id.removeprefix("raxol-elicit-"))) >= 12


def test_s37_the_arguments_that_were_asked_about_are_run() -> None:
    """What the caller does to its message afterwards changes nothing."""
    seen: list[Any] = []
    with served() as server:
        schema = {"type": "object"}
        server.registry.register_tools([Tool("keep", "Keeps.", schema, seen.append)])
        person = Person(server)
        message = call("keep", {"deep": {"list": [1]}})
        assert server.handle_message(message, "c") is None
        message["params"]["arguments"]["deep"]["list"].append(2)
        message["params"]["name"] = "other"
        person.answer(person.questions()[0])
        person.responses()
        assert seen == [{"deep": {"list": [1]}}]


def test_s37_the_authorizer_is_asked_once() -> None:
    """An approval does not ask it again."""
    asked: list[str] = []

    def authorizer(name: str, arguments: object, context: object) -> object:
        asked.append(name)
        return asks()(name, {}, context)  # type: ignore[arg-type]

    with served(authorizer) as server:
        server.tool(name="t")(lambda: "ran")
        person = Person(server)
        future = server.request(call("t"), "c")
        person.answer(person.questions()[0])
        assert text(future.result(WAIT)) == "ran"
        assert asked == ["t"]


@pytest.mark.parametrize("replaced", [True, False])
def test_s37_a_tool_that_went_meanwhile_is_unknown(replaced: bool) -> None:
    """Unregistered or replaced: the approval was for the one that was asked about."""
    server, wiped = wiping(unknown_tool_reply=lambda name: f"no {name} here")
    with server:
        person = Person(server)
        future = server.request(call("wipe", {"disk": 1}), "c")
        question = person.questions()[0]
        if replaced:
            server.tool(name="wipe")(lambda disk: wiped.append(-1))
        else:
            server.registry.unregister_tools(["wipe"])
        person.answer(question)
        assert text(future.result(WAIT)) == "no wipe here"
        assert wiped == []
        idle(server)


def test_s37_an_approval_without_a_free_worker_is_busy() -> None:
    """The parked call gets the busy error, and nothing is left over."""
    server, wiped = wiping(max_in_flight=1)
    gate = Gate()
    with server:
        server.tool(name="hold")(lambda: gate())
        person = Person(server)
        future = server.request(call("wipe", {"disk": 1}, 1), "c")
        question = person.questions()[0]
        held = server.request(call("hold", id=2), "x")
        gate.wait_entered()
        person.answer(question)
        answer = future.result(WAIT)
        assert answer is not None
        assert answer["error"]["code"] == -31429
        gate.open()
        held.result(WAIT)
        assert wiped == []
        idle(server)


def test_s37_arguments_are_checked_before_a_person_is_asked() -> None:
    """Look-up, authorizer, arguments, then the question."""
    server, _ = wiping()
    with server:
        person = Person(server)
        answer = ask(server, call("wipe", {"disk": "no"}))
        assert answer["result"]["isError"] is True
        assert "disk" in text(answer)
        assert ask(server, call("nothing"))["error"]["code"] == -32601
        assert person.inbox.messages == []


def test_s34_an_id_in_use_is_refused_while_its_call_is_parked() -> None:
    """A parked call still owns its id."""
    server, _ = wiping()
    with server:
        person = Person(server)
        future = server.request(call("wipe", {"disk": 1}, 1), "c")
        person.questions()
        assert ask(server, call("free", id=1))["error"]["code"] == -32600
        assert not future.done()
