"""``Annotated`` metadata: descriptions, bounds, lengths, patterns, header names. Floor 2; pure.

Known are a text (the description), a dict (merged into the schema, not enforced), ``Param``,
``HeaderParam``, and the constraint objects of ``annotated_types`` and pydantic, which are read by
attribute, never imported. Other metadata is ignored, as the typing rules ask.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from raxol_sync.schema.dump import to_json
from raxol_sync.schema.node import Convert, Node, Schema, UnsupportedHint
from raxol_sync.schema.violations import Mismatch, counted


@dataclass(frozen=True)
class Param:
    """Says more about a parameter or field: ``Annotated[int, Param("How many", ge=1, le=100)]``.

    Args:
        description: What it means; wins over the docstring.
        ge: Least value.
        gt: The value is greater than this.
        le: Greatest value.
        lt: The value is less than this.
        multiple_of: The value is a multiple of this.
        min_length: Least number of characters, bytes, items or keys.
        max_length: Greatest number of them.
        pattern: Regular expression that is found somewhere in the text.
        examples: Example values.
        title: A short name for people.
        deprecated: Whether callers should stop giving it.

    All but the last three are enforced. Immutable, so thread-safe.
    """

    description: str | None = None
    ge: float | Decimal | None = field(default=None, kw_only=True)
    gt: float | Decimal | None = field(default=None, kw_only=True)
    le: float | Decimal | None = field(default=None, kw_only=True)
    lt: float | Decimal | None = field(default=None, kw_only=True)
    multiple_of: float | Decimal | None = field(default=None, kw_only=True)
    min_length: int | None = field(default=None, kw_only=True)
    max_length: int | None = field(default=None, kw_only=True)
    pattern: str | None = field(default=None, kw_only=True)
    examples: Sequence[object] | None = field(default=None, kw_only=True)
    title: str | None = field(default=None, kw_only=True)
    deprecated: bool | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class HeaderParam:
    """Asks HTTP clients to send an argument as the header ``Mcp-Param-<name>`` too.

    ``Annotated[str, HeaderParam("Region")]`` puts ``x-mcp-header`` into the schema (specification
    2026-07-28, Custom Headers from Tool Parameters). Only for str, int and bool, each also with
    ``None``. Not for secrets: the network between sees headers.
    """

    name: str


_NUMERIC = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_NAMES = (*_NUMERIC, "min_length", "max_length", "pattern")
_TEXTS = ("title", "examples", "deprecated")


def annotated_node(node: Node, metadata: Sequence[Any]) -> Node:
    """Return ``node`` with the metadata of an ``Annotated`` hint applied, left to right.

    Raises:
        UnsupportedHint: If a constraint does not fit the hint, or is itself malformed.
    """
    for item in metadata:
        if isinstance(item, str):
            node = _with(node, {"description": item})
        elif isinstance(item, dict):
            node = _with(node, _json(item))
        elif isinstance(item, HeaderParam):
            node = _header_node(node, item.name)
        else:
            node = _read(node, item)
    return node


def _with(node: Node, extra: Mapping[str, Any]) -> Node:
    described = node.described or "description" in extra
    return replace(node, schema={**node.schema, **extra}, described=described)


def _json(value: Any) -> Any:
    try:
        return to_json(value)
    except (TypeError, ValueError) as error:
        raise UnsupportedHint(f"Annotated metadata must be JSON: {error}") from None


def _read(node: Node, item: Any) -> Node:
    """Apply one object whose attributes say something."""
    description = getattr(item, "description", None)
    extra: dict[str, Any] = {"description": description} if isinstance(description, str) else {}
    module = type(item).__module__.partition(".")[0]
    if isinstance(item, Param) or module in ("annotated_types", "pydantic"):
        for name in _TEXTS:
            value = getattr(item, name, None)
            if value is not None and value is not False:
                extra[name] = _json(value) if name != "deprecated" else True
        values = {name: getattr(item, name, None) for name in _NAMES}
        # Interval and Len need no unpacking: they carry the same attributes.
        if not values["min_length"]:  # Len(0, 5) says "no least length" with a zero
            values["min_length"] = None
        node = _constrained(node, {name: v for name, v in values.items() if v is not None})
        # pydantic's Field(ge=1) keeps the constraint objects in a list.
        for inner in getattr(item, "metadata", None) or ():
            node = _read(node, inner)
    return _with(node, extra) if extra else node


# --- constraints -------------------------------------------------------------------------------


def _constrained(node: Node, values: dict[str, Any]) -> Node:
    if not values:
        return node
    schema = node.schema
    checks: list[Callable[[Any], None]] = []
    for name, given in values.items():
        value, check = _constraint(name, given)
        changed = _constrain_schema(schema, name, value)
        if changed is None:
            raise UnsupportedHint(
                f"the constraint {name} does not fit {node.expected}; take it away or change the "
                "type"
            )
        schema = changed
        checks.append(check)

    def checked(convert: Convert) -> Convert:
        def converted(value: Any, depth: int) -> Any:
            made = convert(value, depth)
            for check in checks:
                check(made)
            return made

        return converted

    keys = checked(node.keys) if node.keys is not None else None
    exact, lenient = checked(node.exact), checked(node.lenient)
    return replace(node, schema=schema, exact=exact, lenient=lenient, keys=keys)


def _constraint(name: str, given: Any) -> tuple[Any, Callable[[Any], None]]:
    """Return the value for the schema and the check of a converted value."""
    if name == "pattern":
        text = given.pattern if isinstance(given, re.Pattern) else given
        return text, _pattern_check(text)
    if name in _NUMERIC:
        number = _number(name, given)
        return number, _numeric_check(name, given)
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise UnsupportedHint(f"the constraint {name} must be an integer of at least 0")
    return given, _length_check(name, given)


def _number(name: str, given: Any) -> int | float:
    if isinstance(given, Decimal) and given.is_finite():
        given = int(given) if given == given.to_integral_value() else float(given)
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not math.isfinite(given):
        raise UnsupportedHint(f"the constraint {name} must be a finite number")
    if name == "multiple_of" and given <= 0:
        raise UnsupportedHint("the constraint multiple_of must be greater than 0")
    return given


def _numeric_check(name: str, bound: Any) -> Callable[[Any], None]:
    tests: dict[str, Callable[[Any], bool]] = {
        "ge": lambda value: bool(value >= bound),
        "gt": lambda value: bool(value > bound),
        "le": lambda value: bool(value <= bound),
        "lt": lambda value: bool(value < bound),
        "multiple_of": lambda value: _is_multiple(value, bound),
    }
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    expected = f"{words.get(name, 'a multiple of')} {bound}"
    fits = tests[name]

    def check(value: Any) -> None:
        numeric = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
        if numeric and not fits(value):
            raise Mismatch(_NUMERIC[name], expected)

    return check


def _is_multiple(value: Any, bound: Any) -> bool:
    if isinstance(value, int) and isinstance(bound, int):
        return value % bound == 0
    try:
        # Decimal of the shortest text: 0.3 is a multiple of 0.1, as a person means it.
        return Decimal(str(value)) % Decimal(str(bound)) == 0
    except (ArithmeticError, ValueError):  # a quotient of more digits than Decimal keeps
        return False


def _length_check(name: str, bound: int) -> Callable[[Any], None]:
    least = name == "min_length"

    def check(value: Any) -> None:
        if hasattr(value, "__len__"):
            size = len(value)
            if size < bound if least else size > bound:
                keyword, unit = _length_words(value, least)
                side = "least" if least else "most"
                raise Mismatch(keyword, f"at {side} {counted(bound, unit)}")

    return check


def _length_words(value: Any, least: bool) -> tuple[str, str]:
    side = "min" if least else "max"
    if isinstance(value, str):
        return side + "Length", "characters"
    if isinstance(value, (bytes, bytearray)):
        return side + "Length", "bytes"
    if isinstance(value, Mapping):
        return side + "Properties", "entries"
    return side + "Items", "items"


def _pattern_check(text: Any) -> Callable[[Any], None]:
    if not isinstance(text, str):
        raise UnsupportedHint("the constraint pattern must be the text of a regular expression")
    try:
        search = re.compile(text).search
    except re.error as error:
        raise UnsupportedHint(f"the constraint pattern is no regular expression: {error}") from None

    def check(value: Any) -> None:
        if isinstance(value, str) and search(value) is None:
            raise Mismatch("pattern", f"text that matches {text}")

    return check


def _constrain_schema(schema: Schema, name: str, value: Any) -> Schema | None:
    """Return the schema with the constraint, or ``None`` where it fits no part of it."""
    if "anyOf" in schema:
        parts = [_constrain_schema(part, name, value) for part in schema["anyOf"]]
        if not any(parts):
            return None
        merged = [new or old for new, old in zip(parts, schema["anyOf"], strict=True)]
        return {**schema, "anyOf": merged}
    kind = None if "enum" in schema else schema.get("type")
    if name in _NUMERIC:
        return {**schema, _NUMERIC[name]: value} if kind in ("integer", "number") else None
    side = "min" if name == "min_length" else "max"
    if kind == "string" and "format" not in schema:
        encoded = "contentEncoding" in schema
        if name == "pattern":
            return None if encoded else {**schema, "pattern": value}
        # Base64 writes each three bytes, or what is left of them, as four characters.
        return {**schema, side + "Length": (value + 2) // 3 * 4 if encoded else value}
    if name != "pattern" and kind == "array" and "prefixItems" not in schema:
        return {**schema, side + "Items": value}
    if name != "pattern" and kind == "object" and "properties" not in schema:
        return {**schema, side + "Properties": value}
    return None


# --- headers -----------------------------------------------------------------------------------


def _header_node(node: Node, name: str) -> Node:
    schema = node.schema
    if "anyOf" in schema:
        # A header must stand beside one primitive `type`. Of `str | None`, null stays accepted
        # and is not advertised: a client leaves the argument out instead.
        rest = [part for part in schema["anyOf"] if part != {"type": "null"}]
        if len(rest) == 1:
            schema = {**{k: v for k, v in schema.items() if k != "anyOf"}, **rest[0]}
    if schema.get("type") not in ("string", "integer", "boolean"):
        raise UnsupportedHint(
            f"HeaderParam needs a str, int or bool, not {node.expected}; a header holds one of "
            "these only"
        )
    return replace(node, schema={**schema, "x-mcp-header": name})
