"""Properties that hold for generated hints and values."""

from __future__ import annotations

import contextlib
import datetime as dt
import enum
import json
import uuid
from dataclasses import make_dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional, Union

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.errors import InvalidTool
from raxol_sync.schema import ArgumentError, Param, ResultError, function_schema, to_json
from raxol_sync.schema.hints import Builder
from raxol_sync.schema.scopes import Scope
from raxol_sync.schema.violations import Mismatch
from tests.schema.helpers import returning, schema_of


class Color(enum.Enum):
    RED = "red"
    ONE = 1


SCALARS = st.sampled_from(
    [
        str, int, float, bool, None, bytes, Any, Decimal, uuid.UUID, dt.date, dt.datetime, dt.time,
        dt.timedelta, Color, Literal["a", 1, True], Annotated[int, Param(ge=0, le=5)],
        Annotated[str, Param(max_length=2)], Annotated[float, Param(gt=0)],
    ]
)  # fmt: skip


def generic(kind: Any, *arguments: Any) -> Any:
    """Return ``kind[arguments]``, for arguments that are known only now."""
    return kind[arguments if len(arguments) > 1 else arguments[0]]


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda hint: generic(list, hint)),
        inner.map(lambda hint: generic(dict, str, hint)),
        inner.map(lambda hint: generic(dict, int, hint)),
        inner.map(lambda hint: generic(tuple, hint, ...)),
        inner.map(lambda hint: generic(set, hint)),
        inner.map(lambda hint: generic(Optional, hint)),
        st.tuples(inner, inner).map(lambda hints: generic(Union, *hints)),
        st.tuples(inner, inner).map(lambda hints: generic(tuple, *hints)),
        st.tuples(inner, inner).map(lambda hints: make_dataclass(
            "Made", [("a", hints[0]), ("b", hints[1], None)])),
    )  # fmt: skip


HINTS = st.recursive(SCALARS, _containers, max_leaves=5)
TEXTS = st.sampled_from(
    ["a", "red", "5", "1.5", "true", "null", "2026-07-28", "2026-07-28T10:00:00Z", "10:00", "PT1S",
     "aGk=", "[1]", '{"a": 1}', "00000000-0000-0000-0000-000000000000", "[", ""]
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 7), st.floats(-2, 7), TEXTS,
              st.just(10**400), st.just(float("nan"))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "1"]), inner, max_size=2),
    ),
    max_leaves=6,
)  # fmt: skip


@given(HINTS)
def test_every_schema_is_valid_and_refers_to_nothing(hint: Any) -> None:
    """Input and output schemas are valid 2020-12, of type object, and inlined."""
    made = schema_of(hint)
    output = returning(hint).output_schema
    for schema in [made.input_schema] + ([output] if output else []):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert "$ref" not in json.dumps(schema)


@given(HINTS, VALUES)
def test_what_is_taken_exactly_fits_the_schema(hint: Any, value: Any) -> None:
    """A value that needs no conversion is valid for the schema that clients see."""
    node = Builder().build(hint, Scope())
    try:
        node.exact(value, 0)
    except Mismatch:
        return
    jsonschema.validate(value, {**node.schema})


@given(HINTS, VALUES)
def test_lenient_takes_what_exact_takes(hint: Any, value: Any) -> None:
    """Leniency only adds, and gives the same where exact fits."""
    node = Builder().build(hint, Scope())
    try:
        made = node.exact(value, 0)
    except Mismatch:
        return
    assert repr(node.lenient(value, 0)) == repr(made)


@given(HINTS, VALUES)
def test_bind_takes_or_refuses_and_nothing_else(hint: Any, value: Any) -> None:
    """No value makes ``bind`` raise anything but its own error; what it makes can be sent back."""
    schema = schema_of(hint)
    try:
        made = schema.bind({"x": value})["x"]
    except ArgumentError:
        return
    if "nan" not in repr(value) and hint is not Any and "Any" not in repr(schema):
        try:
            again = to_json(made)
        except ValueError:
            return
        assert schema.bind({"x": again})["x"] == made or made != made


@given(HINTS, VALUES)
def test_checked_results_fit_the_output_schema(hint: Any, value: Any) -> None:
    """What ``dump`` lets through is valid for the output schema that clients see."""
    schema = returning(hint)
    if schema.output_schema is None:
        return
    try:
        made = schema.dump(value)
    except ResultError:
        return
    sent = {"result": made} if schema.wraps_result else made
    jsonschema.validate(sent, schema.output_schema)


@given(st.one_of(VALUES, st.text(), HINTS, st.functions()))
def test_any_object_as_a_hint_is_taken_or_refused(hint: Any) -> None:
    """Whatever an annotation is, registering raises only ``InvalidTool``."""

    def takes(x: Any) -> None: ...

    takes.__annotations__ = {"x": hint, "return": hint}
    with contextlib.suppress(InvalidTool):
        function_schema(takes)
