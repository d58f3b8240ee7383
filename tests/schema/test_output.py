"""Return hints: which promise a JSON value, its schema, and checking results."""

# ruff: noqa: UP007, UP045 - both spellings of unions are under test
from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, ClassVar, NamedTuple, NewType, Optional, TypedDict, Union

import jsonschema
import pytest
import typing_extensions as ext

from raxol_sync.schema import Param, ResultError
from tests.schema.helpers import returning


@dataclass
class Picture:
    __mcp_content__: ClassVar[bool] = True
    data: str = ""


class Unit(Enum):
    C = "c"


@dataclass
class Weather:
    degrees: float
    unit: Unit = Unit.C
    seed: InitVar[int] = 0
    at: dt.date = field(init=False, default=dt.date(2026, 7, 28))


@dataclass
class Storm(Weather):
    name: str = ""


@dataclass
class Tree:
    children: list[Tree]


class Row(NamedTuple):
    n: int


class Record(TypedDict):
    n: int
    m: ext.NotRequired[int]


Text = NewType("Text", str)
Alias = ext.TypeAliasType("Alias", "list[Picture]")


@pytest.mark.parametrize(
    "hint",
    [
        str, bytes, None, type(None), Any, object, dict, Mapping, Picture, list[Picture],
        Picture | str, Optional[Picture], tuple[Picture, ...], list[str | Picture], str | None,
        str | dict[str, int], Text, Annotated[str, "text"], Alias, "Unknown", Iterator[int],
        Callable[[], int], complex, list[complex], "1 +", dict[str, Picture], Annotated[dict, "d"],
    ],
    ids=str,
)  # fmt: skip
def test_hints_that_promise_no_json(hint: Any) -> None:
    """Text, content and unknown hints give no output schema, and are no error."""
    schema = returning(hint)
    assert schema.output_schema is None
    assert not schema.wraps_result


def test_a_function_without_return_hint() -> None:
    """A missing hint promises nothing."""
    from raxol_sync.schema import function_schema

    assert function_schema(lambda: 1).output_schema is None


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (int, {"type": "integer"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Unit, {"type": "string", "enum": ["c"]}),
        (dt.date, {"type": "string", "format": "date"}),
        (Union[int, dict[str, int]], None),
        (Weather | None, None),
    ],
    ids=str,
)
def test_other_values_are_wrapped(hint: Any, schema: Any) -> None:
    """What is no object is described as the ``result`` of one."""
    made = returning(hint)
    assert made.wraps_result
    assert made.output_schema is not None
    assert made.output_schema["required"] == ["result"]
    if schema is not None:
        assert made.output_schema["properties"] == {"result": schema}


@pytest.mark.parametrize(
    ("hint", "value", "result"),
    [
        (dict[str, int], {"a": 1}, {"a": 1}),
        (dict[str, Any], {"a": [1]}, {"a": [1]}),
        (Weather, Weather(1), {"degrees": 1, "unit": "c", "at": "2026-07-28"}),
        (Weather, Storm(1.5, name="x"),
         {"degrees": 1.5, "unit": "c", "at": "2026-07-28", "name": "x"}),
        (Weather | Row, Row(1), {"n": 1}),
        (Row, Row(1), {"n": 1}),
        (Record, {"n": 1}, {"n": 1}),
        (Tree, Tree([Tree([])]), {"children": [{"children": []}]}),
    ],
    ids=str,
)  # fmt: skip
def test_objects_are_not_wrapped(hint: Any, value: object, result: object) -> None:
    """The schema is the object's own, and what ``dump`` returns fits it."""
    made = returning(hint)
    assert made.output_schema is not None
    assert not made.wraps_result
    assert made.output_schema["type"] == "object"
    jsonschema.Draft202012Validator.check_schema(made.output_schema)
    assert made.dump(value) == result
    jsonschema.validate(result, made.output_schema)


@pytest.mark.parametrize(
    ("hint", "value", "path", "keyword"),
    [
        (int, "5", "", "type"),
        (int, 3.5, "", "type"),
        (float, "1.5", "", "type"),
        (list[int], [1, "secret"], "[1]", "type"),
        (dict[str, int], {"a": "secret"}, "a", "type"),
        (Record, {"m": 1}, "n", "required"),
        (Weather, {"degrees": 1, "unit": "secret", "at": "2026-07-28"}, "unit", "enum"),
        (Weather, [1], "", "type"),
        (Decimal, [1], "", "type"),
        (Annotated[int, Param(ge=1)], 0, "", "minimum"),
        (int, None, "", "type"),
        (int | list[int], "secret", "", "anyOf"),
    ],
)
def test_a_result_that_breaks_the_hint(hint: Any, value: object, path: str, keyword: str) -> None:
    """The path and the keyword are named, not the value."""
    with pytest.raises(ResultError) as caught:
        returning(hint).dump(value)
    assert [(v.path, v.keyword) for v in caught.value.violations] == [(path, keyword)]
    assert "secret" not in str(caught.value)


def test_results_that_fit_stay_as_they_are() -> None:
    """A whole float is an integer for JSON Schema, an int is a number; neither is changed."""
    assert returning(int).dump(3.0) == 3.0
    assert type(returning(float).dump(2)) is int
    assert returning(Optional[int]).dump(None) is None
    assert returning(str).dump(5) == 5  # no schema, nothing promised


@pytest.mark.parametrize("value", [object(), float("nan"), {1.5: 1}, [{1, (2,), object}]])
def test_a_result_without_json_form(value: object) -> None:
    """It is a result error that names the type, whatever the hint."""
    for hint in (int, Any, dict):
        with pytest.raises(ResultError):
            returning(hint).dump(value)


def test_recursive_output_has_its_definition_at_the_root() -> None:
    """The root is an object itself, with the definition beside it."""
    schema = returning(list[Tree]).output_schema
    assert schema is not None
    assert schema["properties"]["result"]["items"] == {"$ref": "#/$defs/Tree"}
    assert set(schema["$defs"]) == {"Tree"}
