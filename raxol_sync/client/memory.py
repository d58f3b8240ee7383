"""The in-process transport: a server object of this process instead of a process. Floor 3.

The server is any object with ``subscribe`` and ``request`` (the client never imports ours).
Messages are copied through JSON both ways: neither side can change what the other holds, and what
would fail on a wire fails here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from raxol_sync._deadline import Deadline
from raxol_sync.client.frames import Frame
from raxol_sync.client.incoming import parse
from raxol_sync.client.outbox import Outbox
from raxol_sync.client.signals import Failed
from raxol_sync.client.transport import OnLost, OnMessage
from raxol_sync.client.verdicts import FailedForGood
from raxol_sync.errors import INTERNAL_ERROR, ConnectFailed, MessageTooLarge, RPCError
from raxol_sync.protocol import wire
from raxol_sync.protocol.wire import Malformed, Response

Json = dict[str, Any]
_log = logging.getLogger("raxol_sync.client")


class SubscriptionLike(Protocol):
    """What ``subscribe`` returns."""

    def close(self) -> object:
        """End the subscription."""


class ServerLike(Protocol):
    """What a server must do to be called in process; see ``raxol_sync.Server``."""

    def subscribe(self, subscriber: Callable[[Json], object], conn_id: Any) -> SubscriptionLike:
        """Hand what the connection is sent to ``subscriber``, in order."""

    def request(
        self, message: Json, conn_id: Any, *, sink: Callable[[Json], object], owner: Any = None
    ) -> Future[Json | None]:
        """Take a message without blocking; its response goes to ``sink``, if there is one."""


class ConnectionId:
    """The id of one in-process connection: itself."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<in-process client {self._name!r}>"


class MemoryTransport:
    """A ``Transport`` to a server in this process. Thread-safe."""

    def __init__(self, server: ServerLike, name: str, *, max_bytes: int, max_frames: int) -> None:
        self._server = server
        self._max_bytes = max_bytes
        self._conn_id = ConnectionId(name)
        # One object for both uses: the server then keeps responses and notifications in one order.
        self._sink: Callable[[Json], object] = self._receive
        self._outbox = Outbox(
            self._request, lambda: None, max_frames=max_frames, max_bytes=2 * max_bytes
        )
        self._subscription: SubscriptionLike | None = None
        self._on_message: OnMessage = lambda message: None

    def start(self, on_message: OnMessage, on_lost: OnLost) -> None:
        """Subscribe to the server; see ``Transport.start``."""
        self._on_message = on_message
        try:
            self._subscription = self._server.subscribe(self._sink, self._conn_id)
        except Exception as error:  # whatever the server raises, there is no connection
            if isinstance(error, RPCError) and error.code == INTERNAL_ERROR:
                # The one refusal that `Server.subscribe` documents, and it stays so.
                reason = "the server in this process is closed, which is final; make another one"
                raise FailedForGood(reason) from error
            raise ConnectFailed(f"the in-process server refused: {error}") from error

    def put(self, frame: Frame) -> bool:
        """Queue a frame; see ``Transport.put``."""
        return self._outbox.put(frame)

    def retract(self, frame: Frame) -> bool:
        """Take a frame back; see ``Transport.retract``."""
        return self._outbox.retract(frame)

    def flush(self, *, inline: bool) -> None:
        """Hand what is queued to the server, on this thread: its ``request`` never blocks."""
        self._outbox.flush(inline=True)

    def open_stream(self) -> bool:
        """There always is one; see ``Transport.open_stream``."""
        return True

    def complaint(self) -> str:
        """Nothing comes in any other way than as messages; see ``Transport.complaint``."""
        return ""

    def close(self, deadline: Deadline, *, lost: bool = False) -> None:
        """End the subscription, and with it what the connection has outstanding."""
        self._outbox.close(deadline.at_most(1.0))
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with suppress(RuntimeError):  # a server that has ended meanwhile
                subscription.close()

    def _request(self, frame: Frame) -> bool:
        frame.written.append(len(frame.data))  # first: an interrupt below must not repeat it
        message = wire.decode(frame.data, max_bytes=self._max_bytes)
        if not isinstance(message, dict):
            reason = message.reason if isinstance(message, Malformed) else "it is no object"
            self._refuse(frame.id, reason)
            return True
        try:
            future = self._server.request(message, self._conn_id, sink=self._sink, owner=None)
        except Exception as error:  # a server that raises must not break the caller's other calls
            _log.exception("! an in-process server raised")
            self._refuse(frame.id, f"the server raised {type(error).__name__}")
            return True
        if frame.id is not None:
            # Not the future's own method: that one may take a thread to deliver each call, and what
            # is called here is ours and quick.
            Future.add_done_callback(future, partial(self._resolved, frame.id))
        return True

    def _resolved(self, request_id: int, future: Future[Json | None]) -> None:
        """Fail a request that the server dropped: no response to it comes."""
        if future.cancelled() or future.exception() is not None or future.result() is None:
            self._refuse(request_id, "the in-process server dropped the request")

    def _refuse(self, request_id: int | None, reason: str) -> None:
        if request_id is not None:
            failure = {"code": INTERNAL_ERROR, "message": reason}
            self._on_message(Response(request_id, None, failure))

    def _receive(self, message: Json) -> None:
        try:
            line = wire.encode(message)
        except wire.EncodeError as error:
            line = b""
            broken = str(error)
        request_id = message.get("id")
        if len(line) > self._max_bytes and "method" not in message and type(request_id) is int:
            too_large = MessageTooLarge(self._max_bytes, "the server's answer")
            self._on_message(Failed(request_id, too_large))
            return
        for parsed in parse(line, max_bytes=self._max_bytes) if line else [Malformed(0, broken)]:
            if isinstance(parsed, Malformed) and "method" not in message:
                parsed = parsed._replace(id=message.get("id"), answer=False)
            self._on_message(parsed)
