"""Short ways to make a schema of one hint and to use it."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

import jsonschema
import pytest

from raxol_sync.schema import ArgumentError, FunctionSchema, Violation, function_schema


def schema_of(hint: Any) -> FunctionSchema:
    """Return the schema of a function with one parameter ``x`` of this hint."""

    def takes(x: Any) -> None:
        """Take it."""

    function = FunctionType(takes.__code__, _names_of_the_test())
    function.__annotations__ = {"x": hint, "return": None}
    return function_schema(function)


def returning(hint: Any) -> FunctionSchema:
    """Return the schema of a function without parameters and with this return hint."""

    def gives() -> Any:
        """Give it."""

    function = FunctionType(gives.__code__, _names_of_the_test())
    function.__annotations__ = {"return": hint}
    return function_schema(function)


def _names_of_the_test() -> dict[str, Any]:
    """Return the globals of the test that called: names in its hints mean what it says."""
    frame = sys._getframe(1)
    while frame.f_globals is globals() and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_globals


def part(hint: Any) -> dict[str, Any]:
    """Return the schema of the one parameter; the whole is checked to be valid 2020-12."""
    whole = schema_of(hint).input_schema
    jsonschema.Draft202012Validator.check_schema(whole)
    found = whole["properties"]["x"]
    assert isinstance(found, dict)
    return found


def bound(hint: Any, value: object) -> object:
    """Return what ``bind`` makes of the value."""
    return schema_of(hint).bind({"x": value})["x"]


def refusal(hint: Any, value: object) -> Violation:
    """Return the only violation that ``bind`` reports for the value."""
    schema = schema_of(hint)
    with pytest.raises(ArgumentError) as caught:
        schema.bind({"x": value})
    assert len(caught.value.violations) == 1, str(caught.value)
    return caught.value.violations[0]
