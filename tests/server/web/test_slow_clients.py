"""Clients that are slow, silent or gone: no thread is held for them, and each has a deadline."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest

from raxol_sync.server.web.connection import FLUSH
from raxol_sync.server.web.ledger import Counts
from raxol_sync.server.web.service import WebServer
from tests.server.web.raw import GET, WAIT, App, Raw, post, serving, until

SOON = 3.0  # seconds; the deadlines of these servers are below one
NEVER = 6 * WAIT  # seconds; the test has failed long before
HALVES: dict[str, bytes] = {
    "a word": b"PO",
    "a request line": b"POST /echo HTTP/1.1\r\n",
    "headers": b"POST /echo HTTP/1.1\r\nHost: h\r\nX: y\r\n",
    "a head": post(b"body")[:-4],
    "a body": post(b"body")[:-1],
    "a chunk": b"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "no last chunk": b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
}


def taking(action: Callable[[], object]) -> float:
    """Seconds that it takes."""
    begun = time.monotonic()
    action()
    return time.monotonic() - begun


def test_half_sent_requests_are_given_up(server: WebServer) -> None:
    """Silence in the middle of a request: 408 after the deadline, not before."""
    with contextlib.ExitStack() as stack:
        begun = time.monotonic()
        raws = [stack.enter_context(Raw(server.port)).send(half) for half in HALVES.values()]
        _is_given_up(raws[0])
        assert 0.3 < time.monotonic() - begun < SOON
        for raw in raws[1:]:
            _is_given_up(raw)
        assert time.monotonic() - begun < SOON


def _is_given_up(raw: Raw) -> None:
    assert raw.answer().status == 408
    assert raw.ended()


def test_a_silent_connection_is_given_up(server: WebServer) -> None:
    """One that never asks gets no answer, and the time of a head."""
    with Raw(server.port) as raw:
        seconds = taking(raw.ended)
        assert 0.3 < seconds < SOON


def test_an_idle_connection_is_given_up_later() -> None:
    """Between requests the idle time counts, which is not the time for a head."""
    with serving(App(), header_timeout=0.2, idle_timeout=0.8) as server, Raw(server.port) as raw:
        assert raw.send(GET).answer().status == 200
        assert 0.7 < taking(raw.ended) < SOON


def test_dripping_requests_are_given_up(server: WebServer) -> None:
    """A byte now and then does not move the deadline, in a head or in a body."""
    begun = time.monotonic()
    with Raw(server.port) as head, Raw(server.port) as body:
        body.send(post(b"x" * 10_000)[:200])
        alive = [head, body]
        while alive:
            for raw in list(alive):
                try:
                    raw.send(b"G")
                except ConnectionError:
                    alive.remove(raw)
            time.sleep(0.02)
            assert time.monotonic() - begun < SOON


def test_a_slow_body_that_is_fast_enough_is_taken(app: App) -> None:
    """What has come gives time for more, at the least rate that is granted."""
    body = b"x" * 30_000
    with serving(app, body_timeout=0.3, min_rate=1000) as server, Raw(server.port) as raw:
        data = post(body)
        for start in range(0, len(data), 6000):
            raw.send(data[start : start + 6000])
            time.sleep(0.15)
        assert raw.answer().body == body


def test_a_refused_client_that_sends_on_may_end(app: App) -> None:
    """Past the time for a silent one: as long as it sends, it will come to read why."""
    with serving(app, max_body=1000, drain_timeout=0.4) as server, Raw(server.port) as raw:
        raw.send(post(b"x" * 600_000)[:100])
        for _ in range(8):
            raw.send(b"x" * 70_000)
            time.sleep(0.15)
        assert raw.answer().status == 413
        assert raw.ended()


def test_a_refused_client_that_drips_is_cut_off(app: App) -> None:
    """A byte now and then buys no time."""
    with serving(app, max_body=1000, drain_timeout=0.4) as server, Raw(server.port) as raw:
        begun = time.monotonic()
        raw.send(post(b"x" * 600_000)[:100])
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - begun < 2 * SOON:
                raw.send(b"x")
                time.sleep(0.02)
        assert 0.3 < time.monotonic() - begun < SOON


def test_half_sent_requests_hold_no_thread(app: App, poller: str) -> None:
    """200 of them, of all kinds, on a server with two threads: others are served meanwhile."""
    with (
        serving(
            app, poller=poller, max_threads=2, header_timeout=NEVER, body_timeout=NEVER
        ) as server,
        contextlib.ExitStack() as stack,
    ):
        for number in range(200):
            half = list(HALVES.values())[number % len(HALVES)]
            stack.enter_context(Raw(server.port)).send(half)
        until(lambda: server.counts().connections == 200)
        with Raw(server.port) as raw:
            for _ in range(20):
                assert raw.send(post(b"good")).answer().body == b"good"
        assert server.counts().threads <= 2


@pytest.mark.parametrize("poller", ["selectors", "epoll"])
def test_1000_idle_connections_cost_no_thread_each(app: App, poller: str) -> None:
    """They stay open and are answered when they ask; while none does there is no thread at all."""
    with (
        serving(app, poller=poller, idle_thread=0.2) as server,
        contextlib.ExitStack() as stack,
    ):
        clients = [stack.enter_context(Raw(server.port)) for _ in range(1000)]
        for client in clients:
            assert client.send(GET).answer().status == 200
        for _ in range(2):
            until(lambda: server.counts() == Counts(connections=1000, threads=0, streams=0))
            for client in clients[::7]:
                assert client.send(post(b"still here")).answer().body == b"still here"


def test_an_answer_that_is_not_read_holds_no_thread(app: App, poller: str) -> None:
    """Its rest waits with the poller, and two threads serve others meanwhile."""
    with (
        serving(app, poller=poller, max_threads=2, write_timeout=NEVER) as server,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(8):
            client = stack.enter_context(Raw(server.port))
            client.send(b"GET /big?8000000 HTTP/1.1\r\nHost: h\r\n\r\n")
        until(lambda: server.counts().connections == 8)
        with Raw(server.port) as raw:
            assert raw.send(GET).answer().status == 200
        assert server.counts().connections >= 8


def test_an_answer_that_is_read_slowly_arrives_whole(server: WebServer) -> None:
    """It does not fit into the system's buffers, and the connection goes on afterwards."""
    with Raw(server.port) as raw:
        raw.send(b"GET /big?9000000 HTTP/1.1\r\nHost: h\r\n\r\n" + post(b"next"))
        held = server._ledger.connections
        until(lambda: any(each.phase is FLUSH for each in list(held.values())))
        assert len(raw.answer().body) == 9_000_000
        assert raw.answer().body == b"next"


@pytest.mark.parametrize("path", [b"/big?50000000", b"/flood"])
def test_a_reader_that_stalls_is_cut_off(app: App, poller: str, path: bytes) -> None:
    """An answer or a stream that nobody reads ends with its deadline; the generator is closed."""
    with (
        serving(app, poller=poller, write_timeout=0.3, min_rate=10**9) as server,
        Raw(server.port) as raw,
    ):
        raw.send(b"GET " + path + b" HTTP/1.1\r\nHost: h\r\n\r\n")
        until(lambda: server.counts().connections == 1)
        assert taking(lambda: until(lambda: server.counts().connections == 0)) < SOON
        if path == b"/flood":
            assert app.event() == "closed"


@pytest.mark.parametrize("path", [b"/big?50000000", b"/lumps"])
def test_a_reader_that_takes_nothing_is_cut_off_soon(app: App, poller: str, path: bytes) -> None:
    """However much there is for it to take, and however slowly that might be."""
    with (
        serving(app, poller=poller, write_timeout=0.3, min_rate=1) as server,
        Raw(server.port) as raw,
    ):
        raw.send(b"GET " + path + b" HTTP/1.1\r\nHost: h\r\n\r\n")
        until(lambda: server.counts().connections == 1)
        assert taking(lambda: until(lambda: server.counts().connections == 0)) < SOON


def test_a_reader_that_trickles_is_cut_off(app: App, poller: str) -> None:
    """A little now and then is not enough, for a stream either."""
    with (
        serving(app, poller=poller, write_timeout=0.3, min_rate=10**9) as server,
        Raw(server.port) as raw,
    ):
        raw.send(b"GET /lumps HTTP/1.1\r\nHost: h\r\n\r\n")
        end = time.monotonic() + SOON
        while app.events.empty():
            assert time.monotonic() < end
            with contextlib.suppress(ConnectionError):
                raw.sock.recv(200_000)
            time.sleep(0.01)


def test_a_body_has_time_of_its_own(server: WebServer) -> None:
    """A slow head takes nothing from it."""
    with Raw(server.port) as raw:
        data = post(b"body")
        raw.send(data[:20])
        time.sleep(0.25)
        raw.send(data[20:-2])
        time.sleep(0.25)
        assert raw.send(data[-2:]).answer().body == b"body"


STAGES: dict[str, bytes] = {
    "before a request": b"",
    **HALVES,
    "after a request": post(b"whole"),
    "while it runs": post(path=b"/hold"),
    "while its answer is written": b"GET /big?9000000 HTTP/1.1\r\nHost: h\r\n\r\n",
    "in a stream": b"GET /stream HTTP/1.1\r\nHost: h\r\n\r\n",
    "in a flood": b"GET /flood HTTP/1.1\r\nHost: h\r\n\r\n",
    "before 100 Continue": post(b"abc", b"Expect: 100-continue")[:-3],
}


@pytest.mark.parametrize("how", ["closes", "resets"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_client_that_goes_is_forgotten(
    app: App, server: WebServer, stage: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """At every stage: the connection, its descriptor and its thread are given back at once.

    It is nobody's fault, and nothing to log.
    """
    raw = Raw(server.port)
    raw.send(STAGES[stage])
    until(lambda: server.counts().connections == 1)
    if "hold" in STAGES[stage].decode("latin-1"):
        assert app.event() == "held"
    if how == "closes":
        raw.close()
    else:
        raw.reset()
    if stage == "while it runs":
        assert app.event() == "gone"
        app.release.set()
    assert taking(lambda: until(lambda: server.counts().connections == 0)) < SOON
    with Raw(server.port) as other:
        assert other.send(GET).answer().status == 200
    assert not caplog.records


def test_an_abandoned_request_is_noticed_at_once(app: App, server: WebServer) -> None:
    """The application is told while it has nothing to write."""
    for _ in range(3):
        raw = Raw(server.port)
        raw.send(post(path=b"/hold"))
        assert app.event() == "held"
        raw.close()
        assert app.event() == "gone"
    app.release.set()


def test_who_watches_late_is_told_at_once(app: App, server: WebServer) -> None:
    """A client that has gone before the application asks."""
    raw = Raw(server.port)
    raw.send(b"GET /late HTTP/1.1\r\nHost: h\r\n\r\n")
    assert app.event() == "begun"
    raw.close()
    app.release.set()
    assert app.event() == "gone"


def test_nobody_is_told_after_the_answer(app: App, server: WebServer) -> None:
    """The callback belongs to one answer: the connection's end after it is not its business."""
    raw = Raw(server.port)
    app.release.set()
    assert raw.send(post(path=b"/hold")).answer().body == b"released"
    assert app.event() == "held"
    raw.close()
    until(lambda: server.counts().connections == 0)
    assert app.events.empty()
