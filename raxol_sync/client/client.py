"""The blocking client (rows C01, C05 to C11). Floor 4.

Plain calls: each blocks until its answer, with a deadline, and raises one of the exceptions of
``raxol_sync.errors``. ``submit_tool`` is the same without blocking. Everything is thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from raxol_sync._deadline import DEFAULT, Deadline
from raxol_sync.client.base import ClientBase, Json, Timeout
from raxol_sync.client.calls import Extras, Progress
from raxol_sync.client.listing import read_tool, read_web_tool
from raxol_sync.client.params import call_params, contents, string, strings, with_meta
from raxol_sync.client.results import read
from raxol_sync.client.subscription import ClientSubscription, Filter, as_uris
from raxol_sync.content import Contents
from raxol_sync.protocol.modern import LOG_LEVELS
from raxol_sync.values import (
    CallResult,
    Completion,
    PromptInfo,
    PromptMessages,
    ResourceInfo,
    ResourceTemplateInfo,
    ServerInfo,
    ToolInfo,
)

Meta = Mapping[str, Any] | None


class Client(ClientBase):
    """A connection to one MCP server. Thread-safe.

    ``with Client("calc", command="python", args=["calculator.py"]) as calc:`` starts it, waits
    until it is ready and stops it. Times are in seconds; a ``timeout`` left out is
    ``call_timeout``, ``None`` is no limit.

    Args:
        name: what the client calls the server, in logs and in ``tool_name``.
        url: where an HTTP server is; ``headers``: sent with each request, as
            they are; ``auth``: a ``requests`` auth object; ``proxies``: as ``requests`` takes them;
            ``allow_http``: plain http also to other machines; ``block_private``: public addresses
            only; ``retry_rejected``: send a request whose session was rejected once more.
        command: the program to start, which then speaks MCP over its standard streams.
        args: the program's arguments; ``cwd``: the folder it runs in; ``env``: variables that it
            gets over some of this process's; ``inherit_env``: it gets all of this process's.
        server: instead of a command, a server object in this process.
        protocol_version: the only revision to speak; left out, it is negotiated.
        concurrency: ``stateless`` or ``pooled`` (several requests at once; pooled ones wait while
            an HTTP session is re-established), or ``serialized`` (one); by default as the era has
            it; ``pool_size``: how many requests are on the wire at once; ``queue_limit``: how many
            more wait for their turn; past it: ``Busy``.
        call_timeout: deadline of a request; ``init_timeout``: of the handshake, and of ``with``;
            ``probe_timeout``: deadline of the question which era the server speaks.
        reconnect_delay: time before the first retry of a failed connect; it doubles up to 60 s.
        fail_fast: who waits for the session is told of each failure at once, not after retries.
        client_info: what it tells servers of itself: ``name``, ``version``, ``title``, ``icons``...
        extensions: the protocol extensions that it speaks: their settings by name.
        on_elicit: ``(message, schema)``, asks the person for the server: a dict accepts (the form's
            defaults fill what it leaves out), ``None`` declines, else an ``ElicitResult``. If it
            takes ``url=``, it is also asked to show pages (``schema`` is ``None`` then).
        on_sample: ``(params)``, asks a model: its text, a whole result as a dict, or a
            ``SampleResult``. If it takes ``tools=``, it is also asked with tools.
        roots: paths or ``file:`` URIs to tell the server, or a callable giving them. It and the
            two above run on up to 8 threads, may call the client, are declared only if given.
        on_log: ``(level, data, logger)``, each log message of at least ``info`` until
            ``set_log_level`` says otherwise; ``on_progress``: ``(done, total, message)``;
            ``on_notification``: ``(method, params)``, every notification. These three run on one
            thread, in order, and may call the client.
        telemetry: ``(event, fields)``: sessions, reconnections, requests, the breaker, what calls
            cost.
        prices: what a tool's call costs, by name: calls need a ``reservation`` then (row C25);
            ``metered``: ``True`` meters also without ``prices``, ``False`` not even with them;
            ``reservations``: a ``ReservationLedger``, which knows the reservations.
        max_tools: how many tools a list may have; ``max_message_bytes``: the longest message.

    Raises:
        InvalidSpec: these do not describe a server. Nothing was started.
    """

    # ------------------------------------------------------------ tools

    def list_tools(self, *, timeout: Timeout = DEFAULT, refresh: bool = False) -> list[ToolInfo]:
        """Return the server's tools, all pages, at most ``max_tools`` (rows C08, C09).

        Kept for as long as the server allows; ``refresh`` asks anew.
        """
        deadline = self._deadline(timeout)
        capability = self._capability("tools", deadline)
        if capability is None:
            return []
        self._tools.enter(self._session.number)
        if refresh:
            self._tools.drop()
        legacy = self._session.era == "legacy"
        lasting = legacy and (not capability.get("listChanged") or self._session.streaming)
        fetch = partial(self._page, "tools/list", "tools", deadline, lasting)
        web = self._web and not legacy
        reader = read_web_tool if web else read_tool
        found = self._tools.entries("tools/list", fetch, self._max_tools, reader)
        if web:
            from raxol_sync.schema.headers import header_paths  # the rest of schema comes with it

            paths = {tool.name: header_paths(tool.input_schema) for tool in found}
            self._param_headers = {name: path for name, path in paths.items() if path}
        return found

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = DEFAULT,
        reservation: object = None,
        progress: Progress | None = None,
        meta: Meta = None,
    ) -> CallResult:
        """Call a tool and return what it gave (row C10). Any name is sent.

        A tool's own failure is no exception: ``is_error`` says so. ``meta`` goes into the request's
        ``_meta``: a trace context, say (``traceparent``, ``tracestate``, ``baggage``).

        Raises:
            InvalidArguments: the arguments cannot be JSON; nothing was sent.
            TypeError: they are no mapping.
            NotReady, ConnectFailed, Busy, MessageTooLarge, BreakerOpen: nothing was sent.
            UnmeteredCall, UnknownPrice: nothing was sent (row C25).
            RequestTimeout: no answer in time; the call was cancelled.
            RPCError, InvalidResponse: the server's answer.
            InputRequired: a server of 2026-07-28 asks for what no handler was given for, although
                that was not declared, or a handler failed. One that keeps to what is declared
                refuses with ``RPCError`` (-32021); an older one mostly gives a failed result.
            ServerExited, ConnectionLost, SessionRejected, HTTPStatusError: the server, or its
                session, went away, or it answered without a message.
        """
        params = call_params(name, arguments, progress, meta)
        deadline = self._deadline(timeout)
        extras = self._extras(params, deadline, reservation)
        result = self._session.request(
            "tools/call", params, deadline, progress=progress, extras=extras
        )
        return read("tools/call", CallResult.from_wire, result)

    def submit_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = DEFAULT,
        reservation: object = None,
        progress: Progress | None = None,
        meta: Meta = None,
    ) -> Future[CallResult]:
        """Call a tool without blocking: return a future of its result.

        What ``call_tool`` raises before anything is sent is raised here too; the rest is the
        future's. ``cancel()`` cancels the call on the wire and leaves the future cancelled:
        ``result()`` then raises ``concurrent.futures.CancelledError``. Done callbacks run on the
        client's delivery thread.
        """
        params = call_params(name, arguments, progress, meta)
        convert = partial(read, "tools/call", CallResult.from_wire)
        deadline = self._deadline(timeout)
        extras = self._extras(params, deadline, reservation)
        return self._session.submit(
            "tools/call", params, deadline, convert, progress=progress, extras=extras
        )

    # ------------------------------------------------------------ resources and prompts

    def list_resources(self, *, timeout: Timeout = DEFAULT) -> list[ResourceInfo]:
        """Return the server's resources, all pages; ``[]`` if it declares none."""
        method = "resources/list"
        return self._list("resources", method, "resources", ResourceInfo.from_wire, timeout)

    def list_resource_templates(self, *, timeout: Timeout = DEFAULT) -> list[ResourceTemplateInfo]:
        """Return the server's resource templates, all pages; ``[]`` if it declares no resources."""
        method, key = "resources/templates/list", "resourceTemplates"
        return self._list("resources", method, key, ResourceTemplateInfo.from_wire, timeout)

    def read_resource(
        self, uri: str, *, timeout: Timeout = DEFAULT, meta: Meta = None
    ) -> list[Contents]:
        """Return what a resource holds: usually one item, for a folder several."""
        params = with_meta({"uri": string("uri", uri)}, meta)
        result = self._session.request("resources/read", params, self._deadline(timeout))
        return read("resources/read", contents, result)

    def list_prompts(self, *, timeout: Timeout = DEFAULT) -> list[PromptInfo]:
        """Return the server's prompts, all pages; ``[]`` if it declares none."""
        return self._list("prompts", "prompts/list", "prompts", PromptInfo.from_wire, timeout)

    def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: Timeout = DEFAULT,
        meta: Meta = None,
    ) -> PromptMessages:
        """Return a prompt's messages, with its ``description``."""
        params = call_params(name, arguments, meta=meta)
        result = self._session.request("prompts/get", params, self._deadline(timeout))
        return read("prompts/get", PromptMessages.from_wire, result)

    def complete(
        self,
        ref: Mapping[str, str],
        argument: Mapping[str, str],
        context: Mapping[str, str] | None = None,
        *,
        timeout: Timeout = DEFAULT,
    ) -> Completion:
        """Return suggestions for an argument of a prompt or a resource template.

        Args:
            ref: ``{"type": "ref/prompt", "name": ...}`` or
                ``{"type": "ref/resource", "uri": ...}``.
            argument: ``{"name": ..., "value": ...}``: what was typed so far.
            context: the values of other arguments, by name.
            timeout: as everywhere.
        """
        params: Json = {
            "ref": strings("ref", ref, '{"type": "ref/prompt", "name": "..."}'),
            "argument": strings("argument", argument, '{"name": "...", "value": "..."}'),
        }
        if context:
            params["context"] = {"arguments": strings("context", context, '{"name": "value"}')}
        result = self._session.request("completion/complete", params, self._deadline(timeout))
        return read("completion/complete", Completion.from_wire, result)

    # ------------------------------------------------------------ changes

    def subscribe(
        self,
        uri: str | Iterable[str],
        callback: Callable[[str], object],
        *,
        timeout: Timeout = DEFAULT,
    ) -> ClientSubscription:
        """Have ``callback(uri)`` called when a resource has changed (row C31).

        ``uri`` may be several. It lasts until ``close()``, over reconnections too. The callback
        runs on the delivery thread and may call the client; the URI that it is given may be of a
        resource inside of the watched one.

        Raises:
            RPCError: the server does not offer this, or refuses it.
            RequestTimeout: the server did not agree in time.
            NotReady, ConnectFailed, Busy: nothing was sent.
        """
        if not callable(callback):
            raise TypeError("callback must be callable: (uri)")
        wanted = Filter(uris=as_uris(uri))
        return self._session.watch(wanted, callback, self._deadline(timeout))

    def listen(
        self,
        callback: Callable[[str], object] | None = None,
        *,
        tools: bool = True,
        prompts: bool = True,
        resources: bool = True,
        timeout: Timeout = DEFAULT,
    ) -> ClientSubscription:
        """Listen for changes of the server's lists, until ``close()`` (row C31).

        ``with client.listen(print):`` calls ``callback("tools")`` when the list of tools has
        changed, ``"prompts"`` and ``"resources"`` likewise. The next ``list_tools`` then asks the
        server anew, also without a callback. ``kinds`` says which of them the server tells of: a
        modern one only while somebody listens. Raises as ``subscribe``.
        """
        if callback is not None and not callable(callback):
            raise TypeError("callback must be callable: (kind)")
        asked = {"tools": tools, "prompts": prompts, "resources": resources}
        kinds = frozenset(kind for kind, wanted in asked.items() if wanted)
        if not kinds:
            raise ValueError("listen() needs one of tools, prompts and resources")
        return self._session.watch(Filter(kinds), callback, self._deadline(timeout))

    # ------------------------------------------------------------ the session

    def set_log_level(self, level: str, *, timeout: Timeout = DEFAULT) -> None:
        """Ask for log messages of at least this level.

        A legacy server is told; in the modern era each later request says it. Until then it is
        ``info``, in the modern era only with ``on_log``.
        """
        if level not in LOG_LEVELS:
            raise ValueError(f"level must be one of {', '.join(LOG_LEVELS)}")
        self._session.require_ready()
        if self._session.era == "modern":
            self._session.set_log_level(level)
        else:
            params = {"level": level}
            self._session.request("logging/setLevel", params, self._deadline(timeout))

    def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout: Timeout = DEFAULT
    ) -> Json:
        """Make any request and return its result as it came on the wire; raises as ``call_tool``.

        For what has no method of its own here, and for members that its values do not show.
        """
        return self._session.request(string("method", method), params, self._deadline(timeout))

    def describe(self, *, timeout: Timeout = DEFAULT) -> ServerInfo:
        """Return what the server says of itself: name, capabilities, instructions and so on."""
        deadline = self._deadline(timeout)
        return ServerInfo.from_agreement(*self._session.describe(deadline))

    def roots_changed(self) -> None:
        """Tell the server that ``roots`` would give others now.

        Legacy servers only: in the stateless era they ask when they need them.
        """
        self._session.require_ready()
        if self._session.era == "legacy":
            self._session.tell_server("notifications/roots/list_changed")

    def ping(self, *, timeout: Timeout = DEFAULT) -> None:
        """Ask the server for a sign of life; in the modern era with ``server/discover``."""
        self._session.require_ready()
        method = "server/discover" if self._session.era == "modern" else "ping"
        self._session.request(method, None, self._deadline(timeout))

    # ------------------------------------------------------------ inside

    def _extras(self, params: Json, deadline: Deadline, reservation: object) -> Extras:
        """Return what goes with a call beside its params."""
        pay = partial(self._meter.check, params["name"], reservation) if self._meter.on else None
        if not self._web:
            return Extras(pay=pay)

        def refresh() -> dict[str, str]:  # the server knows another schema than was listed last
            self.list_tools(timeout=deadline.left(), refresh=True)
            return self._call_headers(params)

        return Extras(self._call_headers(params), refresh, pay)

    def _call_headers(self, params: Json) -> dict[str, str]:
        """Return what a modern call over HTTP says of itself in headers (row C30)."""
        from raxol_sync.client.headers import of_arguments, standard

        found = standard("tools/call", params)
        paths = self._param_headers.get(params["name"])
        return {**found, **of_arguments(paths, params.get("arguments"))} if paths else found
