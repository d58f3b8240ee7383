"""What servers ask of a client: which requests are open, and the input rounds. Floor 1; pure.

Theory of operation. Both eras ask the same three things. A legacy server sends a request of its own
(row C14); a modern one answers ours with ``input_required``, and ours is sent again with the
answers (row C28, spec: basic/patterns/mrtr). Either way an ``Inquiry`` goes to the handlers, and
comes back through ``Machine.answered``.

1. ``jobs`` counts what the handlers were given and have not brought back, also where nobody wants
   the answer any more: a handler that hangs keeps its thread. Legacy requests past
   ``MAX_HANDLERS`` are refused; input rounds may also wait for a thread, as many as may queue.
2. An ``Inquiry`` is ``open`` until it is answered, cancelled by the server, or its session or
   request has ended. Only an open one's answer is sent.
3. A request in an input round is not on the wire and holds no place in the window. So a handler may
   make calls; it goes before everything that was queued when it is sent again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from raxol_sync.client import frames
from raxol_sync.client.effects import Entry, Failure, Ignored, Inquiry, Send, Settle, Wanted
from raxol_sync.errors import (
    BUSY,
    METHOD_NOT_FOUND,
    Busy,
    HandlerFailed,
    InputRequired,
    InvalidResponse,
    MCPError,
)
from raxol_sync.protocol import wire
from raxol_sync.protocol.wire import Request

MAX_HANDLERS = 8  # handlers that run at once, each on a thread
MAX_ROUNDS = 10  # how often a request is sent again with input
ASKABLE = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
ASKING = frozenset({"tools/call", "prompts/get", "resources/read"})  # may be answered by asking


class Desk:
    """The inquiries of one session. Not thread-safe: the machine's owner serialises."""

    def __init__(self, handled: Collection[str], *, waiting: int) -> None:
        """``handled``: the methods with a handler; ``waiting``: rounds without a thread yet."""
        self.handled = frozenset(handled)
        self._limit = MAX_HANDLERS + waiting
        self._requests: dict[int | str, Inquiry] = {}  # of a legacy server, by its id
        self._rounds: dict[Entry, Inquiry] = {}
        self.jobs = 0

    # ------------------------------------------------------------ legacy requests (row C14)

    def take_request(self, request: Request, *, ready: bool = True) -> Send | Inquiry | Ignored:
        """Take a server's request: a job for the handlers, or what it is refused with.

        ``ready``: the handshake is over; before that a server may only ask for a ``ping``.
        """
        if request.id in self._requests:
            return Ignored("a request with the id of one that is open")
        if not ready or request.method not in self.handled:
            return _refuse(request.id, METHOD_NOT_FOUND, "Method not found")
        if self.jobs >= MAX_HANDLERS:
            reason = f"busy: this client runs {MAX_HANDLERS} handlers at once"
            limits = {"scope": "handlers", "limit": MAX_HANDLERS}
            return _refuse(request.id, BUSY, reason, limits)
        wanted = {"": Wanted(request.method, request.params)}
        inquiry = Inquiry(wanted, request_id=request.id)
        self._requests[request.id] = inquiry
        self.jobs += 1
        return inquiry

    def cancel_request(self, params: Mapping[str, Any]) -> None:
        """The server no longer wants the answer to its request: none is sent."""
        request_id = params.get("requestId")
        if type(request_id) is int or type(request_id) is str:
            inquiry = self._requests.pop(request_id, None)
            if inquiry is not None:
                inquiry.open = False

    # ------------------------------------------------------------ input rounds (row C28)

    def take_round(
        self, entry: Entry, result: Mapping[str, Any], unanswered: MCPError
    ) -> Inquiry | MCPError | None:
        """Take an ``input_required`` result: a job, an error, or ``None``: send it again at once.

        ``unanswered`` is the error for a request that has no handler.
        """
        method = entry.method
        if method not in ASKING:
            return InvalidResponse(method, "a result of this method may not require input")
        wanted = _wanted(result.get("inputRequests", {}))
        state = result.get("requestState")
        if isinstance(wanted, str):
            return InvalidResponse(method, wanted)
        if not (state is None or isinstance(state, str)):
            return InvalidResponse(method, "its requestState is not a string")
        if not wanted and state is None:
            return InvalidResponse(method, "it requires input and asks for none")
        if not all(item.method in self.handled for item in wanted.values()):
            return unanswered
        if entry.rounds >= MAX_ROUNDS:
            return InvalidResponse(method, f"after {MAX_ROUNDS} rounds it still requires input")
        if wanted and self.jobs >= self._limit:
            return Busy("handlers", self._limit)
        entry.rounds += 1
        if not wanted:
            entry.extra = frames.extras(None, state)
            return None
        entry.state = "asking"
        inquiry = self._rounds[entry] = Inquiry(wanted, entry=entry, request_state=state)
        self.jobs += 1
        return inquiry

    def give_up(self, entry: Entry) -> None:
        """Nobody waits for this request any more: its round's answers are dropped."""
        self._rounds.pop(entry).open = False

    # ------------------------------------------------------------ endings

    def finish(self, inquiry: Inquiry, outcome: bytes | Failure) -> Send | Settle | Entry | None:
        """Take what the handlers brought back: an answer to send, or a request to send again.

        A ``Settle`` where a round has failed; ``None`` where nobody wants the answer.
        """
        self.jobs -= 1
        if not inquiry.open:
            return None
        inquiry.open = False
        entry = inquiry.entry
        if entry is None:
            assert inquiry.request_id is not None
            del self._requests[inquiry.request_id]
            if isinstance(outcome, Failure):
                return _refuse(inquiry.request_id, outcome.code, outcome.reason)
            return Send(frames.answer(inquiry.request_id, outcome))
        del self._rounds[entry]
        if isinstance(outcome, Failure):
            entry.state = "done"
            return Settle(entry, None, _failed(inquiry, outcome))
        entry.extra = frames.extras(outcome, inquiry.request_state)
        return entry

    def clear(self) -> list[Entry]:
        """The session has ended: drop every answer, return our requests that waited for one."""
        entries = list(self._rounds)
        for inquiry in (*self._requests.values(), *self._rounds.values()):
            inquiry.open = False
        self._requests.clear()
        self._rounds.clear()
        return entries


def _refuse(request_id: int | str, code: int, reason: str, data: object = None) -> Send:
    return Send(frames.message(wire.error(request_id, code, reason, data)))


def _failed(inquiry: Inquiry, failure: Failure) -> InputRequired:
    requests = {key: item._asdict() for key, item in inquiry.wanted.items()}
    error = HandlerFailed(requests, failure.reason)
    error.__cause__ = failure.cause
    return error


def _wanted(requests: object) -> dict[str, Wanted] | str:
    """Return input requests, or what is wrong with them."""
    if requests is None:
        return {}
    if not isinstance(requests, dict):
        return "its inputRequests are not an object"
    wanted: dict[str, Wanted] = {}
    for key, item in requests.items():
        method = item.get("method") if isinstance(item, dict) else None
        if not (isinstance(method, str) and method in ASKABLE):
            return "one of its inputRequests has no method that a server may ask for"
        params = item.get("params")
        if not (params is None or isinstance(params, dict)):
            return "the params of one of its inputRequests are not an object"
        wanted[key] = Wanted(method, params or {})
    return wanted
