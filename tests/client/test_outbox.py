"""The outbox: one writer, in order, bounded, and whole lines whatever interrupts it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.client.frames import Frame
from raxol_sync.client.outbox import Outbox


class Pipe:
    """A pipe that takes as many bytes as each step says: 0 is full."""

    def __init__(self, steps: list[int]) -> None:
        self.steps: Iterator[int] = iter(steps)
        self.data = b""

    def write(self, frame: Frame) -> bool:
        left = frame.data[sum(frame.written) :]
        step = next(self.steps, len(left))
        if step == 0:
            return False
        self.data += left[:step]
        frame.written.append(min(step, len(left)))
        return True


def outbox(pipe: Pipe, max_frames: int = 100, max_bytes: int = 10_000) -> Outbox:
    return Outbox(pipe.write, lambda: None, max_frames=max_frames, max_bytes=max_bytes)


@given(st.lists(st.binary(min_size=1, max_size=9), max_size=12), st.lists(st.integers(0, 5)))
def test_c12_frames_leave_whole_and_in_order(frames: list[bytes], steps: list[int]) -> None:
    """Partial writes and full pipes cut nothing and repeat nothing."""
    pipe = Pipe(steps)
    box = outbox(pipe)
    for data in frames:
        assert box.put(Frame(data))
        box.flush(inline=True)
        while not box.mailbox.empty():  # the role was handed over: be the writer thread
            box.mailbox.get()
            while not box.drain():
                pass
    assert pipe.data == b"".join(frames)


def test_c12_the_bounds_hold_and_one_large_frame_passes_an_empty_box() -> None:
    """At the bound a frame is refused, not waited for."""
    box = outbox(Pipe([]), max_frames=2, max_bytes=10)
    assert box.put(Frame(b"x" * 50))
    assert not box.put(Frame(b"x"))
    box = outbox(Pipe([]), max_frames=2, max_bytes=10)
    assert [box.put(Frame(b"x")) for _ in range(3)] == [True, True, False]


def test_c12_a_frame_is_taken_back_only_while_no_byte_has_left() -> None:
    """The head may be half written; others may not."""
    box = outbox(Pipe([3, 0]))
    first, second = Frame(b"abcdef"), Frame(b"second")
    box.put(first)
    box.flush(inline=True)
    box.put(second)
    assert not box.retract(first)
    assert box.retract(second)
    assert not box.retract(second)


def test_c12_only_one_thread_writes() -> None:
    """A second flush while one is writing returns at once; the first writes both frames."""
    inside, go = threading.Event(), threading.Event()
    written: list[bytes] = []

    def write(frame: Frame) -> bool:
        inside.set()
        go.wait(5)
        written.append(frame.data)
        frame.written.append(len(frame.data))
        return True

    box = Outbox(write, lambda: None, max_frames=10, max_bytes=100)
    box.put(Frame(b"one"))
    thread = threading.Thread(target=box.flush, kwargs={"inline": True})
    thread.start()
    assert inside.wait(5)
    box.put(Frame(b"two"))
    box.flush(inline=True)
    assert written == []
    go.set()
    thread.join(5)
    assert written == [b"one", b"two"]


def test_c10_an_interrupted_write_hands_the_role_on() -> None:
    """The frame is written once, by the writer thread, and the box goes on working."""
    written: list[bytes] = []
    interrupt = [True]

    def write(frame: Frame) -> bool:
        written.append(frame.data)
        frame.written.append(len(frame.data))
        if interrupt.pop() if interrupt else False:
            raise KeyboardInterrupt
        return True

    box = Outbox(write, lambda: None, max_frames=10, max_bytes=100)
    box.put(Frame(b"one"))
    with pytest.raises(KeyboardInterrupt):
        box.flush(inline=True)
    assert box.mailbox.get_nowait() is None
    assert box.drain()
    box.put(Frame(b"two"))
    box.flush(inline=True)
    assert written == [b"one", b"two"]


def test_c02_a_closed_box_takes_and_writes_nothing() -> None:
    """What was queued is dropped."""
    pipe = Pipe([])
    box = outbox(pipe)
    box.put(Frame(b"late"))
    assert box.close(1.0)
    box.flush(inline=True)
    assert not box.put(Frame(b"later"))
    assert pipe.data == b""
