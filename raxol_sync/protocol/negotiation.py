"""How a client finds out which era and revision a server speaks (row C22, the part of stdio). Pure.

The client asks ``server/discover`` first. ``judge_discover`` reads the answer, ``judge_initialize``
the answer to the handshake that legacy servers want.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from raxol_sync.errors import (
    HEADER_MISMATCH,
    MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from raxol_sync.protocol import versions
from raxol_sync.protocol.modern import SERVER_INFO_KEY
from raxol_sync.protocol.wire import Response

_MODERN_ERRORS = frozenset(
    {HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION}
)


class Modern(NamedTuple):
    """The server is modern. ``result`` is its discover result."""

    version: str
    result: dict[str, Any]


class Retry(NamedTuple):
    """The server is modern but wants another version: ask once more with this one."""

    version: str


class Legacy(NamedTuple):
    """The server is legacy, for this reason: send ``initialize``."""

    reason: str


class Hopeless(NamedTuple):
    """There is no version that both sides speak; ``reason`` says which were named."""

    reason: str


Verdict = Modern | Retry | Legacy | Hopeless


class Agreement(NamedTuple):
    """A successful ``initialize``."""

    version: str
    capabilities: dict[str, Any]
    server_info: dict[str, Any]
    instructions: str | None


def judge_discover(answer: Response, *, retried: bool = False) -> Verdict:
    """Return what an answer to ``server/discover`` says of the server's era.

    A result that shares a modern version with us, or one of the errors that only modern servers
    give, is modern. Any other error, or naming only legacy revisions, is legacy. A modern error is
    retried once, from the versions that it names; a second one leaves nothing to try.
    """
    if answer.result is not None:
        named = _strings(answer.result.get("supportedVersions"))
        version = _shared_modern(named)
        if version is not None:
            return Modern(version, answer.result)
        if any(name in versions.LEGACY_NAMES for name in named):
            return Legacy("the server names only legacy revisions")
        if named:
            return Hopeless(_no_common_version(named))
        return Legacy("the answer to server/discover names no versions")
    failure = answer.error or {}
    if failure.get("code") not in _MODERN_ERRORS:
        return Legacy(f"server/discover was answered with error {failure.get('code')}")
    data = failure.get("data")
    named = _strings(data.get("supported")) if isinstance(data, dict) else []
    version = _shared_modern(named)
    if version is None and any(name in versions.LEGACY_NAMES for name in named):
        return Legacy("the server names only legacy revisions")
    if not named:
        code = failure.get("code")
        return Hopeless(f"server/discover was answered with error {code}, which names no versions")
    if version is None or retried:
        return Hopeless(_no_common_version(named))
    return Retry(version)


def judge_initialize(answer: Response) -> Agreement | Hopeless:
    """Return what an answer to ``initialize`` agreed on, or why nothing can be agreed on."""
    if answer.result is None:
        failure = answer.error or {}
        return Hopeless(f"the server refused initialize: {str(failure.get('message'))[:500]}")
    version = answer.result.get("protocolVersion")
    if version not in versions.LEGACY_NAMES:
        named = version if isinstance(version, str) else "none as a string"
        return Hopeless(_no_common_version([named]))
    capabilities = answer.result.get("capabilities")
    info = answer.result.get("serverInfo")
    instructions = answer.result.get("instructions")
    return Agreement(
        version,
        capabilities if isinstance(capabilities, dict) else {},
        info if isinstance(info, dict) else {},
        instructions if isinstance(instructions, str) else None,
    )


def discovered(verdict: Modern) -> Agreement:
    """Return a discover result in the form of a handshake's."""
    result = verdict.result
    meta = result.get("_meta")
    info = meta.get(SERVER_INFO_KEY) if isinstance(meta, dict) else None
    capabilities, instructions = result.get("capabilities"), result.get("instructions")
    return Agreement(
        verdict.version,
        capabilities if isinstance(capabilities, dict) else {},
        info if isinstance(info, dict) else {},
        instructions if isinstance(instructions, str) else None,
    )


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _shared_modern(named: list[str]) -> str | None:
    return next((name for name in versions.MODERN_NAMES if name in named), None)


def _no_common_version(named: list[str]) -> str:
    theirs = ", ".join(name[:64] for name in sorted(named)[:8]) or "none"
    ours = ", ".join(versions.SUPPORTED)
    return f"no protocol version in common: the server names {theirs}, this client speaks {ours}"
