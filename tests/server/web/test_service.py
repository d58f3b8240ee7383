"""Beginning and end, addresses, the bound on connections, and a system that has nothing to give."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
import time
from typing import Any

import pytest

from raxol_sync.server.web import sockets
from raxol_sync.server.web.connection import PARKED, QUEUED
from raxol_sync.server.web.service import WebServer
from tests.server.web.raw import GET, POLLERS, WAIT, App, Raw, descriptors, post, serving, until


def test_port_0_takes_a_free_port(app: App) -> None:
    """It is told, and serves."""
    with serving(app) as server, Raw(server.port) as raw:
        assert server.port > 0
        assert server.addresses == [("127.0.0.1", server.port)]
        assert raw.send(GET).answer().status == 200


def test_a_port_that_was_just_used_can_be_had(app: App) -> None:
    """Connections that linger in the system do not keep it (SO_REUSEADDR)."""
    with serving(app) as server:
        port = server.port
        with Raw(port) as raw:
            assert raw.send(post(b"x", b"Connection: close")).answer().status == 200
            assert raw.ended()
    again = WebServer(app, "127.0.0.1", port)
    again.start()
    assert again.stop()


def test_a_port_that_is_taken_is_an_error(app: App) -> None:
    """The second server says so, and leaves nothing behind."""
    with serving(app) as server:
        before = descriptors()
        second = WebServer(app, "127.0.0.1", server.port)
        with pytest.raises(OSError) as caught:
            second.start()
        assert caught.value.errno == errno.EADDRINUSE
        assert descriptors() == before
        assert second.stop()


def test_an_unknown_host_is_an_error(app: App) -> None:
    """Its name cannot be looked up."""
    server = WebServer(app, "no.such.host.invalid")
    with pytest.raises(OSError):
        server.start()


def _idle(server: WebServer) -> bool:
    """Whether all its connections wait for their clients, without a thread."""
    return all(each.state is PARKED for each in list(server._ledger.connections.values()))


def _waits(server: WebServer, seconds: float) -> bool:
    """Whether a request has waited for a thread for so long."""
    held = [each for each in list(server._ledger.connections.values()) if each.state is QUEUED]
    return any(time.monotonic() - each.queued > seconds for each in held)


def _has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as sock:
        sock.bind(("::1", 0))
        return True
    return False


@pytest.mark.parametrize("address", ["127.0.0.1", *(["::1"] if _has_ipv6() else [])])
def test_an_address_of_either_kind(app: App, address: str) -> None:
    """It is served at, and told."""
    with serving(app, host=address) as server, Raw(server.port, host=address) as raw:
        told = raw.send(GET.replace(b"echo", b"environ")).answer().json
        assert (told["SERVER_NAME"], told["REMOTE_ADDR"]) == (address, address)


@pytest.mark.parametrize("host", ["", "localhost"])
def test_all_addresses_have_the_same_port(app: App, host: str) -> None:
    """Each of them answers."""
    with serving(app, host=host) as server:
        assert len({port for _, port in server.addresses}) == 1
        for address, _ in server.addresses:
            reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)
            with Raw(server.port, host=reached) as raw:
                assert raw.send(GET).answer().status == 200


def test_start_and_stop_are_for_once(app: App) -> None:
    """A second start is refused; stop may be called before, and again."""
    server = WebServer(app)
    server.start()
    with pytest.raises(RuntimeError):
        server.start()
    assert server.stop()
    assert server.stop()
    with pytest.raises(RuntimeError):
        server.start()
    never = WebServer(app)
    assert never.stop()
    with pytest.raises(RuntimeError):
        never.start()


def test_stop_from_many_threads(app: App) -> None:
    """One does it, all return when it is done."""
    with serving(app) as server:
        raw = Raw(server.port).send(post(path=b"/hold"))
        assert app.event() == "held"
        ended: list[bool] = []
        threads = [threading.Thread(target=lambda: ended.append(server.stop(5))) for _ in range(5)]
        for thread in threads:
            thread.start()
        app.release.set()
        for thread in threads:
            thread.join()
        assert ended == [True] * 5
        raw.close()


def test_a_failing_end_does_not_keep_the_server(app: App, caplog: pytest.LogCaptureFixture) -> None:
    """What is called at the end may raise; the server ends all the same."""
    with serving(app, on_stop=lambda: 1 // 0) as server:
        assert server.stop()
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("lobby", [0, 64])
def test_connections_past_the_bound_are_told(
    app: App, poller: str, lobby: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 and the end, while those before are served; a place that is free is given again."""
    monkeypatch.setattr("raxol_sync.server.web.service._SHED_AFTER", 6 * WAIT)
    monkeypatch.setattr("raxol_sync.server.web.service._PATIENCE", 0.05)
    monkeypatch.setattr("raxol_sync.server.web.service._LOBBY", lobby)
    with (
        serving(app, poller=poller, max_connections=3) as server,
        contextlib.ExitStack() as stack,
    ):
        held = [stack.enter_context(Raw(server.port)) for _ in range(3)]
        for raw in held:
            assert raw.send(GET).answer().status == 200
        until(lambda: _idle(server))  # but not for long enough to make room
        for _ in range(5):
            with Raw(server.port) as refused:
                answer = refused.answer()
                assert (answer.status, answer.headers["retry-after"]) == (503, "1")
                assert refused.ended()
        assert held[0].send(GET).answer().status == 200
        held[0].close()
        until(lambda: server.counts().connections == 2)
        with Raw(server.port) as raw:
            assert raw.send(GET).answer().status == 200


def test_a_silent_connection_makes_room(
    app: App, poller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the bound, the one that has been idle for longest is closed for a new one."""
    monkeypatch.setattr("raxol_sync.server.web.service._SHED_AFTER", 0.0)
    with (
        serving(app, poller=poller, max_connections=2) as server,
        Raw(server.port) as first,
        Raw(server.port) as second,
    ):
        for raw in (first, second):
            assert raw.send(GET).answer().status == 200
        until(lambda: _idle(server))
        with Raw(server.port) as third:
            assert third.send(GET).answer().status == 200
        ended = 0
        for raw in (first, second):
            try:
                assert raw.send(GET).answer().status == 200
            except ConnectionError:
                ended += 1
        assert ended == 1


@pytest.mark.parametrize("poller", sorted(POLLERS))
@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOMEM])
def test_a_system_without_descriptors_is_survived(
    app: App, poller: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Accepting rests for a while; connections that are there go on; then new ones are taken."""
    monkeypatch.setattr("raxol_sync.server.web.service._REST", 0.1)
    scarce = threading.Event()
    told = threading.Event()
    real = sockets.accepted

    def accepted(listener: socket.socket, most: int) -> Any:
        if scarce.is_set():
            told.set()
            raise OSError(number, os.strerror(number))
        return real(listener, most)

    monkeypatch.setattr("raxol_sync.server.web.service.accepted", accepted)
    with serving(app, poller=poller) as server, contextlib.ExitStack() as stack:
        old = [stack.enter_context(Raw(server.port)) for _ in range(3)]
        for raw in old:
            assert raw.send(GET).answer().status == 200
        scarce.set()
        new = stack.enter_context(Raw(server.port)).send(GET)
        assert told.wait(10)
        assert old[-1].send(GET).answer().status == 200
        scarce.clear()
        assert new.answer().status == 200


def test_real_descriptors_run_out(app: App) -> None:
    """With a limit of the system's own: the server goes on once there are descriptors again."""
    resource = pytest.importorskip("resource")
    with serving(app) as server, contextlib.ExitStack() as stack:
        first = stack.enter_context(Raw(server.port))
        assert first.send(GET).answer().status == 200
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        top = max(int(name) for name in os.listdir("/proc/self/fd")) + 12
        resource.setrlimit(resource.RLIMIT_NOFILE, (top, before[1]))
        try:
            clients = [socket.socket() for _ in range(6)]
            for client in clients:
                client.connect(("127.0.0.1", server.port))
            fillers = []
            with contextlib.suppress(OSError):
                while True:
                    fillers.append(os.open(os.devnull, os.O_RDONLY))
            clients[-1].sendall(GET)
            for filler in fillers:
                os.close(filler)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for client in clients:
            client.close()
        with Raw(server.port) as raw:
            assert raw.send(GET).answer().status == 200


def test_requests_that_wait_too_long_for_a_thread_are_told(app: App) -> None:
    """All threads are taken: 503 and Retry-After after the queue's time, and then all is well."""
    with serving(app, max_threads=1, queue_timeout=0.3) as server:
        with Raw(server.port) as first, Raw(server.port) as second:
            first.send(post(path=b"/hold"))
            assert app.event() == "held"
            second.send(GET)
            until(lambda: _waits(server, 0.3))
            app.release.set()
            assert first.answer().body == b"released"
            answer = second.answer()
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        with Raw(server.port) as third:
            assert third.send(GET).answer().status == 200


def test_busy_clients_take_turns(app: App) -> None:
    """With one thread, a client that has asked for a hundred things lets another one through."""
    order: list[str] = []

    def noting(environ: dict[str, Any], start_response: Any) -> Any:
        order.append(environ["REMOTE_PORT"])
        return app(environ, start_response)

    with (
        serving(noting, max_threads=1) as server,
        Raw(server.port) as greedy,
        Raw(server.port) as other,
    ):
        greedy.send(post(path=b"/hold") + post(b"more") * 100)
        assert app.event() == "held"
        other.send(GET)
        until(lambda: server._crew.busy)
        app.release.set()
        assert other.answer().status == 200
        assert greedy.answer().body == b"released"
        assert [greedy.answer().body for _ in range(100)] == [b"more"] * 100
        assert order.index(str(other.sock.getsockname()[1])) < 3


def test_the_access_log_has_a_line_for_each_request(app: App) -> None:
    """Method, path, status, size, time; no query, no header, nothing that moves a cursor."""
    lines: list[str] = []
    with serving(app, log=lines.append) as server:
        with Raw(server.port) as raw:
            raw.send(post(b"12345", b"Authorization: Bearer secret", path=b"/echo?key=secret"))
            assert raw.answer().status == 200
            raw.send(b'GET /%1b[2J"\\ HTTP/1.1\r\nHost: h\r\n\r\n').answer()
            raw.send(b"nonsense\x1b[2J\r\n\r\n").answer()
        with Raw(server.port) as raw:
            url = b"http://user:secret@127.0.0.1/echo#secret"
            raw.send(b"GET " + url + b" HTTP/1.0\r\n\r\n").answer()
        with Raw(server.port) as raw:
            raw.send(b"HEAD /" + b"a" * 500 + b" HTTP/1.0\r\n\r\n").answer("HEAD")
    assert [line.rpartition(" ")[0] for line in lines[:2]] == [
        '127.0.0.1 "POST /echo HTTP/1.1" 200 5',
        '127.0.0.1 "GET /%1b[2J\\"\\\\ HTTP/1.1" 404 0',
    ]
    assert lines[2] == '127.0.0.1 "-" 400 this is no well-formed HTTP/1.1 request'
    assert '"GET /echo HTTP/1.0"' in lines[3] or '"-" 400' in lines[3]
    assert lines[4].startswith(f'127.0.0.1 "HEAD /{"a" * 199}... HTTP/1.0" 404 0 ')
    assert lines[0].endswith("ms")
    assert "secret" not in "".join(lines)


def test_a_log_that_fails_costs_nothing(app: App) -> None:
    """Its error is not the client's."""

    def fail(line: str) -> None:
        raise OSError("the disk is full")

    with serving(app, log=fail) as server, Raw(server.port) as raw:
        for _ in range(3):
            assert raw.send(GET).answer().status == 200
