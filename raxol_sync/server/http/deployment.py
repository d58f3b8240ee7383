"""The gate in front of every network transport: somebody decided who may use it (S29). Floor 3."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from raxol_sync.errors import MCPError

VARIABLE = "RAXOL_SYNC_REQUIRE_AUTHORIZATION"
_NO = ("0", "false", "no", "off")


_FIXES = {
    "authorizer": 'authorizer=allowlist({"a_tool"}), authorizer_source="configured"',
    "read_authorizer": "read_authorizer=allow_all()",
}


class DeploymentError(MCPError):
    """Raised when a server would go on a network and nobody said who may use it (row S29).

    Attributes:
        missing: which of ``authorizer`` and ``read_authorizer`` nobody chose.
    """

    def __init__(self, missing: Sequence[str], hint: str = "") -> None:
        """``hint``: what was said, and does not count."""
        super().__init__(list(missing), hint)
        self.missing = list(missing)
        self.hint = hint

    def __str__(self) -> str:
        lines = "".join(f"\n        {_FIXES[name]}," for name in self.missing if name in _FIXES)
        return (
            "nobody has said who may use this server over a network: "
            f"no {' and no '.join(self.missing)} was chosen{self.hint}. Say it:\n"
            f"    Server(...,{lines})\n"
            "or let in everybody who can reach it:\n"
            "    require_authorization=False\n"
            f"  in run_http, wsgi_app or mount, or set {VARIABLE}=0 in the environment"
        )


class Guarded(Protocol):
    """The part of a server that the gate looks at."""

    def authorization_configured(self) -> bool:
        """As ``Server.authorization_configured``."""

    def read_authorization_configured(self) -> bool:
        """As ``Server.read_authorization_configured``."""

    def require_authorizer(self) -> None:
        """As ``Server.require_authorizer``."""


@dataclass(frozen=True)
class Deployment:
    """Whether a server may go on a network, and if not, why.

    Attributes:
        authorization: a caller chose who may call its tools (row S28).
        read_authorization: there is a read authorizer.
        required: both are needed; the embedder did not say otherwise.
    """

    authorization: bool
    read_authorization: bool
    required: bool = True

    @classmethod
    def of(cls, server: Guarded, require_authorization: bool | None = None) -> Deployment:
        """Look at a server. ``None``: the environment variable decides, by default yes."""
        given: object = require_authorization
        if given is None:
            given = os.environ.get(VARIABLE, "").strip().lower() not in _NO
        if not isinstance(given, bool):
            kind = type(given).__name__
            raise TypeError(f"require_authorization must be a bool or None, not {kind}")
        return cls(server.authorization_configured(), server.read_authorization_configured(), given)

    @property
    def missing(self) -> list[str]:
        """What nobody chose."""
        chosen = {
            "authorizer": self.authorization,
            "read_authorizer": self.read_authorization,
        }
        return [name for name, there in chosen.items() if not there]

    def check(self, *, undecided: bool = False, authenticates: bool = False) -> None:
        """Let it pass.

        Args:
            undecided: there is an authorizer, and nobody says that a person chose it.
            authenticates: the server asks who its callers are.

        Raises:
            DeploymentError: something is missing; the text shows the lines that fix it.
        """
        if self.required and self.missing:
            hints = []
            if undecided and "authorizer" in self.missing:
                hints.append('there is one, without authorizer_source="configured"')
            if authenticates:
                hints.append("authenticate= tells who calls, not what they may do")
            raise DeploymentError(self.missing, f" ({'; '.join(hints)})" if hints else "")
