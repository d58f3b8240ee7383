"""Sessions over HTTP: eras, rejections, streams, the window, recovery."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from raxol_sync.breaker import Breaker
from raxol_sync.client import eras
from raxol_sync.client.client import Client
from raxol_sync.errors import (
    BreakerOpen,
    Busy,
    ConnectFailed,
    HTTPStatusError,
    InputRequired,
    MCPError,
    NotReady,
    RequestTimeout,
    RPCError,
    SessionRejected,
)
from tests.client.http.hostile import (
    LEGACY,
    MODERN,
    Conn,
    Hostile,
    Polite,
    Seen,
    failure,
    result,
    text,
)

Connect = Callable[..., Client]
Host = Callable[..., Hostile]


def said(client: Client, words: str = "x", **options: Any) -> str:
    content = client.call_tool("echo", {"text": words}, **options).content[0]
    return str(content.text)  # type: ignore[union-attr]


# ---------------------------------------------------------------- eras


def test_c22_a_modern_server_over_http(connect: Connect, host: Host) -> None:
    """One probe, no handshake, and each request says in headers what it is."""
    server = host(Polite("modern"))
    with connect(server) as client:
        assert client.status().era == "modern"
        assert said(client, "hello") == "hello"
    assert [seen.method for seen in server.seen] == ["server/discover", "tools/call"]
    for seen in server.seen:
        assert seen.headers["mcp-protocol-version"] == MODERN
        assert seen.headers["mcp-method"] == seen.method
        assert seen.headers["accept"] == "application/json, text/event-stream"
    assert server.seen[1].headers["mcp-name"] == "echo"


def test_c22_a_legacy_server_over_http(connect: Connect, host: Host) -> None:
    """The probe fails, `initialize` has no version header, then session and version go along."""
    server = host(Polite("legacy"))
    with connect(server) as client:
        assert (client.status().era, client.status().concurrency) == ("legacy", "pooled")
        assert said(client, "hello") == "hello"
    initialize = server.of("initialize")[0]
    assert "mcp-protocol-version" not in initialize.headers
    for seen in server.seen[server.seen.index(initialize) + 1 :]:
        assert seen.headers["mcp-protocol-version"] == LEGACY
        assert seen.headers["mcp-session-id"] == "s1"
        assert "mcp-method" not in seen.headers
    assert server.seen[-1].verb == "DELETE"


@pytest.mark.parametrize("code", [400, 404, 405, 501, 500, 503, 200])
def test_c22_what_is_no_modern_answer_falls_back(connect: Connect, code: int) -> None:
    """4xx, 5xx and pages: `initialize` is tried in the same attempt."""
    polite = Polite("legacy")
    polite.on["server/discover"] = lambda seen, conn: conn.reply(code, b"<html>")
    with connect(polite) as client:
        assert client.status().era == "legacy"


@pytest.mark.parametrize("code", [401, 403, 408, 429])
def test_c22_some_statuses_decide_nothing(connect: Connect, host: Host, code: int) -> None:
    """The attempt fails, `initialize` is not sent, nothing is remembered."""
    polite = Polite("legacy")
    polite.on["server/discover"] = lambda seen, conn: conn.reply(code)
    server = host(polite)
    with pytest.raises(ConnectFailed, match=str(code)):
        connect(server).__enter__()
    assert not server.of("initialize")
    assert not eras._known


def test_c22_a_verdict_is_remembered_and_expires(
    connect: Connect, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For 15 minutes there is no probe; then there is exactly one."""
    for era in ("legacy", "modern"):
        server = host(Polite(era))
        for _ in range(3):
            with connect(server) as client:
                assert said(client) == "x"
                assert client.status().era == era
        assert len(server.of("server/discover")) == 1
        moment = time.monotonic()
        monkeypatch.setattr(eras, "now", lambda moment=moment: moment + eras.TTL + 1)
        for _ in range(2):
            with connect(server) as client:
                assert said(client) == "x"
        assert len(server.of("server/discover")) == 2
        monkeypatch.undo()


def test_c22_a_server_that_is_modern_no_more_is_asked_again_once(
    connect: Connect, host: Host
) -> None:
    """Its first answer says so; that request fails, the next one finds a legacy session."""
    polite = Polite("modern")
    server = host(polite)
    with connect(server) as client:
        assert said(client) == "x"
    polite.era, polite.session = "legacy", "s1"
    polite.on["tools/call"] = lambda seen, conn: (
        polite.behave(seen, conn) if "mcp-session-id" in seen.headers else conn.reply(400, b"no")
    )
    with connect(server, fail_fast=False) as client:
        assert client.status().era == "modern"
        with pytest.raises(HTTPStatusError):
            client.call_tool("echo")
        client.await_ready(5)
        assert client.status().era == "legacy"
        assert said(client, "now") == "now"
    assert len(server.of("server/discover")) == 2
    assert len(server.of("initialize")) == 1


class Older:
    """A server of 2024-11-05: a stream, and an address to post to."""

    def __init__(self, endpoint: str = "/messages?session=1") -> None:
        self.endpoint = endpoint
        self.stream: Conn | None = None
        self.ready = threading.Event()

    def __call__(self, seen: Seen, conn: Conn) -> None:
        if seen.verb == "GET":
            conn.events()
            conn.chunk(f"event: endpoint\ndata: {self.endpoint}\n\n".encode())
            self.stream = conn
            self.ready.set()
            conn.wait_gone(20)
        elif not seen.path.startswith("/messages"):
            conn.reply(405)
        else:
            conn.reply(202, b"Accepted")
            assert self.stream is not None
            if seen.method == "initialize":
                info = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}}
                self.stream.event(result(seen, {**info, "serverInfo": {"name": "o"}}))
            elif seen.method == "tools/call" and seen.body["params"]["name"] != "hang":
                self.stream.event(result(seen, text("old")))


def test_c22_the_older_transport_is_the_last_resort(connect: Connect, host: Host) -> None:
    """`initialize` gets 405: GET finds the endpoint; the next client goes there at once."""
    older = Older()
    server = host(older)
    with connect(server) as client:
        assert client.status().protocol_version == "2024-11-05"
        assert said(client) == "old"
    before = len(server.seen)
    with connect(server) as client:
        assert said(client) == "old"
    assert server.seen[before].verb == "GET"


def test_c23_the_older_transports_endpoint_must_be_at_home(connect: Connect) -> None:
    """Credentials do not go to another origin."""
    with pytest.raises(ConnectFailed, match="another origin"):
        connect(Older("http://127.0.0.2:1/messages")).__enter__()


def test_c22_the_older_streams_end_fails_what_is_open(connect: Connect, host: Host) -> None:
    """At once, and it is connected anew."""
    older = Older()
    server = host(older)
    with connect(server, fail_fast=False, reconnect_delay=0.05) as client:
        future = client.submit_tool("hang")
        assert older.stream is not None
        older.stream.close()
        assert isinstance(future.exception(5), ConnectFailed)
        client.await_ready(5)
        assert said(client) == "old"


def test_c22_a_silent_probe_is_ended_by_initialize(connect: Connect, host: Host) -> None:
    """After `probe_timeout`; the probe's socket is shut down once the era is known."""
    polite = Polite("legacy")
    polite.on["server/discover"] = lambda seen, conn: conn.wait_gone(20)
    server = host(polite)
    with connect(server, probe_timeout=0.1) as client:
        assert client.status().era == "legacy"
        assert server.of("server/discover")[0].conn.closed.wait(5)


def test_c12_pings_of_a_modern_server_do_not_end_each_other(connect: Connect) -> None:
    """They are discovery requests like the probe, and only requests."""
    polite = Polite("modern")
    barrier = threading.Barrier(2)

    def together(seen: Seen, conn: Conn) -> None:
        barrier.wait(5)
        polite.behave(seen, conn)

    with connect(polite) as client:
        polite.on["server/discover"] = together
        problems: list[BaseException] = []

        def ping() -> None:
            try:
                client.ping()
            except MCPError as error:
                problems.append(error)

        for _ in range(5):
            threads = [threading.Thread(target=ping) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert not problems


# ---------------------------------------------------------------- rejected sessions


def forgetful(polite: Polite, *names: str) -> Callable[[Seen, Conn], None]:
    """Serve calls of the current session only."""

    def answer(seen: Seen, conn: Conn) -> None:
        if seen.headers.get("mcp-session-id") == polite.session:
            polite.behave(seen, conn)
        else:
            conn.json({"jsonrpc": "2.0", "id": None, "error": {"code": -1, "message": "?"}}, 404)

    return answer


def test_c17_a_rejected_session_is_established_anew(connect: Connect, host: Host) -> None:
    """That one request fails; the next one works, after one handshake."""
    polite = Polite("legacy")
    polite.on["tools/call"] = forgetful(polite)
    server = host(polite)
    with connect(server) as client:
        assert said(client) == "x"
        polite.session = "s2"
        with pytest.raises(SessionRejected):
            client.call_tool("echo")
        assert said(client, "again") == "again"
    assert len(server.of("initialize")) == 2
    assert "mcp-session-id" not in server.of("initialize")[1].headers


def test_c17_servers_that_say_it_with_400_are_understood(connect: Connect, host: Host) -> None:
    """As the TypeScript SDK's example does; other answers of 400 stay what they are."""
    polite = Polite("legacy")
    words = "Bad Request: No valid session ID provided"
    wrong = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": words}}
    other = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Bad Request"}}
    server = host(polite)
    with connect(server) as client:
        polite.on["tools/call"] = lambda seen, conn: conn.json(wrong, 400)
        with pytest.raises(SessionRejected):
            client.call_tool("echo")
        del polite.on["tools/call"]
        assert said(client) == "x"
        polite.on["tools/call"] = lambda seen, conn: conn.json(other, 400)
        with pytest.raises(RPCError):
            client.call_tool("echo")
    assert len(server.of("initialize")) == 2


def test_c17_many_rejections_are_one_handshake(connect: Connect, host: Host) -> None:
    """Eight requests are rejected together; calls made meanwhile wait, as the session is pooled."""
    polite = Polite("legacy")
    barrier = threading.Barrier(8)

    def together(seen: Seen, conn: Conn) -> None:
        if seen.headers["mcp-session-id"] == "s1":
            barrier.wait(5)
        forgetful(polite)(seen, conn)

    server = host(polite)
    with connect(server) as client:
        polite.on["tools/call"] = together
        polite.session = "s2"
        futures = [client.submit_tool("echo", {"text": "x"}) for _ in range(8)]
        for future in futures:
            with pytest.raises(SessionRejected):
                future.result(5)
        assert said(client) == "x"
    assert len(server.of("initialize")) == 2


def test_c17_retry_rejected_sends_once_more(connect: Connect, host: Host) -> None:
    """The origin has said that it did not run it, so the caller does not notice."""
    polite = Polite("legacy")
    polite.on["tools/call"] = forgetful(polite)
    server = host(polite)
    with connect(server, retry_rejected=True) as client:
        polite.session = "s2"
        assert said(client, "once more") == "once more"
        polite.on["tools/call"] = lambda seen, conn: conn.reply(404)
        with pytest.raises((SessionRejected, ConnectFailed)):
            client.call_tool("echo")


def test_c17_a_404_that_answers_the_request_is_its_error(connect: Connect) -> None:
    """Its id is in the body, so the session lives."""
    polite = Polite("legacy")
    polite.on["tools/call"] = lambda seen, conn: conn.json(failure(seen, -32602), 404)
    with connect(polite) as client:
        with pytest.raises(RPCError):
            client.call_tool("echo")
        assert client.status().state == "ready"


def test_c17_a_modern_404_is_an_rpc_error(connect: Connect) -> None:
    """There is no session to reject."""
    with connect(Polite("modern")) as client, pytest.raises(RPCError) as caught:
        client.request("no/such")
    assert caught.value.code == -32601


def test_c12_stateless_never_pauses(connect: Connect) -> None:
    """While the session is re-established a call is refused."""
    polite = Polite("legacy")
    gate = threading.Event()
    with connect(polite, concurrency="stateless", call_timeout=5.0) as client:
        polite.on["tools/call"] = lambda seen, conn: conn.reply(404)

        def slowly(seen: Seen, conn: Conn) -> None:
            gate.wait(5)
            polite.behave(seen, conn)

        polite.on["initialize"] = slowly
        with pytest.raises(SessionRejected):
            client.call_tool("echo")
        with pytest.raises(NotReady):
            client.call_tool("echo")
        gate.set()


# ---------------------------------------------------------------- 401, recovery


def test_c18_a_401_at_the_handshake_is_terminal(connect: Connect, host: Host) -> None:
    """Nothing is scheduled; callers are told at once, also without `fail_fast`."""
    polite = Polite("legacy")
    polite.on["initialize"] = lambda seen, conn: conn.reply(401)
    server = host(polite)
    client = connect(server, fail_fast=False, reconnect_delay=0.01)
    client.start()
    for _ in range(2):
        with pytest.raises(ConnectFailed, match="401"):
            client.await_ready(10)
    client._session._supervisor.join(5)  # type: ignore[union-attr]
    assert len(server.of("initialize")) == 1
    assert client.status().state == "closed"


def test_c18_a_401_later_fails_that_request_only(connect: Connect) -> None:
    """The session goes on."""
    polite = Polite("legacy")
    with connect(polite) as client:
        polite.on["tools/call"] = lambda seen, conn: conn.reply(401)
        with pytest.raises(HTTPStatusError, match="401"):
            client.call_tool("echo")
        del polite.on["tools/call"]
        assert said(client) == "x"


def test_c15_a_failed_connect_is_retried_with_growing_delays(connect: Connect, host: Host) -> None:
    """1, 2, 4 ... 60 s, in stepped time; a session that answered begins anew."""
    polite = Polite("legacy")
    broken = threading.Event()
    broken.set()

    def initialize(seen: Seen, conn: Conn) -> None:
        conn.reply(500) if broken.is_set() else polite.behave(seen, conn)

    polite.on["initialize"] = initialize
    server = host(polite)
    client = connect(server, fail_fast=False)
    delays: list[float] = []
    done = threading.Event()

    def step(seconds: float) -> None:
        delays.append(seconds)
        if len(delays) == 9:
            broken.clear()
            done.set()

    client._session._backoff._sleep = step
    client.start()
    assert done.wait(10)
    client.await_ready(10)
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert said(client) == "x"
    broken.set()
    polite.on["tools/call"] = lambda seen, conn: conn.reply(404)
    with pytest.raises(SessionRejected):
        client.call_tool("echo")
    while len(delays) < 11:
        threading.Event().wait(0.01)
    assert delays[9:11] == [1, 2]


def test_c15_stop_ends_the_wait_at_once(connect: Connect) -> None:
    """However long the delay is."""
    polite = Polite("legacy")
    polite.on["server/discover"] = lambda seen, conn: conn.reply(403)
    client = connect(polite, reconnect_delay=600.0)
    client.start()
    with pytest.raises(ConnectFailed):
        client.await_ready()
    begun = time.monotonic()
    client.stop()
    assert time.monotonic() - begun < 2


def test_c06_fail_fast_tells_who_comes_while_it_is_closed(connect: Connect) -> None:
    """And keeps the retry, which may succeed."""
    polite = Polite("modern")
    polite.on["server/discover"] = lambda seen, conn: conn.reply(403)
    client = connect(polite, reconnect_delay=0.3)
    client.start()
    for _ in range(2):
        with pytest.raises(ConnectFailed, match="403"):
            client.await_ready(10)
    del polite.on["server/discover"]
    deadline = time.monotonic() + 10
    while client.status().state != "ready" and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    assert said(client) == "x"


# ---------------------------------------------------------------- the window


@pytest.mark.parametrize(("policy", "limit"), [("serialized", 1), ("pooled", 3), ("stateless", 3)])
def test_c12_the_window_over_http(
    connect: Connect, polite: Polite, policy: str, limit: int
) -> None:
    """Never more on the wire than allowed; first come, first served; past the queue: Busy."""
    lock = threading.Lock()
    inside: list[int] = [0, 0]
    order: list[str] = []

    def slow(seen: Seen, conn: Conn) -> None:
        with lock:
            inside[0] += 1
            inside[1] = max(inside)
            order.append(seen.body["params"]["arguments"]["text"])
        threading.Event().wait(0.01)
        with lock:
            inside[0] -= 1
        polite.behave(seen, conn)

    polite.on["tools/call"] = slow
    with connect(polite, concurrency=policy, pool_size=3, queue_limit=20) as client:
        futures = [client.submit_tool("echo", {"text": str(n)}) for n in range(20 + limit)]
        with pytest.raises(Busy):
            client.submit_tool("echo", {"text": "too many"})
        assert [f.result(10).content[0].text for f in futures]  # type: ignore[union-attr]
    assert inside[1] <= limit
    if limit == 1:
        assert order == [str(n) for n in range(21)]


def test_c12_serialized_is_one_at_a_time_also_after_a_time_out(
    connect: Connect, host: Host
) -> None:
    """The socket of the one that timed out is shut down before the next request goes out."""
    polite = Polite("legacy")
    server = host(polite)
    gone: list[bool] = []

    def first(seen: Seen, conn: Conn) -> None:
        gone.append(conn.wait_gone(5))

    with connect(server, concurrency="serialized") as client:
        polite.on["tools/call"] = first
        with pytest.raises(RequestTimeout):
            client.call_tool("echo", timeout=0.2)
        del polite.on["tools/call"]
        assert said(client) == "x"
        note = server.wait("notifications/cancelled")
        assert note.body["params"]["requestId"] == server.of("tools/call")[0].id
        assert server.of("tools/call")[0].conn.closed.wait(5)
        assert gone == [True]


def gone(conn: Conn) -> bool:
    """Whether the client has shut a connection down, read or not."""
    try:
        return conn.sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize(("policy", "limit"), [("serialized", 1), ("pooled", 3)])
def test_c12_c13_the_window_holds_through_rejections_and_time_outs(
    connect: Connect, host: Host, policy: str, limit: int
) -> None:
    """Requests, handshakes and `initialized`, counted where they arrive."""
    polite = Polite("legacy")
    lock = threading.Lock()
    open_now: dict[Conn, str] = {}
    worst: list[list[str]] = []
    chance = random.Random(5)

    def script(seen: Seen, conn: Conn) -> None:
        counted = seen.verb == "POST" and seen.method != "notifications/cancelled"
        if not counted:
            polite(seen, conn)
            return
        with lock:
            # What the client has shut down is not on the wire, even if we have not read that yet.
            live = [name for other, name in open_now.items() if not gone(other)]
            open_now[conn] = seen.method
            if len(live) + 1 > limit:
                worst.append([*live, seen.method])
            dice = chance.random()
        if seen.method == "tools/call" and dice < 0.15:
            conn.wait_gone(5)
        with lock:
            if seen.method == "tools/call" and dice > 0.9:
                polite.session = f"s{dice}"
            del open_now[conn]  # before the reply: after it the client may send at once
        (forgetful(polite) if seen.method == "tools/call" else polite)(seen, conn)

    settings: dict[str, Any] = {"fail_fast": False, "reconnect_delay": 0.01, "pool_size": 3}
    client = connect(host(script), concurrency=policy, **settings)
    client._target.plan.guard._breaker = Breaker(limit=10**6)
    with client:
        outcomes: list[str] = []

        def work() -> None:
            for _ in range(12):
                try:
                    client.call_tool("echo", {"text": "x"}, timeout=0.25)
                    outcomes.append("ok")
                except MCPError as error:
                    outcomes.append(type(error).__name__)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.status().pending == 0
    assert not worst
    # A rejection of a session that is just being established ends it.
    ended = {"NotReady", "ConnectFailed"}
    assert set(outcomes) <= {"ok", "SessionRejected", "RequestTimeout", *ended}
    assert {"ok", "SessionRejected"} <= set(outcomes)


def test_c13_initialized_is_through_before_anything_else(connect: Connect, host: Host) -> None:
    """It is never beside the first request; the session is ready after it."""
    polite = Polite("legacy")
    gate, arrived = threading.Event(), threading.Event()

    def slow(seen: Seen, conn: Conn) -> None:
        arrived.set()
        gate.wait(5)
        conn.reply(202)

    polite.on["notifications/initialized"] = slow
    server = host(polite)
    client = connect(server, concurrency="serialized")
    client.start()
    assert arrived.wait(5)
    assert client.status().state == "initializing"
    with pytest.raises(NotReady):
        client.list_tools()
    gate.set()
    client.await_ready()
    client.list_tools()
    methods = [seen.method for seen in server.seen if seen.verb == "POST"]
    assert methods[-2:] == ["notifications/initialized", "tools/list"]


# ---------------------------------------------------------------- cancelling


def test_c10_cancelling_over_http(connect: Connect, host: Host, polite: Polite) -> None:
    """The socket is shut down before headers came; only a legacy server is told besides."""
    server = host(polite)
    reached = threading.Event()

    def hold(seen: Seen, conn: Conn) -> None:
        reached.set()
        conn.wait_gone(10)

    polite.on["tools/call"] = hold
    with connect(server) as client:
        future = client.submit_tool("echo")
        assert reached.wait(5)
        assert future.cancel()
        assert server.of("tools/call")[0].conn.closed.wait(5)
        if polite.era == "legacy":
            server.wait("notifications/cancelled")
        del polite.on["tools/call"]
        assert said(client) == "x"
        assert client.status().pending == 0
    assert len(server.of("notifications/cancelled")) == (1 if polite.era == "legacy" else 0)


def test_c21_a_closed_idle_connection_is_replaced(connect: Connect, polite: Polite) -> None:
    """As servers do after a few seconds; the caller does not notice."""

    def once(seen: Seen, conn: Conn) -> None:
        polite.behave(seen, conn)
        conn.close()

    polite.on["tools/call"] = once
    with connect(polite) as client:
        for n in range(10):
            assert said(client, str(n)) == str(n)
            threading.Event().wait(0.01)  # for the server's FIN to arrive


def test_c21_a_connection_that_was_idle_for_long_is_not_used(
    connect: Connect, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may be closing it at this very moment."""
    server = host(Polite())
    with connect(server) as client:
        for _ in range(3):
            said(client)
        assert len({seen.conn for seen in server.seen}) == 1
        monkeypatch.setattr("raxol_sync.client.means.IDLE_TIME", -1.0)
        for _ in range(3):
            said(client)
        assert len({seen.conn for seen in server.seen}) == 4


# ---------------------------------------------------------------- the breaker


def test_c24_five_faults_open_the_breaker(
    connect: Connect, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then nothing is sent for 30 s; one probe; a good answer closes it."""
    polite = Polite("modern")
    server = host(polite)
    ahead = [0.0]
    monkeypatch.setattr("raxol_sync.client.guard.now", lambda: time.monotonic() + ahead[0])
    with connect(server) as client:
        assert said(client) == "x"
        polite.on["tools/call"] = lambda seen, conn: conn.reply(503)
        for _ in range(5):
            with pytest.raises(HTTPStatusError):
                client.call_tool("echo")
        with pytest.raises(BreakerOpen) as caught:
            client.call_tool("echo")
        assert 0 < caught.value.retry_after <= 30
        sent = len(server.of("tools/call"))
        ahead[0] = 31.0
        gate, reached = threading.Event(), threading.Event()

        def probe(seen: Seen, conn: Conn) -> None:
            reached.set()
            gate.wait(5)
            polite.behave(seen, conn)

        polite.on["tools/call"] = probe
        future = client.submit_tool("echo", {"text": "probe"})
        assert reached.wait(5)
        with pytest.raises(BreakerOpen):
            client.call_tool("echo")
        gate.set()
        assert future.result(5).content[0].text == "probe"  # type: ignore[union-attr]
        assert len(server.of("tools/call")) == sent + 1
        assert said(client) == "x"


def test_c24_a_cancelled_probe_gives_its_place_back(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next call is the probe."""
    polite = Polite("modern")
    ahead = [0.0]
    monkeypatch.setattr("raxol_sync.client.guard.now", lambda: time.monotonic() + ahead[0])
    with connect(polite) as client:
        assert said(client) == "x"
        polite.on["tools/call"] = lambda seen, conn: conn.reply(429)
        for _ in range(5):
            with pytest.raises(HTTPStatusError):
                client.call_tool("echo")
        ahead[0] = 31.0
        reached = threading.Event()

        def hold(seen: Seen, conn: Conn) -> None:
            reached.set()
            conn.wait_gone(10)

        polite.on["tools/call"] = hold
        future = client.submit_tool("echo")
        assert reached.wait(5)
        assert future.cancel()
        del polite.on["tools/call"]
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:  # the probe's thread may still be ending
            try:
                assert said(client) == "x"
                return
            except BreakerOpen:
                threading.Event().wait(0.01)
        pytest.fail("the probe's place was never given back")


def test_c24_errors_in_json_rpc_do_not_count(connect: Connect) -> None:
    """Any other answer is a good one."""
    polite = Polite("modern")
    polite.on["tools/call"] = lambda seen, conn: conn.json(failure(seen, -32603))
    with connect(polite) as client:
        for _ in range(8):
            with pytest.raises(RPCError):
                client.call_tool("echo")


# ---------------------------------------------------------------- streams


def test_c29_the_get_stream_is_open_before_ready_and_resumed(connect: Connect, host: Host) -> None:
    """Its messages reach the handlers; it goes on after the last id, after `retry`."""
    polite = Polite("legacy")
    told: list[Any] = []
    second = threading.Event()

    def stream(seen: Seen, conn: Conn) -> None:
        if "last-event-id" not in seen.headers:
            conn.events()
            conn.event({"jsonrpc": "2.0", "method": "notifications/a"}, "e1", retry=20)
            conn.event(None, "e2")
            conn.end()
        else:
            conn.events()
            conn.event({"jsonrpc": "2.0", "method": "notifications/b"})
            second.set()
            conn.wait_gone(10)

    polite.on["GET"] = stream
    server = host(polite)
    with connect(server, on_notification=lambda method, params: told.append(method)) as client:
        assert len(server.of("GET")) >= 1
        assert second.wait(5)
        assert said(client) == "x"
    assert told == ["notifications/a", "notifications/b"]
    assert server.of("GET")[1].headers["last-event-id"] == "e2"
    assert server.of("GET")[0].headers["mcp-session-id"] == "s1"


def test_c29_a_serialized_session_opens_it_only_for_a_handler(connect: Connect, host: Host) -> None:
    """Else nothing would be beside its one request."""
    for handlers, expected in (({}, 0), ({"on_log": print}, 1)):
        server = host(Polite("legacy"))
        with connect(server, concurrency="serialized", **handlers):
            pass
        assert len(server.of("GET")) == expected


def test_c29_a_post_stream_that_ends_early_is_resumed(connect: Connect, host: Host) -> None:
    """By GET, with the last event's id; the answer comes there."""
    polite = Polite("legacy")
    calls: list[Seen] = []

    def call(seen: Seen, conn: Conn) -> None:
        calls.append(seen)
        conn.events()
        conn.event(None, "p1", retry=10)
        conn.end()

    def stream(seen: Seen, conn: Conn) -> None:
        if seen.headers.get("last-event-id") == "p1":
            conn.events()
            conn.event(result(calls[0], text("resumed")), "p2")
            conn.end()
        else:
            conn.reply(405)

    polite.on.update({"tools/call": call, "GET": stream})
    with connect(polite) as client:
        assert said(client) == "resumed"


def test_c14_server_requests_over_http(connect: Connect, host: Host) -> None:
    """On a response's stream, before the result; the answer is a POST of its own."""
    polite = Polite("legacy")
    answered = threading.Event()

    def call(seen: Seen, conn: Conn) -> None:
        conn.events()
        ask = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        conn.event({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": ask})
        assert answered.wait(5)
        conn.event(result(seen, text("thanks")))
        conn.end()

    def other(seen: Seen, conn: Conn) -> None:
        conn.reply(202)
        if seen.body.get("id") == "q1":
            answered.set()

    polite.on["tools/call"] = call
    server = host(lambda seen, conn: polite(seen, conn) if seen.method else other(seen, conn))
    with connect(server, on_elicit=lambda message, schema: {}) as client:
        assert said(client) == "thanks"


def test_c14_progress_over_http(connect: Connect, polite: Polite) -> None:
    """All of it, in order, before the call returns."""

    def call(seen: Seen, conn: Conn) -> None:
        token = seen.body["params"]["_meta"]["progressToken"]
        conn.events()
        for n in range(20):
            params = {"progressToken": token, "progress": n}
            conn.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        conn.event(result(seen, text("done")))
        conn.end()

    polite.on["tools/call"] = call
    told: list[float] = []
    with connect(polite) as client:
        assert said(client, progress=lambda done, total, message: told.append(done)) == "done"
        assert told == list(range(20))


def test_c28_input_rounds_over_http(connect: Connect, host: Host) -> None:
    """The retry has a new id, the exact state, the answers and the same headers."""
    polite = Polite("modern")

    def call(seen: Seen, conn: Conn) -> None:
        if "inputResponses" in seen.body["params"]:
            conn.json(result(seen, text("signed")))
        else:
            schema = {"type": "object", "properties": {}}
            params = {"message": "?", "requestedSchema": schema}
            wanted = {"k": {"method": "elicitation/create", "params": params}}
            more = {"resultType": "input_required", "inputRequests": wanted, "requestState": "st"}
            conn.json(result(seen, more))

    polite.on["tools/call"] = call
    server = host(polite)
    with connect(server, on_elicit=lambda message, schema: {}) as client:
        assert said(client) == "signed"
    first, second = server.of("tools/call")
    assert first.id != second.id
    assert second.body["params"]["requestState"] == "st"
    assert second.headers["mcp-name"] == first.headers["mcp-name"] == "echo"
    with connect(server) as client, pytest.raises(InputRequired):
        client.call_tool("echo")
