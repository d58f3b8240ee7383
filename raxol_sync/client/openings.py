"""How to begin with a server, from what earlier connections to it have shown (row C22). Floor 3."""

from __future__ import annotations

from raxol_sync.client import eras
from raxol_sync.client.machine import Opening
from raxol_sync.client.stdio import Command, exits_on_probe, remember_exit_on_probe
from raxol_sync.protocol.versions import LEGACY_NAMES


class FixedOpenings:
    """Always begins in one way: a pinned revision, or a server in this process."""

    def __init__(self, opening: Opening) -> None:
        self._opening: Opening = opening

    def opening(self) -> Opening:
        """See ``Openings``."""
        return self._opening

    def worked(self, opening: str, era: str | None, again: bool) -> None:
        """See ``Openings``: there is nothing to remember."""

    def failed(self, opening: str, again: bool) -> None:
        """See ``Openings``: there is nothing to remember."""


class StdioOpenings:
    """Which command lines exit on the probe."""

    def __init__(self, command: Command) -> None:
        self._command = command

    def opening(self) -> Opening:
        """See ``Openings``."""
        return "initialize" if exits_on_probe(self._command) else "discover"

    def worked(self, opening: str, era: str | None, again: bool) -> None:
        """See ``Openings``."""
        if again:
            remember_exit_on_probe(self._command, True)

    def failed(self, opening: str, again: bool) -> None:
        """See ``Openings``."""
        if opening == "initialize":
            remember_exit_on_probe(self._command, False)


class HttpOpenings:
    """Which era an origin and path speak, for 15 minutes. ``pinned``: the only revision."""

    def __init__(self, key: eras.Key, pinned: str | None) -> None:
        self._key = key
        self._pinned = pinned

    def opening(self) -> Opening:
        """See ``Openings``."""
        known = eras.recall(self._key)
        if known == "sse" and (self._pinned is None or self._pinned in LEGACY_NAMES):
            return "sse"
        if self._pinned is not None:
            return "initialize" if self._pinned in LEGACY_NAMES else "discover"
        if known == "legacy":
            return "initialize"
        return "modern" if known == "modern" else "discover"

    def worked(self, opening: str, era: str | None, again: bool) -> None:
        """See ``Openings``."""
        if opening != "discover" and not again:
            return  # it was known: that it worked does not make the knowledge younger
        if opening == "sse":
            eras.remember(self._key, "sse")
        elif era is not None:
            eras.remember(self._key, "legacy" if era == "legacy" else "modern")

    def failed(self, opening: str, again: bool) -> None:
        """See ``Openings``: what was known may be wrong; the next attempt asks."""
        if opening != "discover":
            eras.forget(self._key)
