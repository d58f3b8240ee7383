"""Our server over HTTP, for the clients of others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Peers
from tests.hosts.serving import Host, running
from tests.starting import OLDEST_NODE, find_node

PROGRAMS = Path(__file__).parent / "programs"
SERVERS = {
    "embedded": Host("embedded", "", (str(PROGRAMS / "our_server.py"), "{port}")),
    "gunicorn": Host(
        "gunicorn",
        "gunicorn",
        (
            *("--worker-class", "gthread", "--threads", "32", "--graceful-timeout", "2"),
            *("--bind", "127.0.0.1:{port}", "--log-level", "warning", "our_server:app"),
        ),
    ),
}


@contextlib.contextmanager
def serving(name: str, peers: Peers, folder: Path) -> Iterator[str]:
    """Yield where it serves: the URL without a path."""
    host = SERVERS[name]
    with running(lambda port: host.command(peers, port), host, folder, PROGRAMS) as served:
        yield served.talk.url.removesuffix("/mcp")


def node(peers: Peers) -> str:
    """A node that is new enough; skips where there was no npm to install what it is to run."""
    if not (peers.folder / "clients" / "node_modules").is_dir():
        pytest.skip(f"needs npm: install it and run `.ci/peers {peers.folder}` again")
    found = find_node(peers.folder / "conformance" / "node_modules")
    assert found is not None, f"these need node {OLDEST_NODE} or newer"
    return found
