"""Who may do what: the answers of an authorizer, and what a denial looks like. Floor 1; pure.

Rows S25 to S27 and S31. An authorizer is a callable of the user's that answers ``ALLOW``,
``Ask(prompt)`` or ``Deny(reason)``. Whatever else it does (raise, answer something else, take too
long) denies: nothing is allowed by silence.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
Transport = Literal["stdio", "sse", "unknown"]


class Allow(enum.Enum):
    """The type of ``ALLOW``: the one answer that lets a call through."""

    ALLOW = "ALLOW"

    def __repr__(self) -> str:
        return "ALLOW"


ALLOW = Allow.ALLOW


@dataclass(frozen=True)
class Ask:
    """Let the call through if the person at the client approves of ``prompt``.

    On a read surface, and where the client cannot be asked, it denies.
    """

    prompt: str


@dataclass(frozen=True)
class Deny:
    """Refuse the call; the caller is told ``reason``."""

    reason: str = "denied by policy"


Verdict = Allow | Ask | Deny


@dataclass(frozen=True)
class AuthorizationContext:
    """What an authorizer is told besides the name and the arguments (row S25).

    Attributes:
        method: the JSON-RPC method; ``tools/list`` when a tool is only about to be listed.
        conn_id: the connection; ``None`` for lists of the stateless era.
        transport: ``stdio``, ``sse`` or ``unknown``, as the server's side declared it (row S30).
        client_info: what the client says of itself; not verified.
        client_capabilities: what it declares that it can do.
        principal: who the transport verified it to be, or ``None``.
    """

    method: str
    conn_id: object = None
    transport: Transport = "unknown"
    client_info: Mapping[str, Any] | None = None
    client_capabilities: Mapping[str, Any] = field(default_factory=dict)
    principal: object = None


Authorizer = Callable[[str, Mapping[str, Any], AuthorizationContext], Any]


def allow_all() -> Authorizer:
    """Return an authorizer that allows everything; for either seam (row S26)."""
    return lambda name, arguments, context: ALLOW


def deny_all(reason: str = "denied by policy") -> Authorizer:
    """Return an authorizer that denies everything, with this reason (row S26)."""
    return lambda name, arguments, context: Deny(reason)


def allowlist(names: Collection[str]) -> Authorizer:
    """Return an authorizer that allows the tools, or the methods, of these names (row S26)."""
    if isinstance(names, str):
        raise TypeError("allowlist takes a collection of names, not one str")
    allowed = frozenset(names)
    return lambda name, arguments, context: (
        ALLOW if name in allowed else Deny(f"{name} is not on the allowlist")
    )


def verdict(answer: object) -> Verdict | None:
    """Return an authorizer's answer if it is one; ``None`` (which denies) for anything else.

    An ``Ask`` needs a text to show. A ``Deny`` denies whatever its reason is.
    """
    if isinstance(answer, (Ask, Deny)):
        text: object = answer.prompt if isinstance(answer, Ask) else answer.reason
        if isinstance(text, str):
            return answer
        return Deny() if isinstance(answer, Deny) else None
    return answer if isinstance(answer, Allow) else None


def denial(subject: str, name: str, decision: str, detail: str) -> Json:
    """Return the machine-readable words of a denial (row S27).

    ``subject`` is ``tool`` or ``method``, ``decision`` is ``ask`` or ``deny``.
    """
    return {
        "error": "authorization_required",
        subject: name,
        "decision": decision,
        "detail": detail,
    }


def is_sensitive(annotations: Mapping[str, Any] | None) -> bool:
    """Return whether a tool's annotations make it sensitive (row S31).

    Annotations only add obligations: ``readOnlyHint`` takes none away.
    """
    marked = annotations or {}
    return marked.get("destructiveHint") is True or marked.get("sensitive") is True


# ---------------------------------------------------------------- asking for an approval

APPROVAL_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "approve": {
            "type": "boolean",
            "title": "Approve",
            "description": "Let the tool run",
        }
    },
    "required": ["approve"],
}


def approval_request(prompt: str) -> Json:
    """Return the params of the ``elicitation/create`` that asks for an approval (row S34)."""
    return {"mode": "form", "message": prompt, "requestedSchema": APPROVAL_SCHEMA}


def approval_refused(answer: object) -> str | None:
    """Return why an answer is no approval, or ``None`` if it is one (row S35)."""
    if not isinstance(answer, Mapping):
        return "the answer is not valid"
    action, content = answer.get("action"), answer.get("content")
    if action == "accept":
        approved = isinstance(content, Mapping) and content.get("approve") is True
        return None if approved else "not approved"
    return {"decline": "declined", "cancel": "cancelled"}.get(
        str(action), "the answer is not valid"
    )


def takes_forms(capabilities: Mapping[str, Any] | None) -> bool:
    """Return whether a client declares form elicitation: ``{}``, or with ``form`` (row S34)."""
    declared = (capabilities or {}).get("elicitation")
    if not isinstance(declared, Mapping):
        return False
    return "form" in declared or not declared
