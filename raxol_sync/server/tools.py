"""``tools/list`` and ``tools/call``: look-up, authorization, approval, the run. Floor 3.

The order is row S37's: look-up, sensitive tools (S33), authorizer, argument validation, then park
or run. An approval that is given later runs the very tool and arguments that were asked about.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from typing import Any

from raxol_sync.definitions import Tool
from raxol_sync.errors import (
    CIRCUIT_OPEN,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    Cancelled,
    ProcessFailed,
    RPCError,
    ToolError,
)
from raxol_sync.policy import Ask, Deny, approval_refused, approval_request, takes_forms
from raxol_sync.protocol import wire
from raxol_sync.protocol.request_state import Round
from raxol_sync.results import Unsendable, error_result, tool_result
from raxol_sync.schema import ArgumentError
from raxol_sync.server.app import App, Job, finish, string
from raxol_sync.server.asking import NO_SESSION
from raxol_sync.server.authorization import TIMED_OUT
from raxol_sync.server.callbacks import run_callback
from raxol_sync.server.connections import Call
from raxol_sync.server.engine import Left
from raxol_sync.server.parking import Place
from raxol_sync.server.questions import ClientsDoing, UnusableAnswer, new_question_id
from raxol_sync.server.rounds import APPROVAL, InputNeeded, TooMany

Json = dict[str, Any]
_log = logging.getLogger("raxol_sync.server")

CANNOT_ASK = "the client cannot be asked for an approval"


def visible_tools(app: App, call: Call, tools: list[Tool]) -> list[Json]:
    """Return the definitions of the tools that this caller may call (row S10)."""
    return [tool.definition for tool in tools if app.authorization.may_list(call, tool)]


def guarded_by_tools(app: App, call: Call, answer: Callable[[], Json]) -> Json:
    """Return a list for which the authorizer is asked; one that times out hides everything."""
    refused = app.authorization.timed_out(call)
    app.engine.authorizing(call, refused)
    shown = answer()
    app.engine.authorized(call)
    return shown


def call_tool(app: App, call: Call) -> Json | Job:
    """``tools/call``: run a tool on a worker, if its authorizer lets it."""
    name = string(call.params, "name")
    arguments = call.params.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise RPCError(INVALID_PARAMS, "arguments must be an object")
    tool = app.registry.tools.get(name)
    if tool is None:
        return _unknown(app, name)
    return lambda: _authorized(app, call, tool, arguments)


def _authorized(app: App, call: Call, tool: Tool, arguments: Json) -> Json | Left:
    try:
        current = call.round = app.rounds.open(call)
    except TooMany:
        return _denied(app, tool, "ask", "too many requests wait for input")

    def too_late() -> Json:
        return finish(app, call, _denied(app, tool, "deny", TIMED_OUT))

    verdict = app.authorization.tool(app.engine, call, tool, arguments, too_late)
    if isinstance(verdict, Deny):
        return _denied(app, tool, "deny", verdict.reason)
    try:
        bound = tool.bind(arguments)
    except ArgumentError as error:
        return error_result(str(error))
    if not isinstance(verdict, Ask):
        return run_tool(app, call, tool, bound, approved=_carried(current))
    if current is not None:
        return _ask_modern(app, call, tool, bound, verdict.prompt)
    return _ask_legacy(app, call, tool, arguments, verdict.prompt)


def _denied(app: App, tool: Tool, decision: str, detail: str) -> Json:
    return app.authorization.denied_result(tool.name, decision, detail)


def _carried(current: Round | None) -> str | None:
    """Return the prompt that an earlier round approved."""
    return current.state.approved if current is not None and current.state is not None else None


# ---------------------------------------------------------------- the stateless era (row S42)


def _ask_modern(app: App, call: Call, tool: Tool, bound: Json, prompt: str) -> Json:
    current = call.round
    assert current is not None  # the caller looked
    if _carried(current) == prompt:
        return run_tool(app, call, tool, bound, approved=prompt)
    state = current.state
    answer = current.answers.get(APPROVAL)
    if state is None or state.prompt != prompt or answer is None:
        declared = call.envelope.capabilities if call.envelope is not None else {}
        if not takes_forms(declared):
            return _denied(app, tool, "ask", CANNOT_ASK)
        return app.rounds.ask(current, {}, prompt=prompt)
    refused = approval_refused(answer)
    if refused is not None:
        return _denied(app, tool, "ask", refused)
    return run_tool(app, call, tool, bound, approved=prompt)


# ---------------------------------------------------------------- legacy sessions (rows S34 to S40)


def _ask_legacy(app: App, call: Call, tool: Tool, arguments: Json, prompt: str) -> Json | Left:
    if not takes_forms(call.conn.capabilities):
        why = f"{CANNOT_ASK}: {NO_SESSION}" if call.conn.anonymous else CANNOT_ASK
        return _denied(app, tool, "ask", why)
    question_id = new_question_id()
    params = approval_request(prompt)
    if call.revision.name < "2025-11-25":  # the mode came with that revision
        del params["mode"]
    question = wire.request(question_id, "elicitation/create", params)
    call.approval = (tool, copy.deepcopy(arguments))
    place = Place(question_id, call.conn, call)

    def close(parked: Call, detail: str) -> Json:
        kept = parked.approval[0] if parked.approval is not None else tool
        return finish(app, parked, _denied(app, kept, "ask", detail))

    refused = app.engine.park(place, question, app.elicitation_timeout, close)
    return Left.PARKED if refused is None else _denied(app, tool, "ask", refused)


def take_approval(app: App, conn_id: object, answer: wire.Response) -> bool:
    """Take an answer to an approval's question; return whether it was one."""
    call = app.engine.unpark(answer.id, conn_id) if isinstance(answer.id, str) else None
    if call is None or call.approval is None:
        return False
    tool, arguments = call.approval
    refused = approval_refused(answer.result)
    if answer.error is not None:
        refused = "the client answered with an error"
    if refused is not None:
        response = finish(app, call, _denied(app, tool, "ask", refused))
        app.engine.close_unapproved(call, refused, response)
        return True
    app.engine.approved(call)
    job = _approved_job(app, call, tool, arguments)
    try:
        app.engine.run(call, job, lambda done, value: finish(app, done, value))
    except RPCError as error:  # no free worker (row S37)
        app.engine.refuse(call, error)
    return True


def _approved_job(app: App, call: Call, tool: Tool, arguments: Json) -> Job:
    if app.registry.tools.get(tool.name) is not tool:  # dropped or replaced meanwhile
        return lambda: _run_now(_unknown(app, tool.name))

    def job() -> Json:
        try:
            bound = tool.bind(arguments)
        except ArgumentError as error:
            return error_result(str(error))
        return run_tool(app, call, tool, bound)

    return job


def _run_now(outcome: Job) -> Json | Left:
    return outcome()


# ---------------------------------------------------------------- the run


def run_tool(app: App, call: Call, tool: Tool, bound: Json, *, approved: str | None = None) -> Json:
    """Run a tool with checked arguments and return its result; what goes wrong is a result too."""

    def convert(value: Any) -> Json:
        return tool_result(tool, value)

    try:
        result: Json = run_callback(app, call, tool, bound, convert)
        return result
    except ToolError as error:
        return error_result(error.message)
    except Unsendable as error:
        _log.error("! %s returned what cannot be sent: %s", tool.kind, error)
        return error_result(f"the tool's result cannot be sent: {error}")
    except InputNeeded as needed:
        assert call.round is not None  # only the stateless era raises it
        return app.rounds.ask(call.round, needed.questions, approved=approved)
    except (ClientsDoing, ProcessFailed) as error:
        if isinstance(error, UnusableAnswer) and call.modern:  # the answer came as a param
            raise RPCError(INVALID_PARAMS, str(error)) from None
        return error_result(str(error))  # tells no secrets
    except RPCError as error:
        return _told(call, error)
    except Cancelled:
        raise
    except BaseException as error:  # a tool may raise anything; only it is at fault (row S46)
        _log.error("! %s failed", tool.kind, exc_info=error)
        return error_result(f"the tool failed: {type(error).__name__}")


def _told(call: Call, error: RPCError) -> Json:
    """Return as a result what the era has no error for; raise the others."""
    if error.code == CIRCUIT_OPEN:
        return error_result(error.message)
    if error.code == MISSING_CLIENT_CAPABILITY and not call.modern:
        return error_result(error.message)
    raise error


# ---------------------------------------------------------------- unknown tools (row S13)


def _unknown(app: App, name: str) -> Job:
    reply = app.unknown_tool_reply
    if reply is None:
        raise RPCError(METHOD_NOT_FOUND, f"Unknown tool: {name}")
    return lambda: _reply_for_unknown(reply, name)


def _reply_for_unknown(reply: Callable[[str], str | None], name: str) -> Json:
    text = None
    try:
        text = reply(name)
    except BaseException:  # user code, sys.exit() too: it counts as having nothing to say
        _log.exception("! unknown_tool_reply failed")
    if not isinstance(text, str):
        raise RPCError(METHOD_NOT_FOUND, f"Unknown tool: {name}")
    return error_result(text)
