"""What a stdio server writes to stdout that is no message (row C20). Floor 3."""

from __future__ import annotations

import logging

from raxol_sync.client.incoming import shortened

_log = logging.getLogger("raxol_sync.client")

MAX_LOGGED = 10  # lines of one connection that are logged; the rest is counted
_SHOWN = 80  # characters of one in an error


class Noise:
    """Counts the lines of one connection. ``words`` may be called by any thread."""

    def __init__(self, name: str) -> None:
        """``name``: the client's."""
        self._name = name
        self._count = 0  # written by the reader alone
        self._first = ""

    def take(self, reason: str, line: bytes) -> None:
        """Note a line that cannot be read; on the reader. ``reason``: why."""
        self._count += 1
        if self._count == 1:
            self._first = shortened(line, _SHOWN)
        if self._count <= MAX_LOGGED:
            _log.warning("< %s: skipped: %s: %s", self._name, reason, shortened(line))
        elif self._count == MAX_LOGGED + 1:
            _log.warning(
                "< %s: more of what it writes to stdout is no message: left out here, and counted",
                self._name,
            )

    def end(self) -> None:
        """Log how many there were, if not each of them was logged; on the reader."""
        if self._count > MAX_LOGGED:
            _log.warning(
                "< %s: skipped %d lines on its stdout that were no messages",
                self._name,
                self._count,
            )

    def words(self) -> str:
        """Return what an error says of it: the end of a sentence, empty if there was none."""
        return f"; it wrote to stdout what is no message: {self._first}" if self._first else ""
