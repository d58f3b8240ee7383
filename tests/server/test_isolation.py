"""Tools in processes of their own: loops and crashes are contained, killed and answered (S18)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raxol_sync import Context, InvalidTool, Server, Tool
from tests.server.approvals import the_call as one_call
from tests.server.helpers import WAIT, Json, ask, call, cancelled, eventually, req, result, text
from tests.server.programs import isolated_tools
from tests.server.stdio_client import Stdio

PROGRAM = Path(isolated_tools.__file__)
FAILURES: dict[str, tuple[str, Json, str]] = {
    "os._exit": ("leave", {"code": 7}, "the tool's process exited with status 7"),
    "os._exit(0)": ("leave", {"code": 0}, "the tool's process exited with status 0"),
    "segfault": ("crash", {}, "the tool's process was killed by signal 11"),
    "sys.exit": ("sys_exit", {}, "the tool failed: SystemExit"),
    "exception": ("fails", {}, "the tool failed: ValueError"),
    "ToolError": ("says_no", {}, "not today"),
    "odd exception": ("odd", {}, "the tool failed: Odd"),
    "odd ToolError": ("odd_words", {}, "not today"),
    "unpicklable result": ("returns_lambda", {}, "the tool's result must be picklable"),
    "unreadable result": ("returns_unreadable", {}, "the tool's result cannot be unpickled"),
}


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    """One server for the tests that leave its processes as they were."""
    server = isolated_tools.offering()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def nothing_left_behind() -> None:
    """In place of the general one, which would count the shared server's processes."""


def alive(pid: int) -> bool:
    """Whether a process is there (and no zombie)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def spinning(path: Path) -> int:
    """The id of the process that a call of `spin` runs in."""
    eventually(path.exists)
    return int(path.read_text())


def test_s18_it_runs_in_another_process(shared: Server) -> None:
    """Arguments and results cross the border, converted to the hints."""
    assert text(ask(shared, call("double", {"n": 21}))) == "42"
    other = int(text(ask(shared, call("pid"))))
    assert other != os.getpid()
    assert text(ask(shared, call("here"))) == str(os.getpid())
    moved = result(shared, call("move", {"point": {"x": 1}}))
    assert moved["structuredContent"] == {"x": 2}


@pytest.mark.parametrize("failure", FAILURES)
def test_s18_a_failure_is_answered_and_the_next_call_works(shared: Server, failure: str) -> None:
    """In words that tell no secrets; nothing of the pool breaks."""
    name, arguments, words = FAILURES[failure]
    found = result(shared, call(name, arguments))
    assert found["isError"] is True
    said = found["content"][0]["text"]
    assert said.startswith(words)
    assert "secret" not in said
    assert text(ask(shared, call("double", {"n": 1}))) == "2"
    shared.registry.reset_circuit(("tool", name))


def test_s18_a_death_is_a_fault(shared: Server) -> None:
    """Five in a row open its circuit."""
    for _ in range(5):
        ask(shared, call("leave", {"code": 1}))
    assert shared.registry.circuit_status(("tool", "leave")) == "open"
    shared.registry.reset_circuit(("tool", "leave"))


def test_s18_what_cannot_be_pickled_is_said_in_words(shared: Server) -> None:
    """A local function, and arguments of a kind that nobody can send."""
    shared.tool(name="local", isolation="process")(lambda: "x")
    said = text(ask(shared, call("local")))
    assert "must be picklable" in said
    assert "top level of a module" in said
    schema: Json = {"type": "object"}
    shared.registry.register_tools(
        [Tool("raw", "Raw.", schema, isolated_tools.double, isolation="process")]
    )
    assert "must be picklable" in text(ask(shared, call("raw", {"f": lambda: None})))
    assert "TypeError" in text(ask(shared, call("raw", {"n": 1})))
    shared.registry.unregister_tools(["local", "raw"])


def test_s18_a_function_that_the_child_cannot_import_is_said_in_words(shared: Server) -> None:
    """It pickles by name here, and that name means nothing there."""
    isolated_tools.here_only = _stray  # type: ignore[attr-defined]
    try:
        _stray.__module__, _stray.__qualname__ = isolated_tools.__name__, "here_only"
        shared.tool(name="stray", isolation="process")(_stray)
        assert "cannot find the tool" in text(ask(shared, call("stray")))
        assert text(ask(shared, call("double", {"n": 1}))) == "2"
    finally:
        del isolated_tools.here_only  # type: ignore[attr-defined]
        shared.registry.unregister_tools(["stray"])


def _stray() -> str:
    return "x"


@pytest.mark.parametrize("way", ["cancel", "notification", "timeout"])
def test_s18_an_endless_loop_is_killed_and_its_slot_is_free(
    shared: Server, way: str, tmp_path: Path
) -> None:
    """The process is really gone; the caller has its answer at once."""
    future = shared.request(call("spin", {"path": str(tmp_path / "pid")}, 5), "c")
    pid = spinning(tmp_path / "pid")
    assert alive(pid)
    if way == "cancel":
        future.cancel()
    elif way == "notification":
        shared.handle_message(cancelled(5), "c")
    else:
        running = one_call(shared)
        shared._engine._expire(running, running.runs)
    answer = future.result(WAIT)
    assert (answer is None) == (way != "timeout")
    eventually(lambda: shared.stats().in_flight == 0)
    eventually(lambda: not alive(pid))
    assert text(ask(shared, call("double", {"n": 1}))) == "2"


def test_s18_a_call_that_waits_for_a_process_never_starts_once_cancelled(
    shared: Server, tmp_path: Path
) -> None:
    """Nor does it keep its slot while it waits."""
    busy = []
    for n in range(shared._app.processes._size):
        busy.append(shared.request(call("spin", {"path": str(tmp_path / f"{n}")}, n), "c"))
        spinning(tmp_path / f"{n}")
    late = shared.request(call("spin", {"path": str(tmp_path / "late")}, "late"), "d")
    eventually(lambda: shared.stats().in_flight_by_connection.get("d") == 1)
    late.cancel()
    eventually(lambda: "d" not in shared.stats().in_flight_by_connection)
    for future in busy:
        future.cancel()
    assert text(ask(shared, call("double", {"n": 1}), "e")) == "2"
    eventually(lambda: shared.stats().in_flight == 0)
    assert not (tmp_path / "late").exists()


def test_s18_a_process_that_dies_without_work_is_replaced(shared: Server) -> None:
    """Somebody kills an idle one: the next calls work all the same."""
    for _ in range(3):
        pid, pool = int(text(ask(shared, call("pid")))), shared._app.processes._pool
        os.kill(pid, signal.SIGKILL)
        answers = [text(ask(shared, call("double", {"n": 1}))) for _ in range(3)]
        assert all(answer == "2" or "the tool's process" in answer for answer in answers)
        workers = pool._pool_manager.worker_manager.workers
        eventually(lambda workers=workers, pid=pid: pid not in workers)  # type: ignore[misc]
        eventually(lambda: text(ask(shared, call("double", {"n": 1}))) == "2")


def test_s18_two_hundred_calls(shared: Server) -> None:
    """Many at once, then many more; every one is answered with its own result."""
    for start in range(0, 200, 10):
        futures = [
            shared.request(call("double", {"n": n}, n), "c") for n in range(start, start + 10)
        ]
        for n, future in enumerate(futures, start):
            assert text(future.result(WAIT)) == str(2 * n)
    eventually(lambda: shared.stats().in_flight == 0)


def test_s18_close_kills_what_runs(tmp_path: Path) -> None:
    """Loops, sleeps in C and idle processes: none is left, and no thread waits for them."""
    server = isolated_tools.offering()
    future = server.request(call("spin", {"path": str(tmp_path / "pid")}, 1), "c")
    pid = spinning(tmp_path / "pid")
    asleep = server.request(call("sleeps", {}, 2), "c")
    manager: Any = server._app.processes._pool._pool_manager
    pids = list(manager.worker_manager.workers)
    assert pid in pids
    server.close(WAIT)
    assert future.result(WAIT) is None
    assert asleep.result(WAIT) is None
    assert not any(alive(p) for p in pids)
    answer = ask(server, call("double", {"n": 1}))
    assert answer["error"]["message"] == "server closed"


def test_s18_a_context_parameter_is_refused_at_registration() -> None:
    """A `Context` cannot cross the border, and the text says what to do."""
    with Server() as server:

        def tool(context: Context) -> str:
            return "x"

        with pytest.raises(InvalidTool, match="cannot take a Context"):
            server.tool(isolation="process")(tool)
        with pytest.raises(InvalidTool, match="isolation"):
            server.tool(isolation="container")(tool)  # type: ignore[call-overload]


def children_of(pid: int) -> set[int]:
    """The children of a process, by all its threads."""
    found: set[int] = set()
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        found |= {int(child) for child in listing.read_text().split()}
    return found


@pytest.mark.parametrize("end", ["stdin", "SIGTERM"])
def test_s18_a_stdio_server_leaves_no_process_behind(end: str, tmp_path: Path) -> None:
    """Its tools' processes end with it, and what they print is not the protocol's."""
    with Stdio(program=PROGRAM) as server:
        assert text(server.ask(call("double", {"n": 2}))) == "4"
        assert text(server.ask(call("prints"))) == "printed"
        server.send(call("spin", {"path": str(tmp_path / "pid")}, id="spin"))
        spinning(tmp_path / "pid")
        assert server.ask(req("ping", id="p"))["result"] == {}
        pids = children_of(server.process.pid)
        assert pids
        if end == "SIGTERM":
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(WAIT)
        else:
            server.end()
    eventually(lambda: not any(alive(pid) for pid in pids))
