"""Names of tools across servers: ``mcp__<server>__<tool>`` (row C26). Floor 1; pure."""

from __future__ import annotations

import re

_PREFIX = "mcp__"
_SEPARATOR = "__"
_OUTSIDE = re.compile(r"[^A-Za-z0-9_]")


def tool_name(server: str, tool: str) -> str:
    """Return the name by which an application knows a server's tool.

    Each character of ``server`` outside ``[A-Za-z0-9_]`` becomes ``_``; ``tool`` stays as it is.
    """
    return f"{_PREFIX}{_OUTSIDE.sub('_', server)}{_SEPARATOR}{tool}"


def parse_tool_name(name: str) -> tuple[str, str] | None:
    """Return the ``(server, tool)`` of a name, or ``None`` if it is no such name.

    It is split at the first ``__`` after the prefix, so a server name that holds ``__`` itself
    does not come back whole.
    """
    if not name.startswith(_PREFIX):
        return None
    server, separator, tool = name[len(_PREFIX) :].partition(_SEPARATOR)
    return (server, tool) if separator and server and tool else None
