"""Connections: what is remembered, take-over, and the end of everything (S21 to S23, S51)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from raxol_sync import Context, RPCError, Server
from raxol_sync.protocol import versions
from tests.server.helpers import (
    WAIT,
    Gate,
    Json,
    Recorder,
    ask,
    call,
    cancelled,
    code,
    eventually,
    gated,
    initialize,
    modern,
    note,
    req,
    result,
)


def who(server: Server) -> None:
    """Register a tool that says what the server knows of its client."""

    @server.tool
    def who(context: Context) -> dict[str, Any]:
        return {"info": context.client_info, "can": context.client_capabilities}


def known(server: Server, conn_id: object) -> Any:
    return result(server, call("who", id="who"), conn_id)["structuredContent"]


def test_s21_a_subscriber_is_called_in_order_on_a_thread_of_its_own() -> None:
    """One message at a time, never on the thread that caused it."""
    with Server() as server:
        recorder = Recorder()
        with server.subscribe(recorder, "c") as subscription:
            assert subscription.conn_id == "c"
            for i in range(100):
                server.notify("notifications/x", {"i": i})
            assert [m["params"]["i"] for m in recorder.wait_for(100)] == list(range(100))
            assert len(recorder.threads) == 1
            assert threading.current_thread() not in recorder.threads
        server.notify("notifications/late")
        assert server.stats().connections == 0
        assert len(recorder.messages) == 100


def test_s21_a_first_subscriber_keeps_what_initialize_recorded() -> None:
    """Capabilities, client info and level survive, and requests in flight go on."""
    with Server() as server:
        who(server)
        gate = gated(server)
        result(server, initialize(sampling={}), "c")
        future = server.request(call("wait"), "c")
        gate.wait_entered()
        server.subscribe(Recorder(), "c")
        assert known(server, "c")["can"] == {"sampling": {}}
        gate.open()
        assert future.result(WAIT) is not None


def test_s21_taking_over_inherits_nothing() -> None:
    """Capabilities, level, resource subscriptions and requests of the old one are dropped."""
    with Server() as server:
        who(server)
        gate = gated(server)
        old, new = Recorder(), Recorder()
        first = server.subscribe(old, "c")
        result(server, initialize(sampling={}), "c")
        result(server, req("resources/subscribe", {"uri": "r://x"}), "c")
        future = server.request(call("wait"), "c")
        gate.wait_entered()
        second = server.subscribe(new, "c")
        assert future.result(WAIT) is None
        assert known(server, "c") == {"info": None, "can": {}}
        assert server.stats().subscriptions == 0
        first.close()
        assert server.stats().connections == 1
        server.notify("notifications/resources/updated", {"uri": "r://x"})
        server.notify("notifications/x")
        assert new.wait_for(1)[0]["method"] == "notifications/x"
        assert old.messages == []
        gate.open()
        second.close()


def test_s21_what_came_over_a_connection_that_was_taken_over_is_dropped() -> None:
    """A late request whose sink is the old subscriber touches nothing of the new one."""
    with Server() as server:
        ran: list[int] = []
        server.tool(name="t")(lambda: ran.append(1))
        old, new = Recorder(), Recorder()
        original = server._engine._outbox_for
        server.subscribe(old, "c")

        def slow(conn_id: object, sink: Any) -> Any:
            found = original(conn_id, sink)
            server._engine._outbox_for = original  # type: ignore[method-assign]
            server.subscribe(new, "c")
            return found

        server._engine._outbox_for = slow  # type: ignore[method-assign]
        assert server.request(call("t"), "c", sink=old).result(WAIT) is None
        assert server.stats().connections == 1
        server.notify("notifications/x")
        assert len(new.wait_for(1)) == 1
        assert (old.messages, ran) == ([], [])


def test_s05_closing_ends_what_was_outstanding_and_delivers_what_was_queued() -> None:
    """The future resolves to `None`; queued messages still arrive."""
    with Server() as server:
        gate, slow, recorder = gated(server), Gate(), Recorder()

        def subscriber(message: Json) -> None:
            slow()
            recorder(message)

        subscription = server.subscribe(subscriber, "c")
        future = server.request(call("wait"), "c")
        gate.wait_entered()
        for i in range(5):
            server.notify("notifications/x", {"i": i})
        slow.wait_entered()
        closing = threading.Thread(target=subscription.close)
        closing.start()
        assert future.result(WAIT) is None
        slow.open()
        closing.join(WAIT)
        assert len(recorder.messages) == 5
        subscription.close()
        gate.open()


def test_s23_the_oldest_without_a_subscriber_is_forgotten_first() -> None:
    """A live one goes only when all are live, and keeps working."""
    with Server(max_client_capabilities=2) as server:
        who(server)
        live = server.subscribe(Recorder(), "live")
        result(server, initialize(roots={}), "live")
        for conn in ("a", "b", "c"):
            result(server, initialize(sampling={}), conn)
            assert server.stats().capabilities == 2
        assert known(server, "live")["can"] == {"roots": {}}
        assert known(server, "a")["can"] == known(server, "b")["can"] == {}
        assert known(server, "c")["can"] == {"sampling": {}}
        for conn in ("d", "e"):
            server.subscribe(Recorder(), conn)
            result(server, initialize(sampling={}), conn)
        assert server.stats().capabilities == 2
        assert known(server, "live")["can"] == {}
        server.notify("notifications/x")
        result(server, initialize(roots={}), "live")
        assert known(server, "live")["can"] == {"roots": {}}
        live.close()
        assert server.stats().capabilities <= 2


def test_s23_many_connections_leave_nothing_behind() -> None:
    """However many conn_ids come, no more than the cap is kept, whatever they set."""
    with Server(max_client_capabilities=10) as server:
        for i in range(300):
            result(server, initialize(), f"i{i}")
            result(server, req("logging/setLevel", {"level": "error"}), f"l{i}")
            result(server, req("resources/subscribe", {"uri": f"r://{i}"}), f"s{i}")
            result(server, req("ping"), f"p{i}")
        assert len(server._engine.connections.all()) <= 10
        assert server.stats().capabilities <= 10


def _during_initialize(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Have something happen in the middle of the next `initialize`."""
    original = versions.answer_to_initialize

    def interrupted(offered: object) -> versions.Revision:
        monkeypatch.undo()
        action()
        return original(offered)

    monkeypatch.setattr(versions, "answer_to_initialize", interrupted)


def test_s23_initialize_on_a_connection_that_ends_meanwhile_breaks_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It gets no answer; later connections initialize and are remembered."""
    with Server(max_client_capabilities=2) as server:
        subscription = server.subscribe(Recorder(), "c")
        _during_initialize(monkeypatch, subscription.close)
        assert server.handle_message(initialize(), "c", timeout=WAIT) is None
        for i in range(5):
            result(server, initialize(), i)
        assert server.stats().capabilities == 2


def test_s50_initialize_is_never_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancellation of its id is ignored."""
    with Server() as server:
        _during_initialize(monkeypatch, lambda: server.handle_message(cancelled(0), "c"))
        assert result(server, initialize(id=0))["protocolVersion"] == "2025-11-25"


def test_s22_a_connection_subscribes_to_at_most_1024_resources() -> None:
    """Then busy; another connection is not affected, and unsubscribing makes room."""
    with Server() as server:
        server.subscribe(Recorder(), "c")
        for i in range(1024):
            result(server, req("resources/subscribe", {"uri": f"r://{i}"}))
        error = ask(server, req("resources/subscribe", {"uri": "r://more"}))["error"]
        assert error["code"] == -31429
        assert error["data"]["limit"] == 1024
        result(server, req("resources/subscribe", {"uri": "r://0"}))
        result(server, req("resources/unsubscribe", {"uri": "r://0"}))
        result(server, req("resources/unsubscribe", {"uri": "r://unknown"}))
        result(server, req("resources/subscribe", {"uri": "r://more"}))
        assert server.stats().subscriptions == 1024


# ---------------------------------------------------------------- the end


def test_s51_a_closed_server_refuses_and_settles() -> None:
    """Outstanding requests resolve to `None`, new ones get `-32603` server closed."""
    server = Server()
    gate = gated(server)
    recorder, sink = Recorder(), Recorder()
    server.subscribe(recorder, "c")
    future = server.request(call("wait"), "c")
    gate.wait_entered()
    server.close(grace=0)
    assert future.result(WAIT) is None
    error = ask(server, req("ping"))["error"]
    assert (error["code"], error["message"]) == (-32603, "server closed")
    answer = server.request(req("ping"), "c", sink=sink).result(WAIT)
    assert answer == sink.wait_for(1)[0]
    with pytest.raises(RPCError, match="server closed"):
        server.subscribe(recorder)
    server.notify("notifications/x")
    server.handle_message(note("notifications/cancelled", {"requestId": 1}))
    gate.open()
    server.close()
    eventually(lambda: server.stats().connections == server.stats().in_flight == 0)


def test_s51_close_joins_every_thread() -> None:
    """Also those of sinks that are still writing."""
    server = Server()
    server.tool(name="t")(lambda: "x")
    gate, recorder = Gate(), Recorder()

    def slow_sink(message: Json) -> None:
        gate()
        recorder(message)

    done = threading.Event()
    future = server.request(call("t"), "c", sink=slow_sink)
    future.add_done_callback(lambda f: done.set())
    assert done.wait(WAIT)
    gate.wait_entered()
    opener = threading.Timer(0.05, gate.open)
    opener.start()
    server.close()
    assert len(recorder.messages) == 1
    assert [t.name for t in threading.enumerate() if t.name.startswith("raxol-sync-")] == []
    opener.join()


def test_s51_close_waits_for_no_abandoned_worker() -> None:
    """A hung tool that was cancelled before does not cost the grace."""
    server = Server()
    gate = gated(server)
    future = server.request(call("wait"), "c")
    gate.wait_entered()
    future.cancel()
    closed = threading.Event()

    def close() -> None:
        server.close(grace=WAIT * 3)
        closed.set()

    closing = threading.Thread(target=close)
    closing.start()
    assert closed.wait(WAIT / 2)
    closing.join(WAIT)
    assert server.stats().abandoned == 1
    gate.open()


@pytest.mark.parametrize("where", ["tool", "subscriber", "sink", "done"])
def test_s51_close_may_come_from_a_callback(where: str) -> None:
    """From a tool, a subscriber, a sink or a done callback it returns promptly and is complete."""
    server = Server()
    closed = threading.Event()

    def close(*_: object) -> str:
        server.close(grace=WAIT * 3)
        closed.set()
        return "closed"

    server.tool(name="t")(lambda: close() if where == "tool" else "x")
    server.subscribe(close if where == "subscriber" else Recorder(), "c")
    if where == "subscriber":
        server.notify("notifications/x")
    else:
        sink = close if where == "sink" else None
        future = server.request(call("t"), "c", sink=sink)
        if where == "done":
            future.add_done_callback(close)
    assert closed.wait(WAIT / 2)
    assert code(server, req("ping")) == -32603
    server.close()


def test_s51_many_may_close_at_once() -> None:
    """Two tools, a done callback and two threads: none waits for another's end for ever."""
    server = Server(max_in_flight=4)
    together = threading.Barrier(5)
    finished = Recorder()

    def close(*_: object) -> str:
        together.wait(WAIT)
        server.close(grace=WAIT * 3)
        finished({})
        return "closed"

    server.tool(name="t")(lambda: close())
    for i in range(2):
        server.request(call("t", id=i), "c")
    server.request(req("ping", id="p"), "c").add_done_callback(close)
    threads = [threading.Thread(target=close) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert len(finished.wait_for(5)) == 5
    for thread in threads:
        thread.join(WAIT)
    eventually(lambda: server.stats().in_flight == 0)


def test_s51_open_listens_end_with_their_result() -> None:
    """Tagged, as the last thing on their stream; the future has it too."""
    server = Server()
    sink = Recorder()
    future = server.request(
        modern("subscriptions/listen", {"notifications": {}}, "L"), "c", sink=sink
    )
    sink.wait_for(1)
    server.close()
    answer = future.result(WAIT)
    assert answer is not None
    assert answer["id"] == "L"
    assert answer["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "L"
    assert answer["result"]["resultType"] == "complete"
    assert sink.messages[-1] == answer
