"""Frames on their way out: bounded, in order, written by one thread at a time. Floor 2.

There is one *writer's role*; whoever has it writes. A caller takes it if it is free, writes what is
queued without ever blocking, and gives it back; where the pipe is full it is handed to the writer
thread, which may wait. So a quiet connection costs no hop to another thread, and no caller waits
for a peer that does not read.

Interrupts. ``KeyboardInterrupt`` may be raised in the main thread between any two bytecodes, also
between a write and the note of how much was written: the line would then be written twice. So the
two are one C call (``_noting``), and a frame stays at the head until all of it is known to be gone.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from raxol_sync.client.frames import Frame


def _noting(into: list[Any], call: Callable[..., Any], *arguments: Any) -> None:
    """Append ``call(*arguments)`` to ``into`` with no bytecode in between (see above)."""
    into.extend(map(call, *((argument,) for argument in arguments)))


class Outbox:
    """The frames that wait to be written. Thread-safe."""

    def __init__(
        self,
        write: Callable[[Frame], bool],
        ensure_writer: Callable[[], None],
        *,
        max_frames: int,
        max_bytes: int,
    ) -> None:
        """Say how frames are written.

        Args:
            write: writes what is left of a frame, without blocking, and returns whether anything
                more can be written now.
            ensure_writer: starts the writer thread if there is none. It takes its orders from
                ``mailbox`` (``None``: the role is yours) and answers each with ``drain``.
            max_frames: how many frames may wait.
            max_bytes: how many bytes may wait, unless it is one frame alone.
        """
        self._write = write
        self._ensure_writer = ensure_writer
        self.mailbox: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        # Guards: _frames, _bytes, _closed. Leaf: nothing is called out while it is held.
        self._lock = threading.Lock()
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._closed = False
        self._role = threading.Lock()  # the writer's role; held across writes, which do not block

    def put(self, frame: Frame) -> bool:
        """Queue a frame; return whether there was room. One frame of any size always fits."""
        size = len(frame.data)
        with self._lock:
            full = len(self._frames) >= self._max_frames
            if self._closed or full or (self._frames and self._bytes + size > self._max_bytes):
                return False
            self._frames.append(frame)
            self._bytes += size
            return True

    def retract(self, frame: Frame) -> bool:
        """Take a frame back; return false if it has left, or is being written."""
        with self._lock:
            if not self._frames or frame not in self._frames:
                return False
            if frame is self._frames[0] and (frame.written or self._role.locked()):
                return False
            self._frames.remove(frame)
            self._bytes -= len(frame.data)
            return True

    def flush(self, *, inline: bool) -> None:
        """Write what is queued, here (``inline``) or on the writer thread, unless someone does."""
        while self._frames and not self._closed:
            taken: list[bool] = []
            given: list[None] = []  # the role was given back, or away
            try:
                _noting(taken, self._role.acquire, False)
                if not taken[0]:
                    return
                if not inline or not self._drain():
                    self._give_away(given)
                    return
                _noting(given, self._role.__exit__, None, None, None)
                # Once more: someone may have queued a frame while the role was still taken.
            except BaseException:  # an interrupt: whoever comes next must find the role free
                if taken and taken[0] and not given:
                    self._give_away(given)
                raise

    def _give_away(self, given: list[None]) -> None:
        """Hand the role to the writer thread."""
        self._ensure_writer()
        _noting(given, self.mailbox.put, None)

    def drain(self) -> bool:
        """With the role: write until nothing is left, give the role back, return true.

        Where the pipe is full, keep the role and return false.
        """
        while self._drain():
            self._role.release()
            if not self._frames or self._closed or not self._role.acquire(blocking=False):
                return True
        return False

    def close(self, seconds: float) -> bool:
        """Take the role for good and drop what is left; return false if the writer kept it."""
        with self._lock:
            self._closed = True
        taken = self._role.acquire(timeout=seconds)
        with self._lock:
            self._frames.clear()
            self._bytes = 0
        return taken

    def _drain(self) -> bool:
        """Write frame after frame; return whether all are gone (false: the pipe is full)."""
        while True:
            with self._lock:
                head = self._frames[0] if self._frames else None
                if head is not None and sum(head.written) >= len(head.data):
                    self._frames.popleft()
                    self._bytes -= len(head.data)
                    continue
            if head is None or self._closed:
                return True
            if not self._write(head):
                return False
