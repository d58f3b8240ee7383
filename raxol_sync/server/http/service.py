"""What the parts of one HTTP application share. Floor 3."""

from __future__ import annotations

import logging
import threading
from typing import Protocol

from raxol_sync.registry import Registry
from raxol_sync.server.dispatch import Dispatch
from raxol_sync.server.engine import Engine
from raxol_sync.server.http.options import Options
from raxol_sync.server.http.sessions import Sessions
from raxol_sync.server.http.streams import Places
from raxol_sync.server.seldom import Seldom

_log = logging.getLogger("raxol_sync.server")
_SHOWN = 100  # characters of a client's that are logged


class Endless(Protocol):
    """A stream that ends only when it is told to."""

    def finish(self) -> object:
        """End it; from any thread."""


class Service:
    """One application's parts. Thread-safe."""

    def __init__(
        self, dispatch: Dispatch, engine: Engine, registry: Registry, options: Options
    ) -> None:
        self.dispatch = dispatch
        self.engine = engine
        self.registry = registry
        self.options = options
        self.sessions = Sessions(engine, options.max_sessions, options.session_idle_timeout)
        self.places = Places(options.max_streams)
        # Guards: _endless, closed. Leaf.
        self._lock = threading.Lock()
        self._endless: set[Endless] = set()
        self.closed = False
        self._no_session = Seldom()
        self._turned_away = Seldom()

    def session_missing(self) -> None:
        """Log, now and then, that a request names a session that is not here."""
        more = self._no_session.due()
        if more is not None:
            _log.warning(
                "! a request names a session that this process does not have: it has ended, the "
                "server was restarted, or another worker process has it; with several, set "
                "max_sessions=0 or send each session's requests to the same one%s",
                more,
            )

    def turned_away(self, host: object, origin: object, reason: str) -> None:
        """Log, now and then, a request that is refused for its ``Host`` or ``Origin``."""
        more = self._turned_away.due()
        if more is not None:
            named = [f"Host {ascii(host)[:_SHOWN]}"]
            if origin is not None:
                named.append(f"Origin {ascii(origin)[:_SHOWN]}")
            _log.warning("! a request with %s is refused: %s%s", ", ".join(named), reason, more)

    def opened(self, stream: Endless) -> None:
        """Remember a stream that ``close`` has to end; one that comes too late ends at once."""
        with self._lock:
            closed = self.closed
            if not closed:
                self._endless.add(stream)
        if closed:
            stream.finish()

    def forget(self, stream: Endless) -> None:
        """Forget a stream that has ended."""
        with self._lock:
            self._endless.discard(stream)

    def close(self) -> None:
        """Take no more requests; end sessions and endless streams. Running calls go on."""
        with self._lock:
            self.closed = True
            streams = list(self._endless)
        for stream in streams:
            stream.finish()
        self.sessions.close()
