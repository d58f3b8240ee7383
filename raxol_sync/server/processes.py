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
import os
import threading
from collections.abc import Callable
from typing import Any

from raxol_sync._deadline import Deadline
from raxol_sync.definitions.tool import NEEDS_PEBBLE
from raxol_sync.errors import Cancelled, ProcessDied, ProcessFailed
from raxol_sync.server.connections import Call
from raxol_sync.server.engine import Engine

_log = logging.getLogger("raxol_sync.server")
_LOOK = 0.5  # seconds between looks whether the pool is still there


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
        from raxol_sync.server import border  # with the first isolated tool

        payload = border.pack(callback, args, kwargs)
        self._take_seat(call)
        try:
            return border.read(self._answer(call, payload))
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
        pool, future = self._schedule(payload)

        def kill(ending: str) -> None:
            future.cancel()

        self._engine.hook(call, kill)
        try:
            return _result(pool, future)
        except concurrent.futures.CancelledError:
            raise Cancelled(f"{call.method} was cancelled") from None
        except ProcessDied:
            raise
        except (OSError, RuntimeError) as error:
            # The pool's words for a death (ProcessExpired is an OSError); a callback's are bytes.
            from raxol_sync.server.border import STATUS_0

            code = getattr(error, "exitcode", None)
            raise ProcessDied(0 if code == STATUS_0 else code) from None
        finally:
            self._engine.unhook(call, kill)

    def _schedule(self, payload: bytes) -> tuple[Any, concurrent.futures.Future[bytes]]:
        from raxol_sync.server.border import serve

        pool = self._working_pool()
        try:
            return pool, pool.schedule(serve, args=(payload,))
        except RuntimeError:  # it broke just now
            pool = self._working_pool()
            return pool, pool.schedule(serve, args=(payload,))

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
        from raxol_sync.server.border import Spawn

        try:
            from pebble import ProcessPool
        except ImportError:
            raise ProcessFailed(NEEDS_PEBBLE) from None
        broken = None
        with self._changed:
            if self._closed:
                raise Cancelled("the server is closed")
            if self._pool is not None and not self._pool.active:
                broken, self._pool = self._pool, None
            if self._pool is None:
                self._pool = ProcessPool(max_workers=self._size, context=Spawn())
            pool = self._pool
        if broken is not None:
            _end(broken, Deadline(0))
        return pool


def _result(pool: Any, future: concurrent.futures.Future[bytes]) -> bytes:
    """Wait for an answer; a pool that breaks forgets what it has not dispatched yet."""
    while True:
        try:
            return future.result(_LOOK)
        except concurrent.futures.TimeoutError:
            if not pool.active and not future.done():
                raise ProcessDied(None) from None


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
