"""What a client tells its `telemetry=` callable."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from raxol_sync.breaker import Breaker
from raxol_sync.client.client import Client
from raxol_sync.errors import MCPError, RequestTimeout
from raxol_sync.telemetry import CLIENT_EVENTS
from tests.client.http.hostile import Conn, Hostile, Polite, Seen, failure, result, text
from tests.telemetry import Heard

Connect = Callable[..., Client]
OPTIONAL = {"is_error", "code"}


def documented(event: str) -> set[str]:
    """The fields that the table promises."""
    first = re.split(r"[:;]", CLIENT_EVENTS[event])[0]
    return {word.strip() for word in first.split(",")}


def test_each_event_is_told_with_the_fields_of_the_table(
    connect: Connect, host: Callable[..., Hostile], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One story in which each happens; names and fields are exactly the documented ones."""
    polite, heard = Polite("legacy"), Heard()
    server = host(polite)
    server.die()
    prices = {"echo": 2.0, "free": 0.0}
    client = connect(
        server, telemetry=heard, prices=prices, fail_fast=False, reconnect_delay=0.02,
        retry_rejected=False,
    )  # fmt: skip
    client.start()
    heard.wait("reconnecting", attempt=2)
    server.revive()
    client.await_ready()
    client.call_tool("echo", reservation=1)
    for name, reservation in (("echo", None), ("other", 2)):
        with pytest.raises(MCPError):
            client.call_tool(name, reservation=reservation)

    polite.on["tools/call"] = lambda seen, conn: conn.json(
        result(seen, {**text("no"), "isError": True})
    )
    assert client.submit_tool("free").result(5).is_error
    polite.on["tools/call"] = lambda seen, conn: conn.json(failure(seen, -32055))
    with pytest.raises(MCPError):
        client.call_tool("free")
    polite.on["tools/call"] = lambda seen, conn: conn.wait_gone()
    with pytest.raises(RequestTimeout):
        client.call_tool("free", timeout=0.1)
    assert client.submit_tool("free").cancel()
    polite.on["tools/call"] = lambda seen, conn: conn.reply(404)
    with pytest.raises(MCPError):
        client.call_tool("free")
    client.await_ready()

    polite.on["tools/call"] = lambda seen, conn: conn.reply(503)
    for _ in range(5):
        with pytest.raises(MCPError):
            client.call_tool("free")
    with pytest.raises(MCPError, match="keeps failing"):
        client.call_tool("echo", reservation=3)
    plan: Any = client._target.plan
    breaker: Breaker = plan.guard._breaker
    breaker._opened_at -= 31
    del polite.on["tools/call"]
    client.call_tool("free")
    client.stop()

    assert {name for name, _ in heard.events} == set(CLIENT_EVENTS) - {"events_dropped"}
    for name, fields in heard.events:
        assert set(fields) - OPTIONAL == documented(name), name
        assert fields["name"] == "test"
    assert heard.threads == {"raxol-sync-test-telemetry"}
    assert [fields["attempt"] for fields in heard.of("reconnecting")[:2]] == [1, 2]
    assert heard.of("reconnecting")[0]["seconds"] == 0.02
    assert heard.of("request_finished")[-1]["method"] == "tools/call"
    assert [fields for fields in heard.of("request_finished") if "is_error" in fields]
    (coded,) = [fields for fields in heard.of("request_failed") if "code" in fields]
    assert (coded["code"], coded["error"]) == (-32055, "RPCError")
    assert {fields["error"] for fields in heard.of("call_refused")} == {
        "UnmeteredCall", "UnknownPrice",
    }  # fmt: skip
    assert len(heard.of("breaker_opened")) == 1
    names = [name for name, _ in heard.events]
    started = names.count("request_started")
    ended = ("request_finished", "request_failed", "request_cancelled", "request_timed_out")
    assert started == sum(names.count(name) for name in ended)


def test_a_callable_that_blocks_or_raises_holds_up_nothing(connect: Connect) -> None:
    """Calls go on; events wait."""
    gate = threading.Event()

    def sink(event: str, fields: Mapping[str, Any]) -> None:
        gate.wait(10)
        raise RuntimeError

    with connect(Polite(), telemetry=sink) as client:
        for n in range(50):
            assert client.call_tool("echo", {"text": str(n)}).text == str(n)
        gate.set()


def test_a_breaker_told_of_by_threads_has_one_story(
    connect: Connect, host: Callable[..., Hostile]
) -> None:
    """Opened once, half opened once, closed once."""
    heard, polite = Heard(), Polite()
    gate = threading.Event()

    def fails(seen: Seen, conn: Conn) -> None:
        gate.wait(5)
        conn.reply(503)

    polite.on["tools/call"] = fails
    with connect(host(polite), telemetry=heard) as client:
        futures = [client.submit_tool("echo") for _ in range(10)]
        gate.set()
        for future in futures:
            assert future.exception(5) is not None
        del polite.on["tools/call"]
        plan: Any = client._target.plan
        plan.guard._breaker._opened_at -= 31
        client.call_tool("echo")
        heard.wait("breaker_closed")
    names = [name for name, _ in heard.events if name.startswith("breaker")]
    assert names == ["breaker_opened", "breaker_half_opened", "breaker_closed"]
