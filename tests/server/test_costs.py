"""What approvals, authorizers and telemetry cost: no threads, no growing memory, no pool."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

from raxol_sync import Server, allow_all
from tests.server.approvals import NO, YES, Person, asks_about, modern_call, retry, served
from tests.server.helpers import WAIT, Json, ask, call, eventually, modern, req, text


def resident() -> int:
    """This process's resident memory, in bytes; 0 where /proc is missing."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * 4096


def grown(work: Any) -> int:
    """How many bytes ten thousand more of `work(first, count)` add to the first thousand."""
    work(0, 1000)
    gc.collect()
    before = resident()
    work(1000, 10_000)
    gc.collect()
    return resident() - before


def test_s14_ping_discover_and_unguarded_lists_do_not_touch_the_pool() -> None:
    """They are answered where they arrive; not one worker was ever started."""
    with Server() as server:
        server.tool(name="t")(lambda: "x")
        for method in ("ping", "tools/list", "resources/list", "prompts/list"):
            assert "result" in ask(server, req(method))
        for method in ("server/discover", "tools/list", "resources/templates/list"):
            assert "result" in ask(server, modern(method))
        assert server._engine._pool._state.threads == []
        assert server.stats().in_flight == 0


def test_ten_thousand_guarded_calls_leave_memory_as_it_was() -> None:
    """Authorizers, telemetry and breakers keep nothing of a call: within 2 MB."""
    with served(allow_all(), telemetry=lambda *_: None) as server:
        server.tool(name="t")(lambda: "x")

        def work(first: int, count: int) -> None:
            for n in range(first, first + count):
                assert text(server.handle_message(call("t", id=n), n % 5)) == "x"
            eventually(lambda: server._app.telemetry._waiting == 0)

        assert grown(work) < 2 * 2**20
        assert server._engine.connections.all() == []


def test_ten_thousand_approvals_leave_memory_as_it_was() -> None:
    """Parked, answered one way or the other, gone: places, timers and questions too."""
    with served(asks_about("t")) as server:
        server.tool(name="t")(lambda: "x")
        person = Person(server)

        def work(first: int, count: int) -> None:
            for n in range(first, first + count):
                future = server.request(call("t", id=n), "c")
                question = person.inbox.wait_for(1)[0]
                person.inbox.messages.clear()
                person.answer(question, YES if n % 2 else NO)
                assert future.result(WAIT) is not None

        assert grown(work) < 2 * 2**20
        assert len(server._engine._scheduler._heap) < 200


def test_ten_thousand_rounds_leave_memory_as_it_was() -> None:
    """Used states are remembered until they expire, and no more than 4,096 of them."""
    with served(asks_about("t"), request_state_key=b"k" * 32) as server:
        server.tool(name="t")(lambda: "x")
        first = ask(server, modern_call("t"))

        def work(start: int, count: int) -> None:
            for _ in range(count):
                ask(server, modern_call("t"))  # never answered: nothing is kept

        assert grown(work) < 2 * 2**20
        assert text(ask(server, retry(first, "t", raxol_approval=YES))) == "x"
        assert len(server._app.rounds._nonces._used) == 1


def test_two_hundred_calls_see_at_most_max_in_flight_threads() -> None:
    """A pool, not a thread for each call; parked ones have none at all."""
    seen: set[threading.Thread] = set()
    with served(asks_about("asked"), max_in_flight=4) as server:

        def work() -> str:
            seen.add(threading.current_thread())
            return "x"

        server.tool(name="t")(work)
        server.tool(name="asked")(work)
        person = Person(server)
        for n in range(200):
            message: Json = call("asked" if n % 2 else "t", id=n)
            future = server.request(message, "c")
            if n % 2:
                person.answer(person.inbox.wait_for(n // 2 + 1)[n // 2])
            assert text(future.result(WAIT)) == "x"
        assert len(seen) <= 4
