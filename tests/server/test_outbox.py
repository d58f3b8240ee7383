"""A stuck or broken reader harms only itself (row S20)."""

from __future__ import annotations

import logging
import threading

import pytest

from raxol_sync import Context, Server
from raxol_sync._deadline import Deadline
from raxol_sync.server import outbox as outbox_module
from raxol_sync.server.outbox import MAX_BYTES, MAX_MESSAGES, Outbox, weight
from tests.server.helpers import (
    WAIT,
    Gate,
    Json,
    Recorder,
    call,
    eventually,
    gated,
    note,
    req,
    result,
    steps,
    text,
)


def stuck(gate: Gate, recorder: Recorder) -> object:
    """A consumer that waits at a gate before it takes each message."""

    def consume(message: Json) -> None:
        gate()
        recorder(message)

    return consume


def test_s20_a_stuck_subscriber_stalls_only_itself() -> None:
    """Others are served and notified; the stuck one gets its messages when it reads again."""
    with Server() as server:
        gate, slow, quick = Gate(), Recorder(), Recorder()
        server.subscribe(stuck(gate, slow), "slow")  # type: ignore[arg-type]
        server.subscribe(quick, "quick")
        for i in range(10):
            server.notify("notifications/x", {"i": i})
        assert len(quick.wait_for(10)) == 10
        assert result(server, req("ping"), "slow") == {}
        assert slow.messages == []
        gate.open()
        assert [m["params"]["i"] for m in slow.wait_for(10)] == list(range(10))


def test_s20_overflow_closes_only_that_connection(caplog: pytest.LogCaptureFixture) -> None:
    """Past the bound the connection goes, with what it had outstanding, and the log says so."""
    with Server() as server:
        gate, work = Gate(), gated(server)
        quick = Recorder()
        server.subscribe(stuck(gate, Recorder()), "slow")  # type: ignore[arg-type]
        server.subscribe(quick, "quick")
        future = server.request(call("wait"), "slow")
        work.wait_entered()
        with caplog.at_level(logging.WARNING):
            for i in range(MAX_MESSAGES + 10):
                server.notify("notifications/x", {"i": i})
                if i % 500 == 0:
                    quick.wait_for(i)
        assert future.result(WAIT) is None
        assert len(quick.wait_for(MAX_MESSAGES + 10)) == MAX_MESSAGES + 10
        assert server.stats().connections == 1
        assert "does not read" in caplog.text
        gate.open()
        work.open()


def test_s20_overflow_of_answers_closes_the_connection() -> None:
    """Answers to malformed messages, which nobody reads, count as well."""
    with Server() as server:
        gate = Gate()
        consumer = stuck(gate, Recorder())
        server.subscribe(consumer, "c")  # type: ignore[arg-type]
        for _ in range(MAX_MESSAGES + 10):
            server.request([], "c", sink=consumer)  # type: ignore[arg-type]
        assert server.stats().connections == 0
        gate.open()


def test_s20_a_stuck_sink_costs_only_its_own_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its request is cancelled when its queue is full; nothing is left once it reads again."""
    monkeypatch.setattr(outbox_module.Outbox.__init__, "__kwdefaults__",
                        {"quick": None, "max_messages": 8, "max_bytes": MAX_BYTES})  # fmt: skip
    with Server() as server:
        gate, recorder = Gate(), Recorder()
        raised = threading.Event()

        @server.tool
        def flood(context: Context) -> str:
            try:
                for i in range(1000):
                    context.progress(i)
            finally:
                if context.cancelled:
                    raised.set()
            return "done"

        message = call("flood", _meta={"progressToken": 1})
        future = server.request(message, "c", sink=stuck(gate, recorder))  # type: ignore[arg-type]
        assert future.result(WAIT) is None
        assert raised.wait(WAIT)
        eventually(lambda: server.stats().in_flight == 0)
        gate.open()
        eventually(lambda: not _sinks())


def test_s20_a_response_that_does_not_fit_ends_its_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    """The future still has the response; the sink's thread ends when it reads again."""
    monkeypatch.setattr(outbox_module.Outbox.__init__, "__kwdefaults__",
                        {"quick": None, "max_messages": 3, "max_bytes": MAX_BYTES})  # fmt: skip
    with Server() as server:
        gate, recorder = Gate(), Recorder()
        steps(server)
        message = call("steps", {"n": 1}, id=1, _meta={"progressToken": 1})
        future = server.request(message, "c", sink=stuck(gate, recorder))  # type: ignore[arg-type]
        assert text(future.result(WAIT)) == "done"
        work = gated(server)

        @server.tool
        def fill(context: Context) -> str:
            context.progress(1)
            gate.wait_entered()  # the sink is stuck with the first one
            for i in range(3):
                context.progress(i + 2)
            return "done"

        gate2 = gate
        message = call("fill", id=2, _meta={"progressToken": 1})
        gate2.wait_entered()
        future = server.request(message, "c", sink=stuck(gate2, recorder))  # type: ignore[arg-type]
        answer = future.result(WAIT)
        assert text(answer) == "done"
        gate.open()
        work.open()
        eventually(lambda: not _sinks())


def _sinks() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "raxol-sync-sink"]


@pytest.mark.parametrize("error", [ValueError, ConnectionError, SystemExit, KeyboardInterrupt])
def test_s20_a_subscriber_that_raises_ends_its_connection(error: type[BaseException]) -> None:
    """What it had outstanding resolves to `None`; others notice nothing."""
    with Server() as server:
        work, other = gated(server), Recorder()

        def broken(message: Json) -> None:
            raise error("broken")

        server.subscribe(broken, "bad")
        server.subscribe(other, "good")
        future = server.request(call("wait"), "bad")
        work.wait_entered()
        server.notify("notifications/x")
        assert future.result(WAIT) is None
        eventually(lambda: server.stats().connections == 1)
        server.notify("notifications/y")
        assert [m["method"] for m in other.wait_for(2)] == ["notifications/x", "notifications/y"]
        work.open()


def test_s20_a_sink_that_raises_ends_its_request() -> None:
    """The connection and its other requests go on."""
    with Server() as server:
        subscriber = Recorder()
        server.subscribe(subscriber, "c")
        gate = Gate()

        @server.tool
        def slow(context: Context) -> str:
            context.progress(1)
            gate()
            return "late"

        def broken(message: Json) -> None:
            raise ValueError("broken")

        message = call("slow", _meta={"progressToken": 1})
        assert server.request(message, "c", sink=broken).result(WAIT) is None
        assert server.stats().connections == 1
        assert result(server, req("ping")) == {}
        gate.open()


def test_s20_a_subscriber_may_call_back_into_the_server() -> None:
    """Requests, notifications, even closing its own subscription: nothing locks up."""
    with Server() as server:
        server.tool(name="t")(lambda: "x")
        answers: list[object] = []
        done = threading.Event()

        def subscriber(message: Json) -> None:
            if message["method"] == "notifications/start":
                answers.append(text(server.handle_message(call("t"), "c", timeout=WAIT)))
                server.notify("notifications/again")
            else:
                answers.append(server.stats().connections)
                subscription.close()
                done.set()

        subscription = server.subscribe(subscriber, "c")
        server.notify("notifications/start")
        assert done.wait(WAIT)
        assert answers == ["x", 1]
        assert server.stats().connections == 0


def _token(message: Json) -> object:
    return message.get("params", {}).get("progressToken")


def test_s20_progress_comes_before_the_response_on_one_channel() -> None:
    """With the subscriber as sink all leaves in the order that was decided."""
    with Server(max_in_flight=16, max_in_flight_per_connection=16) as server:
        steps(server)
        channel = Recorder()
        server.subscribe(channel, "c")
        for i in range(12):
            message = call("steps", {"n": 30}, id=i, _meta={"progressToken": i})
            server.request(message, "c", sink=channel)
        messages = channel.wait_for(12 * 31)
        assert len(channel.threads) == 1
        for i in range(12):
            own = [m for m in messages if i in (m.get("id"), _token(m))]
            assert [m["params"]["progress"] for m in own[:-1]] == list(range(1, 31))
            assert own[-1]["id"] == i


def test_s49_a_sink_gets_all_of_its_request_and_the_subscriber_nothing() -> None:
    """Progress, logs and response go to the sink, response last."""
    with Server() as server:
        steps(server)
        subscriber, sink = Recorder(), Recorder()
        server.subscribe(subscriber, "c")
        message = call("steps", {"n": 3}, _meta={"progressToken": "p"})
        server.request(message, "c", sink=sink)
        assert len(sink.wait_for(4)) == 4
        assert sink.methods() == ["notifications/progress"] * 3 + ["response"]
        message = call("steps", {"n": 3}, id=2, _meta={"progressToken": "p"})
        server.request(message, "c").result(WAIT)
        assert len(subscriber.wait_for(3)) == 3
        assert subscriber.methods() == ["notifications/progress"] * 3


def test_s20_a_settled_request_sends_nothing() -> None:
    """Neither after its response nor after a time-out does its context reach the peer."""
    with Server() as server:
        kept: list[Context] = []
        server_sink = Recorder()

        @server.tool
        def keep(context: Context) -> str:
            kept.append(context)
            return "ok"

        message = call("keep", _meta={"progressToken": 1})
        server.request(message, "c", sink=server_sink).result(WAIT)
        kept[0].progress(5)
        kept[0].log("error", "late")
        server.close()
        assert server_sink.methods() == ["response"]


def test_the_outbox_bounds_messages_and_bytes() -> None:
    """One too large passes an empty box only; a kind waits once; a closed one drops."""
    gate, recorder = Gate(), Recorder()
    box = Outbox(stuck(gate, recorder), "raxol-sync-t", max_messages=2, max_bytes=100)  # type: ignore[arg-type]
    box.start(lambda broken: None)
    assert box.put({"big": "x" * 1000})
    gate.wait_entered()
    assert box.put(note("a"), only="a")
    assert box.put(note("a"), only="a")
    assert not box.put({"big": "x" * 1000})
    box.close()
    assert box.put(note("dropped"))
    gate.open()
    assert box.join(Deadline(WAIT))
    assert recorder.methods() == ["response", "a"]


def test_a_value_that_holds_itself_has_a_weight() -> None:
    """Counting ends past the limit."""
    loop: list[object] = []
    loop.append(loop)
    assert weight(loop, limit=1000) > 1000
    assert weight({"a": "xyz", "b": [1, 2]}) == 3 + 32 + 32
