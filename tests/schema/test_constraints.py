"""``Annotated`` metadata: ours, annotated_types' and pydantic's constraints, header names."""

# ruff: noqa: UP045 - both spellings of unions are under test
from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Optional
from uuid import UUID

import annotated_types as at
import pydantic
import pytest

from raxol_sync.errors import InvalidTool
from raxol_sync.schema import (
    ArgumentError,
    HeaderParam,
    Param,
    function_schema,
    header_paths,
    header_problems,
)
from tests.schema.helpers import bound, part, refusal, schema_of

# hint, what its schema must hold, taken values, [(refused value, keyword)]
CONSTRAINTS: list[tuple[Any, dict[str, Any], list[Any], list[tuple[Any, str]]]] = [
    (Annotated[int, Param(ge=1, le=3)], {"type": "integer", "minimum": 1, "maximum": 3},
     [1, 3], [(0, "minimum"), (4, "maximum"), ("4", "maximum")]),
    (Annotated[float, Param(gt=0, lt=1)], {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
     [0.5], [(0, "exclusiveMinimum"), (1.0, "exclusiveMaximum")]),
    (Annotated[int, Param(multiple_of=5)], {"multipleOf": 5}, [0, 10], [(7, "multipleOf")]),
    (Annotated[float, Param(multiple_of=0.1)], {"multipleOf": 0.1}, [0.3], [(0.35, "multipleOf"),
     (1e300, "multipleOf")]),
    (Annotated[Decimal, Param(ge=Decimal("0.5"))], {}, ["0.5"], [("0.4", "minimum")]),
    (Annotated[str, Param(min_length=2, max_length=3)], {"minLength": 2, "maxLength": 3},
     ["ab"], [("a", "minLength"), ("abcd", "maxLength")]),
    (Annotated[str, Param(pattern="^a")], {"pattern": "^a"}, ["ab"], [("b", "pattern")]),
    (Annotated[bytes, Param(max_length=4)], {"maxLength": 8}, ["AAAAAA=="],
     [("AAAAAAA=", "maxLength")]),
    (Annotated[list[int], Param(min_length=1, max_length=2)], {"minItems": 1, "maxItems": 2},
     [[1]], [([], "minItems"), ([1, 2, 3], "maxItems"), ("[]", "minItems")]),
    (Annotated[set[int], Param(max_length=1)], {"maxItems": 1}, [[1]], [([1, 2], "maxItems")]),
    (Annotated[dict[str, int], Param(min_length=1)], {"minProperties": 1}, [{"a": 1}],
     [({}, "minProperties")]),
    (dict[Annotated[str, Param(pattern="^x")], int],
     {"propertyNames": {"type": "string", "pattern": "^x"}}, [{"xa": 1}],
     [({"a": 1}, "propertyNames")]),
    (Annotated[int | None, Param(ge=1)],
     {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}, [None, 1], [(0, "minimum")]),
    (Annotated[int | str, Param(ge=1)],
     {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}, ["", 1], [(0, "minimum")]),
    (list[Annotated[int, Param(ge=1)]], {"items": {"type": "integer", "minimum": 1}}, [[1]],
     [([0], "minimum")]),
    (Annotated[int, at.Ge(1), at.Lt(5)], {"minimum": 1, "exclusiveMaximum": 5}, [4],
     [(5, "exclusiveMaximum")]),
    (Annotated[int, at.Interval(gt=1, le=5)], {"exclusiveMinimum": 1, "maximum": 5}, [5],
     [(1, "exclusiveMinimum")]),
    (Annotated[str, at.Len(0, 2)], {"maxLength": 2}, [""], [("abc", "maxLength")]),
    (Annotated[str, at.MinLen(1)], {"minLength": 1}, ["a"], [("", "minLength")]),
    (Annotated[int, at.MultipleOf(2)], {"multipleOf": 2}, [4], [(3, "multipleOf")]),
    (Annotated[int, pydantic.Field(ge=1, description="n", title="N", examples=[3],
                                   deprecated=True)],
     {"minimum": 1, "description": "n", "title": "N", "examples": [3], "deprecated": True},
     [1], [(0, "minimum")]),
    (Annotated[str, pydantic.Field(pattern="^a", max_length=2)], {"pattern": "^a", "maxLength": 2},
     ["a"], [("b", "pattern"), ("aaa", "maxLength")]),
    (Annotated[int, Param("How many", title="N", examples=[1, 2], deprecated=True)],
     {"description": "How many", "title": "N", "examples": [1, 2], "deprecated": True}, [1], []),
    (Annotated[int, "a", "b", object(), at.Unit("m")], {"description": "b"}, [1], []),
]  # fmt: skip


@pytest.mark.parametrize("row", CONSTRAINTS, ids=lambda row: str(row[0])[:60])
def test_constraint(row: tuple[Any, Any, Any, Any]) -> None:
    """The schema says it, and ``bind`` enforces it, on converted values too."""
    hint, expected, taken, refused = row
    schema = part(hint)
    assert {key: schema.get(key) for key in expected} == expected
    for value in taken:
        bound(hint, value)
    for value, keyword in refused:
        assert refusal(hint, value).keyword == keyword


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (Annotated[str, Param(ge=1)], "ge does not fit a string"),
        (Annotated[int, Param(min_length=1)], "min_length does not fit an integer"),
        (Annotated[UUID, Param(pattern="a")], "pattern does not fit a UUID"),
        (Annotated[Any, Param(ge=1)], "does not fit any value"),
        (Annotated[bool | None, Param(ge=1)], "does not fit"),
        (Annotated[str, Param(pattern="(")], "no regular expression"),
        (Annotated[str, Param(pattern=5)], "text of a regular expression"),  # type: ignore[arg-type]
        (Annotated[int, Param(ge=float("nan"))], "finite number"),
        (Annotated[int, Param(multiple_of=0)], "greater than 0"),
        (Annotated[str, Param(max_length=-1)], "at least 0"),
        (Annotated[str, Param(examples=[object()])], "must be JSON"),
        (Annotated[int, at.Ge("a")], "finite number"),
    ],
)  # fmt: skip
def test_misfits_are_refused(hint: Any, words: str) -> None:
    """A constraint that cannot be enforced is refused when the function is registered."""
    with pytest.raises(InvalidTool, match=words):
        schema_of(hint)


# --- headers -----------------------------------------------------------------------------------


@dataclass
class Place:
    region: Annotated[str, HeaderParam("Region")]


@pytest.mark.parametrize("hint", [str, int, bool, Optional[str], str | None])
def test_header_beside_one_primitive_type(hint: Any) -> None:
    """``x-mcp-header`` stands beside a primitive type; ``None`` is taken and not advertised."""
    schema = part(Annotated[hint, HeaderParam("Region")])
    assert schema["x-mcp-header"] == "Region"
    assert schema["type"] in ("string", "integer", "boolean")
    assert "anyOf" not in schema
    if hint not in (str, int, bool):
        assert bound(Annotated[hint, HeaderParam("Region")], None) is None


def test_header_with_default_none() -> None:
    """A default of ``None`` makes the parameter optional and is not written beside the type."""

    def takes(
        a: Annotated[str | None, HeaderParam("A")] = None,
        b: Annotated[str, HeaderParam("B")] = None,  # type: ignore[assignment]  # noqa: RUF013
    ) -> None: ...

    schema = function_schema(takes)
    assert schema.input_schema["properties"] == {
        "a": {"type": "string", "x-mcp-header": "A"},
        "b": {"type": "string", "x-mcp-header": "B"},
    }
    assert schema.bind({"a": None, "b": None}) == {"a": None, "b": None}


def test_header_inside_a_record() -> None:
    """A field that is reached through properties alone may be a header."""
    schema = schema_of(Place).input_schema
    assert header_paths(schema) == {("x", "region"): "Region"}
    assert header_problems(schema) == []


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (Annotated[float, HeaderParam("A")], "needs a str, int or bool"),
        (Annotated[list[str], HeaderParam("A")], "needs a str, int or bool"),
        (Annotated[int | str, HeaderParam("A")], "needs a str, int or bool"),
        (Annotated[str, HeaderParam("")], "HTTP token"),
        (Annotated[str, HeaderParam("A b")], "HTTP token"),
        (Annotated[str, HeaderParam("A\r\nB: c")], "HTTP token"),
        (list[Place], "nested by properties alone"),
        (Place | None, "nested by properties alone"),
        (dict[str, Place], "nested by properties alone"),
        (Annotated[float, {"x-mcp-header": "A"}], "must be string, integer or boolean"),
        (Annotated[str, {"x-mcp-header": 5}], "HTTP token"),
    ],
)  # fmt: skip
def test_bad_headers_are_refused(hint: Any, words: str) -> None:
    """Clients must drop such a tool, so it is not registered."""
    with pytest.raises(InvalidTool, match=words):
        schema_of(hint)


def test_headers_are_unique_without_regard_to_case() -> None:
    """Two arguments cannot be the same header."""

    def takes(a: Annotated[str, HeaderParam("Region")], b: Place) -> None: ...

    Place.__annotations__["region"] = Annotated[str, HeaderParam("rEGION")]
    try:
        with pytest.raises(InvalidTool, match="already used by a"):
            function_schema(takes)
    finally:
        Place.__annotations__["region"] = Annotated[str, HeaderParam("Region")]


def test_header_names_in_data_are_no_headers() -> None:
    """A default or enum may hold the key."""
    schema = {"properties": {"a": {"default": {"x-mcp-header": 5}, "enum": [{"x-mcp-header": 1}]}}}
    assert header_problems(schema) == []
    assert header_problems({"x-mcp-header": "A", "type": "string"}) != []
    assert header_problems({"allOf": [{"x-mcp-header": "A", "type": "string"}]}) != []


def test_constraints_of_fields() -> None:
    """Fields of records take metadata as parameters do."""

    @dataclass
    class Order:
        count: Annotated[int, Param("How many", ge=1)] = 1

    assert part(Order)["properties"]["count"] == {
        "type": "integer", "description": "How many", "minimum": 1, "default": 1,
    }  # fmt: skip
    with pytest.raises(ArgumentError, match=r"'x\.count' is too small: it must be at least 1$"):
        bound(Order, {"count": 0})
