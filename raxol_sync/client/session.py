"""The life of a client's connection (rows C02, C05-C07, C19). Floor 3.

One thread per session, the *supervisor*, connects, watches the handshake's deadlines, and closes a
connection that was lost. It decides nothing that the machine decides. Later it will reconnect.
"""

from __future__ import annotations

import _thread
import atexit
import logging
import threading
import weakref
from collections.abc import Callable

from raxol_sync._deadline import Deadline
from raxol_sync.client.effects import Effect, Settle
from raxol_sync.client.exchange import Exchange, Link
from raxol_sync.client.handlers import Handlers
from raxol_sync.client.machine import Machine, Opening
from raxol_sync.client.transport import Transport
from raxol_sync.errors import ConnectFailed, InvalidResponse, NotReady
from raxol_sync.protocol.negotiation import Agreement, Modern, discovered, judge_discover
from raxol_sync.protocol.wire import Response
from raxol_sync.values import Status

_log = logging.getLogger("raxol_sync.client")

STOP_TIME = 10.0  # seconds; by then a process that resists was killed and reaped
KILL_TIME = 5.0  # seconds to kill a process and to join what served it
HANDLER_TIME = 1.0  # seconds; a person who is asked something may take much longer
GRACE = 0.5  # seconds that a wait for the handshake outlasts the handshake's own deadline


class Session(Exchange):
    """A connection to one server, and what is asked over it. Thread-safe; used once."""

    def __init__(
        self,
        name: str,
        machine: Machine,
        handlers: Handlers,
        connect: Callable[[], Transport],
        *,
        concurrency: str,
        max_bytes: int,
        opening: Callable[[], Opening],
        init_timeout: float | None,
        probe_timeout: float | None,
        restarted: Callable[[bool], object] = lambda worked: None,
    ) -> None:
        """Nothing is started yet.

        Args:
            connect: returns a fresh transport that is not started.
            opening: how to begin: with a probe, with ``initialize``, or at once.
            restarted: told whether beginning with ``initialize`` worked.
        """
        super().__init__(name, machine, handlers, concurrency=concurrency, max_bytes=max_bytes)
        self._connect = connect
        self._opening = opening
        self._restarted = restarted
        self._init_timeout = init_timeout
        self._probe_timeout = probe_timeout
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
    def era(self) -> str | None:
        """``legacy`` or ``modern``, ``None`` before it is known."""
        return self._machine.era

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
            ConnectFailed: there is no session and there will be none.
        """
        end = Deadline(None if deadline.seconds is None else deadline.at_most(4e6) + grace)
        with self._changed:
            while self._machine.state in ("starting", "initializing"):
                if self._stopping or self._supervisor is None or end.expired():
                    break
                self._changed.wait(end.left())
            ready = self._machine.state == "ready"
        if not ready:
            raise self._not_usable()
        return self.status()

    # ------------------------------------------------------------ the supervisor

    def _supervise(self, deadline: Deadline) -> None:
        opening = self._opening()
        again = False
        while True:
            link = Link(self._connect())
            worked = False
            if self._open(link, opening):
                worked = self._watch(link, deadline, first_ready=again)
            stopping = self._stopping
            link.transport.close(
                self._stop_by if stopping else Deadline(STOP_TIME), lost=not stopping
            )
            if stopping or not link.restart:
                break
            opening, again = "initialize", True
        if opening == "initialize" and not worked:
            self._restarted(False)

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

    def _watch(self, link: Link, deadline: Deadline, *, first_ready: bool) -> bool:
        """Wait for the handshake, with its deadlines, then for the end of this link.

        Return whether the session was ready. ``first_ready``: tell ``restarted`` when it is.
        """
        probe = Deadline(self._probe_timeout)
        ready = False
        while (due := self._due(link, deadline, probe, ready)) is not None:
            if due == "ready":
                ready = True
                if first_ready:
                    self._restarted(True)
            elif due == "silence":
                _log.debug("= %s: no answer to server/discover: initialize", self._name)
                self._act(link, self._machine.silence)
            else:
                waited = f"no answer to the handshake within {deadline.seconds:g} s (init_timeout)"
                self._fail(link, ConnectFailed(waited))
        return ready

    def _due(self, link: Link, deadline: Deadline, probe: Deadline, was_ready: bool) -> str | None:
        """Wait until something is to be done; return ``None`` once this link is over."""
        machine = self._machine
        with self._changed:
            while self._alive(link):
                if machine.state == "ready":
                    if not was_ready:
                        return "ready"
                    self._changed.wait()
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
