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
from typing import Any, NewType, get_args, get_origin

from raxol_sync.schema.hints import UNIONS, Builder
from raxol_sync.schema.node import Convert, Schema, UnsupportedHint
from raxol_sync.schema.scopes import Scope, resolve

_WITHOUT_SCHEMA = (str, bytes, bytearray, Any, object, inspect.Signature.empty)
_BARE_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping, collections.OrderedDict)
_MAX_PARTS = 1_000  # members of one return hint that are looked at


@dataclass(frozen=True)
class Output:
    """Schema and check of a return hint. ``wraps``: the schema describes ``{"result": value}``.

    ``content``: the hint names content objects.
    """

    schema: Schema | None = None
    wraps: bool = False
    check: Convert | None = None
    content: bool = False


def output_of(hint: Any, scope: Scope) -> Output:
    """Return the output schema of a return hint, or an empty ``Output`` where there is none."""
    try:
        if any(getattr(part, "__mcp_content__", False) for part in _leaves(hint, scope, None)):
            return Output(content=True)
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


def _promises_json(hint: Any, scope: Scope) -> bool:
    members = list(_leaves(hint, scope, through=UNIONS))
    if all(member is None or member is type(None) for member in members):
        return False
    return not any(_without_schema(member) for member in members)


def _without_schema(member: Any) -> bool:
    # Text and the like have no structured content, and a bare mapping is an object of anything.
    return any(member is kind for kind in (*_WITHOUT_SCHEMA, *_BARE_MAPPINGS))


def _leaves(hint: Any, scope: Scope, through: tuple[Any, ...] | None) -> Iterator[Any]:
    """Yield what a hint is made of: members of unions, or (``None``) arguments of any generic."""
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
            pending.append((alias.__value__, scope))
        elif origin in UNIONS or (through is None and origin is not None):
            members = [arg for arg in get_args(part) if not isinstance(arg, (str, list, tuple))]
            pending += [(member, scope) for member in members if member is not Ellipsis]
        else:
            yield part


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
