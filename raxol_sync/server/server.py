"""``Server``: tools, resources and prompts made of plain functions, behind one door. Floor 4."""

from __future__ import annotations

import concurrent.futures
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from raxol_sync._deadline import DEFAULT, Deadline, check_count, check_seconds
from raxol_sync._version import __version__
from raxol_sync.errors import METHOD_NOT_FOUND, RPCError
from raxol_sync.protocol import modern, versions, wire
from raxol_sync.registry import Registry
from raxol_sync.server import methods
from raxol_sync.server.connections import Call
from raxol_sync.server.decorators import Decorators
from raxol_sync.server.engine import Engine
from raxol_sync.server.inflight import error_response
from raxol_sync.server.outbox import Consumer, Outbox
from raxol_sync.server.subscription import Subscription
from raxol_sync.values import ServerStats

Json = dict[str, Any]
_log = logging.getLogger("raxol_sync.server")


class Server(Decorators):
    """An MCP server. Thread-safe: messages may come from any thread, at once.

    Args:
        name: ``serverInfo.name``; ``server_version`` its version, by default the library's (S09).
        registry: what it offers; a new, empty one by default. Servers may share one.
        title: a name for people. ``instructions``: how a model should use this server.
        icons: icon objects, as the protocol defines them.
        unknown_tool_reply: called on a worker with the name of a tool that is not registered; a
            ``str`` that it returns is sent as a failed tool result (S13).
        max_in_flight: how many callbacks run at once (S15).
        max_in_flight_per_connection: how many of one connection; by default half of them.
        callback_timeout: how long one callback may take, in seconds. ``None`` disables it (S17).
        max_client_capabilities: of how many connections ``initialize`` is remembered (S23).
        page_size: how many entries a page of a list holds; ``None``: all.

    Raises:
        ValueError: a number is out of range, or a connection's share is above the total.
    """

    def __init__(
        self,
        name: str = "raxol",
        *,
        registry: Registry | None = None,
        server_version: str | None = None,
        title: str | None = None,
        instructions: str | None = None,
        icons: Sequence[Mapping[str, Any]] = (),
        unknown_tool_reply: Callable[[str], str | None] | None = None,
        # Limits
        max_in_flight: int = 32,
        max_in_flight_per_connection: int | None = None,
        callback_timeout: float | None = 300.0,
        max_client_capabilities: int = 1024,
        page_size: int | None = None,
    ) -> None:
        total = check_count("max_in_flight", max_in_flight)
        share = max_in_flight_per_connection
        share = (
            max(1, total // 2)
            if share is None
            else check_count("max_in_flight_per_connection", share)
        )
        if share > total:
            raise ValueError(
                f"max_in_flight_per_connection ({share}) must not be above max_in_flight ({total})"
            )
        super().__init__(registry if registry is not None else Registry())
        self.name = name
        self._engine = Engine(
            max_in_flight=total,
            share=share,
            callback_timeout=check_seconds("callback_timeout", callback_timeout),
            max_remembered=check_count("max_client_capabilities", max_client_capabilities),
        )
        info: Json = {"name": name, "version": server_version or __version__}
        info.update({k: v for k, v in (("title", title), ("icons", list(icons))) if v})
        self._app = methods.App(
            registry=self._registry,
            engine=self._engine,
            info=info,
            instructions=instructions,
            page_size=None if page_size is None else check_count("page_size", page_size),
            unknown_tool_reply=unknown_tool_reply,
        )
        self._registry.watch(self._list_changed)

    def __repr__(self) -> str:
        counts = (len(self._registry.tools.entries), len(self._registry.prompts.entries))
        return f"<Server {self.name!r}: {counts[0]} tools, {counts[1]} prompts>"

    # ------------------------------------------------------------ messages

    def handle_message(
        self, message: object, conn_id: object = DEFAULT, *, timeout: float | None = None
    ) -> Json | None:
        """Handle one decoded JSON-RPC message; return the response, or ``None`` (row S01).

        ``None`` is what notifications and responses give, and a request that was cancelled.

        Args:
            message: a ``dict``; anything else is answered as a malformed message.
            conn_id: which connection it came from; without one all share one (S19).
            timeout: how long to wait, in seconds. ``None`` disables it.

        Raises:
            TimeoutError: the time is up; the callback is told to stop (S02).
        """
        seconds = check_seconds("timeout", timeout)
        future = self.request(message, conn_id, owner=None)
        try:
            return future.result(seconds)
        except concurrent.futures.TimeoutError:
            if not future.cancel():  # answered just now
                return future.result()
            raise TimeoutError(f"the request was not answered within {seconds:g} s") from None
        except BaseException:  # KeyboardInterrupt: nobody waits for the answer any more
            future.cancel()
            raise

    def request(
        self,
        message: object,
        conn_id: object = DEFAULT,
        *,
        sink: Consumer | Outbox | None = None,
        owner: object = DEFAULT,
    ) -> Future[Json | None]:
        """Handle one decoded JSON-RPC message without waiting (rows S03, S49).

        The future resolves exactly once, to the response or ``None``. Its done callbacks run on a
        thread of the server's. ``future.cancel()`` stops the request and resolves it to ``None``.

        Args:
            message: a ``dict``; anything else is answered as a malformed message.
            conn_id: which connection it came from.
            sink: gets, one by one, all messages that this request causes, its response last;
                without one they go to the connection's subscriber, the response to the future only.
                One that raises ends its request. (Our own transports pass their ``Outbox``.)
            owner: reserved for whose end cancels the request; ``None``: nobody's.
        """
        incoming = wire.classify(message)
        if type(incoming) is wire.Request:
            return self._handle_request(incoming, conn_id, sink)
        if type(incoming) is wire.Malformed:
            return self._answer_malformed(incoming, conn_id, sink)
        if type(incoming) is wire.Notification:
            self._handle_notification(incoming, conn_id)
        # A response to nothing that this server asked is ignored (row S07).
        return self._engine.settled(None)

    def cancel(self, future: Future[Json | None]) -> bool:
        """Stop a request made with ``request``, resolve it to ``None``; as ``future.cancel()``."""
        return future.cancel()

    def _handle_request(
        self, request: wire.Request, conn_id: object, sink: Consumer | Outbox | None
    ) -> Future[Json | None]:
        revision, envelope, refusal = None, None, None
        if versions.era_of(request.method, request.params) == "modern":
            revision = versions.MODERN
            checked = modern.read_envelope(request.params, versions.SUPPORTED)
            if isinstance(checked, modern.Refusal):
                refusal = RPCError(*checked)
            else:
                envelope = checked
        call = self._engine.begin(conn_id, request, revision, envelope, sink)
        try:
            if refusal is not None:
                raise refusal
            self._start(call)
        except RPCError as error:
            self._engine.settle(call, error_response(call, error))
        except Exception as error:  # a fault of ours: the caller, a transport's reader, goes on
            self._engine.settle(call, error_response(call, self._engine.failed(call, error)))
        except BaseException:  # the caller's thread was interrupted: nobody waits for an answer
            self._engine.cancel(call)
            raise
        return call.future

    def _start(self, call: Call) -> None:
        if call.settled:
            return
        handler = methods.METHODS.get(call.method)
        if handler is None or call.method not in call.revision.methods:
            raise RPCError(METHOD_NOT_FOUND, f"Method not found: {call.method}")
        outcome = handler(self._app, call)
        if callable(outcome):
            self._engine.run(call, outcome, self._finish)
        elif outcome is not None:
            self._engine.settle(call, self._finish(call, outcome))

    def _finish(self, call: Call, value: Json) -> Json:
        return methods.finish(self._app, call, value)

    def _handle_notification(self, note: wire.Notification, conn_id: object) -> None:
        if note.method == "notifications/cancelled":
            request_id = note.params.get("requestId")
            if type(request_id) is str or type(request_id) is int:
                self._engine.cancel_id(conn_id, request_id)

    def _answer_malformed(
        self, bad: wire.Malformed, conn_id: object, sink: Consumer | Outbox | None
    ) -> Future[Json | None]:
        if not bad.answer:
            return self._engine.settled(None)
        revision = self._engine.revision_of(conn_id)
        answer = wire.error(bad.id, bad.code, bad.reason, null_id=revision.null_error_id)
        return self._engine.settled(answer, conn_id=conn_id, sink=sink)

    # ------------------------------------------------------------ pushing

    def subscribe(self, subscriber: Consumer, conn_id: object = DEFAULT) -> Subscription:
        """Have a connection's messages delivered to ``subscriber``, one dict at a time (row S21).

        It is called in order, on a thread of its own; if it raises, its connection ends. A live
        subscriber of the same ``conn_id`` is replaced, and what its connection had is dropped.

        Raises:
            RPCError: the server is closed.
        """
        outbox = Outbox(subscriber, "raxol-sync-outbox")
        return Subscription(self._engine, self._engine.attach(conn_id, outbox), outbox)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification to all subscribers (row S22).

        ``notifications/resources/updated`` goes only to those that subscribed to its ``uri``;
        clients of the modern era get only the kinds that they listen for.

        Raises:
            TypeError: ``params`` has a ``_meta`` that is no mapping.
        """
        given = None if params is None else dict(params)
        meta = given.get("_meta") if given is not None else None
        if meta is not None and not isinstance(meta, Mapping):
            raise TypeError(f"params['_meta'] must be a mapping, not {type(meta).__name__}")
        self._engine.notify(method, given)

    def _list_changed(self, kind: str) -> None:
        self.notify(f"notifications/{kind}/list_changed")

    # ------------------------------------------------------------ life

    def stats(self) -> ServerStats:
        """Return what is going on right now."""
        return self._engine.stats()

    def close(self, grace: float | None = 5.0) -> None:
        """End everything; idempotent, from any thread (row S51).

        Later requests get the error ``server closed``, open listens their result, other outstanding
        requests resolve to ``None``. Threads are joined for at most ``grace`` seconds; a callback
        that does not return by then is left to its daemon thread.
        """
        deadline = Deadline(check_seconds("grace", grace))
        self._registry.unwatch(self._list_changed)
        self._engine.close(deadline, lambda call: methods.end_of_listen(self._app, call))

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def run(self) -> None:
        """Serve stdio until stdin closes or SIGINT or SIGTERM comes, then close.

        While it runs, file descriptor 1 and ``sys.stdout`` lead to stderr: nothing that a callback
        or a child process prints reaches the protocol's stream.
        """
        from raxol_sync.server.stdio import serve

        serve(self, self._engine)
