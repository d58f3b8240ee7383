"""Requests in flight, the connections that made them, and where their messages go. Floor 3.

Theory of operation. Each request is a ``Call``, registered with its connection under the lock.
Whoever takes it out of there (a worker that is done, a time-out, a cancel, a connection that goes,
``close``) *settles* it: its response is queued on its outbox under that same lock, so that the
order on the wire is the order that was decided, and its future is set after the lock. All others
find it settled and do nothing. Nothing here knows an MCP method; ``methods`` has the rules.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from raxol_sync._deadline import now
from raxol_sync._delivery import DeliveredFuture, Delivery
from raxol_sync._scheduler import Scheduler
from raxol_sync.errors import INTERNAL_ERROR, INVALID_REQUEST, RPCError
from raxol_sync.policy import Transport
from raxol_sync.protocol import wire
from raxol_sync.protocol.modern import Envelope
from raxol_sync.protocol.versions import NEWEST_LEGACY, Revision
from raxol_sync.server.connections import Call, Connection, Connections, Ending, Visit
from raxol_sync.server.events import tell_end
from raxol_sync.server.forks import FORKED, on_fork
from raxol_sync.server.outbox import Box, Consumer, Outbox, weight, weight_for
from raxol_sync.server.parking import Parking
from raxol_sync.telemetry import Telemetry

Json = dict[str, Any]
_log = logging.getLogger("raxol_sync.server")


def error_response(call: Call, error: RPCError) -> Json:
    """Return the response that tells a caller of an error."""
    return wire.error(call.id, error.code, error.message, error.data)


class Requests:
    """What is in flight and who waits for it. Thread-safe."""

    def __init__(
        self,
        scheduler: Scheduler,
        max_remembered: int,
        parking: Parking[Call],
        telemetry: Telemetry,
    ) -> None:
        self._scheduler = scheduler
        self._telemetry = telemetry
        self._delivery = Delivery("raxol-sync-delivery")
        self.deliver = self._delivery.post  # runs a job there; it does not keep us alive
        # Guards: connections and everything in them, parking, _owned, _working, _outboxes, _closed,
        # and what Engine and Questions add. An Outbox's own lock and telemetry's may be taken
        # while it is held; nothing else is called.
        self.lock = threading.Lock()
        self.connections = Connections(max_remembered)
        self.parking = parking
        self._owned: dict[object, set[Call]] = {}  # by the thread that asked, as a token
        self._working: set[Call] = set()  # calls whose callback has not returned
        self._outboxes: set[Box] = set()  # whose thread has not ended
        self._closed = False
        self._used = False  # threads may have been started
        self._why_closed = "server closed"
        on_fork(self.forked)

    def refused(self) -> RPCError:
        """Return the error that every request gets once the server is closed (row S51)."""
        return RPCError(INTERNAL_ERROR, self._why_closed)

    def forked(self) -> None:
        """In a process that was just forked: its threads are not here, if it had any.

        The lock may have been held by one of them.
        """
        self.lock = threading.Lock()  # Guards: what the one before did, which may be held for ever.
        if self._used:
            self._closed, self._why_closed = True, FORKED

    # ------------------------------------------------------------ requests

    def begin(
        self,
        conn_id: object,
        request: wire.Request,
        revision: Revision | None,
        envelope: Envelope | None,
        sink: Consumer | Box | None,
        future: DeliveredFuture[Json | None] | None,
        owner: object = None,
        visit: Visit | None = None,
    ) -> Call:
        """Register a request; ``revision`` ``None`` is the connection's own.

        ``future`` is settled with it; without one its response goes to ``sink`` alone. One that
        cannot be registered (a closed server, an id in use) comes back settled, and so does one
        that came over a connection which has ended: that one gets no answer.
        """
        shared, own = self._outbox_for(conn_id, sink)
        refusal: RPCError | None = None
        started = 0.0
        if self._telemetry.on:
            started = now()
            # Before anybody can see the request: its end must not be told before its start.
            told = {"method": request.method, "id": request.id, "conn_id": conn_id}
            self._telemetry.emit("request_started", **told)
        with self.lock:
            self._used = True
            conn = self.connections.open(conn_id)
            if visit is not None:
                conn.visited(visit)
            call = Call(
                conn, request.id, request.method, request.params, revision or conn.revision,
                envelope, future,
            )  # fmt: skip
            gone = shared is not None and conn.outbox is not shared
            if visit is not None and visit.revision is None and conn.outbox is None:
                gone = True  # its session has ended just now
            call.outbox, call.own_outbox, call.started = own or shared, own is not None, started
            call.visit = visit
            if self._closed:
                refusal = self.refused()
            elif request.id in conn.calls:
                refusal = RPCError(INVALID_REQUEST, "this id belongs to a request in flight")
            elif not gone:
                conn.calls[request.id] = call
                if owner is not None:
                    call.owner = owner
                    self._owned.setdefault(owner, set()).add(call)
                conn.modern = conn.modern or (envelope is not None and not conn.initialized)
            if own is not None and own.thread is not None:
                self._outboxes.add(own)
        if future is not None:
            future.bind_cancel(partial(self.cancel, call))
        if own is not None and not self._launch(own, call):
            refusal = RPCError(INTERNAL_ERROR, "the server cannot start one more thread")
        if refusal is not None or gone:
            self.settle(call, error_response(call, refusal) if refusal is not None else None)
        return call

    def settle(self, call: Call, response: Json | None) -> bool:
        """Answer a request, or with ``None`` drop it; return whether this call did.

        Exactly one caller wins. Call it outside the lock.
        """
        size = weight_for(call.outbox, response)
        with self.lock:
            won, full = self._settle(call, response, size)
        if won:
            self._after(call, response, full)
        return won

    def cancel(self, call: Call) -> bool:
        """Stop a request at whatever stage it is and resolve it to ``None`` (row S04)."""
        return self.settle(call, None)

    def cancel_id(self, conn_id: object, request_id: wire.RequestId) -> None:
        """Cancel a connection's own request of that id, if it has one in flight (row S50)."""
        with self.lock:
            conn = self.connections.find(conn_id)
            call = conn.calls.get(request_id) if conn is not None else None
        if call is not None and call.method != "initialize":
            self.cancel(call)

    def cancel_owner(self, owner: object) -> None:
        """Cancel what a thread asked that has ended (row S05)."""
        with self.lock:
            calls = list(self._owned.get(owner, ()))
        for call in calls:
            self.cancel(call)

    def hook(self, call: Call, action: Callable[[str], object]) -> bool:
        """Have ``action(ending)`` called once a call is settled; at once, and false, if it is."""
        with self.lock:
            if not call.settled:
                call.hooks.append(action)
                return True
        action(call.ending)
        return False

    def unhook(self, call: Call, action: Callable[[str], object]) -> None:
        """Undo ``hook``, if the call is not settled."""
        with self.lock:
            if not call.settled and action in call.hooks:
                call.hooks.remove(action)

    def _settle(
        self, call: Call, response: Json | None, size: int, ending: str = "finished"
    ) -> tuple[bool, bool]:
        """Take a call out, queue its response. Needs the lock.

        Returns whether this settled it, and whether its connection's outbox had no room.
        """
        if call.settled:
            return False, False
        call.settled, call.response = True, response
        call.ending = "cancelled" if response is None else ending
        conn = call.conn
        if call.place is not None:
            self.parking.remove(call.place)
        if call.owner is not None:
            self._disown(call)
        if conn.calls.get(call.id) is call:
            del conn.calls[call.id]
        if conn.listens:
            conn.listens = [listen for listen in conn.listens if listen.call is not call]
        call.cancelled = call.cancelled or response is None or call in self._working
        outbox, own, full = call.outbox, call.own_outbox, False
        if outbox is not None:
            if response is not None:
                full = not outbox.put(response, size, last=own, flushed=True)
            if own and (full or response is None):
                outbox.close()
        self.connections.tidy(conn)
        return True, full and not own

    def _disown(self, call: Call) -> None:
        owned = self._owned.get(call.owner)
        if owned is not None:
            owned.discard(call)
            if not owned:
                del self._owned[call.owner]

    def _after(self, call: Call, response: Json | None, full: bool) -> None:
        """Do what follows settling, outside the lock."""
        outbox = call.outbox if response is not None else None
        if outbox is not None and outbox.thread is not None:
            outbox.flush()  # first: a client waits for it
        place = call.place
        for timer in (call.timer, place.timer if place is not None else None):
            if timer is not None:
                self._scheduler.cancel(timer)
        if call.hooks:
            for action in call.hooks:
                action(call.ending)
            call.hooks = []
        if self._telemetry.on:
            tell_end(self._telemetry, call, response)
        if call.future is not None:
            call.future.settle(response)
            call.future.bind_cancel(_too_late)  # else the two would hold each other for ever
        if outbox is not None and outbox.thread is None:
            outbox.flush()  # last: a reader that wakes earlier waits for the interpreter's lock
        if full:
            self.overflowed(call.conn)

    def settled(
        self,
        response: Json | None,
        *,
        conn_id: object = None,
        sink: Consumer | Box | None = None,
    ) -> DeliveredFuture[Json | None]:
        """Return a future that is settled already; send the response to ``sink`` too."""
        future: DeliveredFuture[Json | None] = DeliveredFuture(self._delivery.post)
        if sink is not None and response is not None:
            shared, own = self._outbox_for(conn_id, sink)
            if shared is not None:
                self.send(conn_id, response, shared)
            elif own is not None:
                with self.lock:
                    if own.thread is not None:
                        self._outboxes.add(own)
                own.put(response, last=True)
                self._launch(own, None)
        future.settle(response)
        return future

    def send(self, conn_id: object, message: Any, outbox: Box | None = None) -> None:
        """Queue a message for a connection's subscriber, if it has one (``outbox``: that one)."""
        size = weight(message)
        with self.lock:
            conn = self.connections.find(conn_id)
            target = conn.outbox if conn is not None else None
            if conn is None or target is None or (outbox is not None and outbox is not target):
                return
            full = not target.put(message, size)
        if full:
            self.overflowed(conn)

    def revision_of(self, conn_id: object) -> Revision:
        """Return the revision that a connection negotiated; the newest legacy one before."""
        with self.lock:
            conn = self.connections.find(conn_id)
            return conn.revision if conn is not None else NEWEST_LEGACY

    # ------------------------------------------------------------ pushing

    def push(self, call: Call, message: Json, *, progress: float | None = None) -> None:
        """Send what a request causes (progress, log) to its stream.

        Nothing goes out once the request is settled (row S20), and no ``progress`` that is not
        above the one before.
        """
        size = weight(message)
        with self.lock:
            if call.settled or (progress is not None and not progress > call.progress_sent):
                return
            if progress is not None:
                call.progress_sent = progress
            outbox = call.outbox or call.conn.outbox
            full = outbox is not None and not outbox.put(message, size, flushed=True)
        if full:
            self.overflowed(call)
        elif outbox is not None:
            outbox.flush()
            outbox.ease()  # a callback that reports faster than its client reads is slowed down

    def overflowed(self, target: Connection | Call) -> None:
        """End what does not read what it is sent: a request's own sink, or a connection."""
        if isinstance(target, Call) and not target.own_outbox:
            target = target.conn
        if isinstance(target, Call):
            _log.warning("! %s cancelled: its sink does not read what it is sent", target.method)
            self.cancel(target)
        else:
            _log.warning("! connection closed: it does not read what it is sent")
            self.end_connection(target)

    # ------------------------------------------------------------ connections

    def attach(
        self,
        conn_id: object,
        outbox: Box,
        on_ended: Callable[[], object] | None = None,
        *,
        transport: Transport | None = None,
    ) -> Connection:
        """Give a connection its subscriber; a live one of that id is taken over (row S21).

        ``on_ended()`` is called once when the connection ends, for whatever reason.
        """
        with self.lock:
            if self._closed:
                raise self.refused()
            self._used = True
            conn = self.connections.find(conn_id)
            old = conn if conn is not None and conn.outbox is not None else None
            ending = self._end(old) if old is not None else None
            conn = self.connections.open(conn_id)
            conn.outbox, conn.on_ended, conn.transport = outbox, on_ended, transport
            if outbox.thread is not None:
                self._outboxes.add(outbox)
        if ending is not None:
            self._finish(ending)
        self._telemetry.emit("connection_opened", conn_id=conn_id, transport=transport)
        if not self._launch(outbox, conn):
            self.end_connection(conn)
            raise RPCError(INTERNAL_ERROR, "the server cannot start one more thread")
        return conn

    def end_connection(self, conn: Connection) -> None:
        """End a connection: what it has outstanding resolves to ``None``. Twice is harmless."""
        with self.lock:
            ending = self._end(conn)
        self._finish(ending)

    def _end(self, conn: Connection) -> Ending:
        """Take a connection and its calls out. Needs the lock; ``_finish`` follows it."""
        dropped = [call for call in list(conn.calls.values()) if self._settle(call, None, 0)[0]]
        conn.capabilities = None
        if conn.outbox is not None:
            conn.outbox.close()
        self.connections.remove(conn)
        on_ended, conn.on_ended = conn.on_ended, None
        lived, conn.ended = not conn.ended and conn.outbox is not None, True
        return Ending(conn, dropped, on_ended, lived)

    def _finish(self, ending: Ending) -> None:
        conn, dropped, on_ended, lived = ending
        for call in dropped:
            self._after(call, None, False)
        if lived:
            self._telemetry.emit("connection_closed", conn_id=conn.conn_id)
        if on_ended is not None:
            on_ended()

    # ------------------------------------------------------------ outboxes

    def _outbox_for(
        self, conn_id: object, sink: Consumer | Box | None
    ) -> tuple[Box | None, Box | None]:
        """Return the connection's outbox, if a request's messages go there, or one of its own.

        A sink that is the connection's own subscriber shares its outbox: on a one-channel transport
        responses and notifications leave in one order (row S20). A transport of ours passes that
        outbox itself, which then is the connection's or nobody's: no other thread ever writes.
        """
        if sink is None:
            return None, None
        if isinstance(sink, Box):
            return (None, sink) if sink.own else (sink, None)
        with self.lock:
            conn = self.connections.find(conn_id)
            outbox = conn.outbox if conn is not None else None
        if outbox is not None and outbox.consumer == sink:
            return outbox, None
        return None, Outbox(sink, "raxol-sync-sink")

    def _launch(self, outbox: Box, target: Connection | Call | None) -> bool:
        """Start an outbox's thread; what it serves ends with it. ``False``: it cannot be started.

        The thread holds neither us nor the request, so that a dropped server can be collected.
        """
        if outbox.thread is None:  # its reader comes for what is in it
            return True
        served = None if target is None else weakref.ref(target)
        try:
            outbox.start(partial(_outbox_ended, weakref.ref(self), weakref.ref(outbox), served))
        except RuntimeError:  # no thread is to be had
            _log.exception("! an outbox cannot be started")
            outbox.close()
            with self.lock:
                self._outboxes.discard(outbox)
            return False
        return True

    def outbox_ended(
        self, outbox: Box | None, target: Connection | Call | None, broken: bool
    ) -> None:
        """Do what follows an outbox's end; its thread calls it."""
        if broken and isinstance(target, Call):
            self.cancel(target)
        elif broken and isinstance(target, Connection):
            self.end_connection(target)
        if outbox is not None:
            with self.lock:
                self._outboxes.discard(outbox)


def _outbox_ended(
    owner: weakref.ref[Requests],
    outbox: weakref.ref[Box],
    target: weakref.ref[Any] | None,
    broken: bool,
) -> None:
    requests = owner()
    if requests is not None:
        requests.outbox_ended(outbox(), target() if target is not None else None, broken)


def _too_late() -> bool:
    return False
