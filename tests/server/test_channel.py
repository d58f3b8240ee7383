"""Channels: order, bounds, one reader at a time, replays."""

from __future__ import annotations

import threading

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from raxol_sync.server import channel
from raxol_sync.server.batch import Part
from raxol_sync.server.channel import Channel, Item, Reader
from raxol_sync.server.outbox import weight_for
from tests.server.helpers import WAIT


def messages(items: list[Item] | None) -> list[object]:
    """What items hold."""
    assert items is not None
    return [item.message for item in items]


def test_s20_messages_come_in_order_and_end_with_the_last() -> None:
    """All that waits is handed out at once."""
    box = Channel()
    reader = box.attach()
    assert reader.take(0) == []
    for number in range(3):
        assert box.put({"n": number})
    assert box.put({"n": 3}, last=True)
    assert box.put({"n": 4})  # closed: dropped
    before = box.ended
    items = reader.take(WAIT)
    assert messages(items) == [{"n": n} for n in range(4)]
    assert items is not None
    assert [item.number for item in items] == [1, 2, 3, 4]
    assert (before, box.ended) == (False, True)
    assert reader.take(WAIT) is None


def test_s20_a_reader_that_waits_is_woken() -> None:
    """By a message, by the end, by `stop`."""
    for wake, expected in [
        (lambda box, reader: box.put({"n": 1}), [{"n": 1}]),
        (lambda box, reader: (box.put({"n": 1}, flushed=True), box.flush()), [{"n": 1}]),
        (lambda box, reader: box.close(), None),
        (lambda box, reader: reader.stop(), None),
        (lambda box, reader: box.attach(), None),
        (lambda box, reader: box.interrupt(None), None),
    ]:
        box = Channel()
        reader = box.attach()
        started = threading.Event()
        found: list[list[Item] | None] = []

        def read(reader: Reader = reader, found: list[list[Item] | None] = found) -> None:
            started.set()  # noqa: B023
            found.append(reader.take(WAIT))

        thread = threading.Thread(target=read)
        thread.start()
        assert started.wait(WAIT)
        wake(box, reader)  # type: ignore[no-untyped-call]
        thread.join(WAIT)
        assert not thread.is_alive()
        got = found[0]
        assert (got if got is None else messages(got)) == expected


def test_s20_it_is_bounded_in_messages_and_bytes() -> None:
    """One message larger than the bound may pass an empty box."""
    box = Channel(max_messages=2, max_bytes=100)
    reader = box.attach()
    assert box.put("x" * 500)
    assert not box.put("y")
    assert messages(reader.take(0)) == ["x" * 500]
    assert box.put("a")
    assert box.put("b")
    assert not box.put("c")


def test_only_what_may_be_counted_is_weighed() -> None:
    """Most channels see one message: weighing it would cost more than it tells."""
    box = Channel()
    assert weight_for(box, {"a": "x" * 100}) == 0
    box.put({"n": 1}, 0)
    assert weight_for(box, {"a": "x" * 100}) > 100
    kept = Channel()
    kept.keep([])
    assert weight_for(kept, {"a": "x" * 100}) > 100
    assert weight_for(Channel(own=False), {"a": "x" * 100}) > 100
    assert weight_for(None, {"a": "x" * 100}) == weight_for(kept, None) == 0


def test_of_some_kinds_only_one_waits() -> None:
    """A second one says nothing new, until the first was taken."""
    box = Channel()
    reader = box.attach()
    for _ in range(3):
        assert box.put("changed", only="tools")
    assert box.put("other", only="prompts")
    assert messages(reader.take(0)) == ["changed", "other"]
    assert box.put("changed", only="tools")
    assert messages(reader.take(0)) == ["changed"]


def test_a_lossy_one_keeps_the_newest() -> None:
    """While nobody reads it; and its coalescing goes on working."""
    box = Channel(lossy=True, own=False)
    assert box.put("changed", only="k")
    for number in range(channel.LOSSY_MESSAGES):
        assert box.put(number)
    assert box.put("changed", only="k")
    kept = messages(box.attach().take(0))
    assert len(kept) == channel.LOSSY_MESSAGES
    assert kept[-1] == "changed"
    assert kept[0] == 1


def test_a_lossy_one_ends_a_reader_that_does_not_read() -> None:
    """And goes on without it."""
    box = Channel(lossy=True, max_messages=300)
    reader = box.attach()
    for number in range(301):
        assert box.put(number)
    assert reader.take(0) is None
    assert messages(box.attach().take(0))[-1] == 300


def test_a_callback_is_slowed_down_for_a_reader_that_is_behind() -> None:
    """Until there is room; once in vain, no more."""
    box = Channel(max_messages=4)
    reader = box.attach()
    for number in range(3):
        box.put(number)
    eased = threading.Event()

    def ease() -> None:
        box.ease(WAIT)
        eased.set()

    thread = threading.Thread(target=ease)
    thread.start()
    while box._room is None:
        threading.Event().wait(0.001)
    assert not eased.is_set()
    reader.take(0)
    assert eased.wait(WAIT)
    thread.join()
    for number in range(3):
        box.put(number)
    box.ease(0.01)
    box.ease(WAIT)  # at once: it is stuck
    reader.take(0)
    assert box._room is None


@pytest.mark.parametrize("end", ["close", "detach"])
def test_who_waits_for_room_is_let_go_at_the_end(end: str) -> None:
    """A reader that goes makes no room any more."""
    box = Channel(max_messages=4)
    reader = box.attach()
    for number in range(3):
        box.put(number)
    thread = threading.Thread(target=box.ease, args=(WAIT,))
    thread.start()
    while box._room is None:
        threading.Event().wait(0.001)
    if end == "close":
        box.close()
    else:
        box.detach(reader)
    thread.join(WAIT / 2)
    assert not thread.is_alive()


def test_a_batch_ends_when_all_its_parts_have() -> None:
    """Answered or dropped."""
    box = Channel()
    reader = box.attach()
    first, second, third = Part.split(box, 3)
    assert first.put("a", last=True)
    second.close()
    second.close()
    assert first.put("late")
    assert third.put("progress")
    assert not box.ended
    third.ease(0)
    assert third.put("c", last=True)
    assert messages(reader.take(0)) == ["a", "progress", "c"]
    assert reader.take(0) is None


class Replays(RuleBasedStateMachine):
    """Whatever breaks and comes back: nothing twice after one place, nothing missing."""

    def __init__(self) -> None:
        super().__init__()
        self.box = Channel(keeps=True, max_messages=10_000)
        self.put = 0
        self.reader = self.box.attach()
        self.seen = 0  # the number of the last message that the client got
        self.lost = False

    @rule(count=st.integers(1, 5))
    def say(self, count: int) -> None:
        for _ in range(count):
            self.put += 1
            assert self.box.put(self.put)

    @precondition(lambda self: not self.lost)
    @rule()
    def take(self) -> None:
        for item in self.reader.take(0) or []:
            assert item.number == item.message == self.seen + 1
            self.seen += 1

    @rule()
    def lose_what_is_on_its_way(self) -> None:
        self.lost = True
        self.reader.take(0)

    @rule(back=st.integers(0, 8))
    def come_back(self, back: int) -> None:
        old, self.lost = self.reader, False
        self.seen = max(0, self.seen - back)
        self.reader = self.box.attach(after=self.seen)
        assert old.take(0) is None
        self.take()
        assert self.seen == self.put

    @precondition(lambda self: self.put)
    @rule(retry=st.none() | st.floats(0, 1))
    def interrupt(self, retry: float | None) -> None:
        if not self.reader.displaced:
            self.box.interrupt(retry)
            assert self.reader.retry == (channel.DEFAULT_RETRY if retry is None else retry)
        assert self.reader.take(0) is None
        self.come_back(0)

    @invariant()
    def is_bounded(self) -> None:
        assert len(self.box._kept) <= channel.KEPT_MESSAGES


Replays.TestCase.settings = settings(max_examples=60, deadline=None)
TestReplays = Replays.TestCase


def test_many_writers_and_one_reader_lose_nothing() -> None:
    """At full speed."""
    box = Channel(max_messages=10**6)
    reader = box.attach()

    def write(who: int) -> None:
        for number in range(500):
            box.put((who, number))

    threads = [threading.Thread(target=write, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    found: list[tuple[int, int]] = []
    while len(found) < 4000:
        items = reader.take(WAIT)
        assert items
        found += [item.message for item in items]
    for thread in threads:
        thread.join()
    for who in range(8):
        own = [number for writer, number in found if writer == who]
        assert own == list(range(500))
