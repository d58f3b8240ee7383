"""What waits for a request's outcome: a blocked caller, or a future. Floor 2.

Both keep the outcome in ``store`` (under the session's lock) and hand it over in ``release``, once.
Between the two lie the handlers of the notifications that came before the answer. A wait whose time
is up in between takes the stored outcome: an answer that has come is never lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Generic, NamedTuple, TypeVar

from raxol_sync._deadline import now
from raxol_sync._delivery import DeliveredFuture
from raxol_sync._scheduler import Entry as Alarm
from raxol_sync._scheduler import Scheduler
from raxol_sync.client.metering import Holding

T = TypeVar("T")
Json = dict[str, Any]
_SLICE = 0.5  # seconds; how late an interrupt may be noticed
Progress = Callable[[float, float | None, str | None], object]


class Extras(NamedTuple):
    """What goes with a call beside its params.

    Attributes:
        headers: for HTTP in the modern era (row C30).
        refresh: makes other headers, once, if the server does not agree with these.
        pay: holds what pays for the call, if it costs anything; raises if nothing does (row C25).
    """

    headers: Mapping[str, str] | None = None
    refresh: Callable[[], Mapping[str, str] | None] | None = None
    pay: Callable[[], Holding | None] | None = None


PLAIN = Extras()


class _Token:
    """What a ``Waiter`` and a ``Ticket`` share: the outcome that is kept."""

    __slots__ = ("_outcome", "nested", "progress")

    def __init__(self, nested: bool, progress: Progress | None) -> None:
        self.nested = nested
        self.progress = progress
        self._outcome: tuple[Json | None, BaseException | None] | None = None

    def store(self, result: Json | None, error: BaseException | None) -> None:
        """Keep the outcome."""
        self._outcome = (result, error)

    @property
    def settled(self) -> bool:
        """Whether there is an outcome, handed over or not."""
        return self._outcome is not None

    @property
    def error(self) -> BaseException | None:
        """The error, if the outcome is one."""
        return None if self._outcome is None else self._outcome[1]


class Waiter(_Token):
    """A blocked caller. ``wait`` is the caller's; the rest is called by whoever settles it.

    ``nested``: the caller is a handler on the delivery thread, so its outcome must not wait there.
    """

    __slots__ = ("_gate",)

    def __init__(self, *, nested: bool, progress: Progress | None = None) -> None:
        super().__init__(nested, progress)
        # A lock as a one-shot gate: it is what Event and Condition are made of, without their cost.
        self._gate = threading.Lock()
        self._gate.acquire()

    def release(self) -> None:
        """Wake the caller. Called once, because the request is popped once."""
        self._gate.release()

    def wait(self, seconds: float | None) -> bool:
        """Wait for the outcome; return whether it was handed over in time."""
        # In slices: a signal that comes just before the system call that waits does not end that
        # call, and Python sees it only when the call returns.
        end = None if seconds is None else now() + seconds
        left = _SLICE if seconds is None else seconds
        while not self._gate.acquire(timeout=min(left, _SLICE)):
            if end is not None:
                left = end - now()
                if left <= 0:
                    return False
        return True

    def outcome(self) -> Json:
        """Return the result, or raise the error, which must be there."""
        assert self._outcome is not None
        result, error = self._outcome
        if error is not None:
            raise error
        assert result is not None
        return result


class Ticket(_Token, Generic[T]):
    """A future's end of a request: converts the result and settles the future.

    ``nested``: it was made by a handler, which may wait for it: as with ``Waiter``.
    ``pays(error)`` is called before the future is settled: whoever waits for that may want to use
    what it gives back. It must not raise.
    """

    __slots__ = ("_convert", "_future", "alarm", "pays")

    def __init__(
        self,
        future: DeliveredFuture[T],
        convert: Callable[[Json], T],
        *,
        nested: bool,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(nested, progress)
        self.alarm: tuple[Scheduler, Alarm] | None = None
        self.pays: Callable[[BaseException | None], object] | None = None
        self._future: DeliveredFuture[T] | None = future
        self._convert = convert

    def release(self) -> None:
        """Settle the future with the stored outcome; the second time nothing happens."""
        future = self._take()
        if future is None or self._outcome is None:
            return
        result, error = self._outcome
        if error is None and result is not None:
            try:
                future.settle(self._convert(result))
            except Exception as problem:  # the future carries it; whoever settles goes on
                error = problem
        if error is not None:
            future.fail(error)

    def cancel(self) -> None:
        """Leave the future cancelled, as ``concurrent.futures`` means it."""
        future = self._take()
        if future is not None and Future.cancel(future):
            # Tells concurrent.futures.wait and as_completed, as an executor would.
            future.set_running_or_notify_cancel()

    def _take(self) -> DeliveredFuture[T] | None:
        """Return the future once, let go of it and of its alarm, and have it paid for."""
        future, self._future = self._future, None
        alarm, self.alarm = self.alarm, None
        if alarm is not None:
            scheduler, entry = alarm
            scheduler.cancel(entry)
        pays, self.pays = self.pays, None
        if pays is not None:
            pays(self.error)
        return future
