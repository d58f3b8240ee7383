"""All ways to settle one request, raced against each other; and long runs stay bounded."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from raxol_sync import Context, RPCError, Server
from raxol_sync.server.connections import Call
from tests.server.helpers import WAIT, Recorder, call, cancelled, eventually, req, text

Settle = Callable[[Server, "Future[Any]", Any, threading.Event], object]

# Each way of ending a request: called with the server, its future, its subscription, and the event
# that lets its tool return.
WAYS: dict[str, Settle] = {
    "finish": lambda server, future, subscription, go: go.set(),
    "cancel": lambda server, future, subscription, go: future.cancel(),
    "cancelled": lambda server, future, subscription, go: server.handle_message(cancelled(1), "c"),
    "timeout": lambda server, future, subscription, go: _expire(server, _call(server)),
    "disconnect": lambda server, future, subscription, go: subscription.close(0),
    "take over": lambda server, future, subscription, go: _take_over(server),
    "close": lambda server, future, subscription, go: server.close(0),
}
CLOSING = {"close"}


def _take_over(server: Server) -> None:
    with contextlib.suppress(RPCError):  # closed
        server.subscribe(Recorder(), "c")


def _expire(server: Server, call: Call) -> None:
    """The time-out of a call's callback, as the timer hands it over."""
    server._engine._expire(call, call.runs)


def _call(server: Server) -> Call:
    """The request in flight; one that is settled already if there is none."""
    calls = server._engine.outstanding()
    return calls[0] if calls else server._engine.kept  # type: ignore[attr-defined]


def _race(server: Server, first: Settle, second: Settle, go: threading.Event) -> list[Any]:
    """Let both ways act on one request at once; return how often it was settled, and its sends."""
    channel = Recorder()
    subscription = server.subscribe(channel, "c")
    future = server.request(call("wait"), "c", sink=channel)
    server._engine.kept = server._engine.outstanding()[0]  # type: ignore[attr-defined]
    settled: list[Any] = []
    done = threading.Event()

    def take(f: Future[Any]) -> None:
        server.stats()  # takes the lock: nobody may hold it here
        settled.append(f.result())
        assert threading.current_thread().name == "raxol-sync-delivery"
        done.set()

    future.add_done_callback(take)
    barrier = threading.Barrier(2)

    def act(way: Settle) -> None:
        barrier.wait(WAIT)
        way(server, future, subscription, go)

    threads = [threading.Thread(target=act, args=(way,)) for way in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    go.set()
    assert done.wait(WAIT)
    eventually(lambda: server.stats().in_flight == 0)
    subscription.close()
    assert len(settled) == 1
    responses = [m for m in channel.messages if "method" not in m]
    assert responses == ([] if settled[0] is None else settled)
    assert server.stats().in_flight_by_connection == {}
    assert server.stats().abandoned == 0
    return settled


@pytest.mark.usefixtures("quick_switches")
@pytest.mark.parametrize(
    ("first", "second"), list(itertools.combinations(WAYS, 2)), ids=lambda name: name
)
def test_s03_a_request_is_settled_exactly_once(first: str, second: str) -> None:
    """Whichever of two ways wins: one settling, one response at most, nothing left over."""
    closing = CLOSING & {first, second}
    go: list[threading.Event] = [threading.Event()]

    def fresh() -> Server:
        server = Server(callback_timeout=WAIT)

        @server.tool
        def wait(context: Context) -> str:
            assert go[0].wait(WAIT)
            return "through"

        return server

    server = fresh()
    for _ in range(6 if closing else 25):
        go[0] = threading.Event()
        server.registry.reset_circuit(("tool", "wait"))  # five time-outs in a row would open it
        answer = _race(server, WAYS[first], WAYS[second], go[0])[0]
        assert answer is None or "result" in answer or answer["error"]["code"] == -31504
        if closing:
            server.close()
            server = fresh()
    server.close()


def _resident() -> int:
    """This process's resident memory, in bytes; 0 where /proc is missing."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * 4096


def test_ten_thousand_calls_leave_memory_and_threads_as_they_were() -> None:
    """After a warm-up neither grows, with results of 10 kB and a sink each tenth time."""
    threads = threading.active_count() + 4 + 3  # workers; timer, delivery, reaper
    with Server(max_in_flight=4, max_in_flight_per_connection=4) as server:
        server.tool(name="t")(lambda: "x" * 10_000)

        def work(count: int) -> None:
            for i in range(count):
                sink = Recorder() if i % 10 == 0 else None
                future = server.request(call("t", id=i), i % 7, sink=sink)
                assert len(text(future.result(WAIT))) == 10_000

        work(1000)
        memory = _resident()
        work(10_000)
        eventually(lambda: threading.active_count() <= threads)
        assert _resident() - memory < 20 * 2**20
        assert server._engine.connections.all() == []
        eventually(lambda: not server._engine._outboxes)
        assert server.stats().in_flight == 0


@pytest.mark.usefixtures("quick_switches")
def test_everything_at_once() -> None:
    """Callers, cancellers, subscribers and changes of the registry, all on few connections."""
    with Server(max_in_flight=4, callback_timeout=0.005) as server:

        @server.tool
        def step(context: Context) -> str:
            for i in range(5):
                context.progress(i)
                context.log("info", i)
            return "ok"

        stop = threading.Event()
        failures: list[BaseException] = []

        def forever(action: Callable[[int], object]) -> None:
            try:
                for i in itertools.count():
                    if stop.is_set():
                        return
                    action(i)
            except BaseException as error:
                failures.append(error)

        def call_it(i: int) -> None:
            message = call("step", id=i, _meta={"progressToken": i})
            server.handle_message(message, i % 3, timeout=WAIT)

        actions: list[Callable[[int], object]] = [
            call_it,
            call_it,
            lambda i: server.request(call("step", id=f"s{i}"), i % 3, sink=Recorder()).cancel(),
            lambda i: server.handle_message(cancelled(i), i % 3),
            lambda i: server.subscribe(Recorder(), i % 3).close(),
            lambda i: server.tool(name=f"t{i % 5}")(lambda: None),
            lambda i: server.handle_message(req("tools/list", id=f"l{i}"), i % 3),
        ]
        threads = [threading.Thread(target=forever, args=(action,)) for action in actions]
        for thread in threads:
            thread.start()
        stop.wait(1.0)
        stop.set()
        for thread in threads:
            thread.join(WAIT)
        assert failures == []
        eventually(lambda: server.stats().in_flight == 0)
        assert server.stats().in_flight_by_connection == {}
        assert server._engine.outstanding() == []
