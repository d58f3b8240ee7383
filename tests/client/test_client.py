"""The client against a server that behaves: what each method gives, order, threads, endings."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, as_completed, wait
from pathlib import Path
from typing import Any

import pytest

from raxol_sync.client.client import Client
from raxol_sync.errors import Busy, MessageTooLarge, NotReady, RequestTimeout, RPCError
from raxol_sync.protocol.wire import Notification
from raxol_sync.values import CallResult

Serve = Callable[..., Client]
PROGRAM = Path(__file__).parent / "programs" / "server.py"


def sent(client: Client) -> list[dict[str, Any]]:
    """Every message that the server got so far."""
    found: list[dict[str, Any]] = json.loads(client.call_tool("messages").text)
    return found


def methods(client: Client) -> list[str]:
    return [message.get("method", "answer") for message in sent(client)]


# ---------------------------------------------------------------- calls


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_c10_submit_is_the_same_without_blocking(serve: Serve, era: str) -> None:
    """Futures give the results of their own calls, also past the window."""
    with serve(f"era={era}", pool_size=4) as client:
        futures = [client.submit_tool("echo", {"text": str(n)}) for n in range(60)]
        assert [future.result(timeout=10).text for future in futures] == [str(n) for n in range(60)]
        assert {f.result().text for f in as_completed(futures, timeout=1)} == set(
            map(str, range(60))
        )


def test_c10_cancelling_a_future_cancels_on_the_wire(serve: Serve) -> None:
    """The future is cancelled as `concurrent.futures` means it; a second time does nothing."""
    with serve() as client:
        future = client.submit_tool("silent")
        told: list[threading.Thread] = []
        called = threading.Event()

        def note(future: Future[CallResult]) -> None:
            told.append(threading.current_thread())
            called.set()

        future.add_done_callback(note)
        assert future.cancel()
        assert future.cancelled()
        with pytest.raises(CancelledError):
            future.result(timeout=0)
        assert wait([future], timeout=0).done == {future}
        assert not future.cancel()
        assert called.wait(5)
        assert told[0] is not threading.current_thread()
        cancelled = [
            m["params"] for m in sent(client) if m.get("method") == "notifications/cancelled"
        ]
        calls = [m["id"] for m in sent(client) if m.get("params", {}).get("name") == "silent"]
        assert [c["requestId"] for c in cancelled] == calls
        assert client.status().pending == 0


def test_c10_a_queued_call_that_is_cancelled_is_never_sent(serve: Serve) -> None:
    """Nothing of it reaches the server, not even a cancellation."""
    with serve(concurrency="serialized") as client:
        first = client.submit_tool("silent")
        second = client.submit_tool("echo", {"text": "never"})
        assert client.status().queued == 1
        assert second.cancel()
        assert first.cancel()
        names = [m.get("params", {}).get("name") for m in sent(client)]
        assert "echo" not in names
        assert methods(client).count("notifications/cancelled") == 1


def test_c12_a_future_times_out_by_itself(serve: Serve) -> None:
    """Nobody has to wait for it; the call is cancelled on the wire."""
    with serve() as client:
        future = client.submit_tool("silent", timeout=0.2)
        error = future.exception(timeout=5)
        assert isinstance(error, RequestTimeout)
        assert error.timeout == 0.2
        assert "notifications/cancelled" in methods(client)


def test_c12_the_deadline_covers_the_queueing(serve: Serve) -> None:
    """A call that never got its turn times out as well."""
    with serve(concurrency="serialized") as client:
        first = client.submit_tool("silent")
        with pytest.raises(RequestTimeout):
            client.call_tool("echo", {"text": "x"}, timeout=0.2)
        assert client.status().queued == 0
        first.cancel()
        assert client.call_tool("echo", {"text": "y"}).text == "y"


def test_c12_past_the_queue_it_is_busy(serve: Serve) -> None:
    """Window and queue full: refused at once, in words; room again afterwards."""
    with serve(pool_size=2, queue_limit=3) as client:
        futures = [client.submit_tool("silent") for _ in range(5)]
        with pytest.raises(Busy) as caught:
            client.call_tool("echo", {"text": "x"})
        assert (caught.value.scope, caught.value.limit) == ("queue", 3)
        for future in futures:
            future.cancel()
        assert client.call_tool("echo", {"text": "x"}).text == "x"


def test_c12_serialized_is_one_at_a_time_in_order(serve: Serve) -> None:
    """Twenty calls from one thread arrive in the order of their making."""
    with serve(concurrency="serialized") as client:
        assert client.status().concurrency == "serialized"
        futures = [client.submit_tool("echo", {"text": str(n)}) for n in range(20)]
        assert [f.result(timeout=10).text for f in futures] == [str(n) for n in range(20)]
        arguments = [m["params"].get("arguments", {}).get("text") for m in sent(client)]
        assert [a for a in arguments if a is not None] == [str(n) for n in range(20)]


@pytest.mark.parametrize(
    "arguments",
    [{"x": {1, 2}}, {"x": float("nan")}, {"x": "\ud800"}, {"x": object()}, {("a",): 1}],
    ids=["set", "nan", "surrogate", "object", "key"],
)
def test_c10_arguments_that_cannot_be_json_are_refused_before_sending(
    serve: Serve, arguments: Any
) -> None:
    """A ValueError or TypeError for the caller; the place in the window is free again."""
    with serve(concurrency="serialized") as client:
        for call in (client.call_tool, client.submit_tool):
            with pytest.raises((TypeError, ValueError)):
                call("echo", arguments)
        assert client.status().pending == 0
        assert client.call_tool("echo", {"text": "x"}).text == "x"


def test_c10_wrong_types_are_refused_in_words(serve: Serve) -> None:
    """A name that is no string, arguments that are no mapping, progress that cannot be called."""
    with serve() as client:
        wrong: Any = [1, 2]
        for arguments in ((wrong,), ("echo", wrong)):
            with pytest.raises(TypeError, match="must be a"):
                client.call_tool(*arguments)
        with pytest.raises(TypeError, match="progress"):
            client.call_tool("echo", progress=wrong)
        with pytest.raises(TypeError, match="timeout"):
            client.call_tool("echo", timeout=wrong)
        with pytest.raises(ValueError, match="at least 0"):
            client.call_tool("echo", timeout=-1)


def test_c12_params_over_the_limit_are_refused_before_sending(serve: Serve) -> None:
    """`max_message_bytes` holds for what we send too."""
    with serve(max_message_bytes=10_000) as client:
        with pytest.raises(MessageTooLarge):
            client.call_tool("echo", {"text": "x" * 20_000})
        assert client.call_tool("echo", {"text": "x"}).text == "x"


def test_c12_64_threads_each_get_their_own_answer(serve: Serve) -> None:
    """No answer is lost or mixed up."""
    wrong: list[str] = []
    start = threading.Barrier(64)

    def work(number: int) -> None:
        start.wait(10)
        for turn in range(10):
            text = f"{number}-{turn}"
            if client.call_tool("echo", {"text": text}).text != text:
                wrong.append(text)

    with serve() as client:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not wrong
        assert client.status().pending == client.status().queued == 0


# ---------------------------------------------------------------- notifications


def test_c14_progress_is_whole_in_order_and_before_the_return(serve: Serve) -> None:
    """500 notifications, a slow handler, and all have run when the call returns."""
    seen: list[tuple[float, float | None, str | None]] = []
    everyone: list[float] = []

    def slow(done: float, total: float | None, message: str | None) -> None:
        time.sleep(0.0002)
        seen.append((done, total, message))

    with serve(on_progress=lambda done, total, message: everyone.append(done)) as client:
        client.call_tool("progress", {"count": 500}, progress=slow)
        assert [done for done, _, _ in seen] == list(range(1, 501))
        assert seen[0][1:] == (500, None)
        assert everyone == list(range(1, 501))
        future = client.submit_tool("progress", {"count": 50}, progress=slow)
        future.result(timeout=10)
        assert len(seen) == 550


def test_c14_reading_pauses_while_handlers_are_behind(serve: Serve) -> None:
    """A flood of notifications fills neither memory nor drops any."""
    seen: list[float] = []
    gate = threading.Event()

    def held(done: float, total: float | None, message: str | None) -> None:
        gate.wait(10)
        seen.append(done)

    with serve() as client:
        future = client.submit_tool("progress", {"count": 5000}, progress=held)
        threading.Timer(0.3, gate.set).start()
        future.result(timeout=20)
        assert seen == list(range(1, 5001))


def test_c14_a_stuck_handler_does_not_keep_calls_past_their_deadline(serve: Serve) -> None:
    """An answer that has come is returned when the time is up, blocked or as a future."""
    gate = threading.Event()
    with serve(on_log=lambda level, data, logger: gate.wait(20)) as client:
        assert client.call_tool("log", timeout=0.5).content
        future = client.submit_tool("log", timeout=0.5)
        assert future.result(timeout=5).content
        gate.set()


def test_c14_log_and_notification_handlers_get_theirs_in_order(serve: Serve) -> None:
    """`on_notification` sees every notification; a handler that raises stops nothing."""
    logs: list[Any] = []
    notes: list[Any] = []

    def note(method: str, params: dict[str, Any]) -> None:
        notes.append((method, params.get("a")))
        raise RuntimeError("careless")

    with serve(on_log=lambda *record: logs.append(record), on_notification=note) as client:
        client.call_tool("log")
    assert logs == [("info", "one", "here"), ("error", {"n": 2}, None)]
    assert notes[-1] == ("notifications/custom", 1)
    assert len(notes) == 3


def test_c14_a_handler_may_call_the_client(serve: Serve) -> None:
    """Its call does not wait behind itself."""
    found: list[str] = []

    def note(method: str, params: dict[str, Any]) -> None:
        found.append(client.call_tool("echo", {"text": method}, timeout=5).text)

    with serve(on_notification=note) as client:
        client.call_tool("changed")
    assert found == ["notifications/tools/list_changed"]


def test_c14_a_handler_may_wait_for_a_future(serve: Serve) -> None:
    """It is settled at once, not behind the handler."""
    found: list[str] = []

    def note(method: str, params: dict[str, Any]) -> None:
        found.append(client.submit_tool("echo", {"text": method}).result(timeout=5).text)

    with serve(on_notification=note) as client:
        client.call_tool("changed")
    assert found == ["notifications/tools/list_changed"]


def test_c14_stop_while_reading_is_paused(serve: Serve) -> None:
    """A flood behind a stuck handler does not keep stop() from ending everything."""
    gate, begun = threading.Event(), threading.Event()

    def held(done: float, total: float | None, message: str | None) -> None:
        begun.set()
        gate.wait(20)

    with serve() as client:
        client.submit_tool("progress", {"count": 5000}, progress=held)
        assert begun.wait(5)
        stopper = threading.Thread(target=client.stop)
        stopper.start()
        threading.Timer(0.5, gate.set).start()
        stopper.join(15)
        assert not stopper.is_alive()


def test_c14_a_handler_may_call_the_client_in_a_flood(serve: Serve) -> None:
    """Reading does not pause while a handler waits for an answer."""
    found: list[str] = []

    def note(done: float, total: float | None, message: str | None) -> None:
        if not found:
            found.append(client.call_tool("echo", {"text": "inside"}, timeout=5).text)

    with serve() as client:
        client.call_tool("progress", {"count": 3000}, progress=note)
    assert found == ["inside"]


def test_c14_a_handler_in_a_full_serialized_session_is_busy(serve: Serve) -> None:
    """It would wait for the call that waits for it."""
    found: list[Any] = []
    ran = threading.Event()

    def note(done: float, total: float | None, message: str | None) -> None:
        try:
            found.append(client.call_tool("echo", timeout=5))
        except Busy as error:
            found.append(error)
        ran.set()

    with serve(concurrency="serialized") as client:
        # The server reports progress of a call that it does not answer.
        blocked = client.submit_tool("silent", progress=note)
        link: Any = client._session._link
        entry = next(iter(client._session._machine._window.sent.values()))
        params = {"progressToken": entry.id, "progress": 1}
        client._session._receive(link, Notification("notifications/progress", params))
        assert ran.wait(5)
        assert isinstance(found[0], Busy)
        blocked.cancel()


def test_c14_server_requests_are_answered(serve: Serve) -> None:
    """A ping gets its result, a request without a handler -32601, at once."""
    with serve("era=legacy") as client:
        client.call_tool("ask_client")
        answers = {m["id"]: m for m in sent(client) if "method" not in m}
    assert answers["p1"]["result"] == {}
    assert answers["s1"]["error"]["code"] == -32601


def test_c14_a_modern_server_gets_no_answers(serve: Serve) -> None:
    """There a client writes no responses."""
    with serve("era=modern") as client:
        client.call_tool("ask_client")
        assert all("method" in message for message in sent(client))


# ---------------------------------------------------------------- lists and the rest


def test_c08_lists_follow_pages_and_are_kept_in_a_legacy_session(serve: Serve) -> None:
    """All pages; the second time nothing is sent; refresh and list_changed ask anew."""
    with serve("era=legacy") as client:
        names = [tool.name for tool in client.list_tools()]
        assert len(names) == len(set(names)) > 20
        assert client.status().tools == len(names)
        pages = methods(client).count("tools/list")
        assert pages == -(-len(names) // 3)
        client.list_tools()
        assert methods(client).count("tools/list") == pages
        client.list_tools(refresh=True)
        assert methods(client).count("tools/list") == 2 * pages
        client.call_tool("changed")
        client.list_tools()
        assert methods(client).count("tools/list") == 3 * pages


@pytest.mark.parametrize(("ttl", "asked"), [(60000, 1), (0, 2)])
def test_c08_modern_pages_are_kept_while_they_are_fresh(serve: Serve, ttl: int, asked: int) -> None:
    """`ttlMs` decides; 0 is not kept."""
    with serve("era=modern", f"ttl={ttl}") as client:
        pages = -(-len(client.list_tools()) // 3)
        client.list_tools()
        assert methods(client).count("tools/list") == asked * pages


def test_c08_an_unknown_tool_drops_the_kept_list(serve: Serve) -> None:
    """-32602 from a call says that what we know is old."""
    with serve("era=legacy") as client:
        client.list_tools()
        with pytest.raises(RPCError):
            client.call_tool("no_such_tool")
        assert client.status().tools == 0


def test_c09_at_most_max_tools(serve: Serve) -> None:
    """Paging ends where the bound is reached."""
    with serve(max_tools=4) as client:
        assert len(client.list_tools()) == 4
        assert methods(client).count("tools/list") == 2


def test_c08_what_is_not_declared_is_an_empty_list(serve: Serve) -> None:
    """Nothing is sent for it."""
    with serve("bare") as client:
        assert client.list_tools() == []
        assert client.list_resources() == []
        assert client.list_resource_templates() == []
        assert client.list_prompts() == []
        assert not [method for method in methods(client) if method.endswith("/list")]


def test_c08_an_error_of_a_list_is_raised(serve: Serve) -> None:
    """Declared but not served: the server's error."""
    with serve() as client, pytest.raises(RPCError):
        client.list_prompts()


def test_log_level_is_sent_once_or_with_each_request(serve: Serve) -> None:
    """Legacy has a request for it, the modern era a member of `_meta`."""
    with serve("era=modern") as client:
        client.set_log_level("warning")
        assert "'io.modelcontextprotocol/logLevel': 'warning'" in client.call_tool("log").text
        assert "logging/setLevel" not in methods(client)
        with pytest.raises(ValueError, match="debug"):
            client.set_log_level("loud")
    with serve("era=legacy") as client:
        with pytest.raises(RPCError):  # this server does not know it, so it was asked
            client.set_log_level("warning")
        client.ping()


# ---------------------------------------------------------------- environment and secrets


def test_env_is_laid_over_an_allow_list(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own secrets do not reach the server, unless everything is inherited."""
    monkeypatch.setenv("MY_TOKEN", "s3cret")
    monkeypatch.setenv("LC_TIME", "C")
    with serve(env={"GIVEN": "yes"}) as client:
        found = json.loads(client.call_tool("environ").text)
    assert "MY_TOKEN" not in found
    assert found["GIVEN"] == "yes"
    assert found["LC_TIME"] == "C"
    assert found["PATH"] == os.environ["PATH"]
    with serve(inherit_env=True, env={"PATH": "/nowhere"}) as client:
        found = json.loads(client.call_tool("environ").text)
    assert (found["MY_TOKEN"], found["PATH"]) == ("s3cret", "/nowhere")


# ---------------------------------------------------------------- endings


def test_c02_start_returns_at_once_and_twice_is_harmless(serve: Serve) -> None:
    """`await_ready` gives the status."""
    client = serve()
    client.start()
    client.start()
    assert client.await_ready(10).state == "ready"
    assert client.await_ready(10).error is None


def test_c02_stop_from_a_handler(serve: Serve) -> None:
    """It joins every thread but its own, and the call that is outstanding fails."""
    stopped = threading.Event()

    def note(method: str, params: dict[str, Any]) -> None:
        client.stop()
        stopped.set()

    with serve(on_notification=note) as client:
        future = client.submit_tool("silent")
        client.submit_tool("changed")
        assert stopped.wait(10)
        assert isinstance(future.exception(timeout=1), NotReady)


def test_c02_stop_from_many_threads(serve: Serve) -> None:
    """All return, after the process has ended."""
    with serve() as client:
        threads = [threading.Thread(target=client.stop) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()
    assert client.status().state == "closed"


def test_c02_stop_while_connecting(serve: Serve) -> None:
    """Whatever stage the connect is in, nothing is left and waiters are told."""
    for _ in range(10):
        client = serve("never-answers")
        client.start()
        client.stop()
        with pytest.raises(NotReady):
            client.await_ready(5)


def test_c02_garbage_collection_ends_the_process() -> None:
    """A client that nobody holds any more stops itself."""
    client = Client("gone", command=sys.executable, args=["-I", "-S", str(PROGRAM)])
    client.start()
    client.await_ready(10)
    session, dead = client._session, weakref.ref(client)
    del client
    gc.collect()
    assert dead() is None
    assert session._stopped.wait(10)


def run_script(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, str(PROGRAM), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("option", ["banner", "ignore-eof"])
def test_c02_interpreter_exit_ends_the_process(option: str) -> None:
    """A script that forgets stop() exits promptly and leaves no server, be it ever so stubborn."""
    script = """
import sys
from raxol_sync.client.client import Client
client = Client("x", command=sys.executable, args=["-I", "-S", *sys.argv[1:], "ignore-term"])
client.start()
client.await_ready(10)
print(client._session._link.transport._process.pid, flush=True)
"""
    with run_script(script, option) as run:
        output, errors = run.communicate(timeout=30)
    assert run.returncode == 0, errors
    assert "Traceback" not in errors
    with pytest.raises(ProcessLookupError):
        os.kill(int(output), 0)


def test_c10_a_real_interrupt_cancels_the_call_and_the_client_stays_usable() -> None:
    """SIGINT during call_tool: KeyboardInterrupt at once, `cancelled` on the wire."""
    script = """
import json, signal, sys, threading, os
from raxol_sync.client.client import Client
signal.signal(signal.SIGINT, signal.default_int_handler)
with Client("x", command=sys.executable, args=["-I", "-S", sys.argv[1]]) as client:
    for _ in range(5):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            client.call_tool("silent", timeout=30)
        except KeyboardInterrupt:
            pass
    assert client.status().pending == 0
    seen = json.loads(client.call_tool("messages").text)
    print(sum(m.get("method") == "notifications/cancelled" for m in seen))
"""
    begun = time.monotonic()
    with run_script(script) as run:
        output, errors = run.communicate(timeout=60)
    assert output.strip() == "5", errors
    assert time.monotonic() - begun < 15


def test_c10_a_storm_of_interrupts_leaves_the_stream_whole() -> None:
    """Interrupts at any moment of sending lose at most their own call."""
    script = """
import signal, sys, random
from raxol_sync.client.client import Client
signal.signal(signal.SIGALRM, signal.default_int_handler)
with Client("x", command=sys.executable, args=["-I", "-S", sys.argv[1]], call_timeout=5) as client:
    rest = random.Random(7)
    hits = 0
    for number in range(600):
        try:
            signal.setitimer(signal.ITIMER_REAL, rest.uniform(1e-6, 3e-4))
            assert client.call_tool("echo", {"text": str(number)}).text == str(number)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            hits += 1
    assert client.call_tool("echo", {"text": "end"}).text == "end"
    assert client.status().pending == 0
    print("ok", hits)
"""
    with run_script(script) as run:
        output, errors = run.communicate(timeout=60)
    assert output.startswith("ok"), errors
