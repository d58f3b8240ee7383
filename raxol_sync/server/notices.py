"""Notifications to whoever is to have them, and the listens that ask for them. Floor 3."""

from __future__ import annotations

from typing import Any

from raxol_sync.errors import INVALID_REQUEST, RPCError
from raxol_sync.protocol import wire
from raxol_sync.server.connections import (
    LIST_CHANGED,
    MAX_LISTENS,
    MAX_LISTENS_TOTAL,
    RESOURCE_UPDATED,
    Call,
    Connection,
    Listen,
)
from raxol_sync.server.inflight import Requests
from raxol_sync.server.outbox import weight

Json = dict[str, Any]


class Notices(Requests):
    """Requests in flight, and notifications to connections and listens. Thread-safe."""

    def notify(self, method: str, params: Json | None) -> None:
        """Send a notification to all who are to have it (row S22)."""
        given = params or {}
        message = wire.notification(method, params)
        size = weight(message)
        coalesce = method in LIST_CHANGED
        uri = given.get("uri") if isinstance(given.get("uri"), str) else None
        stuck: list[Connection | Call] = []
        with self.lock:
            for conn in self.connections.all():
                for listen in conn.listens:
                    outbox, call = listen.call.outbox, listen.call
                    if outbox is None or not listen.wants(method, uri):
                        continue
                    only: Any = (method, call.id) if coalesce else None
                    if not outbox.put(listen.tagged(method, given), size, only=only):
                        stuck.append(call)
                if conn.outbox is None or conn.modern:
                    continue
                wanted = method != RESOURCE_UPDATED or uri in conn.uris
                only = (method, None) if coalesce else None
                if wanted and not conn.outbox.put(message, size, only=only):
                    stuck.append(conn)
        for target in stuck:
            self.overflowed(target)

    def open_listen(self, call: Call, listen: Listen) -> tuple[str, int] | None:
        """Acknowledge a listen and keep it; or return which bound forbids it (row S52).

        Raises:
            RPCError: there is nowhere to send its notifications.
        """
        agreed: Json = {"notifications": listen.honoured()}
        message = listen.tagged("notifications/subscriptions/acknowledged", agreed)
        size = weight(message)
        with self.lock:
            conn = call.conn
            outbox = call.outbox or conn.outbox
            if call.settled:
                return None
            if outbox is None:
                raise RPCError(INVALID_REQUEST, "subscriptions/listen needs a subscriber or a sink")
            if len(conn.listens) >= MAX_LISTENS:
                return "connection", MAX_LISTENS
            if sum(len(c.listens) for c in self.connections.all()) >= MAX_LISTENS_TOTAL:
                return "server", MAX_LISTENS_TOTAL
            call.outbox = outbox
            conn.listens.append(listen)
            full = not outbox.put(message, size)
        if full:
            self.overflowed(call)
        return None
