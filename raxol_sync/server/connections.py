"""What a server remembers of each connection, and of each request in flight. Floor 2.

Plain state without locks of its own: the engine's lock guards all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any, NamedTuple

from raxol_sync._delivery import DeliveredFuture
from raxol_sync._scheduler import Entry
from raxol_sync.definitions import Tool
from raxol_sync.policy import Transport
from raxol_sync.protocol.modern import SUBSCRIPTION_KEY, Envelope
from raxol_sync.protocol.request_state import Round
from raxol_sync.protocol.versions import NEWEST_LEGACY, Revision
from raxol_sync.protocol.wire import RequestId
from raxol_sync.server.outbox import Box
from raxol_sync.server.parking import Place

Json = dict[str, Any]

MAX_SUBSCRIPTIONS = 1024  # resource URIs of one connection (row S22)
MAX_LISTENS = 16  # open listens of one connection (row S52)
MAX_LISTENS_TOTAL = 1024

LIST_CHANGED = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
}
RESOURCE_UPDATED = "notifications/resources/updated"


UNSHARED = object()
"""The share of a request that no one's bound counts but the server's own (row S24)."""


class Visit(NamedTuple):
    """What an HTTP request brings besides its message.

    Attributes:
        environ: its WSGI environ.
        principal: who its client was verified to be, ``None`` where nobody looked.
        revision: what an anonymous one speaks; ``None``: it belongs to a session.
    """

    environ: Json
    principal: object = None
    revision: Revision | None = None

    @property
    def share(self) -> object:
        """Whose share of the workers an anonymous one takes."""
        return UNSHARED if self.principal is None else ("principal", self.principal)


class Connection:
    """One client connection. Guarded by the engine's lock.

    Attributes:
        conn_id: what the transport, or the caller, calls it.
        outbox: where what it is sent goes; ``None`` without a subscriber.
        ended: its subscriber is gone, and so is it.
        revision: what ``initialize`` agreed on; the newest legacy one before.
        initialized: it sent ``initialize``.
        modern: it sent a modern request and no ``initialize``: it gets nothing unasked.
        capabilities: what it advertised at ``initialize``, ``None`` when not (or no longer) known.
        log_level: the least level of ``notifications/message`` that it wants.
        uris: the resources that it subscribed to.
        calls: its requests in flight, by id.
        listens: its open ``subscriptions/listen`` requests.
        on_ended: what its transport wants called, once and outside the lock, when it ends.
        transport: what carries it (row S30), ``None`` for direct callers.
        anonymous: it is one HTTP request's, and nothing of it outlives that (row S24).
        share: what its callbacks are counted by (row S15): its id, or that of a principal.
    """

    __slots__ = (
        "__weakref__",
        "anonymous",
        "calls",
        "capabilities",
        "client_info",
        "conn_id",
        "ended",
        "initialized",
        "listens",
        "log_level",
        "modern",
        "on_ended",
        "outbox",
        "revision",
        "share",
        "transport",
        "uris",
    )

    def __init__(self, conn_id: object) -> None:
        self.conn_id = self.share = conn_id
        self.anonymous = False
        self.outbox: Box | None = None
        self.ended = False
        self.revision: Revision = NEWEST_LEGACY
        self.initialized = False
        self.modern = False
        self.capabilities: Json | None = None
        self.client_info: Json | None = None
        self.log_level = "info"
        self.uris: set[str] = set()
        self.calls: dict[RequestId, Call] = {}
        self.listens: list[Listen] = []
        self.on_ended: Callable[[], object] | None = None
        self.transport: Transport | None = None

    def visited(self, visit: Visit) -> None:
        """Make it the connection of one HTTP request without a session (row S24)."""
        if visit.revision is not None:
            self.anonymous, self.transport = True, "sse"
            self.revision, self.share = visit.revision, visit.share


class Call:
    """One request in flight. Guarded by the engine's lock.

    ``cancelled`` only ever turns true and may be read without the lock.

    Attributes:
        conn: the connection that made it.
        id: its JSON-RPC id, and with ``method`` and ``params`` as it came.
        revision: what it speaks; ``envelope`` is its ``_meta`` in the modern era.
        future: settled with the response, or ``None``; itself ``None`` where nobody waits for one.
        outbox: where all that it causes goes; ``None`` where the caller only holds the future.
        own_outbox: ``outbox`` is this request's alone and ends with it.
        settled: it was answered or dropped; whoever set this settles the future.
        response: what it was answered with, once it is settled; ``None``: it was dropped.
        cancelled: its callback should stop.
        timer: its time-out, while a worker runs it; ``thread`` is that worker.
        progress_sent: the largest progress that it has reported.
        approval: the tool and the arguments that an approval would run, ``None`` for others.
        ending: how it was settled: ``finished``, ``cancelled`` or ``timed_out``.
        hooks: what is to be told of that, outside the lock.
        expiry: what a time-out answers just now, ``None`` for the usual error.
        lets_go: its caller blocks; when it is parked he gets ``None`` and its answer is pushed.
        owner: the thread whose end cancels it, as a token; ``None`` for nobody's.
        place: where it is parked, ``None`` if it is not.
        round: its input round, in the modern era.
        runs: how many callbacks were started for it.
        started: when it began, on the monotonic clock; 0 where nobody wants to know.
        visit: the HTTP request that brought it, ``None`` elsewhere.
    """

    __slots__ = (
        "__weakref__",
        "approval",
        "cancelled",
        "conn",
        "ending",
        "envelope",
        "expiry",
        "future",
        "hooks",
        "id",
        "lets_go",
        "method",
        "outbox",
        "own_outbox",
        "owner",
        "params",
        "place",
        "progress_sent",
        "progress_token",
        "response",
        "revision",
        "round",
        "runs",
        "settled",
        "started",
        "thread",
        "timer",
        "visit",
    )

    def __init__(
        self,
        conn: Connection,
        request_id: RequestId,
        method: str,
        params: Json,
        revision: Revision,
        envelope: Envelope | None,
        future: DeliveredFuture[Json | None] | None,
    ) -> None:
        self.conn = conn
        self.id = request_id
        self.method = method
        self.params = params
        self.revision = revision
        self.envelope = envelope
        self.future = future
        self.visit: Visit | None = None
        self.outbox: Box | None = None
        self.own_outbox = False
        self.settled = False
        self.response: Json | None = None
        self.cancelled = False
        self.timer: Entry | None = None
        self.thread: Thread | None = None
        self.progress_sent = float("-inf")
        self.approval: tuple[Tool, Json] | None = None
        self.ending = ""
        self.hooks: list[Callable[[str], object]] = []
        self.expiry: Json | None = None
        self.lets_go = False
        self.owner: object = None
        self.place: Place[Call] | None = None
        self.round: Round | None = None
        self.runs = 0
        self.started = 0.0
        meta = params.get("_meta")
        token = meta.get("progressToken") if type(meta) is dict else None
        self.progress_token = token if type(token) in (str, int) else None

    @property
    def modern(self) -> bool:
        """Whether the request speaks the stateless era."""
        return self.envelope is not None

    @property
    def principal(self) -> object:
        """Who the client was verified to be, or ``None``."""
        return self.visit.principal if self.visit is not None else None

    @property
    def meta(self) -> Json:
        """The request's ``_meta``, ``{}`` without one."""
        meta = self.params.get("_meta")
        return meta if type(meta) is dict else {}


class Ending(NamedTuple):
    """What follows the end of a connection, once the lock is free."""

    conn: Connection
    dropped: list[Call]
    on_ended: Callable[[], object] | None
    lived: bool  # it had a subscriber, and had not ended before


class Listen:
    """One open ``subscriptions/listen``: which notifications it asked for."""

    __slots__ = ("call", "kinds", "uris")

    def __init__(self, call: Call, wanted: Json) -> None:
        """Read a filter whose ``resourceSubscriptions``, if there are any, are strings."""
        self.call = call
        self.kinds = {m for m, flag in LIST_CHANGED.items() if wanted.get(flag) is True}
        self.uris: set[str] = set(wanted.get("resourceSubscriptions") or ())

    def honoured(self) -> Json:
        """Return the filter that is honoured, for the acknowledgement."""
        agreed: Json = {LIST_CHANGED[kind]: True for kind in sorted(self.kinds)}
        if self.uris:
            agreed["resourceSubscriptions"] = sorted(self.uris)
        return agreed

    def wants(self, method: str, uri: str | None) -> bool:
        """Return whether a notification (of that resource) is one that it asked for."""
        if method == RESOURCE_UPDATED:
            return uri in self.uris
        return method in self.kinds

    def tagged(self, method: str, params: Json) -> Json:
        """Return the notification with this subscription's id, as the spec wants it."""
        meta = {**(params.get("_meta") or {}), SUBSCRIPTION_KEY: self.call.id}
        return {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": meta}}


class Connections:
    """All connections of a server, with a bound on those that nobody subscribed for (row S23)."""

    def __init__(self, max_remembered: int) -> None:
        self._by_id: dict[object, Connection] = {}
        self._max_remembered = max_remembered
        # Of which something is kept between requests, in the order of their ``initialize``.
        self._remembered: dict[object, None] = {}

    def find(self, conn_id: object) -> Connection | None:
        """Return the connection of that id, if there is one."""
        return self._by_id.get(conn_id)

    def open(self, conn_id: object) -> Connection:
        """Return the connection of that id, made if need be."""
        conn = self._by_id.get(conn_id)
        if conn is None:
            conn = self._by_id[conn_id] = Connection(conn_id)
        return conn

    def holds(self, conn: Connection) -> bool:
        """Return whether this very connection is still the one of its id."""
        return self._by_id.get(conn.conn_id) is conn

    def tidy(self, conn: Connection) -> None:
        """Forget a connection of which nothing needs to be remembered."""
        if conn.outbox is None and not conn.calls and conn.conn_id not in self._remembered:
            self.remove(conn)

    def remove(self, conn: Connection) -> None:
        """Forget a connection whatever it holds."""
        if self._by_id.get(conn.conn_id) is conn:
            del self._by_id[conn.conn_id]
            self._remembered.pop(conn.conn_id, None)

    def initialized(self, conn: Connection) -> list[Connection]:
        """Note that a connection initialized; return those whose capabilities had to go.

        Past the cap the oldest one without a live subscriber goes first, a live one only when all
        are live.
        """
        self._remembered.pop(conn.conn_id, None)
        return self.remember(conn)

    def remember(self, conn: Connection) -> list[Connection]:
        """Keep a connection between its requests, for its capabilities, level or subscriptions."""
        if not self.holds(conn) or conn.anonymous:  # it ended while it was served, or will
            return []
        self._remembered.setdefault(conn.conn_id)
        evicted: list[Connection] = []
        while len(self._remembered) > self._max_remembered:
            candidates = [self._by_id[conn_id] for conn_id in self._remembered]
            victim = next((c for c in candidates if c.outbox is None), candidates[0])
            del self._remembered[victim.conn_id]
            if victim.capabilities is not None:  # else only a level or subscriptions go
                victim.capabilities = None
                evicted.append(victim)
            self.tidy(victim)
        return evicted

    def all(self) -> list[Connection]:
        """Return every connection."""
        return list(self._by_id.values())

    @property
    def remembered(self) -> int:
        """How many connections' capabilities are kept."""
        kept = (self._by_id[conn_id] for conn_id in self._remembered)
        return sum(conn.capabilities is not None for conn in kept)
