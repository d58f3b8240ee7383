"""Nodes for arrays, objects with free keys, and unions. Floor 2; pure.

Each takes compiled nodes and returns one. A JSON array or object written as text is taken too where
text itself is not (lenient): hosts of language models do send that.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from raxol_sync.schema.node import Convert, Node, Schema, too_deep
from raxol_sync.schema.violations import (
    MAX_VIOLATIONS,
    Mismatch,
    Violation,
    counted,
    either,
    kind_of,
    several,
    step_of,
    wrong_type,
)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


def or_text(kind: type, convert: Convert) -> Convert:
    """Return ``convert``, which takes a ``kind`` (list or dict), made to take its JSON text too."""
    opening = "[" if kind is list else "{"

    def lenient(value: Any, depth: int) -> Any:
        if isinstance(value, str) and value.lstrip(" \t\r\n").startswith(opening):
            try:
                parsed = json.loads(value, parse_constant=_refuse_constant)
            except (ValueError, RecursionError):
                return convert(value, depth)  # refuses it, in its own words
            return convert(parsed, depth)
        return convert(value, depth)

    return lenient


def _each(convert: Convert, build: Callable[[list[Any]], Any], expected: str) -> Convert:
    """Return a converter of a JSON array whose items all go through ``convert``."""

    def items(value: Any, depth: int) -> Any:
        if not isinstance(value, list):
            raise wrong_type(expected, value)
        too_deep(depth)
        made: list[Any] = []
        violations: list[Violation] = []
        inside = depth + 1
        for item in value:
            try:
                made.append(convert(item, inside))
            except Mismatch as mismatch:
                # Every item so far is in one of the two; a misfit keeps its place in `made`.
                violations += mismatch.under(f"[{len(made)}]")
                made.append(None)
                if len(violations) >= MAX_VIOLATIONS:
                    break
        if violations:
            raise several(violations)
        return build(made)

    return items


def list_node(item: Node, build: Callable[[list[Any]], Any] = lambda items: items) -> Node:
    """Return the node of ``list[T]`` and its like; ``build`` makes the collection from a list."""
    schema: Schema = {"type": "array"}
    if item.schema:
        schema["items"] = item.schema
    expected = "an array"
    exact = _each(item.exact, build, expected)
    lenient = or_text(list, _each(item.lenient, build, expected))
    return Node(schema, exact, lenient, expected)


def set_node(item: Node, build: Callable[[list[Any]], Any]) -> Node:
    """Return the node of ``set[T]`` and ``frozenset[T]``: an array without equal items."""

    def unique(items: list[Any]) -> Any:
        try:
            made = build(items)
        except TypeError:  # items of a hint such as set[Any] may be arrays or objects
            raise Mismatch("items", "hold items that are no arrays and no objects") from None
        if len(made) != len(items):
            raise Mismatch("uniqueItems", "no two equal items")
        return made

    def whole(convert: Convert) -> Convert:
        each = _each(convert, list, "an array")

        def converted(value: Any, depth: int) -> Any:
            return unique(each(value, depth))

        return converted

    schema: Schema = {"type": "array", "uniqueItems": True}
    if item.schema:
        schema["items"] = item.schema
    return Node(schema, whole(item.exact), or_text(list, whole(item.lenient)), "an array")


def tuple_node(items: Sequence[Node]) -> Node:
    """Return the node of ``tuple[A, B]``: an array of exactly these items."""
    size = len(items)
    expected = f"an array of exactly {counted(size, 'items')}"

    def whole(converts: list[Convert]) -> Convert:
        def converted(value: Any, depth: int) -> Any:
            if not isinstance(value, list):
                raise wrong_type("an array", value)
            if len(value) != size:
                short = len(value) < size
                raise Mismatch("minItems" if short else "maxItems", f"exactly {size}")
            too_deep(depth)
            made: list[Any] = []
            violations: list[Violation] = []
            for index, (convert, item) in enumerate(zip(converts, value, strict=True)):
                try:
                    made.append(convert(item, depth + 1))
                except Mismatch as mismatch:
                    violations += mismatch.under(f"[{index}]")
            if violations:
                raise several(violations)
            return tuple(made)

        return converted

    schema: Schema = {"type": "array", "minItems": size, "maxItems": size}
    if items:
        schema["prefixItems"] = [item.schema for item in items]
        schema["items"] = False
    exact = whole([item.exact for item in items])
    lenient = or_text(list, whole([item.lenient for item in items]))
    return Node(schema, exact, lenient, expected)


def dict_node(key: Node, item: Node, build: Callable[[dict[Any, Any]], Any]) -> Node:
    """Return the node of ``dict[K, T]``; ``key.keys`` must be there."""
    convert_key = key.keys
    assert convert_key is not None
    plain = key.schema == {"type": "string"}

    def whole(convert: Convert) -> Convert:
        def converted(value: Any, depth: int) -> Any:
            if not isinstance(value, dict):
                raise wrong_type("an object", value)
            too_deep(depth)
            made: dict[Any, Any] = {}
            violations: list[Violation] = []
            for name, entry in value.items():
                try:
                    key_made = name if plain else _key(convert_key, name, depth)
                    made[key_made] = convert(entry, depth + 1)
                except Mismatch as mismatch:
                    violations += mismatch.under(step_of(name))
                    if len(violations) >= MAX_VIOLATIONS:
                        break
            if violations:
                raise several(violations)
            if len(made) != len(value):
                raise Mismatch("uniqueItems", "no two keys that mean the same")
            return build(made)

        return converted

    schema: Schema = {"type": "object"}
    if key.schema.get("type") == "integer":
        schema["propertyNames"] = {"pattern": "^-?(0|[1-9][0-9]*)$"}
    elif not plain:
        schema["propertyNames"] = key.schema
    if item.schema:
        schema["additionalProperties"] = item.schema
    return Node(schema, whole(item.exact), or_text(dict, whole(item.lenient)), "an object")


def _key(convert: Convert, name: str, depth: int) -> Any:
    try:
        return convert(name, depth)
    except Mismatch as mismatch:
        raise Mismatch("propertyNames", mismatch.violations[0].expected) from None


def union_node(members: Sequence[Node]) -> Node:
    """Return the node of a union: the first exact match left to right, else the first lenient one.

    A value that fits none is reported in the words of the only member that is not ``None``, or of
    the only one of the value's own JSON type, else as "one of".
    """
    real = [member for member in members if member.schema != {"type": "null"}]
    if len(real) == 1 and len(members) > 1:
        return _optional_node(real[0])
    expected = either(member.expected for member in members)

    def exact(value: Any, depth: int) -> Any:
        misfits = []
        for member in members:
            try:
                return member.exact(value, depth)
            except Mismatch as mismatch:
                misfits.append(mismatch)
        raise _closest(members, misfits, value, expected)

    def lenient(value: Any, depth: int) -> Any:
        for member in members:
            try:
                return member.exact(value, depth)
            except Mismatch:
                pass
        misfits = []
        for member in members:
            try:
                return member.lenient(value, depth)
            except Mismatch as mismatch:
                misfits.append(mismatch)
        raise _closest(members, misfits, value, expected)

    if sum(member.schema.get("type") not in _FLAT for member in members) > 1:
        converts = _remembering(exact), _remembering(lenient)
    else:
        converts = exact, lenient
    nullable = any(member.nullable for member in members)
    keys = lenient if all(m.schema.get("type") == "string" for m in members) else None
    return Node(_any_of(members), *converts, expected, nullable=nullable, keys=keys)


_FLAT = ("string", "integer", "number", "boolean", "null")


class _Memory(threading.local):
    """Per thread, what unions made of each array and object during the outermost union's work."""

    outcomes: dict[tuple[int, int], tuple[Any, Mismatch | None, Any]] | None = None


_memory = _Memory()


def _remembering(convert: Convert) -> Convert:
    """Return ``convert``, made to look at each array and object once.

    Members of a recursive union that share fields would each convert the same inner values, and
    theirs again: twice the work per level, so 2**64 steps for a value made to hurt.
    """

    def converted(value: Any, depth: int) -> Any:
        if type(value) is not list and type(value) is not dict:
            return convert(value, depth)
        outcomes = _memory.outcomes
        if outcomes is not None:
            return looked_up(outcomes, value, depth)
        _memory.outcomes = {}
        try:
            return looked_up(_memory.outcomes, value, depth)
        finally:
            _memory.outcomes = None

    def looked_up(outcomes: dict[Any, Any], value: Any, depth: int) -> Any:
        key = (id(value), id(convert))
        if key not in outcomes:
            # The value is kept in the entry, so that its id is not given to another one.
            try:
                outcomes[key] = (convert(value, depth), None, value)
            except Mismatch as mismatch:
                outcomes[key] = (None, mismatch, value)
        made, misfit, _ = outcomes[key]
        if misfit is not None:
            raise several(misfit.violations)
        return made

    return converted


def _optional_node(inner: Node) -> Node:
    """Return the node of ``T | None``. A separate, quicker form: it is by far the commonest."""
    inner_exact, inner_lenient = inner.exact, inner.lenient

    def exact(value: Any, depth: int) -> Any:
        return None if value is None else inner_exact(value, depth)

    def lenient(value: Any, depth: int) -> Any:
        if value is None:
            return None
        try:
            return inner_lenient(value, depth)
        except Mismatch:
            if value == "null":
                return None
            raise

    schema = inner.schema if inner.nullable else _any_of([inner, _NULL])
    return Node(schema, exact, lenient, f"{inner.expected} or null", nullable=True)


_NULL = Node({"type": "null"}, lambda value, depth: value, lambda value, depth: value, "null")


def _any_of(members: Sequence[Node]) -> Schema:
    parts: list[Schema] = []
    for member in members:
        if not member.schema:
            return {}  # any value fits, so the others say nothing
        nested = member.schema.get("anyOf") if len(member.schema) == 1 else None
        for part in nested or [member.schema]:
            if part not in parts:
                parts.append(part)
    return parts[0] if len(parts) == 1 else {"anyOf": parts}


_JSON_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer"}


def _closest(
    members: Sequence[Node], misfits: Sequence[Mismatch], value: Any, expected: str
) -> Mismatch:
    name = _JSON_NAMES.get(type(value))
    alike = [i for i, member in enumerate(members) if name and member.schema.get("type") == name]
    return misfits[alike[0]] if len(alike) == 1 else Mismatch("anyOf", expected, kind_of(value))
