"""All deadlines of one owner on a single armed ``threading.Timer`` (row S41). Floor 2.

A Timer is a thread; one for each call in flight would be a thousand threads. Here one Timer is
armed for the earliest entry of a heap. When it fires it pops what is due, arms itself for the next
entry and hands the actions over; it decides nothing and calls nothing of its owner's. A firing
that comes late, or finds that its entry was cancelled, finds nothing to do.
"""

from __future__ import annotations

import heapq
import logging
import threading
from collections.abc import Callable
from typing import Protocol

from raxol_sync._deadline import Deadline, now

_log = logging.getLogger("raxol_sync")
_SLACK = 64  # cancelled entries that may stay in the heap before it is rebuilt


class TimerLike(Protocol):
    """What the scheduler needs of ``threading.Timer``; tests pass one that fires when told."""

    def start(self) -> None: ...
    def cancel(self) -> None: ...


class Entry:
    """One scheduled action. Made by ``Scheduler.at``."""

    __slots__ = ("action", "due")

    def __init__(self, due: float, action: Callable[[], object]) -> None:
        self.due = due
        self.action: Callable[[], object] | None = action

    def __lt__(self, other: Entry) -> bool:
        return self.due < other.due


class Scheduler:
    """A heap of deadlines behind one Timer. Thread-safe."""

    def __init__(
        self,
        hand_over: Callable[[Callable[[], object]], None],
        name: str,
        *,
        timer: Callable[[float, Callable[[], None]], TimerLike] = threading.Timer,
    ) -> None:
        """``hand_over(action)`` runs an action soon, on another thread."""
        self._hand_over = hand_over
        self._name = name
        self._new_timer = timer
        # Guards: _heap, _dead, _armed, _armed_for, _threads, _generation, _closed. Leaf.
        self._lock = threading.Lock()
        self._heap: list[Entry] = []
        self._dead = 0
        self._armed: TimerLike | None = None
        self._armed_for = 0.0
        self._threads: list[threading.Thread] = []  # Timers that may not have ended yet
        self._generation = 0  # which Timer is the armed one; an older one's firing disarms nothing
        self._closed = False

    def at(self, due: float, action: Callable[[], object]) -> Entry:
        """Have ``action()`` handed over at ``due`` (on the clock of ``now()``).

        Raises:
            RuntimeError: the system starts no more threads; the action is forgotten.
        """
        entry = Entry(due, action)
        with self._lock:
            if self._closed:
                return entry
            heapq.heappush(self._heap, entry)
            timer = self._arm()
        try:
            self._start(timer)
        except RuntimeError:
            self.cancel(entry)
            raise
        return entry

    def cancel(self, entry: Entry) -> None:
        """Forget an entry; one that was handed over or cancelled already is left alone."""
        with self._lock:
            if entry.action is None:
                return
            entry.action = None
            self._dead += 1
            if self._dead > _SLACK and self._dead * 2 > len(self._heap):
                self._heap = [e for e in self._heap if e.action is not None]
                heapq.heapify(self._heap)
                self._dead = 0

    def close(self, deadline: Deadline) -> None:
        """Forget all entries, disarm the Timer and join it (never by itself).

        Timers that fired or were displaced a moment ago are joined too.
        """
        with self._lock:
            self._closed = True
            self._heap.clear()
            timer, self._armed = self._armed, None
            threads, self._threads = self._threads, []
        if timer is not None:
            timer.cancel()
        for thread in threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join(deadline.left())

    def _arm(self) -> TimerLike | None:
        """Make a Timer for the earliest entry if none is armed that early. Needs the lock."""
        if not self._heap:
            return None
        due = self._heap[0].due
        if self._armed is not None:
            if self._armed_for <= due:
                return None
            self._armed.cancel()
        self._generation += 1
        generation = self._generation
        timer = self._new_timer(max(0.0, due - now()), lambda: self._fire(generation))
        if isinstance(timer, threading.Thread):
            timer.name = self._name
            timer.daemon = True  # a deadline far away must not hold up the interpreter's exit
            # Not started yet, or not ended yet: only a few, as a displaced one ends at once.
            self._threads = [t for t in self._threads if t.ident is None or t.is_alive()]
            self._threads.append(timer)
        self._armed, self._armed_for = timer, due
        return timer

    def _start(self, timer: TimerLike | None) -> None:
        # Outside the lock: starting a thread waits for it. Between arming and starting another
        # thread may have cancelled this Timer; then it starts and ends at once.
        if timer is None:
            return
        try:
            timer.start()
        except RuntimeError:  # no more threads: the next entry must try again
            with self._lock:
                if self._armed is timer:
                    self._armed = None
                if isinstance(timer, threading.Thread) and timer in self._threads:
                    self._threads.remove(timer)
            raise

    def _fire(self, generation: int) -> None:
        due: list[Callable[[], object]] = []
        with self._lock:
            if generation == self._generation:
                self._armed = None
            moment = now()
            while self._heap and (self._heap[0].due <= moment or self._heap[0].action is None):
                entry = heapq.heappop(self._heap)
                if entry.action is None:
                    self._dead -= 1
                else:
                    due.append(entry.action)
                    entry.action = None
            timer = None if self._closed else self._arm()
        for action in due:
            try:
                self._hand_over(action)
            except Exception:  # the owner's: the other deadlines must still be kept
                _log.exception("! a deadline of %s could not be handed over", self._name)
        self._start(timer)
