"""Callbacks run apart, bounded, and give everything back (rows S14 to S19, S46)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from raxol_sync import DEFAULT, Cancelled, Context, RPCError, Server, Text, ToolError, ToolResult
from tests.server.helpers import (
    WAIT,
    Gate,
    Recorder,
    ask,
    call,
    code,
    eventually,
    gated,
    initialize,
    req,
    result,
    text,
)

BUSY = -31429
CALLBACK_TIMEOUT = -31504


def test_s14_callbacks_run_on_workers_and_others_are_answered_meanwhile() -> None:
    """Tools, resources, prompts and completers never run on the caller's thread."""
    threads: list[threading.Thread] = []

    def note_thread(*_: object) -> str:
        threads.append(threading.current_thread())
        return "x"

    with Server() as server:
        gate = gated(server)
        server.tool(name="t")(lambda: note_thread())
        server.resource("r://x", name="r")(lambda: note_thread())
        server.prompt(name="p", completers={"a": lambda value: [note_thread()]})(
            lambda a="": note_thread()
        )
        slow = server.request(call("wait", id="slow"), "c")
        gate.wait_entered()
        result(server, call("t"))
        result(server, req("resources/read", {"uri": "r://x"}))
        result(server, req("prompts/get", {"name": "p"}))
        ref = {"type": "ref/prompt", "name": "p"}
        params = {"ref": ref, "argument": {"name": "a", "value": ""}}
        result(server, req("completion/complete", params))
        assert len(threads) == 4
        assert threading.current_thread() not in threads
        gate.open()
        assert text(slow.result(WAIT)) == "through"


def test_s14_what_needs_no_callback_takes_no_slot() -> None:
    """With every worker busy, lists, initialize, ping and discover are still answered."""
    with Server(max_in_flight=1) as server:
        gate = gated(server)
        server.request(call("wait", id="slow"), "c")
        gate.wait_entered()
        for message in (req("tools/list"), req("ping"), initialize(), req("prompts/list")):
            result(server, message)
        assert code(server, call("wait")) == BUSY
        gate.open()


def test_s15_a_share_above_the_total_is_refused() -> None:
    """And so are counts that are no counts."""
    with pytest.raises(ValueError):
        Server(max_in_flight=2, max_in_flight_per_connection=3)
    for bad in (0, -1):
        with pytest.raises(ValueError):
            Server(max_in_flight=bad)
    with pytest.raises(TypeError):
        Server(max_in_flight=True)


@pytest.mark.parametrize(
    ("options", "scope", "limit"),
    [({"max_in_flight": 4}, "connection", 2),
     ({"max_in_flight": 1}, "connection", 1),
     ({"max_in_flight": 3, "max_in_flight_per_connection": 3}, "connection", 3)],
)  # fmt: skip
def test_s16_work_above_the_share_is_busy(options: Any, scope: str, limit: int) -> None:
    """The error names scope and limit; the default share is half, at least one."""
    with Server(**options) as server:
        gate = gated(server)
        for i in range(limit):
            server.request(call("wait", id=f"held-{i}"), "c")
        gate.wait_entered(limit)
        error = ask(server, call("wait"))["error"]
        assert error["code"] == BUSY
        assert error["data"] == {"error": "busy", "scope": scope, "limit": limit}
        gate.open()
        eventually(lambda: server.stats().in_flight == 0)
        assert text(ask(server, call("wait"))) == "through"


def test_s16_the_total_binds_over_all_connections() -> None:
    """With the server full another connection is told that the server is."""
    with Server(max_in_flight=2) as server:
        gate = gated(server)
        server.request(call("wait"), "a")
        server.request(call("wait"), "b")
        gate.wait_entered(2)
        error = ask(server, call("wait"), "c")["error"]
        assert error["data"] == {"error": "busy", "scope": "server", "limit": 2}
        assert server.stats().in_flight_by_connection == {"a": 1, "b": 1}
        gate.open()


def test_s16_sixty_four_threads_never_exceed_a_bound() -> None:
    """However many call at once, callbacks inside stay within share and total; counts end at 0."""
    lock = threading.Lock()
    inside: dict[object, int] = {}
    worst: dict[object, int] = {}

    with Server(max_in_flight=8, max_in_flight_per_connection=3) as server:

        @server.tool
        def count(context: Context) -> str:
            keys = (context.conn_id, "total")
            with lock:
                for key in keys:
                    inside[key] = inside.get(key, 0) + 1
                    worst[key] = max(worst.get(key, 0), inside[key])
            with lock:
                for key in keys:
                    inside[key] -= 1
            return "ok"

        start = threading.Barrier(64)
        outcomes: list[str] = []

        def caller(n: int) -> None:
            start.wait(WAIT)
            for i in range(40):
                answer = ask(server, call("count", id=f"{n}-{i}"), n % 4)
                outcomes.append("ok" if "result" in answer else str(answer["error"]["code"]))

        threads = [threading.Thread(target=caller, args=(n,)) for n in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
        assert len(outcomes) == 64 * 40
        assert set(outcomes) <= {"ok", str(BUSY)}
        assert "ok" in outcomes
        assert worst["total"] <= 8
        assert all(worst[n] <= 3 for n in range(4))
        eventually(lambda: server.stats().in_flight == 0)
        assert server.stats().in_flight_by_connection == {}


def test_s17_a_callback_that_takes_too_long_is_answered_for() -> None:
    """`CALLBACK_TIMEOUT` at once when due; what it returns later is dropped."""
    with Server(callback_timeout=0.05) as server:
        gate = Gate()
        seen: list[Context] = []

        @server.tool
        def slow(context: Context) -> str:
            seen.append(context)
            gate()
            return "late"

        sink = Recorder()
        future = server.request(call("slow"), "c", sink=sink)
        answer = future.result(WAIT)
        assert answer is not None
        assert answer["error"]["code"] == CALLBACK_TIMEOUT
        assert answer["error"]["data"] == {"error": "callback_timeout", "timeout": 0.05}
        assert seen[0].cancelled
        gate.open()
        eventually(lambda: server.stats().in_flight == 0)
        assert sink.wait_for(1) == [answer]


def test_s18_an_abandoned_worker_keeps_its_slot_until_it_ends() -> None:
    """It counts against its connection and the total, also after a take-over."""
    with Server(max_in_flight=2, max_in_flight_per_connection=1) as server:
        gate = gated(server)
        server.subscribe(Recorder(), "c")
        future = server.request(call("wait"), "c")
        gate.wait_entered()
        future.cancel()
        stats = server.stats()
        assert (stats.in_flight, stats.abandoned) == (1, 1)
        server.subscribe(Recorder(), "c")
        assert server.stats().in_flight_by_connection == {"c": 1}
        assert code(server, call("wait")) == BUSY
        gate.open()
        eventually(lambda: server.stats().in_flight == 0)
        stats = server.stats()
        assert (stats.abandoned, stats.in_flight_by_connection) == (0, {})


def test_s18_a_cancelled_context_raises_in_whatever_talks_to_the_peer() -> None:
    """progress, log and check_cancelled raise `Cancelled`, which no `except Exception` catches."""
    raised: list[str] = []
    with Server() as server:
        gate = Gate()

        @server.tool
        def slow(context: Context) -> str:
            gate()
            talks: list[Callable[[], object]] = [
                lambda: context.progress(1),
                lambda: context.log("info", "x"),
                context.check_cancelled,
            ]
            for talk in talks:
                try:
                    talk()
                except Exception:
                    raised.append("caught")
                except Cancelled:
                    raised.append("cancelled")
            raise Cancelled("stop")

        future = server.request(call("slow"), "c")
        gate.wait_entered()
        future.cancel()
        gate.open()
        eventually(lambda: server.stats().in_flight == 0)
        assert raised == ["cancelled"] * 3


def test_s19_messages_without_a_conn_id_share_one_connection() -> None:
    """They share `DEFAULT`'s slots."""
    with Server(max_in_flight=2) as server:
        gate = gated(server)
        future = server.request(call("wait", id="held"))
        gate.wait_entered()
        assert server.stats().in_flight_by_connection == {DEFAULT: 1}
        assert code(server, call("wait"), DEFAULT) == BUSY
        gate.open()
        assert text(future.result(WAIT)) == "through"


@pytest.mark.parametrize(
    "error",
    [ValueError("secret"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), StopIteration(),
     BaseException("secret"), TimeoutError("secret"), RecursionError("secret")],
)  # fmt: skip
def test_s46_whatever_a_tool_raises_only_its_class_is_told(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """A failed result with the class; the log has the rest; the worker lives on."""
    with Server(max_in_flight=1) as server:

        @server.tool
        def bad() -> str:
            raise error

        with caplog.at_level(logging.ERROR):
            answer = ask(server, call("bad"))
        assert answer["result"]["isError"] is True
        assert text(answer) == f"the tool failed: {type(error).__name__}"
        assert caplog.records
        assert text(ask(server, call("bad"))) == text(answer)


def test_what_a_tool_may_raise_on_purpose() -> None:
    """`ToolError` is a failed result word for word, `RPCError` that very error."""
    with Server() as server:

        @server.tool
        def said() -> str:
            raise ToolError("not today")

        @server.tool
        def error() -> str:
            raise RPCError(-1234, "no", {"why": 1})

        @server.tool
        def gone() -> str:
            raise Cancelled("although nobody cancelled")

        assert text(ask(server, call("said"))) == "not today"
        assert ask(server, call("error"))["error"] == {
            "code": -1234, "message": "no", "data": {"why": 1},
        }  # fmt: skip
        assert code(server, call("gone")) == -32603


@pytest.mark.parametrize(
    "value",
    [object(), {"a": object()}, [Text("x"), object()], ToolResult([5]),  # type: ignore[list-item]
     float("nan"), {"a": float("inf")}, 1j, ToolResult("x", structured_content=object())],
)  # fmt: skip
def test_results_that_cannot_be_sent_are_the_tools_failure(value: object) -> None:
    """Each is a failed result; no slot is left over."""
    with Server() as server:
        server.tool(name="t")(lambda: value)
        assert ask(server, call("t"))["result"]["isError"] is True
        eventually(lambda: server.stats().in_flight == 0)


def test_a_result_that_holds_itself_harms_nobody() -> None:
    """Neither as a result nor as an error's data does it hang the server."""
    loop: list[object] = []
    loop.append(loop)
    with Server() as server:
        server.tool(name="t")(lambda: loop)

        @server.tool
        def error() -> str:
            raise RPCError(-1, "m", loop)

        assert ask(server, call("t"))["result"]["isError"] is True
        sink = Recorder()
        server.request(call("error"), "c", sink=sink)
        assert sink.wait_for(1)[0]["error"]["code"] == -1
        assert result(server, req("ping")) == {}


def test_a_log_handler_that_raises_costs_no_slot() -> None:
    """Logging is user code too: the request is answered and the slot given back."""

    class Broken(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            raise RuntimeError("broken filter")

    logger = logging.getLogger("raxol_sync.server")
    broken = Broken()
    with Server(max_in_flight=1) as server:

        @server.tool
        def bad() -> str:
            raise ValueError

        logger.addFilter(broken)
        try:
            for _ in range(3):
                assert "jsonrpc" in ask(server, call("bad"))
                eventually(lambda: server.stats().in_flight == 0)
        finally:
            logger.removeFilter(broken)


def test_a_tool_may_call_its_own_server() -> None:
    """A nested call has its own slot; without one it is busy, never stuck."""
    with Server(max_in_flight=2, max_in_flight_per_connection=2) as server:
        server.tool(name="inner")(lambda: "in")

        @server.tool
        def outer() -> str:
            return text(server.handle_message(call("inner", id="n"), "c"))

        @server.tool
        def deep(n: int) -> str:
            answer = server.handle_message(call("deep", {"n": n + 1}, id=n), "c")
            assert answer is not None
            return "busy" if "error" in answer else text(answer)

        assert text(ask(server, call("outer"))) == "in"
        assert text(ask(server, call("deep", {"n": 100}))) == "busy"
