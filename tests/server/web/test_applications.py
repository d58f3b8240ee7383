"""What an application may say, and what happens when it breaks the rules of PEP 3333."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.server.web.raw import GET, Raw, post, serving

Start = Callable[..., Any]


def asked(app: Any, request: bytes = GET, method: str = "GET") -> tuple[Any, Raw, Any]:
    """Ask an application once; return the answer."""
    with serving(app) as server, Raw(server.port) as raw:
        answer = raw.send(request).answer(method)
        again = None
        if answer.headers.get("connection") != "close":
            again = raw.send(request).answer(method)
        else:
            assert raw.ended()
        return answer, raw, again


def test_parts_go_out_as_chunks() -> None:
    """A body of unknown length, and the connection goes on."""

    def app(environ: dict[str, Any], start: Start) -> Iterator[bytes]:
        start("200 OK", [])
        yield b"a"
        yield b""
        yield b"b"

    answer, _, again = asked(app)
    assert (answer.body, answer.headers["transfer-encoding"]) == (b"ab", "chunked")
    assert again.body == b"ab"


def test_one_part_gets_its_length() -> None:
    """So does an empty body."""
    for body in ([b"one"], (b"one",), [], [b""]):

        def app(environ: dict[str, Any], start: Start, body: Any = body) -> Any:
            start("200 OK", [])
            return body

        answer, _, again = asked(app)
        assert answer.headers["content-length"] == str(len(b"".join(body)))
        assert again.body == b"".join(body)


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_statuses_without_a_body(status: str) -> None:
    """No length, no chunks, no body; the connection goes on."""

    def app(environ: dict[str, Any], start: Start) -> Any:
        start(status, [])
        return []

    answer, _, again = asked(app)
    assert answer.body == again.body == b""
    assert not {"content-length", "transfer-encoding"} & set(answer.headers)


def test_write_goes_out_before_what_is_returned() -> None:
    """The older way to send a body."""

    def app(environ: dict[str, Any], start: Start) -> Any:
        write = start("200 OK", [])
        write(b"first ")
        write(b"second ")
        return [b"third"]

    answer, _, again = asked(app)
    assert answer.body == again.body == b"first second third"


def test_an_application_may_end_the_connection() -> None:
    """By the one header of the connection that it may set."""

    def app(environ: dict[str, Any], start: Start) -> Any:
        start("200 OK", [("Connection", "close")])
        return [b"x"]

    answer, _, again = asked(app)
    assert again is None
    assert answer.headers["connection"] == "close"


def test_a_date_of_the_applications_is_left() -> None:
    """There is one Date."""

    def app(environ: dict[str, Any], start: Start) -> Any:
        start("200 OK", [("Date", "Thu, 01 Jan 1970 00:00:00 GMT")])
        return [b"x"]

    assert asked(app)[0].headers["date"] == "Thu, 01 Jan 1970 00:00:00 GMT"


def test_exc_info_replaces_a_head_that_was_not_sent() -> None:
    """PEP 3333: as long as nothing is on the wire, an error page may take its place."""

    def app(environ: dict[str, Any], start: Start) -> Any:
        start("200 OK", [("X-First", "1")])
        try:
            raise ValueError("late")
        except ValueError:
            start("500 Oh", [], sys.exc_info())
        return [b"page"]

    answer, _, _ = asked(app)
    assert (answer.status, answer.body) == (500, b"page")
    assert "x-first" not in answer.headers


def test_exc_info_is_raised_when_the_head_is_out(caplog: pytest.LogCaptureFixture) -> None:
    """Then nothing can be taken back: the answer is broken off, so that the client can tell."""
    closed = []

    class Body:
        def __init__(self, start: Start) -> None:
            self.start = start
            self.parts = iter([b"part"])

        def __iter__(self) -> Iterator[bytes]:
            yield from self.parts
            try:
                raise ValueError("late")
            except ValueError:
                self.start("500 Oh", [], sys.exc_info())

        def close(self) -> None:
            closed.append(1)

    def app(environ: dict[str, Any], start: Start) -> Any:
        start("200 OK", [])
        return Body(start)

    with serving(app) as server, Raw(server.port) as raw:
        raw.send(GET)
        found = b""
        while data := raw.sock.recv(1000):
            found += data
    assert found.endswith(b"4\r\npart\r\n")
    assert closed == [1]
    assert "late" in caplog.text


BAD: dict[str, Callable[[Start], Any]] = {
    "raises": lambda start: 1 // 0,
    "exits": lambda start: sys.exit(3),
    "raises an OSError": lambda start: os.stat("/no/such/file"),
    "never starts": lambda start: [b"x"],
    "never starts, and has no body": lambda start: [],
    "starts twice": lambda start: (start("200 OK", []), start("200 OK", []), [b"x"])[2],
    "returns text": lambda start: (start("200 OK", []), ["text"])[1],
    "returns nothing": lambda start: start("200 OK", []) and None,
    "sends more than it said": lambda start: (start("200 OK", [("Content-Length", "1")]), [b"xy"])[
        1
    ],
    "a status without a reason": lambda start: start("200", []),
    "a status that is a number": lambda start: start(200, []),
    "a status with a line break": lambda start: start("200 OK\r\nX: y", []),
    "a preliminary status": lambda start: start("100 Continue", []),
    "a value with a line break": lambda start: start("200 OK", [("X", "a\r\nSet-Cookie: b=c")]),
    "a value with a line feed": lambda start: start("200 OK", [("X", "a\nY: b")]),
    "a value with a NUL": lambda start: start("200 OK", [("X", "a\0")]),
    "a value that is no latin-1": lambda start: start("200 OK", [("X", "\u20ac")]),
    "a value that is a number": lambda start: start("200 OK", [("X", 1)]),
    "a name with a space": lambda start: start("200 OK", [("X Y", "a")]),
    "a name with a colon": lambda start: start("200 OK", [("X: y\r\nZ", "a")]),
    "an empty name": lambda start: start("200 OK", [("", "a")]),
    "headers as a dict": lambda start: start("200 OK", {"X": "a"}),
    "a length that is none": lambda start: start("200 OK", [("Content-Length", "x")]),
    "two lengths": lambda start: start(
        "200 OK", [("Content-Length", "1"), ("content-length", "2")]
    ),
    "its own chunks": lambda start: start("200 OK", [("Transfer-Encoding", "chunked")]),
    "its own keep-alive": lambda start: start("200 OK", [("Connection", "keep-alive")]),
    "an upgrade": lambda start: start("200 OK", [("Upgrade", "h2c")]),
}


@pytest.mark.parametrize("what", BAD)
def test_an_application_that_breaks_the_rules_gets_500(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, its client gets a 500 without details, and the server goes on."""

    def app(environ: dict[str, Any], start: Start) -> Any:
        result = BAD[what](start)
        return [b"x"] if callable(result) else result  # what start_response returned

    with caplog.at_level(logging.ERROR), serving(app) as server:
        for _ in range(2):
            with Raw(server.port) as raw:
                answer = raw.send(post(b"body")).answer()
                assert (answer.status, answer.headers["connection"]) == (500, "close")
                assert answer.body == b"the application failed\n"
                assert raw.ended()
    assert caplog.text.count("the application failed") == 2


def test_a_body_that_is_too_short_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    """The client can tell that something is missing."""

    def app(environ: dict[str, Any], start: Start) -> Any:
        start("200 OK", [("Content-Length", "10")])
        return [b"short"]

    with serving(app) as server, Raw(server.port) as raw:
        raw.send(GET)
        found = b""
        while data := raw.sock.recv(1000):
            found += data
    assert found.endswith(b"\r\n\r\nshort")
    assert "shorter than its Content-Length" in caplog.text


def test_close_is_called_once_whatever_happens() -> None:
    """After the body, after an error in it, after the client has gone."""
    closed: list[str] = []

    class Body:
        def __init__(self, query: str) -> None:
            self.query = query

        def __iter__(self) -> Iterator[bytes]:
            yield b"x"
            if self.query == "fails":
                raise ValueError("in the body")
            if self.query == "goes":
                while True:
                    yield b"x" * 100_000

        def close(self) -> None:
            closed.append(self.query)

    def app(environ: dict[str, Any], start: Start) -> Any:
        start("200 OK", [])
        return Body(environ["QUERY_STRING"])

    with serving(app) as server:
        for query in (b"ends", b"fails", b"goes"):
            with Raw(server.port) as raw:
                raw.send(b"GET /?" + query + b" HTTP/1.1\r\nHost: h\r\n\r\n")
                assert raw.line() == b"HTTP/1.1 200 OK\r\n"
    assert sorted(closed) == ["ends", "fails", "goes"]
