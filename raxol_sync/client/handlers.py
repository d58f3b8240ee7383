"""What the user has given to be told and asked, and the threads for the latter (row C14). Floor 2.

A handler of a server's request may ask a person, and so take minutes: neither the reader nor the
delivery thread may wait for it. Threads are started when they are needed and stay until ``close``.
What else must not hold those up, such as requests over HTTP, has a ``ThreadPool`` of its own.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from raxol_sync._deadline import Deadline
from raxol_sync.client.calls import Progress
from raxol_sync.client.responder import Responder

Job = Callable[[], object]
_log = logging.getLogger("raxol_sync.client")


@dataclass(frozen=True)
class Handlers:
    """What the user wants to be told and asked; the first three run on the delivery thread.

    Attributes:
        log: ``(level, data, logger)`` for each log message.
        progress: ``(done, total, message)`` for each progress notification of a call.
        notification: ``(method, params)`` for each notification.
        changed: ours, called at once on the reader with the method of each notification.
        refused: ours, likewise, with the method and the code of each error answer.
        responder: what answers the server's own requests, on threads of their own.
    """

    log: Callable[[str, Any, str | None], object] | None = None
    progress: Progress | None = None
    notification: Callable[[str, dict[str, Any]], object] | None = None
    changed: Callable[[str], object] | None = None
    refused: Callable[[str, int], object] | None = None
    responder: Responder | None = None


def progress_of(params: Mapping[str, Any]) -> tuple[float | None, float | None, str | None]:
    """Return a progress notification's facts; ``None`` where one is missing or of a wrong type."""
    done, total, message = params.get("progress"), params.get("total"), params.get("message")
    return (
        done if isinstance(done, (int, float)) else None,
        total if isinstance(total, (int, float)) else None,
        message if isinstance(message, str) else None,
    )


class ThreadPool:
    """A bounded number of threads with one queue of jobs. Thread-safe.

    The queue's bound is its owner's: of handlers see ``Desk.jobs``.
    """

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size
        # Guards: _jobs, _threads, _idle, _closed. Leaf: nothing is called out while it is held.
        self._lock = threading.Lock()
        self._ready = threading.Condition(self._lock)
        self._jobs: deque[Job] = deque()
        self._threads: set[threading.Thread] = set()
        self._idle = 0
        self._closed = False

    def post(self, job: Job) -> bool:
        """Run ``job()`` soon; return false if that will never be: closed, or no thread starts."""
        with self._lock:
            if self._closed:
                return False
            self._jobs.append(job)
            if self._idle >= len(self._jobs):  # one that was woken counts until it has its job
                self._ready.notify()
            elif len(self._threads) < self._size:
                return self._start() or self._keep(job)
            return True

    def _start(self) -> bool:
        """Start one more thread. Needs the lock: ``close`` must not see one that never starts."""
        # Daemon: a handler that never returns must not hold up the interpreter's exit.
        name = f"{self._name}-{len(self._threads) + 1}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system has no more
            return False
        self._threads.add(thread)
        return True

    def _keep(self, job: Job) -> bool:
        """No thread could be started: leave the job to one that there is. Needs the lock."""
        if not self._threads:
            self._jobs.remove(job)
        return bool(self._threads)

    def is_current(self) -> bool:
        """Return whether the caller runs on one of these threads."""
        threads = self._threads
        return bool(threads) and threading.current_thread() in threads

    def close(self, deadline: Deadline) -> bool:
        """Drop what waits, end and join the threads; return whether all of them have ended.

        The calling thread is not joined: if it is one of these, it ends after its job.
        """
        with self._lock:
            self._closed = True
            self._jobs.clear()
            self._ready.notify_all()
            threads = self._threads - {threading.current_thread()}
        for thread in threads:
            thread.join(deadline.left())
        return not any(thread.is_alive() for thread in threads)

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._jobs and not self._closed:
                    self._idle += 1
                    self._ready.wait()
                    self._idle -= 1
                if self._closed:
                    return
                job = self._jobs.popleft()
            try:
                job()
            except BaseException:  # a handler's sys.exit() too: the next jobs need this thread
                _log.exception("! a handler broke on %s", threading.current_thread().name)
            del job  # a job kept until the next one comes would keep its request alive
