"""Row S41: all deadlines of one owner on one armed Timer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from raxol_sync import _deadline, _scheduler
from raxol_sync._deadline import Deadline
from raxol_sync._scheduler import Entry, Scheduler

WAIT = 10.0  # seconds; a test that waits so long has failed


class FakeTimer:
    """Stands for ``threading.Timer``; fires when the world's clock says so."""

    def __init__(self, world: World, interval: float, function: Callable[[], None]) -> None:
        self.world, self.at, self.function = world, world.time + interval, function
        self.started = self.cancelled = self.fired = False

    def start(self) -> None:
        if self.world.threads_left <= 0:
            raise RuntimeError("can't start new thread")
        self.started = True
        self.world.timers.append(self)

    def cancel(self) -> None:
        self.cancelled = True

    def fire(self) -> None:
        self.fired = True
        self.function()


class World:
    """A clock, the timers armed on it, and what they handed over."""

    def __init__(self) -> None:
        self.time = 100.0
        self.threads_left = 10**9
        self.timers: list[FakeTimer] = []
        self.ran: list[object] = []
        self.patch = pytest.MonkeyPatch()
        for module in (_deadline, _scheduler):
            self.patch.setattr(module, "now", lambda: self.time)
        self.scheduler = Scheduler(
            lambda action: self.ran.append(action()),
            "t",
            timer=lambda interval, function: FakeTimer(self, interval, function),
        )

    def armed(self) -> list[FakeTimer]:
        return [timer for timer in self.timers if not timer.cancelled and not timer.fired]

    def advance(self, seconds: float) -> None:
        """Let time pass, firing each timer at its moment."""
        end = self.time + seconds
        while due := [timer for timer in self.armed() if timer.at <= end]:
            timer = min(due, key=lambda t: t.at)
            self.time = max(self.time, timer.at)
            timer.fire()
        self.time = end


@pytest.fixture
def world() -> Iterator[World]:
    """A world of its own for each test."""
    made = World()
    yield made
    made.patch.undo()


def test_s41_actions_are_handed_over_when_they_are_due(world: World) -> None:
    """In the order of their moments, each once."""
    for name, due in (("c", 103.0), ("a", 101.0), ("b", 102.0), ("late", 90.0)):
        world.scheduler.at(due, lambda name=name: name)  # type: ignore[misc]
    world.advance(0)
    assert world.ran == ["late"]
    world.advance(1.5)
    assert world.ran == ["late", "a"]
    world.advance(10)
    assert world.ran == ["late", "a", "b", "c"]
    assert not world.armed()


def test_s41_there_is_one_timer_however_many_deadlines(world: World) -> None:
    """Armed for the earliest; an earlier one takes its place."""
    for number in range(1000):
        world.scheduler.at(500.0 - number % 7, lambda: None)
        assert len(world.armed()) == 1
    assert world.armed()[0].at == 494.0
    assert len(world.timers) == 7


def test_s41_a_stale_firing_finds_nothing_to_do(world: World) -> None:
    """A Timer that fires although it was displaced disarms nothing and runs nothing early."""
    world.scheduler.at(110.0, lambda: "later")
    displaced = world.timers[0]
    world.scheduler.at(105.0, lambda: "sooner")
    displaced.function()
    assert world.ran == []
    assert [timer.at for timer in world.armed()] == [105.0]
    world.advance(20)
    assert world.ran == ["sooner", "later"]
    displaced.function()
    assert world.ran == ["sooner", "later"]


def test_s41_a_stale_firing_that_comes_late_takes_what_is_due(world: World) -> None:
    """And the Timer that was armed for it then finds nothing, and arms the next."""
    world.scheduler.at(110.0, lambda: "b")
    displaced = world.timers[0]
    world.scheduler.at(105.0, lambda: "a")
    world.time = 107.0
    displaced.function()
    assert world.ran == ["a"]
    world.advance(10)
    assert world.ran == ["a", "b"]


def test_s41_a_timer_that_fires_early_runs_nothing(world: World) -> None:
    """A clock that was set makes some waits end early; the rest is waited for."""
    world.scheduler.at(110.0, lambda: "a")
    world.time = 104.0
    world.timers[0].fire()
    assert world.ran == []
    world.advance(6)
    assert world.ran == ["a"]


def test_s41_cancelled_entries_are_forgotten(world: World) -> None:
    """Cancelling twice, or after it ran, or after close, changes nothing."""
    first = world.scheduler.at(101.0, lambda: "first")
    second = world.scheduler.at(101.0, lambda: "second")
    world.scheduler.cancel(first)
    world.scheduler.cancel(first)
    world.advance(2)
    assert world.ran == ["second"]
    world.scheduler.cancel(second)
    world.scheduler.close(Deadline(0))
    world.scheduler.cancel(second)
    world.scheduler.cancel(world.scheduler.at(102.0, lambda: "never"))
    world.advance(5)
    assert world.ran == ["second"]


def test_s41_cancelled_entries_do_not_pile_up(world: World) -> None:
    """A thousand calls that were answered in time leave nothing behind."""
    keep = world.scheduler.at(200.0, lambda: "kept")
    for number in range(10_000):
        world.scheduler.cancel(world.scheduler.at(300.0 + number, lambda: "no"))
    assert len(world.scheduler._heap) < 200
    assert keep.action is not None
    world.advance(20_000)
    assert world.ran == ["kept"]


def test_s41_close_disarms(world: World) -> None:
    """Nothing is handed over afterwards, also by a Timer that fires all the same."""
    world.scheduler.at(101.0, lambda: "no")
    timer = world.timers[0]
    world.scheduler.close(Deadline(1))
    assert timer.cancelled
    world.time = 105.0
    timer.function()
    world.scheduler.at(101.0, lambda: "no")
    world.scheduler.close(Deadline(1))
    assert (world.ran, world.armed()) == ([], [])


def test_s41_an_action_that_cannot_be_handed_over_stops_no_other(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The rest of that moment, and the next moments, are kept."""
    world.scheduler.at(101.0, lambda: 1 // 0)
    world.scheduler.at(101.0, lambda: "same moment")
    world.scheduler.at(102.0, lambda: "next")
    with caplog.at_level(logging.ERROR, "raxol_sync"):
        world.advance(5)
    assert world.ran == ["same moment", "next"]
    assert len(caplog.records) == 1


def test_s41_no_more_threads_is_not_the_end(world: World) -> None:
    """The caller is told, and the next entry arms a Timer for all that wait."""
    world.scheduler.at(150.0, lambda: "waiting")
    world.threads_left = 0
    with pytest.raises(RuntimeError, match="start new thread"):
        world.scheduler.at(120.0, lambda: "refused")
    world.threads_left = 9
    world.scheduler.at(160.0, lambda: "next")
    world.advance(100)
    assert world.ran == ["waiting", "next"]


class AgainstAModel(RuleBasedStateMachine):
    """The scheduler and a plain list agree on what ran by when."""

    entries = Bundle("entries")

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.waiting: dict[int, float] = {}
        self.expected: list[int] = []
        self.number = 0

    def teardown(self) -> None:
        self.world.patch.undo()

    @rule(target=entries, delay=st.integers(-2, 30))
    def schedule(self, delay: int) -> tuple[int, Entry]:
        number = self.number = self.number + 1
        self.waiting[number] = self.world.time + delay
        return number, self.world.scheduler.at(self.world.time + delay, lambda: number)

    @rule(entry=entries)
    def cancel(self, entry: tuple[int, Entry]) -> None:
        self.world.scheduler.cancel(entry[1])
        self.waiting.pop(entry[0], None)

    @rule(seconds=st.integers(0, 12))
    def advance(self, seconds: int) -> None:
        self.world.advance(seconds)
        due = [n for n, moment in self.waiting.items() if moment <= self.world.time]
        self.expected += sorted(due, key=lambda n: self.waiting.pop(n))

    @rule(which=st.integers(0, 50))
    def fire_a_stale_timer(self, which: int) -> None:
        stale = [timer for timer in self.world.timers if timer.cancelled]
        if stale:
            self.world.advance(0)
            stale[which % len(stale)].function()
            self.advance(0)

    @invariant()
    def what_ran_was_due(self) -> None:
        assert sorted(self.world.ran) == sorted(self.expected)  # type: ignore[type-var]
        assert len(self.world.armed()) <= 1


TestAgainstAModel = AgainstAModel.TestCase


def test_s41_with_a_real_timer() -> None:
    """On a thread with a name, which `close` joins."""
    names: list[str] = []
    done = threading.Event()

    def hand_over(action: Callable[[], object]) -> None:
        names.append(threading.current_thread().name)
        action()

    scheduler = Scheduler(hand_over, "raxol-sync-test-timer")
    scheduler.at(_deadline.now() + 3600, lambda: None)
    scheduler.at(_deadline.now(), done.set)
    assert done.wait(WAIT)
    scheduler.close(Deadline(WAIT))
    assert names == ["raxol-sync-test-timer"]
    assert not [t for t in threading.enumerate() if t.name == "raxol-sync-test-timer"]


def test_s41_close_joins_a_timer_that_is_handing_over() -> None:
    """When it returns no thread of the scheduler is left."""
    handing, go = threading.Event(), threading.Event()

    def action() -> None:
        handing.set()
        assert go.wait(WAIT)

    scheduler = Scheduler(lambda a: a(), "raxol-sync-test-timer")  # type: ignore[arg-type]
    scheduler.at(_deadline.now(), action)
    assert handing.wait(WAIT)
    scheduler.close(Deadline(0.01))
    scheduler = Scheduler(lambda a: a(), "raxol-sync-test-timer")  # type: ignore[arg-type]
    handing.clear()
    scheduler.at(_deadline.now(), action)
    assert handing.wait(WAIT)
    closing = threading.Thread(target=scheduler.close, args=(Deadline(WAIT),))
    closing.start()
    closing.join(0.05)  # time for the mistake to happen
    assert closing.is_alive()
    go.set()
    closing.join(WAIT)
    assert not closing.is_alive()


def test_s41_many_threads_at_once() -> None:
    """Each action of each thread runs once."""
    ran: list[int] = []
    finished = threading.Event()
    total = 8 * 100

    def record(number: int) -> None:
        ran.append(number)
        if len(ran) == total:
            finished.set()

    scheduler = Scheduler(lambda action: action(), "raxol-sync-test-timer")  # type: ignore[arg-type]
    barrier = threading.Barrier(8)

    def work(thread: int) -> None:
        barrier.wait(WAIT)
        for step in range(100):
            number = thread * 100 + step
            moment = _deadline.now() + (number % 10) / 1000
            scheduler.at(moment, lambda number=number: record(number))  # type: ignore[misc]
            scheduler.cancel(scheduler.at(moment + 60, lambda: record(-1)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert finished.wait(WAIT)
    scheduler.close(Deadline(WAIT))
    assert sorted(ran) == list(range(total))


def test_s41_close_from_a_handed_over_action_does_not_wait_for_itself() -> None:
    """An owner may close from anywhere."""
    closed = threading.Event()

    def close() -> None:
        scheduler.close(Deadline(WAIT))
        closed.set()

    scheduler = Scheduler(lambda action: action(), "raxol-sync-test-timer")  # type: ignore[arg-type]
    scheduler.at(_deadline.now(), close)
    assert closed.wait(WAIT)
