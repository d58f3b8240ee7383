"""Approvals and questions of stateless clients: `input_required` and its state (row S42)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from raxol_sync import ALLOW, Ask, Deny, Server
from raxol_sync.protocol.request_state import Nonces
from tests.server.approvals import (
    NO,
    YES,
    Person,
    denial_of,
    modern_call,
    retry,
    served,
)
from tests.server.helpers import CAPABILITIES, WAIT, Json, ask, call, text

KEY = b"k" * 32
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def wiping(authorizer: Any = None, **options: Any) -> tuple[Server, list[int]]:
    """A server whose one tool is asked about, and what it was called with."""
    server, wiped = served(authorizer, request_state_key=KEY, **options), []

    @server.tool
    def wipe(disk: int) -> str:
        wiped.append(disk)
        return f"wiped {disk}"

    return server, wiped


def test_s42_an_approval_takes_two_requests() -> None:
    """The first is answered `input_required`, the retry with its answer runs the tool."""
    server, wiped = wiping()
    with server:
        first = ask(server, modern_call("wipe", {"disk": 1}))
        found = first["result"]
        assert found["resultType"] == "input_required"
        assert isinstance(found["requestState"], str)
        (question,) = found["inputRequests"].values()
        assert question["method"] == "elicitation/create"
        assert question["params"]["message"] == "Run it?"
        assert question["params"]["requestedSchema"]["required"] == ["approve"]
        assert wiped == []
        assert server.stats().parked == 0
        again = ask(server, retry(first, "wipe", {"disk": 1}, raxol_approval=YES))
        assert text(again) == "wiped 1"
        assert again["result"]["resultType"] == "complete"


def test_s42_the_same_authorizer_parks_a_legacy_client() -> None:
    """One policy, two carriers, one question."""
    server, _ = wiping()
    with server:
        person = Person(server)
        server.handle_message(call("wipe", {"disk": 1}), "c")
        asked = person.questions()[0]["params"]
        first = ask(server, modern_call("wipe", {"disk": 1}), "m")
        assert asked == first["result"]["inputRequests"]["raxol-approval"]["params"]


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (NO, "declined"),
        ({"action": "cancel"}, "cancelled"),
        ({"action": "accept", "content": {}}, "not approved"),
        ({"action": "accept", "content": {"approve": "yes"}}, "not approved"),
        ("yes", "the answer is not valid"),
        ([YES], "the answer is not valid"),
    ],
)
def test_s42_whatever_is_no_approval_denies(answer: Any, detail: str) -> None:
    """The same words as for a parked call."""
    server, wiped = wiping()
    with server:
        first = ask(server, modern_call("wipe", {"disk": 1}))
        again = ask(server, retry(first, "wipe", {"disk": 1}, raxol_approval=answer))
        words = denial_of(again)
        assert (words["decision"], words["detail"]) == ("ask", detail)
        assert wiped == []


def test_s42_a_missing_answer_is_asked_for_again() -> None:
    """With a new state; answers to questions that were not asked are ignored."""
    server, wiped = wiping()
    with server:
        first = ask(server, modern_call("wipe", {"disk": 1}))
        second = ask(server, retry(first, "wipe", {"disk": 1}, other=YES))
        assert second["result"]["resultType"] == "input_required"
        assert second["result"]["requestState"] != first["result"]["requestState"]
        assert wiped == []
        third = ask(server, retry(second, "wipe", {"disk": 1}, raxol_approval=YES))
        assert text(third) == "wiped 1"


def test_s42_an_answer_without_a_state_approves_nothing() -> None:
    """It is as if it were not there."""
    server, wiped = wiping()
    with server:
        message = modern_call("wipe", {"disk": 1}, inputResponses={"raxol-approval": YES})
        assert ask(server, message)["result"]["resultType"] == "input_required"
        assert wiped == []


def _altered(first: Json) -> Json:
    state = first["result"]["requestState"]
    message = retry(first, "wipe", {"disk": 1}, raxol_approval=YES)
    message["params"]["requestState"] = ("A" if state[0] != "A" else "B") + state[1:]
    return message


REFUSED: dict[str, Callable[[Json], Json]] = {
    "altered": _altered,
    "other arguments": lambda f: retry(f, "wipe", {"disk": 2}, raxol_approval=YES),
    "other tool": lambda f: retry(f, "other", {"disk": 1}, raxol_approval=YES),
    "no text": lambda f: modern_call("wipe", {"disk": 1}, requestState=5),
    "garbage": lambda f: modern_call("wipe", {"disk": 1}, requestState="x.y"),
    "answers are a list": lambda f: modern_call(
        "wipe", {"disk": 1}, requestState=f["result"]["requestState"], inputResponses=[YES]
    ),
}


@pytest.mark.parametrize("how", REFUSED)
def test_s42_a_state_that_cannot_be_verified_is_refused(how: str) -> None:
    """-32602, and nothing runs."""
    server, wiped = wiping()
    with server:
        server.tool(name="other")(lambda disk: wiped.append(disk))
        first = ask(server, modern_call("wipe", {"disk": 1}))
        assert ask(server, REFUSED[how](first))["error"]["code"] == -32602
        assert wiped == []


@pytest.mark.parametrize("approved", [True, False])
def test_s42_a_state_is_good_for_one_use(approved: bool) -> None:
    """A replay is refused, whatever its first use came to."""
    server, wiped = wiping()
    with server:
        first = ask(server, modern_call("wipe", {"disk": 1}))
        message = retry(first, "wipe", {"disk": 1}, raxol_approval=YES if approved else NO)
        ask(server, message)
        assert ask(server, message)["error"]["code"] == -32602
        assert wiped == ([1] if approved else [])


def test_s42_a_state_used_by_many_threads_at_once_runs_once() -> None:
    """Its consumption is one step."""
    server, wiped = wiping(max_in_flight=16, max_in_flight_per_connection=16)
    with server:
        first = ask(server, modern_call("wipe", {"disk": 1}))
        answers: list[Json] = []
        barrier = threading.Barrier(8)

        def use(n: int) -> None:
            message = retry(first, "wipe", {"disk": 1}, raxol_approval=YES)
            message["id"] = n
            barrier.wait(WAIT)
            answers.append(ask(server, message))

        threads = [threading.Thread(target=use, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
        assert wiped == [1]
        assert sorted("error" in answer for answer in answers) == [False] + [True] * 7


def test_s42_an_expired_state_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """After `elicitation_timeout`, by the wall clock that several processes share."""
    moment = [1000.0]
    monkeypatch.setattr("raxol_sync.server.rounds.time.time", lambda: moment[0])
    server, wiped = wiping(elicitation_timeout=60.0)
    with server:
        first = ask(server, modern_call("wipe", {"disk": 1}))
        moment[0] += 60.0
        answer = ask(server, retry(first, "wipe", {"disk": 1}, raxol_approval=YES))
        assert answer["error"]["code"] == -32602
        assert "expired" in answer["error"]["message"]
        assert wiped == []


def test_s42_the_authorizer_decides_again_on_the_retry() -> None:
    """ALLOW runs, Deny denies, another prompt is asked about anew."""
    verdicts: list[Any] = []
    server, wiped = wiping(lambda *_: verdicts.pop(0))
    with server:

        def then(second: object, *, answer: Json = YES) -> Json:
            verdicts[:] = [Ask("Run it?"), second]
            first = ask(server, modern_call("wipe", {"disk": 1}))
            return ask(server, retry(first, "wipe", {"disk": 1}, raxol_approval=answer))

        assert text(then(ALLOW, answer=NO)) == "wiped 1"
        assert denial_of(then(Deny("not now")))["detail"] == "not now"
        asked = then(Ask("Really run it?"))
        assert asked["result"]["resultType"] == "input_required"
        (question,) = asked["result"]["inputRequests"].values()
        assert question["params"]["message"] == "Really run it?"
        assert wiped == [1]
        verdicts[:] = [Ask("Really run it?")]
        again = ask(server, retry(asked, "wipe", {"disk": 1}, raxol_approval=YES))
        assert text(again) == "wiped 1"


def test_s42_who_takes_no_forms_is_denied() -> None:
    """The server may not send what the client did not declare."""
    server, wiped = wiping()
    with server:
        undeclared: list[Json] = [{}, {"elicitation": {"url": {}}}, {"sampling": {}}]
        for declared in undeclared:
            message = modern_call("wipe", {"disk": 1})
            message["params"]["_meta"][CAPABILITIES] = declared
            words = denial_of(ask(server, message))
            assert (words["decision"], words["tool"]) == ("ask", "wipe")
        message["params"]["_meta"][CAPABILITIES] = {"elicitation": {}}
        assert ask(server, message)["result"]["resultType"] == "input_required"
        assert wiped == []


def test_s42_processes_that_share_a_key_finish_each_others_calls() -> None:
    """The first key signs, all verify; a server without the key refuses."""
    one, _ = wiping()
    two, wiped = wiping()
    two._app.rounds._keys = (b"n" * 32, KEY)
    other, _ = served(request_state_key=b"o" * 32), None
    other.tool(name="wipe")(lambda disk: "no")
    with one, two, other:
        first = ask(one, modern_call("wipe", {"disk": 1}))
        message = retry(first, "wipe", {"disk": 1}, raxol_approval=YES)
        assert ask(other, message)["error"]["code"] == -32602
        assert text(ask(two, message)) == "wiped 1"
        newer = ask(two, modern_call("wipe", {"disk": 2}))
        answer = ask(one, retry(newer, "wipe", {"disk": 2}, raxol_approval=YES))
        assert answer["error"]["code"] == -32602
        assert wiped == [1]


def test_s42_without_a_key_only_this_server_knows_its_own() -> None:
    """Each makes one up."""
    with served() as one, served() as two:
        for server in (one, two):
            server.tool(name="t")(lambda: "ran")
        first = ask(one, modern_call("t"))
        message = retry(first, "t", raxol_approval=YES)
        assert ask(two, message)["error"]["code"] == -32602
        assert text(ask(one, message)) == "ran"


def test_s42_a_full_memory_of_used_states_denies() -> None:
    """What cannot be remembered as used must not be used."""
    server, wiped = wiping()
    with server:
        assert server._app.rounds._nonces._limit == 4096
        server._app.rounds._nonces = Nonces(1)
        for expected in ("wiped 1", None):
            first = ask(server, modern_call("wipe", {"disk": 1}))
            answer = ask(server, retry(first, "wipe", {"disk": 1}, raxol_approval=YES))
            if expected is not None:
                assert text(answer) == expected
            else:
                assert denial_of(answer)["decision"] == "ask"
        assert wiped == [1]
