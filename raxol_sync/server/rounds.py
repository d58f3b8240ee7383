"""Input rounds of the stateless era: what is asked now and brought back by the retry. Floor 3.

Row S42, spec: basic/patterns/mrtr. A callback that asks ends its run with ``InputNeeded``; the
request is answered ``input_required``. The retry runs it again from its start, and each question
that was answered finds its answer.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from raxol_sync.errors import INVALID_PARAMS, RPCError
from raxol_sync.inputs import Question, to_request
from raxol_sync.policy import approval_request
from raxol_sync.protocol.request_state import (
    BadState,
    Nonces,
    RequestState,
    Round,
    digest,
    identity,
    seal,
    unseal,
)
from raxol_sync.server.connections import Call
from raxol_sync.server.seldom import Seldom

Json = dict[str, Any]
_log = logging.getLogger("raxol_sync.server")

RESERVED = "raxol-"  # how the keys of the library's own questions begin
APPROVAL = "raxol-approval"  # the key of the question whether a tool may run
METHODS = frozenset({"tools/call", "prompts/get", "resources/read"})
NO_TIMEOUT = 3600.0  # seconds that a state is good for where elicitations have no time-out


class InputNeeded(BaseException):
    """Ends a callback whose request needs input first. A ``BaseException``, like ``Cancelled``."""

    def __init__(self, questions: Mapping[str, Question]) -> None:
        super().__init__(sorted(questions))
        self.questions = dict(questions)


class TooMany(Exception):
    """Raised when so many rounds are open that one more state could not be remembered as used."""


class Rounds:
    """Makes and takes back request states. Thread-safe."""

    def __init__(self, keys: Sequence[bytes], seconds: float | None) -> None:
        self._keys = tuple(keys)
        self._seconds = NO_TIMEOUT if seconds is None else seconds
        # Guards: _nonces. Leaf.
        self._lock = threading.Lock()
        self._nonces = Nonces()
        self._foreign = Seldom()

    def open(self, call: Call) -> Round | None:
        """Return where a request stands; ``None`` for one that knows no rounds.

        A state is used up by this. Answers that come without one are taken too, as the
        specification wants it, but for the library's own questions: they approve nothing.

        Raises:
            RPCError: what the retry brings back is not ours, not for this request, or not fresh.
            TooMany: it cannot be remembered that this state was used.
        """
        if not call.modern or call.method not in METHODS:
            return None
        identified = identity(call.method, call.params, call.principal)
        text = call.params.get("requestState")
        given = call.params.get("inputResponses")
        if text is None and given is None:
            return Round(identified)
        given = {} if given is None else given
        if not isinstance(given, dict):
            raise RPCError(INVALID_PARAMS, "inputResponses must be an object")
        if text is None:
            unsigned = {k: v for k, v in given.items() if not k.startswith(RESERVED)}
            return Round(identified, answers=unsigned)
        moment = time.time()  # not monotonic: another process may have made the state
        try:
            state = unseal(text, self._keys, digest(identified), moment)
            with self._lock:
                remembered = self._nonces.consume(state, moment)
        except BadState as error:
            if error.foreign:
                self._warn(call.method)
            raise RPCError(INVALID_PARAMS, str(error)) from None
        if not remembered:
            raise TooMany
        answered = {key: given[key] for key in state.asked if key in given}
        return Round(identified, state, {**state.answers, **answered}, kept=dict(state.kept))

    def _warn(self, method: str) -> None:
        more = self._foreign.due()
        if more is not None:
            _log.warning(
                "! %s refused: its requestState was signed with none of this server's keys; give "
                "all processes that serve the same clients, also later ones, the same "
                "request_state_key=%s",
                method,
                more,
            )

    def ask(
        self,
        current: Round,
        questions: Mapping[str, Question],
        *,
        prompt: str | None = None,
        approved: str | None = None,
    ) -> Json:
        """Return the ``input_required`` result that asks these questions.

        ``prompt`` asks for an approval; ``approved`` is one that was given in this request.

        Raises:
            RPCError: the answers so far are too large to travel.
        """
        requests = {key: to_request(question) for key, question in questions.items()}
        if prompt is not None:
            params = approval_request(prompt)
            requests[APPROVAL] = {"method": "elicitation/create", "params": params}
        state = RequestState(
            binding=digest(current.identity),
            expires=time.time() + self._seconds,
            nonce=os.urandom(16).hex(),
            prompt=prompt,
            approved=approved,
            asked=tuple(requests),
            answers={k: v for k, v in current.carried().items() if k != APPROVAL},
            kept=current.kept,
        )
        try:
            text = seal(state, self._keys[0])
        except BadState as error:
            raise RPCError(INVALID_PARAMS, str(error)) from None
        return {"resultType": "input_required", "inputRequests": requests, "requestState": text}
