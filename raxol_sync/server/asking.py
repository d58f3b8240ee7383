"""How a callback's question reaches its client: one question, two carriers. Floor 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raxol_sync.errors import (
    INVALID_REQUEST,
    MISSING_CLIENT_CAPABILITY,
    RPCError,
)
from raxol_sync.inputs import (
    Answer,
    Elicit,
    InputError,
    Question,
    missing_capability,
    read_answer,
    to_request,
)
from raxol_sync.schema import ArgumentError, compile_schema
from raxol_sync.server.app import App
from raxol_sync.server.connections import Call
from raxol_sync.server.questions import MAX_AT_ONCE, UnusableAnswer
from raxol_sync.server.rounds import METHODS, InputNeeded
from raxol_sync.values import ElicitResult

Json = dict[str, Any]
_RESERVED = "raxol-"


def ask(app: App, call: Call, questions: Mapping[str, Question]) -> dict[str, Answer]:
    """Ask a request's client, or in the stateless era find the answers that its retry brought.

    Raises:
        InputNeeded: the stateless era, and an answer is not there yet; ends the callback.
        RPCError, InvalidResponse, RequestTimeout, Cancelled: as ``Context.elicit`` says.
        ValueError: there are too many questions, or a key is reserved.
    """
    if not 0 < len(questions) <= MAX_AT_ONCE:
        raise ValueError(f"ask takes 1 to {MAX_AT_ONCE} questions at once")
    if any(key.startswith(_RESERVED) for key in questions):
        raise ValueError(f"keys that start with {_RESERVED!r} are reserved")
    _check_capabilities(call, questions)
    if call.modern:
        raw = _answers_of_round(call, questions)
    else:
        requests = [_legacy_request(call, question) for question in questions.values()]
        raw = dict(zip(questions, app.questions.ask(call, requests), strict=True))
    return {key: _read(question, raw[key]) for key, question in questions.items()}


def _answers_of_round(call: Call, questions: Mapping[str, Question]) -> dict[str, Any]:
    if call.round is None or call.method not in METHODS:
        raise RPCError(INVALID_REQUEST, f"{call.method} cannot ask its client")
    answers = call.round.answers
    missing = {key: question for key, question in questions.items() if key not in answers}
    if missing:
        raise InputNeeded(missing)
    return {key: answers[key] for key in questions}


def _legacy_request(call: Call, question: Question) -> Json:
    request = to_request(question, modern=False)
    params = request.get("params")
    if isinstance(question, Elicit) and call.revision.name < "2025-11-25" and params:
        del params["mode"]  # it came with that revision
    return request


def _check_capabilities(call: Call, questions: Mapping[str, Question]) -> None:
    declared = call.conn.capabilities if call.envelope is None else call.envelope.capabilities
    missing: Json = {}
    for question in questions.values():
        missing.update(missing_capability(question, declared or {}) or {})
    if missing:
        names = ", ".join(sorted(missing))
        raise RPCError(
            MISSING_CLIENT_CAPABILITY,
            f"the client does not declare what this needs: {names}",
            {"requiredCapabilities": missing},
        )


def _read(question: Question, raw: object) -> Answer:
    method = to_request(question)["method"]
    try:
        answer = read_answer(question, raw)
    except InputError as error:
        raise UnusableAnswer(method, str(error)) from None
    if isinstance(answer, ElicitResult) and answer.accepted and isinstance(question, Elicit):
        _check_form(method, question, answer)
    return answer


def _check_form(method: str, question: Elicit, answer: ElicitResult) -> None:
    """Check what a person filled in: a client may send anything."""
    if question.schema is None:
        return
    try:
        compile_schema({"type": "object", **question.schema}).check(answer.content or {})
    except ArgumentError as error:
        raise UnusableAnswer(method, str(error)) from None
