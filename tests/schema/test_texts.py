"""The texts of argument errors, all of them, as a caller reads them."""

from __future__ import annotations

import datetime as dt
import enum
import pathlib
import re
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest

from raxol_sync.schema import ArgumentError, Param, compile_schema, function_schema, to_json


class Size(enum.Enum):
    SMALL = "s"
    MEDIUM = "m"
    LARGE = "l"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass
class Point:
    x: int
    y: int

    def __post_init__(self) -> None:
        if self.x == 13:
            raise ValueError(f"{self.x} is unlucky")


@dataclass
class Name:
    first: str


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


Tree = list["Tree"]
DAY = "an ISO 8601 date such as 2026-07-28"
SECRET = "s3cr3t"

# The name of an argument, its hint, what is given, and the whole text without its beginning.
OF_HINTS: list[tuple[str, Any, Any, str]] = [
    ("count", int, ..., "'count' is missing: give an integer"),
    ("x", Any, ..., "'x' is missing: give any value"),
    ("size", Size, ..., "'size' is missing: give one of \"s\", \"m\", \"l\""),
    ("at", Point, ..., "'at' is missing: give an object (Point)"),
    ("at", Point, {"x": 1}, "'at.y' is missing: give an integer"),
    ("at", Point, {"x": 1, "y": 1, "z": 1},
     "'at.z' is not a known name: leave it out, or use one of: x, y"),
    ("at", Point, {"x": 13, "y": 1}, "'at' must be an object with values that Point accepts"),
    ("at", Point, SECRET, "'at' must be an object (Point), not a string"),
    ("count", int, SECRET, "'count' must be an integer, not a string"),
    ("count", int, 1.5, "'count' must be an integer, not a number with a fraction"),
    ("count", int, True, "'count' must be an integer, not a boolean"),
    ("count", int, None, "'count' must be an integer, not null"),
    ("share", float, SECRET, "'share' must be a number, not a string"),
    ("share", float, float("nan"), "'share' must be a number, not NaN or infinity"),
    ("share", float, 10**400, "'share' must be a number of at most 1.8e308"),
    ("price", Decimal, SECRET, "'price' must be a decimal number, not a string"),
    ("price", Decimal, float("inf"), "'price' must be a decimal number, not NaN or infinity"),
    ("text", str, 1, "'text' must be a string, not an integer"),
    ("text", str, 1.0, "'text' must be a string, not a number"),
    ("text", str, [], "'text' must be a string, not an array"),
    ("text", str, {}, "'text' must be a string, not an object"),
    ("deep", bool, SECRET, "'deep' must be true or false, not a string"),
    ("deep", bool, 1, "'deep' must be true or false, not an integer"),
    ("nothing", None, 1, "'nothing' must be null, not an integer"),
    ("raw", bytes, "?", "'raw' cannot be decoded: give a string of base64"),
    ("raw", bytes, 1, "'raw' must be a string of base64, not an integer"),
    ("day", dt.date, SECRET, f"'day' cannot be read: give {DAY}"),
    ("day", dt.date, 5, f"'day' must be {DAY}, not an integer"),
    ("at", dt.datetime, SECRET,
     "'at' cannot be read: give an ISO 8601 date and time such as 2026-07-28T08:30:00Z"),
    ("at", dt.time, SECRET, "'at' cannot be read: give an ISO 8601 time of day such as 08:30:00"),
    ("long", dt.timedelta, SECRET,
     "'long' cannot be read: give an ISO 8601 duration such as PT1H30M"),
    ("id", uuid.UUID, SECRET, "'id' cannot be read: give a UUID"),
    ("file", pathlib.Path, "\0",
     "'file' cannot be read: give a file path without a null character"),
    ("like", re.Pattern, "(", "'like' cannot be read: give a regular expression"),
    ("size", Size, SECRET, "'size' must be one of \"s\", \"m\", \"l\""),
    ("size", Literal["s"], SECRET, "'size' must be \"s\""),
    ("size", Literal[1, True, None], SECRET, "'size' must be one of 1, true, null"),
    ("may", Rights, 9, "'may' must be an integer that combines flags of Rights"),
    ("when", int | None, [], "'when' must be an integer, not an array"),
    ("when", int | list[int] | None, SECRET,
     "'when' must be an integer, an array or null, not a string"),
    ("who", Point | Name, {"a": 1},
     "'who' must be an object (Point) or an object (Name), and does not fit"),
    ("tags", list[str], SECRET, "'tags' must be an array, not a string"),
    ("tags", list[str], ["a", 1], "'tags[1]' must be a string, not an integer"),
    ("tags", set[str], ["a", "a"], "'tags' repeats something: it must have no two equal items"),
    ("tags", set[Any], [[]], "'tags' must hold items that are no arrays and no objects"),
    ("pair", tuple[int, int], [1], "'pair' has too few items: it must have exactly 2"),
    ("pair", tuple[int, int], [1, 2, 3], "'pair' has too many items: it must have exactly 2"),
    ("pair", tuple[int, int], {}, "'pair' must be an array, not an object"),
    ("prices", dict[str, int], [], "'prices' must be an object, not an array"),
    ("prices", dict[str, int], {"a.b": SECRET},
     "'prices[\"a.b\"]' must be an integer, not a string"),
    ("prices", dict[int, int], {"x": 1},
     "'prices.x' is not a key that fits: as a key, give an integer"),
    ("prices", dict[Size, int], {"x": 1},
     "'prices.x' is not a key that fits: as a key, give one of \"s\", \"m\", \"l\""),
    ("prices", dict[uuid.UUID, int], {str(uuid.UUID(int=1)): 1, uuid.UUID(int=1).hex: 1},
     "'prices' repeats something: it must have no two keys that mean the same"),
    ("tree", Tree, deep(70),
     f"'tree{'[0]' * 64}' is nested too deeply: it must have at most 64 levels"),
    ("count", Annotated[int, Param(ge=1)], 0, "'count' is too small: it must be at least 1"),
    ("count", Annotated[int, Param(gt=1)], 1, "'count' is too small: it must be more than 1"),
    ("count", Annotated[int, Param(le=9)], 10, "'count' is too large: it must be at most 9"),
    ("count", Annotated[int, Param(lt=9)], 9, "'count' is too large: it must be less than 9"),
    ("count", Annotated[int, Param(multiple_of=5)], 9, "'count' must be a multiple of 5"),
    ("code", Annotated[str, Param(min_length=2)], "a",
     "'code' is too short: it must have at least 2 characters"),
    ("code", Annotated[str, Param(max_length=1)], SECRET,
     "'code' is too long: it must have at most 1 character"),
    ("code", Annotated[str, Param(pattern="^[a-z]+$")], SECRET,
     "'code' does not have the right form: give text that matches ^[a-z]+$"),
    ("raw", Annotated[bytes, Param(min_length=2)], "",
     "'raw' is too short: it must have at least 2 bytes"),
    ("tags", Annotated[list[str], Param(max_length=3)], list("abcd"),
     "'tags' has too many items: it must have at most 3 items"),
    ("tags", Annotated[list[str], Param(min_length=1)], [],
     "'tags' has too few items: it must have at least 1 item"),
    ("prices", Annotated[dict[str, int], Param(min_length=1)], {},
     "'prices' has too few entries: it must have at least 1 entry"),
    ("prices", Annotated[dict[str, int], Param(max_length=1)], {"a": 1, "b": 2},
     "'prices' has too many entries: it must have at most 1 entry"),
]  # fmt: skip

# A schema of the argument `order`, what is given, and the text.
OF_SCHEMAS: list[tuple[Any, Any, str]] = [
    ({"type": "integer"}, ..., "'order' is missing: give an integer"),
    ({"enum": ["a", 1]}, ..., "'order' is missing: give one of \"a\", 1"),
    ({}, ..., "'order' is missing: give a value"),
    ({"type": "integer"}, SECRET, "'order' must be an integer, not a string"),
    ({"type": ["string", "null"]}, 1, "'order' must be a string or null, not an integer"),
    ({"type": "number"}, True, "'order' must be a number, not a boolean"),
    ({"enum": ["a", 1]}, SECRET, "'order' must be one of \"a\", 1"),
    ({"enum": list(range(22))}, SECRET,
     f"'order' must be one of {', '.join(map(str, range(20)))}, ..."),
    ({"const": {"a": 1}}, SECRET, "'order' must be {\"a\": 1}"),
    ({"minimum": 3}, 1, "'order' is too small: it must be at least 3"),
    ({"exclusiveMaximum": 3}, 3, "'order' is too large: it must be less than 3"),
    ({"multipleOf": 3}, 1, "'order' must be a multiple of 3"),
    ({"minLength": 1}, "", "'order' is too short: it must have at least 1 character"),
    ({"maxLength": 3}, SECRET, "'order' is too long: it must have at most 3 characters"),
    ({"pattern": "^a"}, SECRET,
     "'order' does not have the right form: give text that matches ^a"),
    ({"minItems": 1}, [], "'order' has too few items: it must have at least 1 item"),
    ({"uniqueItems": True}, [1, 1], "'order' repeats something: it must have no two equal items"),
    ({"items": {"type": "null"}}, [1], "'order[0]' must be null, not an integer"),
    ({"contains": {"type": "null"}}, [1],
     "'order' must hold an item that fits the rule 'contains' of its schema"),
    ({"minProperties": 2}, {}, "'order' has too few entries: it must have at least 2 entries"),
    ({"required": ["a"]}, {}, "'order.a' is missing: give a value"),
    ({"properties": {"a": {}}, "additionalProperties": False}, {"b": SECRET},
     "'order.b' is not a known name: leave it out, or use one of: a"),
    ({"unevaluatedProperties": False}, {"b": SECRET},
     "'order.b' is not a known name: leave it out"),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1},
     "'order.b' is missing, since others were given: give a value"),
    ({"propertyNames": {"maxLength": 1}}, {"ab": 1},
     "'order.ab' is not a key that fits: as a key, give at most 1 character"),
    ({"anyOf": [{"type": "null"}]}, SECRET,
     "'order' must fit one of the alternatives (anyOf) of its schema"),
    ({"oneOf": [{}, {}]}, SECRET,
     "'order' must fit exactly one of the alternatives (oneOf) of its schema"),
    ({"not": {}}, SECRET,
     "'order' must be something else: its schema excludes what was given (not)"),
    ({"unevaluatedItems": False}, [1],
     "'order' must fit the rule 'unevaluatedItems' of its schema"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "hint", "value", "text"), OF_HINTS, ids=[t for *_, t in OF_HINTS])
def test_s44_what_is_said_of_arguments_that_do_not_fit(
    name: str, hint: Any, value: Any, text: str
) -> None:
    """Which, what is wrong, and what to give; never the value."""
    takes = eval(f"lambda {name}: None")  # a function with a parameter of this name
    takes.__annotations__ = {name: hint}
    with pytest.raises(ArgumentError) as caught:
        function_schema(takes).bind({} if value is ... else {name: value})
    assert str(caught.value) == f"invalid arguments: {text}"
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(("schema", "value", "text"), OF_SCHEMAS, ids=[t for *_, t in OF_SCHEMAS])
def test_s44_what_is_said_by_a_schema_written_by_hand(schema: Any, value: Any, text: str) -> None:
    """The same words for the same faults."""
    whole = {"type": "object", "properties": {"order": schema}, "required": ["order"]}
    with pytest.raises(ArgumentError) as caught:
        compile_schema(whole).check({} if value is ... else {"order": to_json(value)})
    assert str(caught.value) == f"invalid arguments: {text}"
    assert SECRET not in str(caught.value)


def test_s44_what_is_no_object_of_arguments() -> None:
    """It has no path, so it is named."""

    def takes(a: int) -> None: ...

    with pytest.raises(ArgumentError) as caught:
        function_schema(takes).bind([1])  # type: ignore[arg-type]
    what = "what was given as arguments must be an object of arguments by name, not an array"
    assert str(caught.value) == f"invalid arguments: {what}"
