"""Which return hints promise a JSON value, and its schema. Floor 2; pure.

A return hint never makes a function invalid: without a schema its results are still sent. The rules
follow the results that callbacks give (text and content objects have no structured content).
"""

from __future__ import annotations

import collections
import collections.abc as abc
import copy
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NewType, TypeVar, get_args, get_origin

from raxol_sync.schema.hints import LISTS, UNIONS, Builder
from raxol_sync.schema.node import Convert, Schema, UnsupportedHint
from raxol_sync.schema.scopes import Scope, class_scope, resolve

_WITHOUT_SCHEMA = (str, bytes, bytearray, Any, object, inspect.Signature.empty)
_BARE_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping, collections.OrderedDict)
_MAX_PARTS = 1_000  # members of one return hint that are looked at


@dataclass(frozen=True)
class Output:
    """Schema and check of a return hint. ``wraps``: the schema describes ``{"result": value}``.

    ``content``: the hint names content objects, and no list of anything else. ``only_content``: and
    nothing else at all but texts; ``optional``: ``None`` is one of what it names.
    """

    schema: Schema | None = None
    wraps: bool = False
    check: Convert | None = None
    content: bool = False
    only_content: bool = False
    optional: bool = False


def output_of(hint: Any, scope: Scope) -> Output:
    """Return the output schema of a return hint, or an empty ``Output`` where there is none."""
    try:
        if _names_content(hint, scope):
            return _content_output(hint, scope)
        if not _promises_json(hint, scope):
            return Output()
        builder = Builder(output=True)
        node = builder.build(hint, scope)
    except (UnsupportedHint, RecursionError):
        return Output()
    if not node.schema:
        return Output()
    root = _object_root(node.schema, builder.definitions)
    wraps = root is None
    if root is None:
        properties = {"result": node.schema}
        root = {"type": "object", "properties": properties, "required": ["result"]}
    if builder.definitions:
        root = {**root, "$defs": builder.definitions}
    return Output(copy.deepcopy(root), wraps, node.exact)


def _names_content(hint: Any, scope: Scope) -> bool:
    parts = _leaves(hint, scope, through=None)
    return any(getattr(part, "__mcp_content__", False) for part, _ in parts)


def _content_output(hint: Any, scope: Scope) -> Output:
    members = list(_leaves(hint, scope, through=UNIONS))
    none = [member for member, _ in members if member is None or member is type(None)]
    only = all(
        member is str
        or member in none
        or getattr(member, "__mcp_content__", False)
        or (_is_list(member) and _names_content(member, inner))
        for member, inner in members
    )
    content = _lists_hold_content(hint, scope)
    return Output(content=content, only_content=only, optional=bool(none))


def _lists_hold_content(hint: Any, scope: Scope) -> bool:
    # `list[int] | ToolResult` returns numbers: its lists are JSON.
    members = _leaves(hint, scope, through=UNIONS)
    return all(_names_content(part, inner) for part, inner in members if _is_list(part))


def _promises_json(hint: Any, scope: Scope) -> bool:
    members = list(_leaves(hint, scope, through=UNIONS))
    if all(member is None or member is type(None) for member, _ in members):
        return False
    return not any(_without_schema(member) or _holds_anything(*member) for member in members)


def _without_schema(member: tuple[Any, Scope]) -> bool:
    # Text and the like have no structured content, and a bare mapping is an object of anything.
    return any(member[0] is kind for kind in (*_WITHOUT_SCHEMA, *_BARE_MAPPINGS))


def _holds_anything(member: Any, scope: Scope) -> bool:
    """Return whether a hint is of a list that may hold content objects beside JSON values.

    What such a list gives is known only when it is there, so no schema can be promised for it.
    """
    if not _is_list(member):
        return False
    items = [item for item in get_args(member) if item is not Ellipsis and item != ()]
    leaves = (leaf for item in items or [Any] for leaf in _leaves(item, scope, through=UNIONS))
    return any(_is_anything(leaf) for leaf, _ in leaves)


def _is_list(hint: Any) -> bool:
    kind = get_origin(hint) or hint
    return kind is tuple or any(kind is known for known in LISTS)


def _is_anything(hint: Any) -> bool:
    if isinstance(hint, TypeVar):
        return hint.__bound__ is None and not hint.__constraints__
    return hint is Any or hint is object


def _leaves(
    hint: Any, scope: Scope, through: tuple[Any, ...] | None
) -> Iterator[tuple[Any, Scope]]:
    """Yield what a hint is made of: members of unions, or (``None``) arguments of any generic.

    Each with the scope that its own parts are looked up in.
    """
    pending = [(hint, scope)]
    for _ in range(_MAX_PARTS):
        if not pending:
            return
        part, scope = resolve(*pending.pop())
        origin = get_origin(part)
        alias = origin if origin is not None else part
        if hasattr(part, "__metadata__"):
            pending.append((part.__origin__, scope))
        elif isinstance(part, NewType):
            pending.append((part.__supertype__, scope))
        elif type(alias).__name__ == "TypeAliasType":
            pending.append((alias.__value__, class_scope(alias, scope, get_args(part))))
        elif origin in UNIONS or (through is None and origin is not None):
            members = [arg for arg in get_args(part) if not isinstance(arg, (str, list, tuple))]
            pending += [(member, scope) for member in members if member is not Ellipsis]
        else:
            yield part, scope


def _object_root(schema: Schema, definitions: dict[str, Schema]) -> Schema | None:
    """Return the schema as one with type object at its root, or ``None`` if it needs wrapping."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        rest = {key: body for key, body in definitions.items() if key != name}
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        # Each definition is entered once, so two that refer to each other come to an end.
        return _object_root({**definitions[name], **beside}, rest) if name in definitions else None
    if schema.get("type") == "object":
        return schema
    parts = schema.get("anyOf", ())
    if parts and all(_object_root(part, definitions) is not None for part in parts):
        return {"type": "object", **schema}
    return None
