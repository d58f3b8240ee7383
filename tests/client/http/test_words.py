"""What a failure over HTTP says: where, why, and what to do; told once, and without secrets."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable

import pytest
from requests.auth import HTTPBasicAuth

from raxol_sync.client.client import Client
from raxol_sync.errors import (
    BreakerOpen,
    ConnectFailed,
    HTTPStatusError,
    MCPError,
    RequestTimeout,
    SessionRejected,
)
from tests.client.http.hostile import Conn, Hostile, Polite, Seen

Connect = Callable[..., Client]
Host = Callable[..., Hostile]


def answering(status: int, body: bytes = b"", **headers: str) -> Callable[[Seen, Conn], None]:
    """A server that has the same answer for everything."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda seen, conn: conn.reply(status, body, named)


def said(message: str, status: int) -> Callable[[Seen, Conn], None]:
    """A server whose refusals hold a JSON-RPC error that names no request."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": message}}
    return answering(status, json.dumps(error).encode(), Content_Type="application/json")


def closed_port() -> Hostile:
    server = Hostile(Polite())
    server.close()
    return server


# ---------------------------------------------------------------- the breaker


def test_c24_an_open_breaker_says_that_it_was_time_outs(connect: Connect) -> None:
    """The last failure is named, and the status says that calls are refused."""
    polite = Polite("modern")
    polite.on["tools/call"] = lambda seen, conn: conn.wait_gone(10)
    with connect(polite) as client:
        for _ in range(5):
            with pytest.raises(RequestTimeout):
                client.call_tool("echo", timeout=0.2)
        guard = client._target.plan.guard
        for _ in range(200):  # the last time-out is counted by the thread of its request
            if guard.state() == "open":
                break
            threading.Event().wait(0.02)
        with pytest.raises(BreakerOpen) as caught:
            client.call_tool("echo")
        assert "keeps failing (last: no answer within 0." in str(caught.value)
        assert caught.value.last.startswith("no answer within 0.")
        status = client.status()
        assert status.state == "ready"
        assert "keeps failing (last: no answer within" in str(status.error)


def test_c24_an_open_breaker_says_that_it_was_a_status(connect: Connect) -> None:
    """Its number."""
    polite = Polite("modern")
    with connect(polite) as client:
        polite.on["tools/call"] = answering(503)
        for _ in range(5):
            with pytest.raises(HTTPStatusError):
                client.call_tool("echo")
        with pytest.raises(BreakerOpen, match=r"\(last: HTTP status 503\); the next attempt"):
            client.call_tool("echo")


def test_c24_an_open_breaker_says_that_nobody_listens(connect: Connect, host: Host) -> None:
    """The reason of the connection's failure."""
    server = host(Polite("modern"))
    with connect(server) as client:
        server.close()
        for _ in range(5):
            with pytest.raises(ConnectFailed):
                client.call_tool("echo")
        with pytest.raises(BreakerOpen, match=r"\(last: .*refused\)"):
            client.call_tool("echo")


# ---------------------------------------------------------------- connecting


@pytest.mark.parametrize("status", [401, 403, 404, 405, 500, 503])
@pytest.mark.parametrize("fail_fast", [True, False])
def test_c18_a_refused_connect_is_connect_failed(
    connect: Connect, status: int, fail_fast: bool
) -> None:
    """Whatever the status; the cause is kept where the caller does not wait for retries."""
    client = connect(answering(status), fail_fast=fail_fast, init_timeout=0.5)
    with pytest.raises(ConnectFailed) as caught:
        client.__enter__()
    assert f"HTTP status {status}" in str(caught.value)
    if fail_fast or status == 401:
        assert isinstance(caught.value.__cause__, HTTPStatusError)
        assert caught.value.__cause__.status == status


@pytest.mark.parametrize("status", [401, 403])
def test_c18_refused_credentials_say_where_they_are_given(connect: Connect, status: int) -> None:
    """`headers=` or `auth=`."""
    with pytest.raises(ConnectFailed, match=r"check headers= or auth="):
        connect(answering(status)).__enter__()


def test_c06_a_wrong_path_is_named_with_the_usual_one(connect: Connect, host: Host) -> None:
    """Without userinfo and query."""
    server = host(answering(404))
    url = f"http://u:s3cret@127.0.0.1:{server.port}/wrong?k=s3cret"
    with pytest.raises(ConnectFailed) as caught:
        connect(server, url=url).__enter__()
    shown = f"http://127.0.0.1:{server.port}/wrong"
    assert f"status 404: check url=, which is {shown}: its path is usually /mcp" in str(
        caught.value
    )
    assert "s3cret" not in str(caught.value)
    with pytest.raises(ConnectFailed) as caught:
        connect(server).__enter__()
    assert str(caught.value).endswith(f"check url=, which is http://127.0.0.1:{server.port}/mcp")


def test_c06_a_refused_port_is_named(connect: Connect) -> None:
    """Host and port; and the time that was waited is told once."""
    server = closed_port()
    where = f"127.0.0.1:{server.port}: connection refused"
    with pytest.raises(ConnectFailed) as caught:
        connect(server).__enter__()
    assert str(caught.value) == f"could not connect: {where}"
    with pytest.raises(ConnectFailed) as caught:
        connect(server, fail_fast=False, init_timeout=0.2).__enter__()
    waited = "could not connect: the server was not ready within 0.2 s (init_timeout)"
    assert str(caught.value) == f"{waited}: {where}"


def test_c11_a_refusal_shows_what_the_server_says(connect: Connect) -> None:
    """Cut, and only what is printable."""
    with pytest.raises(ConnectFailed) as caught:
        connect(said("come back\n\x1b[31mlater" + "x" * 500, 503)).__enter__()
    text = str(caught.value)
    assert "HTTP status 503: the server says: come back" in text
    assert "\x1b" not in text
    assert len(text) < 350


def test_c04_a_refusal_that_repeats_credentials_is_not_shown(connect: Connect, host: Host) -> None:
    """Neither those of a header, nor the URL's."""
    for secret in ("he4der", "us3r:", "qu3ry"):
        server = host(said(f"not you, {secret}", 503))
        url = f"http://us3r:@127.0.0.1:{server.port}/mcp?k=qu3ry"
        client = connect(server, url=url, headers={"Authorization": "Bearer he4der"})
        with pytest.raises(ConnectFailed) as caught:
            client.__enter__()
        assert "not you" not in str(caught.value)
    for auth, told in ((None, True), (HTTPBasicAuth("u", "he4der"), False)):  # unknown to us
        with pytest.raises(ConnectFailed) as caught:
            connect(said("not you, he4der", 503), auth=auth).__enter__()
        assert ("not you" in str(caught.value)) is told


# ---------------------------------------------------------------- told once


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "raxol_sync.client" and record.levelno == logging.WARNING
    ]


def test_c15_a_wrong_url_is_told_once_per_failure(
    connect: Connect, caplog: pytest.LogCaptureFixture, host: Host
) -> None:
    """Not for each attempt; another failure is told again; no secret is in it."""
    asked = threading.Semaphore(0)
    status = [404]

    def script(seen: Seen, conn: Conn) -> None:
        conn.reply(status[0])
        if seen.method != "initialize":
            asked.release()

    server = host(script)
    url = f"http://u:s3cret@127.0.0.1:{server.port}/wrong?k=s3cret"
    client = connect(server, url=url, fail_fast=False, reconnect_delay=0.02)
    with caplog.at_level(logging.WARNING, "raxol_sync.client"):
        client.start()
        for _ in range(6):  # several attempts
            assert asked.acquire(timeout=10)
        first = warnings_of(caplog)
        status[0] = 503
        for _ in range(3):
            assert asked.acquire(timeout=10)
        client.stop()
    both = warnings_of(caplog)
    assert len(first) == 1
    assert f"127.0.0.1:{server.port}" in first[0]
    assert "HTTP status 404" in first[0]
    assert "again" in first[0]
    assert len(both) == 2
    assert "HTTP status 503" in both[1]
    assert f"127.0.0.1:{server.port}" in both[1]
    assert "s3cret" not in "".join(both)


def test_c15_who_does_not_wait_for_retries_is_told_by_the_exception_only(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """`fail_fast`, and a 401, which is final."""
    with caplog.at_level(logging.WARNING, "raxol_sync.client"):
        for settings in ({"fail_fast": True}, {"fail_fast": False}):
            with pytest.raises(MCPError):
                connect(answering(401), **settings).__enter__()
        with pytest.raises(MCPError):
            connect(closed_port()).__enter__()
    assert warnings_of(caplog) == []


def test_c15_a_failure_is_told_again_after_a_session(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where it says the same: in between all was well."""
    polite = Polite("legacy")
    refused = threading.Semaphore(0)

    def refuse(seen: Seen, conn: Conn) -> None:
        refused.release()
        conn.reply(503)

    handshake = {"initialize": refuse, "server/discover": refuse}
    polite.on.update(handshake)
    client = connect(polite, fail_fast=False, reconnect_delay=0.02)
    with caplog.at_level(logging.WARNING, "raxol_sync.client"):
        client.start()
        for _ in range(6):
            assert refused.acquire(timeout=10)
        polite.on.clear()
        client.await_ready()
        while refused.acquire(blocking=False):
            pass
        assert len(warnings_of(caplog)) == 1
        polite.on.update(handshake)
        polite.on["tools/call"] = answering(404)
        with pytest.raises(SessionRejected):
            client.call_tool("echo")
        for _ in range(6):
            assert refused.acquire(timeout=10)
        client.stop()
    first, second = warnings_of(caplog)
    assert first == second
