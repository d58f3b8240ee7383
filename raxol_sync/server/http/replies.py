"""What the application answers, before WSGI: a status, headers, bytes. Floor 2."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from raxol_sync.errors import INTERNAL_ERROR, INVALID_REQUEST
from raxol_sync.protocol import wire
from raxol_sync.protocol.wire import RequestId

Json = dict[str, Any]
Header = tuple[str, str]
Headers = list[Header]
StartResponse = Callable[..., Any]
_log = logging.getLogger("raxol_sync.server")

RETRY_AFTER = "1"  # seconds, for who comes when all places are taken


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    headers: Headers
    body: bytes = b""


class Chunks(Protocol):
    """The body of an event stream."""

    def __iter__(self) -> Iterator[bytes]:
        """Return what gives the pieces."""

    def close(self) -> None:
        """End it."""


class Stream(NamedTuple):
    """An answer that is an event stream."""

    headers: Headers
    chunks: Chunks


Answer = Reply | Stream

ACCEPTED = Reply(202, [("Content-Type", "text/plain")])
"""The answer to a notification or a response: no body, whose type WSGI wants all the same."""


class Refused(Exception):
    """Ends the handling of a request; ``reply`` is its answer."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


def json_reply(status: int, message: object, headers: Iterable[Header] = ()) -> Reply:
    """Return a JSON answer."""
    return Reply(status, [("Content-Type", "application/json"), *headers], encode(message))


def encode(message: Any) -> bytes:
    """Return a message, or a batch of them, as JSON; one that cannot be sent as an error."""
    try:
        return wire.encode(message)
    except wire.EncodeError as error:
        _log.error("! a message cannot be sent: %s", error)
        if isinstance(message, list):
            return b"[" + b",".join(map(encode, message)) + b"]"
        if "method" in message:  # nobody waits for it; the stream goes on
            return b""
        reason = f"the result cannot be sent: {error}"
        return wire.encode(wire.error(message.get("id"), INTERNAL_ERROR, reason))


def refusal(
    status: int,
    reason: str,
    *,
    code: int = INVALID_REQUEST,
    request_id: RequestId | None = None,
    data: object = None,
    headers: Iterable[Header] = (),
) -> Reply:
    """Return an answer that says no: a JSON-RPC error, without an id where none is known."""
    return json_reply(status, wire.error(request_id, code, reason, data), headers)


def busy(what: str, limit: int, request_id: RequestId | None = None) -> Reply:
    """Return the answer to who comes when all places of a kind are taken."""
    from raxol_sync.errors import BUSY

    data = {"error": "busy", "scope": "server", "limit": limit}
    return refusal(
        503,
        f"busy: this server has {limit} {what} already",
        code=BUSY,
        request_id=request_id,
        data=data,
        headers=[("Retry-After", RETRY_AFTER)],
    )
