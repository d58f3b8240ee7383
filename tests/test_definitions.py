"""Row S44 and "Values and callbacks": what a server offers is validated when it is built."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import raxol_sync
from raxol_sync.definitions import Prompt, Resource, ResourceTemplate, Tool
from raxol_sync.errors import InvalidTool
from raxol_sync.schema import ArgumentError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "tag": {"enum": ["a", "b"]}},
    "required": ["n"],
}


class Context:
    """Stands for the type of what callbacks may ask for."""


def make(**changes: Any) -> Tool:
    options: dict[str, Any] = {
        "name": "t", "description": "d", "input_schema": SCHEMA, "callback": lambda arguments: None,
    }  # fmt: skip
    return Tool(**{**options, **changes})


def from_function(function: Callable[..., Any], **options: Any) -> Tool:
    return Tool.from_function(function, context_type=Context, **options)


async def coroutine(arguments: Any) -> None: ...


async def generator(arguments: Any) -> Any:
    yield 1


class AsyncCall:
    async def __call__(self, arguments: Any) -> None: ...


# ---------------------------------------------------------------- tools


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"name": ""}, "name must be a non-empty str"),
        ({"name": " "}, "name must be a non-empty str"),
        ({"name": 5}, "name must be a non-empty str"),
        ({"description": ""}, "description must be a non-empty str"),
        ({"description": None}, "description must be a non-empty str"),
        ({"callback": None}, "not callable"),
        ({"callback": "f"}, "not callable"),
        ({"callback": coroutine}, "write `def` instead of `async def`"),
        ({"callback": generator}, "write `def` instead of `async def`"),
        ({"callback": functools.partial(coroutine, 1)}, "write `def` instead of `async def`"),
        ({"callback": AsyncCall()}, "write `def` instead of `async def`"),
        ({"is_fault": coroutine}, "is_fault is asynchronous"),
        ({"is_fault": "x"}, "is_fault must be callable"),
        ({"completers": {"n": coroutine}}, "the completer of 'n' is asynchronous"),
        ({"completers": {"n": "x"}}, "the completer of 'n' must be callable"),
        ({"input_schema": None}, "input_schema must be a mapping"),
        ({"input_schema": "{}"}, "input_schema must be a mapping"),
        ({"input_schema": [("type", "object")]}, "input_schema must be a mapping"),
        ({"input_schema": {}}, "input_schema"),
        ({"input_schema": {"type": "array"}}, "input_schema"),
        ({"input_schema": {"type": "object", "properties": 5}}, "input_schema"),
        ({"input_schema": {"type": "object", "required": "n"}}, "input_schema"),
        ({"input_schema": {"type": "object", "$ref": "https://example.com/x"}}, "input_schema"),
        ({"output_schema": "x"}, "output_schema must be a mapping"),
        ({"output_schema": {"type": "nonsense"}}, "output_schema"),
        ({"annotations": "x"}, "annotations must be a mapping"),
    ],
)
def test_s44_a_tool_is_validated_when_it_is_built(changes: dict[str, Any], why: str) -> None:
    """The text names the tool, and which argument is wrong."""
    with pytest.raises(InvalidTool, match=why) as caught:
        make(**changes)
    assert str(caught.value).startswith("tool ")


@pytest.mark.parametrize(
    ("annotations", "why"),
    [
        ({"destructiveHint": "true"}, "annotations['destructiveHint'] must be True or False"),
        ({"sensitive": 1}, "annotations['sensitive'] must be True or False, not int"),
        ({"destructive": True}, "annotations has 'destructive': it must be 'destructiveHint'"),
        ({"destructive_hint": True}, "it must be 'destructiveHint'"),
        ({"readonlyhint": True}, "it must be 'readOnlyHint'"),
    ],
)
def test_s31_a_hint_that_would_guard_nothing_is_refused(annotations: Any, why: str) -> None:
    """Misspelt, or no bool; however the tool is made. Others' own annotations are left alone."""
    with pytest.raises(InvalidTool) as caught:
        Tool("a", "b", {"type": "object"}, lambda arguments: None, annotations=annotations)
    assert why in str(caught.value)
    with raxol_sync.Server("s") as server, pytest.raises(InvalidTool) as caught:
        server.tool(annotations=annotations)(lambda: None)
    assert why in str(caught.value)
    Tool("a", "b", {"type": "object"}, lambda arguments: None, annotations={"x": 1, "title": "T"})


def test_s44_all_that_is_wrong_is_said_at_once() -> None:
    """Not one mistake at a time."""
    with pytest.raises(InvalidTool, match=r"non-empty.*non-empty.*not callable.*mapping"):
        make(name="", description="", callback=1, input_schema=1)


def test_s44_arguments_are_one_dict_that_was_checked() -> None:
    """The callback of a directly built tool gets it as it came; the checked one runs only then."""
    seen: list[Any] = []
    tool = make(callback=seen.append)
    arguments = {"n": 1, "more": [1.5]}
    tool.run(tool.bind(arguments), Context())
    assert seen == [arguments]
    for wrong in ({}, {"n": "s3cr3t"}, {"n": 1, "tag": "s3cr3t"}):
        with pytest.raises(ArgumentError) as caught:
            tool.bind(wrong)
        assert "s3cr3t" not in str(caught.value)


def test_the_definition_is_what_goes_on_the_wire() -> None:
    """Nothing that was not given."""
    assert make().definition == {"name": "t", "description": "d", "inputSchema": SCHEMA}
    assert make(
        title="T", annotations={"readOnlyHint": True}, output_schema={"type": "object"},
        icons=[{"src": "i"}], meta={"m": 1},
    ).definition == {
        "name": "t", "title": "T", "description": "d", "inputSchema": SCHEMA,
        "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True},
        "icons": [{"src": "i"}], "_meta": {"m": 1},
    }  # fmt: skip


def test_a_schema_that_changes_later_changes_no_tool() -> None:
    """What was checked is what is listed and applied."""
    schema: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}

    def t(**rest: int) -> None: ...

    tools = [make(input_schema=schema, output_schema=schema)]
    tools.append(from_function(t, input_schema=schema, output_schema=schema))
    schema["properties"]["n"]["type"] = "string"
    for tool in tools:
        assert tool.definition["inputSchema"]["properties"]["n"] == {"type": "integer"}
        assert tool.definition["outputSchema"]["properties"]["n"] == {"type": "integer"}
        assert tool.bind({"n": 1})
        tool.check_structured({"n": 1})


def test_a_function_becomes_a_tool() -> None:
    """Name, description and schema are its own, arguments arrive as keywords, converted."""

    def add(a: int, b: int = 2) -> int:
        """Add two numbers."""
        return a + b

    tool = from_function(add)
    assert (tool.name, tool.description) == ("add", "Add two numbers.")
    assert tool.input_schema["properties"].keys() == {"a", "b"}
    assert tool.run(tool.bind({"a": "3"}), Context()) == 5
    with pytest.raises(ArgumentError):
        tool.bind({"a": 1, "c": 1})
    named = from_function(add, name="plus", description="Plus.")
    assert (named.name, named.description) == ("plus", "Plus.")


def test_a_function_without_a_docstring_is_described_by_its_name() -> None:
    """A tool always has a description."""

    def ping() -> None: ...

    assert from_function(ping).description == "ping"
    with pytest.raises(InvalidTool, match="async"):
        from_function(coroutine, input_schema=SCHEMA)


def test_the_context_is_injected_and_not_in_the_schema() -> None:
    """Also where the schema is given by hand; a peer cannot pass its own."""

    def f(n: int, ctx: Context) -> tuple[int, Context]:
        return n, ctx

    context = Context()
    tool = from_function(f)
    assert "ctx" not in tool.input_schema["properties"]
    assert tool.run(tool.bind({"n": 1}), context) == (1, context)
    with pytest.raises(ArgumentError):
        tool.bind({"n": 1, "ctx": "mine"})
    by_hand = from_function(f, input_schema=SCHEMA)
    assert by_hand.run(by_hand.bind({"n": 1, "ctx": "mine"}), context) == (1, context)


def test_a_schema_by_hand_excuses_hints_that_have_none() -> None:
    """That is often why it is given; the context is found all the same."""

    def f(n: object(), ctx: Context) -> Any:  # type: ignore[valid-type]
        """Do it."""
        return n, ctx

    f.__annotations__ = {"n": 5, "ctx": Context}
    with pytest.raises(InvalidTool):
        from_function(f)
    tool, context = from_function(f, input_schema=SCHEMA), Context()
    assert tool.description == "Do it."
    assert tool.run(tool.bind({"n": 1}), context) == (1, context)


# ---------------------------------------------------------------- resources, templates, prompts


def test_a_resource() -> None:
    """Its callback takes nothing."""
    resource = Resource(
        "x:1", "n", lambda: "text", title="T", description="d", mime_type="m", size=0,
        annotations={"priority": 1},
    )  # fmt: skip
    assert resource.run({}, Context()) == "text"
    assert resource.definition == {
        "uri": "x:1", "name": "n", "title": "T", "description": "d", "mimeType": "m", "size": 0,
        "annotations": {"priority": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("", "n", str), "uri must be"),
        (("x:1", "", str), "name must be"),
        (("x:1", "n", None), "not callable"),
        (("x:1", "n", coroutine), "async"),
        (("x:{a}", "n", str), "use ResourceTemplate"),
    ],
)
def test_a_resource_is_validated(arguments: tuple[Any, ...], why: str) -> None:
    """As tools are."""
    with pytest.raises(InvalidTool, match=why):
        Resource(*arguments)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("", "n", str), "uri_template must be"),
        ((5, "n", str), "uri_template must be"),
        (("x:{a}", "", str), "name must be"),
        (("x:{a}", "n", None), "not callable"),
        (("x:1", "n", str), "no variable; use Resource"),
        (("x:{+a}", "n", str), "level-1"),
        (("x:{a", "n", str), "no partner"),
        (("x:{a}{a}", "n", str), "twice"),
    ],
)
def test_a_template_is_validated(arguments: tuple[Any, ...], why: str) -> None:
    """As tools are; only level 1 of RFC 6570 is known."""
    with pytest.raises(InvalidTool, match=why):
        ResourceTemplate(*arguments)


def test_functions_of_resources_take_the_variables() -> None:
    """Exactly those of the URI, converted to their hints; and a context."""

    def note(number: int, ctx: Context) -> tuple[int, Context]:
        """A note."""
        return number, ctx

    def fixed(ctx: Context) -> Context:
        return ctx

    context = Context()
    template = ResourceTemplate.from_function("n:{number}", note, context_type=Context)
    assert template.definition == {
        "uriTemplate": "n:{number}",
        "name": "note",
        "description": "A note.",
    }
    variables = template.template.match("n:7")
    assert variables is not None
    assert template.run(template.bind(variables), context) == (7, context)
    with pytest.raises(ArgumentError):
        template.bind({"number": "x"})
    resource = Resource.from_function("n:1", fixed, context_type=Context)
    assert resource.run({}, context) is context
    for uri in ("n:{other}", "n:{number}/{other}"):
        with pytest.raises(InvalidTool, match="must be the function's parameters"):
            ResourceTemplate.from_function(uri, note, context_type=Context)
    with pytest.raises(InvalidTool, match="no variable for number"):
        Resource.from_function("n:1", note, context_type=Context)


def test_a_prompt() -> None:
    """Its arguments are listed; what is required and missing is named."""
    arguments: list[dict[str, Any]] = [
        {"name": "a", "description": "A", "required": True},
        {"name": "b"},
    ]
    prompt = Prompt("p", lambda given: given, description="d", arguments=arguments)
    assert prompt.definition == {"name": "p", "description": "d", "arguments": arguments}
    assert (prompt.missing({}), prompt.missing({"a": ""})) == (["a"], [])
    assert prompt.run(prompt.bind({"a": "1"}), Context()) == {"a": "1"}
    assert Prompt("p", str).definition == {"name": "p"}


@pytest.mark.parametrize(
    ("arguments", "options", "why"),
    [
        (("", str), {}, "name must be"),
        (("p", None), {}, "not callable"),
        (("p", str), {"arguments": [{}]}, "an argument's name must be"),
        (("p", str), {"arguments": ["a"]}, "an argument must be a mapping"),
    ],
)
def test_a_prompt_is_validated(arguments: Any, options: dict[str, Any], why: str) -> None:
    """As tools are."""
    with pytest.raises(InvalidTool, match=why):
        Prompt(*arguments, **options)


def test_functions_of_prompts_have_their_parameters_as_arguments() -> None:
    """With what the docstring says; values are text and are converted."""

    def review(code: str, depth: int = 1) -> str:
        """Review code.

        Args:
            code: What to review.
        """
        return f"{code}{depth + 1}"

    prompt = Prompt.from_function(review, context_type=Context)
    assert prompt.definition == {
        "name": "review",
        "description": "Review code.",
        "arguments": [
            {"name": "code", "required": True, "description": "What to review."},
            {"name": "depth", "required": False},
        ],
    }
    assert prompt.run(prompt.bind({"code": "x", "depth": "5"}), Context()) == "x6"
    assert prompt.missing({}) == ["code"]


def test_completers_and_schemas_of_arguments_are_at_hand() -> None:
    """For completion (row S12)."""

    def f(color: str) -> str:
        return color

    completers = {"color": lambda text: [text]}
    prompt = Prompt.from_function(f, context_type=Context, completers=completers)
    assert prompt.completers == completers
    assert prompt.argument_schema("color")["type"] == "string"
    assert prompt.argument_schema("unknown") == {}
    assert Prompt("p", str).argument_schema("color") == {}
