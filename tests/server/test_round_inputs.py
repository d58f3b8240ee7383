"""What callbacks ask stateless clients: rounds, carried approvals, several inputs (row S42)."""

from __future__ import annotations

from typing import Any

import pytest

from raxol_sync import Ask, Context, Deny, Elicit, Roots, Sample, Server
from tests.server.approvals import FORMS, YES, asks, denial_of, modern, modern_call, retry, served
from tests.server.helpers import CAPABILITIES, Json, ask, result, text

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def asking_server(authorizer: Any = None) -> tuple[Server, list[str]]:
    """A server whose tool asks for a name, then for another one; and how often it began."""
    server, runs = served(authorizer or asks()), []

    @server.tool
    def names(context: Context) -> str:
        runs.append("run")
        first = context.elicit("First?", NAME)
        second = context.elicit("Second?", NAME, key="second")
        return f"{first.content} {second.content}"

    return server, runs


def said(name: str) -> Json:
    """An accepted form with that name."""
    return {"action": "accept", "content": {"name": name}}


def test_s42_an_approval_travels_through_later_rounds() -> None:
    """Asked once, carried in the state; answers of earlier rounds too."""
    server, runs = asking_server()
    with server:
        first = ask(server, modern_call("names"))
        second = ask(server, retry(first, "names", raxol_approval=YES))
        assert list(second["result"]["inputRequests"]) == ["elicit-1"]
        third = ask(server, retry(second, "names", elicit_1=said("Ann")))
        assert list(third["result"]["inputRequests"]) == ["second"]
        last = ask(server, retry(third, "names", second=said("Bob")))
        assert text(last) == "{'name': 'Ann'} {'name': 'Bob'}"
        assert len(runs) == 3


def test_s42_a_carried_approval_is_for_its_prompt_only() -> None:
    """An authorizer that asks something else in a later round is answered anew."""
    prompts = ["Run it?", "Run it?", "Run it for Ann?"]
    server, runs = asking_server(lambda *_: Ask(prompts.pop(0)))
    with server:
        first = ask(server, modern_call("names"))
        second = ask(server, retry(first, "names", raxol_approval=YES))
        third = ask(server, retry(second, "names", elicit_1=said("Ann")))
        assert list(third["result"]["inputRequests"]) == ["raxol-approval"]
        assert len(runs) == 1


def test_s42_answers_to_what_was_not_asked_are_ignored() -> None:
    """Neither a later question nor an approval can be answered ahead of its asking."""
    prompts = ["Run it?", "Run it?", "Run it for Ann?"]
    server, _ = asking_server(lambda *_: Ask(prompts.pop(0)))
    with server:
        first = ask(server, modern_call("names"))
        early = {"raxol_approval": YES, "elicit_1": said("Eve"), "second": said("Eve")}
        second = ask(server, retry(first, "names", **early))
        assert list(second["result"]["inputRequests"]) == ["elicit-1"]
        third = ask(server, retry(second, "names", elicit_1=said("Ann"), raxol_approval=YES))
        assert list(third["result"]["inputRequests"]) == ["raxol-approval"]


def test_s42_a_deny_in_a_later_round_ends_it() -> None:
    """Whatever was approved before."""
    verdicts: list[Any] = [Ask("Run it?"), Ask("Run it?"), Deny("enough")]
    server, runs = asking_server(lambda *_: verdicts.pop(0))
    with server:
        first = ask(server, modern_call("names"))
        second = ask(server, retry(first, "names", raxol_approval=YES))
        answer = ask(server, retry(second, "names", elicit_1=said("Ann")))
        assert denial_of(answer)["detail"] == "enough"
        assert len(runs) == 1


def test_s42_several_inputs_at_once() -> None:
    """`Context.ask` asks for all in one round, by the caller's keys; only missing ones again."""
    with Server() as server:

        @server.tool
        def all_three(context: Context) -> str:
            answers = context.ask({"who": Elicit("Who?", NAME), "say": Sample("Hi"), "in": Roots()})
            return f"{answers['who']} {answers['say']} {answers['in']}"

        declared = {**FORMS, "sampling": {}, "roots": {}}
        message = modern("tools/call", {"name": "all_three"}, **{CAPABILITIES: declared})
        first = ask(server, message)
        methods = {k: r["method"] for k, r in first["result"]["inputRequests"].items()}
        assert methods == {
            "who": "elicitation/create", "say": "sampling/createMessage", "in": "roots/list",
        }  # fmt: skip
        model = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hello"}}
        roots = {"roots": [{"uri": "file:///x"}]}

        def again(answer: Json, **given: Any) -> Json:
            more = retry(answer, "all_three", **given)
            more["params"]["_meta"][CAPABILITIES] = declared
            del more["params"]["arguments"]
            return ask(server, more)

        second = again(first, who=said("Ann"), say=model)
        assert list(second["result"]["inputRequests"]) == ["in"]
        third = again(second, **{"in": roots})
        assert "Ann" in text(third)
        assert "hello" in text(third)
        assert "file:///x" in text(third)


@pytest.mark.parametrize(
    "answer",
    [said(5), {"action": "accept", "content": {}}, {"action": "?"}, "x", None],  # type: ignore[arg-type]
)
def test_s42_an_answer_that_does_not_fit_fails_the_tool(answer: Any) -> None:
    """As a wrong param, in words about the client; the tool's breaker does not count it."""
    with Server() as server:

        @server.tool
        def name(context: Context) -> str:
            return str(context.elicit("Name?", NAME).content)

        for _ in range(6):
            first = ask(server, modern_call("name"))
            error = ask(server, retry(first, "name", elicit_1=answer))["error"]
            assert error["code"] == -32602
            assert "the client's answer" in error["message"]
        assert server.registry.circuit_status(("tool", "name")) == "closed"


def test_s42_prompts_and_resources_may_ask_too() -> None:
    """And nothing else can: `input_required` is for these three."""
    with Server() as server:

        @server.prompt
        def greet(context: Context) -> str:
            return f"Hello {context.elicit('Name?', NAME).content}"

        @server.resource("a://x", name="x")
        def x(context: Context) -> str:
            return f"{context.elicit('Name?', NAME).content}"

        for method, params in (("prompts/get", {"name": "greet"}),
                               ("resources/read", {"uri": "a://x"})):  # fmt: skip
            found = result(server, modern(method, params))
            assert found["resultType"] == "input_required"
            assert "ttlMs" not in found
            more = {**params, "requestState": found["requestState"],
                    "inputResponses": {"elicit-1": said("Ann")}}  # fmt: skip
            assert "Ann" in str(result(server, modern(method, more)))


def test_s42_undeclared_inputs_are_an_error_that_names_them() -> None:
    """-32021 with what the client would have to declare (`Context.elicit`, not an approval)."""
    with Server() as server:

        @server.tool
        def name(context: Context) -> str:
            return str(context.elicit("Name?", NAME).content)

        message = modern_call("name")
        message["params"]["_meta"][CAPABILITIES] = {}
        error = ask(server, message)["error"]
        assert error["code"] == -32021
        assert error["data"]["requiredCapabilities"] == {"elicitation": {"form": {}}}
