"""What the methods need of their server, gathered. Floor 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from raxol_sync.errors import INVALID_PARAMS, RPCError
from raxol_sync.protocol import modern, wire
from raxol_sync.registry import Registry
from raxol_sync.server.authorization import Authorization
from raxol_sync.server.connections import Call
from raxol_sync.server.engine import Engine, Left
from raxol_sync.server.older import fit
from raxol_sync.server.processes import Processes
from raxol_sync.server.questions import Questions
from raxol_sync.server.rounds import Rounds
from raxol_sync.telemetry import Telemetry

Json = dict[str, Any]
Job = Callable[[], "Json | Left"]


@dataclass(frozen=True)
class App:
    """A server's parts. Immutable; the parts are thread-safe."""

    registry: Registry
    engine: Engine
    authorization: Authorization
    questions: Questions
    rounds: Rounds
    processes: Processes
    telemetry: Telemetry
    info: Json
    capabilities: Json
    cache_ttl: Mapping[str, int]  # milliseconds, by method
    instructions: str | None
    page_size: int | None
    unknown_tool_reply: Callable[[str], str | None] | None
    elicitation_timeout: float | None


Handler = Callable[[App, Call], "Json | Job | None"]


def finish(app: App, call: Call, value: Json) -> Json:
    """Return the response message for a result, in the form of the request's era."""
    if call.modern:
        scope, ttl = app.authorization.scope(call.method), app.cache_ttl.get(call.method, 0)
        value = modern.stamp(call.method, value, app.info, scope=scope, ttl=ttl)
        if "ttlMs" in value and ("inputResponses" in call.params or "requestState" in call.params):
            value["ttlMs"] = 0  # it depends on more than what the result is looked up by
    else:
        value = fit(call.method, value, call.revision.name)
    return wire.result(call.id, value)


def string(params: Mapping[str, Any], key: str) -> str:
    """Return a param that must be a string; ``RPCError`` (-32602) where it is not."""
    value = params.get(key)
    if not isinstance(value, str):
        raise RPCError(INVALID_PARAMS, f"{key} must be a string")
    return value
