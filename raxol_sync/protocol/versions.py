"""The revisions of MCP and what differs between them; which one a message speaks. Floor 1; pure.

*Legacy* revisions (2024-11-05 to 2025-11-25) open with an ``initialize`` handshake; the *modern*
one (2026-07-28) is stateless: each request says in ``_meta`` what it speaks (row S47).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from raxol_sync.errors import INVALID_PARAMS, RESOURCE_NOT_FOUND
from raxol_sync.protocol import modern

Era = Literal["legacy", "modern"]


class Revision(NamedTuple):
    """One protocol revision.

    Attributes:
        name: its date, as on the wire.
        era: ``legacy`` or ``modern``.
        batches: JSON-RPC batches are allowed.
        null_error_id: an error without a usable id says ``"id": null``; else it has none.
        resource_missing: the error code for an unknown resource (row S53).
        methods: the requests that a server answers.
    """

    name: str
    era: Era
    batches: bool
    null_error_id: bool
    resource_missing: int
    methods: frozenset[str]


_BOTH_ERAS = frozenset(
    {
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
    }
)
_LEGACY = _BOTH_ERAS | {
    "initialize",
    "ping",
    "resources/subscribe",
    "resources/unsubscribe",
    "logging/setLevel",
}
_MODERN = _BOTH_ERAS | {"server/discover", "subscriptions/listen"}


def _legacy(name: str, *, batches: bool = False, null_error_id: bool = True) -> Revision:
    return Revision(name, "legacy", batches, null_error_id, RESOURCE_NOT_FOUND, _LEGACY)


REVISIONS: dict[str, Revision] = {
    revision.name: revision
    for revision in (
        Revision("2026-07-28", "modern", False, False, INVALID_PARAMS, _MODERN),
        _legacy("2025-11-25", null_error_id=False),
        _legacy("2025-06-18"),
        _legacy("2025-03-26", batches=True),
        _legacy("2024-11-05"),
    )
}
"""Every revision that both our sides speak, newest first."""

MODERN = REVISIONS["2026-07-28"]
NEWEST_LEGACY = REVISIONS["2025-11-25"]
SUPPORTED: tuple[str, ...] = tuple(REVISIONS)
MODERN_NAMES: tuple[str, ...] = tuple(r.name for r in REVISIONS.values() if r.era == "modern")
LEGACY_NAMES: tuple[str, ...] = tuple(r.name for r in REVISIONS.values() if r.era == "legacy")

_ALWAYS_MODERN = frozenset({"server/discover", "subscriptions/listen"})


def era_of(method: str, params: Mapping[str, Any]) -> Era:
    """Return the era that a request or notification speaks (row S47).

    A ``_meta`` that names a protocol version is modern, and so are the methods that only the modern
    era has; all else is legacy, at whatever revision its connection negotiated.
    """
    if method in _ALWAYS_MODERN:
        return "modern"
    meta = params.get("_meta")
    if type(meta) is dict and modern.VERSION_KEY in meta:
        return "modern"
    return "legacy"


def answer_to_initialize(offered: object) -> Revision:
    """Return the revision that answers ``initialize`` (row S47).

    The offered one, if it is a legacy one that we speak, else 2025-11-25; never the modern one.
    """
    revision = REVISIONS.get(offered) if isinstance(offered, str) else None
    return revision if revision is not None and revision.era == "legacy" else NEWEST_LEGACY
