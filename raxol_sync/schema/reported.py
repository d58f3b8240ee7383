"""What jsonschema reports, as violations. Floor 2; pure, and imports no jsonschema.

The words come from the schema alone: an error's own message quotes the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from raxol_sync.schema.violations import (
    MAX_NAME,
    Violation,
    counted,
    either,
    join,
    kind_of,
    known_names,
    step_of,
)

_NAMED = 20  # choices and names that one message lists


def violations_of(error: Any) -> list[Violation]:
    """Return what one ``jsonschema.ValidationError`` says: one for each name that it is about."""
    path = ""
    for step in error.absolute_path:
        path = join(path, f"[{step}]" if isinstance(step, int) else step_of(step))
    keyword, rule = str(error.validator or "false"), error.validator_value
    if keyword in ("required", "dependentRequired", "dependencies"):
        return _missing(path, keyword, error)
    if keyword in ("additionalProperties", "unevaluatedProperties") and rule is False:
        return _unknown(path, keyword, error)
    expected = _expected(keyword, rule)
    steps = list(error.absolute_schema_path)[-3:-1]
    if steps[-1:] == ["propertyNames"] and steps[0] not in ("properties", "$defs", "definitions"):
        # What was checked is a key, and the path that of the object.
        return [Violation(join(path, step_of(error.instance)), "propertyNames", expected)]
    given = kind_of(error.instance) if keyword == "type" else ""
    return [Violation(path, keyword, expected, given)]


def _missing(path: str, keyword: str, error: Any) -> list[Violation]:
    rule, instance = error.validator_value, error.instance
    if isinstance(rule, Mapping):  # which names each name needs
        needed = [names for name, names in rule.items() if name in instance]
        rule = [name for names in needed if isinstance(names, list) for name in names]
        keyword = "dependentRequired"
    known = _properties(error)
    names = [name for name in rule if isinstance(name, str) and name not in instance]
    return [
        Violation(join(path, step_of(name)), keyword, words_of(known.get(name)))
        for name in names[:_NAMED]
    ] or [Violation(path, keyword, "what goes with it")]


def _unknown(path: str, keyword: str, error: Any) -> list[Violation]:
    known = _properties(error)
    patterns = error.schema.get("patternProperties", {}) if isinstance(error.schema, dict) else {}
    names = [
        name
        for name in error.instance
        if name not in known and not any(re.search(pattern, name) for pattern in patterns)
    ]
    expected = known_names(known)
    return [Violation(join(path, step_of(name)), keyword, expected) for name in names[:_NAMED]]


def _properties(error: Any) -> Mapping[str, Any]:
    found = error.schema.get("properties") if isinstance(error.schema, dict) else None
    return found if isinstance(found, dict) else {}


def words_of(schema: Any) -> str:
    """Return in words what a schema's values are, as far as its type or its choices say."""
    if not isinstance(schema, dict):
        return "a value"
    for keyword in ("enum", "const", "type"):
        if keyword in schema:
            return _expected(keyword, schema[keyword])
    return "a value"


def _expected(keyword: str, rule: Any) -> str:
    if keyword == "type":
        names = rule if isinstance(rule, list) else [rule]
        return either(_TYPES.get(name, "another type") for name in names)
    if keyword == "enum" and isinstance(rule, list) and len(rule) != 1:
        return "one of " + _listed(rule)
    if keyword in ("enum", "const"):
        return _json(rule[0] if keyword == "enum" else rule)
    if keyword in _UNITS:
        side = "least" if keyword.startswith("min") else "most"
        return f"at {side} {counted(rule, _UNITS[keyword])}"
    if keyword in _PHRASES:
        return _PHRASES[keyword].format(rule if isinstance(rule, str) else _json(rule))
    return f"fit the rule {keyword!r} of its schema"


def _listed(values: Iterable[Any]) -> str:
    texts = [_json(value) for value in values]
    return ", ".join(texts[:_NAMED]) + (", ..." if len(texts) > _NAMED else "")


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 2 * MAX_NAME else text[: 2 * MAX_NAME] + "..."


_TYPES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}

_UNITS = {
    "minLength": "characters",
    "maxLength": "characters",
    "minItems": "items",
    "maxItems": "items",
    "minProperties": "entries",
    "maxProperties": "entries",
}

_PHRASES = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "pattern": "text that matches {}",
    "format": "text of the format {}",
    "uniqueItems": "no two equal items",
    "anyOf": "fit one of the alternatives (anyOf) of its schema",
    "oneOf": "fit exactly one of the alternatives (oneOf) of its schema",
    "not": "be something else: its schema excludes what was given (not)",
    "contains": "hold an item that fits the rule 'contains' of its schema",
}
