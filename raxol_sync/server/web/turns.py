"""What the crew's threads do with a connection, as far as that goes without waiting. Floor 2."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from raxol_sync._deadline import now
from raxol_sync.server.web.access import access_line
from raxol_sync.server.web.connection import (
    CLOSED,
    DRAIN,
    FLUSH,
    HANDSHAKE,
    PARKED,
    QUEUED,
    RUNNING,
    Connection,
    GoneError,
)
from raxol_sync.server.web.crew import Crew
from raxol_sync.server.web.exchange import Exchange, WSGIApp
from raxol_sync.server.web.ledger import Ledger
from raxol_sync.server.web.limits import Limits
from raxol_sync.server.web.parsing import IDLE, RefusedError, Request
from raxol_sync.server.web.poller import GONE, Poller
from raxol_sync.server.web.response import canned

_log = logging.getLogger("raxol_sync.server")

RETRY = "Retry-After: 1\r\n"


class Turns:
    """One turn is the time for which a thread has a connection. Thread-safe.

    Attributes:
        app: the application.
    """

    def __init__(
        self,
        app: WSGIApp,
        limits: Limits,
        ledger: Ledger,
        poller: Poller,
        crew: Crew,
        say: Callable[[str], object] | None,
    ) -> None:
        self.app = app
        self._limits = limits
        self._ledger = ledger
        self._poller = poller
        self._crew = crew
        self._say = say

    # ------------------------------------------------------------ for an exchange

    @property
    def ending(self) -> bool:
        """Whether the server stops."""
        return self._ledger.ending

    def take_stream(self) -> bool:
        """Take a place among the event streams, if one is free."""
        if not self._ledger.take_stream():
            return False
        self._crew.lend()
        return True

    def give_stream(self) -> None:
        """Give it back."""
        self._ledger.give_stream()
        self._crew.take_back()

    def take_reader(self) -> bool:
        """Let one more thread wait for a body, if few enough do."""
        return self._ledger.take_reader()

    def give_reader(self) -> None:
        """It waits no longer."""
        self._ledger.give_reader()

    def watch_client(self, connection: Connection) -> None:
        """Have ``connection.notice_gone`` called once its client is gone."""
        self._poller.arm(connection.sock, GONE)

    # ------------------------------------------------------------ a turn

    def take(self, connection: Connection) -> None:
        """Go on with a connection as far as that goes without waiting for its client."""
        connection.state = RUNNING
        try:
            self._advance(connection)
        except RefusedError as error:
            self._refuse(connection, error)
        except (OSError, ValueError):  # the client is gone, or the socket was closed
            self.drop(connection)
        except BaseException:
            self.drop(connection)
            raise

    def _advance(self, connection: Connection) -> None:
        phase = connection.phase
        if phase is HANDSHAKE:
            if not connection.shake():
                self._park(connection, connection.deadline)
                return
        elif phase is FLUSH:
            if not connection.flush():
                self._park(connection, connection.deadline)
                return
            if not self._go_on(connection):
                return
        elif phase is DRAIN:
            if connection.discard():
                self._park(connection, connection.drain_deadline())
            else:
                self.drop(connection)
            return
        elif now() - connection.queued > self._limits.queue_timeout:
            raise RefusedError("503 Service Unavailable", "the server is too busy")
        self._serve(connection)

    def _serve(self, connection: Connection) -> None:
        """Answer requests, until the next one is late."""
        linger = self._limits.linger
        linger_until = 0.0  # what the poller saw is there
        while True:
            request = connection.receive(linger_until)
            if request is None:
                if self._ledger.ending:
                    raise GoneError("the server ends")
                if linger_until or connection.parser.stage is IDLE or self._crew.busy:
                    break
                linger_until = now() + linger  # the rest of a request is often near
                continue
            if not self._answer(connection, request):
                return
            if self._crew.busy:  # others have their turn first
                connection.state, connection.queued = QUEUED, now()
                self._crew.put(partial(self.take, connection))
                return
            linger_until = now() + linger
        self._park(connection, connection.request_deadline())

    def _answer(self, connection: Connection, request: Request) -> bool:
        """Run the application; return whether the connection is still this thread's."""
        begun = now()
        exchange = Exchange(self, connection, request)
        try:
            exchange.run()
            connection.unweigh()  # before the client can know: its next body may be as large
            written = connection.begin_flush(exchange.rest)
        except OSError:
            self.note(connection.client, request, exchange.code, "broken off", begun)
            raise
        self.note(connection.client, request, exchange.code, str(exchange.size), begun)
        if not written:
            self._park(connection, connection.deadline)
            return False
        return self._go_on(connection)

    def _go_on(self, connection: Connection) -> bool:
        """An answer is written: return whether the connection can take another request now."""
        if not connection.closes:
            connection.answered()
            return True
        if connection.discard():
            connection.begin_drain()
            self._park(connection, connection.deadline)
        else:
            self.drop(connection)
        return False

    def _refuse(self, connection: Connection, error: RefusedError) -> None:
        more = [RETRY] if error.status.startswith("503") else []
        self.note(connection.client, None, int(error.status[:3]), error.reason)
        connection.unweigh()
        try:
            connection.closes = True
            if connection.begin_flush(canned(error.status, error.reason, *more)):
                connection.begin_drain()
            self._park(connection, connection.deadline)
        except OSError:
            self.drop(connection)

    def _park(self, connection: Connection, deadline: float) -> None:
        """Give a connection to the poller. The caller must not touch it any more."""
        ledger = self._ledger
        # The poller looks at deadlines now and then: a client that drips would always be here.
        overdue = deadline <= now()
        if overdue or ledger.ended or (ledger.ending and connection.phase is not FLUSH):
            self.drop(connection)
            return
        sock, awaits = connection.sock, connection.awaits
        connection.deadline = deadline
        connection.state = PARKED
        self._poller.arm(sock, awaits)

    def drop(self, connection: Connection) -> None:
        """Close a connection, which is the caller's."""
        connection.state = CLOSED
        connection.unweigh()
        self._poller.remove(connection.sock)
        self._ledger.forget(connection)
        connection.close()

    def note(
        self,
        client: str,
        request: Request | None,
        code: int,
        result: str,
        begun: float | None = None,
    ) -> None:
        """Write a line of the access log."""
        if self._say is None:
            return
        said = None
        if request is not None:
            protocol = "HTTP/1.0" if request.http10 else "HTTP/1.1"
            said = (request.method, request.target, protocol)
        if begun is not None:
            result = f"{result} {(now() - begun) * 1000:.1f}ms"
        try:
            self._say(access_line(client, said, code, result))
        except Exception:  # a log that cannot be written must not end the connection
            _log.debug("the access log failed", exc_info=True)
