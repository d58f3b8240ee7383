"""What failures over HTTP say of a server's era (row C22). Floor 1; pure."""

from __future__ import annotations

from raxol_sync.errors import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    HTTPStatusError,
    InvalidResponse,
    RPCError,
)

_UNDECIDED = frozenset({401, 403, 408, 429})
_STALE = frozenset({INVALID_REQUEST, METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION, -32000})


def undecided(error: BaseException) -> bool:
    """Return whether a failed probe says nothing of the era, so that the attempt has failed."""
    if isinstance(error, HTTPStatusError):
        return error.status in _UNDECIDED
    return not isinstance(error, InvalidResponse)


def wants_older(error: BaseException) -> bool:
    """Return whether a failed ``initialize`` may mean that the server only speaks HTTP+SSE."""
    return isinstance(error, HTTPStatusError) and error.status in (400, 404, 405)


def stale(error: BaseException | None) -> bool:
    """Return whether the first answer of a server that was modern lately says that it is not."""
    if isinstance(error, HTTPStatusError):
        return 400 <= error.status < 500 and error.status not in _UNDECIDED
    return isinstance(error, RPCError) and error.code in _STALE


def is_terminal(error: BaseException | None) -> bool:
    """Return whether a failed connect is not worth a retry: the credentials are refused (C18)."""
    return isinstance(error, HTTPStatusError) and error.status == 401
