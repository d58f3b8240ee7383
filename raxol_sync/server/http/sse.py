"""The older HTTP+SSE transport of revision 2024-11-05: ``GET /sse``, ``POST /messages``. Floor 3.

The stream is the session: it begins and ends with it, and carries all that its client is sent. Its
first event names the address that the client posts its messages to.
"""

from __future__ import annotations

from typing import Any

from raxol_sync.errors import RPCError
from raxol_sync.protocol import wire
from raxol_sync.protocol.wire import Malformed
from raxol_sync.server.batch import MAX_BATCH, batchable
from raxol_sync.server.channel import Channel
from raxol_sync.server.connections import Visit
from raxol_sync.server.http import events, headers
from raxol_sync.server.http.posts import malformed, read_json
from raxol_sync.server.http.presence import Presence
from raxol_sync.server.http.replies import ACCEPTED, Answer, Refused, Reply, Stream, busy, refusal
from raxol_sync.server.http.service import Service
from raxol_sync.server.http.sessions import NO_SESSION, Session
from raxol_sync.server.http.streams import HEADERS, EventStream

Environ = dict[str, Any]

_KEY = "session_id"


def open_stream(service: Service, environ: Environ, principal: object) -> Answer:
    """Begin a session and its stream.

    Raises:
        Refused: the client takes no event streams, or there are no sessions here.
    """
    if not headers.accepts(environ.get("HTTP_ACCEPT"), headers.EVENTS):
        raise Refused(refusal(406, f"Accept must allow {headers.EVENTS}"))
    if not service.options.max_sessions:
        raise Refused(refusal(404, "there are no sessions here (max_sessions=0)"))
    if not service.places.take(environ):
        return busy("event streams", service.places.limit)
    try:
        channel = Channel(own=False)
        session = service.sessions.open(principal, channel, older=True)
    except RPCError as error:
        service.places.give_back()
        return refusal(503, error.message, code=error.code)
    if session is None:
        service.places.give_back()
        return busy("sessions", service.sessions.limit)
    return Stream(HEADERS, _Older(service, environ, session).body)


class _Older:
    """One such session's stream."""

    def __init__(self, service: Service, environ: Environ, session: Session) -> None:
        self._service = service
        self._session = session
        reader = session.channel.attach()
        presence = Presence(environ)
        presence.watch(reader.stop)
        self.body = EventStream(
            reader,
            presence,
            first=events.endpoint(_address(environ, session.id)),
            keep_alive=service.options.keep_alive,
            on_close=self._closed,
        )
        service.opened(self)

    def finish(self) -> None:
        """End the session, and with it the stream: the application closes."""
        self._service.sessions.end(self._session)

    def _closed(self, finished: bool) -> None:
        service = self._service
        service.forget(self)
        service.places.give_back()
        service.sessions.end(self._session)
        service.sessions.leave(self._session)


def _address(environ: Environ, session_id: str) -> str:
    from urllib.parse import quote  # at first use: most servers never need it

    # WSGI hands paths over as latin-1 that stands for UTF-8.
    path = quote((environ.get("SCRIPT_NAME") or "").encode("latin-1"))
    return f"{path}/messages?{_KEY}={session_id}"


def take_message(service: Service, environ: Environ, principal: object) -> Answer:
    """Take one message of such a session; its response goes out on the stream.

    Raises:
        Refused: it is not acceptable, or there is no such session.
    """
    session = service.sessions.enter(_session_id(environ), principal, older=True)
    if session is None:
        service.session_missing()
        raise Refused(refusal(404, NO_SESSION))
    try:
        value = read_json(service, environ, streams=False)
        assert session.conn is not None  # sessions are entered only then
        batches = session.conn.revision.batches
        values = value if isinstance(value, list) and batches else [value]
        if not 0 < len(values) <= MAX_BATCH:
            return refusal(400, f"a batch must hold 1 to {MAX_BATCH} messages")
        visit = Visit(environ, principal)
        answer: Reply | None = None
        for one in values:
            incoming = wire.classify(one if one is value else batchable(one))
            if isinstance(incoming, Malformed) and incoming.answer and one is value:
                answer = malformed(incoming)
            else:
                service.dispatch.take(incoming, session, sink=session.channel, visit=visit)
        return answer or ACCEPTED
    finally:
        service.sessions.leave(session)


def _session_id(environ: Environ) -> str:
    for part in (environ.get("QUERY_STRING") or "").split("&"):
        key, _, value = part.partition("=")
        if key == _KEY:
            return str(value)
    return ""
