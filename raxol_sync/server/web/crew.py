"""The threads that serve requests: started when needed, ended when idle. Floor 2."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from raxol_sync._deadline import Deadline

Job = Callable[[], object]
_log = logging.getLogger("raxol_sync.server")


class Crew:
    """At most ``size`` threads, and one more for each that is lent to a stream. Thread-safe."""

    def __init__(self, name: str, size: int, idle_seconds: float) -> None:
        self._name = name
        self._size = size
        self._idle_seconds = idle_seconds
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        # Guards: _idle, _waiting, _lent, _threads, _leaving, _started, _closed. Leaf.
        self._lock = threading.Lock()
        self._idle = 0
        self._waiting = 0
        self._lent = 0
        self._threads: set[threading.Thread] = set()
        self._leaving: set[threading.Thread] = set()  # they do nothing more, and are to be joined
        self._started = 0
        self._closed = False

    @property
    def busy(self) -> bool:
        """Whether jobs wait for a thread. A hint, taken without the lock."""
        return self._waiting > 0

    @property
    def size(self) -> int:
        """How many threads there are."""
        return len(self._threads)

    def put(self, job: Job) -> None:
        """Have ``job()`` run; it must not raise. Without a thread to be had it waits for one."""
        started: threading.Thread | None = None
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
                self._jobs.put(job)
            elif self._may_grow():
                started = self._recruit(job)
            else:
                self._waiting += 1
                self._jobs.put(job)
        if started is not None:
            self._start(started, job)

    def lend(self) -> None:
        """Let one more thread be started: the caller's serves a stream from now on."""
        started: threading.Thread | None = None
        job: Job | None = None
        with self._lock:
            self._lent += 1
            if self._waiting > 0 and self._may_grow():
                job = self._take_waiting()
                if job is not None:
                    started = self._recruit(job)
        if started is not None and job is not None:
            self._start(started, job)

    def take_back(self) -> None:
        """End what ``lend`` began."""
        with self._lock:
            self._lent -= 1

    def close(self) -> None:
        """Let each thread end once no job waits. Jobs that are put later run all the same."""
        with self._lock:
            self._closed = True
            for _ in range(self._idle):
                self._jobs.put(None)
            self._idle = 0

    def join(self, deadline: Deadline) -> list[str]:
        """Wait for the threads; return the names of those that did not end in time."""
        with self._lock:
            threads = [*self._threads, *self._leaving]
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(deadline.left())
        return [thread.name for thread in threads if thread.is_alive()]

    def _may_grow(self) -> bool:
        return len(self._threads) < self._size + self._lent

    def _recruit(self, job: Job) -> threading.Thread:
        self._started += 1
        self._leaving = {thread for thread in self._leaving if thread.is_alive()}
        # Daemon: an application that hangs must not hold up the interpreter's exit.
        thread = threading.Thread(
            target=self._work, args=([job],), name=f"{self._name}-{self._started}", daemon=True
        )
        self._threads.add(thread)
        return thread

    def _start(self, thread: threading.Thread, job: Job) -> None:
        try:
            thread.start()
        except RuntimeError:  # the system has no thread to give
            with self._lock:
                self._threads.discard(thread)
                alone = not self._threads
                if self._idle > 0:  # meanwhile
                    self._idle -= 1
                    self._jobs.put(job)
                elif not alone:
                    self._waiting += 1
                    self._jobs.put(job)
            if alone:
                _log.error("! the system has no thread to give: a request runs where it came in")
                job()

    def _work(self, first: list[Job]) -> None:
        job: Job | None = first.pop()
        while job is not None:
            try:
                job()
            except BaseException:  # the thread must go on with the next job, and stay counted
                _log.exception("! a job failed in a thread of the web server")
            job = None  # what it holds must not live on while we wait
            job = self._next()

    def _next(self) -> Job | None:
        with self._lock:
            job = self._take_waiting()
            if job is not None:
                return job
            if self._closed or len(self._threads) > self._size + self._lent:
                self._leave()
                return None
            self._idle += 1
        try:
            job = self._jobs.get(timeout=self._idle_seconds)
        except queue.Empty:
            return self._late()
        if job is None:
            with self._lock:
                self._leave()
        return job

    def _late(self) -> Job | None:
        """Take what was put while our time ran out; else leave."""
        with self._lock:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                self._idle -= 1
                job = None
            if job is None:
                self._leave()
        return job

    def _leave(self) -> None:
        thread = threading.current_thread()
        self._threads.discard(thread)
        self._leaving.add(thread)

    def _take_waiting(self) -> Job | None:
        if self._waiting == 0:
            return None
        self._waiting -= 1
        return self._jobs.get_nowait()
