"""Names to addresses, so that nobody has to wait for a resolver that hangs (row C10). Floor 3.

``getaddrinfo`` cannot be ended from outside; it has only the system's own limit. So it runs on
threads of its own, at most ``MAX_LOOKUPS`` in the whole process, and the request that waits for it
can be ended like any other. A look-up that hangs keeps its thread until the system gives up, and
belongs to no client: requests for the same name wait for the same look-up.
"""

from __future__ import annotations

import copy
import os
import socket
import threading
from collections import deque
from typing import Any

from raxol_sync.client.handle import Handle

MAX_LOOKUPS = 8  # threads that look names up, in the whole process
Key = tuple[str, int]


class _Lookup:
    """One name that is being looked up, and who waits for it."""

    __slots__ = ("done", "error", "found", "key", "waiting")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.waiting: list[threading.Event] = []
        self.found: list[Any] = []
        self.error: Exception | None = None
        self.done = False


class Resolver:
    """Looks names up. Thread-safe."""

    def __init__(self) -> None:
        # Guards: _lookups, _queue, _threads and every look-up. Leaf.
        self._lock = threading.Lock()
        self._lookups: dict[Key, _Lookup] = {}
        self._queue: deque[_Lookup] = deque()  # not begun
        self._threads = 0

    def resolve(self, host: str, port: int, handle: Handle) -> list[Any]:
        """Return what ``getaddrinfo`` does for a stream, or end with ``handle``.

        Raises:
            OSError: the name cannot be resolved, or the request was ended.
        """
        try:  # an address needs no look-up
            return socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
            )
        except socket.gaierror:
            pass
        news = handle.waking()
        lookup = self._join((host, port), news)
        try:
            while True:
                news.clear()
                if lookup.done or handle.ended:
                    break
                news.wait()
        finally:
            with self._lock:
                lookup.waiting.remove(news)
        if not lookup.done:
            raise OSError("the request was given up")
        if lookup.error is not None:
            raise copy.copy(lookup.error)
        return lookup.found

    def _join(self, key: Key, news: threading.Event) -> _Lookup:
        """Return the look-up of a name, begun if it is the first."""
        starts = False
        with self._lock:
            lookup = self._lookups.get(key)
            if lookup is None:
                lookup = self._lookups[key] = _Lookup(key)
                self._queue.append(lookup)
                starts = self._threads < MAX_LOOKUPS
                self._threads += starts
            lookup.waiting.append(news)
        if starts:
            # Daemon: a look-up that hangs must not hold up the interpreter's exit.
            thread = threading.Thread(target=self._work, name="raxol-sync-resolver", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads: this one waits for it, as without a resolver
                self._work()
        return lookup

    def _work(self) -> None:
        """Look names up until none is left; on a thread of its own."""
        while True:
            with self._lock:
                lookup = self._queue.popleft() if self._queue else None
                if lookup is None:
                    self._threads -= 1
                    return
                if not lookup.waiting:  # given up before it was begun
                    del self._lookups[lookup.key]
                    continue
            host, port = lookup.key
            try:
                lookup.found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except Exception as error:  # whatever it is, those who wait raise it
                lookup.error = error
            with self._lock:
                lookup.done = True
                del self._lookups[lookup.key]
                waiting = list(lookup.waiting)
            for news in waiting:
                news.set()


_resolver = Resolver()


def resolve(host: str, port: int, handle: Handle) -> list[Any]:
    """See ``Resolver.resolve``; with the one of this process."""
    return _resolver.resolve(host, port, handle)


def _start_afresh() -> None:
    global _resolver
    _resolver = Resolver()


if hasattr(os, "register_at_fork"):
    # A child has none of its threads, and perhaps a lock that is never free.
    os.register_at_fork(after_in_child=_start_afresh)
