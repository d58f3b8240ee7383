"""The server's moving parts: requests in flight with the threads that serve them. Floor 3.

Threads: the pool's workers run callbacks; one outbox thread for each connection with a subscriber
(and for each request with a sink of its own) calls that; the delivery thread runs futures' done
callbacks; the reaper thread acts on time-outs that the timer hands over. Only workers run tools.
"""

from __future__ import annotations

import concurrent.futures
import logging
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from raxol_sync._deadline import Deadline, now
from raxol_sync._delivery import Delivery
from raxol_sync._scheduler import Scheduler
from raxol_sync.errors import BUSY, CALLBACK_TIMEOUT, INTERNAL_ERROR, Cancelled, RPCError
from raxol_sync.server.connections import Call, Connection
from raxol_sync.server.inflight import Requests, error_response, server_closed
from raxol_sync.server.outbox import weight
from raxol_sync.server.workers import Alarms, Slots, WorkerPool
from raxol_sync.values import ServerStats

Json = dict[str, Any]
Finish = Callable[[Call, Json], Json]
_log = logging.getLogger("raxol_sync.server")


class Engine(Requests):
    """Requests in flight, and the threads that serve them. Thread-safe."""

    def __init__(
        self,
        *,
        max_in_flight: int,
        share: int,
        callback_timeout: float | None,
        max_remembered: int,
    ) -> None:
        self._callback_timeout = callback_timeout
        self._reaper = Delivery("raxol-sync-reaper")
        alarms = Alarms()
        super().__init__(
            Scheduler(self._reaper.post, "raxol-sync-timer", timer=alarms), max_remembered
        )
        weakref.finalize(self, alarms.retire).atexit = False
        self._pool = WorkerPool(max_in_flight, "raxol-sync-worker")
        # Guarded by the lock, with what Requests lists.
        self._slots = Slots(max_in_flight, share)
        self._closers: set[threading.Thread] = set()  # threads that are in ``close`` just now
        self._closed_by_delivery = False

    # ------------------------------------------------------------ workers

    def run(self, call: Call, job: Callable[[], Json], finish: Finish) -> None:
        """Run ``job()`` on a worker and answer the call with ``finish(call, its result)``.

        Raises:
            RPCError: no slot is free; scope and limit are in its data (row S16).
        """
        with self.lock:
            if call.settled:
                return
            if self._closed:
                raise server_closed()
            conn_id = call.conn.conn_id
            bound = self._slots.take(conn_id)
            if bound is None:
                self._working.add(call)
        if bound is not None:
            scope, limit = bound
            data = {"error": "busy", "scope": scope, "limit": limit}
            raise RPCError(BUSY, f"busy: this {scope} runs {limit} callbacks at once", data)
        if self._callback_timeout is not None:
            self._arm(call, now() + self._callback_timeout)
        try:
            self._pool.run(partial(self._work, call, job, finish, conn_id))
        except RuntimeError as error:  # closed meanwhile, or no thread is to be had
            problem = RPCError(INTERNAL_ERROR, f"the callback cannot be started: {error}")
            self._give_back(call, conn_id, error_response(call, problem))

    def _arm(self, call: Call, due: float) -> None:
        call.timer = self._scheduler.at(due, partial(self._expire, call))
        if call.settled:  # by one who could not see the timer yet
            self._scheduler.cancel(call.timer)

    def _work(self, call: Call, job: Callable[[], Json], finish: Finish, conn_id: object) -> None:
        """Run one job on a worker's thread; every way out gives the slot back."""
        call.thread = threading.current_thread()
        response: Json | None = None
        try:
            if not call.settled:
                response = self._outcome(call, job, finish)
        except BaseException:
            # Not the callback's fault, which _outcome answers: a log handler raised, for one.
            response = error_response(call, RPCError(INTERNAL_ERROR, "the callback failed"))
            raise
        finally:
            self._give_back(call, conn_id, response)

    def _outcome(self, call: Call, job: Callable[[], Json], finish: Finish) -> Json:
        try:
            return finish(call, job())
        except RPCError as error:
            return error_response(call, error)
        except BaseException as error:  # a callback may raise anything, SystemExit included
            return error_response(call, self.failed(call, error))

    def failed(self, call: Call, error: BaseException) -> RPCError:
        """Log what went wrong with a request, and return what its caller is told (row S46)."""
        if not (isinstance(error, Cancelled) and call.cancelled):
            _log.error("! %s failed", call.method, exc_info=error)
        return RPCError(INTERNAL_ERROR, f"the callback failed: {type(error).__name__}")

    def _give_back(self, call: Call, conn_id: object, response: Json | None) -> None:
        size = weight(response) if call.outbox is not None else 0
        with self.lock:
            self._working.discard(call)
            self._slots.give_back(conn_id)
            won, full = self._settle(call, response, size)
        if won:
            self._after(call, response, full)

    def _expire(self, call: Call) -> None:
        """Answer a call whose callback took too long (row S17). Runs on the reaper."""
        data = {"error": "callback_timeout", "timeout": self._callback_timeout}
        message = f"the callback took longer than {self._callback_timeout:g} s"
        self.settle(call, error_response(call, RPCError(CALLBACK_TIMEOUT, message, data)))

    # ------------------------------------------------------------ whole server

    def stats(self) -> ServerStats:
        """Return what is going on right now, all counts of one moment."""
        with self.lock:
            conns = self.connections.all()
            return ServerStats(
                in_flight=self._slots.in_flight,
                abandoned=sum(call.settled for call in self._working),
                connections=sum(conn.outbox is not None for conn in conns),
                subscriptions=sum(len(conn.uris) for conn in conns),
                listens=sum(len(conn.listens) for conn in conns),
                capabilities=self.connections.remembered,
                in_flight_by_connection=dict(self._slots.by_connection),
            )

    def outstanding(self) -> list[Call]:
        """Return the requests that are not settled yet."""
        with self.lock:
            return [call for conn in self.connections.all() for call in conn.calls.values()]

    def wait_idle(self, deadline: Deadline) -> None:
        """Wait until the requests that are outstanding now are settled; open listens never are."""
        for call in self.outstanding():
            if call.method != "subscriptions/listen":
                try:
                    call.future.result(deadline.left())
                except concurrent.futures.TimeoutError:
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
        self._delivery.close(Deadline(0) if spare_delivery else deadline)
        with self.lock:
            outboxes = [box for box in self._outboxes if box.thread not in spared]
        for outbox in outboxes:
            outbox.join(deadline)

    def _connections(self) -> list[Connection]:
        with self.lock:
            return self.connections.all()
