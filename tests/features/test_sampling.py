"""Sampling: what a server may ask of the client's model, tools included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from raxol_sync import (
    Context,
    Image,
    Message,
    RPCError,
    SampleResult,
    Server,
    Text,
    Tool,
    ToolUse,
    ToolUseResult,
)
from tests.features.helpers import EACH_ERA, LEGACY, Json, connected

WEATHER = Tool(
    "weather",
    "Tell the weather.",
    {"type": "object", "properties": {"city": {"type": "string"}}},
    lambda arguments: f"sunny in {arguments['city']}",
)


@EACH_ERA
def test_a_model_uses_a_tool_and_goes_on(revision: str) -> None:
    """Two turns: it wants the tool used, is told what came of it, and answers."""
    seen: list[Json] = []

    def model(params: Json, *, tools: list[Json]) -> SampleResult:
        seen.append({**params, "tools": [tool["name"] for tool in tools]})
        if len(params["messages"]) == 1:
            use = ToolUse("call-1", "weather", {"city": "Oslo"})
            return SampleResult([use], model="m", stop_reason="toolUse")
        told = params["messages"][-1]["content"][0]["content"][0]["text"]
        return SampleResult([Text(f"It is {told}.")], model="m")

    with connected(server := Server(), revision, on_sample=model) as client:

        @server.tool
        def ask(context: Context) -> str:
            messages = [Message("How is Oslo?")]
            first = context.sample(messages, tools=[WEATHER], toolChoice={"mode": "auto"})
            results = [
                ToolUseResult(use.id, WEATHER.run(dict(use.input), context))
                for use in first.tool_uses
            ]
            turn = [*messages, first.message, Message(results)]
            return context.sample(turn, tools=[WEATHER]).text

        assert client.call_tool("ask").text == "It is sunny in Oslo."
    assert [entry["tools"] for entry in seen] == [["weather"]] * 2
    assistant, user = seen[1]["messages"][1:]
    assert assistant == {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "call-1", "name": "weather", "input": {"city": "Oslo"}}
        ],
    }
    assert user["content"][0]["toolUseId"] == "call-1"


@EACH_ERA
def test_a_client_that_takes_no_tools_is_not_asked_with_tools(revision: str) -> None:
    """Only a handler with a parameter `tools` declares `sampling.tools`."""
    errors: list[RPCError] = []
    with connected(server := Server(), revision, on_sample=lambda params: "hello") as client:

        @server.tool
        def ask(context: Context) -> str:
            try:
                return context.sample("hi", tools=[WEATHER]).text
            except RPCError as error:
                errors.append(error)
                return context.sample("hi").text

        assert client.call_tool("ask").text == "hello"
    assert [error.code for error in errors][:1] == [-32021]
    assert errors[0].data == {"requiredCapabilities": {"sampling": {"tools": {}}}}


def test_before_2025_11_25_a_message_holds_one_item() -> None:
    """Several items become several messages of the same speaker."""
    seen: list[Any] = []

    def model(params: Mapping[str, Any]) -> str:
        seen.extend(params["messages"])
        return "a dot"

    with connected(server := Server(), "2025-06-18", on_sample=model) as client:

        @server.tool
        def ask(context: Context) -> str:
            return context.sample([Message([Text("What is this?"), Image(b"x", "image/png")])]).text

        assert client.call_tool("ask").text == "a dot"
    assert [(m["role"], m["content"]["type"]) for m in seen] == [
        ("user", "text"),
        ("user", "image"),
    ]


@pytest.mark.parametrize(
    "item", [{"type": "tool_use", "id": 1, "name": "x", "input": {}}, {"type": "text"}]
)
def test_a_model_that_answers_nonsense_is_the_clients_fault(item: Json) -> None:
    """The tool fails in words, and its breaker counts nothing."""
    answer = {"content": [item], "model": "m"}
    with connected(server := Server(), LEGACY, on_sample=lambda params, *, tools: answer) as client:

        @server.tool
        def ask(context: Context) -> str:
            return context.sample("hi", tools=[WEATHER]).text

        for _ in range(6):
            assert client.call_tool("ask").is_error
        assert server.registry.circuit_status(("tool", "ask")) == "closed"


def test_the_parts_of_a_turn_check_themselves() -> None:
    """A result is made of texts and content objects; a prompt holds none of both."""
    with pytest.raises(TypeError, match="must be a str or content objects"):
        ToolUseResult("id", [5])
    with pytest.raises(TypeError, match="content object, not list"):
        Message([])
    with pytest.raises(ValueError, match="needs an id, a name and an input"):
        ToolUse.from_wire({"id": "x"})
    failed = ToolUseResult("id", "no", is_error=True, structured_content={"a": 1}, meta={"b": 2})
    assert failed.to_wire() == {
        "type": "tool_result",
        "toolUseId": "id",
        "content": [{"type": "text", "text": "no"}],
        "structuredContent": {"a": 1},
        "isError": True,
        "_meta": {"b": 2},
    }
    assert ToolUse.from_wire(ToolUse("i", "n", {}, meta={"m": 1}).to_wire()).meta == {"m": 1}


def test_a_prompts_message_of_several_items_becomes_several_messages() -> None:
    """A prompt's message holds one item in every revision."""
    with connected(server := Server()) as client:

        @server.prompt
        def look() -> Message:
            return Message([Text("See:"), Image(b"x", "image/png")])

        @server.prompt
        def wrong() -> Message:
            return Message(ToolUse("i", "n"))

        assert [type(m.content) for m in client.get_prompt("look")] == [Text, Image]
        with pytest.raises(RPCError, match="cannot hold a ToolUse"):
            client.get_prompt("wrong")
