"""The life of a client's connection (rows C02, C05-C07, C19). Floor 3.

One thread per session, the *supervisor*, connects, watches the handshake's deadlines, closes a
connection that was lost, and connects anew after a while (row C15). It decides nothing that the
machine decides.
"""

from __future__ import annotations

import _thread
import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable
from typing import Protocol, cast

from raxol_sync._deadline import Deadline, now
from raxol_sync.client import frames
from raxol_sync.client.backoff import Backoff
from raxol_sync.client.effects import Effect, Send, Settle
from raxol_sync.client.exchange import Exchange
from raxol_sync.client.handlers import Handlers
from raxol_sync.client.link import Herald, Link, check_process
from raxol_sync.client.machine import Machine, Opening
from raxol_sync.client.transport import Transport
from raxol_sync.client.verdicts import is_terminal
from raxol_sync.errors import ConnectFailed, InvalidResponse, MCPError, NotReady
from raxol_sync.protocol import wire
from raxol_sync.protocol.negotiation import Agreement, Modern, discovered, judge_discover
from raxol_sync.protocol.wire import Response
from raxol_sync.telemetry import Sink, Telemetry
from raxol_sync.values import Status

_log = logging.getLogger("raxol_sync.client")

STOP_TIME = 10.0  # seconds; by then a process that resists was killed and reaped
KILL_TIME = 5.0  # seconds to kill a process and to join what served it
HANDLER_TIME = 1.0  # seconds; a person who is asked something may take much longer
PROVEN_TIME = 60.0  # seconds of being ready, after which the next delay is the first one again
GRACE = 0.5  # seconds that a wait for the handshake outlasts the handshake's own deadline


class Openings(Protocol):
    """What is known of a server from earlier connections: how to begin with it (row C22)."""

    def opening(self) -> Opening:
        """Return how to begin."""

    def worked(self, opening: str, era: str | None, again: bool) -> None:
        """A session has become ready; ``again``: it was begun anew at once, like this."""

    def failed(self, opening: str, again: bool) -> None:
        """A session ended that was never ready."""


class Session(Exchange):
    """A connection to one server, and what is asked over it. Thread-safe; used once."""

    def __init__(
        self,
        name: str,
        machine: Machine,
        handlers: Handlers,
        connect: Callable[[str], Transport],
        *,
        concurrency: str | None,
        max_bytes: int,
        openings: Openings,
        init_timeout: float | None,
        probe_timeout: float | None,
        reconnect_delay: float = 1.0,
        fail_fast: bool = False,
        telemetry: Sink | None = None,
        where: str = "",
    ) -> None:
        """Nothing is started yet.

        Args:
            connect: returns a fresh transport that is not started, for an opening.
            openings: how to begin.
            reconnect_delay: seconds before the first retry of a failed connect.
            fail_fast: nobody who waits for the session waits for retries.
            telemetry: told when a session is ready and when it has ended.
            where: host and port of the server, if it has them.
        """
        super().__init__(name, machine, handlers, concurrency=concurrency, max_bytes=max_bytes)
        self._connect = connect
        self._openings = openings
        self._init_timeout = init_timeout
        self._probe_timeout = probe_timeout
        self._fail_fast = fail_fast
        self._herald = Herald(name, where)
        self._telemetry = Telemetry(telemetry, f"raxol-sync-{name}-telemetry")
        self._terminal = False  # there will be no session; guarded by _lock
        self._closing = threading.Event()  # ends the wait for a retry
        self._backoff = Backoff(reconnect_delay, self._closing)
        self._supervisor: threading.Thread | None = None
        self._stopper: threading.Thread | None = None
        self._stopped = threading.Event()
        self._stop_by = Deadline(STOP_TIME)

    # ------------------------------------------------------------ for the client

    def describe(self, deadline: Deadline) -> Agreement:
        """Return what the server says of itself; without a handshake it is asked now, once."""
        machine = self._machine
        self.require_ready()
        known = machine.agreement
        if machine.described and known is not None:
            return known
        result = self.request("server/discover", None, deadline)
        verdict = judge_discover(Response(0, result, None))
        if not isinstance(verdict, Modern):
            raise InvalidResponse("server/discover", "it names no version that we both speak")
        with self._lock:
            machine.agreement, machine.described = discovered(verdict), True
            return machine.agreement

    @property
    def streaming(self) -> bool:
        """Whether what the server says unasked reaches this client."""
        return self._machine.streaming

    @property
    def number(self) -> int:
        """Which session this is: how many have become ready so far."""
        return self._machine.sessions

    @property
    def stopping(self) -> bool:
        """Whether it was stopped, which is final."""
        return self._stopping

    @property
    def era(self) -> str | None:
        """``legacy`` or ``modern``, ``None`` before it is known."""
        return self._machine.era

    def tell_server(self, method: str) -> None:
        """Send a notification without params, if there is a session; nobody answers it."""
        note = Send(frames.message(wire.notification(method)))
        with self._lock:
            link = self._link if self._machine.state == "ready" else None
            if link is not None:
                self._put(link, [note])
        if link is not None:
            link.transport.flush(inline=True)

    def require_ready(self) -> None:
        """Raise what a call would raise, if the session is not usable (row C07)."""
        with self._lock:
            ready = self._machine.state == "ready"
        if not ready:
            raise self._not_usable()

    def set_log_level(self, level: str) -> None:
        """Have modern requests ask for log messages of at least this level."""
        with self._lock:
            self._machine.set_log_level(level)

    def start(self) -> None:
        """Connect in the background. Twice is harmless; after ``stop`` it is ``NotReady``."""
        deadline = Deadline(self._init_timeout)
        check_process(self._process)
        with self._lock:
            stopping = self._stopping
            begins = self._supervisor is None and not stopping
            if begins:
                # Daemon: it waits for the session's end, which the interpreter's exit brings.
                self._supervisor = threading.Thread(
                    target=self._supervise,
                    args=(deadline,),
                    name=f"raxol-sync-{self._name}-connect",
                    daemon=True,
                )
                supervisor = self._supervisor
        if stopping:
            raise self._not_usable()
        if begins:
            _live.add(self)
            supervisor.start()

    def await_ready(self, deadline: Deadline, *, grace: float = 0.0) -> Status:
        """Wait until the session is usable (row C06).

        Raises:
            NotReady: the time was up, or the client was stopped or never started.
            ConnectFailed: there is no session and there will be none, or nobody shall wait for it.
        """
        check_process(self._process)
        end = Deadline(None if deadline.seconds is None else deadline.at_most(4e6) + grace)
        hopeless = False
        with self._changed:
            while self._machine.state != "ready":
                failed = self._machine.state == "closed" and self._machine.error is not None
                hopeless = self._terminal or (failed and self._fail_fast)
                if self._stopping or self._supervisor is None or hopeless or end.expired():
                    break
                self._changed.wait(end.left())
            ready = self._machine.state == "ready"
        if ready:
            return self.status()
        if hopeless or self._stopping or self._supervisor is None:
            raise self._not_usable()
        status = self.status()
        reason = f"time is up; the last attempt failed: {status.error}" if status.error else ""
        raise NotReady(status.state, status=status, detail=reason)

    # ------------------------------------------------------------ the supervisor

    def _supervise(self, deadline: Deadline) -> None:
        while True:
            if self._run_session(deadline):
                self._backoff.reset()
            with self._lock:
                ended = self._machine.state == "closed"
                self._terminal = ended and is_terminal(self._machine.error)
                over = self._stopping or self._terminal
                self._changed.notify_all()
            if over:
                return
            if self._machine.sessions or not self._fail_fast:  # else it was raised
                self._herald.failed(self._machine.error)
            if self._telemetry.on:
                attempt, delay = self._backoff.attempts + 1, self._backoff.next_delay()
                self._telemetry.emit(
                    "reconnecting", name=self._name, attempt=attempt, seconds=delay
                )
            if not self._backoff.wait():
                return
            deadline = Deadline(self._init_timeout)

    def _run_session(self, deadline: Deadline) -> bool:
        """Have a session, to its end; return whether it has proved itself."""
        opening, again = self._openings.opening(), False
        while True:
            link = self._link_up(opening)
            since = None
            if link is not None:
                since = self._watch(link, deadline, opening, again)
                stopping = self._stopping
                end = self._stop_by if stopping else Deadline(STOP_TIME)
                link.transport.close(end, lost=not stopping)
            cause = type(self._machine.error).__name__ if self._machine.error else None
            self._telemetry.emit("session_ended", name=self._name, error=cause)
            if since is None and not self._stopping and (link is None or link.restart is None):
                self._openings.failed(opening, again)
            if self._stopping or link is None or link.restart is None:
                return since is not None and (self._machine.proven or now() - since >= PROVEN_TIME)
            if self._machine.state == "closed":
                deadline = Deadline(self._init_timeout)
            opening, again = cast(Opening, link.restart), True

    def _link_up(self, opening: Opening) -> Link | None:
        """Make a connection and begin on it; ``None`` if it cannot be."""
        try:
            link = Link(self._connect(opening))
        except MCPError as error:
            with self._lock:
                if not self._stopping:
                    self._machine.fail(error)
                    self._changed.notify_all()
            return None
        if self._open(link, opening):
            return link
        link.transport.close(Deadline(STOP_TIME), lost=True)
        return None

    def _open(self, link: Link, opening: Opening) -> bool:
        """Start a transport and the handshake on it; return false if it cannot be."""
        with self._lock:
            if self._stopping:
                return False
            self._link = link
            self._machine.state = "initializing"
            self._changed.notify_all()
        try:
            link.transport.start(
                lambda message: self._receive(link, message), lambda error: self._lost(link, error)
            )
        except ConnectFailed as error:
            self._fail(link, error)
            return False
        except (OSError, RuntimeError) as error:  # no more descriptors, or threads
            self._fail(link, ConnectFailed(f"the client could not start: {error}"))
            return False
        self._act(link, lambda: self._machine.begin(opening))
        return True

    def _watch(self, link: Link, deadline: Deadline, opening: str, again: bool) -> float | None:
        """Wait for the handshake, with its deadlines, then for the end of this link.

        Return since when the session was ready, ``None`` if it never was.
        """
        probe = Deadline(self._probe_timeout)
        since: float | None = None
        ready = False
        while (due := self._due(link, deadline, probe, ready)) is not None:
            if due == "ready":
                ready, since = True, since or now()
                self._herald.ready()
                status = self.status()
                self._telemetry.emit(
                    "session_ready",
                    name=self._name,
                    era=status.era,
                    version=status.protocol_version,
                )
                self._openings.worked(opening, self._machine.era, again)
                self._on_ready()
            elif due == "rejected":  # a handshake begins anew, on this link
                ready, deadline = False, Deadline(self._init_timeout)
                self._telemetry.emit("session_rejected", name=self._name)
            elif due == "silence":
                _log.debug("= %s: no answer to server/discover: initialize", self._name)
                self._act(link, self._machine.silence)
            else:
                waited = f"no answer to the handshake within {deadline.seconds:g} s (init_timeout)"
                words = self._herald.located(waited) + link.transport.complaint()
                self._fail(link, ConnectFailed(words))
        if since is None and self._stopping and self._machine.agreement is not None:
            # It was stopped so soon after that this thread has not seen it ready.
            self._openings.worked(opening, self._machine.era, again)
        return since

    def _on_ready(self) -> None:
        """A session has become ready; on the supervisor."""

    def _due(self, link: Link, deadline: Deadline, probe: Deadline, was_ready: bool) -> str | None:
        """Wait until something is to be done; return ``None`` once this link is over."""
        machine = self._machine
        with self._changed:
            while self._alive(link):
                if machine.state == "ready":
                    if not was_ready:
                        return "ready"
                    self._changed.wait()
                elif was_ready:
                    return "rejected"
                elif deadline.expired():
                    return "expired"
                elif machine.probing and probe.expired():
                    return "silence"
                else:
                    left = deadline.at_most(4e6)
                    self._changed.wait(probe.at_most(left) if machine.probing else left)
        return None

    def _alive(self, link: Link) -> bool:
        return link is self._link and not self._stopping and self._machine.state != "closed"

    def _act(self, link: Link, decide: Callable[[], list[Effect]]) -> None:
        """Have the machine decide, if this link still counts, and perform it."""
        with self._lock:
            if not self._alive(link):
                return
            effects = decide()
            self._put(link, effects)
            self._changed.notify_all()
        self._perform(link, effects, inline=True)

    def _fail(self, link: Link, error: ConnectFailed) -> None:
        _log.debug("! %s: %s", self._name, error)
        self._act(link, lambda: self._machine.fail(error))

    # ------------------------------------------------------------ the end

    def stop(self, seconds: float = STOP_TIME) -> None:
        """End the connection, fail what is outstanding, join every thread but this one.

        Idempotent, callable from handlers; a second caller waits for the first.
        """
        deadline = Deadline(seconds)
        if os.getpid() != self._process:
            return  # in a child of os.fork there is nothing of it
        self._closing.set()
        with self._lock:
            first, self._stopping = not self._stopping, True
            effects: list[Effect] = []
            if first:
                self._stop_by = deadline
                self._stopper = threading.current_thread()
                effects = self._machine.close(NotReady("closed", detail="the client was stopped"))
                for effect in effects:
                    if isinstance(effect, Settle):
                        effect.entry.token.store(None, effect.error)
            self._changed.notify_all()
        if not first:
            self._await_stopped(deadline)
            return
        try:
            for effect in effects:
                if isinstance(effect, Settle):
                    effect.entry.token.release()
            self._end(deadline)
        finally:
            _live.discard(self)
            self._stopped.set()

    def _end(self, deadline: Deadline) -> None:
        supervisor = self._supervisor  # it closes the link
        if supervisor is not None and supervisor.ident is not None:
            # The deadline bounds how long it is polite; killing takes it a little longer.
            supervisor.join(deadline.at_most(4e6) + KILL_TIME)
        self._scheduler.close(deadline)
        self._telemetry.close(Deadline(deadline.at_most(HANDLER_TIME)))
        pool_ended = self._pool.close(Deadline(deadline.at_most(HANDLER_TIME)))
        if not self._delivery.close(deadline) or not pool_ended:
            _log.warning("! %s: a handler has not returned; its thread goes on", self._name)

    def _await_stopped(self, deadline: Deadline) -> None:
        # A thread of ours would wait for one that waits for it.
        ours = threading.current_thread().name.startswith(f"raxol-sync-{self._name}-")
        if not ours and threading.current_thread() is not self._stopper:
            self._stopped.wait(deadline.left())


# Sessions to end when the interpreter exits.
_live: weakref.WeakSet[Session] = weakref.WeakSet()

if hasattr(os, "register_at_fork"):
    # A child has none of their threads and must not end its parent's servers.
    os.register_at_fork(after_in_child=_live.clear)

EXIT_TIME = 3.0  # seconds for a session at the interpreter's exit


@atexit.register
def _stop_all() -> None:
    for session in list(_live):
        session.stop(EXIT_TIME)


def stop_when_collected(session: Session) -> None:
    """Begin to end a session whose client was garbage collected.

    A collector may run in any thread, also in one that holds our lock or that of ``threading``: so
    nothing is done here but to start a thread, in the one way that waits for nobody.
    """
    if session._supervisor is not None:  # else it was never started, and there is nothing to end
        _thread.start_new_thread(_begin_stop, (session,))


def _begin_stop(session: Session) -> None:
    # A thread that threading knows: stop() asks for the current one.
    threading.Thread(target=session.stop, name="raxol-sync-collected", daemon=True).start()
