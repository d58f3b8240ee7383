"""Our client watches servers of others: the official SDK 2.x and node's (row C31)."""

from __future__ import annotations

import os
import queue
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from raxol_sync import Client
from tests.conftest import Peers
from tests.starting import comes_to_listen, free_port

pytestmark = pytest.mark.peers

PROGRAM = str(Path(__file__).parent / "programs" / "sdk_watched.py")
SETTINGS = {"call_timeout": 20.0, "fail_fast": True}


@pytest.fixture(params=["stdio", "http"])
def modern(request: pytest.FixtureRequest, peers: Peers) -> Iterator[Client]:
    """A client of the official SDK's server."""
    if request.param == "stdio":
        with Client("peer", command=peers.mcp2, args=[PROGRAM], **SETTINGS) as client:  # type: ignore[arg-type]
            yield client
        return
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.Popen([str(peers.mcp2), PROGRAM, str(port)], env=environment)
    try:
        assert comes_to_listen(port, process), "the server does not listen"
        with Client("peer", url=f"http://127.0.0.1:{port}/mcp", **SETTINGS) as client:  # type: ignore[arg-type]
            yield client
    finally:
        process.kill()
        process.wait()


def test_c31_the_official_sdks_server_tells_of_changes(modern: Client) -> None:
    """Resources and lists, while it is called, until the subscription is closed."""
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    assert modern.status().era == "modern"
    with modern.subscribe("peer://a", told.put) as found, modern.listen(told.put) as lists:
        assert found.active
        assert "tools" in lists.kinds
        for _ in range(3):
            modern.call_tool("touch", {"uri": "peer://b"})
            modern.call_tool("touch", {"uri": "peer://a"})
            assert told.get(timeout=10) == "peer://a"
            modern.call_tool("change")
            assert told.get(timeout=10) == "tools"
    with modern.subscribe("peer://c", told.put):
        modern.call_tool("touch", {"uri": "peer://a"})
        modern.call_tool("touch", {"uri": "peer://c"})
        assert told.get(timeout=10) == "peer://c"


def test_c31_nodes_server_tells_of_changes(peers: Peers) -> None:
    """A legacy server, over stdio; it tells every five seconds."""
    command = peers.node_server("everything")
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    with Client("peer", command=command, args=["stdio"], **SETTINGS) as client:  # type: ignore[arg-type]
        uri = client.list_resources()[0].uri
        with client.subscribe(uri, told.put):
            client.call_tool("toggle-subscriber-updates")
            assert told.get(timeout=15) == uri
