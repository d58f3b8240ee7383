"""The server's moving parts: requests in flight with the threads that serve them. Floor 3.

Threads: the pool's workers run callbacks; one outbox thread for each connection with a subscriber
(and for each request with a sink of its own) calls that; the delivery thread runs futures' done
callbacks; the reaper thread acts on time-outs that the timer hands over. Only workers run tools.
"""

from __future__ import annotations

import enum
import logging
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from raxol_sync._deadline import Deadline, now
from raxol_sync._delivery import Delivery
from raxol_sync._scheduler import Entry, Scheduler
from raxol_sync.errors import BUSY, CALLBACK_TIMEOUT, INTERNAL_ERROR, Cancelled, RPCError
from raxol_sync.server.connections import UNSHARED, Call, Connection
from raxol_sync.server.events import tell_unparked
from raxol_sync.server.inflight import error_response
from raxol_sync.server.notices import Notices
from raxol_sync.server.outbox import weight, weight_for
from raxol_sync.server.parking import SERVER_FULL, Parking, Place
from raxol_sync.server.workers import Alarms, Slots, WorkerPool
from raxol_sync.telemetry import Telemetry
from raxol_sync.values import ServerStats

Json = dict[str, Any]
Finish = Callable[[Call, Json], Json]
Job = Callable[[], "Json | Left"]
_log = logging.getLogger("raxol_sync.server")


CLOSED = "the server is closed, and stays so: make another one"


class Left(enum.Enum):
    """What a job returns whose call stays outstanding without a worker."""

    OPEN = "open"  # a listen
    PARKED = "parked"


class Engine(Notices):
    """Requests in flight, and the threads that serve them. Thread-safe."""

    def __init__(
        self,
        *,
        max_in_flight: int,
        share: int,
        callback_timeout: float | None,
        max_remembered: int,
        parking: Parking[Call],
        telemetry: Telemetry,
    ) -> None:
        self.max_in_flight = max_in_flight
        self._callback_timeout = callback_timeout
        self._reaper = Delivery("raxol-sync-reaper")
        alarms = Alarms()
        scheduler = Scheduler(self._reaper.post, "raxol-sync-timer", timer=alarms)
        super().__init__(scheduler, max_remembered, parking, telemetry)
        weakref.finalize(self, alarms.retire).atexit = False
        self._pool = WorkerPool(max_in_flight, "raxol-sync-worker")
        # Guarded by the lock, with what Requests lists.
        self._slots = Slots(max_in_flight, share, UNSHARED)
        self._closers: set[threading.Thread] = set()  # threads that are in ``close`` just now
        self._closed_by_delivery = False

    # ------------------------------------------------------------ workers

    def run(self, call: Call, job: Job, finish: Finish) -> None:
        """Run ``job()`` on a worker and answer the call with ``finish(call, its result)``.

        Raises:
            RPCError: no slot is free; scope and limit are in its data (row S16).
        """
        with self.lock:
            if call.settled:
                return
            if self._closed:
                raise self.refused()
            share = call.conn.share
            bound = self._slots.take(share)
            abandoned = 0
            if bound is None:
                self._working.add(call)
            else:
                abandoned = sum(other.settled for other in self._working)
        if bound is not None:
            scope, limit = bound
            self._telemetry.emit("busy", method=call.method, scope=scope, limit=limit)
            data = {"error": "busy", "scope": scope, "limit": limit}
            message = f"busy: this {scope} runs {limit} callbacks at once"
            if abandoned:  # else nobody would look for the cause in calls that ended long ago
                message += (
                    f"; {abandoned} of this server's were given up and have not returned "
                    "(Context.check_cancelled lets them, isolation='process' makes them)"
                )
            raise RPCError(BUSY, message, data)
        call.runs += 1
        try:
            if self._callback_timeout is not None:
                self._arm(call, self._callback_timeout, partial(self._expire, call, call.runs))
            self._pool.run(partial(self._work, call, job, finish, share))
        except RuntimeError as error:  # closed meanwhile, or no thread is to be had
            problem = RPCError(INTERNAL_ERROR, f"the callback cannot be started: {error}")
            self._give_back(call, share, error_response(call, problem))

    def _arm(self, call: Call, seconds: float, action: Callable[[], object]) -> None:
        call.timer = timer = self._scheduler.at(now() + seconds, action)
        if call.settled:  # by one who could not see the timer yet
            self._disarm(timer)

    def _work(self, call: Call, job: Job, finish: Finish, share: object) -> None:
        """Run one job on a worker's thread; every way out gives the slot back."""
        call.thread = threading.current_thread()
        response: Json | Left | None = None
        try:
            if not call.settled:
                response = self._outcome(call, job, finish)
        except BaseException:
            # Not the callback's fault, which _outcome answers: a log handler raised, for one.
            response = error_response(call, RPCError(INTERNAL_ERROR, "the callback failed"))
            raise
        finally:
            self._give_back(call, share, response)

    def _outcome(self, call: Call, job: Job, finish: Finish) -> Json | Left:
        try:
            value = job()
            return value if isinstance(value, Left) else finish(call, value)
        except RPCError as error:
            return error_response(call, error)
        except BaseException as error:  # a callback may raise anything, SystemExit included
            return error_response(call, self.failed(call, error))

    def failed(self, call: Call, error: BaseException) -> RPCError:
        """Log what went wrong with a request, and return what its caller is told (row S46)."""
        if not (isinstance(error, Cancelled) and call.cancelled):
            _log.error("! %s failed", call.method, exc_info=error)
        return RPCError(INTERNAL_ERROR, f"the callback failed: {type(error).__name__}")

    def _give_back(self, call: Call, share: object, response: Json | Left | None) -> None:
        if response is Left.PARKED:
            return  # its slot went back when it was parked
        size = weight_for(call.outbox, response)
        with self.lock:
            self._working.discard(call)
            self._slots.give_back(share)
            if isinstance(response, Left):
                return  # it stays outstanding, without a worker
            won, full = self._settle(call, response, size)
        if won:
            self._after(call, response, full)

    def _expire(self, call: Call, run: int) -> None:
        """Answer a call whose callback took too long (row S17). Runs on the reaper.

        ``run``: which one of its callbacks. An approval may have started the next one meanwhile.
        """
        data = {"error": "callback_timeout", "timeout": self._callback_timeout}
        message = f"the callback took longer than {self._callback_timeout:g} s"
        usual = error_response(call, RPCError(CALLBACK_TIMEOUT, message, data))
        with self.lock:
            if call not in self._working or call.runs != run:
                return  # it is parked, or was answered, or approved: this is not its deadline
            response = call.expiry or usual
            won, full = self._settle(call, response, 1024, "timed_out")
        if won:
            self._after(call, response, full)

    def authorizing(self, call: Call, expiry: Json) -> None:
        """An authorizer is about to be asked: until it has answered, a time-out says ``expiry``."""
        call.expiry = expiry

    def authorized(self, call: Call) -> None:
        """The authorizer has answered; a late answer starts nothing (row S14).

        Raises:
            Cancelled: the request was settled meanwhile.
        """
        with self.lock:
            call.expiry = None
            if call.settled:
                raise Cancelled(f"{call.method} was cancelled")

    # ------------------------------------------------------------ parking

    def park(
        self,
        place: Place[Call],
        question: Json,
        seconds: float | None,
        close: Callable[[Call, str], Json],
    ) -> str | None:
        """Park a call and ask its question; return why it cannot be, or ``None``.

        Its slot is free at once: the authorizer has returned. ``close(call, detail)`` is the
        response to a call that is closed unapproved.

        Raises:
            Cancelled: the call was settled meanwhile.
        """
        call = place.call
        conn, size = call.conn, weight(question)
        with self.lock:
            if call.settled:
                raise Cancelled(f"{call.method} was cancelled")
            outbox = call.outbox or conn.outbox
            if outbox is None:
                return "there is nobody to ask"
            outcome = self.parking.park(place)
            if outcome.refused is not None:
                return outcome.refused
            call.place, call.thread = place, None
            # From here on the call may be answered, approved and run by others.
            timer, call.timer = call.timer, None
            self._working.discard(call)
            self._slots.give_back(conn.share)
            victim = outcome.victim
            if victim is not None:
                victim.call.place = None  # whoever drops it now finds it parked no longer
            if call.lets_go:
                call.outbox = outbox
            # Here, or an answer could be told before its question.
            self._telemetry.emit("parked", tool=call.params.get("name"), conn_id=conn.conn_id)
            full = not outbox.put(question, size)
        self._disarm(timer)
        if call.lets_go and call.future is not None:
            call.future.settle(None)
        if seconds is not None:
            self._limit(place, seconds, close)
        try:
            if victim is not None:
                self._disarm(victim.timer)
                self.close_unapproved(victim.call, SERVER_FULL, close(victim.call, SERVER_FULL))
            if full:
                self.overflowed(call)
        except Exception:  # a transport's: the call is parked all the same, without a slot
            _log.exception("! what had to make room could not be closed")
        return None

    def _limit(
        self, place: Place[Call], seconds: float, close: Callable[[Call, str], Json]
    ) -> None:
        """Give a parked call its deadline; where no timer is to be had it ends now."""
        expire = partial(self._close_place, place, "no answer in time", close)
        try:
            place.timer = self._scheduler.at(now() + seconds, expire)
        except RuntimeError:  # the system starts no more threads: a call must not wait for ever
            _log.exception("! a parked call has no deadline: closed")
            expire()
        if place.call.place is not place or place.call.settled:
            # Taken out by one who could not see the timer yet.
            self._disarm(place.timer)

    def _disarm(self, timer: Entry | None) -> None:
        if timer is not None:
            self._scheduler.cancel(timer)

    def unpark(self, question_id: str, conn_id: object) -> Call | None:
        """Take the call out that waits for this answer, if it is this connection's (row S36)."""
        with self.lock:
            conn = self.connections.find(conn_id)
            place = self.parking.take(question_id, conn) if conn is not None else None
            if place is None:
                return None
            place.call.place = None
        self._disarm(place.timer)
        return place.call

    def approved(self, call: Call) -> None:
        """Note that a call which ``unpark`` took out may run now."""
        tell_unparked(self._telemetry, call, "approved")

    def refuse(self, call: Call, error: RPCError) -> None:
        """Answer an approved call that cannot run; when the server closes with nothing (S51)."""
        self.settle(call, None if self._closed else error_response(call, error))

    def close_unapproved(self, call: Call, detail: str, response: Json) -> None:
        """Answer a call that ``unpark`` took out and that was not approved."""
        tell_unparked(self._telemetry, call, detail)
        self.settle(call, response)

    def _close_place(
        self, place: Place[Call], detail: str, close: Callable[[Call, str], Json]
    ) -> None:
        with self.lock:
            if place.call.place is not place or not self.parking.remove(place):
                return
            place.call.place = None
        self.close_unapproved(place.call, detail, close(place.call, detail))

    # ------------------------------------------------------------ whole server

    @property
    def closed(self) -> bool:
        """Whether the server is closed, or closing."""
        return self._closed

    def later(self, seconds: float, action: Callable[[], object]) -> None:
        """Have ``action()`` run on the reaper in so many seconds, unless the server closes first.

        Raises:
            RuntimeError: no thread is to be had.
        """
        self._scheduler.at(now() + seconds, action)

    def stats(self) -> ServerStats:
        """Return what is going on right now, all counts of one moment."""
        with self.lock:
            conns = self.connections.all()
            return ServerStats(
                in_flight=self._slots.in_flight,
                abandoned=sum(call.settled for call in self._working),
                parked=len(self.parking),
                connections=sum(conn.outbox is not None for conn in conns),
                subscriptions=sum(len(conn.uris) for conn in conns),
                listens=sum(len(conn.listens) for conn in conns),
                capabilities=self.connections.remembered,
                in_flight_by_connection=dict(self._slots.by_connection),
                parked_by_connection={
                    conn.conn_id: count
                    for conn, count in self.parking.counts().items()
                    if isinstance(conn, Connection)
                },
            )

    def outstanding(self) -> list[Call]:
        """Return the requests that are not settled yet."""
        with self.lock:
            return [call for conn in self.connections.all() for call in conn.calls.values()]

    def wait_idle(self, deadline: Deadline) -> None:
        """Wait until the requests that are outstanding now are settled; open listens never are."""
        for call in self.outstanding():
            if call.method == "subscriptions/listen":
                continue
            settled = threading.Event()
            self.hook(call, lambda ending, told=settled: told.set())  # type: ignore[misc]
            if not settled.wait(deadline.left()):
                return

    def close(self, deadline: Deadline, last_words: Callable[[Call], Json | None]) -> None:
        """Settle everything, end every connection and join every thread of ours (row S51).

        ``last_words(call)`` gives what an outstanding call is still answered with, or ``None``.
        Not waited for: the caller's own thread, workers that were abandoned before, and threads
        that are closing this server themselves, for those wait for us.
        """
        me = threading.current_thread()
        with self.lock:
            self._closed = True
            spared = {call.thread for call in self._working if call.settled} | self._closers
            self._closers.add(me)
            self._closed_by_delivery = self._closed_by_delivery or self._delivery.is_current()
            spare_delivery = self._closed_by_delivery
        try:
            for call in self.outstanding():
                self.settle(call, last_words(call))
            for conn in self._connections():
                self.end_connection(conn)
            self._join(deadline, spared, spare_delivery)
        finally:
            with self.lock:
                self._closers.discard(me)

    def _join(
        self, deadline: Deadline, spared: set[threading.Thread | None], spare_delivery: bool
    ) -> None:
        self._pool.shutdown(wait=False)
        self._scheduler.close(deadline)
        self._pool.shutdown(deadline=deadline, skip=spared)
        self._reaper.close(deadline)
        self._telemetry.close(deadline)
        self._delivery.close(Deadline(0) if spare_delivery else deadline)
        with self.lock:
            outboxes = [box for box in self._outboxes if box.thread not in spared]
        for outbox in outboxes:
            outbox.join(deadline)

    def _connections(self) -> list[Connection]:
        with self.lock:
            return self.connections.all()
