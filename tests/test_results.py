"""What callbacks return becomes what goes on the wire (the public interface's "Results")."""

from __future__ import annotations

import collections
import enum
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypedDict, TypeVar

import pytest
import typing_extensions as ext
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.content import (
    Audio,
    Contents,
    EmbeddedResource,
    Image,
    Message,
    ResourceLink,
    Text,
    UnknownContent,
)
from raxol_sync.definitions import Tool
from raxol_sync.results import (
    Unsendable,
    error_result,
    prompt_messages,
    resource_contents,
    tool_result,
)
from raxol_sync.values import ToolResult

OBJECT = {"type": "object"}
LATER = {"type": "array", "items": {"type": "integer"}}


class NoContext:
    """Stands for the context type: no parameter here has it."""


@dataclass
class Point:
    x: int
    y: int


class Pair(NamedTuple):
    a: int
    b: str


class Options(TypedDict):
    deep: bool


class Color(str, enum.Enum):
    RED = "red"


def bare(output_schema: Mapping[str, Any] | None = None) -> Tool:
    """A tool that was built directly."""
    return Tool("t", "d", OBJECT, lambda arguments: None, output_schema=output_schema)


def hinted(hint: Any, **options: Any) -> Tool:
    """A tool of a function with that return hint."""

    def t() -> Any: ...

    t.__annotations__ = {} if hint is ... else {"return": hint}
    return Tool.from_function(t, context_type=NoContext, **options)


def texts(result: dict[str, Any]) -> list[Any]:
    return [json.loads(item["text"]) for item in result["content"]]


# ---------------------------------------------------------------- tools


def test_text_is_one_item_without_structured_content() -> None:
    """Whatever the text; an enumeration of texts too."""
    for value in ("", "hi", '{"a":1}', Color.RED):
        result = tool_result(bare(), value)
        assert result == {"content": [{"type": "text", "text": value}], "isError": False}
    assert tool_result(hinted(str), "hi")["content"] == [{"type": "text", "text": "hi"}]


@pytest.mark.parametrize(
    "item",
    [Text("a"), Image(b"\0", "m"), Audio(b"\0", "m"), ResourceLink("u", "n"),
     EmbeddedResource("u", text="t"), UnknownContent({"type": "x"})],
)  # fmt: skip
def test_content_objects_are_themselves(item: Any) -> None:
    """Alone, in a list, in a tuple, beside text; never with structured content."""
    wire = item.to_wire()
    for value in (item, [item], (item,)):
        assert tool_result(bare(), value) == {"content": [wire], "isError": False}
    mixed = tool_result(bare(), ["text", item])
    assert mixed["content"] == [{"type": "text", "text": "text"}, wire]


NO_CONTENT: list[tuple[Any, Any, str]] = [
    (Image, b"png", "is a bytes; make content of bytes with Image(data, 'image/png')"),
    (Image, bytearray(b"png"), "is a bytearray; make content of bytes"),
    (Image, {"data": "x"}, "the return hint promises content, and what was returned is a dict"),
    (Image, 3, "is a int"),
    (Image, None, "is a NoneType"),
    (Image | Text, None, "is a NoneType"),
    (list[Image], b"png", "is a bytes; make content of bytes"),
    (list[Image], {"a": 1}, "is a dict"),
    (Annotated[Image, "x"], 3, "is a int"),
    (ToolResult, {"a": 1}, "is a dict"),
]


@pytest.mark.parametrize(("hint", "value", "why"), NO_CONTENT)
def test_a_hint_that_promises_content_is_kept(hint: Any, value: Any, why: str) -> None:
    """As hints that promise JSON are; the text names the type and shows no value."""
    with pytest.raises(Unsendable) as caught:
        tool_result(hinted(hint), value)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (Image, "text"),
        (Image, [Image(b"", "m"), "text"]),
        (Image | None, None),
        (list[Image] | None, None),
        (Image | dict[str, int], {"a": 1}),
        (Image | Any, 3),
        (dict[str, Image], {"a": 1}),
        (list[Image], []),
        (ToolResult, ToolResult("x")),
        (Image, ToolResult("x")),
    ],
)
def test_what_a_hint_with_content_names_is_sent(hint: Any, value: Any) -> None:
    """Texts and lists always may stand for content; the rest is what it says."""
    assert tool_result(hinted(hint), value)["isError"] is False


@pytest.mark.parametrize(
    ("value", "structured"),
    [
        ({"a": 1}, {"a": 1}),
        ({}, {}),
        ({1: "x"}, {"1": "x"}),
        (collections.OrderedDict(a=[1]), {"a": [1]}),
        (Point(1, 2), {"x": 1, "y": 2}),
        (Pair(1, "b"), {"a": 1, "b": "b"}),
        (Options(deep=True), {"deep": True}),
        (5, {"result": 5}),
        (0, {"result": 0}),
        (False, {"result": False}),
        (1.5, {"result": 1.5}),
        ([1, "a", None], {"result": [1, "a", None]}),
        (["a", "b"], {"result": ["a", "b"]}),
        ((1, 2), {"result": [1, 2]}),
        ({3, 1}, {"result": [1, 3]}),
        (b"\0", {"result": "AA=="}),
        ([], {"result": []}),
        ((), {"result": []}),
    ],
)
def test_other_values_are_structured_content_and_their_json(
    value: object, structured: dict[str, Any]
) -> None:
    """An object as it is, any other value as `{"result": value}`; the text is the value's JSON."""
    for tool in (bare(), hinted(...), hinted(Any)):
        result = tool_result(tool, value)
        assert result["structuredContent"] == structured
        assert texts(result) == [structured.get("result", structured)]
        assert result["isError"] is False


def test_none_is_no_content() -> None:
    """Without structured content, unless the hint promises some."""
    for tool in (bare(), hinted(...), hinted(None)):
        assert tool_result(tool, None) == {"content": [], "isError": False}
    assert tool_result(hinted(int | None), None) == {
        "content": [],
        "structuredContent": {"result": None},
        "isError": False,
    }


@pytest.mark.parametrize(
    ("hint", "value", "structured"),
    [
        (int, 5, {"result": 5}),
        (list[int], [], {"result": []}),
        (list[str], [], {"result": []}),
        (list, [], {"result": []}),
        (tuple[int, ...], (), {"result": []}),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (dict, {"a": 1}, {"a": 1}),
        (Point, Point(1, 2), {"x": 1, "y": 2}),
        (Point | None, Point(1, 2), {"result": {"x": 1, "y": 2}}),
    ],
)
def test_hints_say_what_is_wrapped(hint: Any, value: object, structured: dict[str, Any]) -> None:
    """So that it fits the output schema that clients have seen."""
    tool = hinted(hint)
    assert tool_result(tool, value)["structuredContent"] == structured
    assert tool.wraps_result == ("result" in structured and tool.output_schema is not None)


@pytest.mark.parametrize(
    "hint", [list[Text], list[Text | Image], list[str | Text], tuple[Image, ...], list[Text] | None,
             "list[Text]", Text]
)  # fmt: skip
def test_an_empty_list_of_content_is_no_content(hint: Any) -> None:
    """Where the return hint says content objects; such a tool has no output schema."""
    tool = hinted(hint)
    assert tool.returns_content
    assert tool.output_schema is None
    assert tool_result(tool, []) == {"content": [], "isError": False}
    assert tool_result(tool, [Text("a")])["content"] == [{"type": "text", "text": "a"}]
    for other in (list[int], ..., str, Any, dict):
        assert not hinted(other).returns_content
    assert not bare().returns_content


T = TypeVar("T")
OPEN_LISTS = [
    list, tuple, collections.deque, Sequence, list[Any], list[object], Sequence[Any],
    tuple[Any, ...], tuple[str, Any, Any], list[Any] | None, list[int | Any], Annotated[list, "d"],
    "list[Any]", Iterable, list[T],  # type: ignore[valid-type]
]  # fmt: skip


@pytest.mark.parametrize("hint", OPEN_LISTS, ids=str)
def test_a_hint_of_a_list_of_anything_lets_the_items_decide(hint: Any) -> None:
    """With a content object among them each item is content; all JSON is structured content."""
    tool = hinted(hint)
    assert tool.output_schema is None
    image, link = Image(b"x", "image/png"), ResourceLink("u:1", "n")
    assert tool_result(tool, ["a", image, link]) == {
        "content": [{"type": "text", "text": "a"}, image.to_wire(), link.to_wire()],
        "isError": False,
    }
    for values in ([1, "b"], ["a", "b"], []):
        result = tool_result(tool, values)
        assert result["structuredContent"] == {"result": values}
        assert texts(result) == [values]


@pytest.mark.parametrize(
    "hint",
    [list[str | Image], Sequence[Text | str], tuple[str | Image, ...], list[str | Image] | None],
)  # fmt: skip
def test_a_hint_of_content_makes_each_item_content(hint: Any) -> None:
    """Also where all of them are texts this time."""
    result = tool_result(hinted(hint), ["a", "b"])
    text = [{"type": "text", "text": word} for word in "ab"]
    assert result == {"content": text, "isError": False}


def test_a_list_of_json_beside_a_content_hint_stays_structured() -> None:
    """`list[int] | ToolResult` returns numbers, or says everything itself."""
    for hint in (list[int] | ToolResult, Text | list[int]):
        tool = hinted(hint)
        assert not tool.returns_content
        for values in ([1, 2], []):
            assert tool_result(tool, values)["structuredContent"] == {"result": values}


def test_a_generic_alias_of_a_list_is_looked_into() -> None:
    """What stands for its variable decides."""
    t = ext.TypeVar("t")
    alias = ext.TypeAliasType("alias", list[t], type_params=(t,))
    assert hinted(alias[int]).output_schema is not None
    assert hinted(alias[Any]).output_schema is None
    assert hinted(alias[Text]).returns_content


def test_a_list_of_content_takes_json_values_as_text() -> None:
    """And leaves out `None`; what has no JSON form is named by its type."""
    values = [Text("a"), 5, {"b": [1]}, None, [2], Point(1, 2)]
    for tool in (bare(), hinted(list[Any]), hinted(list[Text | int])):
        for value in (values, tuple(values), collections.deque(values)):
            content = tool_result(tool, value)["content"]
            found = [item["text"] for item in content]
            assert found == ["a", "5", '{"b": [1]}', "[2]", '{"x": 1, "y": 2}']
    with pytest.raises(Unsendable, match="of type Loop, which has no JSON form"):
        tool_result(bare(), [Text("a"), Loop()])


@pytest.mark.parametrize("inner", [[Text("b")], (1, Text("b")), ToolResult("b")])
def test_a_list_of_content_is_flat(inner: Any) -> None:
    """A list inside it that holds content would be sent as the JSON of our classes."""
    with pytest.raises(Unsendable, match="make it one list"):
        tool_result(bare(), [Text("a"), inner])


def test_results_that_break_the_hint_are_not_sent() -> None:
    """The schema was promised; the text says where, not what."""
    for hint, value in ((int, "s3cr3t"), (Point, {"x": 1}), (list[int], ["s3cr3t"])):
        with pytest.raises(Unsendable) as caught:
            tool_result(hinted(hint), value)
        assert "s3cr3t" not in str(caught.value)


class Loop:
    """Has no JSON form."""


@pytest.mark.parametrize(
    "value",
    [
        float("nan"), [float("inf")], Loop(), {"a": Loop()}, {(1, 2): 3},
        pytest.param(10**5000, id="5001-digits"), pytest.param([10**5000], id="in-a-list"),
    ],
)  # fmt: skip
def test_what_has_no_json_form_is_not_sent(value: object) -> None:
    """By a tool and by a resource; as one exception."""
    with pytest.raises(Unsendable):
        tool_result(bare(), value)
    with pytest.raises(Unsendable):
        resource_contents("u", None, value)


@pytest.mark.parametrize("value", [float("nan"), Loop(), {(1, 2): 3}])
def test_a_tool_result_without_json_form_is_not_sent(value: object) -> None:
    """Neither its structured content nor its meta."""
    for result in (ToolResult([], structured_content=value), ToolResult([], meta={"a": value})):
        with pytest.raises(Unsendable):
            tool_result(bare(), result)


def test_a_cycle_is_not_sent() -> None:
    """It ends, as too deep."""
    value: list[Any] = []
    value.append(value)
    with pytest.raises(Unsendable, match="nested deeper"):
        tool_result(bare(), value)


def test_an_output_schema_by_hand_is_checked() -> None:
    """Before anything is sent; content objects alone cannot fulfil it."""
    tool = bare({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    assert tool_result(tool, {"n": 1})["structuredContent"] == {"n": 1}
    wrong: tuple[object, ...] = ({"n": "x"}, {}, 5, [], None, "n")
    for value in wrong:
        with pytest.raises(Unsendable, match="does not fit the output schema"):
            tool_result(tool, value)
    for content in (Text("n"), [Text("n")]):
        with pytest.raises(Unsendable, match="content objects were returned"):
            tool_result(bare(OBJECT), content)


# ---------------------------------------------------------------- ToolResult


def test_a_tool_result_says_everything_itself() -> None:
    """Content in any of its forms, structured content, error flag, meta."""
    result = tool_result(
        bare(),
        ToolResult([Text("a"), "b"], structured_content=[1], is_error=True, meta={"m": 1}),  # type: ignore[list-item]
    )
    assert result == {
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "structuredContent": [1], "isError": True, "_meta": {"m": 1},
    }  # fmt: skip
    for content in ("a", Text("a"), [Text("a")], (Text("a"),)):
        assert tool_result(bare(), ToolResult(content))["content"] == [
            {"type": "text", "text": "a"}
        ]
    assert tool_result(bare(), ToolResult()) == {"content": [], "isError": False}


@pytest.mark.parametrize("content", [None, 5, [5], {"a": 1}, [None]])
def test_a_tool_result_with_other_content_is_not_sent(content: Any) -> None:
    """It is told how to be."""
    with pytest.raises(Unsendable, match=r"ToolResult\.content must be"):
        tool_result(bare(), ToolResult(content))


def test_tool_result_as_a_hint_promises_nothing() -> None:
    """Such a function has no output schema of the class's fields."""
    for hint in (ToolResult, ToolResult | None, "ToolResult"):
        tool = hinted(hint)
        assert tool.output_schema is None
        assert tool_result(tool, ToolResult("a"))["content"] == [{"type": "text", "text": "a"}]


def test_a_tool_result_keeps_an_output_schema() -> None:
    """Unless it is an error."""
    tool = bare({"type": "object", "required": ["n"]})
    assert tool_result(tool, ToolResult("a", structured_content={"n": 1}))
    with pytest.raises(Unsendable, match="does not fit"):
        tool_result(tool, ToolResult("a", structured_content={}))
    with pytest.raises(Unsendable, match="no structured content"):
        tool_result(tool, ToolResult("a"))
    failed = tool_result(tool, ToolResult("a", is_error=True))
    assert failed == {"content": [{"type": "text", "text": "a"}], "isError": True}
    assert failed == error_result("a")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just(Text("c")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(VALUES)
def test_any_value_is_sent_or_unsendable(value: object) -> None:
    """The result is JSON, with the members that the protocol wants."""
    try:
        result = tool_result(bare(), value)
    except Unsendable:
        return
    json.dumps(result)
    assert isinstance(result["content"], list)
    assert isinstance(result.get("structuredContent", {}), dict)


# ---------------------------------------------------------------- resources and prompts


@pytest.mark.parametrize(
    ("value", "mime_type", "item"),
    [
        ("t", None, {"mimeType": "text/plain", "text": "t"}),
        ("t", "text/html", {"mimeType": "text/html", "text": "t"}),
        (b"\0", None, {"mimeType": "application/octet-stream", "blob": "AA=="}),
        (bytearray(b"\0"), "image/png", {"mimeType": "image/png", "blob": "AA=="}),
        ({"a": 1}, None, {"mimeType": "application/json", "text": '{"a": 1}'}),
        ([1], None, {"mimeType": "application/json", "text": "[1]"}),
        ([], None, {"mimeType": "application/json", "text": "[]"}),
        (None, None, {"mimeType": "application/json", "text": "null"}),
        (Contents(text="t"), "text/html", {"mimeType": "text/html", "text": "t"}),
        (Contents(text="t", mime_type="a/b"), "text/html", {"mimeType": "a/b", "text": "t"}),
        (Contents(text=""), None, {"text": ""}),
    ],
)
def test_what_a_resource_may_give(
    value: object, mime_type: str | None, item: dict[str, Any]
) -> None:
    """Text, bytes, `Contents`, or any other value as JSON; never nothing."""
    assert resource_contents("u:1", mime_type, value) == [{"uri": "u:1", **item}]


def test_a_resource_may_give_several_contents() -> None:
    """Each with its own URI, or the one that was read."""
    items = resource_contents("u", None, [Contents(text="a"), Contents("v", data=b"")])
    assert items == [{"uri": "u", "text": "a"}, {"uri": "v", "blob": ""}]


def test_what_a_prompt_may_give() -> None:
    """Text, content, messages, mappings, and lists of all these."""
    text = {"type": "text", "text": "a"}
    user, assistant = {"role": "user", "content": text}, {"role": "assistant", "content": text}
    many = ["a", Text("a"), Message("a", "assistant"), dict(assistant)]
    assert prompt_messages(many) == [user, user, assistant, assistant]
    assert prompt_messages(tuple(many)) == prompt_messages(many)
    for one in ("a", Text("a"), Message("a"), user):
        assert prompt_messages(one) == [user]
    assert prompt_messages([]) == []


@pytest.mark.parametrize(
    "value",
    [None, 5, [None], {"role": "x"}, {"role": "user", "content": "a"}, {"a": 1}, [["a"]],
     {"role": "user", "content": {"type": []}}],
)  # fmt: skip
def test_what_a_prompt_cannot_give(value: object) -> None:
    """Is unsendable, by type."""
    with pytest.raises(Unsendable, match="a prompt"):
        prompt_messages(value)
