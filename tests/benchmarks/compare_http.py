"""Compare raxol_sync's server over HTTP with the official SDK 2.x under uvicorn, in one run.

    python -m tests.benchmarks.compare_http --peer DIR/mcp2/bin/python

With `--granian DIR/hosts/bin/granian` ours is measured under granian as well. The servers that are
compared run at once and are asked in turns, and who goes first changes from round to round. All
figures are medians of the rounds; a ratio is the median of the rounds' own ratios. The load comes
from bare sockets and one selector: no client library is measured. In the modern era (2026-07-28)
both answer an echo with plain JSON; in the legacy one (2025-11-25, a session for each connection)
the SDK answers with an event stream unless told otherwise.

`--pinned` keeps all of granian's threads on one core, as a worker for each core would have it, and
then the SDK's server as well.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tests.benchmarks.compare import HERE, ROOT, row
from tests.starting import free_port

MODERN, LEGACY = "2026-07-28", "2025-11-25"
ROUNDS, SECONDS, STREAMS = 7, 1.0, 500
BLOCKING, BLOCKING_MS = 64, 500
WAIT = 60.0


@dataclass
class Side:
    """One of the two that are compared."""

    name: str
    python: str
    program: str
    port: int = 0
    pid: int = 0
    pinned: bool = False

    def command(self) -> list[str]:
        """How it is started."""
        return [*(["taskset", "-c", "1"] if self.pinned else []), *self._command()]

    def _command(self) -> list[str]:
        if self.program == "granian":
            threads = ["--blocking-threads", "32", "--no-log", "--no-ws"]
            app = "tests.benchmarks.app_ours:app"
            return [self.python, "--interface", "wsgi", *threads, "--port", str(self.port), app]
        return [self.python, str(HERE / self.program), str(self.port)]


def request(method: str, named: str = "", **params: object) -> bytes:
    """A POST as bytes."""
    prefix = "io.modelcontextprotocol/"
    params["_meta"] = {
        f"{prefix}protocolVersion": MODERN,
        f"{prefix}clientInfo": {"name": "load", "version": "1"},
        f"{prefix}clientCapabilities": {},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    head = (
        "POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {MODERN}\r\n"
        f"Mcp-Method: {method}\r\n{named}"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def call(name: str, **arguments: object) -> bytes:
    """A `tools/call` as bytes."""
    return request("tools/call", f"Mcp-Name: {name}\r\n", name=name, arguments=arguments)


def post(message: object, session: str = "") -> bytes:
    """A POST of the legacy era as bytes."""
    body = json.dumps(message).encode()
    head = (
        "POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {LEGACY}\r\n"
        f"{session}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


TEXTS = ["hello" + "o" * more for more in range(32)]  # no two are as long
ECHO = call("echo", text="hello")
ECHOES = [call("echo", text=text) for text in TEXTS]


def echoes(session: str) -> list[bytes]:
    """Echo calls: of a legacy session, or of the modern era where there is none."""
    if not session:
        return ECHOES
    calls = [{"name": "echo", "arguments": {"text": text}} for text in TEXTS]
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    return [post({**request, "params": params}, session) for params in calls]


class Connection:
    """One keep-alive connection. Not thread-safe."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), WAIT)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._port = port
        self._held = b""
        self._head = b""
        self.echoes = itertools.cycle(ECHOES)

    def ask(self, data: bytes) -> bytes:
        """Send a request and return the body of its answer, which has a length."""
        self.send(data)
        while (answer := self.take()) is None:
            continue
        return answer

    def send(self, data: bytes) -> None:
        """Send a request; its Host is made to fit."""
        self.sock.sendall(data.replace(b"Host: h", b"Host: 127.0.0.1:%d" % self._port))

    def take(self) -> bytes | None:
        """Read once; return the body if the answer is whole."""
        data = self.sock.recv(65536)
        if not data:
            raise RuntimeError(f"the server closed the connection after {self._held!r}")
        self._held += data
        head, found, body = self._held.partition(b"\r\n\r\n")
        lower = head.lower()
        if not found:
            return None
        if not lower.startswith((b"http/1.1 200", b"http/1.1 202")):
            raise RuntimeError(f"a wrong answer: {self._held!r}")
        at = lower.find(b"content-length:")
        if at < 0:  # an event stream in chunks: wait for its last one
            if not body.endswith(b"0\r\n\r\n"):
                return None
        elif len(body) < int(lower[at + 15 :].split(b"\r\n", 1)[0]):
            return None
        self._held = b""
        self._head = head
        return body

    def begin_session(self) -> None:
        """Begin a legacy session, whose echoes are asked for from here on."""
        info = {"name": "load", "version": "1"}
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info}
        self.ask(post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
        name = b"mcp-session-id: "
        found = [line for line in self._head.splitlines() if line.lower().startswith(name)]
        session = found[0].decode() + "\r\n"
        self.ask(post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session))
        self.echoes = itertools.cycle(echoes(session))

    def begin_stream(self) -> None:
        """Open a listen stream; return once its first event is there."""
        self.send(request("subscriptions/listen", notifications={"toolsListChanged": True}))
        found = b""
        while b"data:" not in found:
            data = self.sock.recv(65536)
            if not data or b"HTTP/1.1 200" not in found + data:
                raise RuntimeError(f"no stream: {found + data!r}")
            found += data

    def close(self) -> None:
        self.sock.close()


@contextlib.contextmanager
def connections(side: Side, count: int) -> Iterator[list[Connection]]:
    """Open connections."""
    found = [Connection(side.port) for _ in range(count)]
    try:
        yield found
    finally:
        for connection in found:
            connection.close()


@contextlib.contextmanager
def running(side: Side) -> Iterator[None]:
    """The side's server as a process, ready for calls."""
    side.port = free_port()
    process = subprocess.Popen(
        side.command(),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    side.pid = process.pid
    try:
        end = time.monotonic() + WAIT
        while True:
            try:
                with connections(side, 1) as (connection,):
                    answered(connection.ask(ECHO))
                break
            except OSError:
                if time.monotonic() > end or process.poll() is not None:
                    raise
                time.sleep(0.1)
        yield
    finally:
        process.terminate()  # granian's workers end with it
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answered(body: bytes) -> None:
    """Check one answer to an echo."""
    if b'"hello' not in body or b'"isError":true' in body:
        raise RuntimeError(f"a wrong answer: {body!r}")


def echo_rate(side: Side, clients: int, era: str = "modern") -> float:
    """Echo calls a second over so many keep-alive connections, one at a time on each."""
    with connections(side, clients) as found, selectors.DefaultSelector() as selector:
        for connection in found:
            if era == "legacy":
                connection.begin_session()
            selector.register(connection.sock, selectors.EVENT_READ, connection)
        count, begun = 0, time.perf_counter()
        end = begun + SECONDS
        for connection in found:
            connection.send(next(connection.echoes))
        while time.perf_counter() < end:
            for key, _ in selector.select():
                body = key.data.take()
                if body is not None:
                    answered(body)
                    count += 1
                    key.data.send(next(key.data.echoes))
        return count / (time.perf_counter() - begun)


def while_blocked(side: Side) -> tuple[float, float]:
    """Milliseconds of a ping and of another client's echo while 64 tools block; the worst of 20."""
    with connections(side, BLOCKING) as busy, connections(side, 1) as (other,):
        other.ask(ECHO)
        threads = [
            threading.Thread(target=connection.ask, args=(call("sleep", ms=BLOCKING_MS),))
            for connection in busy
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        worst = []
        for data in (request("server/discover"), ECHO):
            times = []
            for _ in range(10):
                begun = time.perf_counter()
                other.ask(data)
                times.append((time.perf_counter() - begun) * 1000)
            worst.append(max(times))
        for thread in threads:
            thread.join()
    return worst[0], worst[1]


def memory(side: Side) -> float:
    """Megabytes that the process has."""
    with open(f"/proc/{side.pid}/statm") as found:
        return int(found.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def with_streams(side: Side) -> tuple[float, float]:
    """Megabytes with 500 open listen streams, and echo calls a second meanwhile."""
    with connections(side, STREAMS) as found:
        for connection in found:
            connection.begin_stream()
        return memory(side), echo_rate(side, 1)


def rounds(sides: list[Side], count: int, measure: object, *args: object) -> list[list[float]]:
    """One list of figures a side; the sides take turns."""
    assert callable(measure)
    figures: list[list[float]] = [[] for _ in sides]
    for turn in range(count):
        for index in (0, 1) if turn % 2 == 0 else (1, 0):
            figures[index].append(measure(sides[index], *args))
    return figures


def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, help="the python that has mcp 2.x")
    parser.add_argument("--ours", default=sys.executable, help="the python that runs raxol_sync")
    parser.add_argument("--granian", help="the granian that finds raxol_sync's dependencies")
    parser.add_argument("--pinned", action="store_true", help="granian on one core as well")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)
    sides = [
        Side("raxol_sync", options.ours, "server_ours.py"),
        Side("mcp", options.peer, "server_sdk.py"),
    ]
    title, unit, cells = "measured", "unit", ("raxol_sync", "mcp 2")
    print(f"{title:<38} {unit:<8} {cells[0]:>10} {cells[1]:>10} {'better':>8} {'(range)':<13} aim")
    with running(sides[0]), running(sides[1]):
        for era, clients in itertools.product(("modern", "legacy"), (1, 16)):
            rates = rounds(sides, ROUNDS, echo_rate, clients, era)
            row(f"echo, {clients} connections, {era}", "calls/s", rates, True, "3 times")
        pairs = [[while_blocked(side) for _ in range(3)] for side in sides]
        for index, what in enumerate(("discover", "echo")):
            figures = [[each[index] for each in side] for side in pairs]
            row(f"worst {what} while 64 tools block", "ms", figures, False, "at most 20 ms")
        streams = [[with_streams(side)] for side in sides]
        for index, (what, unit) in enumerate((("memory", "MB"), ("echo", "calls/s"))):
            figures = [[each[index] for each in side] for side in streams]
            aim = "below 100 MB" if index == 0 else ""
            row(f"{what} with 500 open streams", unit, figures, index == 1, aim)
    if options.granian:
        under_granian(options.granian, options.peer, pinned=False)
    if options.granian and options.pinned:
        under_granian(options.granian, options.peer, pinned=True)


def under_granian(granian: str, peer: str, *, pinned: bool) -> None:
    """Measure echo calls with granian as our host."""
    sides = [
        Side("granian", granian, "granian", pinned=pinned),
        Side("mcp", peer, "server_sdk.py", pinned=pinned),
    ]
    where = "granian on a core" if pinned else "granian"
    with running(sides[0]), running(sides[1]):
        for era, clients in itertools.product(("modern", "legacy"), (1, 16)):
            rates = rounds(sides, ROUNDS, echo_rate, clients, era)
            row(f"{where}, {clients} connections, {era}", "calls/s", rates, True, "6 times")


if __name__ == "__main__":
    main()
