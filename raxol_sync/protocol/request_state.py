"""The signed state that travels through a client of the stateless era (row S42). Floor 1; pure.

Spec: basic/patterns/mrtr. An ``input_required`` answer ends its request; the retry brings back what
we need to know, in ``requestState``. It is signed, not encrypted: its bearer can read what was said
before, and what the callback has done once. It is bound to one request (method, name, arguments),
one principal, one nonce and a time; it is good for one use. Keys, the clock and nonces are
arguments.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_STATE = 256 * 1024  # characters; answers of earlier rounds travel in it
MIN_KEY = 16  # bytes

Json = dict[str, Any]


class BadState(ValueError):
    """Raised when a ``requestState`` is not one that we gave for this request; in words.

    ``foreign``: none of our keys signed it.
    """

    def __init__(self, reason: str, *, foreign: bool = False) -> None:
        super().__init__(reason)
        self.foreign = foreign


FOREIGN = (
    "requestState is not one that this server gave; if it has several processes, or was "
    "restarted, all need the same request_state_key"
)


@dataclass(frozen=True)
class RequestState:
    """What one round tells the next.

    Attributes:
        binding: what the state is good for (see ``digest``).
        expires: until when, in seconds since the epoch: several processes may share a key.
        nonce: unique; a state is consumed by its first use.
        prompt: the approval that was asked for in this round, ``None`` if none was.
        approved: the prompt that was approved in an earlier round, ``None`` if none was.
        asked: the keys of the inputs that were asked for in this round.
        answers: the answers of earlier rounds, by key.
        kept: what earlier runs of the callback have done once, by key.
    """

    binding: str
    expires: float
    nonce: str
    prompt: str | None = None
    approved: str | None = None
    asked: tuple[str, ...] = ()
    answers: Mapping[str, Any] = field(default_factory=dict)
    kept: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)  # not frozen: one is made for each request, and freezing costs
class Round:
    """Where a request of several rounds stands: what was asked before, what was answered.

    ``identity`` is the request's. ``state`` is ``None`` in the first round. ``answers`` are those
    of all rounds so far, by key; ``used`` tells which of them this run has asked for, and ``kept``
    what it has done once.
    """

    identity: str
    state: RequestState | None = None
    answers: Mapping[str, Any] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    kept: dict[str, Any] = field(default_factory=dict)

    def carried(self) -> Json:
        """Return the answers that the next round needs: those that nobody asked for stay behind."""
        if self.state is not None:
            return dict(self.answers)
        return {key: value for key, value in self.answers.items() if key in self.used}


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_CHANGING = ("_meta", "inputResponses", "requestState")


def identity(method: str, params: Mapping[str, Any], principal: object) -> str:
    """Return what ties a state to a request: its method, target, arguments, principal, as text.

    What changes between a request and its retry (the answers, the state, ``_meta``) is left out.
    It must be taken before the callback runs, which may change its arguments.
    """
    rest = {k: v for k, v in params.items() if k not in _CHANGING}
    who = None if principal is None else f"{type(principal).__name__}:{principal}"
    return _CANONICAL.encode([method, rest, who])


def digest(identity_of_request: str) -> str:
    """Return a request's identity in the form that a state holds."""
    from hashlib import sha256  # at first use: most processes never need it

    return sha256(identity_of_request.encode("utf-8", "surrogatepass")).hexdigest()


def check_keys(key: bytes | str | Sequence[bytes | str]) -> tuple[bytes, ...]:
    """Return ``request_state_key`` as a tuple of keys: the first signs, all verify.

    Raises:
        ValueError: there is none, or one is shorter than 16 bytes.
    """
    given = [key] if isinstance(key, (bytes, str)) else list(key)
    keys = tuple(k.encode() if isinstance(k, str) else bytes(k) for k in given)
    if not keys or any(len(k) < MIN_KEY for k in keys):
        raise ValueError(f"request_state_key must be one or more keys of at least {MIN_KEY} bytes")
    return keys


def seal(state: RequestState, key: bytes) -> str:
    """Return a state as the text that the client carries.

    Raises:
        BadState: it is larger than what we would take back.
    """
    fields = {
        "b": state.binding,
        "e": state.expires,
        "n": state.nonce,
        "p": state.prompt,
        "a": state.approved,
        "k": list(state.asked),
        "r": dict(state.answers),
        "o": dict(state.kept),
    }
    payload = json.dumps(fields, separators=(",", ":")).encode()
    text = f"{_encode(payload)}.{_encode(_mac(payload, key))}"
    if len(text) > MAX_STATE:
        raise BadState(f"the answers so far are larger than {MAX_STATE} characters")
    return text


def unseal(text: object, keys: Sequence[bytes], binding: str, now: float) -> RequestState:
    """Return the state in a text that one of our keys signed, for this request, not expired.

    Whether it was used before is not known here.

    Raises:
        BadState: it is anything else.
    """
    if not isinstance(text, str) or len(text) > MAX_STATE:
        raise BadState("requestState must be the text that the server gave")
    from hmac import compare_digest  # at first use, as above

    head, _, tail = text.partition(".")
    try:
        payload, mac = _decode(head), _decode(tail)
    except (binascii.Error, ValueError):
        raise BadState(FOREIGN, foreign=True) from None
    if not any(compare_digest(mac, _mac(payload, key)) for key in keys):
        raise BadState(FOREIGN, foreign=True)
    fields = json.loads(payload)
    state = RequestState(
        binding=fields["b"],
        expires=fields["e"],
        nonce=fields["n"],
        prompt=fields["p"],
        approved=fields["a"],
        asked=tuple(fields["k"]),
        answers=fields["r"],
        kept=fields.get("o", {}),  # a state of an older release has none
    )
    if not compare_digest(state.binding, binding):
        raise BadState("requestState belongs to another request")
    if now >= state.expires:
        raise BadState("requestState has expired")
    return state


class Nonces:
    """The nonces that were used and have not expired. Not thread-safe: the owner serialises."""

    def __init__(self, limit: int = 4096) -> None:
        self._limit = limit
        self._used: dict[str, float] = {}

    def consume(self, state: RequestState, now: float) -> bool:
        """Note that a state was used; return false if there are too many to remember one more.

        Raises:
            BadState: it was used before.
        """
        if state.nonce in self._used:
            raise BadState("requestState was used before")
        if len(self._used) >= self._limit:
            self._used = {n: until for n, until in self._used.items() if until > now}
        if len(self._used) >= self._limit:
            return False
        self._used[state.nonce] = state.expires
        return True


def _mac(payload: bytes, key: bytes) -> bytes:
    import hmac  # at first use, as above
    from hashlib import sha256

    return hmac.new(key, b"raxol-request-state-1." + payload, sha256).digest()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
