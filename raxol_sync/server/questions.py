"""What a running callback asks its client in a legacy session: requests of ours. Floor 3.

Spec: client/elicitation, client/sampling, client/roots up to 2025-11-25. The callback waits on its
worker, which stays counted (row S15): given back, its slot would let in more callbacks than there
are threads. Ids are unguessable, and only the connection that was asked may answer (row S36).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from raxol_sync._deadline import Deadline
from raxol_sync.errors import (
    INVALID_REQUEST,
    Cancelled,
    InvalidResponse,
    MCPError,
    RequestTimeout,
    RPCError,
)
from raxol_sync.protocol import wire
from raxol_sync.server.connections import Call, Connection
from raxol_sync.server.engine import Engine
from raxol_sync.server.outbox import weight

Json = dict[str, Any]

MAX_AT_ONCE = 16  # questions of one ``ask``
MAX_PAGES = 1024  # visits whose end a client may still be told of; past it the oldest is forgotten


class ClientsDoing(MCPError):
    """What went wrong with a question because of the client: no fault of the callback's."""


class UnusableAnswer(InvalidResponse, ClientsDoing):
    """Raised when a client's answer does not fit its question. An ``InvalidResponse``."""

    def __str__(self) -> str:
        return f"the client's answer to {self.method} is not valid: {self.detail}"


class NoAnswer(RequestTimeout, ClientsDoing):
    """Raised when a client did not answer in time. A ``RequestTimeout``."""


def new_question_id() -> str:
    """Return an id that nobody can guess: 128 random bits (row S36)."""
    return f"raxol-elicit-{os.urandom(16).hex()}"


class _Asked:
    """Questions that one callback waits for."""

    def __init__(self, call: Call, ids: Sequence[str]) -> None:
        self.call = call
        self.ids = tuple(ids)
        self.answers: dict[str, wire.Response] = {}
        self.ready = threading.Event()


class Questions:
    """The open questions of a server. Thread-safe."""

    def __init__(self, engine: Engine, seconds: float | None) -> None:
        self._engine = engine
        self._seconds = seconds
        self._open: dict[str, _Asked] = {}  # guarded by the engine's lock
        # By their elicitation ids, oldest first; guarded by the engine's lock.
        self._pages: dict[str, weakref.ref[Connection]] = {}

    def ask(self, call: Call, requests: Sequence[Json]) -> list[Json]:
        """Send a client these requests and wait for its results, in their order.

        Raises:
            RPCError: the client cannot be reached, or answered with an error.
            RequestTimeout: it did not answer in time (``elicitation_timeout``).
            Cancelled: the callback's own request was cancelled or timed out.
        """
        ids = [new_question_id() for _ in requests]
        asked = _Asked(call, ids)
        messages = [
            wire.request(question_id, request["method"], request.get("params"))
            for question_id, request in zip(ids, requests, strict=True)
        ]
        self._send(asked, messages)
        wake = _Wake(asked.ready)
        self._engine.hook(call, wake)
        try:
            answered = asked.ready.wait(Deadline(self._seconds).left())
        finally:
            self._engine.unhook(call, wake)
            self._forget(asked)
        if call.settled:
            raise Cancelled(f"{call.method} was cancelled")
        if not answered:
            raise NoAnswer(requests[0]["method"], self._seconds)
        return [_result_of(asked.answers[question_id]) for question_id in ids]

    def take(self, conn_id: object, answer: wire.Response) -> bool:
        """Take an answer; return whether it was one to an open question of that connection."""
        with self._engine.lock:
            conn = self._engine.connections.find(conn_id)
            asked = self._open.get(answer.id) if isinstance(answer.id, str) else None
            if asked is None or asked.call.conn is not conn or not isinstance(answer.id, str):
                return False
            del self._open[answer.id]
            asked.answers[answer.id] = answer
            complete = len(asked.answers) == len(asked.ids)
        if complete:
            asked.ready.set()
        return True

    def page_shown(self, call: Call, elicitation_id: str) -> None:
        """Remember which client was asked to visit a page, in revision 2025-11-25."""
        with self._engine.lock:
            self._pages.pop(elicitation_id, None)
            self._pages[elicitation_id] = weakref.ref(call.conn)
            if len(self._pages) > MAX_PAGES:
                del self._pages[next(iter(self._pages))]

    def page_left(self, elicitation_id: str) -> bool:
        """Tell that client, and nobody else, that the visit has ended; once. False: unknown."""
        with self._engine.lock:
            shown = self._pages.pop(elicitation_id, None)
            conn = shown() if shown is not None else None
            outbox = conn.outbox if conn is not None else None
        if conn is None or outbox is None:
            return False
        done = wire.notification(
            "notifications/elicitation/complete", {"elicitationId": elicitation_id}
        )
        self._engine.send(conn.conn_id, done, outbox)
        return True

    def _send(self, asked: _Asked, messages: Sequence[Json]) -> None:
        call = asked.call
        sizes = [weight(message) for message in messages]
        with self._engine.lock:
            if call.settled:
                raise Cancelled(f"{call.method} was cancelled")
            outbox = call.outbox or call.conn.outbox
            if outbox is None:
                raise RPCError(INVALID_REQUEST, "the client cannot be asked: it has no stream")
            self._open.update(dict.fromkeys(asked.ids, asked))
            put = [outbox.put(message, size) for message, size in zip(messages, sizes, strict=True)]
        if not all(put):
            self._engine.overflowed(call)

    def _forget(self, asked: _Asked) -> None:
        """Drop what is still open, and tell the client that nobody waits for it."""
        with self._engine.lock:
            left = [i for i in asked.ids if self._open.pop(i, None) is not None]
            outbox = asked.call.outbox or asked.call.conn.outbox
            if outbox is None or (asked.call.own_outbox and asked.call.settled):
                return
            for question_id in left:
                note = {"requestId": question_id, "reason": "nobody waits for the answer"}
                outbox.put(wire.notification("notifications/cancelled", note), 256)


class _Wake:
    """Wakes the waiting callback when its request is settled."""

    def __init__(self, ready: threading.Event) -> None:
        self._ready = ready

    def __call__(self, ending: str) -> None:
        self._ready.set()


def _result_of(answer: wire.Response) -> Json:
    if answer.result is not None:
        return answer.result
    failure = answer.error or {}
    raise RPCError(
        int(failure.get("code", 0)), str(failure.get("message", "")), failure.get("data")
    )
