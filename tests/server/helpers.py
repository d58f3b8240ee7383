"""What the server's tests share: messages, gates, and subscribers that remember."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from raxol_sync import Context, Server
from tests.waiting import wait_until

Json = dict[str, Any]
WAIT = 20.0  # seconds that a test waits for what must happen; only a failing test takes that long

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"


def req(method: str, params: object = None, id: object = 1) -> Json:
    """A legacy request."""
    message: Json = {"jsonrpc": "2.0", "id": id, "method": method}
    return message if params is None else {**message, "params": params}


def note(method: str, params: object = None) -> Json:
    """A notification."""
    message: Json = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


def call(name: str, arguments: object = None, id: object = 1, **more: object) -> Json:
    """A legacy `tools/call`."""
    params: Json = {"name": name, **more}
    return req(
        "tools/call", params if arguments is None else {**params, "arguments": arguments}, id
    )


def modern(method: str, params: Json | None = None, id: object = 1, **meta: object) -> Json:
    """A request of the modern era."""
    envelope = {VERSION: "2026-07-28", CAPABILITIES: {}, **meta}
    return req(method, {**(params or {}), "_meta": envelope}, id)


def initialize(revision: str = "2025-11-25", id: object = 0, **capabilities: object) -> Json:
    """An `initialize` request."""
    info = {"name": "tests", "version": "1"}
    params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": info}
    return req("initialize", params, id)


def cancelled(id: object) -> Json:
    """The notification that cancels a request."""
    return note("notifications/cancelled", {"requestId": id})


def ask(server: Server, message: object, conn_id: object = "c") -> Json:
    """Handle a message that must be answered."""
    answer = server.handle_message(message, conn_id, timeout=WAIT)
    assert answer is not None
    return answer


def result(server: Server, message: object, conn_id: object = "c") -> Json:
    """The result of a request that must succeed."""
    answer = ask(server, message, conn_id)
    assert "result" in answer, answer
    value: Json = answer["result"]
    return value


def code(server: Server, message: object, conn_id: object = "c") -> int:
    """The error code of a request that must fail."""
    answer = ask(server, message, conn_id)
    assert "error" in answer, answer
    value: int = answer["error"]["code"]
    return value


def text(answer: Json | None) -> str:
    """The text of a tool's answer."""
    assert answer is not None
    value: str = answer["result"]["content"][0]["text"]
    return value


class Recorder:
    """A subscriber or sink that remembers what it is sent, and on which threads."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.threads: set[threading.Thread] = set()
        self._changed = threading.Condition()

    def __call__(self, message: Json) -> None:
        with self._changed:
            self.messages.append(message)
            self.threads.add(threading.current_thread())
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[Any]:
        """Return what has come, once it is at least that many messages."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.messages) >= count, WAIT), self.messages
            return list(self.messages)

    def methods(self) -> list[str]:
        """The methods (`response` for responses) in order."""
        return [m.get("method", "response") for m in self.messages]


class Gate:
    """Something that blocks whoever comes, until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.opened = threading.Event()

    def __call__(self, *_: object) -> None:
        self.entered.release()
        assert self.opened.wait(WAIT)

    def wait_entered(self, count: int = 1) -> None:
        """Wait until that many have come in."""
        for _ in range(count):
            assert self.entered.acquire(timeout=WAIT)

    def open(self) -> None:
        """Let everyone through, now and later."""
        self.opened.set()


def offering(**options: Any) -> Server:
    """A server with one of everything."""
    server = Server(**options)
    server.tool(name="t")(lambda: "ran")
    server.resource("a://x", name="x")(lambda: "x")
    server.prompt(name="p")(lambda who: f"for {who}")
    return server


def gated(server: Server, name: str = "wait") -> Gate:
    """Register a tool that waits at a gate and then says "through"; return the gate."""
    gate = Gate()

    @server.tool(name=name)
    def wait() -> str:
        gate()
        return "through"

    return gate


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for something that is true soon and that nobody can signal (a thread's very end)."""
    wait_until(condition, WAIT)


def steps(server: Server, name: str = "steps") -> None:
    """Register a tool that reports progress `n` times and then answers."""

    @server.tool(name=name)
    def steps(n: int, context: Context) -> str:
        for step in range(n):
            context.progress(step + 1, n)
        return "done"
