"""The requests of MCP that a server answers, one function each (row S08). Floor 3.

A handler returns its result, for what needs no callback, or a job that a worker runs and whose
result it is. What is wrong with a request is an ``RPCError``. Handlers hold no lock while they call
out, and know no transport.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from raxol_sync.definitions import Definition, Prompt, ResourceTemplate, Tool
from raxol_sync.errors import (
    BUSY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Cancelled,
    RPCError,
    ToolError,
)
from raxol_sync.protocol import modern, versions, wire
from raxol_sync.registry import Registry, Table
from raxol_sync.results import (
    Unsendable,
    error_result,
    prompt_messages,
    resource_contents,
    tool_result,
)
from raxol_sync.schema import ArgumentError
from raxol_sync.server.completion import complete
from raxol_sync.server.connections import MAX_SUBSCRIPTIONS, Call, Listen
from raxol_sync.server.context import Context
from raxol_sync.server.engine import Engine

Json = dict[str, Any]
Job = Callable[[], Json]
_log = logging.getLogger("raxol_sync.server")

CAPABILITIES: Json = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}


@dataclass(frozen=True)
class App:
    """What the methods need of their server. Immutable."""

    registry: Registry
    engine: Engine
    info: Json
    instructions: str | None
    page_size: int | None
    unknown_tool_reply: Callable[[str], str | None] | None


Handler = Callable[[App, Call], "Json | Job | None"]


def finish(app: App, call: Call, value: Json) -> Json:
    """Return the response message for a result, in the form of the request's era."""
    if call.modern:
        scope = "private" if call.method == "resources/read" else "public"
        value = modern.stamp(call.method, value, app.info, scope=scope)
    return wire.result(call.id, value)


# ---------------------------------------------------------------- opening and utilities


def initialize(app: App, call: Call) -> Json:
    """``initialize``: agree on a legacy revision and remember who the client is."""
    offered = call.params.get("protocolVersion")
    if not isinstance(offered, str):
        raise RPCError(INVALID_PARAMS, "protocolVersion must be a string")
    revision = versions.answer_to_initialize(offered)
    capabilities, info = call.params.get("capabilities"), call.params.get("clientInfo")
    with app.engine.lock:
        conn = call.conn
        conn.revision = revision
        conn.initialized, conn.modern = True, False
        conn.capabilities = capabilities if isinstance(capabilities, dict) else {}
        conn.client_info = info if isinstance(info, dict) else None
        app.engine.connections.initialized(conn)
    answer: Json = {
        "protocolVersion": revision.name,
        "capabilities": CAPABILITIES,
        "serverInfo": app.info,
    }
    if app.instructions is not None:
        answer["instructions"] = app.instructions
    return answer


def discover(app: App, call: Call) -> Json:
    """``server/discover``: what this server speaks and offers."""
    answer: Json = {"supportedVersions": list(versions.SUPPORTED), "capabilities": CAPABILITIES}
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
        _keep(app, call)
    return {}


# ---------------------------------------------------------------- lists


def _list(key: str, table: Callable[[Registry], Table[Any]]) -> Handler:
    def handler(app: App, call: Call) -> Json:
        page = table(app.registry).page(_cursor(call), app.page_size)
        answer: Json = {key: [item.definition for item in page.items]}
        if page.next_position is not None:
            answer["nextCursor"] = f"p{page.next_position}"
        return answer

    return handler


def _cursor(call: Call) -> int:
    """Return the position after which a page begins, as ``nextCursor`` said it."""
    cursor = call.params.get("cursor")
    if cursor is None:
        return 0
    digits = cursor[1:] if isinstance(cursor, str) and cursor[:1] == "p" else ""
    if not (digits.isascii() and digits.isdigit() and len(digits) < 16):
        raise RPCError(INVALID_PARAMS, "the cursor is not one that this server gave out")
    return int(digits)


# ---------------------------------------------------------------- tools


def call_tool(app: App, call: Call) -> Json | Job:
    """``tools/call``: run a tool on a worker."""
    name = _name(call)
    arguments = call.params.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise RPCError(INVALID_PARAMS, "arguments must be an object")
    tool = app.registry.tools.get(name)
    if tool is None:
        if app.unknown_tool_reply is None:
            raise _unknown_tool(name)
        return lambda: _reply_for_unknown(app, name)
    return lambda: _run_tool(app, call, tool, arguments)


def _run_tool(app: App, call: Call, tool: Tool, arguments: Json) -> Json:
    try:
        bound = tool.bind(arguments)
    except ArgumentError as error:
        return error_result(str(error))
    try:
        return tool_result(tool, tool.run(bound, Context(call, app.engine)))
    except ToolError as error:
        return error_result(error.message)
    except Unsendable as error:
        _log.error("! %s returned what cannot be sent: %s", tool.kind, error)
        return error_result(f"the tool's result cannot be sent: {error}")
    except (RPCError, Cancelled):
        raise
    except BaseException as error:  # a tool may raise anything; only it is at fault (row S46)
        _log.error("! %s failed", tool.kind, exc_info=error)
        return error_result(f"the tool failed: {type(error).__name__}")


def _unknown_tool(name: str) -> RPCError:
    return RPCError(METHOD_NOT_FOUND, f"Unknown tool: {name}")


def _reply_for_unknown(app: App, name: str) -> Json:
    """Ask the owner's callable what to say of a tool that is not there (row S13)."""
    assert app.unknown_tool_reply is not None  # call_tool looked
    text = None
    try:
        text = app.unknown_tool_reply(name)
    except Exception:  # user code: it counts as having nothing to say
        _log.exception("! unknown_tool_reply failed")
    if not isinstance(text, str):
        raise _unknown_tool(name)
    return error_result(text)


# ---------------------------------------------------------------- resources


def read_resource(app: App, call: Call) -> Json | Job:
    """``resources/read``: a static resource, else the first template that fits (row S53)."""
    uri = _string(call.params, "uri")
    resource = app.registry.resources.get(uri)
    if resource is not None:
        return lambda: _contents(app, call, resource, {}, uri, resource.mime_type)
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
        raise RPCError(INVALID_PARAMS, f"invalid resource URI: {error}", {"uri": uri}) from None
    return _contents(app, call, template, bound, uri, template.mime_type)


def _contents(
    app: App, call: Call, definition: Definition, arguments: Json, uri: str, mime_type: str | None
) -> Json:
    value = _run(app, call, definition, arguments)
    return {"contents": _sendable(definition, lambda: resource_contents(uri, mime_type, value))}


def subscribe_resource(app: App, call: Call) -> Json:
    """``resources/subscribe``: any URI; at most 1,024 for a connection (row S22)."""
    uri = _string(call.params, "uri")
    with app.engine.lock:
        uris = call.conn.uris
        full = uri not in uris and len(uris) >= MAX_SUBSCRIPTIONS
        if not full:
            uris.add(uri)
            _keep(app, call)
    if full:
        raise _too_many("subscriptions", "connection", MAX_SUBSCRIPTIONS)
    return {}


def unsubscribe_resource(app: App, call: Call) -> Json:
    """``resources/unsubscribe``: a URI that was not subscribed is no error."""
    uri = _string(call.params, "uri")
    with app.engine.lock:
        call.conn.uris.discard(uri)
    return {}


# ---------------------------------------------------------------- prompts


def get_prompt(app: App, call: Call) -> Job:
    """``prompts/get``: render a prompt on a worker."""
    prompt = app.registry.prompts.get(_name(call))
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
    value = _run(app, call, prompt, bound)
    answer: Json = {"messages": _sendable(prompt, lambda: prompt_messages(value))}
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


def _run(app: App, call: Call, definition: Definition, arguments: Json) -> Any:
    """Run a callback of a read surface; its ``ToolError`` is -32603 with its message (row S53)."""
    try:
        return definition.run(arguments, Context(call, app.engine))
    except ToolError as error:
        raise RPCError(INTERNAL_ERROR, error.message) from None


def _sendable(definition: Definition, convert: Callable[[], list[Json]]) -> list[Json]:
    try:
        return convert()
    except Unsendable as error:
        _log.error("! %s returned what cannot be sent: %s", definition.kind, error)
        raise RPCError(INTERNAL_ERROR, f"the result cannot be sent: {error}") from None


def _keep(app: App, call: Call) -> None:
    """Have what a request set outlive it, also on a connection that nobody subscribed for."""
    if call.conn.outbox is None:
        app.engine.connections.remember(call.conn)


def _name(call: Call) -> str:
    return _string(call.params, "name")


def _string(params: Mapping[str, Any], key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str):
        raise RPCError(INVALID_PARAMS, f"{key} must be a string")
    return value


def _too_many(what: str, scope: str, limit: int) -> RPCError:
    data = {"error": "busy", "scope": scope, "limit": limit}
    return RPCError(BUSY, f"busy: this {scope} has {limit} {what} already", data)


METHODS: dict[str, Handler] = {
    "initialize": initialize,
    "server/discover": discover,
    "ping": ping,
    "logging/setLevel": set_level,
    "tools/list": _list("tools", lambda registry: registry.tools),
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
