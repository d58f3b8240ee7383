"""GET and DELETE at the endpoint: a legacy session's stream, and its end. Floor 3.

Spec: basic/transports of 2025-03-26 to 2025-11-25. The stateless era has neither: 405.
"""

from __future__ import annotations

from typing import Any

from raxol_sync.protocol.versions import REVISIONS
from raxol_sync.server.channel import Channel, Reader
from raxol_sync.server.http import headers
from raxol_sync.server.http.events import EventId, priming, read_id
from raxol_sync.server.http.posts import session_of, unsupported
from raxol_sync.server.http.presence import Presence
from raxol_sync.server.http.replies import Answer, Refused, Reply, Stream, busy, refusal
from raxol_sync.server.http.service import Service
from raxol_sync.server.http.sessions import Session
from raxol_sync.server.http.streams import HEADERS, EventStream

Environ = dict[str, Any]

ALLOWED = ("Allow", "POST, GET, DELETE")


def not_allowed(reason: str, allowed: str = ALLOWED[1]) -> Reply:
    """Return the answer to a method that this place does not know."""
    return refusal(405, reason, headers=[("Allow", allowed)])


def _session(service: Service, environ: Environ, principal: object) -> Session:
    """Return the session that a GET or DELETE is about, now in use.

    Raises:
        Refused: there is none, or the request is the stateless era's.
    """
    version = headers.version_of(environ)
    if version is not None and version not in REVISIONS:
        raise Refused(unsupported(version, None))
    modern = version is not None and REVISIONS[version].era == "modern"
    session = None if modern else session_of(service, environ, principal)
    if session is None:
        raise Refused(not_allowed("without a session the endpoint takes POST only", "POST"))
    return session


def delete(service: Service, environ: Environ, principal: object) -> Reply:
    """End a session.

    Raises:
        Refused: there is none.
    """
    session = _session(service, environ, principal)
    service.sessions.part(session)
    service.sessions.leave(session)
    return Reply(204, [])


def get(service: Service, environ: Environ, principal: object) -> Answer:
    """Open a session's stream, or go on with one that broke (``Last-Event-ID``).

    Raises:
        Refused: the request is not acceptable.
    """
    if not headers.accepts(environ.get("HTTP_ACCEPT"), headers.EVENTS):
        words = "this is an MCP endpoint, for MCP clients and not for browsers"
        raise Refused(refusal(406, f"Accept must allow {headers.EVENTS} ({words})"))
    session = _session(service, environ, principal)
    opened = False
    try:
        answer = _open(service, environ, session)
        opened = isinstance(answer, Stream)
        return answer
    finally:
        if not opened:
            service.sessions.leave(session)


def _open(service: Service, environ: Environ, session: Session) -> Answer:
    place = EventId(0, 0)
    resumed = environ.get("HTTP_LAST_EVENT_ID")
    if resumed is not None:
        found = read_id(resumed)
        channel = service.sessions.stream(session, found.stream) if found is not None else None
        if found is None or channel is None:
            return refusal(400, "Last-Event-ID names no stream that can be gone on with")
        place = found
    else:
        channel = session.channel
    if not service.places.take(environ):
        return busy("event streams", service.places.limit)
    reader = channel.attach(after=place.number if resumed is not None else None)
    return Stream(HEADERS, _SessionStream(service, environ, session, channel, reader, place).body)


class _SessionStream:
    """A GET stream: what is told to the service, and done when it ends."""

    def __init__(
        self,
        service: Service,
        environ: Environ,
        session: Session,
        channel: Channel,
        reader: Reader,
        place: EventId,
    ) -> None:
        self._service = service
        self._session = session
        self._channel = channel
        self._reader = reader
        presence = Presence(environ)
        presence.watch(reader.stop)
        primed = session.conn is not None and session.conn.revision.name >= "2025-11-25"
        fresh = place.stream == 0 and place.number == 0
        self.body = EventStream(
            reader,
            presence,
            first=priming(place, 1.0) if primed and fresh else b"",
            number=place.stream,
            keep_alive=service.options.keep_alive,
            on_close=self._closed,
        )
        service.opened(self)

    def finish(self) -> None:
        """End the stream: the application closes."""
        self._reader.stop()

    def _closed(self, finished: bool) -> None:
        service = self._service
        service.forget(self)
        service.places.give_back()
        session, channel = self._session, self._channel
        if channel is not session.channel and channel.ended and not session.ended:
            service.sessions.settled(session, channel)
        service.sessions.leave(session)
