"""Event streams: a bound and threads of their own, and their end."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

from raxol_sync.server.web.service import WebServer
from tests.server.web.raw import GET, App, Raw, post, serving, until

GRACE = 2.0  # seconds that a busy machine may take over a deadline
OPEN = b"GET /stream HTTP/1.1\r\nHost: h\r\n\r\n"
OWN = b"GET /stream?own HTTP/1.1\r\nHost: h\r\n\r\n"


def chunk(raw: Raw) -> bytes:
    """Read one chunk of a chunked answer."""
    size = int(raw.line(), 16)
    found = b""
    while len(found) < size + 2:
        found += raw.sock.recv(size + 2 - len(found))
    return found[:-2]


def head(raw: Raw) -> bytes:
    """Read the head of an answer; return the status line."""
    status = raw.line()
    while raw.line() != b"\r\n":
        continue
    return status


def test_each_event_goes_out_at_once(app: App, raw: Raw) -> None:
    """What the application yields is on the wire before it is asked for more."""
    raw.send(OWN)
    assert head(raw) == b"HTTP/1.1 200 OK\r\n"
    assert chunk(raw) == b": open\n"
    for event in (b"data: 1\n\n", b"data: 2\n\n", b"d" * 300_000):
        app.feeds.put(event)
        assert chunk(raw) == event
    app.feeds.put(None)
    assert chunk(raw) == b""
    assert app.event() == "closed"
    assert raw.send(post(b"next")).answer().body == b"next"


def test_streams_never_take_the_threads_of_requests(app: App, poller: str) -> None:
    """With two threads for requests, 30 open streams leave both to others."""
    with (
        serving(app, poller=poller, max_threads=2, max_streams=30) as server,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(30):
            raw = stack.enter_context(Raw(server.port)).send(OPEN)
            assert head(raw) == b"HTTP/1.1 200 OK\r\n"
        assert server.counts().streams == 30
        with Raw(server.port) as first, Raw(server.port) as second:
            first.send(post(path=b"/hold"))
            assert app.event() == "held"
            for _ in range(10):
                assert second.send(GET).answer().status == 200
            app.release.set()
            assert first.answer().body == b"released"
        assert server.counts().threads <= 32


def test_streams_past_the_bound_are_turned_down(app: App, poller: str) -> None:
    """The application is told, answers 503, and there is a place again once a client has gone."""
    with serving(app, poller=poller, max_streams=2) as server:
        first, second, third = (Raw(server.port) for _ in range(3))
        for raw in (first, second):
            assert head(raw.send(OPEN)) == b"HTTP/1.1 200 OK\r\n"
        answer = third.send(OPEN).answer()
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        first.close()
        assert app.event() == "closed"
        until(lambda: server.counts().streams == 1)
        assert head(third.send(OPEN)) == b"HTTP/1.1 200 OK\r\n"
        second.close()
        third.close()


def test_a_client_that_leaves_an_idle_stream_is_noticed_at_once(
    app: App, server: WebServer
) -> None:
    """Nothing is written to it, and still its generator is closed."""
    for leave in ("close", "reset", "half_close"):
        raw = Raw(server.port)
        assert head(raw.send(OPEN)) == b"HTTP/1.1 200 OK\r\n"
        assert chunk(raw) == b": open\n"
        getattr(raw, leave)()
        assert app.event() == "closed"
        raw.close()


def test_threads_of_streams_end_with_them(app: App) -> None:
    """After many streams the crew is as small as before."""
    with serving(app, max_threads=2, idle_thread=0.1) as server:
        raws = [Raw(server.port).send(OPEN) for _ in range(50)]
        until(lambda: server.counts().streams == 50)
        for raw in raws:
            raw.close()
        until(lambda: server.counts().streams == 0)
        until(lambda: server.counts().threads == 0)


def test_spare_threads_do_not_wait_to_end(app: App) -> None:
    """What was lent to streams goes with them, however long idle threads stay."""
    with serving(app, max_threads=2, idle_thread=60) as server:
        raws = [Raw(server.port).send(OPEN) for _ in range(20)]
        until(lambda: server.counts().streams == 20)
        for raw in raws:
            raw.close()
        until(lambda: server.counts().streams == 0)
        until(lambda: server.counts().threads <= 3)  # the last to see that may be one too many


def test_stop_ends_streams_by_the_application(app: App, poller: str) -> None:
    """What is called at the end ends them in order: the client reads the end of the stream."""
    with serving(app, poller=poller, on_stop=lambda: app.feeds.put(None)) as server:
        raw = Raw(server.port)
        assert head(raw.send(OWN)) == b"HTTP/1.1 200 OK\r\n"
        assert chunk(raw) == b": open\n"
        assert server.stop(5.0)  # nothing had to be broken off
        assert chunk(raw) == b""
        raw.close()


def test_stop_breaks_off_streams_that_nobody_ends(app: App, poller: str) -> None:
    """Within the grace time, by telling who watches."""
    with serving(app, poller=poller) as server:
        raws = [Raw(server.port) for _ in range(5)]
        for raw in raws:
            assert head(raw.send(OPEN)) == b"HTTP/1.1 200 OK\r\n"
        begun = time.monotonic()
        assert not server.stop(0.5)
        assert time.monotonic() - begun < 0.5 + GRACE
        for raw in raws:
            raw.close()


def test_stop_breaks_off_streams_that_are_not_read(app: App, poller: str) -> None:
    """A thread that waits for such a client is woken."""
    with serving(app, poller=poller) as server:
        raw = Raw(server.port).send(b"GET /flood HTTP/1.1\r\nHost: h\r\n\r\n")
        until(lambda: server.counts().threads == 1)
        begun = time.monotonic()
        assert not server.stop(0.5)
        assert time.monotonic() - begun < 0.5 + GRACE
        assert app.event() == "closed"
        raw.close()


def test_stop_lets_requests_end(app: App, poller: str) -> None:
    """Those that run are answered, and told that the connection ends; idle clients see the end."""
    with serving(app, poller=poller) as server:
        running, idle = Raw(server.port), Raw(server.port)
        assert idle.send(GET).answer().status == 200
        running.send(post(path=b"/hold"))
        assert app.event() == "held"
        ended: list[bool] = []
        stopper = threading.Thread(target=lambda: ended.append(server.stop(5.0)))
        stopper.start()
        assert idle.ended()
        app.release.set()
        answer = running.answer()
        assert (answer.body, answer.headers["connection"]) == (b"released", "close")
        stopper.join()
        assert ended == [True]
        assert app.events.empty()  # nobody was told that the client had gone
        for raw in (running, idle):
            raw.close()


def test_stop_does_not_wait_for_an_application_that_hangs(caplog: Any) -> None:
    """It says which thread it leaves behind."""
    hangs, release = threading.Event(), threading.Event()

    def app(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        hangs.set()
        release.wait(10)
        start_response("200 OK", [])
        yield b""

    server = WebServer(app)
    server.start()
    with Raw(server.port) as raw:
        raw.send(GET)
        assert hangs.wait(10)
        begun = time.monotonic()
        assert not server.stop(0.3)
        assert time.monotonic() - begun < 0.3 + GRACE
        assert "has not returned in: raxol-sync-http-1" in caplog.text
        release.set()
    until(lambda: server.counts().connections == 0)
