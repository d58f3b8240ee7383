"""Schemas written by hand: validity, bounds, references, and checking values. Floor 2.

The only importer of jsonschema, at first use: it takes 100 ms to import, and a server whose tools
are all decorated functions never needs it. Nothing is ever fetched: references lead inside the
schema, or the schema is refused (specification 2026-07-28, JSON Schema Usage).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from raxol_sync.schema.reported import violations_of
from raxol_sync.schema.violations import (
    MAX_VIOLATIONS,
    ArgumentError,
    Violation,
    join,
    shown,
    step_of,
)

MAX_SCHEMA_DEPTH = 128
"""How deep the JSON of a schema may be nested."""

MAX_SUBSCHEMAS = 10_000
"""How many JSON objects and arrays a schema may hold."""

DIALECTS = {
    "https://json-schema.org/draft/2020-12/schema": "Draft202012Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
}
"""Dialects by ``$schema`` (a ``#`` at the end is ignored). The first is the default."""

_DEFAULT_DIALECT = next(iter(DIALECTS))
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_DATA = frozenset({"default", "const", "enum", "examples"})
_MAPS = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"}
)


class SchemaValidator:
    """Checks values against one schema. Immutable, so thread-safe."""

    def __init__(self, validator: Any, unresolvable: type[Exception]) -> None:
        self._validator = validator
        self._unresolvable = unresolvable

    def check(self, value: object) -> None:
        """Return if ``value`` fits.

        Raises:
            ArgumentError: With path, keyword and expectation of at most ten violations, never
                the value. Also where the schema cannot be followed: nothing passes unchecked.
        """
        found: dict[tuple[str, str, str], Violation] = {}
        try:
            for error in self._validator.iter_errors(value):
                for violation in violations_of(error):
                    found[violation.path, violation.keyword, violation.expected] = violation
                if len(found) >= MAX_VIOLATIONS:
                    break
        except RecursionError:
            raise ArgumentError([Violation("", "depth", "fewer levels")]) from None
        except self._unresolvable:
            broken = "has a reference that leads nowhere (its author can mend it)"
            raise ArgumentError([Violation("", "$ref", broken)]) from None
        if found:
            raise ArgumentError(found.values())


def compile_schema(schema: Mapping[str, object], *, root_object: bool = True) -> SchemaValidator:
    """Return the validator of a schema. Imports jsonschema the first time.

    Args:
        schema: A JSON Schema in the dialect that its ``$schema`` names, else 2020-12.
        root_object: Whether the root must say ``"type": "object"``, as a tool's must.

    Raises:
        ValueError: If it is not a valid schema of a known dialect, too large, or refers outside
            itself; the text gives the reasons.
    """
    reasons = check_schema_shape(schema, root_object=root_object)
    if not reasons:
        reasons = _dialect_reasons(schema) or _subschema_reasons(schema)
    if reasons:
        raise ValueError("; ".join(reasons[:MAX_VIOLATIONS]))

    import jsonschema
    import referencing
    import referencing.exceptions
    import referencing.jsonschema

    uri = _dialect(schema)
    kind = getattr(jsonschema, DIALECTS[uri])
    plain = json.loads(json.dumps(schema))  # later changes by the caller change nothing here
    try:
        kind.check_schema(plain)
    except jsonschema.SchemaError as error:
        found = violations_of(error)[0]
        raise ValueError(f"not a valid JSON Schema: {found.told('the root')}") from None
    except RecursionError:
        raise ValueError("the schema is nested too deeply to be checked") from None
    # A registry of our own, with nothing in it, has no way to fetch anything.
    empty: Any = referencing.Registry()
    dead_ends = _dead_ends(plain, uri, referencing)
    if dead_ends:
        raise ValueError("; ".join(dead_ends[:MAX_VIOLATIONS]))
    return SchemaValidator(
        kind(plain, registry=empty),
        referencing.exceptions.Unresolvable,
    )


def check_schema_shape(schema: object, *, root_object: bool = True) -> list[str]:
    """Return why this cannot be a tool's schema, as far as is seen without jsonschema.

    Checked: a dict, type object at the root, made of JSON, at most 128 levels and 10,000 objects
    and arrays. ``[]`` means that nothing was found.
    """
    if not isinstance(schema, Mapping):
        return [f"a schema is a dict, not {type(schema).__name__}"]
    reasons = _bound_reasons(schema)
    if reasons:
        return reasons
    if root_object and schema.get("type") != "object":
        reasons.append('the root of the schema must have "type": "object"')
    try:
        json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError) as error:
        reasons.append(f"the schema is not JSON: {error}")
    return reasons


def _bound_reasons(schema: Mapping[Any, Any]) -> list[str]:
    pending: list[tuple[Any, int]] = [(schema, 1)]
    count = 0
    while pending:
        part, depth = pending.pop()
        count += 1
        if depth > MAX_SCHEMA_DEPTH:
            return [f"the schema is nested deeper than {MAX_SCHEMA_DEPTH} levels"]
        if count > MAX_SUBSCHEMAS:
            return [f"the schema holds more than {MAX_SUBSCHEMAS} objects and arrays"]
        inner = part.values() if isinstance(part, Mapping) else part
        pending += [(v, depth + 1) for v in inner if isinstance(v, (Mapping, list, tuple))]
        if isinstance(part, Mapping) and not all(isinstance(key, str) for key in part):
            return ["the schema is not JSON: a key is not a str"]
    return []


# --- dialect, references, patterns -------------------------------------------------------------


def _dialect(schema: Mapping[str, Any]) -> str:
    named = schema.get("$schema", _DEFAULT_DIALECT)
    return named.removesuffix("#") if isinstance(named, str) else ""


def _dialect_reasons(schema: Mapping[str, Any]) -> list[str]:
    if _dialect(schema) in DIALECTS:
        return []
    return [f"$schema {shown(schema['$schema'])} is no known dialect; use {_DEFAULT_DIALECT}"]


def _subschema_reasons(schema: Mapping[str, Any]) -> list[str]:
    from urllib.parse import urljoin  # not needed before the first hand-written schema

    ids = {part["$id"] for _, part in _subschemas(schema) if isinstance(part.get("$id"), str)}
    root = schema.get("$id")
    base = root if isinstance(root, str) else ""
    reasons = []
    for path, part in _subschemas(schema):
        at = path or "the root"
        for keyword in _REFERENCES:
            target = part.get(keyword)
            if isinstance(target, str) and not target.startswith("#"):
                outside = target.partition("#")[0]
                if outside not in ids and urljoin(base, outside) not in ids:
                    reasons.append(
                        f"{keyword} at {at} leads outside the schema, and nothing is fetched; put "
                        "the target under $defs"
                    )
        named = part.get("$schema")
        if path and isinstance(named, str) and named.removesuffix("#") != _dialect(schema):
            reasons.append(f"$schema at {at} differs from the root's; use one dialect")
        reasons += _pattern_reasons(part, at)
    return reasons


def _pattern_reasons(part: Mapping[str, Any], at: str) -> list[str]:
    keyed = part.get("patternProperties")
    patterns = [*keyed] if isinstance(keyed, Mapping) else []
    patterns += [part["pattern"]] if isinstance(part.get("pattern"), str) else []
    reasons = []
    for pattern in patterns:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            reasons.append(f"the pattern at {at} is no regular expression: {error}")
    return reasons


def _subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield path and subschema; data (``default``, ``enum``, ...) and names are no subschemas."""
    pending: list[tuple[str, Any]] = [("", schema)]
    while pending:
        path, part = pending.pop()
        yield path, part
        for keyword, value in part.items():
            if keyword in _DATA:
                continue
            inner: list[tuple[str, Any]] = [(keyword, value)]
            if keyword in _MAPS and isinstance(value, Mapping):
                inner = [(f"{keyword}.{step_of(name)}", entry) for name, entry in value.items()]
            elif isinstance(value, list):
                inner = [(f"{keyword}[{i}]", entry) for i, entry in enumerate(value)]
            pending += [(join(path, s), v) for s, v in inner if isinstance(v, Mapping)]


def _dead_ends(schema: dict[str, Any], uri: str, referencing: Any) -> list[str]:
    """Return references that lead nowhere. Not exact below a nested ``$id``: left to ``check``."""
    parts = list(_subschemas(schema))
    if any(path and "$id" in part for path, part in parts):
        return []
    dialect = referencing.jsonschema.specification_with(uri)
    resource = referencing.Resource(contents=schema, specification=dialect)
    base = resource.id() or ""
    resolver = referencing.Registry().with_resource(base, resource).resolver(base_uri=base)
    reasons = []
    for path, part in parts:
        for keyword in ("$ref", "$dynamicRef"):
            target = part.get(keyword)
            if not isinstance(target, str):
                continue
            try:
                resolver.lookup(target)
            except referencing.exceptions.Unresolvable:
                reasons.append(f"{keyword} at {path or 'the root'} leads nowhere: {shown(target)}")
    return reasons
