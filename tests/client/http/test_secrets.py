"""Credentials never show: every failure is driven, and all that it produced is searched (C04)."""

from __future__ import annotations

import logging
import socket
import threading
import traceback
from collections.abc import Callable, Iterator

import pytest

from raxol_sync.client.client import Client
from raxol_sync.errors import ConnectFailed, InvalidSpec, MCPError
from tests.client.http.hostile import Hostile, Polite
from tests.client.http.test_grid import FAULTS, SHORT

HEADER, QUERY, USER = "h3ader-s3cret", "qu3ry-s3cret", "us3r-s3cret"
PROXY = "pr0xy-s3cret"
SECRETS = (HEADER, QUERY, USER)
Connect = Callable[..., Client]


def everything_about(error: BaseException) -> str:
    """The text of an exception, of all that hangs on it, and of their frames' traces."""
    found, pending, seen = [], [error], set()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        found += [str(one), repr(one), repr(vars(one)), repr(one.args)]
        pending += [inner for inner in (one.__cause__, one.__context__) if inner is not None]
        pending += [inner for inner in one.args if isinstance(inner, BaseException)]
    return "\n".join([*found, *traceback.format_exception(error)])


@pytest.fixture
def records() -> Iterator[list[str]]:
    """All that is logged by anybody, at DEBUG."""
    found: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(f"{record.name} {record.getMessage()} {record.args} {record.exc_text}")
            if record.exc_info and record.exc_info[1] is not None:
                found.append(everything_about(record.exc_info[1]))

    handler, root = Keep(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield found
    root.setLevel(level)
    root.removeHandler(handler)


def secret_url(server: Hostile) -> str:
    return f"http://user:{USER}@127.0.0.1:{server.port}/mcp?token={QUERY}"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("method", ["tools/call", "server/discover"])
def test_c04_no_failure_over_http_tells_a_secret(
    connect: Connect, polite: Polite, records: list[str], fault: str, method: str
) -> None:
    """Exceptions with their chains, reprs, logs and the status."""
    server = Hostile(polite)
    produced: list[str] = []
    client = connect(
        server,
        url=secret_url(server),
        headers={"X-Key": HEADER},
        init_timeout=SHORT if method == "server/discover" else 10.0,
        max_message_bytes=100_000,
        telemetry=lambda event, fields: produced.append(f"{event} {fields}"),
    )
    polite.on[method] = FAULTS[fault][0]
    try:
        client.start()
        client.await_ready()
        client.call_tool("echo", timeout=SHORT)
    except MCPError as error:
        produced.append(everything_about(error))
    produced += [repr(client), repr(client.status()), repr(client._target)]
    client.stop()
    server.close()
    assert any(words.startswith("session_ended") for words in produced)
    assert server.seen[0].headers["x-key"] == HEADER
    assert QUERY in server.seen[0].path
    assert server.seen[0].headers["authorization"].startswith("Basic ")
    text = "\n".join(produced + records)
    assert not [secret for secret in SECRETS if secret in text]
    assert server.seen[0].headers["authorization"].removeprefix("Basic ") not in text


def test_c04_no_connection_tells_a_secret(connect: Connect, records: list[str]) -> None:
    """Refused, unknown, or no TLS."""
    server = Hostile(Polite())
    server.close()
    urls = [secret_url(server), f"https://user:{USER}@no-such-host.invalid/mcp?token={QUERY}"]
    produced = []
    for url in urls:
        client = connect(server, url=url, headers={"X-Key": HEADER})
        with pytest.raises(MCPError) as caught:
            client.__enter__()
        produced.append(everything_about(caught.value))
    text = "\n".join(produced + records)
    assert not [secret for secret in SECRETS if secret in text]


@pytest.mark.parametrize(
    "wrong",
    [
        {"headers": {"X-Key": f"{HEADER}\n"}},
        {"headers": {"Host": HEADER}},
        {"headers": {"X-Key": [HEADER]}},
        {"headers": HEADER},
        {"url": f"ftp://user:{USER}@x/?t={QUERY}"},
        {"url": f"https://user:{USER}@x:99999/?t={QUERY}"},
        {"url": f"http://user:{USER}@far.example/?t={QUERY}"},
        {"url": f"https://[{USER}/?t={QUERY}"},
        {"auth": HEADER},
        {"command": "x"},
    ],
    ids=str,
)
def test_c01_c04_a_wrong_spec_tells_no_secret(wrong: dict[str, object]) -> None:
    """`InvalidSpec`, before anything starts."""
    settings = {"url": f"https://user:{USER}@x.example/?t={QUERY}", **wrong}
    with pytest.raises(InvalidSpec) as caught:
        Client("x", **settings)  # type: ignore[arg-type]
    text = everything_about(caught.value)
    shown = text.split("\nTraceback")[0]  # the trace shows this file's own lines
    assert not [secret for secret in SECRETS if secret in shown]


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 407 No\r\n\r\n", b"HTTP/1.1 403 No\r\n\r\n", b"", b"rubbish\r\n\r\n"]
)
def test_c04_a_proxy_that_refuses_tells_no_secret(
    connect: Connect, records: list[str], answer: bytes
) -> None:
    """Neither its own credentials nor the server's; the reason names the proxy where it is one."""
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        seen: list[bytes] = []

        def refuse() -> None:
            while True:
                try:
                    sock, _ = proxy.accept()
                except OSError:
                    return
                with sock:
                    seen.append(sock.recv(65536))
                    sock.sendall(answer)

        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        client = connect(
            Polite(),
            url=f"https://user:{USER}@far.example/mcp?token={QUERY}",
            headers={"X-Key": HEADER},
            proxies={"https": f"http://me:{PROXY}@127.0.0.1:{proxy.getsockname()[1]}"},
        )
        with pytest.raises(ConnectFailed) as caught:
            client.__enter__()
        proxy.shutdown(socket.SHUT_RDWR)
        thread.join(5)
    produced = [everything_about(caught.value), repr(client), repr(client._target)]
    text = "\n".join(produced + records)
    assert not [secret for secret in (*SECRETS, PROXY) if secret in text]
    assert seen
    assert b"proxy-authorization" in seen[0].lower()
    if answer.startswith(b"HTTP"):
        assert "proxy" in str(caught.value)
