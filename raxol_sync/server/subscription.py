"""``Subscription``: a connection's subscriber, from ``Server.subscribe`` to ``close``. Floor 3."""

from __future__ import annotations

from raxol_sync._deadline import Deadline
from raxol_sync.server.connections import Connection
from raxol_sync.server.engine import Engine
from raxol_sync.server.outbox import Outbox


class Subscription:
    """A connection's subscriber, until ``close()`` (or the end of its ``with``). Thread-safe."""

    def __init__(self, engine: Engine, conn: Connection, outbox: Outbox) -> None:
        self._engine = engine
        self._conn = conn
        self._outbox = outbox

    @property
    def conn_id(self) -> object:
        """The connection's id."""
        return self._conn.conn_id

    def close(self, timeout: float | None = 5.0) -> None:
        """End the connection: what it has outstanding resolves to ``None`` (row S21).

        Messages that are queued already are still delivered, for at most ``timeout`` seconds.
        """
        self._engine.end_connection(self._conn)
        self._outbox.join(Deadline(timeout))

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
