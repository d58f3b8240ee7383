"""Requests that are not taken: each gets its status, the connection ends, others are served."""

from __future__ import annotations

import contextlib
import itertools
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.server.web import parsing
from raxol_sync.server.web.limits import Limits
from raxol_sync.server.web.parsing import Memory, Parser, RefusedError
from raxol_sync.server.web.service import WebServer
from tests.server.web.raw import GET, App, Raw, post, serving, until

HOST = b"Host: h\r\n"
CHUNKED = b"POST /echo HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n"

REFUSED: dict[str, tuple[bytes, int]] = {
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 tls\r\n\r\n", 400),
    "a word": (b"hello\r\n\r\n", 400),
    "no version": (b"GET /\r\n\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "HTTP/3.0": (b"GET / HTTP/3.0\r\n" + HOST + b"\r\n", 505),
    "a space in the target": (b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "bytes in the target": (b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a NUL in the target": (b"GET /\0 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a relative target": (b"GET echo HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "another scheme": (b"GET ftp://h/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "a tunnel": (b"CONNECT h:443 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "no Host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two Hosts": (b"GET / HTTP/1.1\r\n" + HOST + b"Host: g\r\n\r\n", 400),
    "a long target": (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
    "an endless target": (b"GET /" + b"a" * 70_000, 414),
    "a long header": (b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000 + b"\r\n" + HOST + b"\r\n", 431),
    "an endless header": (b"GET / HTTP/1.1\r\nX: " + b"a" * 140_000, 431),
    "many headers": (b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 100 + b"\r\n", 431),
    "endless headers": (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000, 431),
    "a space before the colon": (b"GET / HTTP/1.1\r\n" + HOST + b"A : b\r\n\r\n", 400),
    "no colon": (b"GET / HTTP/1.1\r\n" + HOST + b"nonsense\r\n\r\n", 400),
    "no name": (b"GET / HTTP/1.1\r\n" + HOST + b": b\r\n\r\n", 400),
    "a NUL in a value": (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\0c\r\n\r\n", 400),
    "a bare CR in a value": (b"GET / HTTP/1.1\r\n" + HOST + b"A: b\rC: d\r\n\r\n", 400),
    "bytes in a name": (b"GET / HTTP/1.1\r\n" + HOST + b"\xe9: b\r\n\r\n", 400),
    "lengths that contradict": (post(b"", b"Content-Length: 5"), 400),
    "lengths in one header": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1, 2\r\n\r\n", 400),
    "a negative length": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", 400),
    "a length with a sign": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: +1\r\n\r\n", 400),
    "a length in hex": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 0x1\r\n\r\n", 400),
    "a length of 400 digits": (
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: " + b"9" * 400 + b"\r\n\r\n",
        400,
    ),
    "a length of 18 digits": (
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: " + b"9" * 18 + b"\r\n\r\n",
        413,
    ),
    "length and chunks": (CHUNKED + b"Content-Length: 3\r\n\r\n0\r\n\r\n", 400),
    "chunks and length": (post(b"", b"Transfer-Encoding: chunked") + b"0\r\n\r\n", 400),
    "chunks in HTTP/1.0": (
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "chunks twice": (CHUNKED + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
    "another coding": (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    "two codings": (
        b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        501,
    ),
    "a chunk without a size": (CHUNKED + b"\r\nxyz\r\n", 400),
    "a chunk of size -1": (CHUNKED + b"\r\n-1\r\nx\r\n", 400),
    "a chunk that is longer": (CHUNKED + b"\r\n3\r\nabcd\r\n0\r\n\r\n", 400),
    "a chunk of 2**72 bytes": (CHUNKED + b"\r\n" + b"f" * 18 + b"\r\nabc", 413),
    "an endless chunk header": (CHUNKED + b"\r\n1;" + b"a" * 70_000, 431),
    "an unknown expectation": (post(b"", b"Expect: 200-ok"), 417),
    "a body too long": (post(b"x" * 100_001), 413),
    "chunks too long": (CHUNKED + b"\r\n" + b"4000\r\n" + b"x" * 0x4000 + b"\r\n", 413),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_bad_request_gets_its_status(app: App, server: WebServer, what: str) -> None:
    """The status, a reason, the end of the connection; and another client is served."""
    data, status = REFUSED[what]
    if what == "chunks too long":
        data = CHUNKED + b"\r\n" + (b"4000\r\n" + b"x" * 0x4000 + b"\r\n") * 7
    if what == "a chunk of 2**72 bytes":
        data += b"x" * 100_000
    with Raw(server.port) as raw, Raw(server.port) as other:
        raw.send(data if "endless" in what else data + GET)
        answer = raw.answer()
        assert (answer.status, answer.headers["connection"]) == (status, "close")
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert 10 < len(answer.body) < 100
        assert other.send(GET).answer().status == 200
        assert raw.ended()  # what followed was not taken for a request


def test_a_refusal_does_not_repeat_what_was_sent(raw: Raw) -> None:
    """What was sent may be a secret."""
    answer = raw.send(b"GET / HTTP/1.1\r\n" + HOST + b"tok\0en-1234\r\n\r\n").answer()
    assert answer.status == 400
    assert b"1234" not in answer.body


def test_identical_lengths_are_one(raw: Raw) -> None:
    """RFC 9110, 8.6 lets a server take them as one value: no parser reads them in two ways."""
    assert raw.send(post(b"same", b"Content-Length: 4")).answer().body == b"same"


def test_413_is_read_by_a_client_that_is_still_sending(server: WebServer) -> None:
    """20 MB are under way when the answer comes: it is not lost to a reset."""
    with Raw(server.port) as raw:
        body = b"x" * 20_000_000
        raw.send(post(body)[:100])
        raw.send(body)
        assert raw.answer().status == 413


def test_413_for_announced_bytes_comes_before_them(raw: Raw) -> None:
    """2 GiB are announced, none is sent, and the answer is there."""
    head = b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 2147483648\r\n"
    assert raw.send(head + b"Expect: 100-continue\r\n\r\n").answer().status == 413


@pytest.mark.parametrize("sent", [b"POST /echo HT", CHUNKED + b"\r\n5\r\nab", post(b"abc")[:-1]])
def test_a_request_that_ends_early(app: App, server: WebServer, sent: bytes) -> None:
    """A client that closes its side in the middle is told, if it still listens."""
    with Raw(server.port) as raw:
        raw.send(sent).half_close()
        assert raw.answer().status == 400
        assert raw.ended()


def test_large_bodies_are_bounded_together() -> None:
    """Past the bound for all bodies a request gets 503 and Retry-After."""
    with serving(App(), max_bodies=130_000) as server:
        with Raw(server.port) as first, Raw(server.port) as second:
            first.send(post(b"x" * 120_000)[:-1])
            until(lambda: server._ledger._bodies > 65_536)
            assert _turned_down(second.send(post(b"x" * 120_000)[:-1]))
            assert first.send(b"x").answer().status == 200
        with Raw(server.port) as third:  # both were let go of
            assert third.send(post(b"x" * 120_000)).answer().status == 200


def test_bodies_that_come_when_asked_for_are_counted_too() -> None:
    """Behind "100 Continue" as well."""
    with serving(App(), max_bodies=130_000) as server, contextlib.ExitStack() as stack:
        first, second = [stack.enter_context(Raw(server.port)) for _ in range(2)]
        for raw in (first, second):
            raw.send(post(b"x" * 120_000, b"Expect: 100-continue")[:-120_000])
            assert raw.line() + raw.line() == b"HTTP/1.1 100 Continue\r\n\r\n"
        first.send(b"x" * 119_999)
        until(lambda: server._ledger._bodies > 65_536)
        second.send(b"x" * 120_000)
        assert second.ended()  # the application's read failed
        assert first.send(b"x").answer().status == 200


def _turned_down(raw: Raw) -> bool:
    answer = raw.answer()
    return answer.status == 503 and answer.headers["retry-after"] == "1"


def test_waiting_for_bodies_is_bounded(app: App) -> None:
    """Threads that wait for "100 Continue" to be heeded never are all threads."""
    with serving(app, max_threads=4, body_timeout=0.6) as server, contextlib.ExitStack() as stack:
        first, second, third = [stack.enter_context(Raw(server.port)) for _ in range(3)]
        first.send(post(b"abc", b"Expect: 100-continue")[:-3])
        assert first.line() + first.line() == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert _turned_down(second.send(post(b"abc", b"Expect: 100-continue")[:-3]))
        assert third.send(GET).answer().status == 200
        assert first.send(b"abc").answer().body == b"abc"
        assert third.send(post(b"abc", b"Expect: 100-continue")[:-3]).line()


def test_a_live_body_that_is_late_or_wrong(server: WebServer) -> None:
    """The application's read fails; the connection ends."""
    with Raw(server.port) as raw:
        raw.send(post(b"abc", b"Expect: 100-continue")[:-3])
        assert raw.line() + raw.line() == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert raw.ended()
    with Raw(server.port) as raw:
        raw.send(CHUNKED + b"Expect: 100-continue\r\n\r\n")
        assert raw.line() + raw.line() == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert raw.send(b"nonsense\r\n").ended()


def _taken(data: bytes, cuts: list[int]) -> list[tuple[str, str, bytes] | str]:
    """What a parser makes of bytes that come in such pieces."""
    parser = Parser(Limits(max_body=1000), Memory())
    found: list[tuple[str, str, bytes] | str] = []
    ends = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    try:
        for start, end in itertools.pairwise(ends):
            parser.feed(data[start:end])
            while (request := parser.next()) is not None:
                found.append((request.method, request.target, bytes(request.body)))
                parser.restart()
    except RefusedError as error:
        found.append(error.status)
    return found


PIECES = st.sampled_from(
    [
        *[GET, GET, post(), post(), post(b"abc"), post(b"def")],
        *[CHUNKED + b"\r\n3\r\nabc\r\n0\r\n\r\n", b"\r\n", b"0\r\n\r\n", post(b"x")[:-1]],
        *[b"GET / HTTP/1.1\nHost: h\n\n", b"GET / HTTP/1.1\nHost: h\r\n\nx: y\r\n\r\n"],
        *[post(b"a", b"Expect: 100-continue"), post(b"", b"Upgrade: h2c", b"Connection: upgrade")],
        b"GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n",
    ]
)


@given(st.lists(PIECES | st.binary(max_size=20), max_size=9), st.lists(st.integers(0, 900)))
def test_where_packets_end_changes_nothing(parts: list[bytes], cuts: list[int]) -> None:
    """Any bytes, cut anywhere, are the same requests, and never anything but ``RefusedError``.

    Nor does it change anything that heads are remembered.
    """
    data = b"".join(parts)
    found = _taken(data, cuts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "_MEMORABLE", 0)
        assert found == _taken(data, [])


def test_known_heads_are_bounded() -> None:
    """A client that never sends the same head twice fills no memory."""
    memory = Memory()
    parser = Parser(Limits(), memory)
    for number in range(2 * parsing._MEMORY):
        parser.feed(post(b"x" * number))
        request = parser.next()
        assert request is not None
        assert request.size == number
        parser.restart()
    assert len(memory.known) == parsing._MEMORY


def test_many_bad_clients_at_once(server: WebServer) -> None:
    """All of the grid from several threads at a time; a good client is served meanwhile."""

    def misbehave() -> None:
        for data, _ in REFUSED.values():
            with contextlib.suppress(OSError), Raw(server.port) as raw:
                raw.send(data)

    threads = [threading.Thread(target=misbehave) for _ in range(4)]
    for thread in threads:
        thread.start()
    with Raw(server.port) as raw:
        for _ in range(50):
            assert raw.send(post(b"good")).answer().body == b"good"
    for thread in threads:
        thread.join()
