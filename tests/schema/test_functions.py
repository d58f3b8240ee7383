"""Functions, methods, partials, callable objects; binding; what is refused, in which words."""

# ruff: noqa: UP045 - both spellings of unions are under test
from __future__ import annotations

import enum
import functools
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest

from raxol_sync.errors import InvalidTool
from raxol_sync.schema import ArgumentError, function_schema
from tests.schema.helpers import schema_of

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTypes


class Context:
    """Stands for the context that a server hands to callbacks."""


class SubContext(Context):
    pass


def scale(a: int, b: str = "x", c: bool = False) -> int:
    """Scale it.

    Args:
        a: How much.
    """
    return a


def test_schema_of_a_plain_function() -> None:
    """Name, description, parameters and defaults come from the function."""
    schema = function_schema(scale)
    assert (schema.name, schema.description, schema.parameters) == (
        "scale", "Scale it.", ("a", "b", "c"),
    )  # fmt: skip
    assert schema.input_schema == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "How much."},
            "b": {"type": "string", "default": "x"},
            "c": {"type": "boolean", "default": False},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert schema.context_parameter is None


def test_bind_leaves_defaults_to_the_function() -> None:
    """What is absent stays absent; what is there is converted."""
    assert function_schema(scale).bind({"a": "1", "c": "true"}) == {"a": 1, "c": True}


def test_s44_violations_name_path_and_keyword_never_the_value() -> None:
    """Missing, unknown and wrong arguments are all in one error."""
    with pytest.raises(ArgumentError) as caught:
        function_schema(scale).bind({"b": 5, "zz": "secret"})
    found = [(v.path, v.keyword) for v in caught.value.violations]
    assert found == [("b", "type"), ("zz", "additionalProperties"), ("a", "required")]
    assert "leave it out, or use one of: a, b, c" in str(caught.value)
    assert "secret" not in str(caught.value)
    with pytest.raises(ArgumentError):
        function_schema(scale).bind([("a", 1)])  # type: ignore[arg-type]


def test_no_parameters() -> None:
    """The schema that the specification recommends for tools without parameters."""

    def nothing() -> None: ...

    schema = function_schema(nothing)
    assert schema.input_schema == {"type": "object", "additionalProperties": False}
    assert schema.bind({}) == {}
    with pytest.raises(ArgumentError, match=r"'a' is not a known name: leave it out$"):
        schema.bind({"a": 1})


def test_unhinted_parameters_take_anything() -> None:
    """Without a hint every JSON value fits; a default that is not JSON is not in the schema."""

    def takes(a, b=object(), c=float("nan"), d=(1, 2)):  # type: ignore[no-untyped-def]  # noqa: B008
        return a

    assert function_schema(takes).input_schema["properties"] == {
        "a": {}, "b": {}, "c": {}, "d": {"default": [1, 2]},
    }  # fmt: skip


def test_default_none_allows_null() -> None:
    """``b: int = None`` says that ``None`` may be given, whatever the hint says."""

    def takes(b: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013

    schema = function_schema(takes)
    assert schema.bind({"b": None}) == {"b": None}
    assert schema.input_schema["properties"]["b"]["anyOf"][1] == {"type": "null"}


def test_null_only_where_allowed() -> None:
    """``null`` for a parameter with another default is refused."""
    with pytest.raises(ArgumentError, match="'b' must be a string, not null"):
        function_schema(scale).bind({"a": 1, "b": None})


def test_extra_keywords_pass_through() -> None:
    """``**kwargs`` opens the schema; its hint is that of each extra argument."""

    def takes(a: int, ctx: Context, **rest: int) -> None: ...

    schema = function_schema(takes, context_type=Context)
    assert schema.input_schema["additionalProperties"] == {"type": "integer"}
    assert schema.bind({"a": 1, "z": "2"}) == {"a": 1, "z": 2}
    with pytest.raises(ArgumentError, match="'ctx' is not a known name"):
        schema.bind({"a": 1, "ctx": 2})

    def untyped(**rest) -> None: ...  # type: ignore[no-untyped-def]

    assert function_schema(untyped).input_schema["additionalProperties"] is True
    assert function_schema(untyped).bind({"a": [1]}) == {"a": [1]}


@pytest.mark.parametrize(
    "hint", [Context, Optional[Context], Context | None, SubContext, Annotated[Context, "it"]]
)
def test_context_parameter(hint: Any) -> None:
    """The context is named and in no schema."""

    def takes(a: int, ctx: Any = None) -> None: ...

    takes.__annotations__["ctx"] = hint
    schema = function_schema(takes, context_type=Context)
    assert schema.context_parameter == "ctx"
    assert schema.parameters == ("a",)
    with pytest.raises(ArgumentError):
        schema.bind({"a": 1, "ctx": None})


def test_generic_hints_beside_a_context() -> None:
    """A generic hint is no class, and is not taken for the context."""

    def takes(a: list[int], b: dict[str, int] | None, ctx: Context) -> None: ...

    schema = function_schema(takes, context_type=Context)
    assert schema.parameters == ("a", "b")


def test_context_named_only_for_type_checkers() -> None:
    """An annotation in text may name the context without importing it."""

    def takes(ctx: Any) -> None: ...

    takes.__annotations__["ctx"] = "Hidden"
    hidden = type("Hidden", (), {})
    assert function_schema(takes, context_type=hidden).context_parameter == "ctx"


def test_two_contexts_are_refused() -> None:
    """One context is enough."""

    def takes(a: Context, b: Context) -> None: ...

    with pytest.raises(InvalidTool, match="'a' takes the context already"):
        function_schema(takes, context_type=Context)


class Service:
    """A service."""

    def method(self, a: int) -> None:
        """Work."""

    @classmethod
    def of_class(cls, a: int) -> None: ...

    @staticmethod
    def static(a: int) -> None: ...

    def __call__(self, a: int) -> int:
        """Be called."""
        return a

    async def asynchronous(self) -> None: ...


def wrapper(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapped


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (Service().method, "method"),
        (Service.of_class, "of_class"),
        (Service.static, "static"),
        (Service.__dict__["static"], "static"),
        (Service(), "Service"),
        (functools.partial(scale, b="hidden", c=True), "scale"),
        (functools.partial(lambda n, a: a, 1), "<lambda>"),
        (wrapper(wrapper(Service().method)), "method"),
        (lambda a: a, "<lambda>"),
    ],
)
def test_kinds_of_callables(function: Any, name: str) -> None:
    """Each kind has the one parameter ``a``, and can be called with what ``bind`` returns."""
    schema = function_schema(function)
    assert schema.name == name
    assert schema.parameters == ("a",)
    assert "hidden" not in str(schema.input_schema)
    function(**schema.bind({"a": 1}))


def test_descriptions_of_callables() -> None:
    """A partial has its function's docstring, a callable object that of its call."""
    assert function_schema(functools.partial(scale)).description == "Scale it."
    assert function_schema(Service()).description == "Be called."
    assert function_schema(wrapper(Service().method)).description == "Work."


def test_a_keyword_that_a_partial_binds_cannot_be_given() -> None:
    """Its author chose it; a caller does not override it, nor through ``**kwargs``."""

    def takes(a: int, key: str, **rest: Any) -> None: ...

    schema = function_schema(functools.partial(takes, key="k"))
    with pytest.raises(ArgumentError, match="'key' is not a known name"):
        schema.bind({"a": 1, "key": "other"})


def _positional(a: int, /) -> None: ...
def _starred(*values: int) -> None: ...
async def _coroutine() -> None: ...
async def _async_generator() -> AsyncIterator[int]:
    yield 1


def _generator() -> Iterator[int]:
    yield 1


def _unknown(a: int, b: list[Context]) -> None: ...
def _module_hint(a: Any) -> None: ...
def _only_for_types(a: OnlyForTypes) -> None: ...
def _keys(a: dict[float, int]) -> None: ...


class AsyncCall:
    async def __call__(self) -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (_positional, r"'_positional', parameter 'a'.*positional-only.*remove the /"),
        (_starred, r"\*values.*take a list"),
        (_coroutine, "'_coroutine' is asynchronous.*`def` instead of `async def`"),
        (_async_generator, "asynchronous"),
        (functools.partial(_coroutine), "asynchronous"),
        (Service().asynchronous, "asynchronous"),
        (AsyncCall(), "asynchronous"),
        (_generator, "generator.*return a list"),
        (_unknown, "'_unknown', parameter 'b'.*Context has no JSON form; use a dataclass"),
        (_only_for_types, "'OnlyForTypes', which is not defined.*TYPE_CHECKING"),
        (_keys, "keys of a JSON object are text, not a number"),
        (Service, "not a function"),
        (5, "not a function"),
        (Service.__dict__["of_class"], r"pass Class\.of_class"),
        (type.__call__, "cannot be read|positional-only|no JSON form|cannot be named"),
    ],
)  # fmt: skip
def test_refusals(function: Any, words: str) -> None:
    """Each refusal names function and parameter, and says what to do."""
    with pytest.raises(InvalidTool, match=words):
        function_schema(function)


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (Callable[[int], int], "no JSON form"),
        (type[int], "no JSON form"),
        (complex, "the type complex has no JSON form"),
        (Iterator[int], "no JSON form"),
        (5, "no JSON form"),
        ([int], "no JSON form"),
        ("1 +", "cannot be evaluated"),
        ("no_such_module.Name", "names 'no_such_module'"),
        (enum.Enum("Empty", {}), "has no members"),
        (enum.Enum("Odd", {"A": (1, 2)}), "not a string, number"),
        (Annotated[int, {"a": object()}], "must be JSON"),
    ],
)
def test_refused_hints(hint: Any, words: str) -> None:
    """A hint without a JSON form is refused by name."""
    with pytest.raises(InvalidTool, match=words):
        schema_of(hint)


def test_an_alias_of_itself_is_refused() -> None:
    """A name that stands for itself, directly or through a union, describes no value."""
    with pytest.raises(InvalidTool, match="itself"):
        schema_of("LOOP")
    with pytest.raises(InvalidTool, match="itself"):
        schema_of("UNION")


LOOP = "LOOP"
UNION: Any = Optional["int | UNION"]


def test_deep_and_large_hints_are_refused() -> None:
    """Nesting and size of hints are bounded."""
    deep: Any = int
    for _ in range(100):
        deep = list[deep]
    with pytest.raises(InvalidTool, match="too large or too deep"):
        schema_of(deep)
    wide: Any = int
    for _ in range(20):
        wide = tuple[wide, wide]
    with pytest.raises(InvalidTool, match="too large or too deep"):
        schema_of(wide)


def test_a_schema_is_its_owners_alone() -> None:
    """Changing one schema changes no other."""
    first = schema_of(int | None)
    first.input_schema["properties"]["x"]["anyOf"][1]["type"] = "broken"
    assert schema_of(int | None).input_schema["properties"]["x"]["anyOf"][1] == {"type": "null"}


def test_a_nearly_full_stack_is_an_argument_error() -> None:
    """No RecursionError leaves ``bind``, however deep its caller is."""
    schema = schema_of(list[list[list[list[list[list[int]]]]]])
    outcomes = set()

    def dive(levels: int) -> None:
        if levels:
            dive(levels - 1)
        else:
            try:
                schema.bind({"x": [[[[[[1]]]]]]})
            except ArgumentError as error:
                outcomes.add(error.violations[0].keyword)

    for levels in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit()):
        try:
            dive(levels)
        except RecursionError:
            continue  # our own recursion, or bind had no room to begin
    assert outcomes == {"depth"}


def test_import_is_light() -> None:
    """Importing the package imports neither jsonschema nor pydantic nor asyncio."""
    code = (
        "import sys, raxol_sync.schema;"
        "print([n for n in ('jsonschema', 'pydantic', 'asyncio', 'requests') if n in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "[]", done.stderr
