"""The client on a server object of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from raxol_sync import Server
from raxol_sync.client.client import Client
from raxol_sync.errors import ConnectFailed, InvalidResponse, NotReady, RequestTimeout, RPCError

Json = dict[str, Any]
Sink = Callable[[Json], object]


class Subscription:
    def __init__(self, server: FakeServer, conn_id: object) -> None:
        self._server, self._conn_id = server, conn_id

    def close(self) -> None:
        self._server.subscribers.pop(self._conn_id, None)


class FakeServer:
    """A server with the two methods that the client needs; all goes out on one thread."""

    def __init__(self) -> None:
        self.subscribers: dict[object, Sink] = {}
        self.got: list[Json] = []
        self.schema = {"type": "object"}
        self.out = ThreadPoolExecutor(1)

    def subscribe(self, subscriber: Sink, conn_id: object) -> Subscription:
        self.subscribers[conn_id] = subscriber
        return Subscription(self, conn_id)

    def request(
        self, message: Json, conn_id: object, *, sink: Sink, owner: object = None
    ) -> Future[Json | None]:
        assert owner is None
        assert sink is self.subscribers[conn_id]  # responses keep their place among notifications
        self.got.append(message)
        future: Future[Json | None] = Future()
        if "id" not in message or message["params"].get("name") == "drop":
            future.set_result(None)
        elif message["params"].get("name") == "raise":
            raise RuntimeError("careless server")
        elif message["params"].get("name") != "silent":
            self.out.submit(self._answer, message, sink, future)
        return future

    def _answer(self, message: Json, sink: Sink, future: Future[Json | None]) -> None:
        params = message["params"]
        token = params.get("_meta", {}).get("progressToken")
        for number in range(3 if token is not None else 0):
            note = {"progressToken": token, "progress": number}
            sink({"jsonrpc": "2.0", "method": "notifications/progress", "params": note})
        response = {"jsonrpc": "2.0", "id": message["id"], "result": self._result(message)}
        sink(response)
        future.set_result(response)

    def _result(self, message: Json) -> Any:
        method, name = message["method"], message["params"].get("name")
        if method == "server/discover":
            return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        if method == "initialize":
            return {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {}}
        if method == "tools/list":
            return {"tools": [{"name": "t", "inputSchema": self.schema}]}
        if name == "nan":
            return {"content": [], "structuredContent": float("nan")}
        if name == "object":
            return {"content": [], "structuredContent": object()}
        arguments = message["params"].get("arguments", {})
        message["params"].setdefault("arguments", {})["seen"] = True  # a careless callback
        return {"content": [{"type": "text", "text": str(arguments.get("text"))}]}

    def methods(self) -> list[str]:
        return [message["method"] for message in self.got]


@pytest.fixture
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    yield made
    made.out.shutdown()


def test_c22_in_process_there_is_no_probe(server: FakeServer) -> None:
    """Modern straight away: nothing is sent before the first call."""
    with Client("x", server=server) as client:
        assert client.status().era == "modern"
        assert server.got == []
        assert client.call_tool("echo", {"text": "hi"}).text == "hi"
        assert server.methods() == ["tools/call"]
    assert server.subscribers == {}


def test_c22_a_legacy_revision_can_be_pinned(server: FakeServer) -> None:
    """Then there is a handshake."""
    with Client("x", server=server, protocol_version="2025-03-26") as client:
        assert client.status().protocol_version == "2025-03-26"
        assert client.call_tool("echo", {"text": "hi"}).text == "hi"
        assert server.methods()[:2] == ["initialize", "notifications/initialized"]


def test_c08_capabilities_are_asked_when_they_are_needed(server: FakeServer) -> None:
    """Once; what is not declared is not asked for."""
    with Client("x", server=server) as client:
        (tool,) = client.list_tools()
        assert client.list_prompts() == []
        assert server.methods() == ["server/discover", "tools/list"]
        assert tool.input_schema == server.schema
        assert tool.input_schema is not server.schema


def test_nothing_is_shared_between_the_sides(server: FakeServer) -> None:
    """A callback that changes its arguments does not change the caller's."""
    arguments = {"text": "x", "deep": {"list": [1]}}
    with Client("x", server=server) as client:
        client.call_tool("echo", arguments)
    assert arguments == {"text": "x", "deep": {"list": [1]}}


def test_c14_progress_comes_before_the_return(server: FakeServer) -> None:
    """Order holds across the server's thread and ours."""
    seen: list[float] = []
    with Client("x", server=server) as client:
        for _ in range(50):
            seen.clear()
            client.call_tool("echo", progress=lambda done, total, message: seen.append(done))
            assert seen == [0, 1, 2]


@pytest.mark.parametrize(
    ("tool", "error"),
    [("silent", RequestTimeout), ("drop", RPCError), ("raise", RPCError), ("nan", InvalidResponse),
     ("object", InvalidResponse)],
)  # fmt: skip
def test_c11_faults_of_the_server_have_their_exception(
    server: FakeServer, tool: str, error: type[Exception]
) -> None:
    """Silence, a dropped request, a server that raises, a result that is no JSON."""
    with Client("x", server=server) as client:
        with pytest.raises(error):
            client.call_tool(tool, timeout=0.3)
        assert client.status().pending == 0
        assert client.call_tool("echo", {"text": "y"}).text == "y"
    assert ("notifications/cancelled" in server.methods()) is (tool == "silent")


def test_c06_a_server_that_refuses_the_connection(server: FakeServer) -> None:
    """`ConnectFailed`, with the server's exception as its cause."""

    def refuse(subscriber: Sink, conn_id: object) -> Subscription:
        raise ValueError("closed")

    server.subscribe = refuse  # type: ignore[method-assign]
    with pytest.raises(ConnectFailed, match="closed"), Client("x", server=server, fail_fast=True):
        pass


def test_c12_two_clients_on_one_server_do_not_meet(server: FakeServer) -> None:
    """Each has its own connection and its own ids."""
    with Client("a", server=server) as one, Client("b", server=server) as two:
        barrier = threading.Barrier(2)

        def work(client: Client, text: str) -> list[str]:
            barrier.wait(5)
            return [client.call_tool("echo", {"text": text}).text for _ in range(50)]

        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(work, (one, two), ("a", "b")))
    assert found == [["a"] * 50, ["b"] * 50]


def test_c02_stop_in_process(server: FakeServer) -> None:
    """Outstanding calls fail, the subscription ends."""
    client = Client("x", server=server)
    client.start()
    client.await_ready()
    future = client.submit_tool("silent")
    client.stop()
    assert isinstance(future.exception(timeout=0), NotReady)
    assert server.subscribers == {}


def test_c02_a_closed_server_is_told_at_once() -> None:
    """It stays closed, so nobody waits for it until the time is up."""
    with Server("gone") as server:
        pass
    client = Client("x", server=server)
    client.start()
    with pytest.raises(ConnectFailed, match="is closed, which is final; make another") as caught:
        client.await_ready(timeout=60)
    assert type(caught.value) is ConnectFailed
    with pytest.raises(ConnectFailed, match="is closed, which is final; make another one"), client:
        pytest.fail("it is not entered")


def test_c02_a_server_that_closes_is_told_to_later_calls() -> None:
    """In the server's words."""
    server = Server("gone")
    with Client("x", server=server) as client:
        server.close()
        with pytest.raises(RPCError, match="server closed"):
            client.call_tool("x")


def test_c02_a_stopped_client_says_so_whatever_is_asked() -> None:
    """At once, in the same words."""
    with Server("s") as server:
        client = Client("x", server=server)
        with client:
            pass
        asked: list[Callable[[], object]] = [
            client.start, client.__enter__, client.await_ready, client.list_tools, client.ping,
            client.describe, client.roots_changed, lambda: client.call_tool("t"),
            lambda: client.submit_tool("t"), lambda: client.read_resource("a:b"),
            lambda: client.subscribe("a:b", print), lambda: client.listen(print, tools=True),
            lambda: client.set_log_level("info"), lambda: client.request("ping"),
        ]  # fmt: skip
        for ask in asked:
            with pytest.raises(NotReady, match="was stopped, which is final; make another one"):
                ask()
