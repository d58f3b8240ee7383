"""`a=1` on the command line: JSON where the tool's schema takes that, else the string as typed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.cli.values import arguments, shape, signature, typed

INTEGER, STRING, NUMBER = {"type": "integer"}, {"type": "string"}, {"type": "number"}
EITHER = {"anyOf": [STRING, {"type": "null"}]}
ROOT = {"$defs": {"Count": INTEGER, "Loop": {"$ref": "#/$defs/Loop"}, "a/b": STRING}}


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (INTEGER, "1", 1),
        (INTEGER, "-1", -1),
        (INTEGER, "1.0", 1.0),
        (INTEGER, "1.5", "1.5"),
        (INTEGER, "one", "one"),
        (INTEGER, "true", "true"),
        (INTEGER, "9" * 5000, "9" * 5000),
        ({"type": "integer", "maximum": 3}, "7", 7),
        (NUMBER, "1e3", 1000.0),
        (NUMBER, "1e999", "1e999"),
        (NUMBER, "NaN", "NaN"),
        (STRING, "1", "1"),
        (STRING, "null", "null"),
        (STRING, '"x"', '"x"'),
        ({"type": ["string", "integer"]}, "1", 1),
        ({"type": ["string", "integer"]}, '"1"', "1"),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "1", "1"),
        ({"type": "array"}, "[1]", [1]),
        ({"type": "object"}, '{"a": [}', '{"a": [}'),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        (EITHER, "null", None),
        (EITHER, "1", "1"),
        ({"oneOf": [INTEGER, NUMBER]}, "1.5", 1.5),
        ({"allOf": [INTEGER, {"minimum": 2}]}, "1", 1),
        ({"allOf": [INTEGER, STRING]}, "1", "1"),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"enum": [1, 2]}, "1", 1),
        ({"enum": [True]}, "1", "1"),
        ({"const": 3}, "3", 3),
        ({"$ref": "#/$defs/Count"}, "1", 1),
        ({"$ref": "#/$defs/a~1b"}, "1", "1"),
        ({"$ref": "#/$defs/Loop"}, "1", 1),
        ({"$ref": "https://example.com"}, "1", 1),
        (True, "1", 1),
        (False, "1", "1"),
        ({}, "word", "word"),
        ({}, '"1"', "1"),
        (None, "[1]", [1]),
        ({"type": 7, "anyOf": 3, "enum": "x"}, "1", "1"),
    ],
)
def test_typed(schema: Any, text: str, value: Any) -> None:
    """By the kind of value alone: a number that is out of bounds is still a number."""
    found = typed(text, schema, ROOT)
    assert (found, type(found)) == (value, type(value))


def test_arguments_look_up_each_schema() -> None:
    """Those that the schema does not name follow `additionalProperties`."""
    schema: dict[str, Any] = {"properties": {"a": STRING}}
    assert arguments({"a": "1", "b": "1"}, schema) == {"a": "1", "b": 1}
    assert arguments({"b": "1"}, {**schema, "additionalProperties": STRING}) == {"b": "1"}
    assert arguments({"b": "1"}, {"properties": "?"}) == {"b": 1}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
)
WORDS = ("type", "anyOf", "oneOf", "allOf", "enum", "const", "$ref", "properties", "required")
SCHEMAS = st.dictionaries(st.sampled_from(WORDS), JSON)


@given(SCHEMAS, st.text(max_size=5) | st.sampled_from(["1", "[]", '"x"']))
def test_no_schema_of_a_server_makes_it_fail(schema: dict[str, Any], text: str) -> None:
    """Whatever nonsense it is."""
    typed(text, schema, schema)
    assert isinstance(shape(schema, schema), str)
    assert isinstance(signature(schema), str)


def test_signature_shows_how_arguments_are_typed() -> None:
    """Required ones first as they come, optional ones in brackets, choices written out."""
    schema = {
        "properties": {
            "a": INTEGER,
            "unit": {"enum": ["C", "F"]},
            "n": {"$ref": "#/$defs/Count"},
            "x": EITHER,
            "y": {},
        },
        "required": ["a"],
        **ROOT,
    }
    assert signature(schema) == "a=integer [unit=C|F] [n=integer] [x=string|null] [y=any]"
