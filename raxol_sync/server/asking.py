"""How a callback's question reaches its client: one question, two carriers. Floor 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raxol_sync.errors import (
    INVALID_REQUEST,
    MISSING_CLIENT_CAPABILITY,
    URL_ELICITATION_REQUIRED,
    RPCError,
    ToolError,
)
from raxol_sync.inputs import (
    Answer,
    Elicit,
    InputError,
    Question,
    URLElicitationRequired,
    missing_capability,
    read_answer,
    to_request,
)
from raxol_sync.schema import ArgumentError, compile_schema
from raxol_sync.server.app import App
from raxol_sync.server.connections import Call
from raxol_sync.server.questions import MAX_AT_ONCE, UnusableAnswer
from raxol_sync.server.rounds import METHODS, RESERVED, InputNeeded
from raxol_sync.values import ElicitResult

Json = dict[str, Any]

NO_SESSION = "its request belongs to no session; with max_sessions=0 legacy clients have none"


def ask(app: App, call: Call, questions: Mapping[str, Question]) -> dict[str, Answer]:
    """Ask a request's client, or in the stateless era find the answers that its retry brought.

    Raises:
        InputNeeded: the stateless era, and an answer is not there yet; ends the callback.
        RPCError, InvalidResponse, RequestTimeout, Cancelled: as ``Context.elicit`` says.
        ValueError: there are too many questions, or a key is reserved.
    """
    if not 0 < len(questions) <= MAX_AT_ONCE:
        raise ValueError(f"ask takes 1 to {MAX_AT_ONCE} questions at once")
    if any(key.startswith(RESERVED) for key in questions):
        raise ValueError(f"keys that start with {RESERVED!r} are reserved")
    _check_capabilities(call, questions)
    if call.modern:
        raw = _answers_of_round(call, questions)
    else:
        name = call.revision.name
        requests = [to_request(question, revision=name) for question in questions.values()]
        for question in questions.values():
            if isinstance(question, Elicit) and question.url and question.elicitation_id:
                app.questions.page_shown(call, question.elicitation_id)
        raw = dict(zip(questions, app.questions.ask(call, requests), strict=True))
    return {key: _read(question, raw[key]) for key, question in questions.items()}


_PAGE = "elicit-page"


def page_needed(app: App, call: Call, error: URLElicitationRequired) -> BaseException:
    """Return what to raise for a callback that cannot go on before a page was visited."""
    page = Elicit(error.message, url=error.url, elicitation_id=error.elicitation_id)
    still = ToolError(f"{error.message}: {error.url}")
    if call.modern:
        if call.round is None or _PAGE in call.round.answers:
            return still  # asked already: whoever answered has not finished there
        try:
            _check_capabilities(call, {_PAGE: page})
        except RPCError as lacking:
            return lacking
        return InputNeeded({_PAGE: page})
    declared = call.conn.capabilities or {}
    if missing_capability(page, declared, revision=call.revision.name):
        return still
    params = to_request(page, revision=call.revision.name)["params"]
    app.questions.page_shown(call, params["elicitationId"])
    return RPCError(URL_ELICITATION_REQUIRED, error.message, {"elicitations": [params]})


def _answers_of_round(call: Call, questions: Mapping[str, Question]) -> dict[str, Any]:
    if call.round is None or call.method not in METHODS:
        raise RPCError(INVALID_REQUEST, f"{call.method} cannot ask its client")
    answers = call.round.answers
    missing = {key: question for key, question in questions.items() if key not in answers}
    call.round.used.update(key for key in questions if key in answers)
    if missing:
        raise InputNeeded(missing)
    return {key: answers[key] for key in questions}


def _check_capabilities(call: Call, questions: Mapping[str, Question]) -> None:
    declared = call.conn.capabilities if call.envelope is None else call.envelope.capabilities
    missing: Json = {}
    for question in questions.values():
        lacks = missing_capability(question, declared or {}, revision=call.revision.name) or {}
        for name, details in lacks.items():
            missing[name] = {**missing.get(name, {}), **details}
    if missing:
        names = ", ".join(sorted(missing))
        reason = f"the client does not declare what this needs: {names}"
        if call.conn.anonymous and not call.modern:  # perhaps it did, at an earlier request
            reason = f"the client cannot be asked ({names}): {NO_SESSION}"
        data = {"requiredCapabilities": missing}
        raise RPCError(MISSING_CLIENT_CAPABILITY, reason, data)


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
        raise UnusableAnswer(method, error.told("the form")) from None
