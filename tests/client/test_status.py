"""`status()` over a client's life."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from raxol_sync.client.client import Client
from raxol_sync.errors import NotReady
from raxol_sync.server.server import Server

Serve = Callable[..., Client]


@pytest.mark.parametrize(
    ("options", "version", "era"),
    [(["era=legacy"], "2025-11-25", "legacy"), (["era=modern"], "2026-07-28", "modern")],
)
def test_c05_status_tells_where_the_session_stands(
    serve: Serve, options: list[str], version: str, era: str
) -> None:
    """Before, while and after; nothing is known before the server has spoken."""
    client = serve(*options)
    before = client.status()
    assert (before.name, before.state) == ("test", "starting")
    assert (before.protocol_version, before.era, before.error) == (None, None, None)
    with client:
        client.list_tools()
        ready = client.status()
        assert (ready.state, ready.protocol_version, ready.era) == ("ready", version, era)
        assert (ready.pending, ready.queued, ready.concurrency) == (0, 0, "stateless")
    assert client.status().state == "closed"


def test_c05_status_counts_what_is_under_way() -> None:
    """One on the wire, one that waits for its place."""
    entered, go = threading.Event(), threading.Event()
    server = Server("gate")

    @server.tool
    def wait() -> str:
        """Wait for the test."""
        entered.set()
        assert go.wait(20)
        return "done"

    with server, Client("test", server=server, concurrency="serialized") as client:
        futures = [client.submit_tool("wait") for _ in range(2)]
        assert entered.wait(20)
        status = client.status()
        assert (status.concurrency, status.pending, status.queued) == ("serialized", 1, 1)
        go.set()
        assert [future.result(20).text for future in futures] == ["done", "done"]
        assert (client.status().pending, client.status().queued) == (0, 0)


def test_c05_status_keeps_why_the_session_failed() -> None:
    """In words, without the environment's values."""
    client = Client(
        "test", command="no-such-program-anywhere", env={"TOKEN": "s3cret"}, fail_fast=True
    )
    client.start()
    try:
        with pytest.raises(Exception, match="no-such-program-anywhere"):
            client.await_ready(20)
        status = client.status()
        assert status.state == "closed"
        assert "no-such-program-anywhere" in str(status.error)
        assert "s3cret" not in repr(status)
    finally:
        client.stop()


def test_c02_a_stopped_client_says_at_once_that_this_is_final() -> None:
    """Whoever starts it again, with `with` too, waits for nothing."""
    with Server("test") as server:
        client = Client("test", server=server)
        with client:
            pass
        for use in (client.start, client.await_ready, client.list_tools, client.__enter__):
            with pytest.raises(NotReady, match="stopped, which is final; make another"):
                use()
