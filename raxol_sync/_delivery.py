"""One thread that runs what must not run on a reader, a timer or under a lock. Floor 2.

Done callbacks of futures and notification handlers are user code: they may block, raise, or call
back into the object that they came from. ``Delivery`` runs them one after another, in the order in
which they were posted.
"""

from __future__ import annotations

import logging
import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any, TypeVar

from raxol_sync._deadline import Deadline

T = TypeVar("T")
Job = Callable[[], object]
_log = logging.getLogger("raxol_sync")


class Delivery:
    """A lazily started thread with a queue of jobs. Thread-safe.

    The queue's bound is its callers': each posts at most a fixed number of jobs for each request
    in flight, and requests in flight are bounded. The thread ends with ``close``, or when the
    object is collected: it does not keep it alive.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        # Guards: _thread, _closed. Leaf: nothing is called out while it is held.
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        # Not at exit: handlers of atexit that run later may still want jobs done.
        weakref.finalize(self, self._jobs.put, None).atexit = False

    def post(self, job: Job) -> None:
        """Run ``job()`` later, on this thread.

        After ``close`` it gets a thread of its own: whoever settles a request so late may be a
        reader, which must run no user code. Where the system has no thread it is run by the caller.

        Raises:
            RuntimeError: the system starts no more threads. The job stays queued and is run if a
                later ``post`` can start one.
        """
        with self._lock:
            closed = self._closed
            if not closed:
                self._jobs.put(job)
                if self._thread is None:
                    self._start()
        if closed:
            late = threading.Thread(target=_run_one, args=(job,), name=self._name, daemon=True)
            try:
                late.start()
            except RuntimeError:  # the interpreter is about to end, or there are no more threads
                _run_one(job)

    def _start(self) -> None:
        """Start the thread. Needs the lock: ``close`` must never see one that is not started."""
        thread = threading.Thread(target=_run, args=(self._jobs,), name=self._name, daemon=True)
        self._thread = thread
        try:
            thread.start()
        except RuntimeError:
            self._thread = None
            raise

    def is_current(self) -> bool:
        """Return whether the caller runs on this thread."""
        return threading.current_thread() is self._thread

    def close(self, deadline: Deadline) -> bool:
        """Run what is queued, end the thread and join it; return whether it has ended.

        The thread is not joined by itself: called from a job, it ends after that job.
        """
        with self._lock:
            self._closed = True
            thread = self._thread
            self._jobs.put(None)
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(deadline.left())
        return not thread.is_alive()


def _run(jobs: queue.SimpleQueue[Job | None]) -> None:
    while True:
        job = jobs.get()
        if job is None:
            return
        _run_one(job)
        del job  # a job kept until the next one arrives would keep its request alive


def _run_one(job: Job) -> None:
    try:
        job()
    except BaseException:  # user code, Cancelled and sys.exit() too: others' jobs must go on
        _log_failure()


def _log_failure() -> None:
    _log.exception("! a callback raised on %s", threading.current_thread().name)


class DeliveredFuture(Future[T]):
    """A ``Future`` whose done callbacks always run on a ``Delivery`` thread (row S03).

    Whoever settles it (a worker, a reader, a caller that cancels) must run no user code; so
    callbacks are posted, also when it is settled already. ``cancel()`` asks ``on_cancel`` instead
    of marking the future cancelled: ``cancelled()`` stays false (row S04).
    """

    def __init__(self, post: Callable[[Job], None]) -> None:
        super().__init__()
        self._post = post
        self._on_cancel: Callable[[], object] | None = None

    def bind_cancel(self, on_cancel: Callable[[], object]) -> None:
        """Set what ``cancel()`` does; it is called in the cancelling thread."""
        self._on_cancel = on_cancel

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        """Call ``fn(future)`` on the delivery thread once the future is settled."""
        post = self._post

        def posted(future: Future[T]) -> None:
            post(lambda: fn(future))

        super().add_done_callback(posted)

    def cancel(self) -> bool:
        """Cancel the request, if it still runs; return whether this call did."""
        if self.done() or self._on_cancel is None:
            return False
        return bool(self._on_cancel())

    def settle(self, value: T) -> bool:
        """Set the result unless it is settled already; return whether this call did."""
        return self._settle(self.set_result, value)

    def fail(self, error: BaseException) -> bool:
        """Set the exception unless it is settled already; return whether this call did."""
        return self._settle(self.set_exception, error)

    def _settle(self, setter: Callable[[Any], None], value: Any) -> bool:
        if self.done():
            return False
        try:
            setter(value)
        except InvalidStateError:  # lost a race, whose winner has settled it
            return False
        return True
