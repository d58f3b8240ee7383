"""From a client's arguments to its session: checks them, chooses the transport. Floor 3."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from raxol_sync._version import __version__
from raxol_sync.client import spec
from raxol_sync.client.greeting import declares_nothing
from raxol_sync.client.handlers import Handlers
from raxol_sync.client.listing import PageCache
from raxol_sync.client.machine import Machine, Opening
from raxol_sync.client.memory import MemoryTransport, ServerLike
from raxol_sync.client.responder import Responder
from raxol_sync.client.session import Session
from raxol_sync.client.stdio import (
    Command,
    StdioTransport,
    exits_on_probe,
    remember_exit_on_probe,
)
from raxol_sync.client.transport import Transport
from raxol_sync.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from raxol_sync.protocol.versions import LEGACY_NAMES

Restarted = Callable[[bool], object]


@dataclass(frozen=True)
class Target:
    """What to connect to: a command or a server object. Checked (row C01)."""

    command: Command | None
    server: ServerLike | None

    @property
    def kind(self) -> str:
        """How it is reached, in words."""
        return "in process" if self.command is None else "stdio"


@dataclass(frozen=True)
class Limits:
    """How a session behaves; times in seconds. Checked."""

    protocol_version: str | None
    concurrency: str | None
    pool_size: int
    queue_limit: int
    init_timeout: float | None
    probe_timeout: float | None
    max_message_bytes: int


def target(
    name: str,
    *,
    command: Any,
    args: Any,
    env: Any,
    cwd: Any,
    inherit_env: bool,
    server: ServerLike | None,
) -> Target:
    """Return what to connect to; ``InvalidSpec`` if that is not exactly one thing."""
    spec.check_name(name)
    spec.check_target(name, command, server)
    if command is None:
        # A server of ours that has sensitive tools and no policy is not served, here as elsewhere.
        require_authorizer = getattr(server, "require_authorizer", None)
        if require_authorizer is not None:
            require_authorizer()
        return Target(None, server)
    folder = None if cwd is None else os.fspath(cwd)
    variables, arguments = spec.check_env(name, env), spec.check_args(name, args)
    return Target(Command(os.fspath(command), arguments, variables, folder, inherit_env), None)


def limits(name: str, call_timeout: object, max_tools: object, **given: Any) -> Limits:
    """Return the limits; ``InvalidSpec`` for a value that cannot be one."""
    found = Limits(**given)
    spec.check_choice(name, "concurrency", found.concurrency, spec.CONCURRENCY)
    spec.check_version(name, found.protocol_version)
    counts = ("pool_size", "queue_limit", "max_message_bytes")
    seconds = ("init_timeout", "probe_timeout")
    spec.check_numbers(
        name,
        {"max_tools": max_tools, **{word: given[word] for word in counts}},
        {"call_timeout": call_timeout, **{word: given[word] for word in seconds}},
    )
    return found


def handlers(name: str, tools: PageCache, told: tuple[Any, Any, Any], asked: Responder) -> Handlers:
    """Return the handlers; ``InvalidSpec`` for one that cannot be called.

    Args:
        name: the client's.
        tools: what a change of the server's tools makes stale.
        told: what ``on_log``, ``on_progress`` and ``on_notification`` were given.
        asked: what answers the server's requests.
    """
    for word, handler in zip(("on_log", "on_progress", "on_notification"), told, strict=True):
        spec.check_handler(name, word, handler)
    log, progress, notification = told
    changed, refused = partial(_on_changed, tools), partial(_on_refused, tools)
    return Handlers(log, progress, notification, changed, refused, asked)


def responder(name: str, elicit: Any, sample: Any, roots: Any, max_bytes: int) -> Responder:
    """Return what answers the server's requests; ``InvalidSpec`` for a wrong handler."""
    spec.check_handler(name, "on_elicit", elicit)
    spec.check_handler(name, "on_sample", sample)
    return Responder(name, elicit, sample, roots, max_bytes=max_bytes)


def _on_changed(tools: PageCache, method: str) -> None:
    if method == "notifications/tools/list_changed":
        tools.drop()


def _on_refused(tools: PageCache, method: str, code: int) -> None:
    if method == "tools/call" and code in (METHOD_NOT_FOUND, INVALID_PARAMS):
        tools.drop()


def session(name: str, goal: Target, bounds: Limits, told: Handlers) -> Session:
    """Return a session that is not started."""
    concurrency = bounds.concurrency or "stateless"
    window = 1 if concurrency == "serialized" else bounds.pool_size
    machine = Machine(
        window=window,
        queue_limit=bounds.queue_limit,
        client_info=_client_info(),
        pinned=bounds.protocol_version,
        handled=told.responder.methods if told.responder else (),
        capabilities=told.responder.capabilities if told.responder else declares_nothing,
    )
    # A request and its cancellation each, and some room for answers to the server.
    frames = 4 * (window + bounds.queue_limit) + 64
    opening, restarted = _opening(goal, bounds.protocol_version)
    return Session(
        name,
        machine,
        told,
        _connector(name, goal, bounds.max_message_bytes, frames),
        concurrency=concurrency,
        max_bytes=bounds.max_message_bytes,
        opening=opening,
        init_timeout=bounds.init_timeout,
        probe_timeout=bounds.probe_timeout,
        restarted=restarted,
    )


def _connector(name: str, goal: Target, max_bytes: int, frames: int) -> Callable[[], Transport]:
    if goal.command is not None:
        command = goal.command
        return lambda: StdioTransport(command, name, max_bytes=max_bytes, max_frames=frames)
    server = goal.server
    assert server is not None
    return lambda: MemoryTransport(server, name, max_bytes=max_bytes, max_frames=frames)


def _opening(goal: Target, pinned: str | None) -> tuple[Callable[[], Opening], Restarted]:
    """Return how to begin, and what to call when a restart has worked or failed (row C22)."""
    command = goal.command
    if pinned in LEGACY_NAMES:
        return lambda: "initialize", _nothing
    if command is None:
        return lambda: "modern", _nothing
    if pinned is not None:
        return lambda: "discover", _nothing

    def begin() -> Opening:
        return "initialize" if exits_on_probe(command) else "discover"

    return begin, partial(remember_exit_on_probe, command)


def _nothing(worked: bool) -> None:
    """There is nothing to remember of this kind of connection."""


def _client_info() -> Mapping[str, str]:
    return {"name": "raxol_sync", "version": __version__}
