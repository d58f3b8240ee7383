"""Legacy sessions: who opened them, what they may still fetch, when they end. Floor 3.

A session is one connection of the engine's (row S21), made by ``initialize``, ended by DELETE, by
idling or when the server closes. Its id is 256 random bits, is good only for the principal that
opened it, and never stands in a log: there a session is its number.

Sessions are bounded. When all places are taken, the principal with the most sessions loses the one
that idles longest; where none idles the newcomer is refused.
"""

from __future__ import annotations

import os
import threading
from base64 import urlsafe_b64encode

from raxol_sync._deadline import now
from raxol_sync.errors import RPCError
from raxol_sync.server.channel import Channel
from raxol_sync.server.connections import Connection
from raxol_sync.server.engine import Engine
from raxol_sync.server.http.store import EventStore

NO_SESSION = (
    "there is no such session here: it has ended, or another process has it (with several worker "
    "processes see max_sessions); begin a new one with initialize"
)
MAX_RESUMABLE = 64  # streams of one session that may be gone on with
_SWEEP = 1.0  # seconds; the least time between two looks for idle sessions
_PARTING = 1.0  # seconds for what a session had open to end; a stream may be stuck in its client


class Session:
    """One session; also the ``conn_id`` of its connection. Guarded by its table's lock."""

    def __init__(self, number: int, principal: object, channel: Channel, older: bool) -> None:
        self.number = number
        self.id = urlsafe_b64encode(os.urandom(32)).rstrip(b"=").decode("ascii")
        self.principal = principal
        self.older = older
        self.channel = channel  # what is not part of any request: stream 0
        self.conn: Connection | None = None
        self.streams: dict[int, Channel] = {}  # of requests, that may be resumed
        self.count = 0
        self.users = 0  # requests and streams that are being served
        self.used = now()
        self.ended = False

    def __repr__(self) -> str:
        return f"<HTTP session {self.number}>"


class Sessions:
    """The sessions of one application. Thread-safe."""

    def __init__(self, engine: Engine, limit: int, idle: float | None) -> None:
        self._engine = engine
        self.limit = limit
        self._idle = idle
        self.store = EventStore()
        # Guards: everything below and in the sessions. Leaf.
        self._lock = threading.Lock()
        self._left = threading.Condition(self._lock)  # told when an ended session is left
        self._by_id: dict[str, Session] = {}
        self._count = 0
        self._sweeping = False
        self._closed = False

    def __len__(self) -> int:
        return len(self._by_id)

    # ------------------------------------------------------------ begin and end

    def open(self, principal: object, channel: Channel, *, older: bool = False) -> Session | None:
        """Make a session in use; ``None`` if there is no place for it.

        ``older``: of the HTTP+SSE transport. One kind's ids mean nothing to the other.

        Raises:
            RPCError: the server is closed.
        """
        victim = None
        with self._lock:
            if self._closed:
                return None
            if len(self._by_id) >= self.limit:
                victim = self._make_room()
                if victim is None:
                    return None
            self._count += 1
            session = Session(self._count, principal, channel, older)
            session.users = 1
            self._by_id[session.id] = session
            watched, self._sweeping = self._sweeping, self._idle is not None
        if victim is not None:
            self.end(victim)
        try:
            session.conn = self._engine.attach(
                session, channel, lambda: self._ended(session), transport="sse"
            )
        except RPCError:
            self._ended(session)
            raise
        if not watched:
            self._look_again(self._idle)
        return session

    def _make_room(self) -> Session | None:
        """Take the session out that has to go for another one. Needs the lock."""
        held: dict[object, int] = {}
        for session in self._by_id.values():
            held[session.principal] = held.get(session.principal, 0) + 1
        idle = [session for session in self._by_id.values() if not session.users]
        if not idle:
            return None
        victim = max(idle, key=lambda s: (held[s.principal], -s.used))
        del self._by_id[victim.id]
        return victim

    def end(self, session: Session) -> None:
        """End a session: what it has outstanding is dropped, its streams end."""
        self._take_out(session)
        self._end_connection(session)
        self._ended(session)

    def _end_connection(self, session: Session) -> None:
        if session.conn is not None:
            self._engine.end_connection(session.conn)

    def _take_out(self, session: Session) -> None:
        """Let nobody find a session any more. First: who waits in it looks why it was dropped."""
        with self._lock:
            session.ended = True
            self._by_id.pop(session.id, None)

    def _ended(self, session: Session) -> None:
        """Do what follows the end of a session's connection."""
        self._take_out(session)
        with self._lock:
            streams = list(session.streams.values())
            session.streams.clear()
        for channel in [session.channel, *streams]:
            channel.close()
            self.store.forget(channel)

    def part(self, session: Session) -> None:
        """End a session that its client wants ended; wait a moment for what else it had open.

        The caller's is the one use that is left then, so that what those held is free when the
        client knows of the end: a new session may need their places.
        """
        self.end(session)
        with self._left:
            self._left.wait_for(lambda: session.users <= 1, _PARTING)

    def close(self) -> None:
        """Make no more sessions and end all; one in use ends with its last use."""
        with self._lock:
            self._closed = True
            sessions = [session for session in self._by_id.values() if not session.users]
        for session in sessions:
            self.end(session)

    # ------------------------------------------------------------ use

    def enter(self, session_id: str, principal: object, *, older: bool = False) -> Session | None:
        """Return a session of this principal's, now in use; ``None`` to anybody else."""
        with self._lock:
            session = self._by_id.get(session_id)
            if session is None or session.ended or session.conn is None:
                return None
            if session.principal != principal or session.older is not older:
                return None
            session.users += 1
            return session

    def leave(self, session: Session) -> None:
        """One use of a session is over."""
        with self._lock:
            session.users -= 1
            session.used = now()
            if session.ended:
                self._left.notify_all()
            last = self._closed and not session.users
        if last:
            self.end(session)

    # ------------------------------------------------------------ streams

    def keep(self, session: Session, channel: Channel) -> int:
        """Give a request's stream its number, so that it may be resumed."""
        dropped: list[Channel] = []
        with self._lock:
            session.count += 1
            number = session.count
            if not session.ended:
                session.streams[number] = channel
            excess = len(session.streams) - MAX_RESUMABLE
            if excess > 0:  # those of calls that run are bounded elsewhere
                closed = [n for n, c in session.streams.items() if c.closed]
                closed.sort(key=lambda n: (not session.streams[n].ended, n))
                dropped = [session.streams.pop(n) for n in closed[:excess]]
        for old in dropped:
            self.store.forget(old)
        return number

    def stream(self, session: Session, number: int) -> Channel | None:
        """Return a stream of a session by its number; 0 is what belongs to no request."""
        with self._lock:
            found = session.channel if number == 0 else session.streams.get(number)
        return found if found is not None and not found.emptied else None

    def settled(self, session: Session, channel: Channel) -> None:
        """Count what a stream keeps whose last message is in it."""
        self.store.settled(channel)
        if session.ended:  # perhaps after its streams were forgotten
            self.store.forget(channel)

    # ------------------------------------------------------------ idle sessions

    def _look_again(self, seconds: float | None) -> None:
        """Have ``_sweep`` run in so many seconds; ``None``: sessions may idle for ever."""
        if seconds is None:
            return
        try:
            self._engine.later(seconds, self._sweep)
        except RuntimeError:  # no thread is to be had: the next session tries again
            with self._lock:
                self._sweeping = False

    def _sweep(self) -> None:
        """End the sessions that idle too long, and look again in time. Runs on the reaper."""
        assert self._idle is not None  # else it never runs
        moment = now()
        with self._lock:
            idle = [s for s in self._by_id.values() if not s.users]
            expired = [s for s in idle if moment - s.used >= self._idle]
        for session in expired:
            self.end(session)
        with self._lock:
            left = [s.used + self._idle - moment for s in self._by_id.values() if not s.users]
            self._sweeping = bool(self._by_id)
        if self._sweeping:
            self._look_again(max(_SWEEP, min([*left, self._idle])))
