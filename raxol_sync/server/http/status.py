"""Which HTTP status a JSON-RPC answer travels with (row S48). Floor 1; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raxol_sync.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from raxol_sync.protocol import modern, versions
from raxol_sync.protocol.wire import Request

REASONS = {
    200: "OK",
    202: "Accepted",
    204: "No Content",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    411: "Length Required",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    421: "Misdirected Request",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
"""Every status that the application answers with."""

LINES = {status: f"{status} {reason}" for status, reason in REASONS.items()}

WHEN = {
    200: "an answer: a result, or any JSON-RPC error that is not listed below",
    202: "a notification or a response was taken; no body",
    204: "a session was ended; the answer to a browser that asks before it calls",
    400: "what cannot be read as a message; an unsupported `MCP-Protocol-Version`; a modern "
    "request whose envelope or headers are wrong (-32020, -32022, -32602), or that needs what its "
    "client does not declare (-32021); a body that broke off; an unknown `Last-Event-ID`",
    401: "`authenticate` knows nobody of that name; with `WWW-Authenticate`",
    403: "the `Origin` is a foreign page's",
    404: "a session that has ended, or that another process has; a method that the stateless era "
    "does not have (-32601); another path",
    405: "GET and DELETE without a session; any other method; with `Allow`",
    406: "`Accept` does not allow JSON and event streams (for GET: event streams)",
    408: "the body did not come in time",
    411: "a body without a length, under a host that cannot read one",
    413: "the body is longer than `max_body_bytes`",
    415: "`Content-Type` is not `application/json`",
    421: "the `Host` is none of `allowed_hosts`",
    500: "`authenticate` failed, or a fault of the library's; the log has it",
    503: "all sessions or event streams are taken, with `Retry-After`; the server is closed",
}
"""When each of them is answered, for people."""

_ALWAYS_400 = frozenset(
    {
        PARSE_ERROR,
        INVALID_REQUEST,
        HEADER_MISMATCH,
        MISSING_CLIENT_CAPABILITY,
        UNSUPPORTED_PROTOCOL_VERSION,
    }
)


def of_modern(request: Request, answer: Mapping[str, Any]) -> int:
    """Return the status of a modern request's answer.

    -32601 is 404 where the method is not implemented; an unknown tool is 200. -32602 is 400 where
    the envelope is at fault; params of the method's own are 200.
    """
    failure = answer.get("error")
    if failure is None:
        return 200
    code = failure["code"]
    if code in _ALWAYS_400:
        return 400
    if code == METHOD_NOT_FOUND:
        return 200 if request.method in versions.MODERN.methods else 404
    if code == INVALID_PARAMS:
        checked = modern.read_envelope(request.params, versions.SUPPORTED)
        return 400 if isinstance(checked, modern.Refusal) else 200
    return 200


def of_legacy(answer: Mapping[str, Any]) -> int:
    """Return the status of a legacy request's answer: always 200."""
    return 200
