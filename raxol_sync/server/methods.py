"""The requests of MCP that a server answers, one function each (row S08). Floor 3.

A handler returns its result, for what needs no callback, or a job that a worker runs and whose
result it is. What is wrong with a request is an ``RPCError``. Handlers hold no lock while they call
out, and know no transport.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from raxol_sync.definitions import Definition, Prompt, Resource, ResourceTemplate
from raxol_sync.errors import (
    BUSY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    RPCError,
    ToolError,
)
from raxol_sync.protocol import modern, versions
from raxol_sync.registry import Registry, Table
from raxol_sync.results import Unsendable, prompt_messages, resource_contents
from raxol_sync.schema import ArgumentError
from raxol_sync.server.app import App, Handler, Job, finish, string
from raxol_sync.server.callbacks import run_callback
from raxol_sync.server.completion import complete
from raxol_sync.server.connections import MAX_SUBSCRIPTIONS, Call, Connection, Listen
from raxol_sync.server.engine import Left
from raxol_sync.server.questions import ClientsDoing, UnusableAnswer
from raxol_sync.server.rounds import InputNeeded, TooMany
from raxol_sync.server.tools import call_tool, guarded_by_tools, visible_tools

Json = dict[str, Any]
_log = logging.getLogger("raxol_sync.server")
_WHO = ("name", "version")  # what clientInfo must say


# ---------------------------------------------------------------- opening and utilities


def initialize(app: App, call: Call) -> Json:
    """``initialize``: agree on a legacy revision and remember who the client is."""
    offered = call.params.get("protocolVersion")
    if not isinstance(offered, str):
        raise RPCError(INVALID_PARAMS, "protocolVersion must be a string")
    revision = versions.answer_to_initialize(offered)
    capabilities, info = call.params.get("capabilities"), call.params.get("clientInfo")
    if not isinstance(capabilities, dict):
        raise RPCError(INVALID_PARAMS, "capabilities must be an object")
    if not isinstance(info, dict) or not all(type(info.get(k)) is str for k in _WHO):
        raise RPCError(INVALID_PARAMS, "clientInfo must be an object with name and version")
    with app.engine.lock:
        conn = call.conn
        conn.revision = revision
        conn.initialized, conn.modern = True, False
        conn.capabilities, conn.client_info = capabilities, info
        evicted = app.engine.connections.initialized(conn)
    _tell_evicted(app, evicted)
    answer: Json = {
        "protocolVersion": revision.name,
        "capabilities": app.capabilities,
        "serverInfo": app.info,
    }
    if app.instructions is not None:
        answer["instructions"] = app.instructions
    return answer


def discover(app: App, call: Call) -> Json:
    """``server/discover``: what this server speaks and offers."""
    answer: Json = {"supportedVersions": list(versions.SUPPORTED), "capabilities": app.capabilities}
    if app.instructions is not None:
        answer["instructions"] = app.instructions
    return answer


def ping(app: App, call: Call) -> Json:
    """``ping``: an empty result."""
    return {}


def set_level(app: App, call: Call) -> Json:
    """``logging/setLevel``: the least level that this connection wants (row S11)."""
    level = call.params.get("level")
    if level not in modern.LOG_LEVELS:
        raise RPCError(INVALID_PARAMS, f"level must be one of {', '.join(modern.LOG_LEVELS)}")
    with app.engine.lock:
        call.conn.log_level = level
        evicted = _keep(app, call)
    _tell_evicted(app, evicted)
    return {}


# ---------------------------------------------------------------- lists


def _list(key: str, table: Callable[[Registry], Table[Any]]) -> Handler:
    def handler(app: App, call: Call) -> Json:
        page = table(app.registry).page(_cursor(call), app.page_size)
        return _page(key, [item.definition for item in page.items], page.next_position)

    return handler


def _page(key: str, definitions: list[Json], next_position: int | None) -> Json:
    answer: Json = {key: definitions}
    if next_position is not None:
        answer["nextCursor"] = f"p{next_position}"
    return answer


def list_tools(app: App, call: Call) -> Json | Job:
    """``tools/list``: those that this caller may call (row S10); one slot asks for all."""
    page = app.registry.tools.page(_cursor(call), app.page_size)

    def visible() -> Json:
        shown = visible_tools(app, call, page.items)
        return _page("tools", shown, page.next_position)

    if app.authorization.authorizer is None:
        return visible()
    return lambda: guarded_by_tools(app, call, visible)


def _cursor(call: Call) -> int:
    """Return the position after which a page begins, as ``nextCursor`` said it."""
    cursor = call.params.get("cursor")
    if cursor is None:
        return 0
    digits = cursor[1:] if isinstance(cursor, str) and cursor[:1] == "p" else ""
    if not (digits.isascii() and digits.isdigit() and len(digits) < 16):
        raise RPCError(INVALID_PARAMS, "the cursor is not one that this server gave out")
    return int(digits)


# ---------------------------------------------------------------- resources


def read_resource(app: App, call: Call) -> Json | Job:
    """``resources/read``: a static resource, else the first template that fits (row S53)."""
    uri = string(call.params, "uri")
    resource = app.registry.resources.get(uri)
    if resource is not None:
        return lambda: _contents(app, call, resource, {}, uri)
    found = app.registry.match_template(uri)
    if found is None:
        code = call.revision.resource_missing
        raise RPCError(code, "Resource not found", {"uri": uri})
    template, variables = found
    return lambda: _read_template(app, call, template, variables, uri)


def _read_template(
    app: App, call: Call, template: ResourceTemplate, variables: dict[str, str], uri: str
) -> Json:
    try:
        bound = template.bind(variables)
    except ArgumentError as error:
        wrong = f"invalid resource URI: {error.told('it')}"
        raise RPCError(INVALID_PARAMS, wrong, {"uri": uri}) from None
    return _contents(app, call, template, bound, uri)


def _contents(
    app: App, call: Call, definition: Resource | ResourceTemplate, arguments: Json, uri: str
) -> Json:
    kind = definition.mime_type
    found = _run(
        app, call, definition, arguments, lambda value: resource_contents(uri, kind, value)
    )
    if isinstance(found, InputNeeded):
        return _ask_first(app, call, found)
    answer: Json = {"contents": found}
    if call.modern:
        answer.update(definition.caching)
        if app.authorization.guards_reads(call.method):
            answer.pop("cacheScope", None)  # it depends on who asks
    return answer


def subscribe_resource(app: App, call: Call) -> Json:
    """``resources/subscribe``: any URI; at most 1,024 for a connection (row S22)."""
    uri = string(call.params, "uri")
    with app.engine.lock:
        uris, evicted = call.conn.uris, []
        full = uri not in uris and len(uris) >= MAX_SUBSCRIPTIONS
        if not full:
            uris.add(uri)
            evicted = _keep(app, call)
    _tell_evicted(app, evicted)
    if full:
        raise _too_many("subscriptions", "connection", MAX_SUBSCRIPTIONS)
    return {}


def unsubscribe_resource(app: App, call: Call) -> Json:
    """``resources/unsubscribe``: a URI that was not subscribed is no error."""
    uri = string(call.params, "uri")
    with app.engine.lock:
        call.conn.uris.discard(uri)
    return {}


# ---------------------------------------------------------------- prompts


def get_prompt(app: App, call: Call) -> Job:
    """``prompts/get``: render a prompt on a worker."""
    prompt = app.registry.prompts.get(string(call.params, "name"))
    if prompt is None:
        raise RPCError(INVALID_PARAMS, f"Unknown prompt: {call.params['name']}")
    arguments = call.params.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict) or not all(isinstance(v, str) for v in arguments.values()):
        raise RPCError(INVALID_PARAMS, "arguments must be an object whose values are strings")
    missing = prompt.missing(arguments)
    if missing:
        raise RPCError(INVALID_PARAMS, f"missing arguments: {', '.join(missing)}")
    return lambda: _render(app, call, prompt, arguments)


def _render(app: App, call: Call, prompt: Prompt, arguments: Json) -> Json:
    try:
        bound = prompt.bind(arguments)
    except ArgumentError as error:
        raise RPCError(INVALID_PARAMS, str(error)) from None
    found = _run(app, call, prompt, bound, prompt_messages)
    if isinstance(found, InputNeeded):
        return _ask_first(app, call, found)
    answer: Json = {"messages": found}
    if prompt.description:
        answer["description"] = prompt.description
    return answer


# ---------------------------------------------------------------- completion


def complete_argument(app: App, call: Call) -> Json | Job:
    """``completion/complete`` (row S12)."""
    return complete(app.registry, call.params)


# ---------------------------------------------------------------- listening


def listen(app: App, call: Call) -> Json | Job | None:
    """``subscriptions/listen``: acknowledge, and stay outstanding (row S52)."""
    wanted = call.params.get("notifications")
    if not isinstance(wanted, dict):
        raise RPCError(INVALID_PARAMS, "notifications must be an object")
    uris = wanted.get("resourceSubscriptions")
    if uris is not None and not (
        isinstance(uris, list) and all(isinstance(uri, str) for uri in uris)
    ):
        raise RPCError(INVALID_PARAMS, "resourceSubscriptions must be an array of strings")
    opened = Listen(call, wanted)
    if len(opened.uris) > MAX_SUBSCRIPTIONS:
        raise _too_many("subscriptions", "connection", MAX_SUBSCRIPTIONS)
    bound = app.engine.open_listen(call, opened)
    if bound is not None:
        raise _too_many("listens", *bound)
    return None


def end_of_listen(app: App, call: Call) -> Json | None:
    """Return what a request is still answered with when the server closes: a listen its result."""
    if call.method != "subscriptions/listen":
        return None
    return finish(app, call, {"_meta": {modern.SUBSCRIPTION_KEY: call.id}})


# ---------------------------------------------------------------- helpers


def _run(
    app: App,
    call: Call,
    definition: Definition,
    arguments: Json,
    convert: Callable[[Any], list[Json]],
) -> list[Json] | InputNeeded:
    """Run a callback of a read surface; its ``ToolError`` is -32603 with its message (row S53)."""
    try:
        call.round = app.rounds.open(call)
        found: list[Json] = run_callback(app, call, definition, arguments, convert)
        return found
    except TooMany:
        raise RPCError(BUSY, "too many requests wait for input; try again later") from None
    except InputNeeded as needed:
        return needed
    except ToolError as error:
        raise RPCError(INTERNAL_ERROR, error.message) from None
    except ClientsDoing as error:
        in_params = isinstance(error, UnusableAnswer) and call.modern
        raise RPCError(INVALID_PARAMS if in_params else INTERNAL_ERROR, str(error)) from None
    except Unsendable as error:
        _log.error("! %s returned what cannot be sent: %s", definition.kind, error)
        raise RPCError(INTERNAL_ERROR, f"the result cannot be sent: {error}") from None


def _ask_first(app: App, call: Call, needed: InputNeeded) -> Json:
    assert call.round is not None  # only the stateless era raises it
    return app.rounds.ask(call.round, needed.questions)


def _keep(app: App, call: Call) -> list[Connection]:
    """Have what a request set outlive it, also on a connection that nobody subscribed for.

    Returns those whose capabilities had to go for it. Needs the lock.
    """
    return app.engine.connections.remember(call.conn) if call.conn.outbox is None else []


def _tell_evicted(app: App, evicted: list[Connection]) -> None:
    for victim in evicted:
        app.telemetry.emit("client_capabilities_evicted", conn_id=victim.conn_id)


def _too_many(what: str, scope: str, limit: int) -> RPCError:
    data = {"error": "busy", "scope": scope, "limit": limit}
    return RPCError(BUSY, f"busy: this {scope} has {limit} {what} already", data)


def guarded(app: App, call: Call, handler: Handler) -> Json | Left:
    """Serve a read surface if the read authorizer lets it (row S25); one slot for all of it."""
    app.authorization.read(app.engine, call)
    outcome = handler(app, call)
    if outcome is None:
        return Left.OPEN
    return outcome() if callable(outcome) else outcome


METHODS: dict[str, Handler] = {
    "initialize": initialize,
    "server/discover": discover,
    "ping": ping,
    "logging/setLevel": set_level,
    "tools/list": list_tools,
    "tools/call": call_tool,
    "resources/list": _list("resources", lambda registry: registry.resources),
    "resources/templates/list": _list("resourceTemplates", lambda registry: registry.templates),
    "resources/read": read_resource,
    "resources/subscribe": subscribe_resource,
    "resources/unsubscribe": unsubscribe_resource,
    "prompts/list": _list("prompts", lambda registry: registry.prompts),
    "prompts/get": get_prompt,
    "completion/complete": complete_argument,
    "subscriptions/listen": listen,
}
