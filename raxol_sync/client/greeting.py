"""What a client says of itself: in the handshake, and in each modern request. Floor 1; pure.

Spec: basic/lifecycle (legacy), basic/index on ``_meta`` (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from raxol_sync.client import frames
from raxol_sync.client.frames import Frame
from raxol_sync.protocol import modern, wire


def declares_nothing(version: str) -> Mapping[str, Any]:
    """Return the capabilities of a client without handlers."""
    return {}


class Greeting:
    """Who the client is and what it declares. Not thread-safe: the machine's owner serialises.

    Attributes:
        log_level: the least level of log messages that modern requests ask for, or ``None``.
    """

    def __init__(
        self, client_info: Mapping[str, Any], capabilities: Callable[[str], Mapping[str, Any]]
    ) -> None:
        """``capabilities(version)``: what is declared in a revision."""
        self._info = dict(client_info)
        self._capabilities = capabilities
        self.log_level: str | None = None

    def meta(self, version: str) -> bytes:
        """Return the ``_meta`` of modern requests, encoded."""
        return self._meta(version, self.log_level)

    def _meta(self, version: str, log_level: str | None) -> bytes:
        declared = self._capabilities(version)
        return wire.encode(modern.build_meta(version, declared, self._info, log_level=log_level))

    def discover(self, request_id: int, version: str) -> Frame:
        """Return the probe: ``server/discover`` in this revision."""
        return frames.request(request_id, "server/discover", b"{}", self._meta(version, None))

    def initialize(self, request_id: int, version: str) -> Frame:
        """Return ``initialize``, which offers this revision."""
        params = {
            "protocolVersion": version,
            "capabilities": self._capabilities(version),
            "clientInfo": self._info,
        }
        return frames.request(request_id, "initialize", wire.encode(params))
