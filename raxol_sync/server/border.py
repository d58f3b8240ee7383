"""What crosses into a tool's process and back: bytes that we made and read ourselves. Floor 3.

Imported with the first isolated tool: what it needs of the standard library is large.
"""

from __future__ import annotations

import multiprocessing.context
import pickle
import traceback
from collections.abc import Callable
from typing import Any

from raxol_sync.errors import ProcessFailed, ToolError

STATUS_0 = 256  # no process's own status
_TOP_LEVEL = "define its function at the top level of a module that can be imported"


class ToolProcess(multiprocessing.context.SpawnProcess):
    """A process whose silent end is told apart: to pebble status 0 is a worker that has finished.

    Ours never finish by themselves, so it was the tool that left, and its caller waits.
    """

    @property
    def exitcode(self) -> int | None:
        """The exit status; 256 for 0."""
        code = super().exitcode
        return STATUS_0 if code == 0 else code


class Spawn(multiprocessing.context.SpawnContext):
    """Spawns: a fork of a process with threads may hold their locks for ever."""

    Process = ToolProcess


class _InProcess(Exception):
    """Stands for the trace of what was raised there, as the cause of what is raised here."""


def pack(callback: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Return what a child is to do, as bytes.

    Raises:
        ProcessFailed: it cannot be pickled.
    """
    try:
        return pickle.dumps((callback, args, kwargs))
    except Exception as error:  # pickling runs user code: whatever it raises means it cannot be
        name = type(error).__name__
        raise ProcessFailed(
            f"a tool in a process of its own must be picklable ({name}): {_TOP_LEVEL}"
        ) from None


def serve(payload: bytes) -> bytes:
    """Run in the child what ``payload`` holds; whatever comes of it returns as bytes."""
    try:
        callback, args, kwargs = pickle.loads(payload)
    except BaseException as error:  # importing a module runs user code
        return pickle.dumps(("unknown", type(error).__name__, traceback.format_exc()))
    try:
        value = callback(*args, **kwargs)
    except BaseException as error:  # user code, sys.exit() too: the parent raises it
        return _raised(error)
    try:
        return pickle.dumps(("value", value))
    except BaseException as error:  # pickling runs user code
        return pickle.dumps(("unsendable", type(error).__name__, traceback.format_exc()))


def _raised(error: BaseException) -> bytes:
    trace = traceback.format_exc()
    message = str(error.message) if isinstance(error, ToolError) else None
    try:
        data: bytes | None = pickle.dumps(error)
    except BaseException:  # pickling runs user code; the name must do
        data = None
    return pickle.dumps(("raised", type(error).__name__, message, data, trace))


def read(answer: bytes) -> Any:
    """Return what a callback returned, or raise what it raised."""
    try:
        kind, *rest = pickle.loads(answer)
    except Exception as error:  # unpickling runs user code
        name = type(error).__name__
        raise ProcessFailed(f"the tool's result cannot be unpickled ({name})") from None
    if kind == "value":
        return rest[0]
    if kind == "raised":
        raise _rebuilt(*rest)
    name, trace = rest
    if kind == "unknown":
        text = f"the tool's process cannot find the tool ({name}): {_TOP_LEVEL}"
    else:
        text = f"the tool's result must be picklable ({name})"
    raise ProcessFailed(text) from _InProcess(trace)


def _rebuilt(name: str, message: str | None, data: bytes | None, trace: str) -> BaseException:
    error: BaseException
    try:
        if data is None:
            raise TypeError(name)
        error = pickle.loads(data)
    except Exception:  # unpickling runs user code: an exception that wants other arguments, say
        failed = ProcessFailed(f"the tool failed: {name}")
        error = failed if message is None else ToolError(message)
    error.__cause__ = _InProcess(trace)
    return error
