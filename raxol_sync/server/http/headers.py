"""The rules for request headers: what they accept, and what they repeat of the body. Floor 1; pure.

Spec: basic/transports/streamable-http, "Request Metadata" (2026-07-28); RFC 9110 for Accept and
Content-Type. Header values are as WSGI hands them over: ``str`` that stands for latin-1 bytes.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from raxol_sync.protocol.modern import VERSION_KEY
from raxol_sync.protocol.wire import Request

JSON = "application/json"
EVENTS = "text/event-stream"

NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Which of a method's params ``Mcp-Name`` repeats."""

_SHORT = 200  # characters; longer headers are not worth remembering
_LEGAL = re.compile(r"[\t\x20-\x7e]*")
_NUMBER = re.compile(r"-?[0-9]{1,400}(?:\.0{0,400})?")
_PREFIX, _SUFFIX = "=?base64?", "?="

Environ = Mapping[str, Any]
HeaderPaths = Mapping[tuple[str, ...], str]
"""The name after ``Mcp-Param-`` per path of property names; see ``schema.headers``."""


# ---------------------------------------------------------------- media types


def accepts(header: str | None, wanted: str) -> bool:
    """Return whether an ``Accept`` header allows a media type; without one anything is allowed.

    The most specific range counts, as RFC 9110 wants it; ``q=0`` forbids.
    """
    if header is None:
        return True
    return _known(header, wanted) if len(header) <= _SHORT else _accepts(header, wanted)


@lru_cache(maxsize=128)
def _known(header: str, wanted: str) -> bool:
    """As ``_accepts``, remembered: a client sends the same one with each request."""
    return _accepts(header, wanted)


def _accepts(header: str, wanted: str) -> bool:
    if not header.strip():
        return True
    kind = wanted.partition("/")[0]
    ranks = {wanted: 3, f"{kind}/*": 2, "*/*": 1}
    best, allowed = 0, False
    for part in header.split(","):
        name, *parameters = part.split(";")
        rank = ranks.get(name.strip().lower(), 0)
        if rank > best:
            best, allowed = rank, not any(map(_is_zero, parameters))
    return allowed


def _is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip().lower() == "q" and re.fullmatch(r"0(\.0*)?", value.strip()) is not None


def is_json(content_type: str | None) -> bool:
    """Return whether a ``Content-Type`` is JSON in UTF-8."""
    if content_type == JSON:
        return True
    if not content_type:
        return False
    name, *parameters = content_type.split(";")
    if name.strip().lower() != JSON:
        return False
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset":
            return value.strip().strip('"').lower() in ("utf-8", "utf8", "us-ascii")
    return True


# ---------------------------------------------------------------- what repeats the body


def read_value(raw: str) -> str | None:
    """Return what a header value stands for, Base64 decoded; ``None`` if it is not a legal one."""
    text = raw.strip(" \t")
    if _LEGAL.fullmatch(text) is None:
        return None
    if not (text.startswith(_PREFIX) and text.endswith(_SUFFIX) and len(text) >= 11):
        return text
    try:
        data = base64.b64decode(text[len(_PREFIX) : -len(_SUFFIX)], validate=True)
        return data.decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def environ_key(name: str) -> str:
    """Return the key under which WSGI has a header."""
    return "HTTP_" + name.upper().replace("-", "_")


def version_of(environ: Environ) -> str | None:
    """Return ``MCP-Protocol-Version``, without outer blanks."""
    raw = environ.get("HTTP_MCP_PROTOCOL_VERSION")
    return raw.strip(" \t") if isinstance(raw, str) else None


def mismatch(environ: Environ, request: Request, paths: HeaderPaths) -> str | None:
    """Return why a modern request's headers do not fit its body, ``None`` if they do.

    ``paths``: which arguments of a ``tools/call`` headers repeat.
    """
    params = request.params
    meta = params.get("_meta")
    version = meta.get(VERSION_KEY) if type(meta) is dict else None
    header = version_of(environ)
    if header is None:
        return "the header MCP-Protocol-Version is missing"
    if version is not None and header != version:
        return "the header MCP-Protocol-Version is not the version in _meta"
    method = environ.get("HTTP_MCP_METHOD")
    if method is None:
        return "the header Mcp-Method is missing"
    if method.strip(" \t") != request.method:
        return "the header Mcp-Method is not the body's method"
    key = NAMED_BY.get(request.method)
    if key is not None:
        problem = _compare("Mcp-Name", environ.get("HTTP_MCP_NAME"), params.get(key))
        if problem is not None:
            return problem
    if paths:
        return _mismatched_argument(environ, params.get("arguments"), paths)
    return None


def _mismatched_argument(environ: Environ, arguments: object, paths: HeaderPaths) -> str | None:
    for path, name in paths.items():
        value: object = arguments
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        header = f"Mcp-Param-{name}"
        problem = _compare(header, environ.get(environ_key(header)), value)
        if problem is not None:
            return problem
    return None


def _compare(name: str, raw: str | None, value: object) -> str | None:
    """Compare a header with the value that it repeats.

    A value that no header can carry (a list, say) is not the header's business: the method's own
    checks refuse it. Texts never tell values: they may be secrets.
    """
    if raw is None:
        missing = isinstance(value, (str, int)) or _whole(value)
        return f"the header {name} is missing" if missing else None
    text = read_value(raw)
    if text is None:
        return f"the header {name} is not valid"
    if isinstance(value, bool):
        same = text == ("true" if value else "false")
    elif isinstance(value, int) or _whole(value):
        same = _NUMBER.fullmatch(text) is not None and int(text.partition(".")[0]) == value
    else:
        same = text == value
    return None if same else f"the header {name} is not the value in the body"


def _whole(value: object) -> bool:
    return isinstance(value, float) and value.is_integer()
