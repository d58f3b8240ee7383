"""`start_http` and `run_http`: the embedded server with the application under it."""

from __future__ import annotations

import errno
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from raxol_sync import Client, Context, DeploymentError, HTTPService, Server
from tests.server.web.raw import Raw, until

CERTIFICATE = Path(__file__).parents[1] / "web" / "localhost.pem"
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
PROGRAM = """
import sys, threading, time
from raxol_sync import Server
server = Server("alone", max_in_flight=8)
@server.tool
def nap(seconds: float) -> str:
    "Sleep."
    print("napping", file=sys.stderr, flush=True)
    time.sleep(seconds)
    return "slept"
def ready(service):
    if "closes" in sys.argv:
        threading.Timer(0.1, server.close).start()
server.run_http(port=0, require_authorization=False, grace=3.0, ready=ready)
print("ended", file=sys.stderr)
"""


def message(method: str, **params: Any) -> tuple[bytes, dict[str, str]]:
    """A modern request: its body and headers."""
    params["_meta"] = META
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": method,
    }
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    return body, headers


def request(method: str, **params: Any) -> bytes:
    """The same, as bytes."""
    body, headers = message(method, **params)
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    return (head + "".join(lines) + "\r\n").encode() + body


def call(name: str, **arguments: Any) -> bytes:
    """A `tools/call` as bytes."""
    return request("tools/call", name=name, arguments=arguments)


LISTEN = request("subscriptions/listen", notifications={"toolsListChanged": True})


def text(raw: Raw) -> str:
    """The text of a tool's answer."""
    found: str = raw.answer().json["result"]["content"][0]["text"]
    return found


class Tools:
    """A server and what its tools wait for."""

    def __init__(self) -> None:
        self.server = Server("tools", max_in_flight=96, max_in_flight_per_connection=96)
        self.release = threading.Event()
        self.begun = threading.Semaphore(0)
        self.cancelled = threading.Event()

        @self.server.tool
        def echo(text: str) -> str:
            return text

        @self.server.tool
        def hold() -> str:
            self.begun.release()
            self.release.wait(20)
            return "released"

        @self.server.tool
        def watch(context: Context) -> str:
            self.begun.release()
            end = time.monotonic() + 20
            while not context.cancelled and time.monotonic() < end:
                time.sleep(0.005)
            if context.cancelled:
                self.cancelled.set()
            return "watched"


@pytest.fixture
def tools() -> Iterator[Tools]:
    """A server with a few tools."""
    made = Tools()
    yield made
    made.release.set()
    made.server.close()


@pytest.fixture
def service(tools: Tools) -> Iterator[HTTPService]:
    """The same over HTTP."""
    with tools.server.start_http(port=0, require_authorization=False) as service:
        yield service


def test_it_serves_until_the_block_ends(tools: Tools) -> None:
    """The URL is right, our own client speaks to it, and nothing is left of it at the end."""
    with tools.server.start_http(port=0, require_authorization=False) as service:
        assert service.url == f"http://127.0.0.1:{service.port}/mcp"
        for version in (None, "2025-11-25"):
            with Client("c", url=service.url, protocol_version=version) as client:
                assert client.call_tool("echo", {"text": "over HTTP"}).text == "over HTTP"
        assert not service.wait(0)
    assert service.wait(0)
    with pytest.raises(ConnectionRefusedError):
        Raw(service.port)
    assert not [t for t in threading.enumerate() if t.name.startswith("raxol-sync-http")]


def test_a_server_may_be_served_twice_and_again(tools: Tools) -> None:
    """Two ports at once; and a new one when the first has ended."""
    with (
        tools.server.start_http(port=0, require_authorization=False) as one,
        tools.server.start_http(port=0, path="/other", require_authorization=False) as other,
    ):
        assert other.url.endswith("/other")
        with Raw(one.port) as raw:
            assert text(raw.send(call("echo", text="one"))) == "one"
    with (
        tools.server.start_http(port=0, require_authorization=False) as third,
        Raw(third.port) as raw,
    ):
        assert text(raw.send(call("echo", text="third"))) == "third"


def test_closing_the_server_ends_it(tools: Tools) -> None:
    """No thread and no port outlives the server; a new service is refused."""
    service = tools.server.start_http(port=0, require_authorization=False)
    told = threading.Event()
    service.on_stopped(told.set)
    with Raw(service.port) as stream, Raw(service.port) as raw:
        stream.send(LISTEN)
        assert stream.line() == b"HTTP/1.1 200 OK\r\n"
        raw.send(call("hold"))
        assert tools.begun.acquire(timeout=10)
        tools.release.set()
        tools.server.close()
        assert told.is_set()
    with pytest.raises(ConnectionRefusedError):
        Raw(service.port)
    with pytest.raises(RuntimeError, match="closed"):
        tools.server.start_http(port=0, require_authorization=False)


def test_stop_answers_what_runs_and_ends_streams(tools: Tools, service: HTTPService) -> None:
    """A call in flight gets its answer, a listen stream its end."""
    with Raw(service.port) as stream, Raw(service.port) as raw:
        stream.send(LISTEN)
        assert stream.line() == b"HTTP/1.1 200 OK\r\n"
        raw.send(call("hold"))
        assert tools.begun.acquire(timeout=10)
        ended: list[bool] = []
        stopper = threading.Thread(target=lambda: ended.append(service.stop()))
        stopper.start()
        tail = b""
        while data := stream.sock.recv(1000):
            tail += data
        assert tail.endswith(b"0\r\n\r\n")
        tools.release.set()
        assert text(raw) == "released"
        stopper.join()
        assert ended == [True]


def test_a_client_that_leaves_cancels_its_call(tools: Tools, service: HTTPService) -> None:
    """In 2026-07-28 the end of the response is the cancellation: it arrives at once."""
    with Raw(service.port) as raw:
        raw.send(call("watch"))
        assert tools.begun.acquire(timeout=10)
    assert tools.cancelled.wait(10)


def test_64_blocking_tools_delay_nobody(tools: Tools, service: HTTPService) -> None:
    """Another client's echoes are answered while they block."""
    raws = [Raw(service.port).send(call("hold")) for _ in range(64)]
    for _ in raws:
        assert tools.begun.acquire(timeout=10)
    with Raw(service.port) as other:
        for _ in range(20):
            assert text(other.send(call("echo", text="quick"))) == "quick"
    tools.release.set()
    for raw in raws:
        assert raw.line() == b"HTTP/1.1 200 OK\r\n"
        raw.close()


def test_streams_past_the_bound_get_503(tools: Tools) -> None:
    """And short requests are answered all the same."""
    with tools.server.start_http(port=0, require_authorization=False, max_streams=2) as service:
        raws = [Raw(service.port).send(LISTEN) for _ in range(2)]
        for raw in raws:
            assert raw.line() == b"HTTP/1.1 200 OK\r\n"
        with Raw(service.port) as third:
            answer = third.send(LISTEN).answer()
            assert answer.status == 503
            assert "retry-after" in answer.headers
            assert text(third.send(call("echo", text="x"))) == "x"
        for raw in raws:
            raw.close()


def test_500_streams_are_open_at_once(tools: Tools, service: HTTPService) -> None:
    """Each has a thread, and all of them go when their clients do."""
    raws = [Raw(service.port).send(LISTEN) for _ in range(500)]
    for raw in raws:
        assert raw.line() == b"HTTP/1.1 200 OK\r\n"
    with Raw(service.port) as other:
        assert text(other.send(call("echo", text="x"))) == "x"
    for raw in raws:
        raw.close()
    until(lambda: tools.server.stats().listens == 0)


def test_https(tools: Tools) -> None:
    """With a context that has a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    with tools.server.start_http(
        port=0, require_authorization=False, ssl_context=context
    ) as service:
        assert service.url.startswith("https://127.0.0.1:")
        theirs = ssl.create_default_context(cafile=str(CERTIFICATE))
        client = http.client.HTTPSConnection("localhost", service.port, context=theirs, timeout=10)
        client.request("POST", "/mcp", *message("server/discover"))
        assert client.getresponse().status == 200
        client.close()


def test_a_body_past_the_limit_is_413(tools: Tools) -> None:
    """The limit is the one that was given."""
    with (
        tools.server.start_http(
            port=0, require_authorization=False, max_body_bytes=1000
        ) as service,
        Raw(service.port) as raw,
    ):
        assert raw.send(call("echo", text="x" * 2000)).answer().status == 413


def test_hosts_that_are_served(tools: Tools) -> None:
    """By default the names of loopback, and the address that was asked for."""
    with tools.server.start_http("127.0.0.2", 0, require_authorization=False) as service:
        for host, status in (("localhost", 200), ("127.0.0.2", 200), ("evil.example", 421)):
            client = http.client.HTTPConnection("127.0.0.2", service.port, timeout=10)
            body, headers = message("server/discover")
            client.request("POST", "/mcp", body, {**headers, "Host": f"{host}:{service.port}"})
            assert client.getresponse().status == status
            client.close()


def test_s29_nobody_is_served_without_a_decision(tools: Tools, monkeypatch: Any) -> None:
    """The gate stands before the port: nothing listens."""
    monkeypatch.delenv("RAXOL_SYNC_REQUIRE_AUTHORIZATION", raising=False)
    with pytest.raises(DeploymentError):
        tools.server.start_http(port=0)
    with pytest.raises(DeploymentError):
        tools.server.run_http(port=0)


@pytest.mark.parametrize(
    "options",
    [
        {"port": -1},
        {"port": 65536},
        {"port": "8000"},
        {"max_threads": 0},
        {"max_connections": 0},
        {"grace": -1},
        {"max_body_bytes": 0},
        {"ssl_context": "cert.pem"},
    ],
)
def test_wrong_options_are_told(tools: Tools, options: dict[str, Any]) -> None:
    """Before anything listens."""
    with pytest.raises((ValueError, TypeError)):
        tools.server.start_http(**{"port": 0, **options}, require_authorization=False)


def test_an_access_log_of_ones_own(tools: Tools) -> None:
    """A callable gets each line."""
    lines: list[str] = []
    with (
        tools.server.start_http(
            port=0, require_authorization=False, access_log=lines.append
        ) as service,
        Raw(service.port) as raw,
    ):
        raw.send(call("echo", text="secret"))
        assert raw.answer().status == 200
        until(lambda: lines)
    assert re.fullmatch(r'127\.0\.0\.1 "POST /mcp HTTP/1\.1" 200 \d+ [\d.]+ms', lines[0])


# ---------------------------------------------------------------- as a program


@contextmanager
def program(*words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`run_http` in a process of its own, and its port."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.fullmatch(
            r"alone is served at http://127\.0\.0\.1:(\d+)/mcp \(Ctrl-C ends it\)\n", line
        )
        assert found, line + process.stderr.read()
        yield process, int(found[1])
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def rest(process: subprocess.Popen[str]) -> str:
    """What it still writes, until it ends by itself with status 0."""
    assert process.stderr is not None
    words = process.stderr.read()
    assert process.wait(20) == 0, words
    return words


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_http_ends_cleanly_on_a_signal(number: signal.Signals) -> None:
    """The call in flight is answered, the stream ended, what follows run_http is run."""
    with program() as (process, port), Raw(port) as raw, Raw(port) as stream:
        stream.send(LISTEN)
        assert stream.line() == b"HTTP/1.1 200 OK\r\n"
        raw.send(call("nap", seconds=0.4))
        assert process.stderr is not None
        assert process.stderr.readline() == "napping\n"
        os.kill(process.pid, number)
        assert text(raw) == "slept"
        words = rest(process)
        assert words.endswith("ended\n")
        assert '"POST /mcp HTTP/1.1" 200' in words


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_run_http_ends_within_its_grace_time() -> None:
    """A tool that does not return keeps it no longer than that."""
    with program() as (process, port), Raw(port) as raw:
        raw.send(call("nap", seconds=60))
        assert process.stderr is not None
        assert process.stderr.readline() == "napping\n"
        begun = time.monotonic()
        os.kill(process.pid, signal.SIGTERM)
        rest(process)
        assert time.monotonic() - begun < 9


def test_run_http_ends_when_the_server_is_closed() -> None:
    """From any thread."""
    with program("closes") as (process, _):
        assert rest(process).endswith("ended\n")


def test_who_listens_everywhere_is_reached_by_address() -> None:
    """Under any address, since that is no name that a page could have resolve here; by no name."""
    with (
        Server("http") as server,
        server.start_http("0.0.0.0", 0, require_authorization=False) as service,
    ):
        for host, status in (
            ("192.168.7.9:80", 200),
            ("[fe80::1]", 200),
            ("localhost", 200),
            ("evil.example.com", 421),
            ("1.2.3.4.example.com", 421),
        ):
            connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=10)
            body = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
            headers = {
                "Host": host,
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
            }
            connection.request("POST", "/mcp", body, headers)
            assert connection.getresponse().status == status, host
            connection.close()


def test_a_port_that_is_taken_is_named_with_what_to_do() -> None:
    """The same class and number as the system's own error."""
    with Server("one") as server, server.start_http(port=0, require_authorization=False) as first:
        with pytest.raises(OSError, match="something listens there already") as caught:
            server.start_http(port=first.port, require_authorization=False)
        assert type(caught.value) is OSError
        assert caught.value.errno == errno.EADDRINUSE
        assert str(caught.value).endswith(f"'127.0.0.1:{first.port}'")
        with pytest.raises(socket.gaierror, match="host must be a name"):
            server.start_http("no-such-host.invalid", 0, require_authorization=False)
