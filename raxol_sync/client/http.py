"""Streamable HTTP, both eras (rows C10, C17, C21, C29, C30). Floor 3.

Spec: basic/transports/streamable-http (2026-07-28), basic/transports (2025-11-25).

Each message is a POST of its own. Its answer is JSON or a stream of events. A legacy server may
give the session an id, which then goes with everything; it may offer a stream of its own messages
(GET); and it may close a request's stream early, which then is resumed.
"""

from __future__ import annotations

import json
import logging
import threading
from functools import partial

from raxol_sync._deadline import Deadline
from raxol_sync.client import headers as metadata
from raxol_sync.client.handle import Handle, WebError
from raxol_sync.client.http_base import (
    ACCEPT,
    FAULTS,
    HANDSHAKE,
    HttpBase,
    HttpPlan,
    Job,
    as_error,
)
from raxol_sync.client.signals import Opened, Rejected
from raxol_sync.client.transport import OnLost, OnMessage
from raxol_sync.client.verdicts import OLDER, forgets, no_message
from raxol_sync.client.web import Answer
from raxol_sync.errors import ConnectionLost, InvalidResponse, MCPError
from raxol_sync.protocol.versions import MODERN
from raxol_sync.protocol.wire import Incoming, Malformed, Response

_log = logging.getLogger("raxol_sync.client")

RESUME_AFTER = 1.0  # seconds, unless the server says otherwise with `retry`
RESUME_LIMIT = 60.0  # seconds between attempts of a stream that keeps failing
RESUMES = 8  # attempts in a row that brought no event
OPEN_TIME = 1.0  # seconds for the GET stream to open, before the client counts as ready
GOODBYE_TIME = 2.0  # seconds for DELETE
_EVENTS = "text/event-stream"
_SESSION = "Mcp-Session-Id"
_VISIBLE = frozenset(chr(code) for code in range(0x21, 0x7F))


class _Stream:
    """How a GET stream fares. For one thread."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        self.retry: float | None = None  # seconds, as the server wishes
        self.failures = 0  # attempts in a row that brought nothing
        self.was_open = False

    def pause(self) -> float:
        """Return how many seconds to wait before it is opened again."""
        if self.retry is not None and self.failures < RESUMES:
            return max(self.retry, 0.01)
        return float(min(RESUME_AFTER * 2.0 ** min(max(self.failures - 1, 0), 6), RESUME_LIMIT))


class HttpTransport(HttpBase):
    """A ``Transport`` over Streamable HTTP. Thread-safe."""

    def __init__(
        self,
        plan: HttpPlan,
        name: str,
        *,
        window: int,
        max_bytes: int,
        max_frames: int,
        wants_stream: bool = True,
    ) -> None:
        """``wants_stream``: a legacy server's own messages are wanted (GET)."""
        super().__init__(plan, name, window=window, max_bytes=max_bytes, max_frames=max_frames)
        self._wants_stream = wants_stream
        # Under _lock as well, as _session is:
        self._version: str | None = None  # that initialize agreed on; None: modern
        self._gives_sessions = False
        self._streaming = False  # the GET stream was open

    def start(self, on_message: OnMessage, on_lost: OnLost) -> None:
        """Say who is told; nothing is dialled before the first frame."""
        self._on_report, self._on_lost = on_message, on_lost

    def _closing_cancels(self) -> bool:
        return self._version is None

    # ------------------------------------------------------------ requests

    def _perform(self, job: Job) -> None:
        frame, session = job.frame, job.session
        stale = session != self._session or (session is None and self._gives_sessions)
        if stale and frame.method != "initialize":
            # The session was rejected before this was sent; without one it would be refused.
            if frame.id is not None:
                self._report(Rejected(frame.id, current=False, sent=False))
            return
        try:
            answer = self._exchange(job, self._plan.target, {**ACCEPT, **self._headers(job)})
        except (WebError, MCPError) as error:
            if frame.method == "notifications/initialized" and not self._closed:
                # Else nobody would know before its time is up.
                self._on_lost(as_error(error, self._plan.target.where))
            raise
        if answer.status >= 400:
            self._refused(job, answer, session)
        elif frame.id is None:
            answer.drain()  # what it says is not looked at
        else:
            self._answered(job, answer, session)
        if frame.method == "notifications/initialized":
            self._open()

    def _headers(self, job: Job) -> dict[str, str]:
        """Return what goes with a frame, beside what goes with all."""
        frame = job.frame
        if frame.method == "initialize":
            return {}
        if self._version is None:
            found = frame.headers
            if found is None:
                params = json.loads(frame.data).get("params")
                found = metadata.standard(frame.method, params if isinstance(params, dict) else {})
            return {"MCP-Protocol-Version": MODERN.name, **found}
        return self._legacy_headers(job.session)

    def _legacy_headers(self, session: str | None) -> dict[str, str]:
        version = self._version
        found = {} if version is None else {"MCP-Protocol-Version": version}
        return found if session is None else {**found, _SESSION: session}

    def _answered(self, job: Job, answer: Answer, session: str | None) -> None:
        if answer.kind == _EVENTS:
            self._read_stream(job, answer, session)
            return
        data = answer.read(self._max_bytes)
        if not data.strip():
            raise InvalidResponse(job.frame.method, f"HTTP status {answer.status} without a body")
        if answer.kind not in ("application/json", ""):
            raise InvalidResponse(job.frame.method, no_message(answer.kind, self._plan.target))
        found = False
        for message in self._parse(data):
            found = self._take(job, message, answer) or found
        if not found:
            raise InvalidResponse(job.frame.method, "the HTTP response does not hold it")

    def _take(self, job: Job, message: Incoming, answer: Answer | None = None) -> bool:
        """Report a message; return whether it is the answer to this request."""
        frame = job.frame
        mine = isinstance(message, (Response, Malformed)) and message.id == frame.id
        if isinstance(message, Response) and not mine:
            _log.debug("< %s: ignored an answer with the id of another request", self._name)
            return False
        if isinstance(message, Response) and frame.method in HANDSHAKE:
            self._shake_hands(job, message, answer)
        self._report(message)
        return mine

    # ------------------------------------------------------------ the handshake

    def _shake_hands(self, job: Job, message: Response, answer: Answer | None) -> None:
        """Note what an answer to ``initialize`` or the probe settles."""
        result = message.result
        if result is None:
            return
        legacy = job.frame.method == "initialize"
        other = "server/discover" if legacy else "initialize"
        with self._lock:
            if legacy:
                self._session = None if answer is None else _session_in(answer)
                self._gives_sessions = self._session is not None
                version = result.get("protocolVersion")
                self._version = version if isinstance(version, str) else ""
            late = [job.handle for job in self._jobs.values() if job.frame.method == other]
        for handle in late:  # the probe was silent, or late: nobody waits for the other any more
            handle.end()

    def _open(self) -> None:
        """``initialized`` is through: open the GET stream, then say that all is open (row C29)."""
        if self._wants_stream:
            self._begin_stream()
        self._report(Opened(self._streaming))

    def open_stream(self) -> bool:
        """Open the GET stream, if there is none and none was tried; see ``Transport``."""
        with self._lock:
            begins, self._wants_stream = not self._wants_stream, True
        if begins:
            self._begin_stream()
        return self._streaming

    def _begin_stream(self) -> None:
        """Open the GET stream, and wait a second for it."""
        opened = threading.Event()
        handle = Handle()
        self._streaming = False
        if self._streams.post(partial(self._listen, handle, opened)):
            opened.wait(OPEN_TIME)

    # ------------------------------------------------------------ refusals

    def _refused(self, job: Job, answer: Answer, session: str | None) -> None:
        """An HTTP status of 400 and more: a JSON-RPC error if there is one, else the status."""
        frame, status = job.frame, answer.status
        found = self._error_in(answer)
        answer.close()
        if found is not None and frame.id is not None and found.id == frame.id:
            self._take(job, found, answer)
            return
        said = None if found is None else found.error
        if session is not None and frame.method != "initialize" and forgets(status, said):
            self._reject(frame.id, session)
            return
        older = frame.method == "initialize" and status in OLDER
        plain = status < 500 and status not in FAULTS and not older
        if found is not None and frame.id is not None and plain:
            self._take(job, found._replace(id=frame.id), answer)
            return
        error = self._refusal(status, said)
        if frame.method == "notifications/initialized" and status in FAULTS:
            self._on_lost(error)
        self._fail(job, error)

    def _error_in(self, answer: Answer) -> Response | None:
        """Return the JSON-RPC error that a refusal holds, if it is one that can be read."""
        if answer.kind != "application/json" or answer.status == 401:
            return None
        try:
            data = answer.read(self._max_bytes)
        except (WebError, MCPError):  # then its status says all there is
            return None
        found: Response | None = None
        for message in self._parse(data):
            if isinstance(message, Response) and message.error is not None:
                found = message
        return found

    def _reject(self, request_id: int | None, session: str) -> None:
        """The server has forgotten this session (row C17)."""
        with self._lock:
            current = self._session == session
            streams: list[Handle] = []
            if current:
                self._session = None
                streams = list(self._handles)
        for handle in streams:  # the next session has one of its own
            handle.end()
        self._report(Rejected(request_id, current))

    # ------------------------------------------------------------ streams

    def _read_stream(self, job: Job, answer: Answer, session: str | None) -> None:
        """Read a request's stream to its answer, resuming it where the server allows (row C29)."""
        last_id: str | None = None
        pause, barren = RESUME_AFTER, 0
        first = answer
        greets = job.frame.method == "initialize"
        if greets:  # its session is told in the headers of the first part
            session = _session_in(first)
        while True:
            events = self._events(answer, endless=job.frame.stream)
            events.last_id = last_id
            problem, seen = None, 0
            try:
                for event in events:
                    seen += 1
                    if event.data is None or event.kind != "message":
                        continue
                    for message in self._parse(event.data.encode("utf-8")):
                        if self._take(job, message, first):
                            answer.drain()
                            return
            except WebError as error:
                problem = error
            finally:
                answer.close()
            pause = events.retry if events.retry is not None else pause
            progress = seen > 0 or events.last_id != last_id
            barren, last_id = (0 if progress else barren + 1), events.last_id
            reason = problem.reason if problem else "the stream ended before the answer"
            legacy = self._version is not None or greets
            if not legacy or not last_id or barren >= RESUMES or job.handle.ended:
                raise ConnectionLost(reason)
            resumed = self._resume(job, last_id, pause, session)
            if resumed is None:
                return
            answer = resumed

    def _resume(self, job: Job, last_id: str, pause: float, session: str | None) -> Answer | None:
        """Go on with a request's stream after an event; ``None``: its session is gone."""
        if job.handle.wait(pause):
            raise ConnectionLost("the request was given up")
        try:
            answer = self._get(job.handle, last_id, session)
        except WebError as error:
            reason = error.reason
        else:
            if answer.status == 200 and answer.kind == _EVENTS:
                return answer
            answer.close()
            if answer.status == 404 and session is not None:
                self._reject(job.frame.id, session)
                return None
            reason = f"HTTP status {answer.status}"
        raise ConnectionLost(f"the stream could not be resumed: {reason}")

    def _get(self, handle: Handle, last_id: str | None, session: str | None) -> Answer:
        headers = {"Accept": _EVENTS, **self._legacy_headers(session)}
        if last_id:
            # As UTF-8, which is what the standard says; http.client would take Latin-1 for it.
            headers["Last-Event-ID"] = last_id.encode("utf-8").decode("latin-1")
        return self._web.send(handle, "GET", self._plan.target, headers)

    def _listen(self, handle: Handle, opened: threading.Event) -> None:
        """Read the server's own messages for as long as the session lasts; a stream's thread."""
        with self._lock:
            if self._closed:
                return
            self._handles.add(handle)
            session = self._session
        stream = _Stream()
        try:
            while self._listen_once(handle, stream, session, opened):
                with self._lock:
                    if self._session != session or self._closed:
                        return
                handle.wait(stream.pause())
        finally:
            opened.set()
            with self._lock:
                self._handles.discard(handle)

    def _listen_once(
        self, handle: Handle, stream: _Stream, session: str | None, opened: threading.Event
    ) -> bool:
        """Open the stream and read it to its end; return whether to open it again."""
        stream.failures += 1
        stream.retry = None
        if handle.ended:
            return False
        try:
            answer = self._get(handle, stream.last_id, session)
        except WebError as error:
            _log.debug("! %s: no stream: %s", self._name, error.reason)
            return True
        if answer.status != 200 or answer.kind != _EVENTS:
            answer.close()
            # A fresh session that is not known for its stream has none: it would never end.
            if answer.status == 404 and session is not None and stream.was_open:
                self._reject(None, session)
                return False
            return answer.status in (408, 429) or (answer.status >= 500 and answer.status != 501)
        stream.was_open = self._streaming = True
        opened.set()
        self._follow(answer, stream)
        return True

    def _follow(self, answer: Answer, stream: _Stream) -> None:
        """Hand a stream's messages over until it ends."""
        events = self._events(answer, endless=True)
        events.last_id = stream.last_id
        try:
            for event in events:
                stream.failures = 0
                if event.data is not None and event.kind == "message":
                    for message in self._parse(event.data.encode("utf-8")):
                        self._report(message)
        except (WebError, MCPError) as error:
            _log.debug("! %s: a stream broke: %s", self._name, error)
        finally:
            answer.close()
        if events.last_id != stream.last_id:
            stream.failures = 0
        stream.last_id, stream.retry = events.last_id, events.retry

    # ------------------------------------------------------------ the end

    def _say_goodbye(self, deadline: Deadline) -> None:
        """End the session with DELETE; whether the server likes it is its own affair."""
        with self._lock:
            session = self._session
        if session is None:
            return
        handle, done = Handle(), threading.Event()

        def delete() -> None:
            try:
                headers = {**ACCEPT, **self._legacy_headers(session)}
                self._web.send(handle, "DELETE", self._plan.target, headers).close()
            except WebError as error:
                _log.debug("! %s: DELETE: %s", self._name, error.reason)
            finally:
                done.set()

        if self._side.post(delete):
            done.wait(deadline.at_most(GOODBYE_TIME))
        handle.end()


def _session_in(answer: Answer) -> str | None:
    """Return the id that a response gives the session, if it is one that can be sent back."""
    given = answer.headers.get(_SESSION, "")
    return given if given and len(given) <= 1024 and set(given) <= _VISIBLE else None
