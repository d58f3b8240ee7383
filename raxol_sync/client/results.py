"""What an answer means: a result, or an exception (rows C11, C28). Floor 1; pure."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from raxol_sync.errors import (
    MISSING_CLIENT_CAPABILITY,
    InputRequired,
    InvalidResponse,
    MCPError,
    RPCError,
)
from raxol_sync.protocol.wire import Response

T = TypeVar("T")
ErrorT = TypeVar("ErrorT", bound=BaseException)
Json = dict[str, Any]


# What servers want declared -> the method that is handled then, and what to give a client for it.
_DECLARED = {
    "elicitation": ("elicitation/create", "on_elicit="),
    "sampling": ("sampling/createMessage", "on_sample="),
    "roots": ("roots/list", "roots="),
}


def outcome_of(
    method: str, answer: Response, *, modern: bool, handled: Collection[str] = ()
) -> tuple[Json | None, MCPError | None]:
    """Return ``(result, None)`` or ``(None, error)`` for a response.

    Only modern results have a ``resultType``; absent means complete. For ``input_required`` both
    are given: what the server wants, and the error if nobody answers it. ``handled``: the methods
    with a handler; an error that says that one is missing gets a hint which.
    """
    if answer.error is not None:
        failure = answer.error
        code, data = failure["code"], failure.get("data")
        return None, RPCError(code, failure["message"], data, hint=_hint(code, data, handled))
    result = answer.result
    if result is None:
        return None, InvalidResponse(method, "it has neither a result nor an error")
    kind = result.get("resultType", "complete") if modern else "complete"
    if kind == "complete":
        return result, None
    if kind != "input_required":
        return None, InvalidResponse(method, "its resultType is not known")
    requests = result.get("inputRequests")
    return result, InputRequired(requests if isinstance(requests, dict) else {})


def _hint(code: int, data: object, handled: Collection[str]) -> str:
    """Return what the client would have to be given, where the server misses it."""
    needed = data.get("requiredCapabilities") if isinstance(data, dict) else None
    if code != MISSING_CLIENT_CAPABILITY or not isinstance(needed, dict):
        return ""
    known = [_DECLARED[name] for name in _DECLARED if name in needed]
    words = [f"no {word}" for method, word in known if method not in handled]
    return f"; this client was given {' and '.join(words)}" if words else ""


def read(method: str, convert: Callable[[Json], T], result: Json) -> T:
    """Return ``convert(result)``; ``InvalidResponse`` where it finds a wrong shape."""
    try:
        return convert(result)
    except (ValueError, TypeError, KeyError) as problem:
        raise InvalidResponse(method, str(problem)) from problem


def fresh(error: ErrorT) -> ErrorT:
    """Return a copy of an exception: one that several callers raise would mix their tracebacks."""
    if not isinstance(error, MCPError):
        return error
    twin = copy.copy(error)
    twin.__cause__ = error.__cause__
    return twin
