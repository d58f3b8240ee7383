"""Servers that misbehave: each fault gives its named exception in time, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raxol_sync.client import process, stdio
from raxol_sync.client.client import Client
from raxol_sync.errors import (
    ConnectFailed,
    InputRequired,
    InvalidResponse,
    MCPError,
    MessageTooLarge,
    NotReady,
    RequestTimeout,
    RPCError,
    ServerExited,
)

Serve = Callable[..., Client]
GRACE = 2.0  # seconds that an exception may come after its deadline


def text_of(client: Client, tool: str, **arguments: Any) -> str:
    return client.call_tool(tool, arguments).text


# ---------------------------------------------------------------- calls

FAULTS: list[tuple[str, dict[str, Any], type[MCPError], float | None]] = [
    # tool, arguments, what it raises, its own deadline
    ("silent", {}, RequestTimeout, 0.3),
    ("die", {}, ServerExited, None),
    ("kill", {}, ServerExited, None),
    ("close_stdout", {}, ServerExited, None),
    ("half_line", {}, RequestTimeout, 0.3),
    ("nan", {}, InvalidResponse, None),
    ("not_an_object", {}, InvalidResponse, None),
    ("no_content", {}, InvalidResponse, None),
    ("strange_type", {}, InvalidResponse, None),
    ("ask_user", {}, InputRequired, None),
    ("rpc_error", {}, RPCError, None),
    ("no_such_tool", {}, RPCError, None),
    ("huge", {"size": 300_000}, MessageTooLarge, None),
    ("endless", {}, MessageTooLarge, None),
]


@pytest.mark.parametrize(
    ("tool", "arguments", "error", "timeout"), FAULTS, ids=lambda v: str(v)[:20]
)
def test_c11_each_fault_has_its_exception(
    serve: Serve, tool: str, arguments: dict[str, Any], error: type[MCPError], timeout: float | None
) -> None:
    """The named exception comes within the deadline, nothing is pending, the next call is sane."""
    limit = 200_000 if error is MessageTooLarge else 32 * 2**20
    with serve(max_message_bytes=limit) as client:
        begun = time.monotonic()
        with pytest.raises(error):
            client.call_tool(tool, arguments, timeout=timeout or 10.0)
        assert time.monotonic() - begun < (timeout or 3.0) + GRACE
        assert client.status().pending == 0
        lost = error in (ServerExited, MessageTooLarge)
        if lost:
            assert client.status().state == "closed"
            with pytest.raises(ConnectFailed):
                client.call_tool("echo", {"text": "again"})
        elif tool != "half_line":
            assert text_of(client, "echo", text="again") == "again"


def test_c11_an_rpc_error_keeps_code_message_and_data(serve: Serve) -> None:
    """What the server said is on the exception."""
    with serve() as client, pytest.raises(RPCError) as caught:
        client.call_tool("rpc_error", {"code": -32050})
    assert (caught.value.code, caught.value.message) == (-32050, "no")
    assert caught.value.data == {"why": "because"}


def test_c10_a_tools_own_failure_is_a_result(serve: Serve) -> None:
    """`isError` raises nothing."""
    with serve() as client:
        result = client.call_tool("failing")
    assert result.is_error
    assert result.text == "it did not work"


def test_c28_input_required_without_a_handler_is_raised(serve: Serve) -> None:
    """The exception holds the server's requests."""
    with serve() as client, pytest.raises(InputRequired) as caught:
        client.call_tool("ask_user")
    assert caught.value.requests["q"]["method"] == "elicitation/create"


def test_c16_an_exit_fails_every_call(serve: Serve) -> None:
    """All that was sent or queued fails at once, each with an exception of its own."""
    with serve(pool_size=4) as client:
        futures = [client.submit_tool("silent") for _ in range(10)]
        assert (client.status().pending, client.status().queued) == (4, 6)
        os.kill(process_of(client), signal.SIGKILL)
        errors = [future.exception(timeout=10) for future in futures]
        assert all(isinstance(error, ServerExited) for error in errors)
        assert len({id(error) for error in errors}) == len(errors)
        assert client.status().pending == client.status().queued == 0


def process_of(client: Client) -> int:
    link: Any = client._session._link
    return int(link.transport._process.pid)


def test_c16_the_exit_status_and_stderr_are_told(serve: Serve) -> None:
    """`ServerExited` has the code and the tail of stderr."""
    with serve() as client, pytest.raises(ServerExited) as caught:
        client.call_tool("die")
    assert caught.value.code == 7
    assert caught.value.stderr.endswith("last words")
    assert "exited with status 7" in str(caught.value)


def test_c16_a_signal_is_a_negative_code(serve: Serve) -> None:
    """A killed server says by which signal."""
    with serve() as client, pytest.raises(ServerExited) as caught:
        client.call_tool("kill")
    assert caught.value.code == -signal.SIGKILL


@pytest.mark.parametrize("tool", ["wrong_id", "duplicate", "rubbish", "flood_stderr", "batch"])
def test_c14_noise_around_an_answer_does_no_harm(serve: Serve, tool: str) -> None:
    """Unknown ids, second answers, rubbish lines, a flooded stderr: the answer arrives."""
    expected = {"wrong_id": "right", "duplicate": "first", "rubbish": "after rubbish",
                "flood_stderr": "flooded", "batch": "in a batch"}  # fmt: skip
    with serve() as client:
        for _ in range(3):
            assert text_of(client, tool) == expected[tool]
        assert text_of(client, "echo", text="x") == "x"


def test_c14_a_late_answer_is_ignored(serve: Serve) -> None:
    """The answer to a call that timed out goes to nobody, and the next calls get their own."""
    with serve() as client:
        with pytest.raises(RequestTimeout) as caught:
            client.call_tool("hold", timeout=0.2)
        assert caught.value.method == "tools/call"
        assert isinstance(caught.value, TimeoutError)
        assert text_of(client, "let_go") == "let go"
        assert text_of(client, "echo", text="mine") == "mine"


def test_c20_lines_are_cut_at_newlines_only(serve: Serve) -> None:
    """Unicode separators inside strings, split characters and CRLF arrive as they were sent."""
    with serve("crlf") as client:
        assert text_of(client, "separators") == "a\u2028b\u2029c\u0085d\x0b€"
        assert text_of(client, "echo", text="ü\u2028") == "ü\u2028"


def test_c20_a_banner_on_stdout_is_skipped(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """What is printed before the first message is logged, shortened, and skipped."""
    with serve("banner") as client:
        assert text_of(client, "echo", text="x") == "x"
    assert any("Welcome to the server" in record.getMessage() for record in caplog.records)


def test_c20_a_long_line_within_the_limit_arrives(serve: Serve) -> None:
    """10 MB in one answer."""
    with serve() as client:
        assert len(text_of(client, "huge", size=10_000_000)) == 10_000_000
        assert text_of(client, "echo", text="y" * 3_000_000) == "y" * 3_000_000


def test_c20_a_line_over_the_limit_fails_the_session_with_its_name(serve: Serve) -> None:
    """The limit is told; this process does not keep what comes after it."""
    with serve(max_message_bytes=100_000) as client:
        with pytest.raises(MessageTooLarge) as caught:
            client.call_tool("endless")
        assert caught.value.limit == 100_000
        assert "max_message_bytes" in (client.status().error or "")


def test_c12_a_server_that_stops_reading_times_its_callers_out(serve: Serve) -> None:
    """Full pipes block nobody past his deadline, and stop() still works."""
    with serve() as client:
        assert text_of(client, "stop_reading") == "deaf now"
        for _ in range(3):
            with pytest.raises(RequestTimeout):
                client.call_tool("echo", {"text": "x" * 500_000}, timeout=0.3)
        assert client.status().pending == 0


# ---------------------------------------------------------------- connecting


def connect_error(client: Client) -> ConnectFailed:
    with pytest.raises(ConnectFailed) as caught, client:
        pass
    assert client.status().state == "closed"
    return caught.value


def test_c06_a_server_that_dies_at_once_is_told_with_its_words(serve: Serve) -> None:
    """The reason holds the exit status and what it said on stderr."""
    error = connect_error(serve("dies"))
    assert "status 1" in error.reason
    assert "cannot read the configuration" in error.reason


def test_c19_a_server_that_never_answers_ends_the_handshake(serve: Serve) -> None:
    """`init_timeout` ends it, with a reason that names it."""
    begun = time.monotonic()
    error = connect_error(serve("never-answers", init_timeout=0.6, probe_timeout=0.2))
    assert "init_timeout" in error.reason
    assert time.monotonic() - begun < 0.6 + GRACE


def test_c06_a_command_that_does_not_exist_fails_at_once(tmp_path: Path) -> None:
    """The reason names the command and what to do."""
    client = Client("x", command="no-such-command-anywhere", fail_fast=True)
    error = connect_error(client)
    assert "no-such-command-anywhere" in error.reason
    assert "PATH" in error.reason
    plain = tmp_path / "plain.txt"
    plain.write_text("no program")
    assert "chmod" in connect_error(Client("x", command=plain, fail_fast=True)).reason
    missing = Client("x", command=sys.executable, cwd=tmp_path / "nowhere", fail_fast=True)
    assert "cwd=" in connect_error(missing).reason


def test_c06_waiting_callers_are_told_at_once_when_the_connect_fails(serve: Serve) -> None:
    """`await_ready` does not wait for its deadline once there is nothing to wait for."""
    client = serve("dies")
    client.start()
    begun = time.monotonic()
    with pytest.raises(ConnectFailed):
        client.await_ready(30.0)
    with pytest.raises(ConnectFailed):
        client.list_tools()
    assert time.monotonic() - begun < 5.0


def test_c06_await_ready_gives_up_when_its_time_is_up(serve: Serve) -> None:
    """`NotReady` has the status; the client goes on connecting."""
    client = serve("never-answers")
    client.start()
    with pytest.raises(NotReady) as caught:
        client.await_ready(0.2)
    assert caught.value.state == "initializing"
    assert getattr(caught.value.status, "name", "") == "test"


def test_c07_before_ready_calls_raise_not_ready(serve: Serve) -> None:
    """Before start, while connecting, and after stop."""
    client = serve("never-answers")
    for _ in range(2):
        with pytest.raises(NotReady):
            client.call_tool("echo")
        with pytest.raises(NotReady):
            client.list_tools()
        client.start()
    client.stop()
    with pytest.raises(NotReady) as caught:
        client.await_ready()
    assert caught.value.state == "closed"
    with pytest.raises(NotReady):
        client.start()


# ---------------------------------------------------------------- eras

ERAS = [
    # options, settings, era, version
    ((), {}, "modern", "2026-07-28"),
    (("era=modern",), {}, "modern", "2026-07-28"),
    (("era=legacy",), {}, "legacy", "2025-11-25"),
    (("era=legacy", "answers=2024-11-05"), {}, "legacy", "2024-11-05"),
    (("versions=2025-06-18+2025-11-25",), {}, "legacy", "2025-11-25"),
    (("unsupported-once",), {}, "modern", "2026-07-28"),
    (("silent-discover",), {"probe_timeout": 0.2}, "legacy", "2025-11-25"),
    (("era=legacy", "silent-on-unknown"), {"probe_timeout": 0.2}, "legacy", "2025-11-25"),
    (("silent-discover", "late-discover"), {"probe_timeout": 0.2}, "modern", "2026-07-28"),
    ((), {"protocol_version": "2026-07-28"}, "modern", "2026-07-28"),
    ((), {"protocol_version": "2025-06-18"}, "legacy", "2025-06-18"),
]


@pytest.mark.parametrize(("options", "settings", "era", "version"), ERAS)
def test_c22_the_era_is_found_out(
    serve: Serve, options: tuple[str, ...], settings: dict[str, Any], era: str, version: str
) -> None:
    """Probe, retry, fall back, or pin: the right era, and calls work in it."""
    with serve(*options, **settings) as client:
        status = client.status()
        assert (status.state, status.era, status.protocol_version) == ("ready", era, version)
        assert text_of(client, "echo", text="x") == "x"
        client.ping()
        messages = json.loads(text_of(client, "messages"))
    methods = [message["method"] for message in messages]
    if era == "legacy":
        assert "notifications/initialized" in methods
        assert "ping" in methods
    else:
        assert "notifications/initialized" not in methods
    assert "notifications/cancelled" not in methods


REFUSALS = [
    (("versions=2031-01-01",), {}, "2031-01-01"),
    (("era=legacy", "answers=1999-01-01"), {}, "1999-01-01"),
    (("era=legacy",), {"protocol_version": "2026-07-28"}, "protocol_version"),
    (("era=modern",), {"protocol_version": "2025-11-25"}, "initialize"),
    (("era=legacy", "answers=2025-03-26"), {"protocol_version": "2025-11-25"}, "2025-03-26"),
]


@pytest.mark.parametrize(("options", "settings", "word"), REFUSALS)
def test_c22_no_revision_in_common_is_said(
    serve: Serve, options: tuple[str, ...], settings: dict[str, Any], word: str
) -> None:
    """`ConnectFailed` names what the server offers."""
    assert word in connect_error(serve(*options, **settings)).reason


def test_c22_a_server_that_exits_on_the_probe_is_restarted_and_remembered(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it is started anew with `initialize` first; the next client begins so at once."""
    monkeypatch.setattr(stdio, "_remembered", {})
    for starts in (2, 1):
        begun: list[str] = []
        real = process.ServerProcess

        def counted(*arguments: Any, begun: list[str] = begun, real: Any = real) -> Any:
            begun.append("start")
            return real(*arguments)

        monkeypatch.setattr(stdio, "ServerProcess", counted)
        with serve("era=legacy", "exit-on-unknown") as client:
            assert client.status().era == "legacy"
            assert text_of(client, "echo", text="x") == "x"
        monkeypatch.setattr(stdio, "ServerProcess", real)
        assert len(begun) == starts


# ---------------------------------------------------------------- ending


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pid: int) -> bool:
    """Wait until a process that was killed is gone; the kernel takes a moment."""
    deadline = time.monotonic() + 5
    pause = threading.Event()
    while alive(pid) and time.monotonic() < deadline:
        pause.wait(0.01)
    return not alive(pid)


@pytest.mark.parametrize("tool", ["echo", "die", "close_stdout"])
def test_c02_a_grandchild_that_keeps_the_pipes_ends_with_the_group(
    serve: Serve, tmp_path: Path, tool: str
) -> None:
    """It blocks neither a call nor stop(), and is killed."""
    pidfile = tmp_path / "pid"
    client = serve("grandchild=same", f"pidfile={pidfile}")
    begun = time.monotonic()
    with client:
        if tool == "echo":
            assert text_of(client, "echo", text="x") == "x"
        else:
            with pytest.raises((ServerExited, RequestTimeout)):
                client.call_tool(tool, timeout=1.0)
    assert time.monotonic() - begun < 10
    assert gone(int(pidfile.read_text()))


@pytest.mark.parametrize("tool", ["echo", "die"])
def test_c02_a_detached_grandchild_does_not_hold_us_up(
    serve: Serve, tmp_path: Path, tool: str
) -> None:
    """It left the group, so it lives; but nothing here waits for it."""
    pidfile = tmp_path / "pid"
    begun = time.monotonic()
    with serve("grandchild=detached", f"pidfile={pidfile}") as client:
        if tool == "die":
            with pytest.raises(ServerExited):
                client.call_tool("die", timeout=5.0)
        else:
            assert text_of(client, "echo", text="x") == "x"
    assert time.monotonic() - begun < 8
    pid = int(pidfile.read_text())
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


def test_c02_a_server_that_ignores_eof_and_sigterm_is_killed(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """stop() takes its two short waits, then kills."""
    monkeypatch.setattr(stdio, "GRACE", 0.2)
    monkeypatch.setattr(stdio, "TERMINATE", 0.2)
    with serve("ignore-term", "ignore-eof") as client:
        pid = process_of(client)
        begun = time.monotonic()
    assert time.monotonic() - begun < 3.0
    assert gone(pid)


def test_c02_stop_fails_what_is_outstanding(serve: Serve) -> None:
    """Blocked callers, futures and queued calls get `NotReady`; twice is harmless."""
    with serve(pool_size=2) as client:
        futures = [client.submit_tool("silent") for _ in range(5)]
        client.stop()
        for future in futures:
            assert isinstance(future.exception(timeout=0), NotReady)
        client.stop()
    assert client.status().pending == client.status().queued == 0
