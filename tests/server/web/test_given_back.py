"""What a request held is free before its client can know that the answer is whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from raxol_sync.server.web.connection import Connection
from raxol_sync.server.web.poller import GONE, READ
from tests.server.web.raw import GET, WAIT, Raw, post, serving, until
from tests.server.web.test_streams import chunk, head


class LastWords:
    """An application whose streams give their place back before their last piece."""

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        host = environ["raxol_sync.host"]
        if not host.begin_stream():
            start_response("503 Service Unavailable", [])
            return [b"full"]
        start_response("200 OK", [])
        return self.body(host, environ["QUERY_STRING"])

    def body(self, host: Any, more: str) -> Iterator[bytes]:
        if more != "alone":
            yield b"first"
        host.end_stream()
        host.end_stream()
        yield b"last"
        if more == "more":
            yield b"and"
            yield b"more"


def asked(query: str = "") -> bytes:
    return b"GET /?" + query.encode() + b" HTTP/1.1\r\nHost: h\r\n\r\n"


def test_a_stream_s_last_piece_goes_out_when_its_place_is_free(
    poller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No thread waits for its client any more: it is written as the end of any answer is."""
    ends: list[tuple[bytes, int]] = []
    begin_flush = Connection.begin_flush

    def noted(connection: Connection, data: bytes) -> bool:
        ends.append((data, server.counts().streams))
        return begin_flush(connection, data)

    monkeypatch.setattr(Connection, "begin_flush", noted)
    with serving(LastWords(), poller=poller, max_streams=1) as server, Raw(server.port) as raw:
        for _ in range(3):
            assert head(raw.send(asked())) == b"HTTP/1.1 200 OK\r\n"
            assert [chunk(raw) for _ in range(3)] == [b"first", b"last", b""]
        assert ends == [(b"4\r\nlast\r\n0\r\n\r\n", 0)] * 3


@pytest.mark.parametrize(("query", "body"), [("alone", b"last"), ("more", b"firstlastandmore")])
def test_such_a_piece_may_be_the_first_or_have_successors(
    poller: str, query: str, body: bytes
) -> None:
    """The whole answer is right all the same."""
    with serving(LastWords(), poller=poller, max_streams=1) as server, Raw(server.port) as raw:
        for _ in range(2):
            answer = raw.send(asked(query)).answer()
            assert (answer.status, answer.body) == (200, body)


def test_a_body_is_let_go_of_before_an_answer_of_known_length_is_whole() -> None:
    """Its client need not wait for the application to come to its end."""
    release = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield b"in two "
        yield b"pieces"
        release.wait(WAIT)

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        size = len(environ["wsgi.input"].read())
        start_response("200 OK", [("Content-Length", "13")])
        return pieces() if size > 1 else [b"in one piece."]

    with serving(app, max_bodies=130_000) as server:
        with Raw(server.port) as first, Raw(server.port) as second:
            for raw in (first, second):
                answer = raw.send(post(b"x" * 120_000)).answer()
                assert (answer.status, answer.body) == (200, b"in two pieces")
            release.set()
        until(lambda: server.counts().connections == 0)


def test_who_opens_a_connection_for_another_is_let_in(poller: str) -> None:
    """A server that is full sees within a moment that one has been closed."""
    with serving(LastWords(), poller=poller, max_connections=1) as server:
        with Raw(server.port) as first:
            assert first.send(asked()).answer().status == 200
            second = Raw(server.port).send(asked())
            until(lambda: server._lobby)
        with second:
            assert second.answer().status == 200
        for _ in range(5):
            with Raw(server.port) as raw:
                assert raw.send(asked()).answer().status == 200


def test_who_has_gone_is_looked_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a client left is given back before its next request begins."""
    heeded: list[int] = []

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        start_response("200 OK", [])
        return [b""]

    with serving(app) as server, Raw(server.port) as one, Raw(server.port) as other:
        for raw in (one, other):
            assert raw.send(GET).answer().status == 200
        poller, wait = server._poller, server._poller.wait
        known = sorted(server._ledger.connections)
        told = threading.Event()

        def both(seconds: float | None) -> list[tuple[int, int]]:
            if told.is_set():
                return wait(seconds)
            told.set()
            return [(known[0], READ), (known[1], GONE)]

        monkeypatch.setattr(server, "_heed", lambda connection, event: heeded.append(event))
        monkeypatch.setattr(poller, "wait", both)
        poller.wake()
        assert told.wait(WAIT)
        until(lambda: len(heeded) >= 2)
        monkeypatch.undo()
    assert heeded[:2] == [GONE, READ]
