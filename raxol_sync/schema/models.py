"""Nodes for what pydantic describes, if the program has imported pydantic. Floor 2.

pydantic is looked up among the loaded modules and never imported: a hint that needs it can exist
only in a program that did. Its own converters and schemas are used as they are; only references in
the schemas are inlined, as everywhere in this package.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from raxol_sync.schema import moments
from raxol_sync.schema.containers import or_text
from raxol_sync.schema.node import Convert, Node, Schema, UnsupportedHint, too_deep
from raxol_sync.schema.reported import words_of
from raxol_sync.schema.violations import (
    MAX_VIOLATIONS,
    Mismatch,
    Violation,
    join,
    kind_of,
    known_names,
    several,
    shown,
    step_of,
    wrong_type,
)

# Messages of pydantic that state the rule and never the value.
_SAFE_MESSAGES = frozenset({
    "bytes_type", "finite_number", "greater_than", "greater_than_equal", "less_than",
    "less_than_equal", "multiple_of", "string_too_short", "string_too_long", "too_short",
    "too_long", "string_pattern_mismatch", "literal_error", "enum",
})  # fmt: skip

_WRONG_TYPE = re.compile(r"(\w+?)(?:_attributes)?_(?:type|parsing|object_invalid|from_\w+)")
"""Keywords of pydantic's that say that a value is of another type, which the group names."""
_TYPES = {
    **dict.fromkeys(("dict", "model", "dataclass", "mapping"), "an object"),
    **dict.fromkeys(("list", "tuple", "set", "frozen_set", "deque", "iterable"), "an array"),
    "string": "a string",
    "int": "an integer",
    "float": "a number",
    "decimal": "a decimal number",
    "bool": "true or false",
    "date": moments.DATE,
    "datetime": moments.DATETIME,
    "time": moments.TIME,
    "time_delta": moments.DURATION,
    "uuid": "a UUID",
    "url": "a URL",
}


def is_pydantic(hint: Any) -> bool:
    """Return whether ``hint`` is a pydantic model, or a type that describes itself to pydantic."""
    if "pydantic" not in sys.modules or not isinstance(hint, type):
        return False
    return any(
        hasattr(hint, name)
        for name in (
            "__pydantic_validator__",
            "__get_pydantic_core_schema__",
            "__pydantic_fields__",
        )
    )


def needs_pydantic(metadata: tuple[Any, ...]) -> bool:
    """Return whether ``Annotated`` metadata has pydantic behaviour that only pydantic can run.

    Validators and serializers may not be skipped in silence; constraints are read by this package.
    """
    if "pydantic" not in sys.modules:
        return False
    plain = ("FieldInfo", "PydanticGeneralMetadata", "Strict")
    items = [*metadata, *(m for item in metadata for m in getattr(item, "metadata", None) or ())]
    return any(
        type(item).__module__.partition(".")[0] == "pydantic"
        and type(item).__name__.lstrip("_") not in plain
        for item in items
    )


def is_field_info(default: Any) -> bool:
    """Return whether a parameter's default is ``pydantic.Field(...)``."""
    kind = type(default)
    return kind.__name__ == "FieldInfo" and kind.__module__ == "pydantic.fields"


def pydantic_node(
    hint: Any, share: Callable[[str, Schema], str], *, output: bool, name: str = ""
) -> Node:
    """Return the node of a hint that pydantic handles.

    Args:
        hint: The hint.
        share: Puts a recursive definition into the root's ``$defs`` and returns its name there.
        output: Whether this is a return hint; its converters check type and required keys only,
            since a model instance is valid already.
        name: The hint in words.

    Raises:
        UnsupportedHint: If pydantic cannot describe it.
    """
    pydantic = sys.modules["pydantic"]
    try:
        adapter = pydantic.TypeAdapter(hint)
        schema = adapter.json_schema(mode="serialization" if output else "validation")
    except Exception as error:  # whatever pydantic and its plugins raise; registration reports it
        raise UnsupportedHint(
            f"pydantic cannot describe {name or hint!r} ({type(error).__name__}); change the model"
        ) from None
    schema = _inlined(schema, share)
    words = _words(schema, hint)
    if output:
        check = _output_check(schema)
        return Node(schema, check, check, words)
    validation_error: type[Exception] = pydantic.ValidationError

    def convert(value: Any, depth: int) -> Any:
        too_deep(depth)
        try:
            return adapter.validate_python(value)
        except validation_error as error:
            raise several(_violations(error, schema)) from None
        except RecursionError:
            raise Mismatch("depth", "fewer levels") from None

    kind = schema.get("type")
    lenient: Convert = convert
    if kind == "object" or "properties" in schema or kind is None:
        lenient = or_text(dict, convert)
    elif kind == "array":
        lenient = or_text(list, convert)
    return Node(schema, convert, lenient, words)


def _words(schema: Schema, hint: Any) -> str:
    if schema.get("type") == "object" and isinstance(hint, type):
        return f"an object ({hint.__name__})"
    return words_of(schema)


def _output_check(schema: Schema) -> Convert:
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool}
    name = schema.get("type")
    kind = kinds.get(name) if isinstance(name, str) else None
    required = schema.get("required", ())

    def check(value: Any, depth: int) -> Any:
        if kind is not None and not isinstance(value, kind):
            raise wrong_type(f"what the model gives: JSON type {name}", value)
        for key in required if kind is dict else ():
            if key not in value:
                raise several([Violation(step_of(key), "required", "a value")])
        return value

    return check


def _violations(error: Any, schema: Schema) -> list[Violation]:
    """Return pydantic's errors as violations; texts that may quote the value are replaced."""
    found = []
    for item in error.errors(include_url=False, include_context=False):
        path = ""
        for step in item["loc"]:
            path = join(path, f"[{step}]" if isinstance(step, int) else step_of(step))
        found.append(_violation(path, item, schema))
        if len(found) >= MAX_VIOLATIONS:
            break
    return found


def _violation(path: str, item: Mapping[str, Any], schema: Schema) -> Violation:
    """Return one of pydantic's errors in the words that go on our own sentences."""
    kind, loc = item["type"], item["loc"]
    if kind == "missing":
        return Violation(path, kind, words_of(_part(schema, loc)))
    if kind == "extra_forbidden":
        return Violation(path, kind, known_names(_part(schema, loc[:-1]).get("properties", ())))
    match = _WRONG_TYPE.fullmatch(kind)
    expected = "null" if kind == "none_required" else _TYPES.get(match[1]) if match else None
    if expected is not None:
        given = kind_of(item["input"])
        written = kind.endswith("_parsing") and "such as" in expected
        return Violation(path, kind, expected, "" if written and given == "a string" else given)
    if kind not in _SAFE_MESSAGES:
        # Of a type of the program's own the name alone may say what the rule is.
        return Violation(path, kind, f"a value that the model accepts (pydantic: {shown(kind)})")
    # "Input should be a finite number", "String should have at least 2 characters"
    rule = item["msg"].partition(" should ")[2] or item["msg"]
    return Violation(path, kind, rule.removeprefix("be "))


def _part(schema: Schema, loc: Sequence[Any]) -> Schema:
    """Return the schema of what is at ``loc``, an empty one where that is not told by its path."""
    for step in loc:
        inner = schema.get("items" if isinstance(step, int) else "properties")
        found = inner.get(step) if isinstance(inner, dict) and isinstance(step, str) else inner
        if not isinstance(found, dict):
            return {}
        schema = found
    return schema


# --- references --------------------------------------------------------------------------------


def _inlined(schema: Schema, share: Callable[[str, Schema], str]) -> Schema:
    """Return pydantic's schema with its ``$defs`` put in place; recursive ones go to ``share``."""
    definitions: dict[str, Schema] = schema.pop("$defs", {})
    recursive = {name for name in definitions if _reaches(name, definitions)}
    names: dict[str, str] = {}

    def put(part: Any) -> Any:
        if isinstance(part, list):
            return [put(item) for item in part]
        if not isinstance(part, dict):
            return part
        name = _target(part)
        if name is None or name not in definitions:
            # The discriminator's mapping points at $defs that are gone; the branches say it all.
            return {k: put(v) for k, v in part.items() if not _is_discriminator(k, v)}
        beside = {key: put(value) for key, value in part.items() if key != "$ref"}
        if name not in recursive:
            return {**put(definitions[name]), **beside}
        if name not in names:
            body: Schema = {}
            names[name] = share(name, body)  # the name first: the body refers to it
            body.update(put(definitions[name]))
        return {**beside, "$ref": f"#/$defs/{names[name]}"}

    made = put(schema)
    assert isinstance(made, dict)
    return made


def _is_discriminator(keyword: str, value: Any) -> bool:
    return keyword == "discriminator" and isinstance(value, dict) and "propertyName" in value


def _target(part: dict[str, Any]) -> str | None:
    reference = part.get("$ref")
    prefix = "#/$defs/"
    if isinstance(reference, str) and reference.startswith(prefix):
        return reference[len(prefix) :]
    return None


def _reaches(name: str, definitions: dict[str, Schema]) -> bool:
    """Return whether a definition refers to itself, directly or through others."""
    seen: set[str] = set()
    pending: list[Any] = [definitions[name]]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            target = _target(part)
            if target == name:
                return True
            if target in definitions and target not in seen:
                seen.add(target)
                pending.append(definitions[target])
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return False
