"""Schemas written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from raxol_sync.schema import ArgumentError, check_schema_shape, compile_schema


def violations(schema: dict[str, Any], value: object) -> list[tuple[str, str]]:
    """Return path and keyword of each violation."""
    with pytest.raises(ArgumentError) as caught:
        compile_schema(schema, root_object=False).check(value)
    assert "secret" not in str(caught.value)
    return [(v.path, v.keyword) for v in caught.value.violations]


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def test_s44_checking() -> None:
    """What fits passes; what does not is named by path and keyword, without the value."""
    compile_schema(PERSON).check({"name": "a", "tags": [1]})
    assert sorted(violations(PERSON, {"tags": [1, "secret"], "b": "secret"})) == [
        ("b", "additionalProperties"),
        ("name", "required"),
        ("tags[1]", "type"),
    ]


@pytest.mark.parametrize(
    ("schema", "value", "keyword", "words"),
    [
        ({"enum": ["a", 1]}, "secret", "enum", 'one of "a", 1'),
        ({"const": {"a": 1}}, "secret", "const", 'must be {"a": 1}'),
        ({"minimum": 3}, 1, "minimum", "at least 3"),
        ({"multipleOf": 3}, 1, "multipleOf", "a multiple of 3"),
        ({"maxLength": 3}, "secret", "maxLength", "at most 3 characters"),
        ({"pattern": "^a"}, "secret", "pattern", r"matches \^a"),
        ({"type": ["string", "null"]}, 1, "type", "a string or null, not an integer"),
        ({"minItems": 1}, [], "minItems", "at least 1 item$"),
        ({"uniqueItems": True}, ["secret", "secret"], "uniqueItems", "no two equal"),
        ({"minProperties": 1}, {}, "minProperties", "at least 1 entry$"),
        ({"anyOf": [{"type": "null"}]}, "secret", "anyOf", "one of the alternatives"),
        ({"oneOf": [{}, {}]}, "secret", "oneOf", "exactly one of the alternatives"),
        ({"not": {}}, "secret", "not", "excludes what was given"),
        ({"properties": {"a": False}}, {"a": "secret"}, "false",
         "holds a value that must not be given"),
        ({"unevaluatedProperties": False}, {"b": "secret"}, "unevaluatedProperties",
         "'b' is not a known name"),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"ab": 1, "c": "secret"},
         "additionalProperties", "'c' is not a known name: leave it out$"),
        ({"required": ["a"]}, {}, "required", "'a' is missing: give a value"),
        ({"required": ["a"], "properties": {"a": {"type": "integer"}}}, {}, "required",
         "'a' is missing: give an integer"),
        ({"required": ["a"], "properties": {"a": {"enum": ["x", "y"]}}}, {}, "required",
         "'a' is missing: give one of \"x\", \"y\""),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "dependentRequired",
         "'b' is missing, since others were given: give a value"),
        ({"propertyNames": {"pattern": "^a"}}, {"b": 1}, "propertyNames",
         r"'b' is not a key that fits: as a key, give text that matches \^a"),
        ({"properties": {"propertyNames": {"type": "null"}}}, {"propertyNames": 1}, "type",
         "'propertyNames' must be null, not an integer"),
        ({"contains": {"type": "null"}}, [1], "contains", "must hold an item that fits"),
        ({"if": {}, "then": {"minimum": 3}}, 1, "minimum", "at least 3"),
        ({"const": "x" * 500}, "secret", "const", r"\.\.\.$"),
    ],
)  # fmt: skip
def test_words_come_from_the_schema(
    schema: dict[str, Any], value: object, keyword: str, words: str
) -> None:
    """Each keyword has an expectation in words, and none of them quotes the value."""
    with pytest.raises(ArgumentError, match=words) as caught:
        compile_schema(schema, root_object=False).check(value)
    assert [v.keyword for v in caught.value.violations] == [keyword]
    assert "secret" not in str(caught.value)


def test_violations_are_bounded() -> None:
    """At most ten are reported."""
    schema = {"items": {"type": "integer"}}
    assert len(violations(schema, ["secret"] * 100)) == 10


@pytest.mark.parametrize(
    ("dialect", "schema", "value"),
    [
        ("https://json-schema.org/draft/2020-12/schema", {"prefixItems": [{"type": "null"}]}, [1]),
        ("https://json-schema.org/draft/2019-09/schema", {"items": [{"type": "null"}]}, [1]),
        ("http://json-schema.org/draft-07/schema#", {"items": [{"type": "null"}]}, [1]),
        ("http://json-schema.org/draft-06/schema", {"exclusiveMinimum": 5}, 5),
        ("http://json-schema.org/draft-04/schema#", {"minimum": 5, "exclusiveMinimum": True}, 5),
    ],
)
def test_declared_dialects_are_honoured(
    dialect: str, schema: dict[str, Any], value: object
) -> None:
    """The same keyword means what the declared dialect says."""
    assert violations({"$schema": dialect, **schema}, value)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$schema": "https://example.com/mine"}, "no known dialect"),
        ({"$schema": 5}, "no known dialect"),
        ({"type": "objec"}, "not a valid JSON Schema: 'type' must fit"),
        ({"properties": {"a": {"minLength": -1}}},
         r"'properties\.a\.minLength' is too small: it must be at least 0"),
        ({"properties": 5}, "'properties' must be an object, not an integer"),
        ({"$ref": "https://example.com/schema"}, "leads outside the schema"),
        ({"properties": {"a": {"$ref": "other.json#/a"}}}, r"\$ref at properties\.a leads outside"),
        ({"items": [{"$ref": "file:///etc/passwd"}]}, "leads outside"),
        ({"allOf": [{"$dynamicRef": "http://a/b"}]}, "leads outside"),
        ({"$ref": "#/$defs/missing"}, "leads nowhere"),
        ({"$ref": "#nowhere"}, "leads nowhere"),
        ({"properties": {"a": {"pattern": "("}}}, "no regular expression"),
        ({"patternProperties": {"(": {}}}, "no regular expression"),
        ({"not": {"$schema": "http://json-schema.org/draft-07/schema"}}, "one dialect"),
        ({"default": object()}, "not JSON"),
        ({"default": float("nan")}, "not JSON"),
        ({"properties": {5: {}}}, "not a str"),
    ],
)  # fmt: skip
def test_invalid_schemas_are_refused(schema: dict[str, Any], words: str) -> None:
    """Each is refused with a reason, and nothing is fetched."""
    with pytest.raises(ValueError, match=words):
        compile_schema({"type": "object", **schema} if "type" not in schema else schema,
                       root_object="type" not in schema)  # fmt: skip


def test_shape() -> None:
    """The cheap checks alone say what is seen without jsonschema."""
    assert check_schema_shape({"type": "object"}) == []
    assert "not list" in check_schema_shape([])[0]
    assert '"type": "object"' in check_schema_shape({"type": "string"})[0]
    assert check_schema_shape({"type": "string"}, root_object=False) == []
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"not": deep}
    assert "deeper than 128" in check_schema_shape(deep)[0]
    assert "more than 10000" in check_schema_shape({"enum": [[] for _ in range(20_000)]})[0]
    loop: dict[str, Any] = {"type": "object"}
    loop["not"] = loop
    assert "deeper than 128" in check_schema_shape(loop)[0]


def test_local_references() -> None:
    """Pointers, anchors and embedded resources inside the schema are followed."""
    schema = {
        "$id": "https://example.com/root",
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/a"},
            "b": {"$ref": "#b"},
            "c": {"$ref": "https://example.com/c"},
            "d": {"$ref": "root#/$defs/a"},
        },
        "$defs": {
            "a": {"type": "integer"},
            "b": {"$anchor": "b", "type": "integer"},
            "c": {"$id": "https://example.com/c", "type": "integer"},
        },
    }
    for name in "abcd":
        compile_schema(schema).check({name: 1})
        assert violations(schema, {name: "secret"}) == [(name, "type")]


def test_data_is_no_schema() -> None:
    """A reference or pattern inside a default, an enum or a property's name is only data."""
    compile_schema(
        {
            "type": "object",
            "default": {"$ref": "https://example.com"},
            "properties": {"$ref": {"type": "string"}, "pattern": {"enum": [{"$ref": "x"}]}},
        }
    ).check({"$ref": "https://example.com"})


def test_references_without_end() -> None:
    """A schema that only refers to itself refuses, and does not crash."""
    assert violations({"$ref": "#"}, 1) == [("", "depth")]
    nested: Any = 1
    for _ in range(5_000):
        nested = [nested]
    assert violations({"items": {"$ref": "#"}}, nested) == [("", "depth")]


def test_dead_ends_below_an_embedded_resource() -> None:
    """What is only seen when a value gets there refuses that value."""
    schema = {"$defs": {"a": {"$id": "https://example.com/a", "$ref": "#/nowhere"}},
              "properties": {"a": {"$ref": "https://example.com/a"}}}  # fmt: skip
    assert violations(schema, {"a": 1}) == [("", "$ref")]


def test_later_changes_by_the_owner_change_nothing() -> None:
    """The validator keeps its own copy."""
    schema: dict[str, Any] = {"type": "object", "required": ["a"]}
    validator = compile_schema(schema)
    schema["required"].clear()
    with pytest.raises(ArgumentError):
        validator.check({})
