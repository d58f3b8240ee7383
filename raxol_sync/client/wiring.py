"""From a client's arguments to its session: checks them, chooses the transport. Floor 3."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from raxol_sync._version import __version__
from raxol_sync.client import spec
from raxol_sync.client.arguments import WebArguments
from raxol_sync.client.greeting import declares_nothing
from raxol_sync.client.handlers import Handlers
from raxol_sync.client.listing import PageCache
from raxol_sync.client.machine import Machine
from raxol_sync.client.memory import MemoryTransport, ServerLike
from raxol_sync.client.openings import FixedOpenings, HttpOpenings, StdioOpenings
from raxol_sync.client.reports import Reporter
from raxol_sync.client.responder import Responder
from raxol_sync.client.session import Openings
from raxol_sync.client.stdio import Command, StdioTransport
from raxol_sync.client.transport import Transport
from raxol_sync.errors import INVALID_PARAMS, METHOD_NOT_FOUND, InvalidSpec
from raxol_sync.protocol.versions import LEGACY_NAMES
from raxol_sync.telemetry import Sink

FIRST_LOG_LEVEL = "info"  # of messages that modern servers are asked for where there is an on_log


@dataclass(frozen=True)
class Target:
    """What to connect to: a command, a URL or a server object. Checked (row C01)."""

    command: Command | None
    server: ServerLike | None
    plan: Any = None  # an HttpPlan

    @property
    def kind(self) -> str:
        """How it is reached, in words."""
        if self.plan is not None:
            return "http"
        return "in process" if self.command is None else "stdio"


@dataclass(frozen=True)
class Limits:
    """How a session behaves; times in seconds. ``check_limits`` checks it."""

    protocol_version: str | None
    concurrency: str | None
    pool_size: int
    queue_limit: int
    retry_rejected: bool
    init_timeout: float | None
    probe_timeout: float | None
    reconnect_delay: float
    fail_fast: bool
    max_message_bytes: int

    @property
    def window(self) -> int:
        """How many requests may be on the wire."""
        return 1 if self.concurrency == "serialized" else self.pool_size


def target(
    name: str,
    command: Any,
    args: Any,
    env: Any,
    cwd: Any,
    inherit_env: bool,
    server: ServerLike | None,
    web: WebArguments,
) -> Target:
    """Return what to connect to; ``InvalidSpec`` if that is not exactly one thing."""
    spec.check_name(name)
    spec.check_target(name, command, server, web.url)
    if web.url is not None:
        from raxol_sync.client.web_wiring import make_plan  # only who needs HTTP loads it

        return Target(None, None, make_plan(name, web))
    if web.headers is not None or web.auth is not None:
        raise InvalidSpec(f"client {name!r}: headers= and auth= go with url= only")
    if command is None:
        # A server of ours that has sensitive tools and no policy is not served, here as elsewhere.
        require_authorizer = getattr(server, "require_authorizer", None)
        if require_authorizer is not None:
            require_authorizer()
        return Target(None, server)
    folder = None if cwd is None else os.fspath(cwd)
    variables, arguments = spec.check_env(name, env), spec.check_args(name, args)
    return Target(Command(os.fspath(command), arguments, variables, folder, inherit_env), None)


def check_limits(name: str, found: Limits, call_timeout: object, max_tools: object) -> None:
    """``InvalidSpec`` for a value that cannot be a limit."""
    spec.check_choice(name, "concurrency", found.concurrency, spec.CONCURRENCY)
    spec.check_version(name, found.protocol_version)
    counts = ("pool_size", "queue_limit", "max_message_bytes")
    seconds = ("init_timeout", "probe_timeout", "reconnect_delay")
    spec.check_numbers(
        name,
        {"max_tools": max_tools, **{word: getattr(found, word) for word in counts}},
        {"call_timeout": call_timeout, **{word: getattr(found, word) for word in seconds}},
    )


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


def responder(
    name: str, elicit: Any, sample: Any, roots: Any, max_bytes: int, extensions: Any = None
) -> Responder:
    """Return what answers the server's requests; ``InvalidSpec`` for a wrong handler."""
    spec.check_extensions(name, extensions)
    spec.check_handler(name, "on_elicit", elicit)
    spec.check_handler(name, "on_sample", sample)
    return Responder(name, elicit, sample, roots, max_bytes=max_bytes, extensions=extensions)


def _on_changed(tools: PageCache, method: str) -> None:
    if method == "notifications/tools/list_changed":
        tools.drop()


def _on_refused(tools: PageCache, method: str, code: int) -> None:
    if method == "tools/call" and code in (METHOD_NOT_FOUND, INVALID_PARAMS):
        tools.drop()


def session(
    name: str,
    goal: Target,
    bounds: Limits,
    told: Handlers,
    telemetry: Sink | None,
    info: Mapping[str, Any] | None,
) -> Reporter:
    """Return a session that is not started."""
    window, asked = bounds.window, told.responder
    machine = _machine(goal, bounds, client_info(name, info), asked)
    if told.log is not None:
        # What a legacy server begins with; a modern one sends none unless it is asked to.
        machine.set_log_level(FIRST_LOG_LEVEL)
    # A request and its cancellation each, and some room for answers to the server.
    frames = 4 * (window + bounds.queue_limit) + 64
    listens = bool(asked and asked.methods) or told.notification is not None or told.log is not None
    wants_stream = listens or bounds.concurrency != "serialized"
    made = Reporter(
        name,
        machine,
        told,
        _connector(name, goal, bounds.max_message_bytes, frames, window, wants_stream),
        concurrency=bounds.concurrency,
        max_bytes=bounds.max_message_bytes,
        openings=_openings(goal, bounds.protocol_version),
        init_timeout=bounds.init_timeout,
        probe_timeout=bounds.probe_timeout,
        reconnect_delay=bounds.reconnect_delay,
        fail_fast=bounds.fail_fast,
        telemetry=telemetry,
        where="" if goal.plan is None else goal.plan.target.where,
    )
    if goal.plan is not None and telemetry is not None:
        goal.plan.guard.on_change = made.tell_breaker
    return made


def _machine(
    goal: Target, bounds: Limits, info: Mapping[str, Any], asked: Responder | None
) -> Machine:
    """Return the rules of a session."""
    rules: dict[str, Any] = {
        "window": bounds.window,
        "queue_limit": bounds.queue_limit,
        "client_info": info,
        "pinned": bounds.protocol_version,
        "handled": asked.methods if asked else (),
        "capabilities": asked.capabilities if asked else declares_nothing,
    }
    if goal.plan is None:
        return Machine(**rules)
    from raxol_sync.client.web_machine import WebMachine  # only who needs HTTP loads it

    pauses, retries = bounds.concurrency != "stateless", bounds.retry_rejected
    return WebMachine(pauses=pauses, retry_rejected=retries, **rules)


def _connector(
    name: str, goal: Target, max_bytes: int, frames: int, window: int, wants_stream: bool
) -> Callable[[str], Transport]:
    """Return what makes a fresh transport, for an opening."""
    command, server, plan = goal.command, goal.server, goal.plan
    if plan is not None:
        sizes = {"window": window, "max_bytes": max_bytes, "max_frames": frames}
        from raxol_sync.client.web_wiring import make_dialer

        return make_dialer(plan, name, sizes, wants_stream)
    if command is not None:
        return lambda opening: StdioTransport(command, name, max_bytes=max_bytes, max_frames=frames)
    assert server is not None
    return lambda opening: MemoryTransport(server, name, max_bytes=max_bytes, max_frames=frames)


def _openings(goal: Target, pinned: str | None) -> Openings:
    """Return what knows how to begin (row C22)."""
    if goal.plan is not None:
        target = goal.plan.target
        return HttpOpenings((target.origin, target.path), pinned)
    if pinned in LEGACY_NAMES:
        return FixedOpenings("initialize")
    if goal.command is None:
        return FixedOpenings("modern")
    return FixedOpenings("discover") if pinned is not None else StdioOpenings(goal.command)


def client_info(name: str, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return what a client tells servers of itself; ``InvalidSpec`` where that is not valid."""
    own = {"name": "raxol_sync", "version": __version__}
    if given is None:
        return own
    try:
        info = {**own, **given}
    except TypeError:
        info = {}
    if not all(isinstance(info.get(key), str) for key in own):
        raise InvalidSpec(f"client {name!r}: client_info= must be a mapping; its values strings")
    return info
