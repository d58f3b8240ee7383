"""Whatever an HTTP server sends, a call ends in time with an error of ours, and the next works."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raxol_sync.breaker import Breaker
from raxol_sync.client.client import Client
from raxol_sync.errors import ConnectionLost, MCPError
from tests.client.http.hostile import Conn, Hostile, Polite, Seen

STATUSES = st.sampled_from([100, 101, 199, 200, 201, 202, 204, 206, 301, 304, 400, 401, 404, 405,
                            409, 418, 429, 500, 503, 599, 999])  # fmt: skip
KINDS = [
    "application/json",
    "text/event-stream",
    "TEXT/Event-Stream ; x=1",
    "text/html",
    "",
    "\xe9",
]
HEADERS = st.lists(
    st.sampled_from(
        [
            b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: x", b"Content-Length: 0",
            b"Content-Length: 99999999999999999999", b"Transfer-Encoding: chunked",
            b"Transfer-Encoding: gzip, chunked", b"Content-Encoding: gzip", b"Connection: close",
            b"Content-Encoding: \xff", b"Mcp-Session-Id: s9", b"Mcp-Session-Id: \xff\x01",
            b"Location: http://[", b"Set-Cookie: a=b; Domain=..", b"No colon", b" folded",
            b": empty", b"X: " + b"y" * 70_000,
        ]
    ),
    max_size=4,
)  # fmt: skip
ERROR = {"code": -32000, "message": "no"}
MESSAGES = st.sampled_from(
    [
        {"result": {"content": []}}, {"result": {}}, {"result": None}, {"result": []}, {},
        {"error": ERROR}, {"error": 3}, {"error": ERROR, "result": {}}, {"method": "ping"},
        {"method": "notifications/x", "params": {"a": 1}}, {"method": 3}, {"params": {}},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": "x"}},
        {"result": {"resultType": "input_required", "inputRequests": {"a": 1}}},
        {"result": {"resultType": 7}}, {"method": "elicitation/create", "params": []},
    ]
)  # fmt: skip
IDS: Any = st.sampled_from(["mine", 0, -1, 10**9, "1", None, 1.5, True, [], "none"])
RAW = st.sampled_from(
    [b"", b"\n\n", b"\r", b"data:", b"data: {\n\n", b"\xef\xbb\xbf", b"id: \x00\n\n",
     b"id: \xff\n\n",
     b"retry: 99999999999\n\n", b"retry: 1\n\n", b"event: x\ndata: y\n\n", b"[]", b"[[[", b'"\xff"',
     b"{" * 300, b"0\r\n\r\n", b"ffffffffffffffff\r\nx", b"-1\r\n", b"5;x=y\r\nhello\r\n", b"nan"]
)  # fmt: skip


@st.composite
def bodies(draw: Any) -> list[tuple[Any, Any, bool] | bytes]:
    """Pieces of a body: messages (with an id, as an event or not) and rubbish."""
    piece = st.one_of(st.tuples(MESSAGES, IDS, st.booleans()), RAW)
    return draw(st.lists(piece, max_size=5))  # type: ignore[no-any-return]


def written(pieces: list[Any], mine: Any) -> bytes:
    """The bytes of a body."""
    found = b""
    for piece in pieces:
        if isinstance(piece, bytes):
            found += piece
            continue
        message, number, event = piece
        given = {"jsonrpc": "2.0", **message}
        if number != "none":
            given["id"] = mine if number == "mine" else number
        data = json.dumps(given).encode()
        found += b"data: " + data + b"\n\n" if event else data
    return found


class Fuzzed:
    """A client and a server that answers calls with what it is told to."""

    def __init__(self, era: str) -> None:
        self.polite = Polite(era)
        self.server = Hostile(self.polite)
        self.client = Client("fuzz", url=self.server.url, call_timeout=5.0, fail_fast=True)
        self.client.start()
        self.client.await_ready()
        plan: Any = self.client._target.plan
        plan.guard._breaker = Breaker(limit=10**9)

    def close(self) -> None:
        self.client.stop()
        self.server.close()


@pytest.fixture(scope="module", params=["modern", "legacy"])
def fuzzed(request: pytest.FixtureRequest) -> Iterator[Fuzzed]:
    """One of each era for all examples."""
    found = Fuzzed(request.param)
    yield found
    found.close()


@pytest.fixture(scope="module", autouse=True)
def no_descriptor_left() -> None:
    """Instead of the folder's: here the client outlives the examples."""


@pytest.fixture(scope="module", autouse=True)
def nothing_left_behind() -> None:
    """The same."""


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.HTTPWarning")
@settings(max_examples=150)
@given(status=STATUSES, kind=st.sampled_from(KINDS), headers=HEADERS, body=bodies())
def test_c11_no_response_breaks_the_client(
    fuzzed: Fuzzed, status: int, kind: str, headers: list[bytes], body: list[Any]
) -> None:
    """It is a result, or an error of ours; the session goes on, or is made anew."""
    broke: list[str] = []

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            broke.append(record.getMessage())

    def answer(seen: Seen, conn: Conn) -> None:
        lines = [b"HTTP/1.1 %d X" % status, *headers]
        if kind:
            lines.append(f"Content-Type: {kind}".encode("latin-1"))
        with contextlib.suppress(OSError):
            conn.send(b"\r\n".join(lines) + b"\r\n\r\n" + written(body, seen.id))
        conn.close()

    watch = Watch(logging.ERROR)
    logging.getLogger("raxol_sync").addHandler(watch)
    fuzzed.polite.on["tools/call"] = answer
    try:
        with contextlib.suppress(MCPError):
            fuzzed.client.call_tool("echo")
        del fuzzed.polite.on["tools/call"]
        fuzzed.client.await_ready(10)
        for _ in range(3):
            with contextlib.suppress(ConnectionLost):  # the server may be closing it just now
                fuzzed.client.call_tool("echo", {"text": "x"})
                break
        assert fuzzed.client.call_tool("echo", {"text": "x"}).text == "x"
        assert fuzzed.client.status().pending == 0
    finally:
        logging.getLogger("raxol_sync").removeHandler(watch)
        fuzzed.polite.on.clear()
    assert not broke
