"""Changes that a client watches over HTTP, in both eras (row C31)."""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable
from typing import Any

import pytest

from raxol_sync.client.client import Client
from raxol_sync.errors import HTTPStatusError, RequestTimeout, RPCError, SessionRejected
from tests.client.http.hostile import Conn, Hostile, Polite, Seen, result, text
from tests.client.http.test_grid import FAULTS, GRACE, SHORT
from tests.waiting import wait_until

Connect = Callable[..., Client]
Host = Callable[..., Hostile]
KEY = "io.modelcontextprotocol/subscriptionId"
UPDATED = "notifications/resources/updated"


class Teller(Polite):
    """A proper server that tells of changes: `tell(method, params)`."""

    def __init__(self, era: str = "modern") -> None:
        super().__init__(era)
        self.capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
        self.streams: list[tuple[Seen, Conn]] = []
        self.uris: list[str] = []
        self.on["subscriptions/listen"] = self.listen
        self.on["resources/subscribe"] = self.subscribe
        self.on["resources/unsubscribe"] = self.unsubscribe
        if era == "legacy":
            self.on["GET"] = self.stream

    def listen(self, seen: Seen, conn: Conn) -> None:
        conn.events()
        self.streams.append((seen, conn))
        granted = {"notifications": seen.body["params"]["notifications"]}
        self.send(seen, conn, "notifications/subscriptions/acknowledged", granted)
        conn.wait_gone(30)

    def stream(self, seen: Seen, conn: Conn) -> None:
        conn.events()
        self.streams.append((seen, conn))
        conn.wait_gone(30)

    def subscribe(self, seen: Seen, conn: Conn) -> None:
        self.uris.append(seen.body["params"]["uri"])
        conn.json(result(seen, {}))

    def unsubscribe(self, seen: Seen, conn: Conn) -> None:
        self.uris.remove(seen.body["params"]["uri"])
        conn.json(result(seen, {}))

    def send(self, seen: Seen, conn: Conn, method: str, params: dict[str, Any]) -> None:
        if seen.id is not None:
            params = {**params, "_meta": {KEY: seen.id}}
        conn.event({"jsonrpc": "2.0", "method": method, "params": params})

    def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        for seen, conn in list(self.streams):
            with contextlib.suppress(OSError):
                self.send(seen, conn, method, params or {})

    def open(self) -> list[Conn]:
        return [conn for _, conn in self.streams if not conn.closed.is_set()]


@pytest.fixture(params=["modern", "legacy"])
def teller(request: pytest.FixtureRequest) -> Teller:
    """A server of each era that tells of changes."""
    return Teller(request.param)


@pytest.mark.parametrize("policy", [None, "serialized"])
def test_c31_changes_come_beside_calls(
    connect: Connect, host: Host, teller: Teller, policy: str | None
) -> None:
    """A listen takes no place in the window; closing it ends its socket."""
    server = host(teller)
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    with connect(server, concurrency=policy) as client:
        found = client.subscribe("file:///a", told.put)
        lists = client.listen(told.put, prompts=False, resources=False)
        for n in range(3):
            assert client.call_tool("echo", {"text": str(n)}).text == str(n)
            assert client.status().pending == 0
            teller.tell(UPDATED, {"uri": "file:///a"})
            assert told.get(timeout=5) == "file:///a"
        client.list_tools()
        teller.tell("notifications/tools/list_changed")
        assert told.get(timeout=5) == "tools"
        assert client.status().tools == 0
        assert found.active
        found.close()
        lists.close()
        if teller.era == "modern":
            wait_until(lambda: not teller.open())
            assert server.of("subscriptions/listen")[0].headers["mcp-method"] == (
                "subscriptions/listen"
            )
        else:
            wait_until(lambda: not teller.uris)
        assert told.empty()
    assert all(conn.closed.wait(GRACE) for _, conn in teller.streams)


@pytest.mark.parametrize("reset", [True, False])
def test_c31_a_stream_that_breaks_is_opened_again(
    connect: Connect, host: Host, teller: Teller, reset: bool
) -> None:
    """After a while; no call is needed for that, and the breaker is not asked."""
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    with connect(host(teller), reconnect_delay=0.02) as client:
        found = client.subscribe("file:///a", told.put)
        for n in range(2):
            teller.streams[-1][1].close(reset=reset)
            wait_until(lambda n=n: len(teller.streams) >= n + 2)  # type: ignore[misc]
            wait_until(lambda: found.active)
            teller.tell(UPDATED, {"uri": "file:///a"})
            assert told.get(timeout=5) == "file:///a"


def test_c31_a_rejected_session_is_subscribed_anew(connect: Connect, host: Host) -> None:
    """In the session that replaces it, however quickly that comes."""
    teller = Teller("legacy")
    server = host(teller)
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    with connect(server) as client:
        client.subscribe("file:///a", told.put)
        teller.session = "s2"
        teller.on["tools/call"] = lambda seen, conn: conn.reply(404)
        with pytest.raises(SessionRejected):
            client.call_tool("echo")
        del teller.on["tools/call"]
        wait_until(lambda: len(teller.uris) == 2)
        assert server.of("resources/subscribe")[-1].headers["mcp-session-id"] == "s2"
        wait_until(lambda: len(teller.streams) == 2)
        teller.tell(UPDATED, {"uri": "file:///a"})
        assert told.get(timeout=5) == "file:///a"


def test_c31_a_serialized_session_opens_its_stream_when_it_is_needed(
    connect: Connect, host: Host
) -> None:
    """And not before."""
    teller = Teller("legacy")
    server = host(teller)
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    with connect(server, concurrency="serialized") as client:
        assert not server.of("GET")
        client.listen(told.put)
        client.subscribe("file:///a", told.put)
        assert len(server.of("GET")) == 1
        teller.tell("notifications/tools/list_changed")
        assert told.get(timeout=5) == "tools"


def test_c31_without_a_stream_nothing_can_be_watched(connect: Connect) -> None:
    """A legacy server that has none: an error, and it is not asked."""
    teller = Teller("legacy")
    del teller.on["GET"]
    with connect(teller) as client:
        with pytest.raises(RPCError, match="no stream"):
            client.subscribe("file:///a", print)
        with pytest.raises(RPCError, match="no stream"):
            client.listen()
        assert not teller.uris
        assert client.call_tool("echo", {"text": "x"}).text == "x"


def test_c31_a_stream_may_be_longer_than_any_answer(connect: Connect) -> None:
    """Each event is bounded, the stream is not."""
    teller = Teller()
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    with connect(teller, max_message_bytes=2000) as client:
        client.subscribe("file:///a", told.put)
        for _ in range(100):
            teller.tell(UPDATED, {"uri": "file:///a", "more": "x" * 500})
            assert told.get(timeout=5) == "file:///a"
        assert len(teller.streams) == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_c31_a_listen_that_fails_leaves_nothing(connect: Connect, host: Host, fault: str) -> None:
    """Its error comes in time, its socket is gone, and the next one works."""
    teller = Teller()
    server = host(teller)
    teller.on["subscriptions/listen"] = FAULTS[fault][0]
    with connect(server, max_message_bytes=100_000) as client:
        begun = time.monotonic()
        with pytest.raises(FAULTS[fault][1]):
            client.subscribe("file:///a", print, timeout=SHORT)
        assert time.monotonic() - begun < SHORT + GRACE
        teller.on["subscriptions/listen"] = teller.listen
        if FAULTS[fault][1] is RequestTimeout:
            assert server.of("subscriptions/listen")[0].conn.closed.wait(GRACE)
        assert client.subscribe("file:///a", print).active


def test_c31_listens_neither_ask_nor_feed_the_breaker(connect: Connect) -> None:
    """Calls are not refused for what happens to a stream."""
    teller = Teller()
    teller.on["subscriptions/listen"] = lambda seen, conn: conn.reply(503)
    with connect(teller) as client:
        for _ in range(6):
            with pytest.raises(HTTPStatusError):
                client.listen()
        assert client.call_tool("echo", {"text": "x"}).text == "x"


def test_c31_stop_ends_streams_at_once(connect: Connect, teller: Teller) -> None:
    """Their sockets too; nobody waits for a silent server."""
    client = connect(teller)
    client.start()
    client.await_ready()
    found = client.subscribe("file:///a", print)
    begun = time.monotonic()
    client.stop()
    assert time.monotonic() - begun < GRACE
    assert not found.active
    assert all(conn.closed.wait(GRACE) for _, conn in teller.streams)


def test_c31_a_call_may_be_answered_on_a_stream_of_its_own_meanwhile(connect: Connect) -> None:
    """Notifications of a call's stream are no subscription's."""
    teller = Teller()
    told: queue.SimpleQueue[str] = queue.SimpleQueue()

    def answer(seen: Seen, conn: Conn) -> None:
        conn.events()
        note = {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": "file:///a"}}
        conn.event(note)
        conn.event(result(seen, text("done")))
        conn.end()

    teller.on["tools/call"] = answer
    with connect(teller) as client:
        client.subscribe("file:///a", told.put)
        assert client.call_tool("echo").text == "done"
        teller.tell(UPDATED, {"uri": "file:///a/b"})
        assert told.get(timeout=5) == "file:///a/b"
