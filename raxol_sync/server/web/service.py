"""The server: its listening sockets, its poller, its beginning and its end. Floor 2."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from raxol_sync._deadline import Deadline, now
from raxol_sync.server.web.connection import (
    ASK,
    FLUSH,
    PARKED,
    QUEUED,
    Connection,
)
from raxol_sync.server.web.crew import Crew
from raxol_sync.server.web.exchange import WSGIApp
from raxol_sync.server.web.ledger import Counts, Ledger
from raxol_sync.server.web.limits import Limits
from raxol_sync.server.web.parsing import IDLE, Memory
from raxol_sync.server.web.poller import GONE, READ, Poller, make_poller
from raxol_sync.server.web.response import canned
from raxol_sync.server.web.sockets import accepted, listen
from raxol_sync.server.web.turns import RETRY, Turns

_log = logging.getLogger("raxol_sync.server")

_ACCEPTS = 64  # connections that are accepted in one turn
_REST = 0.5  # seconds without accepting, once the system has nothing to give
_SHED_AFTER = 1.0  # seconds of silence after which a connection may make room for a new one
_FULL = canned("503 Service Unavailable", "too many connections", RETRY)
_SELECTABLE = 480 if sys.platform == "win32" else sys.maxsize  # what select takes there
_LOBBY = 64  # connections that wait for others to end, at a full server
_PATIENCE = 0.5  # seconds for that: whoever has just closed one and opens the next is let in
_GLANCE = 0.01  # seconds between looks whether there is room
_LAST_PART = 0.2  # of the grace time is for what has to be broken off
_LEAST = 0.5  # seconds that threads get to end in any case


class WebServer:
    """Serves a WSGI application over HTTP/1.1. Thread-safe.

    Its environ has ``raxol_sync.host``, the ``Exchange``: ``begin_stream()`` and ``watch()``.

    Attributes:
        app: the application.
        port: where it listens; known after ``start``.
        addresses: (host, port) of each listening socket.
    """

    def __init__(
        self,
        app: WSGIApp,
        host: str | None = "127.0.0.1",
        port: int = 0,
        *,
        limits: Limits | None = None,
        ssl_context: ssl.SSLContext | None = None,
        log: Callable[[str], object] | None = None,
        on_stop: Callable[[], object] | None = None,
        make_poller: Callable[[], Poller] = make_poller,
    ) -> None:
        """Keep all that; nothing is opened yet.

        Args:
            app: any WSGI application.
            host: a name or an address; empty or ``None`` for all that this machine has.
            port: 0 takes a free one.
            limits: bounds and deadlines.
            ssl_context: for TLS, with a certificate loaded.
            log: gets a line for each request.
            on_stop: called once as ``stop`` begins, after the last connection was accepted: it
                ends the application's event streams.
            make_poller: makes what waits for the sockets.
        """
        self.app = app
        self.limits = limits if limits is not None else Limits()
        self.addresses: list[tuple[str, int]] = []
        self.port = 0
        self._wanted = (host, port)
        self._ssl_context = ssl_context
        self._on_stop = on_stop
        self._ledger = Ledger(self.limits)
        self._memory = Memory()
        self._crew = Crew("raxol-sync-http", self.limits.max_threads, self.limits.idle_thread)
        self._poller = make_poller()
        self._turns = Turns(app, self.limits, self._ledger, self._poller, self._crew, log)
        self._thread = threading.Thread(
            target=self._poll, name="raxol-sync-http-poller", daemon=True
        )
        self._listeners: dict[int, socket.socket] = {}
        self._resting_until = 0.0  # of the poller's thread alone
        # Of the same: who waits for room, from where, and until when.
        self._lobby: deque[tuple[socket.socket, str, int, float]] = deque()
        self._scarce = False  # of the same: the system has nothing to give, and a log says so
        self._next_sweep = 0.0
        # Guards: _state. Leaf.
        self._lock = threading.Lock()
        self._state = "new"  # then "running", then "stopped"
        self._stopped = threading.Event()

    # ------------------------------------------------------------ from outside

    def start(self) -> None:
        """Listen, and serve on threads of its own.

        Raises:
            OSError: the address cannot be had.
            RuntimeError: it was started or stopped before.
        """
        with self._lock:
            if self._state != "new":
                raise RuntimeError("a web server is started once")
            self._state = "running"
        try:
            for sock in listen(*self._wanted, self.limits.backlog):
                self._listeners[sock.fileno()] = sock
                self._poller.add(sock, listens=True)
                self.addresses.append(sock.getsockname()[:2])
            self.port = self.addresses[0][1]
            self._thread.start()
        except BaseException:
            with self._lock:
                self._state = "stopped"
            self._close_listeners()
            self._poller.close()
            self._stopped.set()
            raise

    def counts(self) -> Counts:
        """Tell what there is."""
        ledger = self._ledger
        return Counts(len(ledger.connections), self._crew.size, ledger.streams)

    def stop(self, grace: float = 5.0) -> bool:
        """Accept nothing more, let answers end, then break off; return whether all ended by itself.

        It returns within ``grace`` seconds, but for an application that does not return: the thread
        of that one is left behind. Safe to call more than once and from any thread.
        """
        with self._lock:
            before, self._state = self._state, "stopped"
        if before == "new":
            self._poller.close()
            self._stopped.set()
        if before != "running":
            return self._stopped.wait(grace)
        try:
            return self._end(grace)
        finally:
            self._stopped.set()

    def _end(self, grace: float) -> bool:
        whole, gentle = Deadline(grace), Deadline(grace * (1 - _LAST_PART))
        ledger = self._ledger
        ledger.ending = True
        self._poller.wake()
        if self._on_stop is not None:
            try:
                self._on_stop()
            except Exception:  # the server must end all the same
                _log.exception("! what is called at the server's end failed")
        clean = ledger.await_empty(gentle)
        if not clean:
            for connection in list(ledger.connections.values()):
                connection.notice_gone()
            ledger.await_empty(Deadline((whole.left() or 0.0) / 2))
        ledger.ended = True
        self._poller.wake()
        self._thread.join(max(whole.left() or 0.0, _LEAST))
        self._crew.close()
        left = self._crew.join(Deadline(max(whole.left() or 0.0, _LEAST)))
        if left:
            _log.warning("! the application has not returned in: %s", ", ".join(left))
        return clean and not left

    # ------------------------------------------------------------ the poller's thread

    def _poll(self) -> None:
        while True:
            try:
                if self._poll_once():
                    break
            except Exception:  # whatever it is, the others' connections must go on
                _log.exception("! the poller failed, and goes on")
                time.sleep(0.05)  # not at full speed, should it fail again
        self._poller.close()

    def _poll_once(self) -> bool:
        """Wait for something and see to it; return whether the server has ended."""
        connections = self._ledger.connections
        # While there is anything that could be overdue, look at it now and then.
        busy = connections or self._resting_until
        tick = _GLANCE if self._lobby else self._tick() if busy else None
        events = self._poller.wait(tick)
        if self._ledger.ending and self._farewell():
            return True
        accepting = [each for each in events if each[0] in self._listeners]
        # First who has gone: a client that left one stream for another finds its place free.
        for descriptor, event in sorted(events, key=lambda each: not each[1] & GONE):
            connection = connections.get(descriptor)
            if connection is not None:
                self._heed(connection, event)
        # Last, since a new socket may have the number of one that was closed meanwhile.
        for descriptor, _ in accepting:
            self._accept(descriptor)
        if self._lobby:
            self._call_in()
        if now() >= self._next_sweep:
            self._sweep()
        return False

    def _tick(self) -> float:
        limits = self.limits
        shortest = min(limits.header_timeout, limits.idle_timeout, limits.drain_timeout)
        return min(0.5, max(0.01, shortest / 4))

    def _heed(self, connection: Connection, event: int) -> None:
        state = connection.state
        if state is PARKED:
            if event & connection.awaits:
                connection.state = QUEUED
                connection.queued = now()
                self._crew.put(partial(self._turns.take, connection))
        elif event & GONE:
            connection.notice_gone()

    def _accept(self, descriptor: int) -> None:
        listener = self._listeners.get(descriptor)
        if listener is None:
            return
        try:
            for sock, host, port in accepted(listener, _ACCEPTS):
                self._scarce = False
                try:
                    self._welcome(sock, host, port)
                except (OSError, ValueError) as error:  # it is gone, or its TLS cannot begin
                    _log.debug("a connection ended as it began: %s", type(error).__name__)
                    sock.close()
        except OSError as error:  # one of SCARCE: the clients stay in the backlog for a while
            if not self._scarce:  # once, until the system has something to give again
                self._scarce = True
                _log.error("! no connection can be accepted: %s", error.strerror)
            self._shed(None)
            # Others that are idle as well make room for all who wait; else each would wait in turn.
            if sum(self._shed(_SHED_AFTER) for _ in range(_ACCEPTS)) == 0:
                for each in self._listeners.values():
                    self._poller.remove(each)
                self._resting_until = now() + _REST

    def _welcome(self, sock: socket.socket, host: str, port: int) -> None:
        if not self._full():
            self._let_in(sock, host, port)
        elif len(self._lobby) < _LOBBY:
            self._lobby.append((sock, host, port, now() + _PATIENCE))
        else:
            self._turn_away(sock, host)

    def _full(self) -> bool:
        """Whether there is no room for one more connection, and none can be made."""
        most = min(self.limits.max_connections, _SELECTABLE)
        return len(self._ledger.connections) >= most and not self._shed(_SHED_AFTER)

    def _call_in(self) -> None:
        """Let in who waits for room, as far as there is any; turn away who has waited in vain."""
        while self._lobby:
            full = self._full()
            if full and now() < self._lobby[0][3]:
                return
            sock, host, port, _ = self._lobby.popleft()
            try:
                if full:
                    self._turn_away(sock, host)
                else:
                    self._let_in(sock, host, port)
            except (OSError, ValueError) as error:  # as in _accept
                _log.debug("a connection ended as it began: %s", type(error).__name__)
                sock.close()

    def _turn_away(self, sock: socket.socket, host: str) -> None:
        # It is told, since a client that waits in vain would not know why. The answer comes
        # before its request: should the system drop it, the closed connection says enough.
        with contextlib.suppress(OSError):
            if self._ssl_context is None:
                sock.send(_FULL)
                sock.shutdown(socket.SHUT_WR)
        sock.close()
        self._turns.note(host, None, 503, "too many connections")

    def _let_in(self, sock: socket.socket, host: str, port: int) -> None:
        limits = self.limits
        own = sock.getsockname()
        if self._ssl_context is not None:
            sock = self._ssl_context.wrap_socket(
                sock, server_side=True, do_handshake_on_connect=False
            )
        base: dict[str, Any] = {
            "SCRIPT_NAME": "",
            "SERVER_NAME": own[0],
            "SERVER_PORT": str(own[1]),
            "REMOTE_ADDR": host,
            "REMOTE_PORT": str(port),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http" if self._ssl_context is None else "https",
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "wsgi.input_terminated": True,
        }
        connection = Connection(sock, base, host, limits, self._ledger.weigh, self._memory)
        self._ledger.connections[connection.descriptor] = connection
        self._poller.add(sock)
        self._poller.arm(sock, READ)

    def _shed(self, after: float | None) -> bool:
        """Close the connection that has been silent for longest, to make room; say if it did."""
        idle = [
            each
            for each in list(self._ledger.connections.values())
            if each.state is PARKED and each.phase is ASK and each.parser.stage is IDLE
        ]
        oldest = min(idle, key=lambda each: each.since, default=None)
        if oldest is None or (after is not None and now() - oldest.since < after):
            return False
        self._turns.drop(oldest)
        return True

    def _sweep(self) -> None:
        """Give up what is overdue."""
        moment = now()
        self._next_sweep = moment + self._tick()
        for connection in list(self._ledger.connections.values()):
            if connection.state is PARKED and connection.deadline <= moment:
                self._expire(connection)
        if self._resting_until and moment >= self._resting_until:
            self._resting_until = 0.0
            for listener in self._listeners.values():
                self._poller.add(listener, listens=True)

    def _expire(self, connection: Connection) -> None:
        if connection.phase is ASK and connection.parser.stage is not IDLE:
            with contextlib.suppress(OSError):
                connection.last_word(canned("408 Request Timeout", "the request took too long"))
            self._turns.note(connection.client, None, 408, "the request took too long")
        self._turns.drop(connection)

    def _farewell(self) -> bool:
        """The server ends: close what waits for a request; return whether all is over."""
        self._close_listeners()
        while self._lobby:
            self._lobby.popleft()[0].close()
        ended = self._ledger.ended
        for connection in list(self._ledger.connections.values()):
            if connection.state is PARKED and (ended or connection.phase is not FLUSH):
                self._turns.drop(connection)
            elif ended:
                connection.abort()
        return ended

    def _close_listeners(self) -> None:
        for listener in self._listeners.values():
            self._poller.remove(listener)
            listener.close()
        self._listeners.clear()
