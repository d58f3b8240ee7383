"""What a callback sees of the request that it serves. Floor 3."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from raxol_sync.errors import Cancelled
from raxol_sync.protocol.modern import LOG_LEVELS
from raxol_sync.protocol.wire import RequestId, notification
from raxol_sync.schema import to_json
from raxol_sync.server.connections import Call
from raxol_sync.server.engine import Engine

_RANK = {level: rank for rank, level in enumerate(LOG_LEVELS)}


class Context:
    """The request that a callback serves, and the way back to its client.

    A parameter annotated ``Context`` is given one; it is not part of the tool's schema. All members
    may be used from any thread, until the callback returns. Once the request was cancelled or timed
    out, whatever talks to the client raises ``Cancelled`` (row S18).
    """

    __slots__ = ("_call", "_engine")

    def __init__(self, call: Call, engine: Engine) -> None:
        self._call = call
        self._engine = engine

    def __repr__(self) -> str:
        return f"<Context of {self._call.method} {self._call.id!r}>"

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the work is; nothing is sent if it did not ask to be told.

        Args:
            done: a number that grows with each call; one that does not grow is left out, because
                the specification wants each notification larger than the one before.
            total: what ``done`` grows to, if that is known.
            message: a sentence for people.

        Raises:
            TypeError: ``done`` or ``total`` is no number.
            ValueError: one of them is not finite.
            Cancelled: the request was cancelled or timed out.
        """
        self.check_cancelled()
        call = self._call
        done = _finite("done", done)
        params: dict[str, Any] = {"progressToken": call.progress_token, "progress": done}
        if total is not None:
            params["total"] = _finite("total", total)
        if message is not None:
            params["message"] = str(message)
        if call.progress_token is not None:
            self._engine.push(call, notification("notifications/progress", params), progress=done)

    def log(self, level: str, data: object, logger: str | None = None) -> None:
        """Send the client a log message, if it wants that level (row S11).

        Args:
            level: one of ``debug``, ``info``, ``notice``, ``warning``, ``error``, ``critical``,
                ``alert``, ``emergency``.
            data: any JSON value.
            logger: the name of what logs.

        Raises:
            ValueError: there is no such level.
            TypeError: ``data`` cannot be sent as JSON.
            Cancelled: the request was cancelled or timed out.
        """
        if level not in _RANK:
            raise ValueError(f"level must be one of {', '.join(LOG_LEVELS)}")
        self.check_cancelled()
        envelope = self._call.envelope
        least = self._call.conn.log_level if envelope is None else envelope.log_level
        if least is None or _RANK[level] < _RANK[least]:
            return
        params: dict[str, Any] = {"level": level, "data": to_json(data)}
        if logger is not None:
            params["logger"] = str(logger)
        self._engine.push(self._call, notification("notifications/message", params))

    @property
    def cancelled(self) -> bool:
        """Whether the callback should stop: its request was cancelled, timed out, or is gone."""
        return self._call.cancelled

    def check_cancelled(self) -> None:
        """Raise ``Cancelled`` if the callback should stop; call it in long loops."""
        if self._call.cancelled:
            raise Cancelled(f"{self._call.method} was cancelled")

    @property
    def conn_id(self) -> object:
        """The connection's id, as its transport chose it."""
        return self._call.conn.conn_id

    @property
    def request_id(self) -> RequestId:
        """The request's JSON-RPC id."""
        return self._call.id

    @property
    def client_info(self) -> Mapping[str, Any] | None:
        """What the client says of itself (``name``, ``version``), unverified, or ``None``."""
        envelope = self._call.envelope
        return self._call.conn.client_info if envelope is None else envelope.client_info

    @property
    def client_capabilities(self) -> Mapping[str, Any]:
        """What the client declares that it can do, ``{}`` if nothing."""
        envelope = self._call.envelope
        declared = self._call.conn.capabilities if envelope is None else envelope.capabilities
        return declared or {}

    @property
    def meta(self) -> Mapping[str, Any]:
        """The request's ``_meta``, ``{}`` without one."""
        return self._call.meta

    @property
    def principal(self) -> None:
        """Who the transport verified the client to be; over stdio and in process ``None``."""
        return None

    @property
    def environ(self) -> None:
        """The WSGI environ of the request; over stdio and in process ``None``."""
        return None


def _finite(name: str, value: float) -> float:
    """Return a number that JSON can hold; other number types (numpy's, say) as a ``float``."""
    number = value if type(value) in (int, float) else float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number")
    return number
