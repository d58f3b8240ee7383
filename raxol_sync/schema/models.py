"""Nodes for what pydantic describes, if the program has imported pydantic. Floor 2.

pydantic is looked up among the loaded modules and never imported: a hint that needs it can exist
only in a program that did. Its own converters and schemas are used as they are; only references in
the schemas are inlined, as everywhere in this package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from raxol_sync.schema.containers import or_text
from raxol_sync.schema.node import Convert, Node, Schema, UnsupportedHint, too_deep
from raxol_sync.schema.violations import MAX_VIOLATIONS, Mismatch, Violation, join, several, step_of

# Messages of pydantic that state the rule and never the value.
_SAFE_MESSAGES = frozenset({
    "missing", "extra_forbidden", "string_type", "int_type", "float_type", "bool_type",
    "dict_type", "list_type", "set_type", "tuple_type", "none_required", "int_parsing",
    "float_parsing", "bool_parsing", "int_from_float", "finite_number", "greater_than",
    "greater_than_equal", "less_than", "less_than_equal", "multiple_of", "string_too_short",
    "string_too_long", "too_short", "too_long", "string_pattern_mismatch", "literal_error",
    "enum", "model_type", "bytes_type", "date_type", "datetime_type", "time_type", "uuid_type",
})  # fmt: skip


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
    if output:
        check = _output_check(schema)
        return Node(schema, check, check, name or "a pydantic type")
    validation_error: type[Exception] = pydantic.ValidationError

    def convert(value: Any, depth: int) -> Any:
        too_deep(depth)
        try:
            return adapter.validate_python(value)
        except validation_error as error:
            raise several(_violations(error)) from None
        except RecursionError:
            raise Mismatch("depth", "less nesting") from None

    kind = schema.get("type")
    lenient: Convert = convert
    if kind == "object" or "properties" in schema or kind is None:
        lenient = or_text(dict, convert)
    elif kind == "array":
        lenient = or_text(list, convert)
    return Node(schema, convert, lenient, name or "a pydantic type")


def _output_check(schema: Schema) -> Convert:
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool}
    name = schema.get("type")
    kind = kinds.get(name) if isinstance(name, str) else None
    required = schema.get("required", ())

    def check(value: Any, depth: int) -> Any:
        if kind is not None and not isinstance(value, kind):
            raise Mismatch("type", f"an instance of the model, or {name} of its shape")
        for key in required if kind is dict else ():
            if key not in value:
                raise several([Violation(key, "required", "a value: it is required")])
        return value

    return check


def _violations(error: Any) -> list[Violation]:
    """Return pydantic's errors as violations; texts that may quote the value are replaced."""
    found = []
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        path = ""
        for step in item["loc"]:
            path = join(path, f"[{step}]" if isinstance(step, int) else step_of(step))
        kind = item["type"]
        text = item["msg"] if kind in _SAFE_MESSAGES else "a value that the model accepts"
        found.append(Violation(path, kind, text))
        if len(found) >= MAX_VIOLATIONS:
            break
    return found


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
