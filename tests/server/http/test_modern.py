"""The stateless era over HTTP: one POST, one answer or one stream."""

from __future__ import annotations

import gc
import threading

import pytest

from raxol_sync import Context, RPCError, Server, ToolError
from raxol_sync.server.channel import Channel, Reader
from raxol_sync.server.http import exchange
from tests.server.helpers import LOG_LEVEL, WAIT, Gate, eventually, gated
from tests.server.http.driver import Driver, Host, Json, driver_of, in_thread


def test_a_call_is_answered_with_plain_json(http: Driver) -> None:
    """Nothing was pushed, so there is no stream (row S48)."""
    answer = http.call("echo", {"text": "hi"})
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-length"] == str(len(answer.body))
    assert "mcp-session-id" not in answer.headers
    assert answer.json["result"]["content"] == [{"type": "text", "text": "hi"}]
    assert answer.json["result"]["resultType"] == "complete"


def test_s49_what_a_call_causes_goes_out_on_its_own_stream(http: Driver) -> None:
    """Progress first, the response last, then the end."""
    answer = http.call("steps", {"n": 3}, meta={"progressToken": "t"})
    assert answer.status == 200
    assert answer.is_stream
    assert answer.headers["cache-control"].startswith("no-cache")
    assert answer.headers["x-accel-buffering"] == "no"
    messages = list(answer.messages())
    assert [m.get("method", "response") for m in messages] == [
        *["notifications/progress"] * 3,
        "response",
    ]
    assert answer.next_chunk() == b""
    answer.close()


def test_events_of_this_era_have_no_ids(http: Driver) -> None:
    """Streams cannot be gone on with, so nothing pretends that."""
    answer = http.call("steps", {"n": 1}, meta={"progressToken": "t"})
    assert all("id" not in event and "retry" not in event for event in answer.events())
    answer.close()


def test_s48_a_silent_call_becomes_a_stream_with_comments(server: Server, impatient: None) -> None:
    """So that a client that has left is noticed."""
    gate = gated(server)
    http = driver_of(server, keep_alive=0.05)
    answer = http.call("wait")
    assert answer.is_stream
    assert answer.next_chunk().startswith(b":")
    gate.open()
    assert answer.next_message()["result"]["isError"] is False
    assert list(answer.messages()) == []
    answer.close()


@pytest.mark.parametrize("streaming", [False, True])
def test_s48_a_client_that_leaves_cancels_its_request(
    server: Server, streaming: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its stream has begun, and after: the callback is told to stop."""
    monkeypatch.setattr(exchange, "SILENT", 0.03 if streaming else WAIT)
    gate, told = Gate(), threading.Event()

    @server.tool
    def work(context: Context) -> str:
        gate()
        if context.cancelled:
            told.set()
        return "done"

    host = Host()
    http = driver_of(server)
    pending = in_thread(lambda: http.call("work", environ={"raxol_sync.host": host}))
    gate.wait_entered()
    if streaming:
        answer = pending.result()
        assert answer.is_stream
        host.leave()
        assert list(answer.messages()) == []
        answer.close()
    else:
        host.leave()
        pending.result()
    gate.open()
    assert told.wait(WAIT)
    eventually(lambda: server.stats().in_flight == 0)


def test_s48_a_stream_that_its_host_closes_early_cancels(server: Server, impatient: None) -> None:
    """A host that fails to write closes the iterable: that is the client's end."""
    gate, told = Gate(), threading.Event()

    @server.tool
    def work(context: Context) -> None:
        gate()
        if context.cancelled:
            told.set()

    answer = driver_of(server).call("work")
    answer.close()
    gate.open()
    assert told.wait(WAIT)


def test_s48_a_host_that_can_be_asked_shows_that_a_client_left(
    server: Server, impatient: None
) -> None:
    """As waitress: between two comments it is asked, and the request is cancelled."""
    gate, told, gone = Gate(), threading.Event(), threading.Event()

    @server.tool
    def work(context: Context) -> None:
        gate()
        if context.cancelled:
            told.set()

    http = driver_of(server, keep_alive=WAIT)
    answer = http.call("work", environ={"waitress.client_disconnected": gone.is_set})
    assert answer.next_chunk().startswith(b":")
    gone.set()
    assert answer.next_chunk() == b""
    gate.open()
    assert told.wait(WAIT)
    answer.close()


def test_an_interrupted_host_thread_leaves_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for the answer any more: the request is cancelled."""
    gate, told = Gate(), threading.Event()

    @server.tool
    def work(context: Context) -> None:
        gate()
        if context.cancelled:
            told.set()

    def interrupted(self: Reader, seconds: float) -> None:
        gate.wait_entered()
        raise KeyboardInterrupt

    http = driver_of(server)
    with monkeypatch.context() as patch:
        patch.setattr(Reader, "take", interrupted)
        with pytest.raises(KeyboardInterrupt):
            http.call("work")
    gate.open()
    assert told.wait(WAIT)
    assert http.app._service.places.open == 0


# ---------------------------------------------------------------- statuses


def test_s48_statuses_of_the_stateless_era(server: Server, http: Driver) -> None:
    """404 for a method that is not implemented; 400 for the protocol's errors; else 200."""

    @server.tool
    def asks(context: Context) -> str:
        return context.elicit("?", {"type": "object", "properties": {}}).action

    @server.tool
    def fails() -> str:
        raise ToolError("no")

    @server.tool
    def refuses() -> str:
        raise RPCError(-31999, "own")

    expected: list[tuple[str, Json, int, int | None]] = [
        ("ping", {}, 404, -32601),
        ("initialize", {}, 404, -32601),
        ("logging/setLevel", {}, 404, -32601),
        ("no/such", {}, 404, -32601),
        ("tools/call", {"name": "nobody"}, 200, -32601),
        ("tools/call", {"name": "echo", "arguments": []}, 200, -32602),
        ("tools/call", {"name": "echo", "arguments": {}}, 200, None),
        ("tools/call", {"name": "asks"}, 400, -32021),
        ("tools/call", {"name": "fails"}, 200, None),
        ("tools/call", {"name": "refuses"}, 200, -31999),
        ("prompts/get", {"name": "nobody"}, 200, -32602),
        ("resources/read", {"uri": "x:nothing"}, 200, -32602),
        ("subscriptions/listen", {}, 200, -32602),
    ]
    for method, params, status, code in expected:
        answer = http.modern(method, params, id="an id")
        assert (answer.status, answer.json.get("error", {}).get("code")) == (status, code), method
        assert answer.json["id"] == "an id"


@pytest.mark.parametrize(
    ("meta", "headers", "code"),
    [
        ({"io.modelcontextprotocol/protocolVersion": None}, {}, -32602),
        ({"io.modelcontextprotocol/clientCapabilities": None}, {}, -32602),
        ({LOG_LEVEL: "loud"}, {}, -32602),
        (
            {"io.modelcontextprotocol/protocolVersion": "v999.0.0"},
            {"MCP-Protocol-Version": "v999.0.0"},
            -32022,
        ),
        ({"io.modelcontextprotocol/protocolVersion": "v999.0.0"}, {}, -32020),
        ({}, {"MCP-Protocol-Version": "2025-11-25"}, -32020),
        ({}, {"MCP-Protocol-Version": None}, -32020),
    ],
)
def test_s47_envelopes_over_http(
    http: Driver, meta: Json, headers: dict[str, str | None], code: int
) -> None:
    """What is wrong with the envelope, or between it and the headers, is 400."""
    answer = http.modern("server/discover", id=301, meta=meta, headers=headers)
    assert (answer.status, answer.code, answer.json["id"]) == (400, code, 301)
    if code == -32022:
        data = answer.json["error"]["data"]
        assert data["requested"] == "v999.0.0"
        supported = http.modern("server/discover").json["result"]["supportedVersions"]
        assert set(data["supported"]) <= set(supported)


def test_s47_a_modern_header_makes_a_request_modern(http: Driver) -> None:
    """Also one that both eras have, and that says nothing of itself."""
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
    answer = http.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers)
    assert (answer.status, answer.code) == (400, -32602)


def test_answers_leave_no_cycles_behind(http: Driver) -> None:
    """Else the collector would have to run all the time."""
    http.call("echo", {"text": "x"})
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            http.call("echo", {"text": "x"})
            answer = http.call("steps", {"n": 2}, meta={"progressToken": 1})
            list(answer.messages())
            answer.close()
        del answer
        left: list[object] = [None]
        for _ in range(20):  # a worker may hold on to the last one for a moment
            left = [o for o in gc.get_objects() if isinstance(o, Channel)]
            if not left:
                break
            threading.Event().wait(0.05)
        assert not left
    finally:
        gc.enable()


def test_s48_what_is_no_message_is_400(http: Driver) -> None:
    """In this era and, with its id where there is one, in words."""
    headers = {"MCP-Protocol-Version": "2026-07-28"}
    for body, code, has_id in [
        (b"{", -32700, False),
        (b"\xff", -32700, False),
        (b"", -32700, False),
        (b"[]", -32600, False),
        (b'{"jsonrpc":"2.0","id":7}', -32600, True),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}', -32602, True),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, False),
        (b"[" * 3000 + b"]" * 3000, -32700, False),
    ]:
        answer = http.post(body, headers)
        assert (answer.status, answer.code) == (400, code), body
        assert ("id" in answer.json) == has_id


def test_a_notification_is_accepted_and_a_response_is_not(http: Driver) -> None:
    """202 with no body; a client of this era sends no responses."""
    headers = {"MCP-Protocol-Version": "2026-07-28"}
    answer = http.post({"jsonrpc": "2.0", "method": "notifications/x"}, headers)
    assert (answer.status, answer.body) == (202, b"")
    answer = http.post({"jsonrpc": "2.0", "id": 1, "result": {}}, headers)
    assert answer.status == 400


def test_a_session_id_is_ignored_and_none_is_given(http: Driver) -> None:
    """There are no sessions in this era."""
    answer = http.modern("server/discover", headers={"Mcp-Session-Id": "made-up"})
    assert answer.status == 200
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_get_and_delete_are_not_allowed(http: Driver, method: str) -> None:
    """405, with the method that is."""
    headers = {"MCP-Protocol-Version": "2026-07-28", "Accept": "text/event-stream"}
    answer = http.send(method, headers={**headers, "Mcp-Session-Id": "x"})
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
