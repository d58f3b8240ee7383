"""Servers in processes that were forked, as gunicorn's `--preload` does it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from raxol_sync import Server
from tests.server.helpers import WAIT, call, gated, text
from tests.server.http.driver import driver_of, in_thread
from tests.server.stdio_client import Stdio
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork, which this system has not"),
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
]


def in_child(check: Callable[[], None]) -> None:
    """Run a check in a fork of this process; nothing of the test's own runs there after it."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            check()
            status = 0
        except BaseException as error:  # the child must not go on as a test run
            print(repr(error), file=sys.stderr)
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


def echo_server() -> Server:
    """A server with one tool."""
    server = Server("forked")

    @server.tool
    def echo(text: str) -> str:
        return text

    return server


def test_a_server_that_was_not_used_works_in_each_child() -> None:
    """Its threads start there; so does its application."""
    with echo_server() as server:
        http = driver_of(server)

        def check() -> None:
            answer = http.call("echo", {"text": "child"})
            assert answer.json["result"]["content"][0]["text"] == "child"
            session = http.open()
            assert session.post(call("echo", {"text": "x"})).status == 200
            server.close()

        for _ in range(2):
            in_child(check)
        assert http.call("echo", {"text": "parent"}).status == 200


@pytest.mark.parametrize("busy", [False, True])
def test_a_server_that_was_used_says_so(busy: bool) -> None:
    """At once, also if one of its threads held a lock; the parent goes on."""
    with echo_server() as server:
        gate = gated(server)
        http = driver_of(server)
        http.call("echo", {"text": "x"})
        pending = in_thread(lambda: http.call("wait")) if busy else None
        if busy:
            gate.wait_entered()

        def check() -> None:
            answer = http.call("echo", {"text": "child"})
            assert (answer.status, answer.code) == (503, -32603)
            assert "post_fork" in answer.json["error"]["message"]
            direct = server.handle_message(call("echo", {"text": "x"}), "c", timeout=5)
            assert direct is not None
            assert "post_fork" in direct["error"]["message"]
            server.close(grace=1)

        in_child(check)
        gate.open()
        if pending is not None:
            assert pending.result().status == 200


def test_a_lock_that_was_held_at_the_fork_holds_nobody_up() -> None:
    """Its holder is not there to let it go."""
    with echo_server() as server:
        http = driver_of(server)
        http.call("echo", {"text": "x"})

        def check() -> None:
            signal.alarm(20)  # a child that hangs must not hold up the suite
            assert http.call("echo", {"text": "child"}).status == 503
            assert server.stats().in_flight == 0

        with server._engine.lock:
            in_child(check)


def ended(pid: int) -> bool:
    """Whether a process is gone, or only its entry is left."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@needs_proc
def test_a_child_that_a_tool_forks_never_writes_to_the_channel() -> None:
    """The parent answers, once; the child's thread has nothing to do after the tool, and ends."""
    with Stdio() as server:
        for id in range(5):
            answer = server.ask(call("fork", id=id))
            child = int(text(answer))
            assert server.ask(call("echo", {"text": "on"}, id=100 + id))["result"]
            wait_until(partial(ended, child), WAIT)
        assert server.end() == 0
        assert server.rest() == [b"restored\n"]


@needs_proc
def test_a_signal_to_a_forked_child_ends_the_child_and_not_the_server() -> None:
    """They share the pipe that signals are told through."""
    with Stdio() as server:
        child = int(text(server.ask(call("fork", {"stays": True}))))
        os.kill(child, signal.SIGTERM)
        wait_until(partial(ended, child), WAIT)
        assert text(server.ask(call("echo", {"text": "on"}, id=2))) == "on"
        assert server.end() == 0
