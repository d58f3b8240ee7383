"""The thread that runs users' callbacks, and the futures whose callbacks it runs (S03, S04)."""

from __future__ import annotations

import concurrent.futures
import gc
import logging
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest

from raxol_sync._deadline import Deadline
from raxol_sync._delivery import DeliveredFuture, Delivery
from raxol_sync.errors import Cancelled

WAIT = 10.0  # seconds; a test that waits so long has failed
NAME = "raxol-sync-test-delivery"


@pytest.fixture
def delivery() -> Iterator[Delivery]:
    """A delivery that is closed after the test."""
    made = Delivery(NAME)
    yield made
    assert made.close(Deadline(WAIT))


def running() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == NAME]


def at_once(job: Callable[[], object]) -> None:
    job()


def drain(delivery: Delivery) -> None:
    """Wait until everything that was posted has run."""
    done = threading.Event()
    delivery.post(done.set)
    assert done.wait(WAIT)


def test_jobs_run_in_order_on_one_thread(delivery: Delivery) -> None:
    """A thread of its own, which starts with the first job."""
    seen: list[tuple[int, bool]] = []
    assert running() == []
    for number in range(1000):
        delivery.post(lambda number=number: seen.append((number, delivery.is_current())))  # type: ignore[misc]
    drain(delivery)
    assert seen == [(number, True) for number in range(1000)]
    assert len(running()) == 1
    assert not delivery.is_current()


@pytest.mark.parametrize("error", [ValueError, Cancelled, SystemExit, KeyboardInterrupt])
def test_a_job_that_raises_stops_no_other(
    delivery: Delivery, error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    """Not even `sys.exit()` or `Cancelled` in a callback; each is logged with its traceback."""

    def fail() -> None:
        raise error

    with caplog.at_level(logging.ERROR, "raxol_sync"):
        delivery.post(fail)
        drain(delivery)
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [error]


def test_a_job_may_post_and_close(delivery: Delivery) -> None:
    """Called from a job, `close` does not wait for its own thread; what is queued still runs."""
    seen: list[object] = []
    first = threading.Event()

    def job() -> None:
        assert first.wait(WAIT)
        delivery.post(lambda: seen.append("posted"))
        seen.append(delivery.close(Deadline(WAIT)))

    delivery.post(job)
    delivery.post(lambda: seen.append("queued"))
    first.set()
    for thread in running():
        thread.join(WAIT)
    assert seen == [True, "queued", "posted"]


def test_close_runs_what_is_queued_and_joins() -> None:
    """Twice is harmless; after it a job gets a thread of its own, and what it raises is logged."""
    delivery = Delivery(NAME)
    seen: list[object] = []
    for number in range(100):
        delivery.post(lambda number=number: seen.append(number))  # type: ignore[misc]
    assert delivery.close(Deadline(WAIT))
    assert (seen, running()) == (list(range(100)), [])
    assert delivery.close(Deadline(0))
    done = threading.Event()

    def late() -> None:
        seen.append(threading.current_thread())
        done.set()

    delivery.post(late)
    delivery.post(lambda: 1 // 0)
    assert done.wait(WAIT)
    assert seen[-1] is not threading.current_thread()


def test_close_waits_no_longer_than_its_deadline() -> None:
    """It says whether the thread has ended."""
    delivery = Delivery(NAME)
    go, in_job = threading.Event(), threading.Event()

    def job() -> None:
        in_job.set()
        go.wait(WAIT)

    delivery.post(job)
    assert in_job.wait(WAIT)
    assert not delivery.close(Deadline(0.01))
    go.set()
    assert delivery.close(Deadline(WAIT))


def test_close_never_misses_a_thread_that_is_just_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A job posted before `close` has run when `close` returns true."""
    delivery = Delivery(NAME)
    starting, go = threading.Event(), threading.Event()
    seen: list[str] = []
    start = threading.Thread.start

    def slow_start(thread: threading.Thread) -> None:
        if thread.name == NAME:
            starting.set()
            assert go.wait(WAIT)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", slow_start)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        posting = pool.submit(delivery.post, lambda: seen.append("ran"))
        assert starting.wait(WAIT)
        closing = pool.submit(lambda: (delivery.close(Deadline(WAIT)), list(seen)))
        done, _ = concurrent.futures.wait([closing], 0.05)  # time for the mistake to happen
        go.set()
        posting.result(WAIT)
        assert closing.result(WAIT) == (True, ["ran"])
    assert not done


def test_a_thread_that_cannot_start_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The poster is told; the job runs when a later one finds a thread."""
    delivery = Delivery(NAME)
    seen: list[str] = []

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="start new thread"):
            delivery.post(lambda: seen.append("first"))
    delivery.post(lambda: seen.append("second"))
    assert delivery.close(Deadline(WAIT))
    assert seen == ["first", "second"]


def test_the_thread_ends_when_nobody_holds_the_delivery() -> None:
    """It does not keep its owner alive, nor the last job."""
    delivery = Delivery(NAME)

    class Owner:
        def job(self) -> None: ...

    owner = Owner()
    delivery.post(owner.job)
    drain(delivery)
    gone, (thread,) = weakref.ref(owner), running()
    del owner
    gc.collect()
    assert gone() is None
    del delivery
    gc.collect()
    thread.join(WAIT)
    assert not thread.is_alive()


def test_jobs_run_in_handlers_of_atexit() -> None:
    """Also in those that were registered before the delivery was made, and so run after."""
    program = """
import atexit, threading
from raxol_sync._delivery import Delivery
from raxol_sync._deadline import Deadline
def last():
    done = threading.Event()
    delivery.post(done.set)
    print("ran" if done.wait(10) else "lost")
    print(delivery.close(Deadline(10)))
atexit.register(last)
delivery = Delivery("d")
delivery.post(lambda: None)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout.split(), done.stderr) == (["ran", "True"], "")


# ---------------------------------------------------------------- futures


def test_s03_done_callbacks_run_on_the_delivery_thread(delivery: Delivery) -> None:
    """Whoever settles, and also when it is settled already; in the order they were added."""
    settlers: list[Callable[[DeliveredFuture[int]], bool]] = [
        lambda f: f.settle(5),
        lambda f: f.fail(ValueError("no")),
    ]
    for settle in settlers:
        future: DeliveredFuture[int] = DeliveredFuture(delivery.post)
        seen: list[tuple[str, bool, object]] = []

        def note(
            name: str, seen: list[tuple[str, bool, object]] = seen
        ) -> Callable[[concurrent.futures.Future[int]], None]:
            return lambda f: seen.append((name, delivery.is_current(), f))

        future.add_done_callback(note("a"))
        future.add_done_callback(note("b"))
        assert settle(future)
        future.add_done_callback(note("c"))
        drain(delivery)
        assert seen == [(name, True, future) for name in "abc"]


def test_s03_a_future_is_settled_once() -> None:
    """Of many who try at the same time one wins."""
    for _ in range(50):
        future: DeliveredFuture[int] = DeliveredFuture(lambda job: None)
        barrier = threading.Barrier(4)

        def settle(
            number: int, future: DeliveredFuture[int] = future, barrier: threading.Barrier = barrier
        ) -> bool:
            barrier.wait(WAIT)
            return future.settle(number) if number % 2 else future.fail(ValueError(number))

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            won = [n for n, first in enumerate(pool.map(settle, range(4))) if first]
        assert len(won) == 1
        value = future.exception(0)
        assert won == ([future.result(0)] if value is None else [value.args[0]])


def test_s04_cancel_asks_and_does_not_mark() -> None:
    """What it gives is what `on_cancel` said; `cancelled()` stays false."""
    future: DeliveredFuture[int | None] = DeliveredFuture(at_once)
    assert not future.cancel()
    threads: list[threading.Thread] = []

    def on_cancel() -> bool:
        threads.append(threading.current_thread())
        return future.settle(None)

    future.bind_cancel(on_cancel)
    assert future.cancel()
    assert threads == [threading.current_thread()]
    assert not future.cancelled()
    assert future.result(0) is None
    assert not future.cancel()
    assert len(threads) == 1


def test_s04_a_completed_future_is_left_alone() -> None:
    """`cancel` does not ask once there is a result."""
    future: DeliveredFuture[int] = DeliveredFuture(at_once)
    future.bind_cancel(lambda: pytest.fail("asked"))
    future.settle(1)
    assert not future.cancel()
    assert future.result(0) == 1
    assert not future.fail(ValueError())


def test_futures_work_with_the_standard_library(delivery: Delivery) -> None:
    """`wait` and `as_completed` see them."""
    futures: list[DeliveredFuture[int]] = [DeliveredFuture(delivery.post) for _ in range(3)]
    for number, future in enumerate(futures):
        delivery.post(lambda number=number, future=future: future.settle(number))  # type: ignore[misc]
    assert {f.result() for f in concurrent.futures.as_completed(futures, WAIT)} == {0, 1, 2}
