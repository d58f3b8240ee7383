"""Interrupts, forks, threads, and what many lives of a client leave behind."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raxol_sync.client.client import Client
from raxol_sync.errors import MCPError, NotReady, ServerExited
from tests.client.http.hostile import Conn, Hostile, Polite, Seen

Connect = Callable[..., Client]
Host = Callable[..., Hostile]
STDIO = Path(__file__).parents[1] / "programs" / "server.py"


def test_c10_a_real_interrupt_over_http(connect: Connect, host: Host, polite: Polite) -> None:
    """KeyboardInterrupt at once; the request is cancelled on the wire; the client goes on."""
    server = host(polite)
    reached = threading.Event()

    def hold(seen: Seen, conn: Conn) -> None:
        reached.set()
        conn.wait_gone(10)

    def interrupt() -> None:
        assert reached.wait(5)
        os.kill(os.getpid(), signal.SIGINT)

    with connect(server) as client:
        for _ in range(3):
            reached.clear()
            polite.on["tools/call"] = hold
            thread = threading.Thread(target=interrupt)
            thread.start()
            begun = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                client.call_tool("echo", timeout=None)
            assert time.monotonic() - begun < 2
            thread.join()
            assert server.of("tools/call")[-1].conn.closed.wait(5)
            del polite.on["tools/call"]
            assert client.call_tool("echo", {"text": "x"}).content[0].text == "x"  # type: ignore[union-attr]
            assert client.status().pending == 0


def test_c12_64_threads_over_http(connect: Connect, polite: Polite) -> None:
    """Each gets its own answers."""
    wrong: list[str] = []
    with connect(polite, queue_limit=64, call_timeout=60.0) as client:

        def work(name: int) -> None:
            for n in range(10):
                words = f"{name}-{n}"
                found = str(client.call_tool("echo", {"text": words}).content[0].text)  # type: ignore[union-attr]
                if found != words:
                    wrong.append(found)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_c02_a_client_from_before_a_fork_says_so(host: Host) -> None:
    """In the child every use is a clear error, at once; the parent's goes on."""
    server = host(Polite("legacy"))
    program = f"""
import os, sys, warnings
warnings.simplefilter("ignore")
from raxol_sync import Client, NotReady
client = Client("x", url={server.url!r})
client.start(); client.await_ready()
pid = os.fork()
if pid == 0:
    for use in (client.call_tool, client.submit_tool):
        try:
            use("echo")
        except NotReady as error:
            assert "fork" in str(error)
        else:
            os._exit(3)
    for use in (client.start, client.await_ready, client.list_tools):
        try:
            use()
        except NotReady as error:
            assert "fork" in str(error), error
        else:
            os._exit(4)
    client.stop()
    sys.exit(0)
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert client.call_tool("echo", {{"text": "x"}}).content[0].text == "x"
client.stop()
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    assert len(server.of("DELETE")) == 1


def test_c02_the_interpreters_exit_ends_the_session(host: Host) -> None:
    """Also one that was never stopped: DELETE is sent."""
    server = host(Polite("legacy"))
    program = (
        "from raxol_sync import Client\n"
        f"client = Client('x', url={server.url!r})\n"
        "client.start(); client.await_ready()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    assert len(server.of("DELETE")) == 1


def test_c02_stop_from_a_handler_over_http(connect: Connect, host: Host) -> None:
    """It does not wait for itself; it is final."""
    polite = Polite("legacy")
    stopped = threading.Event()

    def stream(seen: Seen, conn: Conn) -> None:
        conn.events()
        conn.event({"jsonrpc": "2.0", "method": "notifications/now"})
        conn.wait_gone(10)

    polite.on["GET"] = stream
    holder: list[Client] = []

    def handler(method: str, params: dict[str, Any]) -> None:
        holder[0].stop()
        stopped.set()

    client = connect(host(polite), on_notification=handler)
    holder.append(client)
    client.start()
    assert stopped.wait(10)
    with pytest.raises(NotReady):
        client.call_tool("echo")


def test_c02_stop_while_connecting_over_http(connect: Connect, host: Host) -> None:
    """Whatever it waits for."""
    polite = Polite("legacy")
    reached = threading.Event()

    def hold(seen: Seen, conn: Conn) -> None:
        reached.set()
        conn.wait_gone(10)

    for method in ("server/discover", "initialize", "notifications/initialized", "GET", "DELETE"):
        polite.on = {method: hold}
        reached.clear()
        client = connect(host(polite))
        client.start()
        if method != "DELETE":
            assert reached.wait(5)
        else:
            client.await_ready()
        begun = time.monotonic()
        client.stop()
        assert time.monotonic() - begun < 4, method


def test_c16_a_process_that_exits_is_started_again(tmp_path: Path) -> None:
    """By the same backoff; the next call after that works."""
    client = Client(
        "x",
        command=sys.executable,
        args=["-I", "-S", str(STDIO)],
        reconnect_delay=0.05,
        init_timeout=15.0,
    )
    with client:
        for _ in range(3):
            with pytest.raises(ServerExited):
                client.call_tool("die")
            deadline = time.monotonic() + 10
            while client.status().state == "ready" and time.monotonic() < deadline:
                threading.Event().wait(0.005)
            client.await_ready(10)
            assert client.call_tool("echo", {"text": "x"}).content[0].text == "x"  # type: ignore[union-attr]


def descriptors() -> int:
    folder = Path("/proc/self/fd")
    return len(os.listdir(folder)) if folder.exists() else 0


def links() -> list[str]:
    """What the descriptors of this process lead to."""
    found = []
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{entry}"))
    return sorted(found)


def resident() -> int:
    """The memory of this process, in KiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    return 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize(("cycles", "kind"), [(1000, "http"), (300, "stdio")])
def test_c02_many_lives_leave_nothing(cycles: int, kind: str) -> None:
    """No thread, process, descriptor, and no growing memory."""
    server = Hostile(Polite("legacy"))

    def live(n: int) -> None:
        if kind == "http":
            client = Client("x", url=server.url, fail_fast=True)
        else:
            command = {"command": sys.executable, "args": ["-I", "-S", str(STDIO), "era=modern"]}
            client = Client("x", **command, fail_fast=True)  # type: ignore[arg-type]
        with client:
            if n % 3 == 0:
                client.call_tool("echo", {"text": "x"})
            elif n % 3 == 1:
                client.submit_tool("echo", {"text": "x"})
        server.seen.clear()
        server.conns[:] = [conn for conn in server.conns if not conn.closed.is_set()]
        server._threads[:] = [t for t in server._threads if t.is_alive()]
        while not server.arrived.empty():
            server.arrived.get()

    for n in range(cycles // 5):
        live(n)
    gc.collect()
    threads, open_before, memory = threading.active_count(), descriptors(), resident()
    for n in range(cycles - cycles // 5):
        live(n)
    gc.collect()
    ours = [t.name for t in threading.enumerate() if t.name.startswith("raxol-sync-")]
    assert not ours
    for conn in server.conns:  # the server notices ends on threads of its own
        assert conn.closed.wait(10), "a connection of the client's is still open"
    assert descriptors() <= open_before + 4, links()
    assert threading.active_count() <= threads + 4
    assert resident() - memory < 8 * 1024
    server.close()


def test_c10_no_error_is_raised_for_a_client_that_is_collected(host: Host) -> None:
    """Garbage collection ends the session too."""
    server = host(Polite("legacy"))
    client = Client("x", url=server.url)
    client.start()
    client.await_ready()
    del client
    gc.collect()
    server.wait("DELETE")
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if not [t for t in threading.enumerate() if t.name.startswith("raxol-sync-")]:
            return
        threading.Event().wait(0.01)
    pytest.fail("threads are left")


def test_c14_a_handler_may_call_the_client_over_http(connect: Connect, host: Host) -> None:
    """In a pooled session; in a serialized one that would wait for itself it is `Busy`."""
    polite = Polite("legacy")

    def stream(seen: Seen, conn: Conn) -> None:
        conn.events()
        conn.event({"jsonrpc": "2.0", "method": "notifications/now"})
        conn.wait_gone(10)

    polite.on["GET"] = stream
    found: list[Any] = []
    done = threading.Event()
    holder: list[Client] = []

    def handler(method: str, params: dict[str, Any]) -> None:
        try:
            holder[0].await_ready()
            found.append(holder[0].call_tool("echo", {"text": "inside"}).content[0])
        except MCPError as error:
            found.append(error)
        done.set()

    client = connect(host(polite), on_notification=handler)
    holder.append(client)
    with client:
        assert done.wait(5)
        assert found[0].text == "inside"
