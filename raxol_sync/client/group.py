"""Several servers as one: ``ClientGroup`` (rows C03, C26). Floor 4.

Its clients start, list and stop side by side, each on a thread of its own where that must be.
Tools have the names of ``tool_name``: ``mcp__<server>__<tool>``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Any, TypeVar

from raxol_sync._deadline import DEFAULT, Default
from raxol_sync.client.calls import Progress
from raxol_sync.client.client import Client
from raxol_sync.client.config import MAX_SERVERS, Source, read_config, resolve
from raxol_sync.client.naming import tool_name
from raxol_sync.errors import InvalidSpec, MCPError, NotReady
from raxol_sync.values import CallResult, Status, ToolInfo

T = TypeVar("T")
Timeout = float | Default | None
_log = logging.getLogger("raxol_sync.client")


class ClientGroup:
    """Clients of several servers, by name. Thread-safe.

    ``with ClientGroup.from_config("mcp.json") as group:`` starts all and stops all.

    Args:
        clients: by the server's name; none of them started. The group owns them from now on.
        strict: one server that cannot be started, or whose tools cannot be listed, fails the whole.
            Otherwise it is left out, and ``status()`` says why.

    Raises:
        InvalidSpec: two names lead to the same tools, or there are too many.
    """

    def __init__(self, clients: Mapping[str, Client], *, strict: bool = False) -> None:
        if len(clients) > MAX_SERVERS:
            raise InvalidSpec(f"a group has at most {MAX_SERVERS} servers, not {len(clients)}")
        self._clients = dict(clients)
        self._strict = strict
        self._began = self._stopped = False
        self._prefixes = {tool_name(name, ""): name for name in self._clients}
        _check_prefixes(list(self._clients))

    @classmethod
    def from_config(cls, source: Source, *, strict: bool = False, **options: Any) -> ClientGroup:
        """Return a group of the servers of an ``mcpServers`` file, or of its JSON object.

        ``${VAR}``, ``${env:VAR}`` and ``${VAR:-default}`` are filled in from this process's
        environment. Servers that are ``disabled`` are left out.

        Args:
            source: the file's path, or what it holds.
            strict: as for ``ClientGroup``.
            options: for every ``Client``: ``call_timeout=``, ``on_log=``, ...

        Raises:
            InvalidSpec: a server is not described, or needs a variable that is not set.
        """
        clients: dict[str, Client] = {}
        for name, entry in read_config(source).items():
            # A server that cannot be reached must not keep the others' users waiting.
            given = {"fail_fast": True, **options, **resolve(name, entry)}
            clients[name] = Client(name, **given)
        return cls(clients, strict=strict)

    @property
    def clients(self) -> Mapping[str, Client]:
        """The clients by name; read-only."""
        return MappingProxyType(self._clients)

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """Begin to start every server, and return at once; twice is harmless.

        Raises:
            NotReady: the group was stopped, which is final.
        """
        if self._stopped:
            raise self._not_usable()
        self._began = True
        for client in self._clients.values():
            client.start()

    def await_ready(self, timeout: Timeout = DEFAULT) -> dict[str, Status]:
        """Wait until each server is ready or has failed; return the statuses.

        ``timeout`` left out is each client's ``init_timeout``.

        Raises:
            NotReady: the group was stopped or never started.
            NotReady, ConnectFailed: of the first that failed, in a strict group only.
        """
        self._check_usable()
        self._each(lambda client: client.await_ready(timeout))
        return self.status()

    def stop(self) -> None:
        """Stop every client, side by side. Idempotent; as long as the slowest takes."""
        self._stopped = True
        outcomes = self._run(lambda client: client.stop())
        for outcome in outcomes.values():
            if isinstance(outcome, BaseException):
                raise outcome

    def status(self) -> dict[str, Status]:
        """Return where each client stands, by name. Never blocks."""
        return {name: client.status() for name, client in self._clients.items()}

    def __enter__(self) -> ClientGroup:
        """Start all and wait. A strict group stops them again if one fails, and raises.

        ``NotReady`` for a group that was stopped, which is final.
        """
        ready = False
        try:
            self.start()
            self.await_ready()
            ready = True
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
        states = ", ".join(f"{name} {status.state}" for name, status in self.status().items())
        return f"<ClientGroup: {states or 'empty'}>"

    # ------------------------------------------------------------ tools

    def list_tools(self, *, timeout: Timeout = DEFAULT, refresh: bool = False) -> list[ToolInfo]:
        """Return the tools of all servers, under their names in the group, in the servers' order.

        Raises:
            NotReady: the group was stopped or never started.
            MCPError: of the first server that cannot list its own, in a strict group only.
        """
        self._check_usable()
        listed = self._each(lambda client: client.list_tools(timeout=timeout, refresh=refresh))
        return [
            replace(tool, name=tool_name(name, tool.name))
            for name, tools in listed.items()
            for tool in tools
        ]

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = DEFAULT,
        reservation: object = None,
        progress: Progress | None = None,
    ) -> CallResult:
        """Call ``mcp__<server>__<tool>``; as ``Client.call_tool`` of that server.

        A ``reservation`` is for the tool by its name at its server.

        Raises:
            ValueError: the name is of no server of this group. Nothing was sent.
        """
        client, tool = self._find(name)
        return client.call_tool(
            tool, arguments, timeout=timeout, reservation=reservation, progress=progress
        )

    def submit_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = DEFAULT,
        reservation: object = None,
        progress: Progress | None = None,
    ) -> Future[CallResult]:
        """Call without blocking; as ``Client.submit_tool`` of that server.

        Raises:
            ValueError: the name is of no server of this group. Nothing was sent.
        """
        client, tool = self._find(name)
        return client.submit_tool(
            tool, arguments, timeout=timeout, reservation=reservation, progress=progress
        )

    # ------------------------------------------------------------ inside

    def _check_usable(self) -> None:
        """Raise for a group that as a whole has no server to ask: leaving out all would hide it."""
        never = not self._began and all(s.state == "starting" for s in self.status().values())
        if self._clients and (self._stopped or never):
            raise self._not_usable()

    def _not_usable(self) -> NotReady:
        if self._stopped:
            return NotReady(
                "closed", detail="the group was stopped, which is final; make another one"
            )
        return NotReady(
            "starting", detail="use it as in 'with group:', or call start() and then await_ready()"
        )

    def _find(self, name: str) -> tuple[Client, str]:
        """Return whose tool a name is: no prefix of the group begins another one."""
        for prefix, server in self._prefixes.items():
            if name.startswith(prefix) and len(name) > len(prefix):
                return self._clients[server], name[len(prefix) :]
        known = ", ".join(f"{prefix}..." for prefix in self._prefixes) or "none"
        raise ValueError(f"{name!r} is no tool of this group; its tools are named {known}")

    def _each(self, ask: Callable[[Client], T]) -> dict[str, T]:
        """Ask all clients at once; leave out those that fail, or raise the first if strict."""
        found: dict[str, T] = {}
        for name, outcome in self._run(ask).items():
            if not isinstance(outcome, BaseException):
                found[name] = outcome
            elif self._strict or not isinstance(outcome, MCPError):
                raise outcome
            else:
                _log.warning("! %s: left out of its group: %s", name, outcome)
        return found

    def _run(self, ask: Callable[[Client], T]) -> dict[str, T | BaseException]:
        """Run ``ask`` for all clients, each on its own thread; return what each gave or raised.

        The threads end by the clients' own deadlines, and are joined here.
        """
        outcomes: dict[str, T | BaseException] = dict.fromkeys(self._clients, _NOT_RUN)
        threads = [
            # Daemon: after an interrupt of the join nothing must hold up the interpreter's exit.
            threading.Thread(
                target=partial(_note, outcomes, name, ask, client),
                name=f"raxol-sync-{name}-group",
                daemon=True,
            )
            for name, client in self._clients.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return outcomes


_NOT_RUN = RuntimeError("the thread ended early")


def _note(
    outcomes: dict[str, T | BaseException], name: str, ask: Callable[[Client], T], client: Client
) -> None:
    """Keep what ``ask`` gave or raised; runs on a thread of its own, each with its own key."""
    try:
        outcomes[name] = ask(client)
    except BaseException as error:  # the group's caller decides what becomes of it
        outcomes[name] = error


def _check_prefixes(names: list[str]) -> None:
    """Refuse names that a tool's name could not be told apart by."""
    prefixes = [tool_name(name, "") for name in names]
    for index, prefix in enumerate(prefixes):
        for other, name in zip(prefixes, names, strict=True):
            if other is not prefix and other.startswith(prefix):
                raise InvalidSpec(
                    f"servers {names[index]!r} and {name!r} would share tool names "
                    f"({prefix}...): rename one"
                )
