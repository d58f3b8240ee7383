"""The rules of a client's session, without threads, clocks, locks or I/O. Floor 1; pure.

Theory of operation. The owner serialises every call and performs the effects that come back, in
their order: frames go to the outbox before the owner lets anyone else in, so that the order on the
wire is the order decided here.

1. A request is ``new``, then ``sent`` if the window has room, else ``queued``, then ``done``: see
   ``Window``.
2. Whoever takes a request out (an answer, ``abandon``, ``fail``) gives it its outcome; all others
   find nothing. So each request has exactly one.
3. The era is settled by row C22's rules: ``begin`` with a probe (``server/discover``), with
   ``initialize``, or with neither. ``silence`` says that the probe's time is up; then both are open
   and the probe's answer still wins if it comes first.
4. Nothing that a peer sends raises here.
5. What the server asks for is kept by the ``Desk``: see there. What HTTP adds: ``web_machine``.
6. Listens are beside the window (row C13): see ``Listens``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

from raxol_sync.client import frames
from raxol_sync.client.desk import Desk
from raxol_sync.client.effects import (
    Changed,
    Deliver,
    Effect,
    Entry,
    Failure,
    Ignored,
    Inquiry,
    Restart,
    Retract,
    Send,
    Settle,
)
from raxol_sync.client.greeting import Greeting, declares_nothing
from raxol_sync.client.listens import Listens
from raxol_sync.client.results import fresh, outcome_of
from raxol_sync.client.signals import Failed, Signal
from raxol_sync.client.window import Window
from raxol_sync.errors import (
    INTERNAL_ERROR,
    ConnectFailed,
    InvalidResponse,
    MCPError,
    ServerExited,
)
from raxol_sync.protocol import negotiation, versions, wire
from raxol_sync.protocol.negotiation import Agreement, Hopeless, Legacy, Modern, Retry
from raxol_sync.protocol.wire import Incoming, Malformed, Notification, Request, Response

Opening = Literal["discover", "initialize", "modern", "sse"]
"""How to begin: with the probe, with ``initialize``, at once, or on the older HTTP transport."""


class Machine:
    """One client's session. Not thread-safe: the owner serialises.

    Attributes:
        state: ``starting``, ``initializing``, ``ready`` or ``closed`` (row C05).
        agreement: what was negotiated, ``None`` before.
        described: the server itself has said what the agreement holds.
        era: ``legacy``, ``modern``, ``None`` before it is known.
        error: why the session failed, ``None`` while it has not.
        proven: a request was answered in this session.
        streaming: a stream carries what the server says unasked.
        sessions: how many sessions have become ready so far.
    """

    def __init__(
        self,
        *,
        window: int,
        queue_limit: int,
        client_info: Mapping[str, Any],
        pinned: str | None = None,
        handled: Collection[str] = (),
        capabilities: Callable[[str], Mapping[str, Any]] = declares_nothing,
    ) -> None:
        """Begin without a session.

        Args:
            window: how many requests may be on the wire.
            pinned: the only revision.
            handled: what the server may ask for, as methods; the rest is refused.
            capabilities: what is declared in a revision.
        """
        self.state = "starting"
        self.agreement: Agreement | None = None
        self.described = False
        self.era: versions.Era | None = None
        self.error: BaseException | None = None
        self._window = Window(window, queue_limit=queue_limit)
        self._greeting = Greeting(client_info, capabilities)
        self._pinned = pinned
        self.proven = False
        self.streaming = True
        self.sessions = 0
        self._listens = Listens()
        self._desk = Desk(handled, waiting=queue_limit)
        self._probe_id: int | None = None
        self._init_id: int | None = None
        self._probed = False  # this process was asked server/discover
        self._retried = False  # ... twice
        self._restarted = False
        self._refused: str | None = None  # why initialize failed, while the probe is open

    # ------------------------------------------------------------ queries

    @property
    def pending(self) -> int:
        """How many requests are on the wire."""
        return len(self._window.sent)

    @property
    def queued(self) -> int:
        """How many requests wait for room in the window."""
        return self._window.queued

    @property
    def crowded(self) -> bool:
        """Whether all that is on the wire may be waiting for handlers (row C14)."""
        return self._desk.jobs >= self._window.size

    @property
    def pooled(self) -> bool:
        """Whether this is a session of a legacy server over HTTP."""
        return False

    @property
    def accepts(self) -> bool:
        """Whether a request may be submitted now."""
        return self.state == "ready"

    @property
    def probing(self) -> bool:
        """Whether only the probe is open: its silence means ``initialize``."""
        unpinned = self._pinned is None
        return unpinned and self._probe_id is not None and self._init_id is None

    # ------------------------------------------------------------ connecting

    def begin(self, opening: Opening) -> list[Effect]:
        """Begin a session on a fresh transport."""
        self._probe_id = self._init_id = self._refused = None
        self._probed = self._retried = False
        self.proven = False
        self.era, self.agreement, self._window.meta = None, None, None
        self.state = "initializing"
        if opening == "modern":
            effects = self._agree("modern", Agreement(versions.MODERN.name, {}, {}, None))
            self.described = False
            return effects
        if opening == "discover":
            return [Changed(), self._discover(self._pinned or versions.MODERN.name)]
        return [Changed(), self._initialize()]

    def silence(self) -> list[Effect]:
        """The probe's time is up: send ``initialize`` to the same process (row C22)."""
        return [self._initialize()] if self.state == "initializing" and self.probing else []

    def lost(self, error: BaseException) -> list[Effect]:
        """The transport has ended. A process that exits on the probe is started anew, once."""
        fresh = self.state == "initializing" and self._probed and not self._restarted
        if fresh and self._pinned is None and isinstance(error, ServerExited):
            self._restarted = True
            return [Restart("initialize")]
        return self.fail(error)

    def fail(self, error: BaseException) -> list[Effect]:
        """Close the session; every request that is open fails with ``error``."""
        sent, queued = self._window.clear()
        outstanding = [*sent, *self._desk.clear(), *queued, *self._listens.clear()]
        self._probe_id = self._init_id = None
        self.state, self.error = "closed", error
        for entry in outstanding:
            entry.state = "done"
        return [Changed(), *(Settle(entry, None, fresh(error)) for entry in outstanding)]

    def close(self, error: BaseException) -> list[Effect]:
        """Close the session because its owner says so: no failure is recorded."""
        before = self.error
        effects = self.fail(error)
        self.error = before
        return effects

    # ------------------------------------------------------------ requests

    def set_log_level(self, level: str) -> None:
        """Remember the level that modern requests ask for."""
        self._greeting.log_level = level
        if self.era == "modern" and self.agreement is not None:
            self._window.meta = self._greeting.meta(self.agreement.version)

    def submit(self, entry: Entry, *, patient: bool = True) -> list[Effect]:
        """Send a request, or queue it. The session must accept it.

        Raises:
            Busy: the queue is full, or the window is and ``patient`` is false. Nothing is kept.
        """
        return self._window.submit(entry, ready=self.state == "ready", patient=patient)

    def abandon(self, entry: Entry, reason: str) -> list[Effect] | None:
        """Give a request up; ``None`` if it had its outcome already.

        The caller settles it. What was sent is taken back from the outbox or cancelled on the wire.
        """
        if entry.state in ("queued", "asking", "refreshing"):
            if entry.state == "asking":
                self._desk.give_up(entry)
            elif entry.state == "queued":
                self._window.leave_queue(entry)
            entry.state = "done"
            return []
        if entry.state not in ("sent", "listening") or entry.frame is None:
            return None
        self._take(entry.id)
        entry.frame.reason = reason
        params = {"requestId": entry.id, "reason": reason}
        note = frames.message(wire.notification("notifications/cancelled", params))
        return [Retract(entry.frame, note), *self._promote()]

    def drop(self, entry: Entry, error: BaseException) -> list[Effect]:
        """Settle a request whose frame found no room on the outbox: it was never sent."""
        if self._take(entry.id) is None:
            return []
        return [Settle(entry, None, error)]

    def listen(self, entry: Entry) -> list[Effect]:
        """Send a listen to a modern server: it waits for nothing and takes no place."""
        frame = self._window.compose(entry)
        self._listens.add(entry)
        return [Send(frame, entry)]

    def _take(self, request_id: object) -> Entry | None:
        """Take a request out that is on the wire; ``None`` where there is none with this id."""
        entry = self._window.take(request_id)
        return self._listens.take(request_id) if entry is None else entry

    def _promote(self) -> list[Effect]:
        """Send what the window has room for, oldest first."""
        return self._window.promote() if self.state == "ready" else []

    # ------------------------------------------------------------ what the server asks for

    def answered(self, inquiry: Inquiry, outcome: bytes | Failure) -> list[Effect]:
        """Take what handlers made of an ``Inquiry``: a JSON object, encoded, or a failure."""
        done = self._desk.finish(inquiry, outcome)
        if isinstance(done, Entry):
            return self._send_again(done)
        return [] if done is None else [done]

    def _send_again(self, entry: Entry) -> list[Effect]:
        """Send a request once more, with input; it goes before what is queued."""
        self._window.put_first(entry)
        return self._promote()

    def _on_input_required(
        self, entry: Entry, result: Mapping[str, Any], unanswered: MCPError
    ) -> list[Effect]:
        """The server wants input before it answers this request (row C28)."""
        taken = self._desk.take_round(entry, result, unanswered)
        if taken is None:
            return self._send_again(entry)
        if isinstance(taken, Inquiry):
            return [taken, *self._promote()]
        entry.state = "done"
        return [Settle(entry, None, taken), *self._promote()]

    # ------------------------------------------------------------ what the peer sends

    def receive(self, message: Incoming | Signal) -> list[Effect]:
        """Take one message of the peer's, or what the transport has to say."""
        if self.state == "closed":
            return []
        if isinstance(message, Response):
            return self._on_response(message)
        if isinstance(message, Notification):
            return self._on_notification(message)
        if isinstance(message, Request):
            return self._on_request(message)
        if isinstance(message, Failed):
            entry = self._take(message.id)
            return [] if entry is None else [Settle(entry, None, message.error), *self._promote()]
        return self._on_malformed(message) if isinstance(message, Malformed) else []

    def _on_response(self, answer: Response) -> list[Effect]:
        if answer.id is None:
            return [Ignored("an error without an id")]
        if answer.id == self._probe_id:
            self._probe_id = None
            return self._on_discover(answer)
        if answer.id == self._init_id:
            self._init_id = None
            return self._on_initialize(answer)
        entry = self._take(answer.id)
        if entry is None:
            return [Ignored("an answer to no open request")]
        modern, handled = self.era == "modern", self._desk.handled
        result, error = outcome_of(entry.method, answer, modern=modern, handled=handled)
        if error is not None and result is not None:
            return self._on_input_required(entry, result, error)
        settle = Settle(entry, result, error)
        self.proven = True
        return [settle, *self._promote()] if self.queued else [settle]

    def _on_notification(self, note: Notification) -> list[Effect]:
        if note.method != "notifications/progress":
            found: list[Effect] = [Deliver(note.method, note.params, self._listens.of(note.params))]
            if note.method == "notifications/cancelled":
                self._desk.cancel_request(note.params)
                ended = self._listens.take(note.params.get("requestId"))
                found += [] if ended is None else [Settle(ended, {})]
            return found
        token = note.params.get("progressToken")
        entry = self._window.sent.get(token) if type(token) is int else None
        if entry is not None and not entry.progress:
            entry = None
        return [Deliver(note.method, note.params, entry)]

    def _on_request(self, request: Request) -> list[Effect]:
        if self.era == "modern":  # there a client never answers, and a server never asks this way
            return [Ignored("a request from a modern server")]
        if request.method == "ping":
            return [Send(frames.message(wire.result(request.id, {})))]
        return [self._desk.take_request(request, ready=self.state == "ready")]

    def _on_malformed(self, broken: Malformed) -> list[Effect]:
        entry = None if broken.answer else self._take(broken.id)
        if entry is not None:
            error = InvalidResponse(entry.method, broken.reason)
            return [Settle(entry, None, error), *self._promote()]
        if broken.id is not None and broken.id in (self._probe_id, self._init_id):
            failure = {"code": INTERNAL_ERROR, "message": broken.reason}
            return self._on_response(Response(broken.id, None, failure))
        if broken.answer and broken.id is not None and self.era == "legacy":
            refusal = wire.error(broken.id, broken.code, broken.reason)
            return [Send(frames.message(refusal)), Ignored(broken.reason)]
        return [Ignored(broken.reason)]

    # ------------------------------------------------------------ negotiation (row C22)

    def _discover(self, version: str) -> Send:
        self._probe_id = self._window.new_id()
        self._probed = True
        return Send(self._greeting.discover(self._probe_id, version))

    def _initialize(self) -> Send:
        self._init_id = self._window.new_id()
        version = self._pinned or versions.NEWEST_LEGACY.name
        return Send(self._greeting.initialize(self._init_id, version))

    def _on_discover(self, answer: Response) -> list[Effect]:
        verdict = negotiation.judge_discover(answer, retried=self._retried)
        if isinstance(verdict, Modern):
            return self._agree("modern", negotiation.discovered(verdict))
        if isinstance(verdict, Retry):
            self._retried = True
            return [self._discover(verdict.version)]
        if self._init_id is not None:
            return []  # initialize is open as well: its answer decides now
        if self._refused is not None:
            return self.fail(ConnectFailed(self._refused))
        if isinstance(verdict, Hopeless):
            return self.fail(ConnectFailed(verdict.reason))
        return self._fall_back(verdict)

    def _fall_back(self, verdict: Legacy) -> list[Effect]:
        if self._pinned is None:
            return [self._initialize()]
        reason = f"the server does not speak {self._pinned} (protocol_version=): {verdict.reason}"
        return self.fail(ConnectFailed(reason))

    def _on_initialize(self, answer: Response) -> list[Effect]:
        verdict = negotiation.judge_initialize(answer)
        if isinstance(verdict, Agreement) and self._pinned not in (None, verdict.version):
            verdict = Hopeless(
                f"the server answers with {verdict.version}, not {self._pinned} (protocol_version=)"
            )
        if isinstance(verdict, Hopeless):
            if self._probe_id is not None:
                self._refused = verdict.reason  # the probe is still open and may yet say modern
                return []
            return self.fail(ConnectFailed(verdict.reason))
        return self._greeted(verdict)

    def _greeted(self, agreement: Agreement) -> list[Effect]:
        ready = frames.message(wire.notification("notifications/initialized"))
        return [Send(ready), *self._agree("legacy", agreement)]

    def _agree(self, era: versions.Era, agreement: Agreement) -> list[Effect]:
        self._probe_id = self._init_id = None
        self._restarted = False
        self.sessions += 1
        self.era, self.agreement, self.state, self.error = era, agreement, "ready", None
        self.described = True
        self._window.meta = self._greeting.meta(agreement.version) if era == "modern" else None
        return [Changed()]
