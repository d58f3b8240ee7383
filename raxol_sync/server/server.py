"""``Server``: tools, resources and prompts made of plain functions, behind one door. Floor 4."""

from __future__ import annotations

import concurrent.futures
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from raxol_sync._deadline import DEFAULT, Deadline, check_seconds
from raxol_sync._version import __version__
from raxol_sync.errors import SensitiveToolError
from raxol_sync.hooks import check_hook
from raxol_sync.policy import Authorizer, Transport, allow_all
from raxol_sync.protocol import wire
from raxol_sync.registry import Registry
from raxol_sync.server import methods, options
from raxol_sync.server.dispatch import Dispatch
from raxol_sync.server.engine import CLOSED
from raxol_sync.server.networked import Networked
from raxol_sync.server.outbox import Box, Consumer, Outbox
from raxol_sync.server.owners import Owners
from raxol_sync.server.subscription import Subscription
from raxol_sync.telemetry import Sink as TelemetrySink
from raxol_sync.telemetry import Telemetry
from raxol_sync.values import ServerStats

Json = dict[str, Any]
_log = logging.getLogger("raxol_sync.server")


class Server(Networked):
    """An MCP server. Thread-safe: messages may come from any thread, at once.

    Args:
        name: ``serverInfo.name``; ``server_version``: its version; by default our own (S09).
        registry: what it offers; a new, empty one by default. Servers may share one.
        title: a name for people. ``instructions``: how a model should use this server.
        icons: icon objects, as the protocol defines them.
        description: what it is, for people; ``website_url``: a page with more.
        unknown_tool_reply: called on a worker with the name of a tool that is not registered; a
            ``str`` that it returns is sent as a failed tool result (S13).
        max_in_flight: how many callbacks run at once (S15).
        max_in_flight_per_connection: how many of one connection's; by default half of them.
        callback_timeout: how long one callback may take, in seconds. ``None`` disables it (S17).
        max_client_capabilities: of how many connections ``initialize`` is remembered (S23).
        page_size: how many entries a page of a list holds; ``None``: all.
        cache_ttl: for how many seconds a client of the stateless era may keep lists and what
            ``server/discover`` says; or a mapping with the time of each method.
        extensions: the protocol extensions that this server speaks: their settings by name.
        authorizer: guards ``tools/call``: called with the tool's name, the arguments and an
            ``AuthorizationContext``, answers ``ALLOW``, ``Ask(prompt)`` or ``Deny(reason)`` (S25).
        authorizer_source: ``configured``: a person chose it, so it may go on a network;
            ``default``: the program came with it (S28).
        read_authorizer: guards what is read, by method and detail (S25).
        transport: what carries direct callers, for the authorizer's context (S30).
        elicitation_timeout: how long an answer of the client's may take, in seconds. ``None``
            disables it (S35).
        max_parked_elicitations: how many calls of one connection wait for an approval (S38);
            ``max_parked_elicitations_total``: of all connections.
        request_state_key: one or more secrets of at least 16 bytes that sign what travels through
            clients of the stateless era; several processes that share it serve as one. By default
            random, for one process (S42).
        telemetry: called with the name and the fields of each event, on a thread of its own.

    Raises:
        ValueError: a number is out of range, or a connection's share is above the total.
        SensitiveToolError: the registry has sensitive tools and there is no authorizer (S32).
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
        description: str | None = None,
        website_url: str | None = None,
        unknown_tool_reply: Callable[[str], str | None] | None = None,
        # Limits
        max_in_flight: int = 32,
        max_in_flight_per_connection: int | None = None,
        callback_timeout: float | None = 300.0,
        max_client_capabilities: int = 1024,
        page_size: int | None = None,
        cache_ttl: float | Mapping[str, float] = 0.0,
        extensions: Mapping[str, Mapping[str, Any]] | None = None,
        # Authorization and approvals
        authorizer: Authorizer | None = None,
        authorizer_source: str = "default",
        read_authorizer: Authorizer | None = None,
        transport: Transport = "unknown",
        elicitation_timeout: float | None = 60.0,
        max_parked_elicitations: int = 32,
        max_parked_elicitations_total: int = 256,
        request_state_key: bytes | str | Sequence[bytes | str] | None = None,
        telemetry: TelemetrySink | None = None,
    ) -> None:
        super().__init__(registry if registry is not None else Registry())
        self.name = name
        seams = (authorizer, authorizer_source, read_authorizer, transport)
        self._authorization = options.authorization(*seams)
        self.require_authorizer()
        told = Telemetry(telemetry, "raxol-sync-telemetry")
        self._engine = engine = options.engine(
            max_in_flight=max_in_flight,
            max_in_flight_per_connection=max_in_flight_per_connection,
            callback_timeout=callback_timeout,
            max_client_capabilities=max_client_capabilities,
            max_parked_elicitations=max_parked_elicitations,
            max_parked_elicitations_total=max_parked_elicitations_total,
            telemetry=told,
        )
        words = (name, server_version or __version__, title, description, website_url, icons)
        self._app = options.app(
            (engine, self._registry, self._authorization, told),
            elicitation_timeout=elicitation_timeout,
            request_state_key=request_state_key,
            info=options.info(*words),
            capabilities=options.capabilities(extensions),
            cache_ttl=options.cache_times(cache_ttl),
            instructions=instructions,
            page_size=page_size,
            unknown_tool_reply=unknown_tool_reply,
        )
        self._dispatch = Dispatch(self._app)
        self._owners = Owners(engine.cancel_owner, "raxol-sync-owners")
        self._closed = False
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
        future = self._handle(message, conn_id, lets_go=True)
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
        sink: Consumer | Box | None = None,
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
                One that raises ends its request. (Our own transports pass a ``Box``.)
            owner: by default the calling thread, whose end cancels the request (S05); threads of a
                pool do not end. ``None``: nobody's end does.

        Raises:
            TypeError: ``owner`` is something else, or ``sink`` cannot be called here.
        """
        if not isinstance(sink, Box):
            check_hook("sink", sink)
        if owner is not None and owner is not DEFAULT:
            raise TypeError("owner is left out, for the calling thread, or None")
        key = self._owners.current() if owner is DEFAULT else None
        return self._handle(message, conn_id, sink=sink, owner=key)

    def _handle(
        self,
        message: object,
        conn_id: object,
        *,
        sink: Consumer | Box | None = None,
        owner: object = None,
        lets_go: bool = False,
    ) -> Future[Json | None]:
        incoming = wire.classify(message)
        return self._dispatch.take(incoming, conn_id, sink=sink, owner=owner, lets_go=lets_go)

    def cancel(self, future: Future[Json | None]) -> bool:
        """Stop a request made with ``request``, resolve it to ``None``; as ``future.cancel()``."""
        return future.cancel()

    # ------------------------------------------------------------ pushing

    def subscribe(self, subscriber: Consumer, conn_id: object = DEFAULT) -> Subscription:
        """Have a connection's messages delivered to ``subscriber``, one dict at a time (row S21).

        It is called in order, on a thread of its own; if it raises, its connection ends. A live
        subscriber of the same ``conn_id`` is replaced, and what its connection had is dropped.

        Raises:
            RPCError: the server is closed.
            TypeError: ``subscriber`` cannot be called, or is asynchronous.
        """
        check_hook("subscriber", subscriber)
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

    def elicitation_completed(self, elicitation_id: str) -> bool:
        """Tell the client that was sent to a page that the visit has ended; once.

        For ``Context.elicit_url`` and ``URLElicitationRequired`` with that id, in sessions of
        revision 2025-11-25: only there clients are told. Return whether one was.
        """
        return self._app.questions.page_left(elicitation_id)

    def _list_changed(self, kind: str) -> None:
        self.notify(f"notifications/{kind}/list_changed")

    # ------------------------------------------------------------ life

    def authorization_configured(self) -> bool:
        """Return whether a caller chose the authorizer, not a default (row S28)."""
        return self._authorization.configured and not self._closed

    def read_authorization_configured(self) -> bool:
        """Return whether there is a read authorizer (row S28)."""
        return self._authorization.read_authorizer is not None and not self._closed

    def allow_all_calls(self) -> None:
        """Let every call through, if there is no authorizer: a person decided that just now.

        For programs that serve somebody else's server object, such as the command line.
        """
        if self._authorization.authorizer is None:
            self._authorization.authorizer = allow_all()
            self._authorization.configured = True

    def require_authorizer(self) -> None:
        """Refuse to serve sensitive tools without an authorizer (row S32).

        Derived tools come and go and are left out: they are denied when called.

        Raises:
            SensitiveToolError: names the tools.
        """
        if self._authorization.authorizer is None:
            names = [tool.name for tool in self._registry.static_tools() if tool.sensitive]
            if names:
                raise SensitiveToolError(names)

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
        self._closed = True
        self._registry.unwatch(self._list_changed)
        watcher = self._owners.close()
        self._engine.close(deadline, lambda call: methods.end_of_listen(self._app, call))
        self._app.processes.close(deadline)
        self._stop_services(deadline)
        if watcher is not None and watcher is not threading.current_thread():
            watcher.join(deadline.left())

    def __enter__(self) -> Server:
        self._require_open()
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
        or a child process prints reaches the protocol's stream. Where stdin is a terminal, a line
        on stderr says how to try it.

        Raises:
            SensitiveToolError: there are sensitive tools and no authorizer.
            RuntimeError: the server is closed.
        """
        from raxol_sync.server.stdio import serve

        self._require_open()
        self.require_authorizer()
        serve(self, self._engine, self.name)

    def _require_open(self) -> None:
        if self._closed:
            raise RuntimeError(CLOSED)
