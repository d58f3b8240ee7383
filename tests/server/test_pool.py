"""The pool of workers, and what is freed when nobody needs it any more."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import Executor
from typing import Any

import pytest

from raxol_sync import RPCError, Server
from raxol_sync.server.workers import WorkerPool
from tests.server.helpers import (
    WAIT,
    Recorder,
    call,
    code,
    eventually,
    gated,
    req,
    result,
    text,
)


def test_the_pool_is_an_executor() -> None:
    """`submit` gives results and exceptions, `shutdown` joins and refuses later jobs."""
    pool = WorkerPool(2, "raxol-sync-test")
    assert isinstance(pool, Executor)
    assert pool.submit(lambda: 5).result(WAIT) == 5
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 / 0).result(WAIT)
    pool.shutdown()
    assert not [t for t in threading.enumerate() if t.name.startswith("raxol-sync-test")]
    with pytest.raises(RuntimeError):
        pool.submit(lambda: 5)


def test_a_thread_that_cannot_be_started_costs_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request is answered with an error, its job never runs, and later ones work."""
    ran: list[int] = []
    with Server() as server:
        server.tool(name="t")(lambda: ran.append(1))
        original = threading.Thread.start

        def start(thread: threading.Thread) -> None:
            if "worker" in thread.name:
                raise RuntimeError("can't start new thread")
            original(thread)

        monkeypatch.setattr(threading.Thread, "start", start)
        assert code(server, call("t")) == -32603
        assert server.stats().in_flight == 0
        monkeypatch.undo()
        for i in range(3):
            result(server, call("t", id=i))
        eventually(lambda: server.stats().in_flight == 0)
        assert ran == [1, 1, 1]


def test_a_sink_whose_thread_cannot_be_started_leaves_no_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its caller gets an error and the id is free again."""
    with Server() as server:
        original = threading.Thread.start

        def start(thread: threading.Thread) -> None:
            if "sink" in thread.name or "outbox" in thread.name:
                raise RuntimeError("can't start new thread")
            original(thread)

        monkeypatch.setattr(threading.Thread, "start", start)
        answer = server.request(req("ping"), "c", sink=Recorder()).result(WAIT)
        assert answer is not None
        assert answer["error"]["code"] == -32603
        with pytest.raises(RPCError):
            server.subscribe(Recorder(), "c")
        assert server.stats().connections == 0
        monkeypatch.undo()
        assert result(server, req("ping")) == {}


def _quick(server: Server) -> None:
    # Registering reads the caller's local names, and such a snapshot lives as long as its frame:
    # not in a test that counts references.
    server.tool(name="t")(lambda: "x")


def _server_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("raxol-sync-")]


def test_a_dropped_server_leaves_no_thread() -> None:
    """After gc workers, timer, delivery, reaper and outboxes are gone, also with a subscriber."""
    assert _server_threads() == []
    server: Server | None = Server()
    assert server is not None
    _quick(server)
    recorder = Recorder()
    server.subscribe(recorder, "c")
    future = server.request(call("t"), "c")
    done = threading.Event()
    future.add_done_callback(lambda f: done.set())
    assert done.wait(WAIT)
    gate = gated(server)
    with pytest.raises(TimeoutError):
        server.handle_message(call("wait", id=2), timeout=0)
    gate.open()
    eventually(lambda: server is not None and server.stats().in_flight == 0)
    assert _server_threads()
    gone = weakref.ref(server)
    server = future = None  # type: ignore[assignment]
    gc.collect()
    assert gone() is None
    eventually(lambda: gc.collect() >= 0 and _server_threads() == [])


def test_a_request_is_freed_without_the_collector() -> None:
    """What a call held (a large result, say) goes as soon as its future does."""

    class Big(dict[str, Any]):
        pass

    big = Big(value=1)
    gone = weakref.ref(big)
    with Server() as server:
        _quick(server)
        gc.collect()
        gc.disable()
        try:
            message = call("t", _meta=big)
            future = server.request(message, "c")
            assert text(future.result(WAIT)) == "x"
            eventually(lambda: server.stats().in_flight == 0)
            del big, message, future
            eventually(lambda: gone() is None)
        finally:
            gc.enable()
