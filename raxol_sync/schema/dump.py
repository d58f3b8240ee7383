"""Python values to JSON values. Floor 2; pure.

``to_json`` is used for results of callbacks and for defaults in schemas. What it does not know is
refused by name: guessing (``str(value)``) would send things nobody meant to send.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import os
import re
import sys
from collections import deque
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

from raxol_sync.schema.moments import format_duration
from raxol_sync.schema.violations import MAX_DEPTH, join, step_of


def to_json(value: object) -> object:
    """Return ``value`` as a JSON value made of new dicts and lists.

    Known: None, bool, int, float, str; mappings, lists, tuples, sets (sorted where their items
    can be), deques; dataclasses and NamedTuples (an object); Enum (its value); datetime, date,
    time, timedelta (ISO 8601 text), Decimal (text), UUID, paths, compiled patterns; bytes (base64
    text); pydantic models. Keys must be str, int or Enum.

    Raises:
        TypeError: For any other type, named together with the place.
        ValueError: For NaN, infinity, two keys that become one, or more than 64 levels (which is
            also how a value that contains itself ends).
    """
    return _dump(value, "", 0)


def _dump(value: Any, path: str, depth: int) -> Any:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return _finite(value, path)
    if depth > MAX_DEPTH:
        raise ValueError(f"{_at(path)} is nested deeper than {MAX_DEPTH} levels")
    if kind is list:
        return _dump_items(value, path, depth)
    if kind is dict:
        return _dump_mapping(value, path, depth)
    return _dump_other(value, path, depth)


def _dump_other(value: Any, path: str, depth: int) -> Any:
    if isinstance(value, Enum):
        return _dump(value.value, path, depth + 1)
    if isinstance(value, (str, int, float)):
        return _plain(value, path)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _dump_mapping(dict(zip(value._fields, value, strict=True)), path, depth)
    if isinstance(value, Mapping):
        return _dump_mapping(value, path, depth)
    if isinstance(value, (list, tuple, deque)):
        return _dump_items(value, path, depth)
    if isinstance(value, (set, frozenset)):
        items = [_dump(item, f"{path}[*]", depth + 1) for item in value]
        try:
            return sorted(items)  # the same set gives the same JSON
        except TypeError:  # items of several types have no order
            return items
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return _dump_mapping(fields, path, depth)
    return _dump_scalar(value, path, depth)


# Most items are these, and need neither a path nor a look at their depth.
_PLAIN = frozenset({str, int, bool, type(None)})


def _dump_items(value: Any, path: str, depth: int) -> list[Any]:
    return [
        item if type(item) in _PLAIN else _dump(item, f"{path}[{index}]", depth + 1)
        for index, item in enumerate(value)
    ]


def _plain(value: Any, path: str) -> Any:
    """Return an instance of a subclass of str, int or float as the plain type."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__index__(value)
    return _finite(float.__float__(value), path)


def _dump_scalar(value: Any, path: str, depth: int) -> Any:
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{_at(path)} is NaN or infinite; JSON has no such number")
        return str(value)
    if isinstance(value, os.PathLike) and isinstance(path_text := os.fspath(value), str):
        return path_text
    uuid = sys.modules.get("uuid")  # a value of a module that is not loaded cannot exist
    if uuid is not None and isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        return value.pattern
    pydantic = sys.modules.get("pydantic")  # likewise
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        # mode="json" gives plain JSON types, but lets NaN through: once more.
        return _dump(value.model_dump(mode="json", by_alias=True), path, depth + 1)
    raise TypeError(
        f"{_at(path)} is of type {type(value).__qualname__}, which has no JSON form; return a str, "
        "number, bool, None, list, dict, dataclass, NamedTuple, Enum, date or pydantic model"
    )


def _dump_mapping(value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, item in value.items():
        name = key if type(key) is str else _key(key, path)
        if name in made:
            raise ValueError(f"{_at(path)} has two keys that are both {step_of(name)} in JSON")
        if type(item) in _PLAIN:
            made[name] = item
        else:
            made[name] = _dump(item, join(path, step_of(name)), depth + 1)
    return made


def _key(key: Any, path: str) -> str:
    if isinstance(key, Enum):
        key = key.value
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return int.__repr__(key)
    raise TypeError(
        f"a key of {_at(path)} is of type {type(key).__qualname__}; keys of a JSON object are "
        "strings: use str (int and Enum are converted)"
    )


def _finite(value: float, path: str) -> float:
    if math.isfinite(value):
        return value
    raise ValueError(f"{_at(path)} is NaN or infinite; JSON has no such number")


def _at(path: str) -> str:
    return f"the value at {path}" if path else "the value"
