"""Which thread asked: its requests end with it (row S05). Floor 2.

A thread's locals are dropped when it ends. The finalizer of one of them may run in that thread when
Python no longer knows it, or from the collector while some thread holds a lock of ours: so it does
nothing but put a token on a queue, which needs no lock. A reaper acts on it.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable


class _Token:
    """Stands for one thread in one server."""

    __slots__ = ("__weakref__",)


class Owners:
    """Tells the end of threads that asked something. Thread-safe."""

    def __init__(self, ended: Callable[[object], object], name: str) -> None:
        """``ended(key)`` is called on a thread of ours when the thread of that key has ended."""
        self._ended = weakref.WeakMethod(ended)
        self._name = name
        self._local = threading.local()
        self._queue: queue.SimpleQueue[object] = queue.SimpleQueue()
        # Guards: _thread, _closed. Leaf.
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        weakref.finalize(self, self._queue.put, None).atexit = False

    def current(self) -> object:
        """Return the key of the calling thread; from now on its end is told."""
        key: object = getattr(self._local, "key", None)
        if key is None:
            self._start()
            token = _Token()
            key = self._local.key = object()
            self._local.token = token  # dropped when the thread ends
            weakref.finalize(token, self._queue.put, key).atexit = False
        return key

    def close(self) -> threading.Thread | None:
        """Tell nothing any more; return the thread to join, if there is one."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        self._queue.put(None)
        return thread

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None or self._closed:
                return
            # Daemon: it waits for the ends of threads, which may be for ever.
            self._thread = thread = threading.Thread(
                target=_watch, args=(self._queue, self._ended), name=self._name, daemon=True
            )
        thread.start()


def _watch(
    ends: queue.SimpleQueue[object], told: weakref.WeakMethod[Callable[[object], object]]
) -> None:
    while (key := ends.get()) is not None:
        ended = told()
        if ended is None:
            return
        ended(key)
        del ended
