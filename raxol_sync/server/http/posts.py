"""POST to the endpoint: one message, or a batch of revision 2025-03-26. Floor 3. Rows S47, S48."""

from __future__ import annotations

from typing import Any

from raxol_sync.errors import HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION, RPCError
from raxol_sync.protocol import versions, wire
from raxol_sync.protocol.versions import REVISIONS, Revision
from raxol_sync.protocol.wire import Malformed, Notification, Request, Response
from raxol_sync.server.batch import MAX_BATCH, batchable
from raxol_sync.server.channel import Channel
from raxol_sync.server.connections import Visit
from raxol_sync.server.http import headers
from raxol_sync.server.http.body import Unread, read_body
from raxol_sync.server.http.exchange import Anonymous, Exchange
from raxol_sync.server.http.replies import (
    ACCEPTED,
    Answer,
    Refused,
    Reply,
    Stream,
    busy,
    json_reply,
    refusal,
)
from raxol_sync.server.http.service import Service
from raxol_sync.server.http.sessions import NO_SESSION, Session

Environ = dict[str, Any]

SESSION = "Mcp-Session-Id"
ASSUMED = REVISIONS["2025-03-26"]  # where neither a header nor a session says otherwise


def post(service: Service, environ: Environ, principal: object) -> Answer:
    """Answer a POST.

    Raises:
        Refused: it is not acceptable; holds the answer that says so.
    """
    value = read_json(service, environ)
    incoming = wire.classify(value)
    header = headers.version_of(environ)
    if _speaks_modern(incoming, header):
        return _modern(service, environ, principal, incoming)
    if header is not None and header not in REVISIONS:
        raise Refused(unsupported(header, incoming))
    session = session_of(service, environ, principal)
    answer: Answer | None = None
    try:
        answer = _legacy(service, Visit(environ, principal), value, incoming, session)
        return answer
    finally:
        if session is not None and not isinstance(answer, Stream):  # a stream leaves it itself
            service.sessions.leave(session)


def read_json(service: Service, environ: Environ, *, streams: bool = True) -> object:
    """Return the body's JSON value; one that is not readable as a ``Malformed``.

    Raises:
        Refused: media types, or the body itself, are not acceptable.
    """
    accept = environ.get("HTTP_ACCEPT")
    if streams and not (
        headers.accepts(accept, headers.JSON) and headers.accepts(accept, headers.EVENTS)
    ):
        reason = f"Accept must allow {headers.JSON} and {headers.EVENTS}"
        raise Refused(refusal(406, reason))
    if not headers.is_json(environ.get("CONTENT_TYPE")):
        raise Refused(refusal(415, f"Content-Type must be {headers.JSON}"))
    data = read_body(environ, service.options.max_body_bytes)
    if isinstance(data, Unread):
        raise Refused(refusal(data.status, data.reason))
    return wire.decode(data, max_bytes=service.options.max_body_bytes)


def _speaks_modern(incoming: wire.Incoming, header: str | None) -> bool:
    """Return whether a message is the stateless era's: by its header, its ``_meta``, its method."""
    revision = REVISIONS.get(header) if header is not None else None
    if revision is not None and revision.era == "modern":
        return True
    if isinstance(incoming, (Request, Notification)):
        return versions.era_of(incoming.method, incoming.params) == "modern"
    return False


def malformed(bad: Malformed, *, null_id: bool = False) -> Reply:
    """Return the answer to what is no message: 400."""
    return json_reply(400, wire.error(bad.id, bad.code, bad.reason, null_id=null_id))


def unsupported(version: str, incoming: wire.Incoming | None) -> Reply:
    """Return the answer to a version that nobody here speaks."""
    request_id = incoming.id if isinstance(incoming, (Request, Malformed)) else None
    return refusal(
        400,
        "Unsupported protocol version",
        code=UNSUPPORTED_PROTOCOL_VERSION,
        request_id=request_id,
        data={"supported": list(versions.SUPPORTED), "requested": version[:64]},
    )


# ---------------------------------------------------------------- the stateless era


def _modern(
    service: Service, environ: Environ, principal: object, incoming: wire.Incoming
) -> Answer:
    if isinstance(incoming, Malformed):
        return malformed(incoming)
    if isinstance(incoming, Response):
        return refusal(400, "a client of this revision sends no responses")
    if isinstance(incoming, Notification):
        return ACCEPTED  # none is defined: closing the stream is what cancels
    paths: headers.HeaderPaths = {}
    if incoming.method == "tools/call":
        name = incoming.params.get("name")
        tool = service.registry.tools.get(name) if isinstance(name, str) else None
        paths = tool.header_paths if tool is not None else {}
    problem = headers.mismatch(environ, incoming, paths)
    if problem is not None:
        return refusal(
            400, f"Header mismatch: {problem}", code=HEADER_MISMATCH, request_id=incoming.id
        )
    visit = Visit(environ, principal, versions.MODERN)
    return Exchange(service, visit, [incoming], versions.MODERN).run()


# ---------------------------------------------------------------- legacy


def session_of(service: Service, environ: Environ, principal: object) -> Session | None:
    """Return the session that a request names, now in use; ``None`` where it names none.

    Raises:
        Refused: 404, it is none of this principal's here.
    """
    session_id = environ.get("HTTP_MCP_SESSION_ID")
    if session_id is None:
        return None
    session = service.sessions.enter(session_id, principal)
    if session is None:
        service.session_missing()
        raise Refused(refusal(404, NO_SESSION))
    return session


def _legacy(
    service: Service,
    visit: Visit,
    value: object,
    incoming: wire.Incoming,
    session: Session | None,
) -> Answer:
    revision = _revision_of(session, visit.environ)
    if session is None:
        visit = visit._replace(revision=revision)
    if type(value) is list and revision.batches:
        return _batch(service, visit, value, session, revision)
    if isinstance(incoming, Request):
        if incoming.method == "initialize" and session is None and service.options.max_sessions:
            return _initialize(service, visit, incoming)
        return Exchange(service, visit, [incoming], revision, session=session).run()
    conn_id = session if session is not None else Anonymous()
    if isinstance(incoming, Malformed):
        if not incoming.answer:  # perhaps the answer to a question: then it is one of no use
            service.dispatch.take(incoming, conn_id)
        return malformed(incoming, null_id=revision.null_error_id)
    service.dispatch.take(incoming, conn_id, visit=visit)
    return ACCEPTED


def _revision_of(session: Session | None, environ: Environ) -> Revision:
    if session is not None and session.conn is not None:
        return session.conn.revision
    return REVISIONS.get(headers.version_of(environ) or "", ASSUMED)


def _initialize(service: Service, visit: Visit, request: Request) -> Answer:
    """Begin a session, if ``initialize`` succeeds in it."""
    sessions = service.sessions
    try:
        session = sessions.open(visit.principal, Channel(own=False, keeps=True, lossy=True))
    except RPCError as error:
        return refusal(503, error.message, code=error.code, request_id=request.id)
    if session is None:
        return busy("sessions", sessions.limit, request.id)
    named = [(SESSION, session.id)]
    exchange = Exchange(
        service,
        visit._replace(revision=None),
        [request],
        versions.NEWEST_LEGACY,
        session=session,
        headers=named,
    )
    answer: Answer | None = None
    try:
        answer = exchange.run()
    finally:
        if not isinstance(answer, Stream):
            sessions.leave(session)
        if answer is None or not exchange.succeeded:
            sessions.end(session)
    if session.ended:
        return answer._replace(headers=[h for h in answer.headers if h not in named])
    return answer


def _batch(
    service: Service, visit: Visit, values: list[Any], session: Session | None, revision: Revision
) -> Answer:
    if not 0 < len(values) <= MAX_BATCH:
        return refusal(400, f"a batch must hold 1 to {MAX_BATCH} messages")
    parts = [wire.classify(batchable(value)) for value in values]
    requests = [part for part in parts if isinstance(part, Request)]
    conn_id = session if session is not None else Anonymous()
    answers = []
    for part in parts:
        if isinstance(part, Malformed) and part.answer:
            answers.append(wire.error(part.id, part.code, part.reason, null_id=True))
        elif not isinstance(part, Request):
            service.dispatch.take(part, conn_id, visit=visit)
    if not requests:
        return json_reply(400, answers) if answers else ACCEPTED
    exchange = Exchange(service, visit, requests, revision, session=session, batch=True)
    return exchange.run(answers)
