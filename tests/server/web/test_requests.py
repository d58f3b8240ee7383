"""Requests that are taken: methods, framing, keep-alive, pipelining, and what they turn into."""

from __future__ import annotations

import http.client
import urllib.request
from collections.abc import Callable
from typing import Any
from wsgiref.validate import validator

import pytest

from raxol_sync.server.web.service import WebServer
from tests.server.web.raw import GET, App, Raw, post, serving


def test_a_post_is_answered_and_the_connection_stays(raw: Raw) -> None:
    """Many requests, one connection."""
    for number in range(5):
        body = b"x" * number
        answer = raw.send(post(body)).answer()
        assert (answer.status, answer.body) == (200, body)
        assert answer.headers["content-length"] == str(number)
        assert "connection" not in answer.headers
        assert "date" in answer.headers


def test_a_request_may_come_byte_by_byte(raw: Raw) -> None:
    """Where the packets end says nothing."""
    for byte in post(b"slow"):
        raw.send(bytes([byte]))
    assert raw.answer().body == b"slow"


def test_pipelined_requests_are_answered_in_order(raw: Raw) -> None:
    """All that came at once gets its answer, in order."""
    raw.send(b"".join(post(b"%d" % number) for number in range(50)) + post(b"last")[:-2])
    for number in range(50):
        assert raw.answer().body == b"%d" % number
    raw.send(b"st")
    assert raw.answer().body == b"last"


def test_pipelined_requests_wait_for_the_one_that_runs(app: App, raw: Raw) -> None:
    """A second request behind a running one is no sign of its client's end."""
    raw.send(post(path=b"/hold") + post(b"second"))
    assert app.event() == "held"
    raw.send(post(b"third"))
    app.release.set()
    assert [raw.answer().body for _ in range(3)] == [b"released", b"second", b"third"]
    assert app.events.empty()


def test_a_head_request_gets_no_body(raw: Raw) -> None:
    """The length is told, the body is not sent."""
    raw.send(b"HEAD /big?7 HTTP/1.1\r\nHost: h\r\n\r\n")
    answer = raw.answer("HEAD")
    assert (answer.status, answer.headers["content-length"], answer.body) == (200, "7", b"")
    assert raw.send(post(b"next")).answer().body == b"next"


def test_http_1_0_ends_with_the_answer(raw: Raw) -> None:
    """It gets its answer with a length, and the connection ends."""
    answer = raw.send(b"GET /echo HTTP/1.0\r\n\r\n").answer()
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert raw.ended()


def test_http_1_0_gets_a_stream_without_chunks(app: App, server: WebServer) -> None:
    """The body ends with the connection."""
    app.feeds.put(b"one\n")
    app.feeds.put(None)
    with Raw(server.port) as raw:
        answer = raw.send(b"GET /stream?own HTTP/1.0\r\n\r\n").answer()
    assert answer.body == b": open\none\n"
    assert "transfer-encoding" not in answer.headers
    assert app.event() == "closed"


def test_connection_close_is_granted(raw: Raw) -> None:
    """The client's wish for the end is met."""
    answer = raw.send(post(b"bye", b"Connection: close")).answer()
    assert (answer.body, answer.headers["connection"]) == (b"bye", "close")
    assert raw.ended()


@pytest.mark.parametrize("size", [0, 1, 70_000])
def test_a_chunked_body_has_an_end(raw: Raw, size: int) -> None:
    """Chunks with extensions and trailers; the next request follows."""
    body, chunks = b"z" * size, b""
    for start in range(0, size, 1000):
        part = body[start : start + 1000]
        chunks += b"%x;name=value\r\n%b\r\n" % (len(part), part)
    head = b"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    raw.send(head + chunks + b"0\r\nTrailer: x\r\n\r\n" + GET)
    assert raw.answer().body == body
    assert raw.answer().status == 200


def test_a_chunked_body_is_told_with_its_length(raw: Raw) -> None:
    """An application that knows no chunks reads it all the same."""
    head = b"POST /environ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    told = raw.send(head + b"3\r\nabc\r\n0\r\n\r\n").answer().json
    assert (told["CONTENT_LENGTH"], told["wsgi.input_terminated"]) == ("3", True)
    assert "HTTP_TRANSFER_ENCODING" not in told


def test_100_continue_is_sent_when_the_body_is_read(raw: Raw) -> None:
    """The client sends its body once it is asked to, and the connection stays."""
    for body in (b"asked for", b"again"):
        raw.send(post(body, b"Expect: 100-continue")[: -len(body)])
        assert raw.line() == b"HTTP/1.1 100 Continue\r\n"
        assert raw.line() == b"\r\n"
        assert raw.send(body).answer().body == body


def test_100_continue_is_not_sent_when_the_body_is_not_read(raw: Raw) -> None:
    """The answer comes first, and the connection ends: the client may send its body or not."""
    answer = raw.send(post(b"x" * 10, b"Expect: 100-continue", path=b"/none")[:-10]).answer()
    assert (answer.status, answer.headers["connection"]) == (404, "close")
    assert raw.ended()


def test_100_continue_with_a_body_that_came_unasked(raw: Raw) -> None:
    """A client that does not wait is not told to go on; nor when its head is known."""
    for _ in range(3):
        assert raw.send(post(b"here", b"Expect: 100-continue")).answer().body == b"here"


def test_100_continue_and_chunks(raw: Raw) -> None:
    """Both together."""
    raw.send(
        b"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n"
        b"Expect: 100-continue\r\n\r\n"
    )
    assert raw.line() + raw.line() == b"HTTP/1.1 100 Continue\r\n\r\n"
    raw.send(b"2\r\nab\r\n").send(b"1\r\nc\r\n0\r\n\r\n")
    assert raw.answer().body == b"abc"


def test_what_the_application_is_told(raw: Raw, server: WebServer) -> None:
    """The variables of PEP 3333, and none that a client can pass off as another's."""
    raw.send(
        b"POST /environ/%C3%A9?q=%C3%A9 HTTP/1.1\r\nHost: example:1\r\nX-Two: a\r\nX-Two: b\r\n"
        b"X_Two: forged\r\nCookie: a=1\r\nCookie: b=2\r\nContent-Type: text/x\r\n"
        b"X-Bytes: \xff\xe9\r\nContent-Length: 0\r\n\r\n"
    )
    assert raw.answer().status == 404  # no route; the path was decoded
    raw.send(
        b"POST /environ?q=%C3%A9 HTTP/1.1\r\nHost: example:1\r\nX-Two: a\r\nX-Two: b\r\n"
        b"X_Two: forged\r\nCookie: a=1\r\nCookie: b=2\r\nContent-Type: text/x\r\n"
        b"X-Bytes: \xff\xe9\r\nContent-Length: 0\r\n\r\n"
    )
    told = raw.answer().json
    assert told["REQUEST_METHOD"] == "POST"
    assert (told["SCRIPT_NAME"], told["PATH_INFO"]) == ("", "/environ")
    assert told["QUERY_STRING"] == "q=%C3%A9"
    assert (told["CONTENT_TYPE"], told["CONTENT_LENGTH"]) == ("text/x", "0")
    assert (told["HTTP_X_TWO"], told["HTTP_COOKIE"]) == ("a, b", "a=1; b=2")
    assert (told["HTTP_HOST"], told["HTTP_X_BYTES"]) == ("example:1", "\xff\xe9")
    assert (told["SERVER_NAME"], told["SERVER_PORT"]) == ("127.0.0.1", str(server.port))
    assert told["REMOTE_ADDR"] == "127.0.0.1"
    assert told["REMOTE_PORT"] == str(raw.sock.getsockname()[1])
    assert told["SERVER_PROTOCOL"] == "HTTP/1.1"
    assert (told["wsgi.url_scheme"], told["wsgi.version"]) == ("http", [1, 0])
    assert (told["wsgi.multithread"], told["wsgi.multiprocess"]) == (True, False)
    assert told["wsgi.run_once"] is False


def test_a_url_as_target_names_the_host(raw: Raw) -> None:
    """RFC 9112, 3.2.2: its host counts, not the header's."""
    raw.send(b"GET http://real:80/environ?x HTTP/1.1\r\nHost: other\r\n\r\n")
    told = raw.answer().json
    assert (told["HTTP_HOST"], told["PATH_INFO"], told["QUERY_STRING"]) == (
        "real:80",
        "/environ",
        "x",
    )


def test_empty_lines_before_a_request_are_passed_over(raw: Raw) -> None:
    """RFC 9112, 2.2: some clients send them after a body."""
    assert raw.send(b"\r\n\r\n" + post(b"a")).answer().body == b"a"
    assert raw.send(b"\r\n").send(post(b"b")).answer().body == b"b"


def test_a_body_of_some_size(raw: Raw) -> None:
    """It comes in many packets, and goes in many."""
    body = bytes(range(256)) * 390
    assert raw.send(post(body)).answer().body == body


def test_a_known_head_is_taken_as_the_first_time(raw: Raw) -> None:
    """Chunks, bare line feeds and bodies of other clients do not come to stand for one another."""
    chunked = (
        b"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n%b\r\n0\r\n\r\n"
    )
    bare = b"POST /echo HTTP/1.1\nHost: h\nContent-Length: 0\n\n"
    for body in (b"abc", b"def"):
        assert raw.send(chunked % body).answer().body == body
        raw.send(bare + post(body))
        assert [raw.answer().body for _ in range(2)] == [b"", body]
        raw.send(post(body) + post(body[:2])[:-1])
        assert raw.answer().body == body
        assert raw.send(body[1:2]).answer().body == body[:2]


def test_the_last_answer_is_read_by_a_client_that_sends_on(raw: Raw) -> None:
    """What follows a request with Connection: close is thrown away, and not the answer."""
    raw.send(post(b"last", b"Connection: close") + b"x" * 20_000_000)
    assert raw.answer().body == b"last"


def test_clients_of_the_standard_library(server: WebServer) -> None:
    """They send head and body apart, and reuse the connection or not."""
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    for _ in range(3):
        client.request("POST", "/echo", b"data", {"X": "y"})
        assert client.getresponse().read() == b"data"
    client.close()
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/big?9", timeout=10) as found:
        assert found.read() == b"x" * 9


def _plain(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [body]


def test_wsgiref_finds_nothing_wrong() -> None:
    """The standard library's checker of servers, with each kind of request."""
    with serving(validator(_plain)) as server, Raw(server.port) as raw:
        assert raw.send(post(b"checked")).answer().body == b"checked"
        assert raw.send(GET).answer().status == 200
        head = post(b"asked", b"Expect: 100-continue")[:-5]
        assert raw.send(head).line() + raw.line() == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert raw.send(b"asked").answer().body == b"asked"
        assert raw.send(b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n").answer("HEAD").status == 200
