"""Changes that a client watches: in process and over stdio, in both eras (row C31)."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from raxol_sync import Server
from raxol_sync.client import watcher
from raxol_sync.client.client import Client
from raxol_sync.errors import (
    Busy,
    MCPError,
    NotReady,
    RequestTimeout,
    RPCError,
    ServerExited,
)
from tests.waiting import wait_until

PROGRAM = Path(__file__).parent / "programs" / "watched.py"
UPDATED = "notifications/resources/updated"
ERAS = [None, "2025-11-25", "2024-11-05"]


class Watched:
    """A client, its server, and what its callbacks were told."""

    def __init__(self, client: Client, server: Server | None) -> None:
        self.client = client
        self.server = server
        self.told: queue.SimpleQueue[str] = queue.SimpleQueue()

    def touch(self, uri: str) -> None:
        if self.server is not None:
            self.server.notify(UPDATED, {"uri": uri})
        else:
            self.client.call_tool("touch", {"uri": uri})

    def change(self, kind: str) -> None:
        if self.server is not None:
            self.server.notify(f"notifications/{kind}/list_changed")
        else:
            self.client.call_tool("change", {"kind": kind})

    def next(self) -> str:
        return self.told.get(timeout=5)


def stdio(**settings: Any) -> Client:
    defaults = {"call_timeout": 15.0, "init_timeout": 15.0, "reconnect_delay": 0.05}
    return Client(
        "test", command=sys.executable, args=[str(PROGRAM)], inherit_env=True,
        **{**defaults, **settings},
    )  # fmt: skip


@pytest.fixture(params=["in process", "stdio", "http"])
def watched(request: pytest.FixtureRequest) -> Iterator[Callable[..., Watched]]:
    """Make pairs: `watched(protocol_version=...)`, over each transport."""
    made: list[Any] = []

    def make(**settings: Any) -> Watched:
        server = None if request.param == "stdio" else Server("watched")
        if server is None:
            client = stdio(**settings)
            made.append(client)
        elif request.param == "http":
            service = server.start_http(port=0, require_authorization=False)
            client = Client("test", url=service.url, **settings)
            made.extend([client, service, server])
        else:
            client = Client("test", server=server, **settings)
            made.extend([client, server])
        client.start()
        client.await_ready()
        return Watched(client, server)

    yield make
    for one in made:
        one.close() if isinstance(one, Server) else one.stop()


@pytest.fixture
def pair() -> Iterator[Callable[..., Watched]]:
    """The same, in process only."""
    made: list[Any] = []

    def make(server: Server | None = None, **settings: Any) -> Watched:
        server = Server("watched") if server is None else server
        client = Client("test", server=server, **settings)
        made.extend([client, server])
        client.start()
        client.await_ready()
        return Watched(client, server)

    yield make
    for one in made:
        one.stop() if isinstance(one, Client) else one.close()


@pytest.mark.parametrize("version", ERAS)
def test_c31_a_subscription_tells_of_its_resource(
    watched: Callable[..., Watched], version: str | None
) -> None:
    """Of its own and of what is inside of it, until it is closed."""
    pair = watched(protocol_version=version)
    with pair.client.subscribe("file:///a", pair.told.put) as found:
        assert found.active
        assert found.uris == {"file:///a"}
        pair.touch("file:///b")
        pair.touch("file:///a")
        assert pair.next() == "file:///a"
        with pair.client.subscribe(
            ["file:///b", "file:///c"], lambda uri: pair.told.put("2" + uri)
        ):
            pair.touch("file:///c")
            assert pair.next() == "2file:///c"
            pair.touch("file:///a")
            assert pair.next() == "file:///a"
    assert (found.closed, found.active) == (True, False)
    pair.touch("file:///a")
    with pair.client.subscribe("file:///z", pair.told.put):
        pair.touch("file:///z")
        assert pair.next() == "file:///z"
    assert pair.client.status().pending == 0


@pytest.mark.parametrize("version", ERAS)
def test_c31_listening_tells_of_lists_and_refreshes_them(
    watched: Callable[..., Watched], version: str | None
) -> None:
    """The kinds that were asked for; the kept list of tools is asked anew."""
    pair = watched(protocol_version=version)
    with pair.client.listen(pair.told.put, prompts=False) as found:
        assert found.kinds == {"tools", "resources"}
        pair.client.list_tools()
        pair.change("prompts")
        pair.change("tools")
        assert pair.next() == "tools"
        assert pair.client.status().tools == 0
        pair.change("resources")
        assert pair.next() == "resources"


@pytest.mark.parametrize("version", ERAS)
def test_c31_subscriptions_outlive_the_process(version: str | None) -> None:
    """A server that is started anew is asked again, without a call."""
    with stdio(protocol_version=version) as client:
        pair = Watched(client, None)
        first = client.subscribe("file:///a", pair.told.put)
        second = client.listen(pair.told.put)
        for _ in range(2):
            with pytest.raises(ServerExited):
                client.call_tool("die")
            wait_until(lambda: first.active and second.active, 15)
            pair.touch("file:///a")
            assert pair.next() == "file:///a"
            pair.change("tools")
            assert pair.next() == "tools"
    assert not first.active


def test_c31_one_listen_for_all_and_no_change_is_missed(pair: Callable[..., Watched]) -> None:
    """Subscriptions come and go while changes are told of: each is told exactly once."""
    found = pair()
    assert found.server is not None
    kept = found.client.subscribe("file:///kept", found.told.put)
    for n in range(30):
        other = found.client.subscribe(f"file:///{n}", lambda uri: None)
        found.touch("file:///kept")
        if n % 2:
            other.close()
        found.touch("file:///kept")
    for _ in range(60):
        assert found.next() == "file:///kept"
    wait_until(lambda: found.server.stats().listens == 1)  # type: ignore[union-attr]
    assert found.told.empty()
    kept.close()


@pytest.mark.parametrize("version", [None, "2025-11-25"])
def test_c31_many_threads_subscribe_at_once(
    pair: Callable[..., Watched], version: str | None
) -> None:
    """Each has its own; afterwards the server keeps nothing of them."""
    found = pair(protocol_version=version)
    assert found.server is not None
    problems: list[BaseException] = []

    def work(name: int) -> None:
        told: queue.SimpleQueue[str] = queue.SimpleQueue()
        try:
            for n in range(5):
                uri = f"file:///{name}/{n}"
                with found.client.subscribe(uri, told.put):
                    found.touch(uri)
                    assert told.get(timeout=10) == uri
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    stats = found.server.stats
    wait_until(lambda: (stats().listens, stats().subscriptions) == (0, 0))


@pytest.mark.parametrize("version", [None, "2025-11-25"])
def test_c31_a_callback_may_use_the_client(
    pair: Callable[..., Watched], version: str | None
) -> None:
    """Call, subscribe, and close its own subscription."""
    found = pair(protocol_version=version)

    def callback(uri: str) -> None:
        found.client.ping()
        inner = found.client.subscribe("file:///inner", found.told.put, timeout=5)
        outer.close()
        found.told.put(f"{uri} {inner.active}")

    outer = found.client.subscribe("file:///a", callback)
    found.touch("file:///a")
    assert found.next() == "file:///a True"
    found.touch("file:///inner")
    assert found.next() == "file:///inner"


def test_c31_a_callback_that_raises_harms_nobody(pair: Callable[..., Watched]) -> None:
    """Not even itself."""
    found = pair()
    found.client.subscribe("file:///a", lambda uri: 1 / 0)
    found.client.subscribe("file:///a", found.told.put)
    for _ in range(2):
        found.touch("file:///a")
        assert found.next() == "file:///a"


class Silent:
    """A server in process that does with a request what it is told to."""

    def __init__(self, capabilities: dict[str, Any] | None = None) -> None:
        self.capabilities = {} if capabilities is None else capabilities
        self.got: list[dict[str, Any]] = []
        self.sink: Callable[[dict[str, Any]], object] = lambda message: None
        self.arrived = threading.Event()
        self.answer: Callable[[dict[str, Any]], Any] = lambda message: None

    def subscribe(self, subscriber: Any, conn_id: object) -> Any:
        self.sink = subscriber
        return self

    def close(self) -> None:
        pass

    def request(self, message: Any, conn_id: object, *, sink: Any, owner: Any = None) -> Any:
        from concurrent.futures import Future

        self.got.append(message)
        future: Any = Future()
        found: Any = None
        if message["method"] == "initialize":
            found = {"protocolVersion": "2025-11-25", "capabilities": self.capabilities}
        elif "id" in message:
            found = self.answer(message)
            self.arrived.set()
        if isinstance(found, int):
            error = {"code": found, "message": "no"}
            sink({"jsonrpc": "2.0", "id": message["id"], "error": error})
        elif found is not None:
            sink({"jsonrpc": "2.0", "id": message["id"], "result": found})
        return future

    def acknowledge(self, message: dict[str, Any], granted: Any) -> None:
        meta = {"io.modelcontextprotocol/subscriptionId": message["id"]}
        params = {"_meta": meta, "notifications": granted}
        method = "notifications/subscriptions/acknowledged"
        self.sink({"jsonrpc": "2.0", "method": method, "params": params})

    def of(self, method: str) -> list[dict[str, Any]]:
        return [message for message in self.got if message["method"] == method]


SUBSCRIBES = {"resources": {"subscribe": True}}


@pytest.mark.parametrize("version", [None, "2025-11-25"])
def test_c31_a_silent_server_costs_no_more_than_the_time(
    pair: Callable[..., Watched], version: str | None
) -> None:
    """`RequestTimeout`; what was asked is cancelled, and nothing of it is kept."""
    server = Silent(SUBSCRIBES)
    client = pair(server, protocol_version=version).client
    with pytest.raises(RequestTimeout):
        client.subscribe("file:///a", print, timeout=0.1)
    wait_until(lambda: bool(server.of("notifications/cancelled")))
    assert client.status().pending == 0
    server.answer = lambda message: {}
    client.ping()  # the session goes on


def test_c31_an_interrupt_ends_the_wait(pair: Callable[..., Watched]) -> None:
    """And takes back what was asked, also without a deadline."""
    server = Silent()
    client = pair(server).client

    def interrupt() -> None:
        assert server.arrived.wait(5)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        client.subscribe("file:///a", print, timeout=None)
    thread.join()
    wait_until(lambda: bool(server.of("notifications/cancelled")))


def test_c31_stop_ends_the_wait(pair: Callable[..., Watched]) -> None:
    """With `NotReady`, as for all that is outstanding."""
    server = Silent()
    client = pair(server).client
    problems: list[BaseException] = []

    def work() -> None:
        try:
            client.subscribe("file:///a", print, timeout=None)
        except MCPError as error:
            problems.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert server.arrived.wait(5)
    client.stop()
    thread.join(5)
    assert [type(problem) for problem in problems] == [NotReady]
    with pytest.raises(NotReady):
        client.subscribe("file:///a", print)


@pytest.mark.parametrize("version", [None, "2025-11-25"])
def test_c31_a_refusal_is_the_servers_error(
    pair: Callable[..., Watched], version: str | None
) -> None:
    """And harms no other subscription."""
    server = Silent(SUBSCRIBES)
    client = pair(server, protocol_version=version).client
    refused = {"file:///no"}

    def answer(message: dict[str, Any]) -> Any:
        params = message["params"]
        if message["method"] != "subscriptions/listen":
            return -32055 if params.get("uri") in refused else {}
        if refused & set(params["notifications"]["resourceSubscriptions"]):
            return -32055
        server.acknowledge(message, params["notifications"])
        return None

    server.answer = answer
    kept = client.subscribe("file:///yes", print)
    with pytest.raises(RPCError) as caught:
        client.subscribe("file:///no", print)
    assert caught.value.code == -32055
    assert kept.active


def test_c31_what_a_server_does_not_offer_is_an_error(pair: Callable[..., Watched]) -> None:
    """The same one in both eras; a legacy server is not asked."""
    legacy = Silent({"tools": {"listChanged": True}})
    client = pair(legacy, protocol_version="2025-11-25").client
    with pytest.raises(RPCError, match="single resources"):
        client.subscribe("file:///a", print)
    assert not legacy.of("resources/subscribe")
    assert client.listen().kinds == {"tools"}
    with pytest.raises(RPCError, match="prompts"):
        client.listen(tools=False, resources=False)

    modern = Silent()
    modern.answer = lambda message: modern.acknowledge(message, {"toolsListChanged": True})
    client = pair(modern).client
    with pytest.raises(RPCError, match="single resources"):
        client.subscribe("file:///a", print)
    assert client.listen().kinds == {"tools"}


def test_c31_a_listen_that_ends_is_opened_again(pair: Callable[..., Watched]) -> None:
    """Answered, refused or cancelled by the server: after a while, while the session goes on."""
    server = Silent()
    client = pair(server, reconnect_delay=0.01).client

    def answer(message: dict[str, Any]) -> None:
        server.acknowledge(message, message["params"]["notifications"])

    server.answer = answer
    found = client.listen()
    for n, how in enumerate(("result", "error", "cancelled")):
        last = server.of("subscriptions/listen")[-1]["id"]
        if how == "cancelled":
            params = {"requestId": last}
            server.sink({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        else:
            value = {"code": -32000, "message": "no"} if how == "error" else {}
            server.sink({"jsonrpc": "2.0", "id": last, how: value})
        wait_until(lambda n=n: len(server.of("subscriptions/listen")) == n + 2)  # type: ignore[misc]
        wait_until(lambda: found.active)


def test_c31_what_is_watched_is_bounded(
    pair: Callable[..., Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`Busy` past it; what was closed makes room."""
    monkeypatch.setattr(watcher, "MAX_SUBSCRIPTIONS", 3)
    client = pair().client
    found = client.subscribe(["file:///1", "file:///2", "file:///3"], print)
    with pytest.raises(Busy):
        client.subscribe("file:///4", print)
    found.close()
    assert client.subscribe("file:///4", print).active


def test_c31_wrong_arguments_are_refused(pair: Callable[..., Watched]) -> None:
    """Before anything is sent."""
    client = pair().client
    for uri in ("", [], [""], 3, None, [b"x"]):
        with pytest.raises(TypeError):
            client.subscribe(uri, print)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        client.subscribe("file:///a", None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        client.listen(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        client.listen(tools=False, prompts=False, resources=False)
    with pytest.raises(MCPError):
        client.subscribe("file:///\ud800", print)


@pytest.mark.parametrize(
    ("watched", "uri", "told"),
    [("f:/a", "f:/a", True), ("f:/a", "f:/a/b", True), ("f:/a/", "f:/a/b", True),
     ("f:/a", "f:/ab", False), ("f:/a", "f:/a?x", True), ("f:/a/b", "f:/a", False)],
)  # fmt: skip
def test_c31_what_is_inside_of_a_resource(
    pair: Callable[..., Watched], watched: str, uri: str, told: bool
) -> None:
    """Servers may tell of parts of what is watched."""
    server = Silent(SUBSCRIBES)
    server.answer = lambda message: {}
    found = pair(server, protocol_version="2025-11-25")
    found.client.subscribe(watched, found.told.put)
    found.client.subscribe("f:/end", found.told.put)
    for one in (uri, "f:/end"):
        server.sink({"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": one}})
    assert found.next() == (uri if told else "f:/end")


def test_c31_rubbish_from_the_server_changes_nothing(pair: Callable[..., Watched]) -> None:
    """Acknowledgements of nothing, of a wrong shape, notifications for no listen."""
    server = Silent()
    found = pair(server)

    def answer(message: dict[str, Any]) -> None:
        number: Any
        for number in (message["id"] + 5, str(message["id"]), None, True, [], {}):
            server.acknowledge({"id": number}, {"toolsListChanged": True})
        server.acknowledge(message, {"toolsListChanged": True, "resourceSubscriptions": [3, "x"]})
        server.acknowledge(message, {"promptsListChanged": True})

    server.answer = answer
    assert found.client.listen(found.told.put).kinds == {"tools"}
    method = "notifications/tools/list_changed"
    mine = {"_meta": {"io.modelcontextprotocol/subscriptionId": 1}}
    for params in ({}, {"_meta": 3}, {"_meta": {"io.modelcontextprotocol/subscriptionId": 99}}):
        server.sink({"jsonrpc": "2.0", "method": method, "params": params})
    server.sink({"jsonrpc": "2.0", "method": UPDATED, "params": {**mine, "uri": 3}})
    assert found.told.empty()
    server.sink({"jsonrpc": "2.0", "method": method, "params": mine})
    assert found.next() == "tools"
    found.client.stop()
    assert found.told.empty()


@pytest.mark.parametrize("version", ERAS)
def test_c08_a_new_session_lists_anew(version: str | None) -> None:
    """What one process has listed says nothing about the next one."""
    with stdio(protocol_version=version) as client:
        for _ in range(2):
            assert len(client.list_tools()) == 3
            if version is not None:
                assert client.status().tools == 3
            with pytest.raises(ServerExited):
                client.call_tool("die")
            wait_until(lambda: client.status().state != "ready" or client.status().tools == 0)
            client.await_ready(15)
            assert client.status().tools == 0
