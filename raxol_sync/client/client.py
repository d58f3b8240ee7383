"""The blocking client (rows C01, C05 to C11). Floor 4.

Plain calls: each blocks until its answer, with a deadline, and raises one of the exceptions of
``raxol_sync.errors``. ``submit_tool`` is the same without blocking. Everything is thread-safe.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from raxol_sync._deadline import DEFAULT, Deadline, Default, check_seconds
from raxol_sync.client import wiring
from raxol_sync.client.arguments import WebArguments
from raxol_sync.client.calls import Extras, Progress
from raxol_sync.client.listing import (
    MAX_ITEMS,
    PageCache,
    read_page,
    read_tool,
    read_web_tool,
    usable,
    walk,
)
from raxol_sync.client.memory import ServerLike
from raxol_sync.client.metering import LedgerLike, Meter
from raxol_sync.client.params import call_params, contents, string
from raxol_sync.client.responder import GivenRoots, OnElicit, OnSample
from raxol_sync.client.results import read
from raxol_sync.client.session import GRACE, STOP_TIME, stop_when_collected
from raxol_sync.content import Contents
from raxol_sync.errors import ConnectFailed, NotReady
from raxol_sync.protocol.modern import LOG_LEVELS
from raxol_sync.telemetry import Sink
from raxol_sync.values import (
    CallResult,
    Completion,
    PromptInfo,
    PromptMessages,
    ResourceInfo,
    ResourceTemplateInfo,
    Status,
    ToolInfo,
)

T = TypeVar("T")
Json = dict[str, Any]
Timeout = float | Default | None


class Client:
    """A connection to one MCP server. Thread-safe.

    ``with Client("calc", command="python", args=["calculator.py"]) as calc:`` starts it, waits
    until it is ready and stops it. Times are in seconds; a ``timeout`` left out is
    ``call_timeout``, ``None`` is no limit.

    Args:
        name: what the client calls the server, in logs and in ``tool_name``.
        url: where an HTTP server is (needs ``requests``); ``headers``: sent with each request, as
            they are; ``auth``: a ``requests`` auth object; ``proxies``: as ``requests`` takes them;
            ``allow_http``: plain http also to other machines; ``block_private``: public addresses
            only; ``retry_rejected``: send a request whose session was rejected once more.
        command: the program to start, which then speaks MCP over its standard streams.
        args: its arguments; ``env``: variables over an allow-list of this process's (or over all of
            them with ``inherit_env``); ``cwd``: its folder.
        server: instead of a command, a server object in this process.
        protocol_version: the only revision to speak; left out, it is negotiated.
        concurrency: ``stateless`` or ``pooled`` (at most ``pool_size`` requests on the wire; pooled
            ones wait while an HTTP session is re-established), or ``serialized`` (one); what
            exceeds it waits in a queue of ``queue_limit``; past it: ``Busy``.
        call_timeout: default deadline of a request; ``init_timeout``: of the handshake;
            ``probe_timeout``: of the question which era the server speaks.
        reconnect_delay: before the first retry of a failed connect; it doubles up to 60 s.
        fail_fast: who waits for the session is told of each failure at once, not after retries.
        on_elicit: ``(message, schema)``, asks the person for the server: a dict accepts, ``None``
            declines, else an ``ElicitResult``. If it takes ``url=``, it is also asked to show pages
            (``schema`` is ``None`` then).
        on_sample: ``(params)``, asks a model: its text, or a whole result as a dict.
        roots: paths or ``file:`` URIs to tell the server, or a callable giving them. These three
            run on up to 8 threads, may call the client, and are declared only if given.
        on_log: ``(level, data, logger)``; ``on_progress``: ``(done, total, message)``;
            ``on_notification``: ``(method, params)``, every notification. They run on one thread,
            in order, and may call the client.
        telemetry: ``(event, fields)``, when a session is ready and when it has ended.
        prices: what a tool's call costs; with them, or ``metered=True``, calls need a
            ``reservation`` that ``reservations`` (a ``ReservationLedger``) knows (row C25).
        max_tools: how many tools a list may have; ``max_message_bytes``: the size of a message.

    Raises:
        InvalidSpec: these do not describe a server. Nothing was started.
    """

    def __init__(
        self,
        name: str,
        *,
        # What to connect to
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        auth: Any = None,
        command: str | os.PathLike[str] | None = None,
        args: Sequence[str | os.PathLike[str]] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        inherit_env: bool = False,
        server: ServerLike | None = None,
        # How to speak to it
        protocol_version: str | None = None,
        concurrency: str | None = None,
        pool_size: int = 16,
        queue_limit: int = 64,
        allow_http: bool = False,
        block_private: bool = False,
        proxies: Mapping[str, str] | None = None,
        retry_rejected: bool = False,
        # Times
        call_timeout: float | None = 30.0,
        init_timeout: float | None = 60.0,
        probe_timeout: float | None = 10.0,
        reconnect_delay: float = 1.0,
        fail_fast: bool = False,
        # What to be asked
        on_elicit: OnElicit | None = None,
        on_sample: OnSample | None = None,
        roots: GivenRoots | None = None,
        # What to be told
        on_log: Callable[[str, Any, str | None], object] | None = None,
        on_progress: Progress | None = None,
        on_notification: Callable[[str, dict[str, Any]], object] | None = None,
        telemetry: Sink | None = None,
        # What calls may cost
        prices: Mapping[str, float] | None = None,
        metered: bool | None = None,
        reservations: LedgerLike | None = None,
        # Limits
        max_tools: int = 256,
        max_message_bytes: int = 32 * 2**20,
    ) -> None:
        self._name = name
        self._tools = PageCache()
        self._web = url is not None
        web = WebArguments(url, headers, auth, proxies, allow_http, block_private, pool_size)
        self._target = wiring.target(name, command, args, env, cwd, inherit_env, server, web)
        window = (protocol_version, concurrency, pool_size, queue_limit, retry_rejected)
        times = (init_timeout, probe_timeout, reconnect_delay, fail_fast)
        bounds = wiring.Limits(*window, *times, max_message_bytes)
        wiring.check_limits(name, bounds, call_timeout, max_tools)
        self._meter = Meter(prices, metered, reservations)
        self._param_headers: dict[str, Any] = {}  # per tool, of the last list; replaced whole
        asked = wiring.responder(name, on_elicit, on_sample, roots, max_message_bytes)
        told = wiring.handlers(name, self._tools, (on_log, on_progress, on_notification), asked)
        self._call_timeout, self._init_timeout = call_timeout, init_timeout
        self._max_tools = max_tools
        self._session = wiring.session(name, self._target, bounds, told, telemetry)
        self._finalizer = weakref.finalize(self, stop_when_collected, self._session)
        self._finalizer.atexit = False  # at the interpreter's exit the session stops itself

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """Connect in the background and return at once; twice is harmless (row C02).

        Raises:
            NotReady: the client was stopped, which is final.
        """
        self._session.start()

    def stop(self, *, seconds: float = STOP_TIME) -> None:
        """End the server's process or subscription; fail what is outstanding with ``NotReady``.

        Joins every thread of the client's, never the calling one. Idempotent; may be called from
        handlers. It takes as long as the server takes to end, at most a few seconds; with less than
        those in ``seconds``, the server is killed sooner, and threads may end a moment later.
        """
        self._finalizer.detach()
        self._session.stop(seconds)

    def await_ready(self, timeout: Timeout = DEFAULT) -> Status:
        """Wait until the session is usable and return the status (row C06).

        ``timeout`` left out is ``init_timeout``.

        Raises:
            NotReady: the time was up, or the client was stopped or never started.
            ConnectFailed: connecting failed, for good, or with ``fail_fast``.
        """
        left_out = isinstance(timeout, Default)
        deadline = self._deadline(timeout, self._init_timeout)
        status = self._session.await_ready(deadline, grace=GRACE if left_out else 0.0)
        return self._with_tools(status)

    def status(self) -> Status:
        """Return where the client stands (row C05). Never blocks."""
        return self._with_tools(self._session.status())

    def __enter__(self) -> Client:
        """Start, and wait until ready; ``ConnectFailed`` if that does not happen."""
        ready = False
        try:
            self.start()
            self.await_ready()
            ready = True
        except NotReady as error:
            reason = f"the server was not ready within {self._init_timeout} s (init_timeout)"
            last = self._session.status().error
            raise ConnectFailed(f"{reason}: {last}" if last else reason) from error
        finally:
            if not ready:
                self.stop()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        status = self._session.status()
        version = f" {status.protocol_version}" if status.protocol_version else ""
        return f"<Client {self._name!r} {self._target.kind} {status.state}{version}>"

    # ------------------------------------------------------------ tools

    def list_tools(self, *, timeout: Timeout = DEFAULT, refresh: bool = False) -> list[ToolInfo]:
        """Return the server's tools, all pages, at most ``max_tools`` (rows C08, C09).

        Kept for as long as the server allows; ``refresh`` asks anew.
        """
        deadline = self._deadline(timeout)
        capability = self._capability("tools", deadline)
        if capability is None:
            return []
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
    ) -> CallResult:
        """Call a tool and return what it gave (row C10). Any name is sent.

        A tool's own failure is no exception: ``is_error`` says so.

        Raises:
            TypeError, ValueError: the arguments cannot be JSON; nothing was sent.
            NotReady, ConnectFailed, Busy, MessageTooLarge, BreakerOpen: nothing was sent.
            UnmeteredCall, UnknownPrice: nothing was sent (row C25).
            RequestTimeout: no answer in time; the call was cancelled.
            RPCError, InvalidResponse: the server's answer.
            InputRequired: the server asks for what no handler was given for, or one failed.
            ServerExited, ConnectionLost, SessionRejected, HTTPStatusError: the server, or its
                session, went away, or it answered without a message.
        """
        params = call_params(name, arguments, progress)
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
    ) -> Future[CallResult]:
        """Call a tool without blocking: return a future of its result.

        What ``call_tool`` raises before anything is sent is raised here too; the rest is the
        future's. ``cancel()`` cancels the call on the wire and leaves the future cancelled:
        ``result()`` then raises ``concurrent.futures.CancelledError``. Done callbacks run on the
        client's delivery thread.
        """
        params = call_params(name, arguments, progress)
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

    def read_resource(self, uri: str, *, timeout: Timeout = DEFAULT) -> list[Contents]:
        """Return what a resource holds: usually one item, for a folder several."""
        params = {"uri": string("uri", uri)}
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
    ) -> PromptMessages:
        """Return a prompt's messages, with its ``description``."""
        params = call_params(name, arguments)
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
        params: Json = {"ref": dict(ref), "argument": dict(argument)}
        if context:
            params["context"] = {"arguments": dict(context)}
        result = self._session.request("completion/complete", params, self._deadline(timeout))
        return read("completion/complete", Completion.from_wire, result)

    # ------------------------------------------------------------ the session

    def set_log_level(self, level: str, *, timeout: Timeout = DEFAULT) -> None:
        """Ask for log messages of at least this level.

        A legacy server is told; in the modern era each later request says it.
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

    def ping(self, *, timeout: Timeout = DEFAULT) -> None:
        """Ask the server for a sign of life; in the modern era with ``server/discover``."""
        self._session.require_ready()
        method = "server/discover" if self._session.era == "modern" else "ping"
        self._session.request(method, None, self._deadline(timeout))

    # ------------------------------------------------------------ inside

    def _deadline(self, timeout: Timeout, default: Timeout = DEFAULT) -> Deadline:
        if isinstance(timeout, Default):
            timeout = self._call_timeout if isinstance(default, Default) else default
        return Deadline(check_seconds("timeout", timeout))

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

    def _with_tools(self, status: Status) -> Status:
        return Status(**{**vars(status), "tools": self._tools.count})

    def _capability(self, name: str, deadline: Deadline) -> Json | None:
        """Return what the server declares of a capability, ``None`` if it does not have it."""
        found = self._session.describe(deadline).capabilities.get(name)
        return found if isinstance(found, dict) else None

    def _page(
        self, method: str, key: str, deadline: Deadline, lasting: bool, cursor: str | None
    ) -> Any:
        params = None if cursor is None else {"cursor": cursor}
        result = self._session.request(method, params, deadline)
        return read_page(method, key, result, lasting=lasting)

    def _list(
        self, capability: str, method: str, key: str, make: Callable[[Json], T], timeout: Timeout
    ) -> list[T]:
        deadline = self._deadline(timeout)
        if self._capability(capability, deadline) is None:
            return []
        fetch = partial(self._page, method, key, deadline, True)
        return usable(method, walk(method, fetch, MAX_ITEMS), make)
