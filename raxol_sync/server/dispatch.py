"""From a message to who handles it: requests, notifications and answers of clients. Floor 3.

One ``Dispatch`` for each server. It knows no transport; all of them, and ``Server``'s own methods,
hand their messages to ``take``. Thread-safe.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from raxol_sync._delivery import DeliveredFuture
from raxol_sync.errors import METHOD_NOT_FOUND, RPCError
from raxol_sync.protocol import modern, versions, wire
from raxol_sync.server import methods
from raxol_sync.server.app import App, finish
from raxol_sync.server.connections import Call, Visit
from raxol_sync.server.inflight import error_response
from raxol_sync.server.outbox import Box, Consumer
from raxol_sync.server.tools import take_approval

Json = dict[str, Any]
Answer = DeliveredFuture["Json | None"]


class Dispatch:
    """Hands each message to the engine, the methods, or whoever waits for it."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._engine = app.engine

    def take(
        self,
        incoming: wire.Incoming,
        conn_id: object,
        *,
        sink: Consumer | Box | None = None,
        owner: object = None,
        lets_go: bool = False,
        visit: Visit | None = None,
    ) -> Answer:
        """Handle one message without waiting; the future resolves to its response or ``None``.

        Args:
            incoming: what ``wire.classify`` made of it.
            conn_id: which connection it came from.
            sink: where all that it causes goes; see ``Server.request``.
            owner: whose end cancels it, a token of ``Owners``; ``None``: nobody's.
            lets_go: its caller blocks, and is let go when it is parked.
            visit: the HTTP request that brought it.
        """
        if type(incoming) is wire.Request:
            future: Answer = DeliveredFuture(self._engine.deliver)
            self._take_request(incoming, conn_id, sink, future, owner, lets_go, visit)
            return future
        if type(incoming) is wire.Malformed:
            return self._answer_malformed(incoming, conn_id, sink)
        if type(incoming) is wire.Notification:
            self._take_notification(incoming, conn_id)
        elif type(incoming) is wire.Response:
            self._take_response(incoming, conn_id)
        return self._engine.settled(None)

    def begin(self, request: wire.Request, conn_id: object, box: Box, visit: Visit) -> Call:
        """Handle one request without waiting, for a transport that reads all from ``box``.

        As ``take``, but nobody waits for a future: the call tells what became of it.
        """
        return self._take_request(request, conn_id, box, None, None, False, visit)

    def end_listens(self, conn_id: object) -> None:
        """Answer a connection's open listens with their result: their transport closes."""
        for call in self._engine.outstanding():
            if call.conn.conn_id is conn_id:
                answer = methods.end_of_listen(self._app, call)
                if answer is not None:
                    self._engine.settle(call, answer)

    def _take_request(
        self,
        request: wire.Request,
        conn_id: object,
        sink: Consumer | Box | None,
        future: Answer | None,
        owner: object,
        lets_go: bool,
        visit: Visit | None,
    ) -> Call:
        revision, envelope, refusal = None, None, None
        if versions.era_of(request.method, request.params) == "modern" or (
            visit is not None and visit.revision is versions.MODERN  # its header says so
        ):
            revision = versions.MODERN
            checked = modern.read_envelope(request.params, versions.SUPPORTED)
            if isinstance(checked, modern.Refusal):
                refusal = RPCError(*checked)
            else:
                envelope = checked
        engine = self._engine
        call = engine.begin(conn_id, request, revision, envelope, sink, future, owner, visit)
        call.lets_go = lets_go
        try:
            if refusal is not None:
                raise refusal
            self._start(call)
        except RPCError as error:
            engine.settle(call, error_response(call, error))
        except Exception as error:  # a fault of ours: the caller, a transport's reader, goes on
            engine.settle(call, error_response(call, engine.failed(call, error)))
        except BaseException:  # the caller's thread was interrupted: nobody waits for an answer
            engine.cancel(call)
            raise
        return call

    def _start(self, call: Call) -> None:
        if call.settled:
            return
        handler = methods.METHODS.get(call.method)
        if handler is None or call.method not in call.revision.methods:
            raise RPCError(METHOD_NOT_FOUND, f"Method not found: {call.method}")
        if self._app.authorization.guards_reads(call.method):
            self._engine.run(call, partial(methods.guarded, self._app, call, handler), self._finish)
            return
        outcome = handler(self._app, call)
        if callable(outcome):
            self._engine.run(call, outcome, self._finish)
        elif outcome is not None:
            self._engine.settle(call, self._finish(call, outcome))

    def _finish(self, call: Call, value: Json) -> Json:
        return finish(self._app, call, value)

    def _take_notification(self, note: wire.Notification, conn_id: object) -> None:
        if note.method == "notifications/cancelled":
            request_id = note.params.get("requestId")
            if type(request_id) is str or type(request_id) is int:
                self._engine.cancel_id(conn_id, request_id)

    def _take_response(self, answer: wire.Response, conn_id: object) -> None:
        """Take a client's answer; one to nothing that we asked of it is ignored (row S07)."""
        if not take_approval(self._app, conn_id, answer):
            self._app.questions.take(conn_id, answer)

    def _answer_malformed(
        self, bad: wire.Malformed, conn_id: object, sink: Consumer | Box | None
    ) -> Answer:
        if not bad.answer:
            # It may be the answer that somebody waits for: then it is one that says nothing.
            failure = {"code": bad.code, "message": bad.reason}
            self._take_response(wire.Response(bad.id, None, failure), conn_id)
            return self._engine.settled(None)
        revision = self._engine.revision_of(conn_id)
        answer = wire.error(bad.id, bad.code, bad.reason, null_id=revision.null_error_id)
        return self._engine.settled(answer, conn_id=conn_id, sink=sink)
