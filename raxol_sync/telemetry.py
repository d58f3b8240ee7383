"""Named events to one callable of the user's. Floor 2.

Events are handed over on a thread of their own, one after another: a callable that is slow, blocks,
raises or calls back in cannot hold up a request. If it falls too far behind, events are dropped and
counted.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from raxol_sync._deadline import Deadline
from raxol_sync._delivery import Delivery
from raxol_sync.hooks import check_hook

Sink = Callable[[str, Mapping[str, Any]], object]

MAX_WAITING = 10_000  # events that wait for the callable

EVENTS: dict[str, str] = {
    "request_started": "method, id, conn_id",
    "request_finished": "method, id, conn_id, seconds; is_error for a tool that failed",
    "request_failed": "method, id, conn_id, seconds, code",
    "request_cancelled": "method, id, conn_id, seconds",
    "request_timed_out": "method, id, conn_id, seconds",
    "busy": "method, scope, limit",
    "parked": "tool, conn_id",
    "parked_closed": "tool, conn_id, reason",
    "connection_opened": "conn_id, transport",
    "connection_closed": "conn_id",
    "client_capabilities_evicted": "conn_id",
    "circuit_opened": "kind, name",
    "circuit_closed": "kind, name",
    "events_dropped": "count",
}
"""Every event of a server, and its fields; ``seconds`` is how long the request took."""

CLIENT_EVENTS: dict[str, str] = {
    "session_ready": "name, era, version",
    "session_rejected": "name: an HTTP server has forgotten the session; a new one is made",
    "session_ended": "name, error: the exception's class, or None",
    "reconnecting": "name, attempt, seconds: how long it waits before the next attempt",
    "request_started": "name, method",
    "request_finished": "name, method, seconds; is_error for a tool that failed",
    "request_failed": "name, method, seconds, error: the exception's class; code of an RPCError",
    "request_cancelled": "name, method, seconds",
    "request_timed_out": "name, method, seconds",
    "breaker_opened": "name, origin",
    "breaker_half_opened": "name, origin: one request is let through",
    "breaker_closed": "name, origin",
    "reservation_spent": "name, tool",
    "reservation_returned": "name, tool: nothing was sent",
    "call_refused": "name, tool, error: UnmeteredCall or UnknownPrice",
    "events_dropped": "count",
}
"""Every event of a client, and its fields. ``name`` is the client's."""


class Telemetry:
    """Hands events to ``sink(name, fields)``. Thread-safe; without a sink it costs nothing."""

    def __init__(self, sink: Sink | None, name: str) -> None:
        """Raises ``TypeError`` for a sink that cannot be called here."""
        check_hook("telemetry", sink)
        self._sink = sink
        self._delivery = Delivery(name)
        # Guards: _waiting, _dropped, _closed, and that events are queued in one order, never after
        # the close. Only the delivery's own lock is taken while it is held.
        self._lock = threading.Lock()
        self._closed = False
        self._waiting = 0
        self._dropped = 0

    @property
    def on(self) -> bool:
        """Whether anybody listens; callers may save themselves the work of an event."""
        return self._sink is not None

    def emit(self, event: str, **fields: Any) -> None:
        """Queue an event. Never blocks and never raises; takes only leaf locks.

        After ``close`` it is dropped: it could only be handed over on the caller's thread.
        """
        if self._sink is None:
            return
        with self._lock:
            if self._closed:
                return
            if self._waiting >= MAX_WAITING:
                self._dropped += 1
                return
            self._waiting += 1
            dropped, self._dropped = self._dropped, 0
            if dropped:
                self._post(partial(self._sink, "events_dropped", {"count": dropped}))
            self._post(partial(self._hand_over, self._sink, event, fields))

    def close(self, deadline: Deadline) -> None:
        """Hand over what is queued and end the thread."""
        with self._lock:
            self._closed = True
        self._delivery.close(deadline)

    def _post(self, job: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # no thread is to be had now: the job stays queued
            self._delivery.post(job)

    def _hand_over(self, sink: Sink, event: str, fields: Mapping[str, Any]) -> None:
        with self._lock:
            self._waiting -= 1
        sink(event, fields)  # Delivery logs what it raises
