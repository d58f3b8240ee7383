"""The threads that run callbacks, and the count of who may use them (rows S14 to S18). Floor 2.

Theory of operation. A *slot* is the right to run a callback; ``Slots`` counts them, over all
connections and for each one. A slot is taken without waiting before the job is handed to the pool
and given back only when the callback has really returned: Python cannot stop a thread, so one that
ignores its time-out keeps its slot (a bound that lies is no bound). Therefore the pool never has
more jobs than slots and its queue needs no bound of its own.

``WorkerPool`` stands behind ``concurrent.futures.Executor`` and is not the standard
``ThreadPoolExecutor`` for one reason: that one joins its workers when the interpreter exits, so a
callback that hangs would keep the process alive for ever.
"""

from __future__ import annotations

import logging
import queue
import threading
import weakref
from collections.abc import Callable, Collection
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from raxol_sync._deadline import Deadline
from raxol_sync.server.forks import on_fork

T = TypeVar("T")
Job = Callable[[], object]
_log = logging.getLogger("raxol_sync.server")


class Slots:
    """How many callbacks run: in all and by connection. Not thread-safe: the owner serialises."""

    def __init__(self, total: int, share: int, unshared: object = None) -> None:
        self._unshared = object() if unshared is None else unshared
        self.total = total
        self.share = share
        self.in_flight = 0
        self.by_connection: dict[object, int] = {}

    def take(self, conn_id: object) -> tuple[str, int] | None:
        """Take a slot; or return which bound forbids it and how large it is, and take none.

        One taken for ``unshared`` counts in all only (row S24).
        """
        held = self.by_connection.get(conn_id, 0)
        if held >= self.share:
            return "connection", self.share
        if self.in_flight >= self.total:
            return "server", self.total
        self.in_flight += 1
        if conn_id is not self._unshared:
            self.by_connection[conn_id] = held + 1
        return None

    def give_back(self, conn_id: object) -> None:
        """Give back one slot that ``take`` gave to this connection."""
        self.in_flight -= 1
        if conn_id is self._unshared:
            return
        held = self.by_connection[conn_id] - 1
        if held:
            self.by_connection[conn_id] = held
        else:
            del self.by_connection[conn_id]


class _State:
    """What the threads share with their pool; they must not keep the pool itself alive."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        # Guards: idle, threads, closed. Leaf.
        self.lock = threading.Lock()
        self.idle = 0
        self.threads: list[threading.Thread] = []
        self.closed = False


class WorkerPool(Executor):
    """At most ``max_workers`` daemon threads, started when needed. Thread-safe.

    Its owner hands in no more jobs at once than it has workers. An idle thread waits for the next
    job; all end when the pool is shut down or collected.
    """

    def __init__(self, max_workers: int, name: str) -> None:
        self._max_workers = max_workers
        self._name = name
        self._state = _State()
        on_fork(self.forked)
        weakref.finalize(self, _dismiss, self._state).atexit = False

    def forked(self) -> None:
        """In a child that a job forked: its thread, the only one there, ends with that job.

        Else the child would wait for work for ever, and nobody would know of it.
        """
        state = self._state
        if state.threads:
            state.lock = threading.Lock()  # Guards: as before, when another thread may have held it
            state.threads, state.closed, state.jobs = [], True, queue.SimpleQueue()
            state.jobs.put(None)

    def run(self, job: Job) -> None:
        """Run ``job()`` on a worker; it must not raise.

        Raises:
            RuntimeError: the pool is shut down, or no thread can be started. The job never runs.
        """
        state = self._state
        started: threading.Thread | None = None
        with state.lock:
            if state.closed:
                raise RuntimeError("the worker pool is shut down")
            if state.idle > 0:
                state.idle -= 1
                state.jobs.put(job)
            elif len(state.threads) < self._max_workers:
                # Daemon: a callback that hangs must not hold up the interpreter's exit (S14).
                # It gets its first job itself: in the queue it would outlive a failure to start.
                name, first = f"{self._name}-{len(state.threads) + 1}", [job]
                started = threading.Thread(
                    target=_work, args=(state, first), name=name, daemon=True
                )
                state.threads.append(started)
            else:
                state.jobs.put(job)
        if started is not None:
            self._start(started)

    def _start(self, thread: threading.Thread) -> None:
        try:
            thread.start()
        except RuntimeError:  # the system has no thread to give
            with self._state.lock:
                self._state.threads.remove(thread)
            raise

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run ``fn(*args, **kwargs)`` on a worker; return a future of its result."""
        future: Future[T] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # the future carries it to whoever waits
                future.set_exception(error)

        self.run(job)
        return future

    def shutdown(
        self,
        wait: bool = True,
        *,
        cancel_futures: bool = False,
        deadline: Deadline | None = None,
        skip: Collection[threading.Thread | None] = (),
    ) -> None:
        """Take no more jobs and end the threads; with ``wait``, join them until ``deadline``.

        Threads in ``skip`` are not waited for, nor is the caller's own. All are daemons.
        """
        _retire(self._state)
        if not wait:
            return
        deadline = deadline or Deadline(None)
        for thread in list(self._state.threads):
            if thread in skip or thread is threading.current_thread():
                continue
            if thread.ident is not None:
                thread.join(deadline.left())


def _retire(state: _State) -> None:
    with state.lock:
        state.closed = True
    _dismiss(state)


def _dismiss(state: _State) -> None:
    """Tell every thread to end. Takes no lock: the collector may call it, in any thread."""
    for _ in list(state.threads):
        state.jobs.put(None)


def _work(state: _State, first: list[Job]) -> None:
    job: Job | None = first.pop()  # a thread keeps its arguments, but not what is taken out of them
    while job is not None:
        try:
            job()
        except BaseException:  # jobs answer their own failures; a worker must survive all the same
            _report()
        job = None  # kept until the next one arrives it would keep its request alive
        with state.lock:
            state.idle += 1
        job = state.jobs.get()


def _report() -> None:
    try:
        _log.exception("! a job failed in a worker")
    except BaseException:  # a log handler that raises must not cost us the worker
        return


class Alarm(threading.Timer):
    """A ``threading.Timer`` whose ``cancel`` takes no lock: the collector may call it."""

    def __init__(self, seconds: float, fire: Callable[[], None]) -> None:
        super().__init__(seconds, fire)
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()

    def cancel(self) -> None:
        """End the thread without firing, if it has not fired yet."""
        self._wake.put(None)

    def run(self) -> None:
        """Wait, then fire unless cancelled."""
        try:
            self._wake.get(timeout=self.interval)
        except queue.Empty:
            self.function()


class Alarms:
    """Makes the timers of one scheduler, and ends the last one when their owner is collected.

    Without that a timer for a deadline far away would outlive a server that nobody closed.
    """

    def __init__(self) -> None:
        self._last: Alarm | None = None

    def __call__(self, seconds: float, fire: Callable[[], None]) -> Alarm:
        """Make one; the scheduler serialises."""
        self._last = Alarm(seconds, fire)
        return self._last

    def retire(self) -> None:
        """Cancel the one that was made last, which is the only one that may still be armed."""
        if self._last is not None:
            self._last.cancel()
