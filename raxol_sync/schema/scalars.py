"""Nodes for values that are one JSON string, number, boolean or null. Floor 2; pure.

The leniency of each is stated in the docstring of ``raxol_sync.schema``. ``output=True`` makes the
node of a return hint: its converters only check a JSON value that ``to_json`` made.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from enum import Enum, Flag
from typing import Any

from raxol_sync.schema.node import Convert, Node, UnsupportedHint
from raxol_sync.schema.violations import MAX_NAME, Mismatch, wrong_type

_MAX_DIGITS = 1_000  # characters of a number in text; int() itself gives up at 4,300
_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))(?:\.0+)?")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,4})?")
_INTEGER_KEY = r"^-?(0|[1-9][0-9]*)$"


def string_node() -> Node:
    """Return the node of ``str``. Only strings fit: a number is not turned into text."""

    def convert(value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return value
        raise wrong_type("a string", value)

    return Node({"type": "string"}, convert, convert, "a string", keys=convert)


def none_node() -> Node:
    """Return the node of ``None``. Lenient: the text ``null``."""

    def exact(value: Any, depth: int) -> Any:
        if value is None:
            return None
        raise wrong_type("null", value)

    def lenient(value: Any, depth: int) -> Any:
        if value is None or value == "null":
            return None
        raise wrong_type("null", value)

    return Node({"type": "null"}, exact, lenient, "null", nullable=True)


def boolean_node() -> Node:
    """Return the node of ``bool``. Lenient: the texts ``true`` and ``false``."""

    def exact(value: Any, depth: int) -> Any:
        if value is True or value is False:
            return value
        raise wrong_type("true or false", value)

    def lenient(value: Any, depth: int) -> Any:
        if value is True or value is False:
            return value
        if isinstance(value, str) and value in ("true", "false"):
            return value == "true"
        raise wrong_type("true or false", value)

    return Node({"type": "boolean"}, exact, lenient, "true or false")


def integer_node(output: bool) -> Node:
    """Return the node of ``int``. Lenient: whole floats, and whole numbers in text."""

    def exact(value: Any, depth: int) -> Any:
        if type(value) is int:
            return value
        # JSON Schema calls 3.0 an integer; a result is only checked, so it may stay a float.
        if output and isinstance(value, float) and value.is_integer():
            return value
        raise wrong_type("an integer", value)

    def lenient(value: Any, depth: int) -> Any:
        if type(value) is int:
            return value
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, str) and len(value) <= _MAX_DIGITS:
            match = _WHOLE.fullmatch(value)
            if match is not None:
                return int(match[1])
        raise wrong_type("an integer", value)

    return Node({"type": "integer"}, exact, lenient, "an integer", keys=_integer_key)


def _integer_key(value: Any, depth: int) -> Any:
    if isinstance(value, str) and len(value) <= _MAX_DIGITS and re.fullmatch(_INTEGER_KEY, value):
        return int(value)
    raise Mismatch("propertyNames", "an integer")


def number_node(output: bool) -> Node:
    """Return the node of ``float``. Lenient: integers, and numbers in text. Never NaN, infinity."""

    def exact(value: Any, depth: int) -> Any:
        if type(value) is float and math.isfinite(value):
            return value
        if output and type(value) is int:
            return value
        raise wrong_type("a number", value)

    def lenient(value: Any, depth: int) -> Any:
        kind = type(value)
        numeric = kind is float or kind is int
        if not numeric and kind is str and len(value) <= _MAX_DIGITS:
            numeric = _NUMBER.fullmatch(value) is not None
        if numeric:
            try:
                number = float(value)
            except OverflowError:  # an int that no float can hold
                number = math.inf
            if math.isfinite(number):
                return number
            if kind is not float:
                raise Mismatch("type", "a number of at most 1.8e308")
        raise wrong_type("a number", value)

    return Node({"type": "number"}, exact, lenient, "a number")


def decimal_node(output: bool) -> Node:
    """Return the node of ``Decimal``: a number, or better (no rounding) a number in text."""

    def convert(value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str and len(value) <= _MAX_DIGITS and _NUMBER.fullmatch(value):
            return Decimal(value)
        if kind is int or (kind is float and math.isfinite(value)):
            # str() gives the shortest text that means this float: 0.1 stays 0.1. It refuses an
            # int of more than 4,300 digits, Decimal itself does not.
            return Decimal(value) if kind is int else Decimal(str(value))
        raise wrong_type("a decimal number", value)

    def check(value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return value
        raise wrong_type("a decimal number in text", value)

    if output:
        return Node({"type": "string"}, check, check, "a decimal number in text")
    text = {"type": "string", "pattern": f"^{_NUMBER.pattern}$"}
    schema = {"anyOf": [{"type": "number"}, text]}
    return Node(schema, convert, convert, "a decimal number")


def bytes_node(kind: type, output: bool) -> Node:
    """Return the node of ``bytes`` or ``bytearray``: a string of base64."""
    expected = "a string of base64"

    def convert(value: Any, depth: int) -> Any:
        if isinstance(value, str):
            try:
                return kind(base64.b64decode(value, validate=True))
            except ValueError:
                raise Mismatch("contentEncoding", expected) from None
        raise wrong_type(expected, value)

    schema = {"type": "string", "contentEncoding": "base64"}
    return Node(schema, convert, convert, expected)


def text_node(
    form: str,
    expected: str,
    parse: Callable[[str], Any],
    loose: Callable[[Any], Any] | None = None,
) -> Node:
    """Return a node for a value written in text.

    Args:
        form: The ``format`` of the JSON Schema, such as ``date-time``.
        expected: The rule in words.
        parse: Text to value; raises ``ValueError`` or ``OverflowError``.
        loose: What else the lenient converter takes, the same way.
    """

    def exact(value: Any, depth: int) -> Any:
        if isinstance(value, str):
            try:
                return parse(value)
            except (ValueError, OverflowError):
                raise Mismatch("format", expected) from None
        raise wrong_type(expected, value)

    def lenient(value: Any, depth: int) -> Any:
        try:
            return exact(value, depth)
        except Mismatch:
            if loose is None:
                raise
            try:
                return loose(value)
            except (ValueError, OverflowError, TypeError):
                pass
            raise

    return Node({"type": "string", "format": form}, exact, lenient, expected, keys=exact)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError):
        raise ValueError("not a regular expression") from None


def uuid_node() -> Node:
    """Return the node of ``UUID``: text with format ``uuid``."""
    from uuid import UUID  # at its first use, as pathlib below: each takes milliseconds to import

    return text_node("uuid", "a UUID", UUID)


def path_node() -> Node:
    """Return the node of ``pathlib.Path``: any text without a null character."""
    from pathlib import Path

    def parse(text: str) -> Path:
        if "\0" in text:  # no file system has such a name; open() would fail much later
            raise ValueError("null character")
        return Path(text)

    return text_node("path", "a file path without a null character", parse)


def pattern_node() -> Node:
    """Return the node of ``re.Pattern``: the text of a regular expression."""
    return text_node("regex", "a regular expression", _pattern)


# --- choices ----------------------------------------------------------------------------------


def _kind(value: Any) -> type:
    # 1, 1.0 and True are equal in Python and three things in JSON Schema (1 and 1.0 are one).
    if isinstance(value, float) and value.is_integer():
        return int
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind
    return type(value)


def choice_node(pairs: list[tuple[Any, Any]]) -> Node:
    """Return a node for a closed list of scalars, as ``Literal`` and ``Enum`` are.

    Args:
        pairs: JSON value and the Python value it stands for. Lenient: a number or boolean written
            as text, where that text is not itself a choice.
    """
    table = {(_kind(raw), raw): value for raw, value in reversed(pairs)}
    choices = list(dict.fromkeys((_kind(raw), raw) for raw, _ in pairs))
    words: dict[str, Any] = {}
    for kind, raw in choices:
        if kind in (bool, int):
            words.setdefault(str(raw).lower(), table[kind, raw])
    expected = _shown_choices([raw for _, raw in choices])

    def exact(value: Any, depth: int) -> Any:
        try:
            return table[_kind(value), value]
        except (KeyError, TypeError):  # TypeError: a list or an object
            raise Mismatch("enum", expected) from None

    def lenient(value: Any, depth: int) -> Any:
        try:
            return table[_kind(value), value]
        except (KeyError, TypeError):
            if isinstance(value, str) and value in words:
                return words[value]
            raise Mismatch("enum", expected) from None

    schema: dict[str, Any] = {"enum": [raw for _, raw in choices]}
    kinds = {kind for kind, _ in choices}
    name = {bool: "boolean", int: "integer", float: "number", str: "string"}
    if len(kinds) == 1 and (only := kinds.pop()) in name:
        schema = {"type": name[only], **schema}
    nullable = (type(None), None) in table
    keys: Convert | None = exact if schema.get("type") == "string" else None
    return Node(schema, exact, lenient, expected, nullable=nullable, keys=keys)


def _shown_choices(values: list[Any]) -> str:
    """Return the choices as they are written in JSON."""
    texts = [json.dumps(value, ensure_ascii=False) for value in values[:20]]
    shown = [text if len(text) <= MAX_NAME else text[:MAX_NAME] + "..." for text in texts]
    if len(values) == 1:
        return shown[0]
    return "one of " + ", ".join(shown) + (", ..." if len(values) > 20 else "")


def enum_node(kind: type[Enum], output: bool) -> Node:
    """Return the node of an ``Enum`` class: its values. A ``Flag`` is an integer.

    Raises ``UnsupportedHint`` for a class without members or with values that are not scalars.
    """
    if issubclass(kind, Flag):
        return _flag_node(kind, output)
    members = list(kind.__members__.values())
    if not members:
        raise UnsupportedHint(f"the enum {kind.__name__} has no members; add some")
    pairs = []
    for member in members:
        raw = member.value
        if isinstance(raw, float) and not math.isfinite(raw):
            raw = object()
        if raw is not None and not isinstance(raw, (str, int, float, bool)):
            raise UnsupportedHint(
                f"the value of {kind.__name__}.{member.name} is not a string, number, boolean or "
                "None; give the enum such values"
            )
        pairs.append((raw, member))
    return choice_node(pairs)


def _flag_node(kind: type[Flag], output: bool) -> Node:
    whole = integer_node(output)
    mask = 0
    for member in kind.__members__.values():
        mask |= int(member.value)
    # Python 3.11.0 to 3.11.3 make a member of a strict Flag of any number: so look at the bits.
    boundary = getattr(getattr(kind, "_boundary_", None), "name", "STRICT")
    expected = f"an integer that combines flags of {kind.__name__}"
    strict = boundary == "STRICT" and not issubclass(kind, int)

    def wrap(convert: Convert) -> Convert:
        def made(value: Any, depth: int) -> Any:
            number = convert(value, depth)
            try:
                if strict and number > mask:
                    raise ValueError
                return kind(number)
            except ValueError:
                raise Mismatch("enum", expected) from None

        return made

    return Node({"type": "integer"}, wrap(whole.exact), wrap(whole.lenient), "an integer")
