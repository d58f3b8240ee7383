"""Noticing under foreign hosts that a client has gone."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from raxol_sync import Server
from raxol_sync.server.http import presence
from raxol_sync.server.http.presence import Presence
from tests.server.helpers import eventually, gated
from tests.server.http.driver import Host, driver_of


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_gunicorns_socket_is_looked_at(pair: tuple[socket.socket, socket.socket]) -> None:
    """What a pipelining client has sent is no end, and stays there."""
    ours, theirs = pair
    client = Presence({"gunicorn.socket": ours})
    assert client.step(15) == presence.LOOK
    assert not client.gone()
    theirs.sendall(b"GET")
    assert not client.gone()
    assert ours.recv(10) == b"GET"
    theirs.close()
    assert client.gone()
    ours.close()
    assert client.gone()


@pytest.mark.parametrize("way", ["poll", "select"])
def test_where_there_is_no_poll_select_does(
    pair: tuple[socket.socket, socket.socket], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows."""
    if way == "select":
        monkeypatch.delattr("select.poll", raising=False)
    ours, theirs = pair
    client = Presence({"gunicorn.socket": ours})
    assert not client.gone()
    theirs.sendall(b"x")
    assert not client.gone()
    ours.recv(1)
    theirs.close()
    assert client.gone()


def test_a_socket_that_cannot_be_looked_at_now_is_looked_at_later() -> None:
    """Nothing is concluded from it."""

    class Odd:
        def fileno(self) -> int:
            return ours.fileno()

        def recv(self, *_: object) -> bytes:
            raise BlockingIOError

    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"x")
        assert not Presence({"gunicorn.socket": Odd()}).gone()


def test_a_client_that_only_shut_its_side_has_gone(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """HTTP clients do not do that to read on."""
    ours, theirs = pair
    theirs.shutdown(socket.SHUT_WR)
    assert Presence({"gunicorn.socket": ours}).gone()


def test_a_socket_of_tls_is_left_alone(pair: tuple[socket.socket, socket.socket]) -> None:
    """It cannot be peeked into: the next write tells."""
    ours, theirs = pair
    context = ssl.create_default_context()
    wrapped = context.wrap_socket(ours, server_hostname="x", do_handshake_on_connect=False)
    with wrapped:
        client = Presence({"gunicorn.socket": wrapped})
        assert not client.gone()
        theirs.sendall(b"\x16")
        assert not client.gone()


def test_waitress_is_asked() -> None:
    """By its callable."""
    answers = iter([False, True])
    client = Presence({"waitress.client_disconnected": lambda: next(answers)})
    assert client.step(15) == presence.LOOK
    assert not client.gone()
    assert client.gone()


def test_others_show_it_on_write() -> None:
    """So comments are sent no less often than asked for."""
    client = Presence({})
    assert client.step(15) == 15
    assert not client.gone()
    client.watch(lambda: None)


def test_our_host_tells_itself_and_is_asked_once() -> None:
    """However often the request wants to know."""
    host = Host()
    client = Presence({"raxol_sync.host": host, "gunicorn.socket": 7})
    told: list[int] = []
    client.watch(lambda: told.append(1))
    client.watch(lambda: told.append(2))
    host.leave()
    assert told == [1]
    assert not client.gone()
    assert client.step(15) == 15


def test_a_silent_call_under_gunicorn_ends_with_its_client(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its answer has begun."""
    monkeypatch.setattr(presence, "LOOK", 0.02)
    ours, theirs = pair
    with Server("http") as server:
        gate = gated(server)
        http = driver_of(server)
        theirs.close()
        environ: dict[str, Any] = {"gunicorn.socket": ours}
        http.call("wait", environ=environ)
        gate.open()
        eventually(lambda: server.stats().in_flight == 0)
