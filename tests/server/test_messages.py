"""What comes in, whatever it is, and what goes back (rows S01 to S04, S06, S07, S50)."""

from __future__ import annotations

import concurrent.futures
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from raxol_sync import Cancelled, Context, Server
from tests.server.helpers import (
    WAIT,
    Gate,
    Recorder,
    ask,
    call,
    cancelled,
    code,
    eventually,
    gated,
    initialize,
    note,
    req,
    result,
    text,
)


def test_s01_requests_are_answered_and_nothing_else_is() -> None:
    """A request gives its response; notifications and responses give `None`."""
    with Server() as server:
        assert ask(server, req("ping", id="a")) == {"jsonrpc": "2.0", "id": "a", "result": {}}
        assert server.handle_message(note("notifications/initialized")) is None
        assert server.handle_message({"jsonrpc": "2.0", "id": 1, "result": {}}) is None


BAD_SHAPES: list[tuple[object, int, object]] = [
    (None, -32600, None),
    (3, -32600, None),
    ("ping", -32600, None),
    ([], -32600, None),
    ([req("ping")], -32600, None),
    ({}, -32600, None),
    ({"id": 1, "method": "ping"}, -32600, 1),
    ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600, 1),
    ({"jsonrpc": "2.0", "id": 1}, -32600, 1),
    (req("ping", id=None), -32600, None),
    (req("ping", id=True), -32600, None),
    (req("ping", id=1.0), -32600, None),
    (req("ping", id=[1]), -32600, None),
    ({"jsonrpc": "2.0", "id": 1, "method": 7}, -32600, 1),
    (req("ping", []), -32602, 1),
    (req("ping", "x"), -32602, 1),
    (req("no/such", 5), -32602, 1),
    (req("no/such"), -32601, 1),
    (req(""), -32601, 1),
]


@pytest.mark.parametrize(("message", "error", "id"), BAD_SHAPES)
def test_s06_malformed_messages_are_answered_with_their_code(
    message: object, error: int, id: object
) -> None:
    """Each malformed shape has its code; without a usable id the error has none."""
    with Server() as server:
        answer = server.handle_message(message)
        if answer is None:
            assert message == {}  # neither a request nor a response: nobody waits
            return
        assert answer["error"]["code"] == error
        assert answer.get("id") == id
        assert ("id" in answer) is (id is not None)


def test_s06_old_revisions_say_null_where_there_is_no_id() -> None:
    """Up to 2025-06-18 an error without a usable id says `"id": null`."""
    for revision in ("2024-11-05", "2025-03-26", "2025-06-18"):
        with Server() as server:
            result(server, initialize(revision))
            answer = ask(server, [])
            assert answer["id"] is None
            assert "id" in answer


def test_s06_null_params_count_as_absent() -> None:
    """`"params": null` is served as if there were none."""
    with Server() as server:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": None}
        assert result(server, message) == {"tools": []}


def test_s06_broken_notifications_are_dropped() -> None:
    """Nothing is answered to a notification, however broken."""
    with Server() as server:
        for message in (
            note("no/such"),
            note("ping", []),
            {"jsonrpc": "2.0", "method": 5},
            note("notifications/cancelled", {"requestId": [1]}),
            note("notifications/cancelled", {"requestId": True}),
            note("notifications/cancelled"),
        ):
            assert server.handle_message(message, timeout=WAIT) is None


def test_s07_a_response_never_gets_a_reply() -> None:
    """Responses, valid or not, to requests that we did not make are ignored."""
    with Server() as server:
        for message in (
            {"jsonrpc": "2.0", "id": "x", "result": {}},
            {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "m"}},
            {"jsonrpc": "2.0", "id": 1, "error": 5},
            {"jsonrpc": "2.0", "id": 1.5, "result": 5},
        ):
            assert server.handle_message(message, timeout=WAIT) is None


def test_s02_a_caller_that_stops_waiting_cancels_the_call() -> None:
    """`TimeoutError` in the caller, and the callback's context says cancelled."""
    told = threading.Event()
    seen: list[Context] = []
    with Server() as server:

        @server.tool
        def slow(context: Context) -> str:
            seen.append(context)
            assert told.wait(WAIT)
            context.check_cancelled()
            return "never"

        with pytest.raises(TimeoutError):
            server.handle_message(call("slow"), timeout=0.05)
        eventually(lambda: bool(seen))
        assert seen[0].cancelled
        assert server.stats().abandoned == 1
        told.set()
        eventually(lambda: server.stats().in_flight == 0)


def test_s02_an_interrupted_wait_cancels_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """KeyboardInterrupt during the wait reaches the caller and stops the callback."""
    with Server() as server:
        gate = gated(server)
        original = server._handle

        def interrupted(*args: Any, **kwargs: Any) -> Future[Any]:
            future = original(*args, **kwargs)

            def boom(timeout: float | None = None) -> None:
                gate.wait_entered()
                raise KeyboardInterrupt

            future.result = boom  # type: ignore[method-assign]
            return future

        monkeypatch.setattr(server, "_handle", interrupted)
        with pytest.raises(KeyboardInterrupt):
            server.handle_message(call("wait"))
        assert server.stats().abandoned == 1
        gate.open()


def test_s02_an_answer_that_wins_the_race_is_returned() -> None:
    """When the answer comes just as the time is up, the caller gets one of the two, cleanly."""
    with Server() as server:
        server.tool(name="quick")(lambda: "ok")

        outcomes = set()
        for i in range(200):
            try:
                answer = server.handle_message(call("quick", id=i), timeout=i % 40 * 2e-5)
                assert text(answer) == "ok"
                outcomes.add("answer")
            except TimeoutError:
                outcomes.add("timeout")
        assert "timeout" in outcomes  # the first waits for no time at all
        eventually(lambda: server.stats().in_flight == 0)


def test_s02_an_answer_after_the_time_is_up_but_before_the_cancel_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The wait has ended, then the answer comes: it is returned, nothing is cancelled."""
    with Server() as server:
        gate = gated(server)
        original = server._handle

        def late(*args: Any, **kwargs: Any) -> Future[Any]:
            future = original(*args, **kwargs)
            result = future.result

            def too_late(timeout: float | None = None) -> Any:
                if timeout is None:
                    return result(WAIT)
                gate.open()
                result(WAIT)
                raise concurrent.futures.TimeoutError

            future.result = too_late  # type: ignore[method-assign]
            return future

        monkeypatch.setattr(server, "_handle", late)
        assert text(server.handle_message(call("wait"), timeout=5)) == "through"


def test_s02_a_bad_timeout_is_refused_before_anything_starts() -> None:
    """Negative, NaN and non-numbers are errors of the caller's."""
    with Server() as server:
        ran = Recorder()
        server.tool(name="t")(lambda: ran({}))
        for bad in (-1, float("nan")):
            with pytest.raises(ValueError):
                server.handle_message(call("t"), timeout=bad)
        with pytest.raises(TypeError):
            server.handle_message(call("t"), timeout="1")  # type: ignore[arg-type]
        assert ran.messages == []


def test_s03_request_never_blocks_and_resolves_once() -> None:
    """The future comes back while the callback runs; its done callback runs once."""
    with Server() as server:
        gate = gated(server)
        future = server.request(call("wait"), "c")
        assert not future.done()
        done = Recorder()
        future.add_done_callback(lambda f: done({"result": f.result()}))
        gate.open()
        assert text(future.result(WAIT)) == "through"
        assert len(done.wait_for(1)) == 1
        assert threading.current_thread() not in done.threads


def test_s03_inline_methods_keep_the_order_of_their_messages() -> None:
    """Done callbacks of inline requests come in the order of the requests."""
    with Server() as server:
        done = Recorder()
        for i in range(200):
            server.request(req("ping", id=i), "c").add_done_callback(
                lambda f: done(f.result() or {})
            )
        assert [m["id"] for m in done.wait_for(200)] == list(range(200))
        assert threading.current_thread() not in done.threads


@pytest.mark.parametrize("how", ["server", "future", "notification"])
def test_s04_cancel_stops_a_running_call(how: str) -> None:
    """The future resolves to `None`, `cancelled()` stays false, the callback is told."""
    with Server() as server:
        gate = Gate()
        seen: list[Context] = []
        raised: list[BaseException] = []

        @server.tool
        def slow(context: Context) -> str:
            seen.append(context)
            gate()
            try:
                context.progress(1)
            except Cancelled as error:
                raised.append(error)
                raise
            return "late"

        future = server.request(call("slow", id=7), "c")
        gate.wait_entered()
        if how == "server":
            assert server.cancel(future)
        elif how == "future":
            assert future.cancel()
        else:
            server.handle_message(cancelled(7), "c")
        assert future.result(WAIT) is None
        assert not future.cancelled()
        assert seen[0].cancelled
        assert not future.cancel()
        assert not server.cancel(future)
        gate.open()
        eventually(lambda: server.stats().in_flight == 0)
        assert len(raised) == 1


def test_s04_a_completed_request_is_left_alone() -> None:
    """Cancelling it is false and changes nothing."""
    with Server() as server:
        future = server.request(req("ping"), "c")
        assert not future.cancel()
        assert future.result(WAIT) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_s04_a_blocked_handle_message_gets_none() -> None:
    """Cancelling what a thread waits for gives it `None`."""
    with Server() as server:
        gate = gated(server)
        answers: list[object] = []
        thread = threading.Thread(
            target=lambda: answers.append(server.handle_message(call("wait", id=5), "c"))
        )
        thread.start()
        gate.wait_entered()
        server.handle_message(cancelled(5), "c")
        thread.join(WAIT)
        assert answers == [None]
        gate.open()


def test_s50_only_the_own_request_of_exactly_that_id_is_cancelled() -> None:
    """Another connection's id, another type of id, and unknown ones cancel nothing."""
    with Server() as server:
        gate = gated(server)
        future = server.request(call("wait", id=1), "a")
        gate.wait_entered()
        for message, conn in ((cancelled(1), "b"), (cancelled("1"), "a"), (cancelled(2), "a")):
            server.handle_message(message, conn)
        assert not future.done()
        gate.open()
        assert text(future.result(WAIT)) == "through"


def test_an_id_in_use_is_refused_and_free_again_afterwards() -> None:
    """A second request with the id of one in flight gets an error; the first is untouched."""
    with Server() as server:
        gate = gated(server)
        first = server.request(call("wait", id=1), "c")
        gate.wait_entered()
        assert code(server, req("ping", id=1)) == -32600
        assert result(server, req("ping", id="1")) == {}
        assert result(server, req("ping", id=1), "other") == {}
        gate.open()
        assert text(first.result(WAIT)) == "through"
        assert result(server, req("ping", id=1)) == {}
