"""Where in a caller's arguments the thing is that cannot be written as JSON. Floor 1; pure.

Nothing here puts a value into a text: only the names that lead to it, and its type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from raxol_sync.errors import InvalidArguments
from raxol_sync.protocol.wire import EncodeError, encode

_RESERVED = "io.modelcontextprotocol/"  # how the keys begin that belong to the protocol
_DEEPEST = 150  # levels that are looked at
_LONGEST_NAME = 64  # characters of a name in a path
_REMEDIES = {
    "bytes": "encode it as text first, for example with base64.b64encode(...).decode()",
    "bytearray": "encode it as text first, for example with base64.b64encode(...).decode()",
    "datetime": "write it as text first, with .isoformat()",
    "date": "write it as text first, with .isoformat()",
    "time": "write it as text first, with .isoformat()",
    "set": "make a list of it first, for example with sorted(...)",
    "frozenset": "make a list of it first, for example with sorted(...)",
    "Decimal": "convert it first, with str(...) or float(...)",
    "UUID": "convert it first, with str(...)",
    "PosixPath": "convert it first, with str(...)",
    "WindowsPath": "convert it first, with str(...)",
}
_CONVERT = "convert it first to a string, number, boolean, list, dict or None"


def encode_params(params: Mapping[str, Any] | None) -> bytes:
    """Return params, without ``_meta``, as JSON.

    Raises:
        InvalidArguments: they cannot be; it says where and what to do.
    """
    if not params:
        return b"{}"
    try:
        return encode(params)
    except EncodeError:
        pass
    # Raised here, so that no exception hangs on it whose text may hold a value.
    path, reason = _find(dict(params), "", ()) or ("", f"something in them: {_CONVERT}")
    raise InvalidArguments(path, reason)


def split_meta(
    params: Mapping[str, Any] | None,
) -> tuple[Mapping[str, Any] | None, bytes | None]:
    """Return params without ``_meta``, and that as JSON, if they have it.

    Raises:
        TypeError: it is no mapping.
        ValueError: it has a key that the library sets itself.
        InvalidArguments: it cannot be JSON.
    """
    meta = params.get("_meta") if params else None
    if params is None or meta is None:
        return params, None
    if not isinstance(meta, Mapping):
        raise TypeError(f"meta must be a mapping, not {type(meta).__name__}")
    own = [key for key in meta if key == "progressToken" or str(key).startswith(_RESERVED)]
    if own:
        raise ValueError(f"meta must not have {own[0]!r}: the library sets that itself")
    return {key: value for key, value in params.items() if key != "_meta"}, encode_params(meta)


def _find(value: object, path: str, above: tuple[int, ...]) -> tuple[str, str] | None:
    """Return the path of the first thing that is no JSON, and what is wrong with it."""
    if isinstance(value, str):
        return _lone(value, path)
    if isinstance(value, float):
        return (
            None if math.isfinite(value) else (path, "NaN and Infinity are not in JSON; use None")
        )
    if value is None or isinstance(value, (bool, int)):
        return None
    if not isinstance(value, (dict, list, tuple)):
        name = type(value).__name__
        remedy = _REMEDIES.get(name, _CONVERT)
        return path, f"a value of type {name} cannot be written as JSON: {remedy}"
    if id(value) in above:
        return path, "it contains itself"
    if len(above) >= _DEEPEST:
        return path, "it is nested too deeply"
    inner = (*above, id(value))
    if isinstance(value, dict):
        return _find_in_dict(value, path, inner)
    for index, item in enumerate(value):
        found = _find(item, f"{path}[{index}]", inner)
        if found is not None:
            return found
    return None


def _find_in_dict(
    value: dict[Any, Any], path: str, inner: tuple[int, ...]
) -> tuple[str, str] | None:
    for key, item in value.items():
        if not isinstance(key, str):
            if key is None or isinstance(key, (bool, int, float)):
                continue
            return path, f"a key has type {type(key).__name__}: keys of a dict must be strings"
        below = f"{path}.{_shown(key)}" if path else _shown(key)
        found = _lone(key, path) or _find(item, below, inner)
        if found is not None:
            return found
    return None


def _lone(text: str, path: str) -> tuple[str, str] | None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return path, "a string holds a lone surrogate; encode it with errors='replace' first"
    return None


def _shown(key: str) -> str:
    cut = key if len(key) <= _LONGEST_NAME else f"{key[:_LONGEST_NAME]}..."
    return cut.encode("unicode_escape").decode("ascii")
