"""What a browser must be told so that pages of allowed origins may call us. Floor 2; pure.

Only origins that were allowed by name get anything: other pages cannot read what we answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from raxol_sync.server.http.guard import ANY, Names
from raxol_sync.server.http.replies import Header, Reply

_WANTED = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]{0,2000}")
_KNOWN = (
    "Accept, Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, "
    "Mcp-Name, Mcp-Session-Id"
)


def headers_for(names: Names, environ: Mapping[str, Any]) -> list[Header]:
    """Return the headers that an answer gets besides its own."""
    origin = environ.get("HTTP_ORIGIN")
    if origin is None or not names.names_origin(origin):
        return []
    shown = ANY if ANY in names.origins else origin.lower()
    return [
        ("Access-Control-Allow-Origin", shown),
        ("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate"),
        ("Vary", "Origin"),
    ]


def preflight(names: Names, environ: Mapping[str, Any], methods: str) -> Reply | None:
    """Return the answer to a browser that asks before it calls; ``None``: it is no such request."""
    found = headers_for(names, environ)
    if not found or "HTTP_ACCESS_CONTROL_REQUEST_METHOD" not in environ:
        return None
    wanted = environ.get("HTTP_ACCESS_CONTROL_REQUEST_HEADERS") or _KNOWN
    allowed = wanted if _WANTED.fullmatch(wanted) else _KNOWN
    more = [
        ("Access-Control-Allow-Methods", methods),
        ("Access-Control-Allow-Headers", allowed),
        ("Access-Control-Max-Age", "600"),
    ]
    return Reply(204, more)
