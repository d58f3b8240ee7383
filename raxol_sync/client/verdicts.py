"""What failures to connect say, most of all over HTTP: of a server's era (row C22), and in words.

Floor 1; pure.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from raxol_sync.client.targets import HttpTarget
from raxol_sync.errors import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    ConnectFailed,
    HTTPStatusError,
    InvalidResponse,
    RPCError,
)

OLDER = frozenset({400, 404, 405})
"""Statuses that answer ``initialize`` where a server perhaps only speaks HTTP+SSE."""

_UNDECIDED = frozenset({401, 403, 408, 429})
_SAID = 200  # characters that are shown of what a server says
# Of these nobody could make a text that repeats a secret.
_KINDS = frozenset({"text/html", "text/plain", "text/xml", "application/xml"})
_SECRET = 3  # characters; what is shorter is in any text
_STALE = frozenset({INVALID_REQUEST, METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION, -32000})


class FailedForGood(ConnectFailed):
    """Raised by a transport whose server has ended for good: connecting anew would change nothing.

    Callers get a plain ``ConnectFailed``.
    """


def undecided(error: BaseException) -> bool:
    """Return whether a failed probe says nothing of the era, so that the attempt has failed."""
    if isinstance(error, HTTPStatusError):
        return error.status in _UNDECIDED
    return not isinstance(error, InvalidResponse)


def wants_older(error: BaseException) -> bool:
    """Return whether a failed ``initialize`` may mean that the server only speaks HTTP+SSE."""
    return isinstance(error, HTTPStatusError) and error.status in OLDER


def forgets(status: int, said: Mapping[str, Any] | None) -> bool:
    """Return whether an answer to what carried a session id says that the session is gone (C17).

    404 is what the specification wants. Many servers that are made after the TypeScript SDK's
    example answer 400 with an error of their own which says that the session id is not valid.
    """
    if status == 400 and said is not None:
        return said.get("code") == -32000 and "session" in str(said.get("message", "")).lower()
    return status == 404


def stale(error: BaseException | None) -> bool:
    """Return whether the first answer of a server that was modern lately says that it is not."""
    if isinstance(error, HTTPStatusError):
        return 400 <= error.status < 500 and error.status not in _UNDECIDED
    return isinstance(error, RPCError) and error.code in _STALE


def is_terminal(error: BaseException | None) -> bool:
    """Return whether a failed connect is not worth a retry.

    The credentials are refused (row C18), or the server of this process is closed.
    """
    if isinstance(error, HTTPStatusError):
        return error.status == 401
    return isinstance(error, FailedForGood)


def refusal(
    status: int,
    target: HttpTarget,
    headers: Mapping[str, str],
    said: Mapping[str, Any] | None = None,
) -> HTTPStatusError:
    """Return an HTTP status of 400 and more as an exception that says what to do about it.

    Args:
        status: the status.
        target: what was asked; told without userinfo and query (row C04).
        headers: the user's, whose values are never told.
        said: the JSON-RPC error that came with it, if one did. It is told in part, unless it
            repeats what is secret; for refused credentials never.
    """
    if status in (401, 403):
        return HTTPStatusError(status, "check headers= or auth=")
    words = []
    if status in (404, 405):
        usual = "" if target.path.rstrip("/").endswith("/mcp") else ": its path is usually /mcp"
        words.append(f"check url=, which is {target.shown}{usual}")
    message = "" if said is None else str(said.get("message", ""))
    if message and not _tells(message, target, headers):
        shown = "".join(char if char.isprintable() else " " for char in message[:_SAID])
        words.append(f"the server says: {shown.strip()}")
    return HTTPStatusError(status, "; ".join(words))


def no_message(kind: str, target: HttpTarget) -> str:
    """Return what is wrong with a response of another content type than JSON or events."""
    words = "the HTTP response is neither JSON nor an event stream"
    if kind in _KINDS:
        words += f" but {kind}"
    return f"{words}: check url=, which is {target.shown}"


def _tells(text: str, target: HttpTarget, headers: Mapping[str, str]) -> bool:
    """Return whether a text repeats a word of a header's value, of the userinfo or the query."""
    secrets = [word for value in headers.values() for word in value.split()]
    if target.authorization is not None:
        encoded = target.authorization.split()[-1]
        secrets += [encoded, *base64.b64decode(encoded).decode("utf-8").split(":")]
    for pair in urlsplit(target.url).query.split("&"):
        value = pair.rpartition("=")[2]
        secrets += [value, unquote_plus(value)]
    return any(secret in text for secret in secrets if len(secret) >= _SECRET)


def seconds_shown(seconds: float) -> str:
    """Return a time for a message, with as many digits as tell something."""
    return f"{round(seconds, 1 if seconds >= 1 else 2):g}"
