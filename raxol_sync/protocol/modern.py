"""The stateless era, revision 2026-07-28: the ``_meta`` envelope and the shape of results. Pure.

Spec: basic/index (``_meta``, ``resultType``), basic/versioning, server/discover.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from raxol_sync.errors import INVALID_PARAMS, UNSUPPORTED_PROTOCOL_VERSION

_PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = _PREFIX + "protocolVersion"
CLIENT_INFO_KEY = _PREFIX + "clientInfo"
CAPABILITIES_KEY = _PREFIX + "clientCapabilities"
LOG_LEVEL_KEY = _PREFIX + "logLevel"
SERVER_INFO_KEY = _PREFIX + "serverInfo"
SUBSCRIPTION_KEY = _PREFIX + "subscriptionId"

CACHEABLE = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Envelope(NamedTuple):
    """What a modern request says of itself in ``_meta``."""

    version: str
    capabilities: dict[str, Any]
    client_info: dict[str, Any] | None
    log_level: str | None


class Refusal(NamedTuple):
    """Why a request cannot be served, as a JSON-RPC error."""

    code: int
    message: str
    data: dict[str, Any] | None = None


def read_envelope(params: Mapping[str, Any], supported: Sequence[str]) -> Envelope | Refusal:
    """Check and return a modern request's envelope; the order of the checks is row S47's."""
    meta = params.get("_meta")
    if type(meta) is not dict:
        meta = {}
    version = meta.get(VERSION_KEY)
    capabilities = meta.get(CAPABILITIES_KEY)
    if type(version) is not str:
        return Refusal(INVALID_PARAMS, f"_meta must name a version as {VERSION_KEY}, a string")
    if type(capabilities) is not dict:
        return Refusal(INVALID_PARAMS, f"_meta must hold {CAPABILITIES_KEY}, an object")
    if version not in supported or version < "2026":
        data = {"supported": list(supported), "requested": version}
        return Refusal(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)
    log_level = meta.get(LOG_LEVEL_KEY)
    if log_level is not None and log_level not in LOG_LEVELS:
        return Refusal(INVALID_PARAMS, f"{LOG_LEVEL_KEY} must be one of {', '.join(LOG_LEVELS)}")
    info = meta.get(CLIENT_INFO_KEY)
    return Envelope(version, capabilities, info if type(info) is dict else None, log_level)


def build_meta(
    version: str,
    capabilities: Mapping[str, Any],
    client_info: Mapping[str, Any],
    *,
    log_level: str | None = None,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the ``_meta`` of a modern request; ``extra`` (a progress token) goes beside it."""
    meta: dict[str, Any] = {
        VERSION_KEY: version,
        CLIENT_INFO_KEY: client_info,
        CAPABILITIES_KEY: capabilities,
    }
    if log_level is not None:
        meta[LOG_LEVEL_KEY] = log_level
    if extra:
        meta.update(extra)
    return meta


def stamp(
    method: str, value: dict[str, Any], server_info: Mapping[str, Any], *, scope: str, ttl: int = 0
) -> dict[str, Any]:
    """Return a result with what every modern result carries.

    ``scope`` (``public`` or ``private``) and ``ttl`` (milliseconds) go on the results of cacheable
    methods only.
    """
    stamped = {"resultType": "complete", **value}
    meta = value.get("_meta")
    stamped["_meta"] = (
        {**meta, SERVER_INFO_KEY: server_info} if meta else {SERVER_INFO_KEY: server_info}
    )
    if method in CACHEABLE and stamped["resultType"] == "complete":
        stamped.setdefault("ttlMs", ttl)
        stamped.setdefault("cacheScope", scope)
    return stamped
