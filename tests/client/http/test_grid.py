"""Never a hang: every call, in every state, with every fault over HTTP (issue's grid)."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from raxol_sync.client.client import Client
from raxol_sync.errors import (
    ConnectFailed,
    ConnectionLost,
    HTTPStatusError,
    InvalidResponse,
    MCPError,
    MessageTooLarge,
    NotReady,
    RedirectRefused,
    RequestTimeout,
    RPCError,
)
from tests.client.http.hostile import Conn, Hostile, Polite, Seen, failure, result, text

GRACE = 2.0
SHORT = 0.4  # seconds; the deadline of calls that will not be answered
Connect = Callable[..., Client]


def silent(seen: Seen, conn: Conn) -> None:
    conn.wait_gone()


def dies(seen: Seen, conn: Conn) -> None:
    conn.close()


def resets(seen: Seen, conn: Conn) -> None:
    conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{")
    conn.close(reset=True)


def cut_short(seen: Seen, conn: Conn) -> None:
    conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{")
    conn.close()


def half_event(seen: Seen, conn: Conn) -> None:
    conn.events()
    conn.chunk(b'data: {"jsonrpc": "2.0", "id": 1, ')
    conn.wait_gone()


def half_headers(seen: Seen, conn: Conn) -> None:
    conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: appl")
    conn.wait_gone()


def drips(seen: Seen, conn: Conn) -> None:
    conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n")
    while not conn.server._closed:
        conn.send(b" ")
        time.sleep(0.05)  # the server's own slowness: nothing waits for it


def drips_headers(seen: Seen, conn: Conn) -> None:
    conn.send(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not conn.server._closed:
        conn.send(b"x")
        time.sleep(0.05)


def endless(seen: Seen, conn: Conn) -> None:
    conn.events()
    while not conn.server._closed:
        conn.chunk(b": still here\n\n" * 50)


BOMB = gzip.compress(b"[" * 20_000_000)


def bomb(seen: Seen, conn: Conn) -> None:
    conn.reply(200, BOMB, {"Content-Type": "application/json", "Content-Encoding": "gzip"})


def huge(seen: Seen, conn: Conn) -> None:
    conn.json(result(seen, text("x" * 400_000)))


def huge_event(seen: Seen, conn: Conn) -> None:
    conn.events()
    conn.chunk(b"data: " + b"x" * 400_000)
    conn.wait_gone()


def wrong_id(seen: Seen, conn: Conn) -> None:
    conn.json({"jsonrpc": "2.0", "id": 999_999, "result": text("not yours")})


def garbage(seen: Seen, conn: Conn) -> None:
    conn.send(b"\x16\x03\x01 this is no HTTP at all\r\n\r\n")
    conn.close()


def web_page(seen: Seen, conn: Conn) -> None:
    conn.reply(200, b"<html>hello</html>", {"Content-Type": "text/html"})


def broken_json(seen: Seen, conn: Conn) -> None:
    conn.reply(200, b'{"jsonrpc": ', {"Content-Type": "application/json"})


def nothing(seen: Seen, conn: Conn) -> None:
    conn.reply(202)


def redirects(seen: Seen, conn: Conn) -> None:
    conn.reply(307, b"", {"Location": "http://user:pw@other.example/mcp?token=1"})


def status(code: int) -> Callable[[Seen, Conn], None]:
    def answer(seen: Seen, conn: Conn) -> None:
        conn.reply(code, b"no", {"Content-Type": "text/plain"})

    return answer


def rpc_error(seen: Seen, conn: Conn) -> None:
    conn.json(failure(seen, -32050), 400)


def stream_ends(seen: Seen, conn: Conn) -> None:
    conn.events()
    conn.end()


FAULTS: dict[str, tuple[Callable[[Seen, Conn], None], type[MCPError]]] = {
    "silent": (silent, RequestTimeout),
    "dies": (dies, ConnectionLost),
    "reset in the body": (resets, ConnectionLost),
    "cut short": (cut_short, ConnectionLost),
    "half an event": (half_event, RequestTimeout),
    "half the headers": (half_headers, RequestTimeout),
    "a byte at a time": (drips, RequestTimeout),
    "headers a byte at a time": (drips_headers, RequestTimeout),
    "an endless stream": (endless, (RequestTimeout, MessageTooLarge)),  # type: ignore[dict-item]
    "a gzip bomb": (bomb, ConnectionLost),
    "huge": (huge, MessageTooLarge),
    "a huge event": (huge_event, MessageTooLarge),
    "another id": (wrong_id, InvalidResponse),
    "no HTTP": (garbage, ConnectionLost),
    "a web page": (web_page, InvalidResponse),
    "broken JSON": (broken_json, InvalidResponse),
    "nothing": (nothing, InvalidResponse),
    "a redirect": (redirects, RedirectRefused),
    "status 500": (status(500), HTTPStatusError),
    "status 403": (status(403), HTTPStatusError),
    "status 401": (status(401), HTTPStatusError),
    "an error": (rpc_error, RPCError),
    "an empty stream": (stream_ends, ConnectionLost),
}
CALLS: dict[str, tuple[str, Callable[[Client], object]]] = {
    "call_tool": ("tools/call", lambda c: c.call_tool("echo", {"text": "x"}, timeout=SHORT)),
    "submit_tool": (
        "tools/call",
        lambda c: c.submit_tool("echo", {"text": "x"}, timeout=SHORT).result(10),
    ),
    "list_tools": ("tools/list", lambda c: c.list_tools(timeout=SHORT, refresh=True)),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fault", FAULTS)
def test_c10_no_call_hangs_and_nothing_of_it_is_left(
    connect: Connect, host: Callable[..., Hostile], polite: Polite, fault: str, call: str
) -> None:
    """The named exception comes in time, nothing is pending, and the next call works."""
    fails, error = FAULTS[fault]
    method, make = CALLS[call]
    server = host(polite)
    with connect(server, max_message_bytes=100_000) as client:
        polite.on[method] = fails
        begun = time.monotonic()
        with pytest.raises(error) as caught:
            make(client)
        assert time.monotonic() - begun < SHORT + GRACE
        assert client.status().pending == 0
        assert_done(client)
        failed = server.of(method)[-1].conn
        if error is RequestTimeout:
            assert failed.closed.wait(GRACE)
        del polite.on[method], caught
        found = client.call_tool("echo", {"text": "again"})
        assert found.content[0].text == "again"  # type: ignore[union-attr]


def assert_done(client: Client) -> None:
    """No job of the transport's is left: so no thread works on one, and no socket serves it."""
    transport: Any = client._session._link.transport  # type: ignore[union-attr]
    deadline = time.monotonic() + GRACE
    while transport._jobs and time.monotonic() < deadline:
        threading.Event().wait(0.005)
    assert not transport._jobs


@pytest.mark.parametrize("fault", [name for name in FAULTS if name != "an error"])
@pytest.mark.parametrize("method", ["server/discover", "initialize"])
def test_c06_no_handshake_hangs(connect: Connect, method: str, fault: str) -> None:
    """A fault in the handshake is `ConnectFailed`, in time; calls say so too; stop() is prompt."""
    polite = Polite("legacy")
    polite.on[method] = FAULTS[fault][0]
    pinned = {"protocol_version": "2026-07-28"} if method == "server/discover" else {}
    client = connect(polite, init_timeout=SHORT, max_message_bytes=100_000, **pinned)
    begun = time.monotonic()
    with pytest.raises(ConnectFailed):
        client.__enter__()
    client = connect(polite, init_timeout=SHORT, max_message_bytes=100_000, **pinned)
    client.start()
    with pytest.raises((NotReady, ConnectFailed)):
        client.call_tool("echo")
    with pytest.raises((NotReady, ConnectFailed)):
        client.list_tools()
    with pytest.raises((NotReady, ConnectFailed)):
        client.await_ready()
    client.stop()
    assert time.monotonic() - begun < 2 * (SHORT + GRACE)
    with pytest.raises(NotReady):
        client.call_tool("echo")
    with pytest.raises(NotReady):
        client.await_ready()


@pytest.mark.parametrize("fault", [name for name, (_, e) in FAULTS.items() if e is RequestTimeout])
def test_c02_stop_ends_what_is_in_flight(
    connect: Connect, host: Callable[..., Hostile], polite: Polite, fault: str
) -> None:
    """`stop()` during a call: the call fails with `NotReady`, its socket is shut down."""
    server = host(polite)
    polite.on["tools/call"] = FAULTS[fault][0]
    client = connect(server)
    with client:
        future = client.submit_tool("echo", {}, timeout=None)
        while not server.of("tools/call"):
            server.arrived.get(timeout=5)
        begun = time.monotonic()
    assert time.monotonic() - begun < GRACE + 2.0
    with pytest.raises(NotReady):
        future.result(0)
    assert server.of("tools/call")[0].conn.closed.wait(GRACE)


def test_c10_an_answer_after_the_time_out_is_nobodys(connect: Connect, polite: Polite) -> None:
    """It finds no connection, and the next call has its own answer."""
    gate = threading.Event()

    def late(seen: Seen, conn: Conn) -> None:
        gate.wait(5)
        conn.json(result(seen, text("late")))

    with connect(polite) as client:
        polite.on["tools/call"] = late
        with pytest.raises(RequestTimeout):
            client.call_tool("echo", {"text": "first"}, timeout=0.2)
        del polite.on["tools/call"]
        gate.set()
        assert client.call_tool("echo", {"text": "second"}).content[0].text == "second"  # type: ignore[union-attr]


def test_c14_a_duplicate_answer_is_ignored(connect: Connect, polite: Polite) -> None:
    """The second one in a stream, or in a batch, changes nothing."""

    def twice(seen: Seen, conn: Conn) -> None:
        conn.events()
        conn.event(result(seen, text("one")))
        conn.event(result(seen, text("two")))
        conn.end()

    with connect(polite) as client:
        polite.on["tools/call"] = twice
        for _ in range(3):
            assert client.call_tool("echo").content[0].text == "one"  # type: ignore[union-attr]


def test_c23_a_host_that_speaks_no_tls(connect: Connect) -> None:
    """TLS fails with its reason; certificates are always verified."""
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def answer() -> None:
            sock, _ = plain.accept()
            with sock:
                sock.recv(65536)
                sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        client = connect(Polite(), url=f"https://127.0.0.1:{plain.getsockname()[1]}/mcp")
        with pytest.raises(ConnectFailed, match="TLS"):
            client.__enter__()
        thread.join()


def test_c23_tls_that_never_answers(connect: Connect) -> None:
    """A handshake of TLS in silence ends with the deadline, and its thread too."""
    with socket.create_server(("127.0.0.1", 0)) as quiet:
        url = f"https://127.0.0.1:{quiet.getsockname()[1]}/mcp"
        client = connect(Polite(), url=url, init_timeout=SHORT)
        begun = time.monotonic()
        with pytest.raises(ConnectFailed):
            client.__enter__()
        assert time.monotonic() - begun < SHORT + GRACE


def test_c06_a_name_that_does_not_resolve(connect: Connect) -> None:
    """The reason says that it is the name."""
    client = connect(Polite(), url="https://no-such-host.invalid/mcp")
    with pytest.raises(ConnectFailed, match="name cannot be resolved"):
        client.__enter__()


def test_c06_a_port_where_nobody_listens(connect: Connect) -> None:
    """Refused, with the reason; without `fail_fast` it is `NotReady` when the time is up."""
    server = Hostile(Polite())
    server.close()
    with pytest.raises(ConnectFailed, match="refused"):
        connect(server).__enter__()
    client = connect(server, fail_fast=False)
    client.start()
    with pytest.raises(NotReady, match="refused"):
        client.await_ready(SHORT)
