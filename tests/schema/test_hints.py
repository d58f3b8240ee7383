"""Every hint: its schema, what it takes and makes, what it refuses."""

# ruff: noqa: UP007, UP045 - both spellings of unions are under test
from __future__ import annotations

import collections
import collections.abc as abc
import datetime as dt
import enum
import pathlib
import re
import sys
import typing
import uuid
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    TypedDict,
    TypeVar,
    Union,
)

import pytest
import typing_extensions as ext

from raxol_sync.errors import InvalidTool
from raxol_sync.schema import ArgumentError, function_schema
from tests.schema.helpers import bound, part, refusal, schema_of

T = TypeVar("T")
Bound = TypeVar("Bound", bound=int)
Either = TypeVar("Either", int, str)
UserId = NewType("UserId", int)
Json = Union[None, bool, int, float, str, "list[Json]", "dict[str, Json]"]
IntList = ext.TypeAliasType("IntList", "list[int]")
Nested = ext.TypeAliasType("Nested", "list[Nested] | int")
Link = ext.TypeAliasType("Link", "tuple[Link] | None")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Rights(enum.IntFlag):
    READ = 1
    WRITE = 2


class Flags(enum.Flag):
    A = 1


@dataclass
class Point:
    """A place.

    Attributes:
        x: How far right.
    """

    x: int
    y: int = field(default=0, metadata={"description": "How far up."})
    tags: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Scaled(Point):
    factor: InitVar[float]
    hidden: int = field(init=False, default=7)

    def __post_init__(self, factor: float) -> None:
        if factor < 0:
            raise ValueError("factor must not be negative")
        self.x = int(self.x * factor)


@dataclass
class Tree:
    value: int
    children: list[Tree] = field(default_factory=list)


@dataclass
class Box(Generic[T]):
    content: T
    more: list[T]


@dataclass
class IntBox(Box[int]):
    label: str = ""


class Spot(NamedTuple):
    x: int
    y: float = 0.5


class Movie(TypedDict):
    title: str
    year: ext.NotRequired[int]


class Sequel(Movie, total=False):
    part: int
    first: ext.Required[ext.ReadOnly[str]]


Pair = collections.namedtuple("Pair", "a b")
UUID_TEXT = "12345678-1234-5678-1234-567812345678"

# hint, schema, [(JSON, Python), ...], [(JSON, keyword), ...]
HINTS: list[tuple[Any, dict[str, Any], list[tuple[Any, Any]], list[tuple[Any, str]]]] = [
    (str, {"type": "string"}, [("a", "a"), ("5", "5")], [(5, "type"), (None, "type")]),
    (
        int,
        {"type": "integer"},
        [(5, 5), ("5", 5), ("-0", 0), (3.0, 3), ("3.0", 3), (10**30, 10**30)],
        [(3.5, "type"), (True, "type"), ("3.5", "type"), ("007", "type"), ("+5", "type"),
         (" 5", "type"), ("1e3", "type"), ("9" * 5000, "type"), ("\u0663", "type"),
         (float("inf"), "type")],
    ),
    (
        float,
        {"type": "number"},
        [(1.5, 1.5), (2, 2.0), ("1.5", 1.5), ("-1e3", -1000.0)],
        [(True, "type"), ("1e9999", "type"), ("nan", "type"), (float("nan"), "type"),
         (float("inf"), "type"), (10**400, "type"), ("9" * 5000, "type"), (None, "type")],
    ),
    (bool, {"type": "boolean"}, [(True, True), ("false", False)], [(1, "type"), ("yes", "type")]),
    (None, {"type": "null"}, [(None, None), ("null", None)], [(0, "type"), ("", "type")]),
    (
        bytes,
        {"type": "string", "contentEncoding": "base64"},
        [("aGk=", b"hi"), ("", b"")],
        [("a", "contentEncoding"), ("ü", "contentEncoding"), (5, "type")],
    ),
    (bytearray, {"type": "string", "contentEncoding": "base64"}, [("aGk=", bytearray(b"hi"))], []),
    (Any, {}, [(5, 5), ([None], [None])], []),
    (object, {}, [("a", "a")], []),
    (list, {"type": "array"}, [([1, "a"], [1, "a"]), ("[1]", [1])], [("a", "type"), ({}, "type")]),
    (
        list[int],
        {"type": "array", "items": {"type": "integer"}},
        [([1, "2"], [1, 2]), ('[1, "2"]', [1, 2]), ("  [] ", [])],
        [(["a"], "type"), ("[1", "type"), ("{}", "type"), ("[NaN]", "type"), ((1,), "type"),
         ("[" * 100_000, "type"), ("[" + "9" * 5000 + "]", "type")],
    ),
    (typing.List[int], {"type": "array", "items": {"type": "integer"}}, [([1], [1])], []),  # noqa: UP006
    (abc.Sequence[int], {"type": "array", "items": {"type": "integer"}}, [([1], [1])], []),
    (abc.Iterable[str], {"type": "array", "items": {"type": "string"}}, [(["a"], ["a"])], []),
    (
        collections.deque[int],
        {"type": "array", "items": {"type": "integer"}},
        [([1], collections.deque([1]))],
        [],
    ),
    (dict, {"type": "object"}, [({"a": 1}, {"a": 1}), ('{"a": 1}', {"a": 1})], [([], "type")]),
    (
        dict[str, int],
        {"type": "object", "additionalProperties": {"type": "integer"}},
        [({"a": "1"}, {"a": 1})],
        [({"a": "b"}, "type"), ("a", "type")],
    ),
    (abc.Mapping[str, Any], {"type": "object"}, [({"a": 1}, {"a": 1})], []),
    (
        collections.OrderedDict[str, Any],
        {"type": "object"},
        [({"a": 1}, collections.OrderedDict(a=1))],
        [],
    ),
    (
        dict[int, str],
        {
            "type": "object",
            "propertyNames": {"pattern": "^-?(0|[1-9][0-9]*)$"},
            "additionalProperties": {"type": "string"},
        },
        [({"5": "a", "-1": "b"}, {5: "a", -1: "b"})],
        [({"a": "a"}, "propertyNames"), ({"05": "a"}, "propertyNames")],
    ),
    (
        dict[Color, Any],
        {"type": "object", "propertyNames": {"type": "string", "enum": ["red", "blue"]}},
        [({"red": 1}, {Color.RED: 1})],
        [({"pink": 1}, "propertyNames")],
    ),
    (
        dict[uuid.UUID, Any],
        {"type": "object", "propertyNames": {"type": "string", "format": "uuid"}},
        [({UUID_TEXT: 1}, {uuid.UUID(UUID_TEXT): 1})],
        [({UUID_TEXT: 1, UUID_TEXT.replace("-", ""): 2}, "uniqueItems")],
    ),
    (
        tuple[int, str],
        {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "items": False,
        },
        [([1, "a"], (1, "a")), ('["1", "a"]', (1, "a"))],
        [([1], "minItems"), ([1, "a", 2], "maxItems"), (["x", "a"], "type"), (5, "type")],
    ),
    (tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}, [([], ())], [([1], "maxItems")]),
    (
        tuple[int, ...],
        {"type": "array", "items": {"type": "integer"}},
        [([1, "2"], (1, 2))],
        [(["a"], "type")],
    ),
    (tuple, {"type": "array"}, [([1, "a"], (1, "a"))], [(5, "type")]),
    (
        set[int],
        {"type": "array", "uniqueItems": True, "items": {"type": "integer"}},
        [([1, 2], {1, 2}), ('["1", 2]', {1, 2})],
        [([1, 1], "uniqueItems"), (["1", 1], "uniqueItems"), (["a"], "type"), (1, "type")],
    ),
    (set, {"type": "array", "uniqueItems": True}, [([1], {1})], [([[]], "items")]),
    (
        frozenset[str],
        {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
        [(["a"], frozenset("a"))],
        [],
    ),
    (abc.Set[str], {"type": "array", "uniqueItems": True, "items": {"type": "string"}}, [], []),
    (
        Optional[int],
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        [(None, None), (5, 5), ("5", 5), ("null", None)],
        [("a", "type")],
    ),
    (
        int | str,
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        [(5, 5), ("5", "5")],
        [(None, "anyOf"), (5.5, "anyOf")],
    ),
    (
        Union[int, float, None],
        {"anyOf": [{"type": "integer"}, {"type": "number"}, {"type": "null"}]},
        [(5, 5), (5.0, 5.0), ("5", 5), ("5.5", 5.5), (None, None)],
        [("a", "anyOf")],
    ),
    (str | list[int],
     {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
     [("[1]", "[1]"), ([1], [1])], [(["a"], "type")]),
    (list[int] | list[float],
     {"anyOf": [{"type": "array", "items": {"type": "integer"}},
                {"type": "array", "items": {"type": "number"}}]},
     [([1], [1]), ([1.5], [1.5]), ([1, 2.5], [1.0, 2.5]), ("[1.5]", [1.5])], [(["a"], "anyOf")]),
    (int | Any, {}, [(5, 5), ("a", "a")], []),
    (
        Literal["a", "b"],
        {"type": "string", "enum": ["a", "b"]},
        [("a", "a")],
        [("c", "enum"), (1, "enum"), ([], "enum")],
    ),
    (
        Literal[1, "1", True, None],
        {"enum": [1, "1", True, None]},
        [(1, 1), ("1", "1"), (True, True), (None, None), (1.0, 1), ("true", True)],
        [(2, "enum"), (False, "enum"), ({}, "enum")],
    ),
    (Literal[Color.RED], {"type": "string", "enum": ["red"]}, [("red", Color.RED)], []),
    (Color, {"type": "string", "enum": ["red", "blue"]}, [("red", Color.RED)], [("RED", "enum")]),
    (
        Level,
        {"type": "integer", "enum": [1, 2]},
        [(1, Level.LOW), ("2", Level.HIGH), (1.0, Level.LOW)],
        [(3, "enum"), (True, "enum")],
    ),
    (Rights, {"type": "integer"}, [(3, Rights.READ | Rights.WRITE)], [("a", "type")]),
    (Flags, {"type": "integer"}, [("1", Flags.A)], [(64, "enum")]),
    (
        dt.datetime,
        {"type": "string", "format": "date-time"},
        [
            ("2026-07-28T10:00:00Z", dt.datetime(2026, 7, 28, 10, tzinfo=dt.timezone.utc)),
            ("2026-07-28 10:00", dt.datetime(2026, 7, 28, 10)),
            ("2026-07-28T10:00:00.1234567", dt.datetime(2026, 7, 28, 10, 0, 0, 123456)),
            ("2026-07-28", dt.datetime(2026, 7, 28)),
        ],
        [("2026-13-28T10:00:00Z", "format"), ("soon", "format"), (5, "type"),
         ("2026-07-28T10:00.5", "format")],
    ),
    (
        dt.date,
        {"type": "string", "format": "date"},
        [("2026-07-28", dt.date(2026, 7, 28))],
        [("20260728", "format"), ("2026-02-30", "format"), (5, "type")],
    ),
    (
        dt.time,
        {"type": "string", "format": "time"},
        [("08:30", dt.time(8, 30)), ("08:30:00+02:00",
          dt.time(8, 30, tzinfo=dt.timezone(dt.timedelta(hours=2))))],
        [("25:00", "format"), ("8", "format")],
    ),
    (
        dt.timedelta,
        {"type": "string", "format": "duration"},
        [
            ("PT1H30M", dt.timedelta(hours=1, minutes=30)),
            ("-P1DT0.5S", -dt.timedelta(days=1, seconds=0.5)),
            ("P2W", dt.timedelta(weeks=2)),
            (90, dt.timedelta(seconds=90)),
            (0.5, dt.timedelta(seconds=0.5)),
        ],
        [("P", "format"), ("PT", "format"), ("P1Y", "format"), ("P999999999W", "format"),
         (float("nan"), "type"), (float("inf"), "type"), (True, "type")],
    ),
    (uuid.UUID, {"type": "string", "format": "uuid"}, [(UUID_TEXT, uuid.UUID(UUID_TEXT))],
     [("1", "format"), (1, "type")]),
    (pathlib.Path, {"type": "string", "format": "path"}, [("/a/b", pathlib.Path("/a/b"))],
     [("a\0b", "format"), (1, "type")]),
    (re.Pattern, {"type": "string", "format": "regex"}, [("a+", re.compile("a+"))],
     [("(", "format")]),
    (re.Pattern[str], {"type": "string", "format": "regex"}, [("a+", re.compile("a+"))], []),
    (UserId, {"type": "integer"}, [("5", 5)], []),
    (T, {}, [(5, 5)], []),
    (Bound, {"type": "integer"}, [(5, 5)], []),
    (Either, {"anyOf": [{"type": "integer"}, {"type": "string"}]}, [("5", "5")], []),
    (IntList, {"type": "array", "items": {"type": "integer"}}, [([1], [1])], []),
    (ext.LiteralString, {"type": "string"}, [("a", "a")], []),
    (typing.Final[int], {"type": "integer"}, [(5, 5)], []),
    (Annotated[int, "How many"], {"type": "integer", "description": "How many"}, [(5, 5)], []),
    (Annotated[int, {"x-unit": "m"}], {"type": "integer", "x-unit": "m"}, [(5, 5)], []),
    ("list[int]", {"type": "array", "items": {"type": "integer"}}, [([1], [1])], []),
    (list["Color"], {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}},
     [(["red"], [Color.RED])], []),
    (
        Point,
        {
            "type": "object",
            "properties": {
                "x": {"type": "integer", "description": "How far right."},
                "y": {"type": "integer", "description": "How far up.", "default": 0},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["x"],
            "additionalProperties": False,
            "description": "A place.",
        },
        [({"x": 1}, Point(1)), ({"x": "1", "tags": '["a"]'}, Point(1, 0, ["a"])),
         ('{"x": 1}', Point(1))],
        [({}, "required"), ({"x": 1, "z": 1}, "additionalProperties"), ("a", "type"), ([], "type")],
    ),
    (
        Scaled,
        {
            "type": "object",
            "properties": {
                "x": {"type": "integer"},
                "y": {"type": "integer", "description": "How far up.", "default": 0},
                "tags": {"type": "array", "items": {"type": "string"}},
                "factor": {"type": "number"},
            },
            "required": ["x", "factor"],
            "additionalProperties": False,
        },
        [({"x": 1, "factor": 2}, Scaled(x=1, factor=2.0))],
        [({"x": 1, "factor": -1}, "type"), ({"x": 1, "factor": 1, "hidden": 1},
          "additionalProperties")],
    ),
    (
        Box[int],
        {
            "type": "object",
            "properties": {
                "content": {"type": "integer"},
                "more": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["content", "more"],
            "additionalProperties": False,
        },
        [({"content": "1", "more": [2]}, Box(1, [2]))],
        [({"content": "a", "more": []}, "type")],
    ),
    (IntBox, part(Box[int]) | {"properties": {**part(Box[int])["properties"],
     "label": {"type": "string", "default": ""}}},
     [({"content": "1", "more": []}, IntBox(1, []))], []),
    (
        Spot,
        {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "y": {"type": "number", "default": 0.5}},
            "required": ["x"],
            "additionalProperties": False,
        },
        [({"x": "1"}, Spot(1)), ({"x": 1, "y": 2}, Spot(1, 2.0))],
        [({"y": 1}, "required")],
    ),
    (Pair, {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"],
            "additionalProperties": False}, [({"a": 1, "b": []}, Pair(1, []))], []),
    (
        Movie,
        {
            "type": "object",
            "properties": {"title": {"type": "string"}, "year": {"type": "integer"}},
            "required": ["title"],
            "additionalProperties": False,
        },
        [({"title": "a"}, {"title": "a"}),
         ({"title": "a", "year": "1"}, {"title": "a", "year": 1})],
        [({"year": 1}, "required"), ({"title": "a", "b": 1}, "additionalProperties")],
    ),
    (
        Sequel,
        {
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "year": {"type": "integer"},
                "part": {"type": "integer"},
                "first": {"type": "string"},
            },
            "required": ["title", "first"],
            "additionalProperties": False,
        },
        [({"title": "a", "first": "b"}, {"title": "a", "first": "b"})],
        [({"title": "a"}, "required")],
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", HINTS, ids=lambda row: str(row[0])[:40])
def test_hint(row: tuple[Any, Any, Any, Any]) -> None:
    """The schema is as written; each value is taken and made, or refused by its keyword."""
    hint, schema, taken, refused = row
    assert part(hint) == schema
    for value, made in taken:
        got = bound(hint, value)
        assert got == made
        assert type(got) is type(made)
    for value, keyword in refused:
        assert refusal(hint, value).keyword == keyword


def test_decimal_takes_numbers_and_exact_text() -> None:
    """Text keeps every digit; a float means its shortest text."""
    assert bound(Decimal, "0.10") == Decimal("0.10")
    assert bound(Decimal, 0.1) == Decimal("0.1")
    assert bound(Decimal, 10**5000) == Decimal(10**5000)
    assert refusal(Decimal, "NaN").keyword == "type"
    assert refusal(Decimal, True).keyword == "type"
    assert [p["type"] for p in part(Decimal)["anyOf"]] == ["number", "string"]


def test_recursive_dataclass_is_a_definition() -> None:
    """Only a class that holds itself is referred to; the rest is inlined."""
    schema = schema_of(Tree).input_schema
    assert schema["properties"]["x"] == {"$ref": "#/$defs/Tree"}
    assert schema["$defs"]["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert bound(Tree, {"value": 1, "children": [{"value": "2"}]}) == Tree(1, [Tree(2)])
    violation = refusal(Tree, {"value": 1, "children": [{"value": 1, "children": [{"value": []}]}]})
    assert violation.path == "x.children[0].children[0].value"


def test_recursive_values_are_bounded() -> None:
    """A value nested deeper than the bound is refused, and is no RecursionError."""
    value: Any = 1
    for _ in range(5_000):
        value = [value]
    for hint in (Json, Nested):
        with pytest.raises(ArgumentError):
            bound(hint, value)
    tree: Any = {"value": 1}
    for _ in range(5_000):
        tree = {"value": 1, "children": [tree]}
    assert refusal(Tree, tree).keyword == "depth"


@dataclass
class Chain:
    next: Chain | None = None


@pytest.mark.parametrize(
    ("hint", "inner", "wrap"),
    [
        (Nested, 1, lambda value: [value]),
        (Json, 1, lambda value: {"a": value}),
        (Chain, {}, lambda value: {"next": value}),
        (Link, None, lambda value: [value]),
    ],
    ids=["list", "dict", "record", "tuple"],
)
def test_the_bound_of_nesting(hint: Any, inner: Any, wrap: Callable[[Any], Any]) -> None:
    """62 levels inside an argument are taken, 70 are refused."""
    value = inner
    for _ in range(62):
        value = wrap(value)
    bound(hint, value)
    for _ in range(8):
        value = wrap(value)
    with pytest.raises(ArgumentError):
        bound(hint, value)


def test_recursive_alias() -> None:
    """An alias that mentions itself, in text or as a named alias, takes nested values."""
    value = {"a": [1, None, {"b": "c"}, 2.5, True]}
    assert bound(Json, value) == value
    assert bound(Nested, [[1, []], 2]) == [[1, []], 2]
    assert list(schema_of(Nested).input_schema["$defs"]) == ["Nested"]


@dataclass
class Sum:
    left: Expression
    right: Expression


@dataclass
class Product:
    left: Expression
    right: Expression
    exact: bool = False


Expression = Union[int, Sum, Product]


def test_recursive_union_takes_linear_time() -> None:
    """Members that share their fields do not double the work at each level."""
    value: Any = "wrong"
    for _ in range(28):
        value = {"left": value, "right": 1}
    with pytest.raises(ArgumentError):
        bound(Expression, value)
    assert bound(Expression, {"left": 1, "right": 2, "exact": True}) == Product(1, 2, True)
    assert bound(Expression, {"left": 1, "right": {"left": 2, "right": 3}}) == Sum(1, Sum(2, 3))


def test_deep_failing_lists_take_linear_time() -> None:
    """Reporting where a nested item is wrong does not convert it again at each level."""
    value: Any = "wrong"
    for _ in range(40):
        value = [value]
    with pytest.raises(ArgumentError):
        bound(Nested, value)


def test_union_of_records_is_decided_by_their_keys() -> None:
    """The first record whose keys and values fit is made."""
    assert bound(Point | Movie, {"title": "a"}) == {"title": "a"}
    assert bound(Movie | Point, {"x": 1}) == Point(1)
    assert refusal(Point | Movie, {"b": 1}).keyword == "anyOf"


def test_local_classes_are_found() -> None:
    """An annotation in text may name a class of the function that is just running."""

    @dataclass
    class Local:
        n: int
        next: Local | None = None

    def takes(x: Local, y: list[Local]) -> Local:
        return x

    schema = function_schema(takes)
    made = schema.bind({"x": {"n": 1, "next": {"n": 2}}, "y": [{"n": 3}]})
    assert made == {"x": Local(1, Local(2)), "y": [Local(3)]}
    assert schema.output_schema is not None


def test_local_classes_in_a_closure_are_found_later() -> None:
    """A local class that the function uses is found after its function has returned."""

    def make() -> Any:
        @dataclass
        class Local:
            n: int

        def takes(x: Local) -> Any:
            return Local(x.n)

        return takes

    assert function_schema(make()).bind({"x": {"n": "1"}})["x"].n == 1  # type: ignore[attr-defined]


class Keyed(ext.TypedDict, Generic[T]):
    key: T


class Labelled(Keyed[int]):
    label: str


def test_generic_typed_dicts() -> None:
    """Type arguments reach the keys, the inherited ones too."""
    assert bound(Keyed[int], {"key": "1"}) == {"key": 1}
    assert bound(Labelled, {"key": "1", "label": "a"}) == {"key": 1, "label": "a"}
    assert refusal(Labelled, {"key": "a", "label": "a"}).path == "x.key"


def test_annotations_that_only_a_class_hides() -> None:
    """A field whose annotation cannot be read is refused by name."""

    @dataclass
    class Odd:
        n: NoSuchName  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InvalidTool, match="names 'NoSuchName'"):
        schema_of(Odd)


def test_local_names_hide_those_of_the_module() -> None:
    """A local class that is called like one of the module refers to itself."""

    @dataclass
    class Tree:
        leaves: list[Tree]

    def takes(x: Tree) -> None: ...

    assert function_schema(takes).bind({"x": {"leaves": [{"leaves": []}]}})["x"] == Tree([Tree([])])


def test_constraints_and_defaults_in_a_class_body() -> None:
    """A method sees the names of its class body while that body runs."""

    class Service:
        Limit = Annotated[int, {"maximum": 5}]

        def work(self, n: Limit) -> None:
            """Work."""

        schema = function_schema(work)

    assert Service.schema.input_schema["properties"]["n"] == {"type": "integer", "maximum": 5}


TYPE_STATEMENTS = """
type Ints = list[int]
type Pairs[K] = list[tuple[K, K]]
type Twig = int | list[Twig]

def takes[V: int](a: Ints, b: Pairs[str], c: Twig, d: V, e: "V") -> Ints: ...
"""
# The same in the syntax of older versions.
OLDER_STATEMENTS = """
from typing import List, Tuple, TypeVar, Union
from typing_extensions import TypeAliasType

K = TypeVar("K")
V = TypeVar("V", bound=int)
Ints = TypeAliasType("Ints", List[int])
Pairs = TypeAliasType("Pairs", List[Tuple[K, K]], type_params=(K,))
Twig = TypeAliasType("Twig", Union[int, "List[Twig]"])

def takes(a: Ints, b: Pairs[str], c: Twig, d: V, e: "V") -> Ints: ...
"""


STATEMENTS = [OLDER_STATEMENTS, *([TYPE_STATEMENTS] if sys.version_info >= (3, 12) else [])]


@pytest.mark.parametrize("source", STATEMENTS, ids=["older", "newer"][: len(STATEMENTS)])
def test_type_statements(source: str) -> None:
    """Aliases of the ``type`` statement, generic or recursive, and ``def f[T]`` are read."""
    space: dict[str, Any] = {"__name__": __name__}
    exec(source, space)
    schema = function_schema(space["takes"])
    properties = schema.input_schema["properties"]
    assert properties["a"] == {"type": "array", "items": {"type": "integer"}}
    assert properties["b"]["items"]["prefixItems"] == [{"type": "string"}] * 2
    assert properties["c"] == {"$ref": "#/$defs/Twig"}
    assert properties["d"] == properties["e"] == {"type": "integer"}
    assert schema.bind({"a": ["1"], "b": [], "c": [[1]], "d": 1, "e": 2})["a"] == [1]


def test_path_of_a_violation_shows_odd_keys_quoted_and_cut() -> None:
    """Keys are shown so that they cannot pass for something else."""
    assert refusal(dict[str, int], {"a.b": ""}).path == 'x["a.b"]'
    assert refusal(dict[str, int], {"a\nb": ""}).path.isprintable()
    assert len(refusal(dict[str, int], {"k" * 500: ""}).path) < 80


def test_violations_are_bounded_and_hold_no_value() -> None:
    """At most ten are reported, and no text of the value is in the message."""
    with pytest.raises(ArgumentError) as caught:
        bound(list[int], ["secret-%d" % n for n in range(1000)])  # noqa: UP031
    assert len(caught.value.violations) == 10
    assert "secret" not in str(caught.value)
    with pytest.raises(ArgumentError) as caught:
        bound(dict[str, int], {str(n): "secret" for n in range(1000)})
    assert len(caught.value.violations) == 10
    assert "secret" not in str(caught.value)
