"""Bodies and environs as no host should hand them over: each is answered, nothing is left."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raxol_sync import Context, Server
from raxol_sync.server.http.replies import encode
from raxol_sync.server.http.status import REASONS
from tests.server.helpers import eventually, req
from tests.server.http.driver import BOTH, Driver, Json, driver_of

LIMIT = 1000


@pytest.fixture
def server() -> Iterator[Server]:
    with Server("http") as server:

        @server.tool
        def echo(text: str) -> str:
            return text

        yield server


@pytest.fixture
def http(server: Server) -> Driver:
    return driver_of(server, max_body_bytes=LIMIT)


PING = json.dumps(req("ping")).encode()


class Failing(io.RawIOBase):
    """An input that breaks."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def read(self, size: int = -1) -> bytes:
        raise self.error


class Dripping:
    """An input that gives one byte at a time."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)
        self.sizes: list[int] = []

    def read(self, size: int = -1) -> bytes:
        self.sizes.append(size)
        return self._data.read(1 if size else 0)


class CodedError(Exception):
    """As werkzeug's: it names its status."""

    code = 413


def send(http: Driver, body: Any = PING, **environ: Any) -> Any:
    """POST as the environ says."""
    usual: Json = {
        "CONTENT_TYPE": "application/json",
        "HTTP_ACCEPT": BOTH,
        "wsgi.input": io.BytesIO(body) if isinstance(body, bytes) else body,
        "CONTENT_LENGTH": str(len(body)) if isinstance(body, bytes) else "10",
    }
    return http.send("POST", environ={**usual, **environ}, validate=False)


@pytest.mark.parametrize(
    ("body", "environ", "status"),
    [
        (PING, {}, 200),
        (PING, {"CONTENT_LENGTH": "000" + str(len(PING))}, 200),
        (PING + b"garbage after it", {"CONTENT_LENGTH": str(len(PING))}, 200),
        (PING, {"CONTENT_LENGTH": str(len(PING) + 1)}, 400),  # truncated
        (PING, {"CONTENT_LENGTH": str(len(PING) - 1)}, 400),
        (PING, {"CONTENT_LENGTH": "-1"}, 400),
        (PING, {"CONTENT_LENGTH": "+5"}, 400),
        (PING, {"CONTENT_LENGTH": "5, 5"}, 400),
        (PING, {"CONTENT_LENGTH": "1e3"}, 400),
        (PING, {"CONTENT_LENGTH": "²"}, 400),
        (PING, {"CONTENT_LENGTH": str(LIMIT + 1)}, 413),
        (PING, {"CONTENT_LENGTH": "9" * 400}, 413),
        (PING, {"CONTENT_LENGTH": ""}, 400),  # no body at all: not JSON
        (PING, {"CONTENT_LENGTH": None}, 400),
        (PING, {"CONTENT_LENGTH": None, "HTTP_TRANSFER_ENCODING": "chunked"}, 411),
        (PING, {"CONTENT_LENGTH": None, "wsgi.input_terminated": True}, 200),
        (b" " * LIMIT, {"CONTENT_LENGTH": None, "wsgi.input_terminated": True}, 400),
        (b" " * (LIMIT + 1), {"CONTENT_LENGTH": None, "wsgi.input_terminated": True}, 413),
        (Failing(ConnectionResetError()), {}, 400),
        (Failing(TimeoutError()), {}, 408),
        (Failing(CodedError()), {}, 413),
        (Failing(ValueError("chunk")), {"wsgi.input_terminated": True}, 400),
        (Dripping(PING), {"CONTENT_LENGTH": str(len(PING))}, 200),
        (b"\xff\xfe", {}, 400),
        (b"\xef\xbb\xbf" + PING, {}, 400),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}', {}, 400),
        (b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}', {}, 400),
        (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', {}, 400),
        (b"[" * 900, {}, 400),
    ],
)
def test_bodies(http: Driver, body: Any, environ: Json, status: int) -> None:
    """Each gets its status, and a JSON-RPC error where it is none of ours to answer."""
    answer = send(http, body, **environ)
    assert answer.status == status
    assert ("error" in answer.json) is (status != 200)


def test_a_body_is_read_once_and_not_past_its_end() -> None:
    """A host may have the next request behind it."""
    with Server("http") as server:
        source = io.BytesIO(PING + PING)
        answer = send(driver_of(server), source, CONTENT_LENGTH=str(len(PING)))
        assert answer.status == 200
        assert source.tell() == len(PING)


def test_a_body_that_is_too_long_is_not_read(http: Driver) -> None:
    """It is refused by what it announces."""
    source = Dripping(b"")
    assert send(http, source, CONTENT_LENGTH="5000").status == 413
    assert source.sizes == []


def test_refused_before_the_body_is_read(http: Driver) -> None:
    """What the headers say is enough."""
    for environ in (
        {"HTTP_HOST": "evil.example.com"},
        {"HTTP_ACCEPT": "text/html"},
        {"CONTENT_TYPE": "text/plain"},
    ):
        source = Dripping(PING)
        assert send(http, source, **environ).status in (421, 406, 415)
        assert source.sizes == []


# ---------------------------------------------------------------- any environ

KEYS = [
    "HTTP_ACCEPT",
    "HTTP_HOST",
    "HTTP_ORIGIN",
    "HTTP_MCP_PROTOCOL_VERSION",
    "HTTP_MCP_METHOD",
    "HTTP_MCP_NAME",
    "HTTP_MCP_SESSION_ID",
    "HTTP_LAST_EVENT_ID",
    "HTTP_ACCESS_CONTROL_REQUEST_METHOD",
    "HTTP_ACCESS_CONTROL_REQUEST_HEADERS",
    "HTTP_TRANSFER_ENCODING",
    "HTTP_AUTHORIZATION",
    "CONTENT_TYPE",
    "CONTENT_LENGTH",
    "QUERY_STRING",
]
_LIKELY = """
2026-07-28 2025-11-25 2025-03-26 tools/call application/json text/event-stream 0-0 1-0 localhost
http://localhost chunked session_id=x 12
"""
LIKELY = st.sampled_from([BOTH, *_LIKELY.split()])
VALUES = LIKELY | st.text(st.characters(max_codepoint=255), max_size=30) | st.none()
MEMBERS: st.SearchStrategy[Json] = st.dictionaries(
    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]),
    st.sampled_from(
        [
            *("2.0", 1, "x", None, {}, [], 1.5, True, "tools/call", "initialize", "ping"),
            {"name": "echo", "arguments": {"text": "x"}},
            {"code": 1, "message": "x"},
            {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}},
        ]
    ),
)
BODIES = (
    st.binary(max_size=50)
    | MEMBERS.map(lambda m: json.dumps(m).encode())
    | st.lists(MEMBERS, max_size=3).map(lambda m: json.dumps(m).encode())
)
METHODS = st.sampled_from(["POST", "POST", "POST", "GET", "DELETE", "OPTIONS", "HEAD", "PUT", "X"])
PATHS = st.sampled_from(["/mcp", "/mcp", "/mcp/", "/sse", "/messages", "/health", "", "/", "/x"])


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(METHODS, PATHS, BODIES, st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6))
def test_whatever_comes_is_answered_and_leaves_nothing(
    server: Server, method: str, path: str, body: bytes, environ: Json
) -> None:
    """With a status of ours, legal headers, and a body that was closed."""
    http = driver_of(server)
    usual = {"CONTENT_TYPE": "application/json", "HTTP_ACCEPT": BOTH}
    answer = http.send(method, path, body, environ={**usual, **environ}, validate=False)
    assert answer.status in REASONS
    assert answer.status != 500
    for name, value in answer.all_headers:
        assert name.isascii()
        assert value.isprintable()
    if answer.is_stream:
        answer.next_chunk()
        answer.close()
    http.app.close()
    eventually(lambda: server.stats().connections == 0)
    stats = server.stats()
    assert (stats.listens, stats.subscriptions, stats.capabilities) == (0, 0, 0)


def test_a_fault_of_ours_is_500_and_tells_nothing(
    http: Driver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has it; other requests go on."""

    def broken(*_: object) -> None:
        raise RuntimeError("secret")

    with monkeypatch.context() as patch:
        patch.setattr("raxol_sync.server.http.app.guard.problem_of", broken)
        answer = http.post(req("ping"))
    assert (answer.status, answer.code) == (500, -32603)
    assert b"secret" not in answer.body
    assert "RuntimeError" in caplog.text
    assert http.post(req("ping")).status == 200


def test_what_cannot_be_sent_is_an_error(server: Server, http: Driver) -> None:
    """In JSON, and in a stream; a notification that cannot be sent is left out."""

    @server.tool
    def surrogate(context: Context) -> str:
        context.progress(1, message="\ud800")
        context.progress(2)
        return "fine"

    answer = http.call("surrogate", meta={"progressToken": 1})
    found = list(answer.messages())
    assert [m["params"]["progress"] for m in found if "params" in m] == [2]
    assert found[-1]["result"]["content"][0]["text"] == "fine"
    answer.close()
    server.notify("notifications/x", {"value": float("nan")})


def test_a_batch_is_sent_as_far_as_it_can_be() -> None:
    """One member that is no JSON becomes an error, the others stay."""
    fine, odd = {"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 2, "result": {}}
    odd["result"] = {"x": float("nan")}
    found = json.loads(encode([fine, odd]))
    assert found[0] == fine
    assert (found[1]["id"], found[1]["error"]["code"]) == (2, -32603)


def test_sessions_that_are_opened_and_abandoned_are_bounded(server: Server) -> None:
    """Thousands of them cost a bounded number of places."""
    http = driver_of(server, max_sessions=50)
    for _ in range(300):
        http.open()
    assert server.stats().connections == 50
    http.app.close()
    assert server.stats().connections == 0
