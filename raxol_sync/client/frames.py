"""Our own messages as bytes, ready for the wire. Floor 1; pure.

A request's params are encoded once, by the thread that makes the request and before anything of it
is admitted: what cannot be JSON fails there. What is known only later (the id, the era's ``_meta``)
is added by joining bytes, which is quick enough to be done under a lock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from raxol_sync.protocol import wire


class Frame:
    """One message on its way out: a line of JSON with its end.

    Attributes:
        id: the request's id, ``None`` for anything else.
        method: the method, ``""`` for an answer.
        data: the whole line.
        written: how many bytes each write took; whoever writes it appends.
        headers: what a modern request says of itself in HTTP headers; ``None``: not made yet.
        reason: why the request was given up, ``""`` while it is not.
        stream: it is a listen, which stays open: it is no call that takes a call's thread.
    """

    __slots__ = ("data", "headers", "id", "method", "reason", "stream", "written")

    def __init__(self, data: bytes, method: str = "", request_id: int | None = None) -> None:
        self.data = data
        self.method = method
        self.id = request_id
        self.written: list[int] = []
        self.headers: Mapping[str, str] | None = None
        self.reason = ""
        self.stream = False


def request(request_id: int, method: str, params: bytes, meta: bytes | None = None) -> Frame:
    """Return a request's frame. ``params`` and ``meta`` are JSON objects, encoded."""
    if meta is not None:
        comma = b"" if params == b"{}" else b","
        params = b'%b%b"_meta":%b}' % (params[:-1], comma, meta)
    elif params == b"{}":
        return Frame(
            b'{"jsonrpc":"2.0","id":%d,"method":%b}\n' % (request_id, _name(method)),
            method,
            request_id,
        )
    data = b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b}\n' % (
        request_id,
        _name(method),
        params,
    )
    return Frame(data, method, request_id)


def with_token(meta: bytes | None, token: int) -> bytes:
    """Return an encoded ``_meta`` with a progress token added."""
    if meta is None or meta == b"{}":
        return b'{"progressToken":%d}' % token
    return b'%b,"progressToken":%d}' % (meta[:-1], token)


def with_members(meta: bytes | None, more: bytes | None) -> bytes | None:
    """Return an encoded ``_meta`` with another object's members; they have no name in common."""
    if more is None or more == b"{}":
        return meta
    return more if meta is None or meta == b"{}" else b"%b,%b" % (meta[:-1], more[1:])


def extras(answers: bytes | None, request_state: str | None) -> bytes:
    """Return what an input round adds to the params of its request, as members without braces.

    ``answers`` is a JSON object, encoded. The state goes back exactly as it came (row C28).
    """
    parts = [] if answers is None else [b'"inputResponses":%b' % answers]
    if request_state is not None:
        parts.append(b'"requestState":%b' % wire.encode(request_state))
    return b",".join(parts)


def with_extras(params: bytes, extra: bytes) -> bytes:
    """Return encoded params with an input round's members, in place of any that are there."""
    if any(b'"%b"' % name in params for name in (b"inputResponses", b"requestState")):
        # Perhaps only somewhere inside; then this changes nothing.
        value = json.loads(params)
        value.pop("inputResponses", None)
        value.pop("requestState", None)
        params = wire.encode(value)
    return b"%b%b%b}" % (params[:-1], b"" if params == b"{}" else b",", extra)


def answer(request_id: int | str, result: bytes) -> Frame:
    """Return the frame of an answer to the server. ``result`` is a JSON object, encoded."""
    return Frame(b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (wire.encode(request_id), result))


def message(value: Mapping[str, object]) -> Frame:
    """Return the frame of a message that is no request: a notification or an answer."""
    method = value.get("method")
    return Frame(wire.encode(value) + b"\n", method if isinstance(method, str) else "")


@lru_cache(maxsize=64)
def _name(method: str) -> bytes:
    return wire.encode(method)
