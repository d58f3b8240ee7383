"""One POST that wants an answer: JSON, or an event stream once it has more to say. Floor 3.

Theory of operation (rows S48 to S50). The request goes to the dispatcher with a channel of its own;
the host's thread waits on that. If the first thing that comes is the response, it is the answer, as
plain JSON. If something else comes first, or nothing for ``SILENT`` seconds, the answer becomes an
event stream: then keep-alive comments show whether the client is still there.

A modern client that leaves cancels its request. A legacy one does not: it may come back for its
stream, which its session keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from raxol_sync._deadline import Deadline
from raxol_sync.protocol import versions, wire
from raxol_sync.protocol.versions import Revision
from raxol_sync.protocol.wire import Request
from raxol_sync.server.batch import Part
from raxol_sync.server.channel import Channel, Item
from raxol_sync.server.connections import Call, Visit
from raxol_sync.server.http import events, status
from raxol_sync.server.http.events import EventId
from raxol_sync.server.http.presence import Presence
from raxol_sync.server.http.replies import (
    Answer,
    Header,
    Reply,
    Stream,
    busy,
    json_reply,
    refusal,
)
from raxol_sync.server.http.service import Service
from raxol_sync.server.http.sessions import NO_SESSION, Session
from raxol_sync.server.http.streams import HEADERS, EventStream, encode_item

Json = dict[str, Any]

SILENT = 1.0  # seconds without a word after which an answer becomes an event stream
_SETTLING = 1.0  # seconds
_QUICK = 0.02  # seconds; answers that come sooner need nobody to watch their client
REQUEST_CANCELLED = -32800
PRIMED_SINCE = "2025-11-25"  # clients of this revision come back to streams that close early


class Anonymous:
    """The ``conn_id`` of an HTTP request without a session: itself (row S24)."""

    __slots__ = ("__weakref__",)

    def __repr__(self) -> str:
        return "<HTTP request>"


class Exchange:
    """Requests of one POST, and their answer. For the host's thread."""

    def __init__(
        self,
        service: Service,
        visit: Visit,
        requests: Sequence[Request],
        revision: Revision,
        *,
        session: Session | None = None,
        batch: bool = False,
        headers: Sequence[Header] = (),
    ) -> None:
        self._service = service
        self._visit = visit
        self._requests = requests
        self._revision = revision
        self._session = session
        self._batch = batch
        self._headers = list(headers)
        self._modern = revision is versions.MODERN
        self._listens = False
        self._channel = Channel()
        self._reader = self._channel.attach()
        self._presence = Presence(visit.environ)
        self._calls: list[Call] = []
        self._conn_id: object = session if session is not None else Anonymous()
        self._placed = False  # a place for a stream is ours
        self._streams = False  # a stream has taken over, with the place and the session

    @property
    def succeeded(self) -> bool:
        """Whether all requests have been answered with a result."""
        answers = [call.response for call in self._calls]
        return all(answer is not None and "result" in answer for answer in answers)

    def run(self, answers: Sequence[Json] = ()) -> Answer:
        """Have the requests handled; return their answer. Blocks for ``SILENT`` seconds at most.

        Where there is no place for one more stream it blocks until the response is there.
        ``answers``: what else of a batch is answered.
        """
        for answer in answers:
            self._channel.put(answer)
        service, request = self._service, self._requests[0]
        self._listens = self._modern and request.method == "subscriptions/listen"
        self._channel.pollable = self._session is not None and (
            self._revision.name >= PRIMED_SINCE and not self._batch
        )
        try:
            if self._listens and not self._take_place():
                return busy("event streams", service.places.limit, request.id)
            self._begin()
            items = self._reader.take(_QUICK)
            if items is not None and not items:
                self._presence.watch(self._gone)
                items = self._wait(SILENT - _QUICK)
            if items and self._complete(items):
                return self._json(items)
            if items is None and self._reader.retry is None:
                return self._dropped()
            return self._stream(items or [])
        except BaseException:  # the host's thread was interrupted: nobody waits for an answer
            self._cancel()
            raise
        finally:
            if self._placed and not self._streams:
                service.places.give_back()

    def _begin(self) -> None:
        dispatch, conn_id = self._service.dispatch, self._conn_id
        boxes: list[Any] = [self._channel]
        if self._batch:
            boxes = Part.split(self._channel, len(self._requests))
        for request, box in zip(self._requests, boxes, strict=True):
            self._calls.append(dispatch.begin(request, conn_id, box, self._visit))

    def _wait(self, seconds: float) -> list[Item] | None:
        """Wait for a message, and look for the client now and then."""
        deadline = Deadline(seconds)
        while True:
            step = self._presence.step(deadline.at_most(seconds))
            items = self._reader.take(step)
            if items is None or items or deadline.expired():
                return items
            if self._presence.gone():
                self._gone()

    def _gone(self) -> None:
        """The client has gone. Called by the host on any thread, or by this one.

        A legacy one may only have said that it sends no more; its call goes on in any case, and its
        answer is kept where there is a session to come back to.
        """
        if self._modern or self._streams:
            self._reader.stop()
        if self._modern:
            self._cancel()

    def _cancel(self) -> None:
        for call in self._calls:
            self._service.engine.cancel(call)

    def _complete(self, items: list[Item]) -> bool:
        """Whether these are responses, and all there will be."""
        return self._channel.ended and all("method" not in item.message for item in items)

    # ------------------------------------------------------------ JSON

    def _json(self, items: list[Item]) -> Reply:
        if self._batch:
            return json_reply(200, [item.message for item in items], self._headers)
        message = items[0].message
        if not self._modern:
            return json_reply(status.of_legacy(message), message, self._headers)
        return json_reply(status.of_modern(self._requests[0], message), message, self._headers)

    def _dropped(self) -> Reply:
        """Return the answer to requests that got none."""
        if self._session is not None and self._session.ended and not self._service.engine.closed:
            return refusal(404, NO_SESSION)
        messages = [self._unanswered(request) for request in self._requests]
        return json_reply(200, messages if self._batch else messages[0], self._headers)

    def _unanswered(self, request: Request) -> Json:
        engine = self._service.engine
        if engine.closed:
            refused = engine.refused()
            return wire.error(request.id, refused.code, refused.message)
        return wire.error(request.id, REQUEST_CANCELLED, "the request was cancelled")

    def _without_stream(self, items: list[Item] | None) -> Reply:
        """Wait for the response alone: there is no place for a stream.

        What else the request causes is left out; a question to the client cannot be, and ends it.
        """
        kept: list[Item] = []
        if self._reader.retry is not None:  # it was to end early, and nobody could come back to it
            self._channel.pollable = False
            self._reader = self._channel.attach()
        while items is not None:
            if any("method" in item.message and "id" in item.message for item in items):
                self._cancel()
                limit = self._service.places.limit
                return busy("event streams", limit, self._requests[0].id)
            kept += [item for item in items if "method" not in item.message]
            if self._channel.ended:
                break
            items = self._wait(SILENT)
        if len(kept) < len(self._requests) and not (self._batch and kept):
            return self._dropped()
        return self._json(kept)

    # ------------------------------------------------------------ event stream

    def _take_place(self) -> bool:
        self._placed = self._placed or self._service.places.take(self._visit.environ)
        return self._placed

    def _stream(self, items: list[Item]) -> Answer:
        if not self._take_place():
            return self._without_stream(items)
        self._presence.watch(self._gone)
        number, first = self._resumable(items)
        stream = EventStream(
            self._reader,
            self._presence,
            first=first + b"".join(encode_item(item, number) for item in items),
            number=number,
            keep_alive=self._service.options.keep_alive,
            at_end=self._last_words,
            on_close=self._closed,
        )
        self._streams = True
        if self._listens:
            self._service.opened(self)
        return Stream([*HEADERS, *self._headers], stream)

    def finish(self) -> None:
        """End a listen with its result: the application closes. From any thread."""
        self._service.dispatch.end_listens(self._conn_id)

    def _resumable(self, items: list[Item]) -> tuple[int | None, bytes]:
        """Have a session keep the stream; return its number and what goes out first."""
        session = self._session
        if session is None or self._modern:
            return None, b""
        self._channel.keep(items)
        number = self._service.sessions.keep(session, self._channel)
        if not self._channel.pollable:
            return number, b""
        retry = self._reader.retry
        return number, events.priming(EventId(number, 0), 1.0 if retry is None else retry)

    def _last_words(self) -> bytes:
        """Return what a stream ends with: for requests that got no response, why they did not."""
        if self._reader.displaced:
            return b""
        silent = [
            self._unanswered(request)
            for request, call in zip(self._requests, self._calls, strict=True)
            if call.settled and call.response is None
        ]
        return b"".join(events.event(wire.encode(message)) for message in silent)

    def _closed(self, finished: bool) -> None:
        """The stream is over: its place is free, and a client that left has left."""
        service = self._service
        service.places.give_back()
        service.forget(self)
        if not finished and self._modern:
            self._cancel()
        session = self._session
        if session is not None:
            for call in self._calls:
                service.engine.hook(call, partial(self._stored, session))
            service.sessions.leave(session)

    def _stored(self, session: Session, ending: str) -> None:
        if self._channel.keeps:
            self._service.sessions.settled(session, self._channel)
