"""Our client against HTTP servers of others: the official SDK 1.x and 2.x, and node's."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from raxol_sync import Client, ConnectionLost, RequestTimeout, SessionRejected
from tests.conftest import Peers
from tests.starting import comes_to_listen, free_port

pytestmark = pytest.mark.peers

PROGRAM = str(Path(__file__).parent / "programs" / "sdk_http.py")
LEGACY, MODERN = "2025-11-25", "2026-07-28"
# peer, how it serves, path, pinned revision, the revision that must come out
SERVERS = [
    ("mcp1", "streamable", "/mcp", None, LEGACY),
    ("mcp1", "json", "/mcp", None, LEGACY),
    ("mcp1", "stateless", "/mcp", None, LEGACY),
    ("mcp1", "sse", "/sse", None, LEGACY),
    ("mcp2", "streamable", "/mcp", None, MODERN),
    ("mcp2", "json", "/mcp", None, MODERN),
    ("mcp2", "streamable", "/mcp", LEGACY, LEGACY),
    ("mcp2", "sse", "/sse", None, LEGACY),
    ("node", "streamableHttp", "/mcp", None, LEGACY),
    ("node", "sse", "/sse", None, LEGACY),
]
STREAMING = [case for case in SERVERS if case[1] != "json"]
# Those with sessions; node's answers 400 where the specification wants 404.
SESSIONS = ("streamable", "json", "streamableHttp")
FORGETTING = [case for case in SERVERS if case[4] == LEGACY and case[1] in SESSIONS]
# Each waits for seconds, so one of a kind: uvicorn's two, and node's.
CLOSING = [case for case in SERVERS if case[1].startswith("streamable") and case[3] is None]


@dataclass
class Served:
    """A server of somebody else's."""

    url: str
    peer: str
    mode: str
    pinned: str | None
    revision: str

    def client(self, **settings: Any) -> Client:
        defaults = {"call_timeout": 20.0, "fail_fast": True, "protocol_version": self.pinned}
        return Client("peer", url=self.url, **{**defaults, **settings})


def _name(case: tuple[str, str, str, str | None, str]) -> str:
    return f"{case[0]}-{case[1]}-{case[3] or 'any'}"


@pytest.fixture(scope="module", params=SERVERS, ids=_name)
def served(request: pytest.FixtureRequest, peers: Peers) -> Iterator[Served]:
    """One process for all tests of this module."""
    peer, mode, path, pinned, revision = request.param
    port = free_port()
    if peer == "node":
        command = [str(peers.node_server("everything")), mode]
    else:
        command = [str(peers.folder / peer / "bin" / "python"), PROGRAM, mode, str(port)]
    environment = {**os.environ, "PORT": str(port)}
    environment.pop("PYTHONPATH", None)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=environment, **quiet)  # type: ignore[call-overload]
    try:
        assert comes_to_listen(port, process), "the server does not listen"
        yield Served(f"http://127.0.0.1:{port}{path}", peer, mode, pinned, revision)
    finally:
        process.kill()
        process.wait()


def add(client: Client, served: Served, a: int, b: int) -> int:
    name = "get-sum" if served.peer == "node" else "add"
    found = client.call_tool(name, {"a": a, "b": b})
    assert not found.is_error
    text = str(found.content[0].text)  # type: ignore[union-attr]
    return int("".join(char for char in text.rpartition("is")[2] if char.isdigit()))


def test_c22_the_era_of_http_servers_is_found_out(served: Served) -> None:
    """And tools are listed and called."""
    with served.client() as client:
        status = client.status()
        assert status.protocol_version == served.revision
        assert status.era == ("modern" if served.revision == MODERN else "legacy")
        assert len(client.list_tools()) > 5
        assert add(client, served, 2, 3) == 5
    assert client.status().state == "closed"


def test_c12_many_threads_at_an_http_server(served: Served) -> None:
    """Each gets its own sums."""
    wrong: list[tuple[int, int]] = []
    with served.client() as client:

        def work(a: int) -> None:
            for b in range(5):
                if add(client, served, a, b) != a + b:
                    wrong.append((a, b))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_c10_a_time_out_at_an_http_server(served: Served) -> None:
    """The call ends in time, and the session goes on."""
    if served.peer == "node":
        name, arguments = "trigger-long-running-operation", {"duration": 5, "steps": 5}
    else:
        name, arguments = "sleep", {"ms": 5000}
    with served.client() as client:
        begun = time.monotonic()
        with pytest.raises(RequestTimeout):
            client.call_tool(name, arguments, timeout=0.5)
        assert time.monotonic() - begun < 2.5
        assert client.status().pending == 0
        assert add(client, served, 1, 1) == 2


@pytest.mark.parametrize("served", STREAMING, ids=_name, indirect=True)
def test_c14_progress_of_an_http_server(served: Served) -> None:
    """All of it, before the call returns."""
    told: list[float] = []
    if served.peer == "node":
        name, arguments = "trigger-long-running-operation", {"duration": 1, "steps": 4}
    else:
        name, arguments = "count", {"steps": 4}
    with served.client() as client:
        client.call_tool(name, arguments, progress=lambda done, total, message: told.append(done))
        assert told == sorted(told)
        assert len(told) >= 3


@pytest.mark.parametrize("served", CLOSING, ids=_name, indirect=True)
def test_c21_a_connection_that_uvicorn_or_node_closed(served: Served) -> None:
    """After 5 (uvicorn) or 6 seconds (node) of silence; the caller does not notice."""
    with served.client() as client:
        assert add(client, served, 1, 1) == 2
        threading.Event().wait(6.5)
        for n in range(3):
            assert add(client, served, n, n) == 2 * n


@pytest.mark.parametrize("served", FORGETTING, ids=_name, indirect=True)
def test_c17_a_session_that_the_server_has_forgotten(served: Served) -> None:
    """DELETE behind the client's back: one call fails, the next works."""
    with served.client() as client:
        transport: Any = client._session._link.transport  # type: ignore[union-attr]
        session = transport._session
        assert session is not None
        import requests

        headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY}
        assert requests.delete(served.url, headers=headers, timeout=10).status_code in (200, 204)
        # Unless the stream has noticed it first, and the session is new already.
        with contextlib.suppress(SessionRejected, ConnectionLost):
            add(client, served, 1, 1)
        client.await_ready(10)
        assert add(client, served, 1, 1) == 2
