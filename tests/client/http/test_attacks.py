"""What servers of bad will, or of bad luck, do to the HTTP client."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from raxol_sync.breaker import Breaker
from raxol_sync.client import handlers, http
from raxol_sync.client.client import Client
from raxol_sync.client.sse import EventReader
from raxol_sync.errors import (
    ConnectionLost,
    HTTPStatusError,
    MCPError,
    RequestTimeout,
    SessionRejected,
)
from tests.client.http.hostile import Conn, Hostile, Polite, Seen, result, text
from tests.client.http.test_sessions import said
from tests.client.http.test_watching import Teller
from tests.waiting import wait_until

Connect = Callable[..., Client]
Host = Callable[..., Hostile]


def test_c21_a_large_event_in_small_pieces_costs_no_more_than_its_size() -> None:
    """Each piece must not copy all that came before it."""
    piece, count = b"x" * 100, 80_000

    def chunks() -> Iterator[bytes]:
        yield b"data: "
        for _ in range(count):
            yield piece
        yield b"\n\n"

    begun = time.process_time()
    (event,) = EventReader(chunks(), max_event=2**30, max_total=None)
    assert len(event.data or "") == len(piece) * count
    assert time.process_time() - begun < 2.0


def test_c21_a_connection_is_reused_with_the_time_of_its_own(connect: Connect, host: Host) -> None:
    """The little time for a stream's end does not bound the next request's sending."""
    polite = Polite("modern")

    def streams(seen: Seen, conn: Conn) -> None:
        conn.events()
        conn.event(result(seen, text("one")))
        conn.end()
        if not slow.is_set():
            slow.set()
            time.sleep(0.6)  # the server's own slowness: it does not read

    slow = threading.Event()
    polite.on["tools/call"] = streams
    server = host(polite)
    with connect(server) as client:
        assert said(client) == "one"
        assert said(client, "x" * 20_000_000) == "one"
    assert len(server.conns) == 1


@pytest.mark.parametrize("body", [b"[" + b" " * 3_000_000 + b"]", b'{"jsonrpc": ', b"\xff", b""])
@pytest.mark.parametrize("cut", [False, True])
def test_c17_a_rejection_counts_whatever_its_body_is(
    connect: Connect, body: bytes, cut: bool
) -> None:
    """Too large, broken off, no JSON: the status says it."""
    polite = Polite("legacy")

    def rejects(seen: Seen, conn: Conn) -> None:
        length = len(body) + 10 * cut
        head = f"HTTP/1.1 404 X\r\nContent-Type: application/json\r\nContent-Length: {length}"
        with contextlib.suppress(OSError):
            conn.send(head.encode() + b"\r\n\r\n" + body)
            conn.close()

    with connect(polite, max_message_bytes=4_000_000) as client:
        polite.on["tools/call"] = rejects
        with pytest.raises(SessionRejected):
            client.call_tool("echo")
        polite.on["tools/call"] = lambda seen, conn: conn.reply(500, body)
        client.await_ready()
        with pytest.raises(HTTPStatusError):
            client.call_tool("echo")


def test_c22_a_post_that_never_ends_holds_no_thread(connect: Connect, host: Host) -> None:
    """HTTP+SSE: the answers come on the stream; what the POST says is not waited for."""
    streams: list[Conn] = []
    polite = Polite("legacy")

    def script(seen: Seen, conn: Conn) -> None:
        if seen.verb == "GET":
            conn.events()
            streams.append(conn)
            conn.chunk(b"event: endpoint\ndata: /messages\n\n")
            conn.wait_gone(30)
            return
        if seen.path == "/mcp":
            conn.reply(405)
            return
        conn.send(b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n")
        if seen.method == "initialize":
            value = {"protocolVersion": "2024-11-05", "capabilities": {}}
            streams[-1].event(result(seen, value))
        elif seen.method == "tools/call":
            streams[-1].event(result(seen, text("here")))
        conn.wait_gone(30)

    polite.behave = script  # type: ignore[method-assign]
    with connect(host(polite), pool_size=2, call_timeout=3.0) as client:
        for _ in range(20):
            assert said(client) == "here"
        transport: Any = client._session._link.transport  # type: ignore[union-attr]
        wait_until(lambda: not transport._jobs)


def test_c13_a_body_that_never_ends_does_not_keep_the_session_from_being_ready(
    connect: Connect,
) -> None:
    """`initialized` was taken when its status has come."""
    polite = Polite("legacy")

    def takes(seen: Seen, conn: Conn) -> None:
        conn.send(b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n")
        conn.wait_gone(30)

    polite.on["notifications/initialized"] = takes
    with connect(polite, init_timeout=3.0) as client:
        assert said(client, "x") == "x"


def test_c12_a_serialized_session_that_its_stream_rejects_stays_serialized(
    connect: Connect, host: Host
) -> None:
    """The handshake waits until the call that is on the wire has its answer."""
    polite = Polite("legacy")
    streams: list[Conn] = []
    going, on_wire, most = threading.Event(), [0], [0]
    lock = threading.Lock()

    def count(change: int) -> None:
        with lock:
            on_wire[0] += change
            most[0] = max(most[0], on_wire[0])

    def stream(seen: Seen, conn: Conn) -> None:
        if len(streams) == 1:
            conn.reply(404)
            streams.append(conn)
            return
        conn.events()
        conn.event(None, retry=1)
        streams.append(conn)
        conn.wait_gone(30)

    def call(seen: Seen, conn: Conn) -> None:
        count(+1)
        going.set()
        time.sleep(0.5)  # the server's own slowness
        count(-1)
        conn.json(result(seen, text("done")))

    def initialize(seen: Seen, conn: Conn) -> None:
        count(+1)
        time.sleep(0.05)
        count(-1)
        polite.behave(seen, conn)

    polite.on = {"GET": stream, "tools/call": call, "initialize": initialize}
    settings: dict[str, Any] = {"on_log": print, "concurrency": "serialized"}
    with connect(host(polite), **settings) as client:
        future = client.submit_tool("echo")
        assert going.wait(5)
        streams[0].close()  # opened again, and refused
        wait_until(lambda: len(streams) >= 2)
        with contextlib.suppress(MCPError):
            assert future.result(5).text == "done"
        client.await_ready(5)
        assert client.call_tool("echo", {}).text == "done"
    assert most[0] == 1


def test_c29_streams_of_sessions_that_are_gone_are_ended(connect: Connect, host: Host) -> None:
    """However long the server keeps them: each session has its stream, and only its own."""
    teller = Teller("legacy")
    with connect(host(teller), on_log=print) as client:
        for n in range(8):
            wait_until(lambda n=n: len(teller.streams) == n + 1)  # type: ignore[misc]
            assert len(teller.open()) == 1
            teller.on["tools/call"] = lambda seen, conn: conn.reply(404)
            with pytest.raises(SessionRejected):
                client.call_tool("echo")
            del teller.on["tools/call"]
            client.await_ready(5)
            wait_until(lambda: len(teller.open()) == 1)


def test_c29_a_new_session_without_a_stream_keeps_no_list(connect: Connect) -> None:
    """What the old one had says nothing of it."""
    teller = Teller("legacy")
    with connect(teller, on_log=print) as client:
        assert client._session.streaming
        del teller.on["GET"]
        teller.on["tools/call"] = lambda seen, conn: conn.reply(404)
        with pytest.raises(SessionRejected):
            client.call_tool("echo")
        client.await_ready(5)
        assert not client._session.streaming


def test_c29_a_handshake_whose_stream_is_cut_keeps_its_session(
    connect: Connect, host: Host
) -> None:
    """Its id came with the first part."""
    polite = Polite("legacy")

    def cut(seen: Seen, conn: Conn) -> None:
        conn.events({"Mcp-Session-Id": "s7"})
        conn.event(None, event_id="e1", retry=1)
        conn.end()
        polite.on["GET"] = lambda again, other: resume(seen, again, other)

    def resume(first: Seen, seen: Seen, conn: Conn) -> None:
        assert seen.headers["last-event-id"] == "e1"
        del polite.on["GET"]
        conn.events()
        agreement = {"protocolVersion": "2025-11-25", "capabilities": {}}
        conn.event(result(first, agreement))
        conn.end()

    polite.on["initialize"] = cut
    server = host(polite)
    with connect(server, protocol_version="2025-11-25") as client:
        client.call_tool("echo")
    assert server.of("tools/call")[0].headers["mcp-session-id"] == "s7"


@pytest.mark.parametrize("path", ["/mcp/ä", "/mcp/a b".replace(" ", "\u00a0"), "/mcp?q=ü&x=%20"])
def test_c23_a_url_may_have_other_letters_than_ascii(
    connect: Connect, host: Host, path: str
) -> None:
    """They are sent as the standard says; what is encoded already stays as it is."""
    from urllib.parse import unquote

    server = host(Polite())
    url = f"http://127.0.0.1:{server.port}{path}"
    with connect(server, url=url) as client:
        assert said(client, "x") == "x"
    assert server.seen[0].path.isascii()
    assert unquote(server.seen[0].path) == unquote(path)
    assert "%2520" not in server.seen[0].path


def test_c10_an_interrupt_while_a_request_is_handed_over_loses_no_other(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What others have queued goes out with the next flush."""
    post = handlers.ThreadPool.post
    interrupts = [True]

    def interrupted(pool: handlers.ThreadPool, job: Callable[[], object]) -> bool:
        if interrupts and threading.current_thread() is threading.main_thread():
            interrupts.clear()
            raise KeyboardInterrupt
        return post(pool, job)

    with connect(Polite()) as client:
        transport: Any = client._session._link.transport  # type: ignore[union-attr]
        flush = transport.flush
        transport.flush = lambda *, inline: None  # another thread, between put and flush
        future = client.submit_tool("echo", {"text": "other"})
        transport.flush = flush
        monkeypatch.setattr(handlers.ThreadPool, "post", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.call_tool("echo", {"text": "mine"})
        assert future.result(5).text == "other"
        assert client.status().pending == 0
        assert said(client, "next") == "next"


def test_c24_an_interrupted_probe_gives_its_place_back(connect: Connect) -> None:
    """Whatever breaks in the client itself, the breaker is not left half open for ever."""
    polite = Polite()
    with connect(polite) as client:
        plan: Any = client._target.plan
        polite.on["tools/call"] = lambda seen, conn: conn.reply(503)
        for _ in range(5):
            with pytest.raises(HTTPStatusError):
                client.call_tool("echo")
        plan.guard._breaker._opened_at -= 31
        transport: Any = client._session._link.transport  # type: ignore[union-attr]
        send = transport._web.send
        transport._web.send = lambda *words: 1 / 0
        with pytest.raises(MCPError):
            client.call_tool("echo")
        transport._web.send = send
        del polite.on["tools/call"]
        assert said(client, "x") == "x"


def test_c10_expiry_of_many_at_once_leaves_nothing(connect: Connect, host: Host) -> None:
    """A whole window and its queue time out together; the next ones work."""
    polite = Polite()
    server = host(polite)
    polite.on["tools/call"] = lambda seen, conn: conn.wait_gone(30)
    with connect(server, pool_size=4, queue_limit=30) as client:
        plan: Any = client._target.plan
        plan.guard._breaker = Breaker(limit=1000)
        futures = [client.submit_tool("echo", timeout=0.3) for _ in range(30)]
        for future in futures:
            assert isinstance(future.exception(5), RequestTimeout)
        assert (client.status().pending, client.status().queued) == (0, 0)
        del polite.on["tools/call"]
        for n in range(10):
            assert said(client, str(n)) == str(n)
        transport: Any = client._session._link.transport  # type: ignore[union-attr]
        wait_until(lambda: not transport._jobs)
    assert http.RESUMES == 8


@pytest.mark.parametrize("reset", [True, False])
def test_c21_what_may_be_asked_twice_survives_a_connection_that_closes_just_then(
    connect: Connect, host: Host, reset: bool
) -> None:
    """On a connection that was used before: lists and handshakes go out again, calls do not."""
    polite = Polite("legacy")
    used: set[Conn] = set()
    dropped: list[str] = []

    def once(seen: Seen, conn: Conn) -> None:
        if conn in used and seen.verb == "POST":
            dropped.append(seen.method)
            conn.close(reset=reset)
            return
        used.add(conn)
        polite.behave(seen, conn)

    with connect(host(once), protocol_version="2025-11-25") as client:
        for _ in range(3):
            assert len(client.list_tools(refresh=True)) == 1
        outcomes = []
        for _ in range(3):
            with contextlib.suppress(ConnectionLost):
                outcomes.append(client.call_tool("echo"))
        assert len(outcomes) < 3
    assert dropped[0] == "notifications/initialized"
    assert "tools/list" in dropped
    assert dropped.count("tools/call") == 3 - len(outcomes)


@pytest.mark.parametrize("how", ["closes", "refuses", "redirects"])
def test_c15_a_handshake_that_breaks_at_its_end_fails_at_once(connect: Connect, how: str) -> None:
    """`initialized` is a part of it: nobody waits until the handshake's time is up."""
    polite = Polite("legacy")

    def breaks(seen: Seen, conn: Conn) -> None:
        if how == "closes":
            conn.close()
        else:
            conn.reply(401 if how == "refuses" else 307)

    polite.on["notifications/initialized"] = breaks
    begun = time.monotonic()
    with pytest.raises(MCPError):
        connect(polite, init_timeout=20.0).__enter__()
    assert time.monotonic() - begun < 5
