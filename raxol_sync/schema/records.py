"""Nodes for objects with named fields: dataclasses, NamedTuples, TypedDicts. Floor 2; pure.

A record is closed as input (an unknown key is refused and named, so that unions of records are
decided by their keys) and open as output (a subclass may add fields).
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from raxol_sync.schema.containers import or_text
from raxol_sync.schema.docstrings import parse_docstring
from raxol_sync.schema.dump import to_json
from raxol_sync.schema.node import Convert, Node, Schema, UnsupportedHint, too_deep
from raxol_sync.schema.scopes import Scope, annotations_of, base_scopes, is_class, resolve
from raxol_sync.schema.violations import (
    MAX_VIOLATIONS,
    Mismatch,
    Violation,
    known_names,
    several,
    step_of,
    wrong_type,
)

Build = Callable[[Any, Scope], Node]
"""The builder's way to compile a hint that is inside another."""

MISSING = object()
"""Stands for "no default"; ``None`` is a default."""


@dataclass(frozen=True)
class Field:
    """One named field of a record, or one parameter of a function, before it is compiled."""

    name: str
    hint: Any
    scope: Scope
    required: bool
    default: Any = MISSING
    description: str = ""


def is_typed_dict(hint: Any) -> bool:
    """Return whether ``hint`` is a TypedDict class (of ``typing`` or ``typing_extensions``)."""
    return is_class(hint) and issubclass(hint, dict) and hasattr(hint, "__total__")


def is_named_tuple(hint: Any) -> bool:
    """Return whether ``hint`` is a NamedTuple class."""
    return is_class(hint) and issubclass(hint, tuple) and hasattr(hint, "_fields")


def is_record(hint: Any) -> bool:
    """Return whether ``hint`` is a class that this module knows."""
    plain = is_class(hint) and dataclasses.is_dataclass(hint)
    return plain or is_typed_dict(hint) or is_named_tuple(hint)


def record_node(kind: type, scope: Scope, build: Build, *, output: bool) -> Node:
    """Return the node of a record class. ``scope`` holds its type parameters."""
    if is_typed_dict(kind):
        fields, make = _typed_dict_fields(kind, scope), None
    elif is_named_tuple(kind):
        fields, make = _named_tuple_fields(kind, scope), kind
    else:
        fields, make = _dataclass_fields(kind, scope, output), kind
    nodes = {field.name: build(field.hint, field.scope) for field in fields}
    schema = object_schema(fields, nodes, closed=not output)
    description = _class_description(kind)
    if description:
        schema["description"] = description
    required = {f.name: nodes[f.name].expected for f in fields if f.required}
    # A return hint is only checked: the JSON value already came from the record.
    construct = None if output else make

    def whole(converts: dict[str, Convert]) -> Convert:
        return _record_converter(kind.__name__, converts, required, construct, closed=not output)

    exact = whole({name: node.exact for name, node in nodes.items()})
    lenient = whole({name: node.lenient for name, node in nodes.items()})
    return Node(schema, exact, or_text(dict, lenient), f"an object ({kind.__name__})")


def object_schema(fields: Sequence[Field], nodes: Mapping[str, Node], *, closed: bool) -> Schema:
    """Return the schema of an object with these fields, defaults and descriptions included."""
    schema: Schema = {"type": "object"}
    if fields:
        schema["properties"] = {f.name: _field_schema(f, nodes[f.name]) for f in fields}
    required = [field.name for field in fields if field.required]
    if required:
        schema["required"] = required
    if closed:
        schema["additionalProperties"] = False
    return schema


def _field_schema(field: Field, node: Node) -> Schema:
    schema = dict(node.schema)
    # The text that is nearest to the field wins: Annotated, then the docstring, and only then the
    # docstring of the field's own class.
    if field.description and not node.described:
        schema["description"] = field.description
    if field.default is not MISSING and "default" not in schema:
        try:
            default = to_json(field.default)
        except (TypeError, ValueError):
            return schema  # it has no JSON form; that the field is optional is said by `required`
        # A header parameter must have one primitive type, so null is not advertised there.
        if not (default is None and "x-mcp-header" in schema):
            schema["default"] = default
    return schema


def _class_description(kind: type) -> str:
    text = kind.__dict__.get("__doc__")
    # dataclass and NamedTuple write a docstring of their own: the signature.
    if not isinstance(text, str) or text.startswith(kind.__name__ + "("):
        return ""
    return parse_docstring(text).description


def _record_converter(
    name: str,
    converts: dict[str, Convert],
    required: dict[str, str],
    construct: Callable[..., Any] | None,
    *,
    closed: bool,
) -> Convert:
    def converted(value: Any, depth: int) -> Any:
        if not isinstance(value, dict):
            raise wrong_type(f"an object ({name})", value)
        too_deep(depth)
        made = convert_fields(value, depth + 1, converts, required, closed=closed)
        if construct is None:
            return made
        try:
            return construct(**made)
        except (ValueError, TypeError):
            # The class checks more than its hints say. Its message may hold the value: left out.
            raise Mismatch("type", f"an object with values that {name} accepts") from None

    return converted


def convert_fields(
    values: Mapping[str, Any],
    depth: int,
    converts: Mapping[str, Convert],
    required: Mapping[str, str],
    *,
    closed: bool,
    rest: Convert | None = None,
) -> dict[str, Any]:
    """Convert an object's values by name.

    Args:
        values: The JSON object.
        depth: How deep its values are.
        converts: Converter of each known name.
        required: Names that must be there, and what each may be in words.
        closed: Whether an unknown name is refused; if not, it is left out.
        rest: Converter of unknown names; they are kept then.

    Raises:
        Mismatch: With every violation, at most ``MAX_VIOLATIONS``.
    """
    made: dict[str, Any] = {}
    violations: list[Violation] = []
    for name, value in values.items():
        convert = converts.get(name, rest)
        if convert is None:
            if closed:
                expected = known_names(converts)
                violations.append(Violation(step_of(name), "additionalProperties", expected))
        else:
            try:
                made[name] = convert(value, depth)
                continue
            except Mismatch as mismatch:
                violations += mismatch.under(step_of(name))
        if len(violations) >= MAX_VIOLATIONS:
            break
    for name, expected in required.items():
        if name not in values:
            violations.append(Violation(step_of(name), "required", expected))
    if violations:
        raise several(violations)
    return made


# --- fields of each kind -----------------------------------------------------------------------


def _dataclass_fields(kind: type, scope: Scope, output: bool) -> list[Field]:
    known = {f.name: f for f in dataclasses.fields(kind)}
    hints = _inherited_hints(kind, scope)
    texts = parse_docstring(kind.__doc__ or "").parameters
    fields = []
    # As input: what the constructor takes (InitVar too). As output: what to_json writes.
    parameters = {} if output else inspect.signature(kind).parameters
    for name in known if output else parameters:
        hint, owner = hints.get(name, (Any, scope))
        description = texts.get(name, "")
        if name in known and isinstance(text := known[name].metadata.get("description"), str):
            description = text
        required, default = True, MISSING
        if not output:
            required = parameters[name].default is inspect.Parameter.empty
            if name in known and known[name].default is not dataclasses.MISSING:
                default = known[name].default
        fields.append(Field(name, *_init_var(hint, owner), required, default, description))
    return fields


def _named_tuple_fields(kind: Any, scope: Scope) -> list[Field]:
    hints = _inherited_hints(kind, scope)
    texts = parse_docstring(kind.__doc__ or "").parameters
    fields = []
    for name in kind._fields:
        hint, owner = hints.get(name, (Any, scope))
        default = kind._field_defaults.get(name, MISSING)
        required = default is MISSING
        fields.append(Field(name, hint, owner, required, default, texts.get(name, "")))
    return fields


def _typed_dict_fields(kind: Any, scope: Scope) -> list[Field]:
    texts = parse_docstring(kind.__doc__ or "").parameters
    fields = []
    for name, written in _inherited_hints(kind, scope).items():
        hint, owner = resolve(*written)
        required = name in kind.__required_keys__
        # Written in quotes or under `from __future__ import annotations`, these qualifiers are
        # not yet part of __required_keys__. They may be nested: Required[ReadOnly[int]].
        while (label := getattr(get_origin(hint), "_name", None)) in _QUALIFIERS:
            required = {"Required": True, "NotRequired": False}.get(str(label), required)
            hint, owner = resolve(get_args(hint)[0], owner)
        fields.append(Field(name, hint, owner, required, MISSING, texts.get(name, "")))
    return fields


_QUALIFIERS = ("Required", "NotRequired", "ReadOnly")


def _inherited_hints(kind: Any, scope: Scope) -> dict[str, tuple[Any, Scope]]:
    """Return hint and scope per name, each in the namespace of the class that wrote it."""
    scopes = base_scopes(kind, scope)
    found: dict[str, tuple[Any, Scope]] = {}
    for base in reversed(kind.__mro__):
        for name, hint in _own_hints(base).items():
            found[name] = (hint, scopes.get(base, scope))
    # A TypedDict is no subclass of its bases at run time, and its annotations hold theirs too.
    for base in scopes if is_typed_dict(kind) else ():
        if base is not kind and is_typed_dict(base):
            for name, hint in annotations_of(base).items():
                found[name] = (hint, scopes[base])
    return found


def _own_hints(base: Any) -> dict[str, Any]:
    return {} if base is object else annotations_of(base)


def _init_var(hint: Any, scope: Scope) -> tuple[Any, Scope]:
    """Return the hint inside ``InitVar[...]``, or the hint."""
    try:
        found, owner = resolve(hint, scope)
    except UnsupportedHint:
        return hint, scope  # the builder will meet it again, and knows the way to it
    return (found.type, owner) if isinstance(found, dataclasses.InitVar) else (found, owner)
