"""Tools that run in a process of their own, which can be killed (row S18). Floor 3.

The only importer of pebble, at first use. A tool with ``isolation="process"`` may loop for ever or
crash the interpreter: its process is killed and replaced, its caller is answered, and its slot is
free at once.

What crosses the border is bytes that we made and read ourselves: in pebble's own messages whatever
cannot be unpickled at the other side (an exception with unusual arguments, a function that a child
cannot import) would end one of its threads, and with it every isolated tool.
"""

from __future__ import annotations

import concurrent.futures
import logging
import multiprocessing
import os
import pickle
import threading
import traceback
from collections.abc import Callable
from typing import Any

from raxol_sync._deadline import Deadline
from raxol_sync.errors import Cancelled, MCPError, ToolError
from raxol_sync.server.connections import Call
from raxol_sync.server.engine import Engine

_log = logging.getLogger("raxol_sync.server")
_NEEDED = (
    "isolation='process' needs the package pebble: install raxol_sync[process], "
    "or leave isolation out"
)
_TOP_LEVEL = "define its function at the top level of a module that can be imported"


class ProcessFailed(MCPError):
    """Raised when a tool could not run in its process, or not tell what came of it; in words."""


class ProcessDied(ProcessFailed):
    """Raised when a tool's process ended before the tool had returned.

    Attributes:
        code: its exit status; negative: killed by that signal; ``None``: not known.
    """

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code

    def __str__(self) -> str:
        how = "died" if self.code is None else f"exited with status {self.code}"
        if self.code is not None and self.code < 0:
            how = f"was killed by signal {-self.code}"
        return f"the tool's process {how}"


class _InProcess(Exception):
    """Stands for the trace of what was raised there, as the cause of what is raised here."""


class Processes:
    """A pool of processes, made when the first tool needs it. Thread-safe."""

    def __init__(self, engine: Engine, max_workers: int) -> None:
        self._engine = engine
        self._size = min(max_workers, max(2, os.cpu_count() or 2))
        # Guards: _pool, _free, _closed. Told whenever a call that waits for a process should look.
        # Held while the pool is made, so that it is made once.
        self._changed = threading.Condition(threading.Lock())
        self._pool: Any = None
        # A call waits here and not in the pool, where one that was cancelled would still start.
        self._free = self._size
        self._closed = False

    def run(
        self,
        call: Call,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Run ``callback(*args, **kwargs)`` in a process and return its result.

        When the request is settled (a time-out, a cancel) the process is killed.

        Raises:
            ProcessFailed: it exited or crashed, or what was to cross the border cannot be pickled.
            Cancelled: it was killed because the request was settled.
            BaseException: what the callback raised.
        """
        try:
            payload = pickle.dumps((callback, args, kwargs))
        except Exception as error:  # pickling runs user code: whatever it raises means it cannot be
            name = type(error).__name__
            raise ProcessFailed(
                f"a tool in a process of its own must be picklable ({name}): {_TOP_LEVEL}"
            ) from None
        self._take_seat(call)
        try:
            return _read(self._answer(call, payload))
        finally:
            with self._changed:
                self._free += 1
                self._changed.notify()

    def _take_seat(self, call: Call) -> None:
        """Wait until a process is free; its request's end (a time-out, a cancel) ends the wait."""

        def look(ending: str) -> None:
            with self._changed:
                self._changed.notify_all()

        self._engine.hook(call, look)
        with self._changed:
            while not (self._free or call.settled or self._closed):
                self._changed.wait()
            taken = not (call.settled or self._closed)
            self._free -= taken
        self._engine.unhook(call, look)
        if not taken:
            raise Cancelled(f"{call.method} was cancelled")

    def _answer(self, call: Call, payload: bytes) -> bytes:
        future = self._schedule(payload)

        def kill(ending: str) -> None:
            future.cancel()

        self._engine.hook(call, kill)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise Cancelled(f"{call.method} was cancelled") from None
        except Exception as error:  # the pool's words for a death; a callback's come as bytes
            code = getattr(error, "exitcode", None)
            raise ProcessDied(code if isinstance(code, int) else None) from None
        finally:
            self._engine.unhook(call, kill)

    def _schedule(self, payload: bytes) -> concurrent.futures.Future[bytes]:
        future: concurrent.futures.Future[bytes]
        try:
            future = self._working_pool().schedule(_serve, args=(payload,))
        except RuntimeError:  # it broke just now
            future = self._working_pool().schedule(_serve, args=(payload,))
        return future

    def close(self, deadline: Deadline) -> None:
        """Kill what runs and end the pool."""
        with self._changed:
            self._closed = True
            pool, self._pool = self._pool, None
            self._changed.notify_all()
        if pool is not None:
            _end(pool, deadline)

    def _working_pool(self) -> Any:
        """Return the pool; one that broke (a process that died without work) is replaced."""
        try:
            from pebble import ProcessPool
        except ImportError:
            raise ProcessFailed(_NEEDED) from None
        broken = None
        with self._changed:
            if self._closed:
                raise Cancelled("the server is closed")
            if self._pool is not None and not self._pool.active:
                broken, self._pool = self._pool, None
            if self._pool is None:
                # Spawned: a fork of a process with threads may hold their locks for ever.
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPool(max_workers=self._size, context=context)
            pool = self._pool
        if broken is not None:
            _end(broken, Deadline(0))
        return pool


def _end(pool: Any, deadline: Deadline) -> None:
    """Kill a pool's processes and join its threads, until the deadline or behind our back."""
    pool.stop()
    manager = getattr(getattr(pool, "_pool_manager", None), "worker_manager", None)
    for process in list(getattr(manager, "workers", {}).values()):
        process.kill()  # else the pool asks them politely, one by one, for 3 s each
    for thread in getattr(pool, "_loops", ()):
        thread.name = "raxol-sync-processes"
    # Daemon: the pool's own join knows no deadline.
    thread = threading.Thread(target=pool.join, name="raxol-sync-processes-end", daemon=True)
    thread.start()
    thread.join(deadline.left())
    if thread.is_alive() and deadline.left() != 0:
        _log.warning("! the processes of isolated tools have not ended in time")


# ---------------------------------------------------------------- both sides of the border


def _serve(payload: bytes) -> bytes:
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


def _read(answer: bytes) -> Any:
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
