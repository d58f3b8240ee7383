"""Asking the authorizers, and saying no (rows S10, S14, S25 to S33). Floor 3.

Everything fails closed: an authorizer that raises, answers anything but a verdict, or is too late
denies. Authorizers are user code: they run on workers, never under a lock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from raxol_sync.definitions import Tool
from raxol_sync.errors import AUTHORIZATION_REQUIRED, RPCError
from raxol_sync.policy import (
    ALLOW,
    Ask,
    AuthorizationContext,
    Authorizer,
    Deny,
    Transport,
    Verdict,
    denial,
    verdict,
)
from raxol_sync.protocol import wire
from raxol_sync.results import error_result, to_text
from raxol_sync.server.connections import Call
from raxol_sync.server.engine import Engine

Json = dict[str, Any]
_log = logging.getLogger("raxol_sync.server")

TIMED_OUT = "authorizer timed out"
_MAX_REMEMBERED = 1024  # tools whose failing authorizer was logged

# What identifies the target of a guarded request; lists have nothing (row S25).
_DETAILS: dict[str, tuple[str, ...]] = {
    "tools/list": (),
    "resources/list": (),
    "resources/templates/list": (),
    "prompts/list": (),
    "resources/read": ("uri",),
    "resources/subscribe": ("uri",),
    "resources/unsubscribe": ("uri",),
    "prompts/get": ("name", "arguments"),
    "completion/complete": ("ref", "argument"),
    "logging/setLevel": ("level",),
    "subscriptions/listen": ("notifications",),
}


@dataclass
class Authorization:
    """A server's two seams, and who chose them. Its fields change only before it serves.

    Attributes:
        authorizer: guards ``tools/call``; ``None``: no sensitive tool is served (row S33).
        read_authorizer: guards the read surfaces; ``None``: they are open.
        configured: a caller chose the authorizer, not a default (row S28).
        transport: what carries direct callers.
    """

    authorizer: Authorizer | None
    read_authorizer: Authorizer | None
    configured: bool
    transport: Transport
    _logged: set[str] = field(default_factory=set, repr=False)

    def guards_reads(self, method: str) -> bool:
        """Return whether a request needs the read authorizer's leave."""
        return self.read_authorizer is not None and method in _DETAILS

    def scope(self, method: str) -> str:
        """Return how a modern result of a method may be cached: ``public`` or ``private``."""
        guarded = self.guards_reads(method) or (
            method == "tools/list" and self.authorizer is not None
        )
        return "private" if guarded or method == "resources/read" else "public"

    # ------------------------------------------------------------ tools

    def tool(
        self, engine: Engine, call: Call, tool: Tool, arguments: Json, too_late: Callable[[], Json]
    ) -> Verdict:
        """Ask whether a tool may be called; runs on the call's worker.

        ``too_late()`` is the response to a call whose authorizer is too slow (row S14).
        """
        if self.authorizer is None:
            return Deny("a sensitive tool needs an authorizer") if tool.sensitive else ALLOW
        engine.authorizing(call, too_late())
        context = self._context(call, "tools/call")
        answer = _ask(self.authorizer, tool.name, arguments, context)
        engine.authorized(call)
        return answer

    def may_list(self, call: Call, tool: Tool) -> bool:
        """Return whether a tool is shown to this caller (row S10)."""
        if self.authorizer is None:
            return not tool.sensitive
        context = self._context(call, "tools/list")
        quiet = tool.name in self._logged
        answer = _ask(self.authorizer, tool.name, {}, context, quiet=quiet, note=self._note)
        return not isinstance(answer, Deny)

    def _note(self, name: str) -> None:
        if len(self._logged) < _MAX_REMEMBERED:
            self._logged.add(name)

    @staticmethod
    def denied_result(name: str, decision: str, detail: str) -> Json:
        """Return the tool result of a denied call (row S27)."""
        return error_result(to_text(denial("tool", name, decision, detail)))

    # ------------------------------------------------------------ reads

    @staticmethod
    def timed_out(call: Call) -> Json:
        """Return the response to a read whose authorizer is too slow (row S14)."""
        return wire.error(call.id, *_refusal(call.method, "deny", TIMED_OUT))

    def read(self, engine: Engine, call: Call) -> None:
        """Ask whether a read surface may be used; runs on the call's worker.

        Raises:
            RPCError: it may not; ``data`` says so for machines (row S27).
        """
        assert self.read_authorizer is not None  # guards_reads said so
        engine.authorizing(call, self.timed_out(call))
        params = call.params
        detail = {key: params[key] for key in _DETAILS[call.method] if key in params}
        answer = _ask(self.read_authorizer, call.method, detail, self._context(call, call.method))
        engine.authorized(call)
        if isinstance(answer, Deny):
            raise RPCError(*_refusal(call.method, "deny", answer.reason))
        if answer is not ALLOW:  # Ask: nobody is asked here, and the prompt is not told
            raise RPCError(*_refusal(call.method, "ask", "reading cannot be approved by asking"))

    def _context(self, call: Call, method: str) -> AuthorizationContext:
        conn, envelope = call.conn, call.envelope
        legacy = envelope is None
        listing = method.endswith("/list")
        return AuthorizationContext(
            method=method,
            conn_id=conn.conn_id if legacy or not listing else None,
            transport=conn.transport or self.transport,
            client_info=conn.client_info if envelope is None else envelope.client_info,
            client_capabilities=(
                (conn.capabilities or {}) if envelope is None else envelope.capabilities
            ),
            principal=call.principal,
        )


def _ask(
    authorizer: Authorizer,
    name: str,
    arguments: Mapping[str, Any],
    context: AuthorizationContext,
    *,
    quiet: bool = False,
    note: Any = None,
) -> Verdict:
    try:
        raw = authorizer(name, arguments, context)
    except BaseException:  # user code: whatever is wrong with it, sys.exit() included, denies
        problem = "the authorizer failed"
        if not quiet:
            _log.exception("! the authorizer of %s failed: denied", name)
    else:
        found = verdict(raw)
        if found is not None:
            return found
        problem = "the authorizer gave no verdict"
        if not quiet:
            _log.error("! the authorizer of %s returned %s: denied", name, _told(raw))
    if note is not None:
        note(name)
    return Deny(problem)


def _told(raw: object) -> str:
    """Return what an authorizer gave that is no verdict, in words that show no value."""
    if isinstance(raw, Ask):
        return f"an Ask whose prompt is no str ({type(raw.prompt).__name__})"
    return f"a {type(raw).__name__}, and must return ALLOW, Ask(prompt) or Deny(reason)"


def _refusal(method: str, decision: str, detail: str) -> tuple[int, str, Json]:
    data = denial("method", method, decision, detail)
    return AUTHORIZATION_REQUIRED, f"authorization required: {detail}", data
