"""Requests and their answers over whatever connection there is. Floor 3.

The session machine decides, this class performs: frames go to the outbox under the lock, outcomes
and notifications are handed over after it was released. ``Session`` adds the connection's life.

Order. Handlers of notifications run one after another on the delivery thread. An outcome goes there
too, behind them, if any of them has not returned yet, so that all progress of a call is reported
before it returns; else it is handed over at once. A call made by a handler does not wait behind
itself. A wait whose time is up takes an outcome that has come (see ``calls``).
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from raxol_sync._deadline import Deadline
from raxol_sync._delivery import DeliveredFuture, Delivery
from raxol_sync._scheduler import Scheduler
from raxol_sync.client.calls import PLAIN, Extras, Progress, Ticket, Waiter
from raxol_sync.client.desk import MAX_HANDLERS
from raxol_sync.client.effects import (
    Deliver,
    Effect,
    Entry,
    Failure,
    Ignored,
    Inquiry,
    Refresh,
    Restart,
    Retract,
    Send,
    Settle,
)
from raxol_sync.client.handlers import Handlers, ThreadPool, progress_of
from raxol_sync.client.link import (
    Link,
    as_connect_failed,
    check_process,
    pay,
    run,
    settle_holding,
)
from raxol_sync.client.machine import Machine
from raxol_sync.client.signals import Signal
from raxol_sync.client.unsendable import encode_params, split_meta
from raxol_sync.errors import (
    INTERNAL_ERROR,
    Busy,
    ConnectFailed,
    MCPError,
    MessageTooLarge,
    NotReady,
    RequestTimeout,
    RPCError,
)
from raxol_sync.protocol.wire import Incoming
from raxol_sync.values import Status

T = TypeVar("T")
Json = dict[str, Any]
_log = logging.getLogger("raxol_sync.client")

MAX_UNDELIVERED = 1024  # notifications whose handler has not returned, before reading pauses
MAX_NESTED = 16 * MAX_UNDELIVERED  # ... before the session fails, while a handler makes a call
_PAUSE = 0.05  # seconds; how often a paused reader looks whether it may go on


class Exchange:
    """Requests, futures, notifications. Thread-safe."""

    def __init__(
        self,
        name: str,
        machine: Machine,
        handlers: Handlers,
        *,
        concurrency: str | None,
        max_bytes: int,
    ) -> None:
        self._name = name
        self._machine = machine
        self._handlers = handlers
        self._concurrency = concurrency
        self._serialized = concurrency == "serialized"
        self._max_bytes = max_bytes
        # Guards: _machine, _link, _stopping. Under it only the outbox's own lock is taken and the
        # outcome of a call noted; no I/O, no user code. The condition tells of a change of state.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._link: Link | None = None
        self._stopping = False
        self._process = os.getpid()
        self._delivery = Delivery(f"raxol-sync-{name}-delivery")
        self._pool = ThreadPool(f"raxol-sync-{name}-handler", MAX_HANDLERS)
        # Deadlines of futures run on the timer itself: they settle, and run no user code.
        self._scheduler = Scheduler(run, f"raxol-sync-{name}-timer")
        self._posted = 0  # notifications handed to the delivery thread; written by the reader
        self._handled = 0  # ... of which the handler has returned; written by the delivery thread
        self._nested = 0  # calls that a handler is waiting for; written by the delivery thread
        self._room = threading.Event()

    # ------------------------------------------------------------ requests

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        deadline: Deadline,
        *,
        progress: Progress | None = None,
        extras: Extras = PLAIN,
    ) -> Json:
        """Make a request and wait for its result.

        Raises:
            InvalidArguments: params cannot be JSON; nothing was sent.
            NotReady, ConnectFailed, Busy, MessageTooLarge: it was not sent.
            RequestTimeout: the deadline passed; the request was cancelled.
            RPCError, InvalidResponse, InputRequired: the server's answer.
            ServerExited: the server went away.
        """
        nested = self._delivery.is_current()
        waiter = Waiter(nested=nested or self._behind_itself(), progress=progress)
        entry = self._entry(method, params, waiter, progress, extras)
        self._nested += nested
        try:
            self._admit(entry, nested)
            if not waiter.wait(deadline.left()):
                self._abandon(entry, "timed out")
                if not waiter.settled:
                    raise RequestTimeout(method, deadline.seconds)
        finally:
            self._nested -= nested
            if not waiter.settled:  # an interrupt above all
                self._abandon(entry, "interrupted")
            if entry.holding is not None:
                settle_holding(entry.holding, entry, waiter.error)
        return waiter.outcome()

    def submit(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        deadline: Deadline,
        convert: Callable[[Json], T],
        *,
        progress: Progress | None = None,
        extras: Extras = PLAIN,
    ) -> DeliveredFuture[T]:
        """Make a request and return a future of ``convert(its result)``; raises as ``request``."""
        future: DeliveredFuture[T] = DeliveredFuture(self._delivery.post)
        nested = self._delivery.is_current()
        direct = nested or self._behind_itself()
        ticket = Ticket(future, convert, nested=direct, progress=progress)
        entry = self._entry(method, params, ticket, progress, extras)
        if entry.holding is not None:  # not as a done callback: who waits is woken before those
            ticket.pays = partial(pay, entry.holding, entry)
        future.bind_cancel(partial(self._cancel, entry, ticket))
        if deadline.at is not None:
            expire = partial(self._expire, entry, ticket, deadline.seconds)
            ticket.alarm = (self._scheduler, self._scheduler.at(deadline.at, expire))
        admitted = False
        try:
            self._admit(entry, nested)
            admitted = True
        finally:
            if not admitted:
                self._abandon(entry, "interrupted")
                ticket.cancel()
        return future

    def _entry(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        token: Waiter | Ticket[Any],
        progress: Progress | None,
        extras: Extras,
    ) -> Entry:
        params, meta = split_meta(params)
        encoded = encode_params(params)
        if len(encoded) + len(meta or b"") > self._max_bytes:
            raise MessageTooLarge(self._max_bytes, f"the params of {method}")
        wanted = progress is not None or (
            self._handlers.progress is not None and method == "tools/call"
        )
        entry = Entry(method, encoded, token, progress=wanted)
        entry.headers, entry.refresh, entry.meta = extras.headers, extras.refresh, meta
        entry.holding = extras.pay() if extras.pay is not None else None
        return entry

    def _admit(self, entry: Entry, nested: bool) -> None:
        """Send a request, or queue it."""
        helping = self._pool.is_current()
        check_process(self._process)
        with self._lock:
            if not self._machine.accepts or self._link is None:
                link = None
            else:
                link = self._link
                # A handler would wait for the call that waits for it.
                itself = (nested and self._serialized) or (helping and self._machine.crowded)
                effects = self._machine.submit(entry, patient=not itself)
                self._put(link, effects)
        if link is None:
            raise self._not_usable()
        link.transport.flush(inline=True)
        if isinstance(effects[-1] if effects else None, Settle):  # the outbox had no room
            self._perform(link, effects, inline=True)

    def _behind_itself(self) -> bool:
        """Whether an outcome would wait on the delivery thread for a call that waits for it."""
        # So it is where a handler of a notification made a call whose input this thread gives.
        return self._nested > 0 and self._pool.is_current()

    def _abandon(self, entry: Entry, reason: str) -> bool:
        """Give a request up; return whether it was still open."""
        with self._lock:
            link = self._link
            effects = self._machine.abandon(entry, reason)
            if effects and link is not None:
                self._put(link, effects)
        if effects and link is not None:
            self._perform(link, effects, inline=True)
        return effects is not None

    def _cancel(self, entry: Entry, ticket: Ticket[Any]) -> bool:
        if not self._abandon(entry, "cancelled"):
            return False
        ticket.cancel()
        return True

    def _expire(self, entry: Entry, ticket: Ticket[Any], seconds: float | None) -> None:
        """A future's time is up. Runs on the timer."""
        if self._abandon(entry, "timed out"):
            ticket.store(None, RequestTimeout(entry.method, seconds))
        ticket.release()

    def _not_usable(self) -> NotReady | ConnectFailed:
        """Return the exception for a request that finds no usable session (row C07)."""
        machine = self._machine
        if machine.state != "ready" and machine.error is not None and not self._stopping:
            return as_connect_failed(machine.error)
        detail = {
            "starting": "use it as in 'with client:', or call start() and then await_ready()",
            "closed": "the client was stopped, which is final; make another one",
        }
        status = self.status()
        return NotReady(status.state, status=status, detail=detail.get(status.state, ""))

    def status(self) -> Status:
        """Return where the session stands."""
        with self._lock:
            machine = self._machine
            return Status(
                self._name,
                machine.state,
                protocol_version=machine.agreement.version if machine.agreement else None,
                era=machine.era,
                concurrency=self._concurrency or ("pooled" if machine.pooled else "stateless"),
                pending=machine.pending,
                queued=machine.queued,
                error=str(machine.error) if machine.error is not None else None,
            )

    # ------------------------------------------------------------ performing

    def _put(self, link: Link, effects: list[Effect]) -> None:
        """Under the lock: queue frames, note outcomes. May add effects to the list."""
        transport = link.transport
        for effect in tuple(effects):
            if isinstance(effect, Settle):
                effect.entry.token.store(effect.result, effect.error)
            elif isinstance(effect, Send):
                if transport.put(effect.frame):
                    continue
                if effect.entry is not None:
                    dropped = self._machine.drop(effect.entry, Busy("outbox", self._max_bytes))
                    self._put(link, dropped)
                    effects += dropped
                else:
                    effects += self._overflow()
            elif isinstance(effect, Retract) and not (
                transport.retract(effect.frame) or transport.put(effect.cancelled)
            ):
                effects += self._overflow()

    def _overflow(self) -> list[Effect]:
        failed = self._machine.fail(ConnectFailed("the server does not read what it is sent"))
        for effect in failed:
            if isinstance(effect, Settle):
                effect.entry.token.store(effect.result, effect.error)
        self._changed.notify_all()
        return failed

    def _perform(
        self, link: Link, effects: list[Effect], *, inline: bool, ordered: bool = False
    ) -> None:
        """Without the lock: hand over outcomes and notifications, have frames written.

        ``ordered``: outcomes wait for the handlers of what came before them.
        """
        writes = False
        for effect in effects:
            if isinstance(effect, Settle):
                self._hand_over(effect, ordered)
            elif isinstance(effect, Deliver):
                self._deliver(effect)
            elif isinstance(effect, Refresh):
                self._pool.post(partial(self._refresh, effect.entry))
            elif isinstance(effect, Ignored):
                _log.debug("< %s: ignored %s", self._name, effect.reason)
            elif isinstance(effect, Inquiry):
                self._ask(link, effect)
            else:
                writes = True
        if writes:
            link.transport.flush(inline=inline)

    def _refresh(self, entry: Entry) -> None:
        """Make a request's headers anew and submit it again (row C30)."""
        refresh, entry.refresh = entry.refresh, None
        try:
            entry.headers = refresh() if refresh is not None else None
            self._admit(entry, False)
        except MCPError as error:
            with self._lock:
                wanted = self._machine.abandon(entry, "no headers") is not None
                if wanted:
                    entry.token.store(None, error)
            if wanted:
                entry.token.release()

    def _hand_over(self, settle: Settle, ordered: bool) -> None:
        token: Any = settle.entry.token
        if isinstance(settle.error, RPCError) and self._handlers.refused is not None:
            self._handlers.refused(settle.entry.method, settle.error.code)
        if ordered and self._posted != self._handled and not token.nested:
            self._delivery.post(token.release)
        else:
            token.release()

    # ------------------------------------------------------------ what the server sends

    def _receive(self, link: Link, message: Incoming | Signal) -> None:
        """Take a message; called by the transport, in order, one at a time."""
        with self._lock:
            if link is not self._link:
                return
            before = self._machine.state
            effects = self._machine.receive(message)
            self._put(link, effects)
            self._restart(link, effects)
            if self._machine.state != before:
                self._changed.notify_all()
        self._perform(link, effects, inline=False, ordered=True)
        if self._posted - self._handled > MAX_UNDELIVERED:
            self._pause(link)

    def _lost(self, link: Link, error: BaseException) -> None:
        """The connection has ended; called by the transport after the last message."""
        with self._lock:
            if link is not self._link:
                return
            effects = self._machine.lost(error)
            self._put(link, effects)
            self._restart(link, effects)
            self._link = None
            self._changed.notify_all()
        self._perform(link, [e for e in effects if isinstance(e, Settle)], inline=False)

    def _restart(self, link: Link, effects: list[Effect]) -> None:
        """Under the lock: if the machine wants another connection, this one is over."""
        if effects and isinstance(effects[-1], Restart):
            link.restart = effects[-1].opening
            self._link = None
            self._changed.notify_all()

    def _deliver(self, note: Deliver) -> None:
        """Queue a notification's handlers, in order."""
        handlers, params = self._handlers, note.params
        if handlers.changed is not None:
            handlers.changed(note.method)
        if note.method == "notifications/progress" and note.entry is not None:
            own: Any = note.entry.token
            done, total, message = progress_of(params)
            for handler in (own.progress, handlers.progress):
                if handler is not None and done is not None:
                    self._post(partial(handler, done, total, message))
        elif note.method == "notifications/message" and handlers.log is not None:
            level, logger = params.get("level"), params.get("logger")
            level = level if isinstance(level, str) else "info"
            logger = logger if isinstance(logger, str) else None
            self._post(partial(handlers.log, level, params.get("data"), logger))
        if handlers.notification is not None:
            self._post(partial(handlers.notification, note.method, dict(params)))

    def _ask(self, link: Link, inquiry: Inquiry) -> None:
        """Have the handlers answer, on a thread of theirs."""
        if not self._pool.post(partial(self._answer, link, inquiry)):
            method = next(iter(inquiry.wanted.values())).method
            self._answered(
                link, inquiry, Failure(method, INTERNAL_ERROR, "no thread can be started")
            )

    def _answer(self, link: Link, inquiry: Inquiry) -> None:
        responder = self._handlers.responder
        assert responder is not None  # else the machine lets nothing through
        self._answered(link, inquiry, responder.answer(inquiry))

    def _answered(self, link: Link, inquiry: Inquiry, outcome: bytes | Failure) -> None:
        """Send what the handlers made of an inquiry, if anybody still wants it."""
        with self._lock:
            effects = self._machine.answered(inquiry, outcome)
            self._put(link, effects)
        self._perform(link, effects, inline=True, ordered=True)

    def _post(self, handler: Callable[[], object]) -> None:
        self._posted += 1
        self._delivery.post(partial(self._handle, handler))

    def _handle(self, handler: Callable[[], object]) -> None:
        try:
            handler()
        finally:
            self._handled += 1
            self._room.set()

    def _pause(self, link: Link) -> None:
        """Stop reading until handlers have caught up: nothing is dropped, and memory is bounded.

        Not while a handler makes a call, whose answer must be read.
        """
        while self._posted - self._handled > MAX_UNDELIVERED and link is self._link:
            if self._stopping:
                return
            if self._nested:
                if self._posted - self._handled > MAX_NESTED:
                    self._lost(link, ConnectFailed("handlers are too slow for the server"))
                return
            self._room.clear()
            self._room.wait(_PAUSE)
