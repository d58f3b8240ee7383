"""`Client.request`: any request, its result as it came; and `stop` with less patience."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from raxol_sync import Client, NotReady, RPCError, Server


def test_request_returns_the_result_as_it_came() -> None:
    """With every member, also those that no value shows."""
    with Server("raw") as server, Client("test", server=server) as client:
        server.tool(name="one", description="One.", meta={"x": 1})(lambda: "1")
        listed = client.request("tools/list")
        assert [tool["_meta"] for tool in listed["tools"]] == [{"x": 1}]
        called = client.request("tools/call", {"name": "one", "arguments": {}})
        assert called["content"] == [{"type": "text", "text": "1"}]
        with pytest.raises(RPCError) as refused:
            client.request("no/such/method", timeout=10)
        assert refused.value.code == -32601
        with pytest.raises(TypeError, match="method must be a string, not int"):
            client.request(7)  # type: ignore[arg-type]
    with pytest.raises(NotReady):
        client.request("ping")


def test_stop_with_less_patience_kills_sooner(serve: Callable[..., Client]) -> None:
    """A server that heeds neither its stdin nor SIGTERM gets as long as was said."""
    client = serve("ignore-term", "ignore-eof")
    client.start()
    client.await_ready()
    begun = time.monotonic()
    client.stop(seconds=0.2)
    assert time.monotonic() - begun < 2.0
