"""The rules that HTTP adds to a session (rows C12, C17, C22, C29). Floor 1; pure.

1. A request may fail alone: the transport says so with ``Failed``.
2. A legacy session is ready once the transport says ``Opened``: ``initialized`` was taken, and the
   GET stream is there if there is one.
3. A session may be rejected while it is used. Then one ``initialize`` goes out on the same
   connection, however many requests were rejected; what comes meanwhile waits in the queue, if the
   policy pauses. Requests that are on the wire go on.
4. A server that was modern lately is taken at its word, until its first answer says otherwise.
"""

from __future__ import annotations

from typing import Any

from raxol_sync.client import frames
from raxol_sync.client.effects import Changed, Effect, Entry, Refresh, Restart, Send, Settle
from raxol_sync.client.machine import Machine, Opening
from raxol_sync.client.results import fresh
from raxol_sync.client.signals import Failed, Opened, Rejected, Signal
from raxol_sync.client.verdicts import stale, undecided, wants_older
from raxol_sync.errors import (
    HEADER_MISMATCH,
    ConnectFailed,
    HTTPStatusError,
    MCPError,
    RPCError,
    SessionRejected,
)
from raxol_sync.protocol import wire
from raxol_sync.protocol.negotiation import Agreement, Legacy
from raxol_sync.protocol.wire import Incoming, Response


class WebMachine(Machine):
    """A session over HTTP. Not thread-safe: the owner serialises."""

    def __init__(self, *, pauses: bool, retry_rejected: bool, **others: Any) -> None:
        """As ``Machine``.

        Args:
            pauses: requests wait while a rejected session is established anew.
            retry_rejected: a request whose session was rejected is sent once more.
            others: see ``Machine``.
        """
        super().__init__(**others)
        self._pauses = pauses
        self._retry_rejected = retry_rejected
        self._resuming = False  # the session was rejected and is established anew
        self._trusting = False  # it is taken for modern because it was so lately
        self._opening: Opening = "initialize"
        self._refreshing: set[Entry] = set()  # their headers are made anew (row C30)
        self._owing = False  # initialize waits until the one place in the window is free

    @property
    def pooled(self) -> bool:
        """Whether this is a session of a legacy server."""
        return self.era == "legacy"

    @property
    def accepts(self) -> bool:
        """Whether a request may be submitted now."""
        return self.state == "ready" or (self._resuming and self._pauses)

    def begin(self, opening: Opening) -> list[Effect]:
        """Begin a session on a fresh transport."""
        self._opening, self._resuming, self._owing = opening, False, False
        self._trusting = opening == "modern"
        return super().begin(opening)

    def submit(self, entry: Entry, *, patient: bool = True) -> list[Effect]:
        """Send a request, or queue it, unless it was given up while its headers were made."""
        self._refreshing.discard(entry)
        return [] if entry.state == "done" else super().submit(entry, patient=patient)

    def abandon(self, entry: Entry, reason: str) -> list[Effect] | None:
        """Give a request up; ``None`` if it had its outcome already."""
        self._refreshing.discard(entry)
        return super().abandon(entry, reason)

    def fail(self, error: BaseException) -> list[Effect]:
        """Close the session; every request that is open fails with ``error``."""
        self._resuming = self._owing = False
        waiting, self._refreshing = self._refreshing, set()
        for entry in waiting:
            entry.state = "done"
        settled = [Settle(entry, None, fresh(error)) for entry in waiting]
        return [*super().fail(error), *settled]

    def receive(self, message: Incoming | Signal) -> list[Effect]:
        """Take one message of the peer's, or what the transport has to say."""
        if self.state != "closed":
            if isinstance(message, Failed):
                return self._on_failed(message)
            if isinstance(message, Rejected):
                return self._on_rejected(message)
            if isinstance(message, Opened):
                return self._on_opened(message)
        return super().receive(message)

    def _on_response(self, answer: Response) -> list[Effect]:
        effects = super()._on_response(answer)
        if self._trusting and effects and isinstance(effects[0], Settle):
            if stale(effects[0].error):
                return [effects[0], *self._distrust()]  # also fails what was just promoted
            self._trusting = False
        if effects and isinstance(effects[0], Settle) and _mismatch(effects[0]):
            entry = effects[0].entry
            entry.state = "refreshing"
            self._refreshing.add(entry)
            return [Refresh(entry), *effects[1:]]
        return [*effects, *self._owed()] if self._owing else effects

    # ------------------------------------------------------------ the handshake

    def _greeted(self, agreement: Agreement) -> list[Effect]:
        self._probe_id = None  # it lost; its failure must not be taken for the session's
        self.era, self.agreement, self.described = "legacy", agreement, True
        ready = frames.message(wire.notification("notifications/initialized"))
        return [Send(ready), Changed()]

    def _on_opened(self, opened: Opened) -> list[Effect]:
        if self.state != "initializing" or self.era != "legacy" or self.agreement is None:
            return []
        self.streaming, self._resuming = opened.stream, False
        return [*self._agree("legacy", self.agreement), *self._promote()]

    def _on_probe_failed(self, error: MCPError) -> list[Effect]:
        if self._init_id is not None:
            return []  # as in _on_discover
        if self._refused is not None:
            return self.fail(ConnectFailed(self._refused))
        if undecided(error):
            return self.fail(error)
        return self._fall_back(Legacy(f"server/discover: {error}"))

    def _on_initialize_failed(self, error: MCPError) -> list[Effect]:
        if self._probe_id is not None:
            self._refused = str(error)
            return []
        older = wants_older(error) and not self._resuming and self._opening != "sse"
        return [Restart("sse")] if older else self.fail(error)

    # ------------------------------------------------------------ requests

    def _on_failed(self, failed: Failed) -> list[Effect]:
        """A request of ours gets no answer."""
        if failed.id == self._probe_id:
            self._probe_id = None
            return self._on_probe_failed(failed.error)
        if failed.id == self._init_id:
            self._init_id = None
            return self._on_initialize_failed(failed.error)
        entry = self._take(failed.id)
        if entry is None:
            return []
        settle = Settle(entry, None, failed.error)
        if self._trusting and stale(failed.error):
            return [settle, *self._distrust()]
        return [settle, *self._promote()]

    def _on_rejected(self, rejected: Rejected) -> list[Effect]:
        """The server has forgotten the session: one handshake, however often it says so."""
        entry = self._window.take(rejected.id)
        effects: list[Effect] = []
        again = not rejected.sent or (self._retry_rejected and entry and not entry.retried)
        if entry is not None and again:
            entry.retried = rejected.sent or entry.retried
            self._window.put_first(entry)
        elif entry is not None:
            effects.append(Settle(entry, None, SessionRejected()))
        if not rejected.current:
            return [*effects, *self._promote()]
        if self.state != "ready":
            return [*effects, *self.fail(ConnectFailed("the server rejects the session it gave"))]
        self._desk.clear()
        self.state, self._resuming = "initializing", True
        # A serialized session has one request on the wire, also where a stream was rejected.
        self._owing = True
        return [*effects, Changed(), *self._owed()]

    def _owed(self) -> list[Effect]:
        """Return the handshake that a rejected session owes, once it may be sent."""
        if not self._owing or (self._window.size == 1 and self._window.sent):
            return []
        self._owing = False
        return [self._initialize()]

    def _promote(self) -> list[Effect]:
        return [*self._owed(), *super()._promote()]

    def _distrust(self) -> list[Effect]:
        """It was modern lately and is no more: ask it again (row C22)."""
        self._trusting = False
        failed = self.fail(HTTPStatusError(400, "the server no longer speaks what it spoke before"))
        return [*failed, Restart("discover")]


def _mismatch(settle: Settle) -> bool:
    """Whether the server's schema asks for other headers than those that were sent (row C30)."""
    error = settle.error
    return (
        isinstance(error, RPCError)
        and error.code == HEADER_MISMATCH
        and settle.entry.refresh is not None
    )
