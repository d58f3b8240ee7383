"""Our client against stdio servers made with the official SDK, 1.x and 2.x, in both eras."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from raxol_sync import (
    CallResult,
    Client,
    ElicitResult,
    Image,
    InputRequired,
    RequestTimeout,
    RPCError,
    ServerExited,
    Text,
)
from tests.conftest import Peers

pytestmark = pytest.mark.peers

PROGRAM = str(Path(__file__).parent / "programs" / "sdk_server.py")
NOTICE_TIMEOUT = 5.0  # seconds for a message or a cancel to be noticed
LEGACY, MODERN = "2025-11-25", "2026-07-28"
# name of the peer, the revision that the client pins, the revision and era that must come out
SERVERS = [
    ("mcp1", None, LEGACY, "legacy"),
    ("mcp2", None, MODERN, "modern"),
    ("mcp2", LEGACY, LEGACY, "legacy"),
    ("mcp2", MODERN, MODERN, "modern"),
]


@dataclass
class Connected:
    """A client that is connected to one of the SDK's servers."""

    client: Client
    revision: str
    era: str
    logs: queue.SimpleQueue[tuple[str, object]] = field(default_factory=queue.SimpleQueue)


def _name(server: tuple[str, str | None, str, str]) -> str:
    return f"{server[0]}-{server[1] or 'any'}"


@pytest.fixture(scope="module", params=SERVERS, ids=_name)
def sdk(request: pytest.FixtureRequest, peers: Peers) -> Iterator[Connected]:
    """One server for all tests of this module: starting one takes a second."""
    peer, pinned, revision, era = request.param
    logs: queue.SimpleQueue[tuple[str, object]] = queue.SimpleQueue()
    with Client(
        "sdk",
        command=str(getattr(peers, peer)),
        args=[PROGRAM],
        protocol_version=pinned,
        on_log=lambda level, data, logger: logs.put((level, data)),
    ) as client:
        # Threads that start at first use are the fixture's, not of the test that comes first.
        warmed = threading.Event()
        future = client.submit_tool("echo", {"text": "warm"})
        future.add_done_callback(lambda done: warmed.set())
        assert warmed.wait(NOTICE_TIMEOUT)
        yield Connected(client, revision, era, logs)


def _text(result: CallResult) -> str:
    """The text of a result's first item."""
    first = result.content[0]
    assert isinstance(first, Text)
    return first.text


def test_c22_the_era_is_found_out(sdk: Connected) -> None:
    """Each server is spoken to in the newest revision it knows, or the pinned one."""
    status = sdk.client.status()
    assert (status.state, status.protocol_version, status.era) == ("ready", sdk.revision, sdk.era)


def test_c08_tools_are_listed(sdk: Connected) -> None:
    """Definitions arrive whole."""
    tools = {tool.name: tool for tool in sdk.client.list_tools()}
    assert list(tools)[:2] == ["echo", "add"]
    assert tools["add"].description == "Add two numbers."
    assert set(tools["add"].input_schema["required"]) == {"a", "b"}
    assert len(tools) == 13


def test_c10_results_of_every_kind(sdk: Connected) -> None:
    """Text, structured values and images."""
    call = sdk.client.call_tool
    text = "grüße \u2028 🎈"
    echo = call("echo", {"text": text})
    assert (echo.content, echo.is_error, echo.structured_content) == ([Text(text)], False, None)
    assert call("add", {"a": 2, "b": 3}).structured_content == {"result": 5}
    assert call("point", {"x": 1, "y": -1}).structured_content == {"x": 1, "y": -1}
    assert call("picture").content == [Image(b"\x89PNG", "image/png")]


def test_a_failing_tool_is_a_result(sdk: Connected) -> None:
    """Failures of tools, bad arguments included, come back as results and raise nothing."""
    failed = sdk.client.call_tool("fail", {"message": "no luck"})
    assert failed.is_error
    assert "no luck" in _text(failed)
    assert sdk.client.call_tool("add", {"a": "one", "b": 2}).is_error


def test_c11_an_error_of_the_protocol_raises(sdk: Connected) -> None:
    """An unknown resource is an `RPCError`."""
    with pytest.raises(RPCError):
        sdk.client.read_resource("peer://nope")


def test_progress_is_complete_before_the_call_returns(sdk: Connected) -> None:
    """Every step, in order."""
    steps: list[tuple[float, float | None, str | None]] = []
    sdk.client.call_tool(
        "count",
        {"steps": 3},
        progress=lambda done, total, message: steps.append((done, total, message)),
    )
    assert steps == [(n, 3, f"step {n}") for n in (1, 2, 3)]


def test_log_messages_reach_the_handler(sdk: Connected) -> None:
    """Modern servers log only for those who ask; these legacy ones cannot be asked."""
    if sdk.era == "modern":
        sdk.client.set_log_level("warning")
        expected: list[tuple[str, object]] = [("warning", "careful")]
    else:
        with pytest.raises(RPCError) as refused:
            sdk.client.set_log_level("warning")
        assert refused.value.code == -32601
        expected = [("debug", "too quiet"), ("warning", "careful")]
    sdk.client.call_tool("chatter")
    assert [sdk.logs.get(timeout=NOTICE_TIMEOUT) for _ in expected] == expected


def test_c20_a_flood_on_stderr_blocks_nothing(sdk: Connected) -> None:
    """Far more than a pipe holds is drained while the call waits."""
    assert _text(sdk.client.call_tool("noisy", {"lines": 300})) == "quiet again"


def test_resources_and_prompts(sdk: Connected) -> None:
    """Lists and reads, static and template, text and bytes."""
    client = sdk.client
    assert sorted(info.uri for info in client.list_resources()) == ["peer://blob", "peer://motd"]
    templates = [info.uri_template for info in client.list_resource_templates()]
    assert templates == ["peer://items/{number}"]
    assert [info.name for info in client.list_prompts()] == ["greet"]
    assert client.read_resource("peer://motd")[0].text == "hello"
    assert client.read_resource("peer://items/7")[0].text == "item 7"
    assert client.read_resource("peer://blob")[0].data == b"\x00\x01\xff"
    message = client.get_prompt("greet", {"name": "Ada"})[0]
    assert (message.role, message.content) == ("user", Text("Please greet Ada."))


def test_ping_is_answered(sdk: Connected) -> None:
    """In both eras, whatever is asked for it on the wire."""
    sdk.client.ping()


def test_c12_calls_run_side_by_side(sdk: Connected) -> None:
    """Eight calls of half a second at once take far less than eight times as long."""
    begun = time.monotonic()
    futures = [sdk.client.submit_tool("sleep", {"ms": 500}) for _ in range(8)]
    assert [_text(future.result(timeout=10)) for future in futures] == ["slept"] * 8
    assert time.monotonic() - begun < 3.0


def test_c12_a_call_past_its_deadline_raises_and_harms_nothing(sdk: Connected) -> None:
    """The deadline is the caller's; the session goes on."""
    begun = time.monotonic()
    with pytest.raises(RequestTimeout):
        sdk.client.call_tool("sleep", {"ms": 30_000}, timeout=0.2)
    assert time.monotonic() - begun < 2.0
    assert _text(sdk.client.call_tool("echo", {"text": "still here"})) == "still here"


def test_c10_cancelling_a_future_reaches_the_server(sdk: Connected) -> None:
    """The SDK's tool sees its call cancelled."""
    running = threading.Event()
    future = sdk.client.submit_tool("hang", progress=lambda *_: running.set())
    assert running.wait(NOTICE_TIMEOUT)
    assert future.cancel()
    deadline = time.monotonic() + NOTICE_TIMEOUT
    while _text(sdk.client.call_tool("cancelled_count")) != "1":
        assert time.monotonic() < deadline, "the server never noticed the cancel"


@pytest.mark.parametrize("peer", ["mcp1", "mcp2"])
def test_c16_a_server_that_dies_fails_its_calls_at_once(peer: str, peers: Peers) -> None:
    """The exception has the exit code and the end of stderr."""
    python = str(getattr(peers, peer))
    with Client("dying", command=python, args=[PROGRAM]) as client:
        with pytest.raises(ServerExited) as exited:
            client.call_tool("die", {"code": 7})
        assert exited.value.code == 7
        assert "last words" in str(exited.value)


@pytest.mark.parametrize("peer", ["mcp1", "mcp2"])
def test_c02_stop_ends_the_process_and_every_thread(peer: str, peers: Peers) -> None:
    """Nothing of a stopped client is left; a call in flight fails."""
    client = Client("stopped", command=str(getattr(peers, peer)), args=[PROGRAM])
    client.start()
    client.await_ready()
    running = threading.Event()
    future = client.submit_tool("hang", progress=lambda *_: running.set())
    assert running.wait(NOTICE_TIMEOUT)
    client.stop()
    assert future.done()
    assert client.status().state == "closed"


def _survey(peer: str, pinned: str | None, peers: Peers, answer: object) -> list[object]:
    """What the server was given by a client with all three handlers."""
    asked: list[object] = []

    def on_elicit(message: str, schema: Mapping[str, Any]) -> Any:
        asked.append((message, sorted(schema["properties"])))
        return answer

    def on_sample(params: dict[str, Any]) -> str:
        asked.append(params["messages"][0]["content"]["text"])
        return "because"

    with Client(
        "asked",
        command=str(getattr(peers, peer)),
        args=[PROGRAM],
        protocol_version=pinned,
        on_elicit=on_elicit,
        on_sample=on_sample,
        roots=lambda: ["/srv/a b"],
    ) as client:
        found: list[object] = json.loads(_text(client.call_tool("survey")))
    assert sorted(map(str, asked)) == ["('Who?', ['age', 'name'])", "Why?"]
    return found


@pytest.mark.parametrize(("peer", "pinned"), [server[:2] for server in SERVERS])
def test_c14_c28_a_server_that_asks_for_everything(
    peer: str, pinned: str | None, peers: Peers
) -> None:
    """Forms, samples and roots arrive, by requests and by input rounds."""
    given = _survey(peer, pinned, peers, {"name": "Ada", "age": 36})
    person = {"name": "Ada", "age": 36}
    assert given == ["accept", person, "because", "unknown", ["file:///srv/a%20b"]]
    given = _survey(peer, pinned, peers, None)
    assert given[:2] == ["decline", None]
    assert _survey(peer, pinned, peers, ElicitResult("cancel"))[0] == "cancel"


@pytest.mark.parametrize(("peer", "pinned"), [server[:2] for server in SERVERS])
def test_c14_c28_a_server_that_may_not_ask(peer: str, pinned: str | None, peers: Peers) -> None:
    """Without handlers nothing is declared: the server says so, or is refused."""
    python = str(getattr(peers, peer))
    with Client("mute", command=python, args=[PROGRAM], protocol_version=pinned) as client:
        with suppress(RPCError, InputRequired):
            assert client.call_tool("survey").is_error
        assert _text(client.call_tool("echo", {"text": "still here"})) == "still here"
