"""What the session machine asks of its owner, and the requests that it keeps. Floor 1; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from raxol_sync.client.frames import Frame


class Token(Protocol):
    """What waits for a request's outcome: the machine carries it and never calls it."""

    def store(self, result: dict[str, Any] | None, error: BaseException | None) -> None:
        """Keep the outcome; called under the owner's lock."""

    def release(self) -> None:
        """Let whoever waits have the outcome."""


class Entry:
    """One request of ours, from its admission to its outcome. The machine owns its state.

    Attributes:
        method: the JSON-RPC method.
        params: its params without ``_meta``, encoded.
        meta: what its caller wants in ``_meta``, encoded, or ``None``.
        token: what waits for the outcome.
        progress: whether progress is wanted, so that a token goes with it.
        id: its id on the wire, ``None`` until it is sent.
        frame: its frame, ``None`` until it is sent.
        rounds: how often the server has asked for input before it answers (row C28).
        extra: what those rounds add to the params, encoded; ``None`` without any.
        headers: what goes with it in HTTP headers in the modern era, if that is known already.
        holding: what pays for it (a ``metering.Holding``), ``None`` where it costs nothing.
        refresh: gives other headers where the server does not agree with these (row C30), once.
        retried: whether it was sent once more after its session was rejected (row C17).
        state: ``new``, ``queued``, ``sent``, ``asking`` (handlers work on its input),
            ``refreshing`` (its headers are), ``listening`` or ``done``.
    """

    __slots__ = (
        "extra", "frame", "headers", "holding", "id", "meta", "method", "params", "progress",
        "refresh", "retried", "rounds", "state", "token",
    )  # fmt: skip

    def __init__(self, method: str, params: bytes, token: Token, *, progress: bool = False) -> None:
        self.method = method
        self.params = params
        self.token = token
        self.progress = progress
        self.id: int | None = None
        self.frame: Frame | None = None
        self.rounds = 0
        self.extra: bytes | None = None
        self.meta: bytes | None = None
        self.headers: Mapping[str, str] | None = None
        self.refresh: Callable[[], Mapping[str, str] | None] | None = None
        self.holding: Any = None
        self.retried = False
        self.state = "new"


class Wanted(NamedTuple):
    """One thing that a server asks this client for."""

    method: str
    params: Mapping[str, Any]


class Inquiry:
    """One job for the handlers: answer these, in this order (rows C14, C28). Also an effect.

    Attributes:
        wanted: what is asked, by key; of a legacy request it is one thing, under ``""``.
        request_id: the legacy server's request, ``None`` for an input round.
        entry: our request whose input round this is, ``None`` for a legacy request.
        request_state: the round's ``requestState``, ``None`` without one.
        open: whether anybody still wants the answers; the machine says when not.
    """

    __slots__ = ("entry", "open", "request_id", "request_state", "wanted")

    def __init__(
        self,
        wanted: Mapping[str, Wanted],
        *,
        request_id: int | str | None = None,
        entry: Entry | None = None,
        request_state: str | None = None,
    ) -> None:
        self.wanted = wanted
        self.request_id = request_id
        self.entry = entry
        self.request_state = request_state
        self.open = True


class Failure(NamedTuple):
    """Why a handler gave no answer that can be sent: a JSON-RPC error, and what it raised."""

    method: str
    code: int
    reason: str
    cause: BaseException | None = None


class Send(NamedTuple):
    """Put this frame on the outbox; ``entry`` is the request that it carries, if it does."""

    frame: Frame
    entry: Entry | None = None


class Retract(NamedTuple):
    """Take a request's frame back from the outbox, or where it has left, send ``cancelled``."""

    frame: Frame
    cancelled: Frame


class Settle(NamedTuple):
    """Give a request its outcome: a result, or an error."""

    entry: Entry
    result: dict[str, Any] | None
    error: BaseException | None = None


class Refresh(NamedTuple):
    """Make this request's headers anew, and submit it again."""

    entry: Entry


class Deliver(NamedTuple):
    """Hand a notification to its handlers.

    ``entry`` is the request whose progress it is, or the listen that it was sent for.
    """

    method: str
    params: Mapping[str, Any]
    entry: Entry | None = None


class Changed(NamedTuple):
    """The state is another one: wake who waits for it."""


class Restart(NamedTuple):
    """Connect anew at once and begin like this: see ``machine.Opening``."""

    opening: str


class Ignored(NamedTuple):
    """A message was dropped, for this reason; worth a line in the log."""

    reason: str


Effect = Send | Retract | Settle | Refresh | Deliver | Changed | Restart | Ignored | Inquiry
