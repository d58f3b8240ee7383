"""What a modern request's HTTP headers repeat of its body (row C30). Floor 1; pure.

Spec: basic/transports/streamable-http, "Request Metadata" (2026-07-28).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Which of a method's params goes into ``Mcp-Name``."""

_PLAIN = re.compile(r"(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?")
_PREFIX, _SUFFIX = "=?base64?", "?="

HeaderPaths = Mapping[tuple[str, ...], str]
"""The name after ``Mcp-Param-`` per path of property names; see ``schema.headers``."""


def encode_value(value: str | int | bool) -> str:
    """Return a value as a header carries it: plain where that is safe, else Base64."""
    if value is True or value is False:
        return "true" if value else "false"
    text = str(value)
    sentinel = text.startswith(_PREFIX) and text.endswith(_SUFFIX)
    if _PLAIN.fullmatch(text) and not sentinel:
        return text
    return _PREFIX + base64.b64encode(text.encode("utf-8")).decode("ascii") + _SUFFIX


def standard(method: str, params: Mapping[str, Any] | None) -> dict[str, str]:
    """Return ``Mcp-Method`` and, where the method has one, ``Mcp-Name``."""
    found = {"Mcp-Method": method}
    key = NAMED_BY.get(method)
    name = params.get(key) if key is not None and params else None
    if isinstance(name, str):
        found["Mcp-Name"] = encode_value(name)
    return found


def of_arguments(paths: HeaderPaths, arguments: object) -> dict[str, str]:
    """Return the ``Mcp-Param-*`` headers of a call.

    What has no value, ``null``, or one that no header can carry (a list, a float) has no header.
    """
    found: dict[str, str] = {}
    for path, name in paths.items():
        value: object = arguments
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, (str, int)):
            found[f"Mcp-Param-{name}"] = encode_value(value)
        elif isinstance(value, float) and value.is_integer():
            found[f"Mcp-Param-{name}"] = encode_value(int(value))
    return found
