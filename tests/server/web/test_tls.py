"""HTTPS: the handshake blocks nobody, and the rest is as without it."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from pathlib import Path

import pytest

from raxol_sync.server.web.connection import Connection
from raxol_sync.server.web.limits import Limits
from raxol_sync.server.web.parsing import Memory
from tests.server.web.raw import GET, App, Raw, post, serving, until
from tests.server.web.test_streams import OPEN, chunk, head

CERTIFICATE = Path(__file__).with_name("localhost.pem")


@pytest.fixture(scope="module")
def ours() -> ssl.SSLContext:
    """The server's side."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


@pytest.fixture(scope="module")
def theirs() -> ssl.SSLContext:
    """The client's side."""
    return ssl.create_default_context(cafile=str(CERTIFICATE))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_requests_over_tls(
    app: App, poller: str, ours: ssl.SSLContext, version: ssl.TLSVersion
) -> None:
    """Small and large bodies both ways, many in a row, and the scheme."""
    theirs = ssl.create_default_context(cafile=str(CERTIFICATE))
    theirs.minimum_version = theirs.maximum_version = version
    with (
        serving(app, poller=poller, ssl_context=ours) as server,
        Raw(server.port, tls=theirs) as raw,
    ):
        for size in (0, 10, 16_384, 16_385, 200_000, 3_000_000):
            assert raw.send(post(b"x" * size)).answer().body == b"x" * size
        told = raw.send(GET.replace(b"echo", b"environ")).answer().json
        assert told["wsgi.url_scheme"] == "https"
        raw.send(b"".join(post(b"%d" % number) for number in range(100)))
        for number in range(100):
            assert raw.answer().body == b"%d" % number


def test_a_request_in_pieces_over_tls(
    app: App, poller: str, ours: ssl.SSLContext, theirs: ssl.SSLContext
) -> None:
    """One record a byte."""
    with (
        serving(app, poller=poller, ssl_context=ours) as server,
        Raw(server.port, tls=theirs) as raw,
    ):
        for byte in post(b"slow"):
            raw.send(bytes([byte]))
        assert raw.answer().body == b"slow"


def test_an_answer_that_is_read_late_over_tls(
    app: App, poller: str, ours: ssl.SSLContext, theirs: ssl.SSLContext
) -> None:
    """The rest of it waits with the poller, and goes on where it stopped."""
    with (
        serving(app, poller=poller, ssl_context=ours, max_threads=1) as server,
        Raw(server.port, tls=theirs) as raw,
        Raw(server.port, tls=theirs) as other,
    ):
        raw.send(b"GET /big?9000000 HTTP/1.1\r\nHost: h\r\n\r\n" + GET)
        assert other.send(GET).answer().status == 200
        assert len(raw.answer().body) == 9_000_000
        assert raw.answer().status == 200


def test_stalled_handshakes_block_nobody(
    app: App, poller: str, ours: ssl.SSLContext, theirs: ssl.SSLContext
) -> None:
    """50 clients that begin one and stop; each is given up after its time."""
    with (
        serving(app, poller=poller, ssl_context=ours, max_threads=2, header_timeout=3.0) as server,
        contextlib.ExitStack() as stack,
    ):
        stalled = [stack.enter_context(Raw(server.port)) for _ in range(50)]
        for raw in stalled:
            raw.send(b"\x16\x03\x01\x02\x00\x01")
        until(lambda: server.counts().connections == 50)
        with Raw(server.port, tls=theirs) as raw:
            assert raw.send(GET).answer().status == 200
            assert server.counts().connections > 50  # none of them had to go for that
        assert all(raw.ended() for raw in stalled)


def test_what_is_no_tls_is_closed(app: App, ours: ssl.SSLContext, theirs: ssl.SSLContext) -> None:
    """HTTP without TLS, noise, a client that trusts nobody: the connection ends, others go on."""
    with serving(app, ssl_context=ours) as server:
        with Raw(server.port) as raw:
            raw.send(GET)
            with contextlib.suppress(ConnectionResetError):
                while raw.sock.recv(1000):  # an alert may come first
                    continue
        with pytest.raises(ssl.SSLError):
            Raw(server.port, tls=ssl.create_default_context())
        with Raw(server.port, tls=theirs) as raw:
            assert raw.send(GET).answer().status == 200


@pytest.mark.parametrize("kind", ["closes", "says goodbye"])
def test_a_client_that_leaves_a_stream_over_tls(
    app: App, ours: ssl.SSLContext, theirs: ssl.SSLContext, kind: str
) -> None:
    """It is noticed at once where epoll tells; nothing is written meanwhile."""
    with serving(app, ssl_context=ours, grace=0.5) as server:
        raw = Raw(server.port, tls=theirs).send(OPEN)
        assert head(raw) == b"HTTP/1.1 200 OK\r\n"
        assert chunk(raw) == b": open\n"
        if kind == "says goodbye":
            assert isinstance(raw.sock, ssl.SSLSocket)
            raw.sock.setblocking(False)
            with contextlib.suppress(ssl.SSLWantReadError, BlockingIOError):
                raw.sock.unwrap()
        raw.close()
        assert app.event() == "closed"


def test_the_end_of_a_connection_is_told(
    app: App, ours: ssl.SSLContext, theirs: ssl.SSLContext
) -> None:
    """The server says goodbye (RFC 8446, 6.1): nothing was cut off by a stranger."""
    with (
        serving(app, ssl_context=ours) as server,
        Raw(server.port, tls=theirs) as raw,
    ):
        raw.send(post(b"x", b"Connection: close"))
        assert raw.answer().body == b"x"
        assert raw.sock.recv(1) == b""  # SSLEOFError without it
        assert isinstance(raw.sock, socket.socket)


def test_a_connection_that_is_broken_off_never_goes_on_in_plain_text(
    ours: ssl.SSLContext, theirs: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even for whoever writes to it at that very moment."""
    plain, outside = socket.socketpair()
    with contextlib.closing(outside):
        pair = ours.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        connection = Connection(pair, {}, "here", Limits(), lambda size: True, Memory())
        outside.settimeout(10)
        talk = threading.Thread(target=_greet, args=(theirs, outside), daemon=True)
        talk.start()
        while not connection.shake():
            connection.wait(write=False, seconds=10)
        talk.join(10)
        shutdown = socket.socket.shutdown

        def write_first(self: socket.socket, how: int) -> None:
            connection.send(b"a secret")
            shutdown(self, how)

        monkeypatch.setattr(socket.socket, "shutdown", write_first)
        connection.abort()
        monkeypatch.undo()
        connection.close()
        received = b""
        while data := outside.recv(4096):
            received += data
        assert received
        assert b"secret" not in received


def _greet(theirs: ssl.SSLContext, sock: socket.socket) -> None:
    """Do the client's side of a handshake by hand, so that the socket stays readable as it is."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = theirs.wrap_bio(incoming, outgoing, server_hostname="localhost")
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            sock.sendall(outgoing.read())
            incoming.write(sock.recv(65536))
        else:
            sock.sendall(outgoing.read())
            return
