"""What a thread asked ends with it (row S05): real threads, no sleeps."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from raxol_sync import Context, Server
from raxol_sync.server.owners import Owners
from tests.server.approvals import Person, served
from tests.server.helpers import WAIT, Json, call, eventually, gated, text


def in_thread(action: Any) -> Any:
    """Run something in a thread of its own that has ended when this returns."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(action()))
    thread.start()
    thread.join(WAIT)
    assert not thread.is_alive()
    return found[0]


def test_s05_what_a_thread_asked_ends_with_it() -> None:
    """Its callback is told; another thread's request goes on."""
    with Server() as server:
        gate, told = gated(server), threading.Event()

        @server.tool
        def patient(context: Context) -> str:
            while not context.cancelled:
                gate.opened.wait(0.001)
            told.set()
            return "late"

        mine = server.request(call("wait", id="mine"), "c")
        lost = in_thread(lambda: server.request(call("patient", id="lost"), "c"))
        assert lost.result(WAIT) is None
        assert told.wait(WAIT)
        assert not mine.done()
        gate.open()
        assert text(mine.result(WAIT)) == "through"


def test_s05_a_parked_call_ends_with_its_thread() -> None:
    """An approval that comes later finds nothing."""
    with served() as server:
        ran: list[int] = []
        server.tool(name="t")(lambda: ran.append(1))
        person = Person(server)
        future = in_thread(lambda: server.request(call("t"), "c"))
        assert future.result(WAIT) is None
        assert server.stats().parked == 0
        for question in [m for m in person.inbox.messages if "id" in m]:
            person.answer(question)
        assert ran == []


def test_s05_nobodys_end_cancels_a_request_without_an_owner() -> None:
    """`owner=None` is what transports pass."""
    with Server() as server:
        gate = gated(server)
        future = in_thread(lambda: server.request(call("wait"), "c", owner=None))
        in_thread(lambda: server.request(call("nothing", id=2), "c"))
        assert not future.done()
        gate.open()
        assert text(future.result(WAIT)) == "through"


def test_s05_threads_of_a_pool_do_not_end() -> None:
    """What one of them asked goes on after its job; it ends with the pool."""
    with Server() as server:
        gate = gated(server)
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(lambda: server.request(call("wait", id=1), "c")).result(WAIT)
            pool.submit(lambda: None).result(WAIT)
            assert not first.done()
            gate.open()
            assert text(first.result(WAIT)) == "through"
            gate.opened.clear()
            second = pool.submit(lambda: server.request(call("wait", id=2), "c")).result(WAIT)
        assert second.result(WAIT) is None
        gate.open()
        eventually(lambda: server.stats().in_flight == 0)


def test_s05_an_owner_is_a_thread_or_nobody() -> None:
    """Anything else is a mistake that is told at once."""
    with Server() as server, pytest.raises(TypeError, match="owner"):
        server.request(call("t"), owner="me")


def test_s05_a_thousand_threads_leave_nothing() -> None:
    """Neither keys nor requests nor threads, whether their requests were answered or not."""
    with Server(max_in_flight=4) as server:
        server.tool(name="quick")(lambda: "done")
        before = threading.active_count()

        def ask_twice(n: int) -> Future[Json | None]:
            server.request(call("quick", id=f"a{n}"), n % 7)
            return server.request(call("quick", id=f"b{n}"), n % 7)

        for n in range(1000):
            in_thread(partial(ask_twice, n))
        eventually(lambda: server.stats().in_flight == 0)
        eventually(lambda: server._engine.outstanding() == [])
        assert server._engine._owned == {}
        assert server._owners._queue.qsize() <= 1000
        eventually(lambda: server._owners._queue.empty())
        # Workers, the timer, the delivery and the watcher.
        eventually(lambda: threading.active_count() <= before + 4 + 3)


def test_s05_a_finalizer_may_run_while_the_lock_is_held() -> None:
    """It only queues: a collector that runs in a thread with our lock does not wait for itself."""
    with Server() as server:
        gate = gated(server)
        future = in_thread(lambda: server.request(call("wait"), "c"))
        with server._engine.lock:
            gc.collect()
            in_thread(lambda: setattr(server._owners._local, "token", None))
            gc.collect()
        assert future.result(WAIT) is None
        gate.open()


def test_s05_the_watcher_ends_with_its_owner() -> None:
    """Closed or collected: its thread goes."""

    class Listener:
        def __init__(self) -> None:
            self.heard: list[object] = []

        def ended(self, key: object) -> None:
            self.heard.append(key)

    listener = Listener()
    owners = Owners(listener.ended, "raxol-sync-test-owners")
    key = in_thread(owners.current)
    eventually(lambda: listener.heard == [key])
    assert owners.current() is owners.current()
    del owners
    gc.collect()
    eventually(lambda: "raxol-sync-test-owners" not in {t.name for t in threading.enumerate()})


def test_s05_a_request_of_a_closed_server_starts_no_watcher() -> None:
    """It is answered, and no thread is left."""
    server = Server()
    server.close()
    answer = in_thread(lambda: server.request(call("t"), "c")).result(WAIT)
    assert answer["error"]["message"] == "server closed"
