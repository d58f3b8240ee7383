"""What the client hands out: results and listings, read from the wire."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.content import Image, Message, Text, UnknownContent
from raxol_sync.values import (
    CallResult,
    Completion,
    PromptInfo,
    PromptMessages,
    ResourceInfo,
    ResourceTemplateInfo,
    ServerStats,
    Status,
    ToolInfo,
    ToolResult,
)

TEXT = {"type": "text", "text": "a"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


def test_a_call_result_is_read() -> None:
    """Content, error flag, structured content and `_meta`."""
    result = CallResult.from_wire(
        {
            "content": [
                TEXT,
                {"type": "image", "data": "AA==", "mimeType": "m"},
                TEXT,
                {"type": "x"},
            ],
            "isError": True,
            "structuredContent": {"result": 3},
            "_meta": {"a": 1},
        }
    )
    assert result == CallResult(
        [Text("a"), Image(b"\0", "m"), Text("a"), UnknownContent({"type": "x"})],
        True,
        {"result": 3},
        {"a": 1},
    )
    assert result.text == "a\na"


def test_a_call_result_needs_content_only() -> None:
    """The rest has defaults."""
    assert CallResult.from_wire({"content": []}) == CallResult([], False, None, {})
    assert CallResult.from_wire({"content": [], "_meta": 5}).meta == {}
    assert CallResult([]).text == ""


@pytest.mark.parametrize(
    "result",
    [{}, {"content": None}, {"content": {}}, {"content": "a"}, {"content": [None]},
     {"content": [{"type": "text"}]}, {"content": [{"type": []}]}, {"content": [], "isError": 1},
     {"content": [], "isError": None}, {"content": [], "isError": "true"}],
)  # fmt: skip
def test_a_malformed_call_result_is_a_value_error(result: dict[str, Any]) -> None:
    """Which the session turns into `InvalidResponse`."""
    with pytest.raises(ValueError):
        CallResult.from_wire(result)


def test_prompt_messages_are_a_list_with_a_description() -> None:
    """Of `Message` objects."""
    wire = {"role": "assistant", "content": TEXT}
    messages = PromptMessages.from_wire({"messages": [wire], "description": "d"})
    assert messages == [Message(Text("a"), "assistant")]
    assert messages.description == "d"
    assert PromptMessages.from_wire({"messages": [], "description": 5}).description is None
    cases: tuple[dict[str, Any], ...]
    cases = ({}, {"messages": {}}, {"messages": [5]}, {"messages": [{"role": "user"}]})
    for broken in cases:
        with pytest.raises(ValueError):
            PromptMessages.from_wire(broken)


def test_completions() -> None:
    """Values, and how many there are altogether."""
    wire = {"completion": {"values": ["a"], "total": 7, "hasMore": True}}
    assert Completion.from_wire(wire) == Completion(["a"], 7, True)
    wire = {"completion": {"values": [], "total": True, "hasMore": 1}}
    assert Completion.from_wire(wire) == Completion([], None, False)
    cases: tuple[dict[str, Any], ...] = (
        {},
        {"completion": []},
        {"completion": {"values": {}}},
        {"completion": {"values": [1]}},
    )
    for broken in cases:
        with pytest.raises(ValueError):
            Completion.from_wire(broken)


def test_a_listed_tool_is_read() -> None:
    """Every member of the definition; what is not known is in `extra`."""
    wire = {
        "name": "n", "title": "t", "description": "d", "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "a": 1}, "annotations": {"readOnlyHint": True},
        "icons": [{"src": "i"}, 5], "_meta": {"m": 1}, "execution": {"x": 1}, "uri": "u",
        "extra": 1,
    }  # fmt: skip
    assert ToolInfo.from_wire(wire) == ToolInfo(
        "n", "d", {"type": "object"}, "t", {"readOnlyHint": True}, {"type": "object", "a": 1},
        ({"src": "i"},), {"m": 1}, {"execution": {"x": 1}, "uri": "u", "extra": 1},
    )  # fmt: skip


def test_other_listed_things_are_read() -> None:
    """Resources, resource templates and prompts."""
    assert ResourceInfo.from_wire(
        {"uri": "u", "name": "n", "size": 5, "mimeType": "m", "new": 1}
    ) == ResourceInfo("u", "n", size=5, mime_type="m", extra={"new": 1})
    assert ResourceTemplateInfo.from_wire(
        {"uriTemplate": "u:{a}", "name": "n", "size": 5}
    ) == ResourceTemplateInfo("u:{a}", "n", extra={"size": 5})
    assert PromptInfo.from_wire(
        {"name": "n", "arguments": [{"name": "a"}, None], "inputSchema": {}}
    ) == PromptInfo("n", arguments=({"name": "a"},), extra={"inputSchema": {}})


def test_members_of_the_wrong_type_become_defaults() -> None:
    """A boolean is no size, a number no title."""
    assert ResourceInfo.from_wire(
        {"uri": "u", "size": True, "title": 5, "annotations": [], "icons": {}, "name": None}
    ) == ResourceInfo("u")


@pytest.mark.parametrize(
    ("kind", "item"),
    [(ToolInfo, {"name": "n"}), (ToolInfo, {"inputSchema": {}}),
     (ToolInfo, {"name": "n", "inputSchema": []}), (ToolInfo, {"name": 5, "inputSchema": {}}),
     (ResourceInfo, {"name": "n"}), (ResourceInfo, {"uri": None}),
     (ResourceTemplateInfo, {"uri": "u"}), (PromptInfo, {}), (PromptInfo, {"name": []})],
)  # fmt: skip
def test_an_entry_without_its_key_is_a_value_error(kind: Any, item: dict[str, Any]) -> None:
    """The listing drops it and goes on."""
    with pytest.raises(ValueError):
        kind.from_wire(item)


@given(
    st.sampled_from([ToolInfo, ResourceInfo, ResourceTemplateInfo, PromptInfo]),
    st.dictionaries(
        st.sampled_from(
            [
                "name",
                "uri",
                "uriTemplate",
                "inputSchema",
                "icons",
                "size",
                "arguments",
                "_meta",
                "extra",
            ]
        )
        | st.text(max_size=5),
        JSON,
    ),
)
def test_no_entry_raises_anything_else(kind: Any, item: dict[str, Any]) -> None:
    """Any object is an entry or a `ValueError`; unknown members are never lost."""
    try:
        info = kind.from_wire(item)
    except ValueError:
        return
    known = {"name", "uri", "uriTemplate", "inputSchema", "icons", "size", "arguments", "_meta",
             "description", "title", "mimeType", "outputSchema", "annotations"}  # fmt: skip
    assert {
        key: value for key, value in item.items() if key not in known
    }.items() <= info.extra.items()


@pytest.mark.parametrize(
    "value",
    [
        ToolResult(),
        CallResult([]),
        Completion([]),
        ToolInfo("n"),
        Status("n", "ready"),
        ServerStats(),
    ],
)
def test_values_are_frozen(value: Any) -> None:
    """So they can be handed to any thread."""
    name = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, None)
