"""What a running callback asks its client in a legacy session (rows S07, S15, S17, S18, S36)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from raxol_sync import (
    Context,
    Elicit,
    InvalidResponse,
    RequestTimeout,
    Roots,
    RPCError,
    Sample,
    Server,
)
from tests.server.approvals import NO, Person
from tests.server.approvals import the_call as one_call
from tests.server.helpers import (
    WAIT,
    Json,
    Recorder,
    ask,
    call,
    cancelled,
    eventually,
    initialize,
    req,
    text,
)

FORM = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
EVERYTHING: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
MODEL = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}}
PATIENT = 30.0  # seconds; no test waits that long


class Asking:
    """A server with one tool that asks something and remembers what came of it."""

    def __init__(self, question: Callable[[Context], object], **options: Any) -> None:
        self.server = Server(**{"elicitation_timeout": PATIENT, **options})
        self.outcomes: list[object] = []
        self.ended = threading.Semaphore(0)

        @self.server.tool
        def question_tool(context: Context) -> str:
            try:
                answer = question(context)
                self.outcomes.append(answer)
                return str(answer)
            except BaseException as error:
                self.outcomes.append(error)
                raise
            finally:
                self.ended.release()

    def outcome(self) -> object:
        """What came of the question, once its callback has ended."""
        assert self.ended.acquire(timeout=WAIT)
        return self.outcomes[-1]

    def __enter__(self) -> Asking:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.close(0)


def elicits(context: Context) -> object:
    """Ask for a number."""
    return context.elicit("Number?", FORM)


WAITING: dict[str, Callable[[Context], object]] = {
    "elicit": elicits,
    "elicit_url": lambda context: context.elicit_url("Visit", "https://example.com"),
    "sample": lambda context: context.sample("Hi"),
    "list_roots": lambda context: context.list_roots(),
    "ask": lambda context: context.ask({"a": Elicit("N?", FORM), "b": Sample("x"), "c": Roots()}),
}


def test_each_question_is_a_request_and_its_result_the_answer() -> None:
    """As the protocol names them."""
    answers: dict[str, Json] = {
        "elicit": {"action": "accept", "content": {"n": 5}},
        "elicit_url": {"action": "accept"},
        "sample": MODEL,
        "list_roots": {"roots": [{"uri": "file:///x", "name": "x"}]},
    }
    methods = {
        "elicit": "elicitation/create",
        "elicit_url": "elicitation/create",
        "sample": "sampling/createMessage",
        "list_roots": "roots/list",
    }
    for kind, answer in answers.items():
        with Asking(WAITING[kind]) as asking:
            person = Person(asking.server, **EVERYTHING)
            future = asking.server.request(call("question_tool"), "c")
            (question,) = person.questions()
            assert question["method"] == methods[kind]
            person.answer(question, answer)
            response = future.result(WAIT)
            assert response is not None
            assert response["result"]["isError"] is False
            assert not isinstance(asking.outcome(), BaseException)


def test_several_questions_travel_at_once_and_are_answered_in_any_order() -> None:
    """The callback goes on when the last one is there."""
    with Asking(WAITING["ask"]) as asking:
        person = Person(asking.server, **EVERYTHING)
        future = asking.server.request(call("question_tool"), "c")
        by_method = {q["method"]: q for q in person.questions(3)}
        person.answer(by_method["roots/list"], {"roots": []})
        person.answer(by_method["sampling/createMessage"], MODEL)
        assert not future.done()
        person.answer(by_method["elicitation/create"], NO)
        future.result(WAIT)
        outcome: Any = asking.outcome()
        assert list(outcome) == ["a", "b", "c"]
        assert outcome["a"].action == "decline"
        assert outcome["b"].text == "hi"
        assert outcome["c"] == []


def test_s15_a_waiting_callback_keeps_its_slot() -> None:
    """Else more callbacks would run than there are threads."""
    with Asking(elicits, max_in_flight=1) as asking:
        person = Person(asking.server)
        future = asking.server.request(call("question_tool"), "c")
        question = person.questions()[0]
        assert asking.server.stats().in_flight == 1
        assert asking.server.stats().parked == 0
        assert ask(asking.server, call("question_tool"), "x")["error"]["code"] == -31429
        person.answer(question, NO)
        future.result(WAIT)
        eventually(lambda: asking.server.stats().in_flight == 0)


@pytest.mark.parametrize("kind", WAITING)
@pytest.mark.parametrize("way", ["future", "notification", "timeout", "disconnect", "close"])
def test_s18_a_question_ends_at_once_when_its_request_does(kind: str, way: str) -> None:
    """`Cancelled` is raised in it; the client is told that nobody waits for it any more."""
    with Asking(WAITING[kind]) as asking:
        server = asking.server
        person = Person(server, **EVERYTHING)
        future = server.request(call("question_tool", id=5), "c")
        questions = person.questions(3 if kind == "ask" else 1)
        if way == "future":
            future.cancel()
        elif way == "notification":
            server.handle_message(cancelled(5), "c")
        elif way == "timeout":
            running = one_call(server)
            server._engine._expire(running, running.runs)
        elif way == "disconnect":
            person.subscription.close()
        else:
            server.close(WAIT)
        assert type(asking.outcome()).__name__ == "Cancelled"
        answer = future.result(WAIT)
        assert answer is None or answer["error"]["code"] == -31504
        assert (answer is None) == (way != "timeout")
        if way in ("future", "notification", "timeout"):
            told = person.pushed(
                lambda m: m.get("method") == "notifications/cancelled", len(questions)
            )
            ids = {note["params"]["requestId"] for note in told}
            assert ids == {question["id"] for question in questions}
        eventually(lambda: server.stats().in_flight == 0)
        assert server._app.questions._open == {}


def test_s35_a_question_is_answered_in_time_or_not_at_all() -> None:
    """`elicitation_timeout`: `RequestTimeout` in the callback, words for the caller, no fault."""
    with Asking(elicits, elicitation_timeout=0.01) as asking:
        person = Person(asking.server)
        for _ in range(6):
            answer = ask(asking.server, call("question_tool"))
            assert isinstance(asking.outcome(), RequestTimeout)
            assert answer["result"]["isError"] is True
            assert "was not answered" in text(answer)
        assert asking.server.registry.circuit_status(("tool", "question_tool")) == "closed"
        person.answer(person.questions()[0], NO)  # too late: to nothing that is known
        assert asking.server._app.questions._open == {}


def test_s36_a_second_answer_and_one_from_elsewhere_are_ignored() -> None:
    """As is one to an id that was never given out."""
    with Asking(elicits) as asking:
        person, thief = Person(asking.server), Person(asking.server, "thief")
        future = asking.server.request(call("question_tool"), "c")
        question = person.questions()[0]
        thief.answer(question, NO)
        thief.answer({"id": "raxol-elicit-" + "0" * 32}, NO)
        thief.answer({"id": 1}, NO)
        assert not future.done()
        person.answer(question, {"action": "accept", "content": {"n": 1}})
        person.answer(question, NO)
        outcome: Any = asking.outcome()
        assert outcome.content == {"n": 1}


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ({"result": {"action": "accept", "content": {"n": "one"}}}, InvalidResponse),
        ({"result": {"action": "accept", "content": {}}}, InvalidResponse),
        ({"result": {"action": "accept", "content": [1]}}, InvalidResponse),
        ({"result": {"action": "maybe"}}, InvalidResponse),
        ({"result": {}}, InvalidResponse),
        ({"error": {"code": -1, "message": "user went away"}}, RPCError),
        ({"error": "garbage"}, RPCError),
        ({"result": "garbage"}, RPCError),
        ({"result": {}, "error": {}}, RPCError),
    ],
)
def test_an_answer_that_does_not_fit_is_raised_in_the_callback(
    reply: Json, error: type[Exception]
) -> None:
    """Malformed, of the wrong shape, or an error: the callback goes on at once, and can tell."""
    with Asking(elicits) as asking:
        person = Person(asking.server)
        future = asking.server.request(call("question_tool"), "c")
        question = person.questions()[0]
        asking.server.handle_message({"jsonrpc": "2.0", "id": question["id"], **reply}, "c")
        assert isinstance(asking.outcome(), error)
        assert "server's answer" not in str(asking.outcomes[-1])
        answer = future.result(WAIT)
        assert answer is not None
        assert "error" in answer or answer["result"]["isError"] is True


@pytest.mark.parametrize("kind", WAITING)
def test_what_a_client_does_not_declare_it_is_not_asked(kind: str) -> None:
    """Nothing is sent; the callback is told which capability is missing."""
    with Asking(WAITING[kind]) as asking:
        person = Person(asking.server, experimental={})
        answer = ask(asking.server, call("question_tool"))
        assert answer["result"]["isError"] is True
        outcome = asking.outcome()
        assert isinstance(outcome, RPCError)
        assert outcome.code == -32021
        assert person.inbox.messages == []


def test_without_a_stream_nobody_can_be_asked() -> None:
    """Declared, but neither subscriber nor sink."""
    with Asking(elicits) as asking:
        ask(asking.server, initialize(elicitation={}))
        asking.server.handle_message(call("question_tool"), "c", timeout=WAIT)
        assert isinstance(asking.outcome(), RPCError)


def test_a_sink_is_asked_and_gets_the_response_last() -> None:
    """All that one request causes goes to its own stream (row S49)."""
    with Asking(elicits) as asking:
        person, sink = Person(asking.server), Recorder()
        asking.server.request(call("question_tool"), "c", sink=sink)
        question = sink.wait_for(1)[0]
        person.answer(question, NO)
        assert "result" in sink.wait_for(2)[1]
        assert person.inbox.messages == []


def test_s20_a_client_that_reads_nothing_does_not_keep_a_question_waiting() -> None:
    """Its outbox is full: the connection ends, and with it the question."""
    stuck = threading.Event()
    with Asking(elicits) as asking:
        server = asking.server
        subscription = server.subscribe(lambda message: stuck.wait(WAIT), "c")
        ask(server, initialize(elicitation={}))
        outbox = subscription._outbox
        for n in range(5000):
            if not outbox.put({"jsonrpc": "2.0", "method": "x", "params": {"n": n}}):
                break
        future = server.request(call("question_tool"), "c")
        assert type(asking.outcome()).__name__ == "Cancelled"
        assert future.result(WAIT) is None
        stuck.set()


def test_a_callback_can_ask_in_other_threads_and_one_after_another() -> None:
    """Each question has an id of its own."""

    def many(context: Context) -> object:
        found = [context.elicit("1?", FORM), context.elicit("2?", FORM)]
        extra: list[object] = []
        thread = threading.Thread(target=lambda: extra.append(context.elicit("3?", FORM)))
        thread.start()
        thread.join(WAIT)
        return [answer.action for answer in found] + [len(extra)]

    with Asking(many) as asking:
        person = Person(asking.server)
        future = asking.server.request(call("question_tool"), "c")
        for n in range(3):
            person.answer(person.questions(n + 1)[n], NO)
        future.result(WAIT)
        assert asking.outcome() == ["decline", "decline", 1]


def test_ask_is_bounded_and_reserves_its_own_keys() -> None:
    """1 to 16 questions; no key of the library's."""
    for wrong in ({}, {f"k{n}": Roots() for n in range(17)}, {"raxol-approval": Roots()}):
        with Asking(lambda context, w=wrong: context.ask(w)) as asking:  # type: ignore[misc]
            Person(asking.server, **EVERYTHING)
            ask(asking.server, call("question_tool"))
            assert isinstance(asking.outcome(), ValueError)


def test_the_server_goes_on_while_callbacks_wait_for_people() -> None:
    """Pings and other connections are not held up by sixteen open questions."""
    with Asking(elicits) as asking:
        person = Person(asking.server)
        futures = [asking.server.request(call("question_tool", id=n), "c") for n in range(16)]
        questions = person.questions(16)
        assert ask(asking.server, req("ping", id="p"))["result"] == {}
        for question in questions:
            person.answer(question, NO)
        assert all(future.result(WAIT) for future in futures)
        eventually(lambda: asking.server.stats().in_flight == 0)
