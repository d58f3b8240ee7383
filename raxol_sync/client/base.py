"""What a client is made of, without its calls (rows C01, C02, C05, C06). Floor 4."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from raxol_sync._deadline import DEFAULT, Deadline, Default, check_seconds
from raxol_sync.client import wiring
from raxol_sync.client.arguments import WebArguments
from raxol_sync.client.calls import Progress
from raxol_sync.client.listing import MAX_ITEMS, PageCache, read_page, usable, walk
from raxol_sync.client.memory import ServerLike
from raxol_sync.client.metering import LedgerLike, Meter
from raxol_sync.client.responder import GivenRoots, OnElicit, OnSample
from raxol_sync.client.session import GRACE, STOP_TIME, stop_when_collected
from raxol_sync.errors import ConnectFailed, NotReady
from raxol_sync.telemetry import Sink
from raxol_sync.values import Status

T = TypeVar("T")
Self = TypeVar("Self", bound="ClientBase")
Json = dict[str, Any]
Timeout = float | Default | None


class ClientBase:
    """What ``Client`` is made of, without its calls. Thread-safe."""

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
        # What to say of oneself
        client_info: Mapping[str, Any] | None = None,
        extensions: Mapping[str, Mapping[str, Any]] | None = None,
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
        speech = (protocol_version, concurrency, pool_size, queue_limit, retry_rejected)
        times = (init_timeout, probe_timeout, reconnect_delay, fail_fast)
        bounds = wiring.Limits(*speech, *times, max_message_bytes)
        wiring.check_limits(name, bounds, call_timeout, max_tools)
        self._meter = Meter(prices, metered, reservations)
        self._param_headers: dict[str, Any] = {}  # per tool, of the last list; replaced whole
        asked = wiring.responder(name, on_elicit, on_sample, roots, max_message_bytes, extensions)
        told = wiring.handlers(name, self._tools, (on_log, on_progress, on_notification), asked)
        self._call_timeout, self._init_timeout = call_timeout, init_timeout
        self._max_tools = max_tools
        self._session = wiring.session(name, self._target, bounds, told, telemetry, client_info)
        self._meter.tell = self._session.tell
        self._finalizer = weakref.finalize(self, stop_when_collected, self._session)
        self._finalizer.atexit = False  # at the interpreter's exit the session stops itself

    # Python names a function so where an argument does not fit, and users know no base class.
    __init__.__qualname__ = "Client"

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

    def __enter__(self: Self) -> Self:
        """Start, and wait until ready; ``ConnectFailed`` if that does not happen.

        ``NotReady`` for a client that was stopped, which is final.
        """
        ready = started = False
        try:
            self.start()
            started = True
            self.await_ready()
            ready = True
        except NotReady as error:
            if not started or self._session.stopping:  # stop() is final, or a fork: it says so
                raise
            reason = f"the server was not ready within {self._init_timeout:g} s (init_timeout)"
            # What failed says that it could not connect, and so does this.
            last = (self._session.status().error or "").removeprefix("could not connect: ")
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

    # ------------------------------------------------------------ inside

    def _deadline(self, timeout: Timeout, default: Timeout = DEFAULT) -> Deadline:
        if isinstance(timeout, Default):
            timeout = self._call_timeout if isinstance(default, Default) else default
        return Deadline(check_seconds("timeout", timeout))

    def _with_tools(self, status: Status) -> Status:
        self._tools.enter(self._session.number)
        plan = self._target.plan
        # Over HTTP a session may be ready and the origin left alone: calls fail then (row C24).
        error = status.error or (None if plan is None else plan.guard.problem())
        return Status(**{**vars(status), "tools": self._tools.count, "error": error})

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
