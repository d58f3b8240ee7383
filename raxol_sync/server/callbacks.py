"""Running a callback: behind its breaker, with its context, in a thread or process. Floor 3.

Row S45: an exception or a time-out is a fault; ``Cancelled``, argument errors and whatever the
client did wrong never are; a ``ToolError`` is an answer, and a fault only if ``is_fault`` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from raxol_sync.circuits import Admission, How
from raxol_sync.definitions import Definition, Tool
from raxol_sync.errors import (
    CIRCUIT_OPEN,
    Cancelled,
    RPCError,
    ToolError,
)
from raxol_sync.inputs import URLElicitationRequired
from raxol_sync.server.app import App
from raxol_sync.server.asking import page_needed
from raxol_sync.server.connections import Call
from raxol_sync.server.context import Context
from raxol_sync.server.questions import ClientsDoing
from raxol_sync.server.rounds import InputNeeded

Json = dict[str, Any]

# What ends a callback and says nothing about it: the client's doing, or nobody waits for it.
_NO_FAULT = (ClientsDoing, InputNeeded, Cancelled)


def run_callback(
    app: App,
    call: Call,
    definition: Definition,
    arguments: Json,
    convert: Callable[[Any], Any],
) -> Any:
    """Run a callback with checked arguments and return ``convert(what it returned)``.

    Raises:
        RPCError: its circuit is open (``CIRCUIT_OPEN``), or it raised that itself.
        BaseException: what it or ``convert`` raised.
    """
    admission = _admit(app, definition)
    watch = _Watch(app, admission)
    how: How = "fault"
    try:
        if not app.engine.hook(call, watch):
            raise Cancelled(f"{call.method} was cancelled")
        value = convert(_run(app, call, definition, arguments))
        how = "good"
        return value
    except _NO_FAULT:
        how = "nothing"
        raise
    except URLElicitationRequired as error:
        how = "nothing"
        raise page_needed(app, call, error) from None
    except RPCError:  # an answer, as a ToolError is
        how = "good"
        raise
    except ToolError as error:
        how = "fault" if definition.is_faulty(error) else "good"
        raise
    finally:
        app.engine.unhook(call, watch)
        _report(app, admission, how)


def _run(app: App, call: Call, definition: Definition, arguments: Json) -> Any:
    if isinstance(definition, Tool) and definition.isolation == "process":
        args, kwargs = definition.call_arguments(arguments)
        return app.processes.run(call, definition.callback, args, kwargs)
    return definition.run(arguments, Context(call, app))


def _admit(app: App, definition: Definition) -> Admission:
    admission = app.registry.circuits.admit(definition)
    key = definition.circuit
    if admission is None:
        seconds = round(app.registry.circuits.retry_after(key), 1)
        data = {"error": "circuit_open", "retry_after": seconds}
        message = f"the {key[0]} {key[1]!r} keeps failing and is left alone for {seconds:g} s"
        raise RPCError(CIRCUIT_OPEN, message, data)
    return admission


class _Watch:
    """Reports an outcome as soon as the request is settled: the callback may never return."""

    def __init__(self, app: App, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    def __call__(self, ending: str) -> None:
        _report(self._app, self._admission, "fault" if ending == "timed_out" else "nothing")


def _report(app: App, admission: Admission, how: How) -> None:
    changed = app.registry.circuits.report(admission, how)
    if changed is not None:
        kind, name = admission.key
        event = "circuit_opened" if changed == "open" else "circuit_closed"
        app.telemetry.emit(event, kind=kind, name=name)
