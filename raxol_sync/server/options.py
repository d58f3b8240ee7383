"""From the arguments of ``Server`` to its parts: checked, put together. Floor 3.

Nothing is started here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from raxol_sync._deadline import check_count, check_seconds
from raxol_sync.definitions.base import milliseconds
from raxol_sync.hooks import check_hook
from raxol_sync.policy import Authorizer, Transport
from raxol_sync.protocol.modern import CACHEABLE
from raxol_sync.protocol.request_state import check_keys
from raxol_sync.registry import Registry
from raxol_sync.server.app import App
from raxol_sync.server.authorization import Authorization
from raxol_sync.server.engine import Engine
from raxol_sync.server.parking import Parking
from raxol_sync.server.processes import Processes
from raxol_sync.server.questions import Questions
from raxol_sync.server.rounds import Rounds
from raxol_sync.telemetry import Telemetry

Keys = bytes | str | Sequence[bytes | str]


def share_of(name: str, total_name: str, total: int, share: int | None) -> int:
    """Return a connection's share of a bound: by default half of it, at least 1.

    Raises:
        ValueError: it is above the total.
    """
    if share is None:
        return max(1, total // 2)
    if check_count(name, share) > total:
        raise ValueError(f"{name} ({share}) must not be above {total_name} ({total})")
    return share


def authorization(
    authorizer: Authorizer | None,
    source: str,
    read_authorizer: Authorizer | None,
    transport: Transport,
) -> Authorization:
    """Return the two seams (rows S25, S28).

    Raises:
        ValueError: the source or the transport is unknown, or a configured authorizer is missing.
        TypeError: an authorizer cannot be called, or is asynchronous.
    """
    if source not in ("configured", "default"):
        raise ValueError("authorizer_source must be 'configured' or 'default'")
    if transport not in ("stdio", "sse", "unknown"):
        raise ValueError("transport must be 'stdio', 'sse' or 'unknown'")
    if source == "configured" and authorizer is None:
        raise ValueError("authorizer_source='configured' needs an authorizer")
    for word, seam in (("authorizer", authorizer), ("read_authorizer", read_authorizer)):
        check_hook(word, seam)
    return Authorization(authorizer, read_authorizer, source == "configured", transport)


def state_keys(given: Keys | None) -> tuple[bytes, ...]:
    """Return the keys of request states; without any, one that only this process knows."""
    return (os.urandom(32),) if given is None else check_keys(given)


def engine(
    *,
    max_in_flight: int,
    max_in_flight_per_connection: int | None,
    callback_timeout: float | None,
    max_client_capabilities: int,
    max_parked_elicitations: int,
    max_parked_elicitations_total: int,
    telemetry: Telemetry,
) -> Engine:
    """Return the engine with its bounds (rows S15, S17, S23, S38).

    Raises:
        ValueError, TypeError: a number is none, is out of range, or a share is above its total.
    """
    total = check_count("max_in_flight", max_in_flight)
    words = ("max_in_flight_per_connection", "max_in_flight")
    share = share_of(*words, total, max_in_flight_per_connection)
    parked = check_count("max_parked_elicitations_total", max_parked_elicitations_total)
    words = ("max_parked_elicitations", "max_parked_elicitations_total")
    return Engine(
        max_in_flight=total,
        share=share,
        callback_timeout=check_seconds("callback_timeout", callback_timeout),
        max_remembered=check_count("max_client_capabilities", max_client_capabilities),
        parking=Parking(share_of(*words, parked, max_parked_elicitations), parked),
        telemetry=telemetry,
    )


CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}


def capabilities(extensions: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Any]:
    """Return what a server declares, with the extensions that its user speaks.

    Raises:
        ValueError: a name has no prefix; ``TypeError``: what belongs to it is no mapping.
    """
    declared: dict[str, Any] = {}
    for name, settings in (extensions or {}).items():
        if "/" not in name.strip("/"):
            raise ValueError(f"extensions: {name!r} has no prefix, as in 'com.example/thing'")
        if not isinstance(settings, Mapping):
            raise TypeError(f"extensions: the settings of {name!r} must be a mapping")
        declared[name] = dict(settings)
    return {**CAPABILITIES, "extensions": declared} if declared else CAPABILITIES


def cache_times(given: float | Mapping[str, float]) -> dict[str, int]:
    """Return by method for how many milliseconds results may be kept.

    Raises:
        ValueError: a method's results cannot be kept, or a time is negative.
    """
    if not isinstance(given, Mapping):
        methods = CACHEABLE - {"resources/read"}  # a resource says it itself
        given = dict.fromkeys(methods, given)
    if unknown := set(given) - CACHEABLE:
        raise ValueError(f"cache_ttl: not cacheable: {', '.join(sorted(unknown))}")
    return {method: milliseconds("cache_ttl", seconds) for method, seconds in given.items()}


def info(
    name: str,
    version: str,
    title: str | None,
    description: str | None,
    website_url: str | None,
    icons: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return what a server says of itself; what was not given is left out."""
    said = {"title": title, "description": description, "websiteUrl": website_url}
    said_too: dict[str, Any] = {key: value for key, value in said.items() if value}
    if icons:
        said_too["icons"] = list(icons)
    return {"name": name, "version": version, **said_too}


def app(
    parts: tuple[Engine, Registry, Authorization, Telemetry],
    *,
    elicitation_timeout: float | None,
    request_state_key: Keys | None,
    info: dict[str, Any],
    capabilities: dict[str, Any],
    cache_ttl: Mapping[str, int],
    instructions: str | None,
    page_size: int | None,
    unknown_tool_reply: Callable[[str], str | None] | None,
) -> App:
    """Return the parts that the methods work with.

    Raises:
        ValueError, TypeError: a number or a time is none, or is out of range; a hook is no function
            that can be called here.
    """
    engine, registry, authorization, telemetry = parts
    check_seconds("elicitation_timeout", elicitation_timeout)
    check_hook("unknown_tool_reply", unknown_tool_reply)
    return App(
        registry=registry,
        engine=engine,
        authorization=authorization,
        questions=Questions(engine, elicitation_timeout),
        rounds=Rounds(state_keys(request_state_key), elicitation_timeout),
        processes=Processes(engine, engine.max_in_flight),
        telemetry=telemetry,
        info=info,
        capabilities=capabilities,
        cache_ttl=cache_ttl,
        instructions=instructions,
        page_size=None if page_size is None else check_count("page_size", page_size),
        unknown_tool_reply=unknown_tool_reply,
        elicitation_timeout=elicitation_timeout,
    )
