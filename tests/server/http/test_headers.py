"""What headers repeat of the body, media types, and event streams as bytes: the pure rules."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raxol_sync import HeaderParam, Server
from raxol_sync.client.headers import encode_value
from raxol_sync.protocol.wire import Request
from raxol_sync.server.http import events, headers, status
from tests.server.helpers import CAPABILITIES, VERSION
from tests.server.http.driver import Driver, driver_of

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
AS_WSGI = st.text(st.characters(max_codepoint=255))


# ---------------------------------------------------------------- values


@given(st.text())
@example("=?base64?literal?=")
@example(" padded ")
@example("Hello, 世界")
@example("line1\nline2")
@example("=?base64?=")
@example("=?base64??=")
@example("")
def test_what_a_client_encodes_is_read_back(value: str) -> None:
    """Every string that UTF-8 has survives the header."""
    assert headers.read_value(encode_value(value)) == value


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("us-west1", "us-west1"),
        ("  x  ", "x"),
        ("\tx", "x"),
        ("=?base64?SGVsbG8=?=", "Hello"),
        ("=?base64?SGVsbG8?=", None),
        ("=?base64?SGVs!!!bG8=?=", None),
        ("=?base64?/w==?=", None),
        ("SGVsbG8=", "SGVsbG8="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
        ("=?base64??=", ""),
        ("=?base64?=", "=?base64?="),
        ("caf\xe9", None),
        ("a\x00b", None),
        ("a\x7fb", None),
        ("a\r\nX: y", None),
    ],
)
def test_values_as_the_specification_shows_them(raw: str, value: str | None) -> None:
    """`None`: not a legal one, so it is a mismatch."""
    assert headers.read_value(raw) == value


@given(AS_WSGI)
def test_no_header_raises(raw: str) -> None:
    """Whatever a host hands over."""
    assert headers.read_value(raw) is None or isinstance(headers.read_value(raw), str)
    headers.accepts(raw, headers.EVENTS)
    headers.is_json(raw)
    events.read_id(raw)


def _request(arguments: object) -> Request:
    meta = {VERSION: "2026-07-28", CAPABILITIES: {}}
    return Request(1, "tools/call", {"name": "t", "arguments": arguments, "_meta": meta})


def _environ(**more: str) -> dict[str, Any]:
    usual = {
        "HTTP_MCP_PROTOCOL_VERSION": "2026-07-28",
        "HTTP_MCP_METHOD": "tools/call",
        "HTTP_MCP_NAME": "t",
    }
    return {**usual, **more}


@given(JSON_VALUES, AS_WSGI | st.none())
def test_a_mismatch_is_told_and_nothing_raises(value: object, raw: str | None) -> None:
    """Texts hold no value, of the header or the body: they may be secrets."""
    environ = _environ(**({} if raw is None else {"HTTP_MCP_PARAM_P": raw}))
    problem = headers.mismatch(environ, _request({"p": value}), {("p",): "P"})
    if problem is not None:
        assert re.fullmatch(
            r"the header Mcp-Param-P is (missing|not valid|not the value in the body)", problem
        )


@given(st.text() | st.integers(-(2**53) + 1, 2**53 - 1) | st.booleans())
def test_s47_what_our_client_sends_our_server_takes(value: str | int | bool) -> None:
    """At any depth; and nothing else."""
    raw = encode_value(value)
    paths: headers.HeaderPaths = {("a", "b"): "P"}
    request = _request({"a": {"b": value}})
    assert headers.mismatch(_environ(HTTP_MCP_PARAM_P=raw), request, paths) is None
    assert headers.mismatch(_environ(HTTP_MCP_PARAM_P=raw + "x"), request, paths) is not None
    assert headers.mismatch(_environ(), request, paths) is not None


@pytest.mark.parametrize(
    ("value", "raw", "fits"),
    [
        (42, "42", True),
        (42, "42.0", True),
        (42.0, "42", True),
        (42, "042", True),
        (42, "4.2e1", False),
        (42, "43", False),
        (-7, "-7", True),
        (42, " 42 ", True),
        (10**30, str(10**30), True),
        (42, "9" * 5000, False),
        (True, "true", True),
        (True, "True", False),
        (True, "1", False),
        (1, "true", False),
        (False, "false", True),
        ("true", "true", True),
        ("42", "42", True),
        ("42", "42.0", False),
        ("x", None, False),
        (0, None, False),
        (False, None, False),
        ("", None, False),
        ("", "", True),
        (None, None, True),
        (None, "x", False),
        (4.5, None, True),
        (4.5, "4.5", False),
        ([1], None, True),
        ({}, "x", False),
    ],
)
def test_s47_arguments_and_their_headers(value: object, raw: str | None, fits: bool) -> None:
    """Numbers are compared as numbers; `null` has no header; what no header can carry has none."""
    environ = _environ(**({} if raw is None else {"HTTP_MCP_PARAM_P": raw}))
    assert (headers.mismatch(environ, _request({"p": value}), {("p",): "P"}) is None) is fits


@pytest.mark.parametrize("arguments", [None, [], "x", {"a": 7}, {"a": None}, {}])
def test_a_path_that_leads_nowhere_has_no_header(arguments: object) -> None:
    """Arguments may be anything: the method's own checks refuse them."""
    assert headers.mismatch(_environ(), _request(arguments), {("a", "b"): "P"}) is None


# ---------------------------------------------------------------- the standard headers


@pytest.fixture
def http() -> Iterator[Driver]:
    with Server("http") as server:

        @server.tool(name="a tool")
        def spaced() -> str:
            return "ok"

        @server.tool(name="tool")
        def tool(
            region: Annotated[str | None, HeaderParam("Region")] = None,
            count: Annotated[int | None, HeaderParam("Count")] = None,
        ) -> str:
            return f"{region} {count}"

        @server.resource("x:é")
        def resource() -> str:
            return "ok"

        yield driver_of(server)


@pytest.mark.parametrize(
    ("method", "params", "changed"),
    [
        ("tools/list", {}, {"Mcp-Method": None}),
        ("tools/list", {}, {"Mcp-Method": "TOOLS/LIST"}),
        ("tools/list", {}, {"Mcp-Method": "tools/call"}),
        ("tools/call", {"name": "tool"}, {"Mcp-Name": None}),
        ("tools/call", {"name": "tool"}, {"Mcp-Name": "other"}),
        ("tools/call", {"name": "tool"}, {"Mcp-Name": "=?base64?dG9vbA?="}),
        ("resources/read", {"uri": "x:y"}, {"Mcp-Name": "x:z"}),
        ("prompts/get", {"name": "p"}, {"Mcp-Name": None}),
        ("tools/call", {"name": "tool", "arguments": {"region": "r"}}, {}),
        ("tools/call", {"name": "tool", "arguments": {"region": "r"}}, {"Mcp-Param-Region": "q"}),
        ("tools/call", {"name": "tool", "arguments": {}}, {"Mcp-Param-Region": "q"}),
        ("tools/call", {"name": "tool", "arguments": {"count": 3}}, {"Mcp-Param-Count": "4"}),
    ],
)
def test_s47_headers_that_do_not_fit_are_refused(
    http: Driver, method: str, params: dict[str, Any], changed: dict[str, str | None]
) -> None:
    """400 and -32020, with the request's id."""
    answer = http.modern(method, params, id="h", headers=changed)
    assert (answer.status, answer.code, answer.json["id"]) == (400, -32020, "h")


@pytest.mark.parametrize(
    ("params", "changed", "text"),
    [
        ({"name": "tool"}, {}, "None None"),
        ({"name": "tool"}, {"Mcp-Name": " tool\t"}, "None None"),
        ({"name": "tool"}, {"Mcp-Name": "=?base64?dG9vbA==?="}, "None None"),
        ({"name": "a tool"}, {}, "ok"),
        (
            {"name": "tool", "arguments": {"region": "r", "count": 3}},
            {"Mcp-Param-Region": "=?base64?cg==?=", "mcp-param-count": "3.0"},
            "r 3",
        ),
        ({"name": "tool", "arguments": {"region": None}}, {}, "None None"),
        ({"name": "tool"}, {"Mcp-Param-Unknown": "ignored"}, "None None"),
    ],
)
def test_s47_headers_that_fit_are_taken(
    http: Driver, params: dict[str, Any], changed: dict[str, str | None], text: str
) -> None:
    """Encoded or plain, in any case of their names."""
    answer = http.modern("tools/call", params, headers=changed)
    assert answer.status == 200
    assert answer.json["result"]["content"][0]["text"] == text


def test_names_outside_of_ascii_are_encoded(http: Driver) -> None:
    """As URIs may be."""
    encoded = "=?base64?" + base64.b64encode("x:é".encode()).decode() + "?="
    assert (
        http.modern("resources/read", {"uri": "x:é"}, headers={"Mcp-Name": encoded}).status == 200
    )
    raw = "x:é".encode().decode("latin-1")
    answer = http.modern("resources/read", {"uri": "x:é"}, headers={"Mcp-Name": raw})
    assert (answer.status, answer.code) == (400, -32020)


@pytest.mark.parametrize("params", [{}, {"name": 7}, {"name": None}, {"name": ["x"]}])
def test_a_missing_name_is_the_methods_own_matter(http: Driver, params: dict[str, Any]) -> None:
    """Without a header for it; with one it is a mismatch."""
    answer = http.modern("tools/call", params, headers={"Mcp-Name": None})
    expected = (400, -32020) if params.get("name") == 7 else (200, -32602)
    assert (answer.status, answer.code) == expected
    answer = http.modern("tools/call", params, headers={"Mcp-Name": "x"})
    assert (answer.status, answer.code) == (400, -32020)


def test_a_legacy_request_needs_none_of_them(http: Driver) -> None:
    """Whatever they say."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "tool"}}
    answer = http.post(message, {"Mcp-Method": "x", "Mcp-Name": "y", "Mcp-Param-Region": "z"})
    assert answer.json["result"]["content"][0]["text"] == "None None"


# ---------------------------------------------------------------- media types, events, statuses


@given(st.lists(st.sampled_from(["*/*", "text/*", "text/event-stream", "a/b", "x"]), max_size=5))
def test_ranges_are_matched_in_any_order(ranges: list[str]) -> None:
    """What is not forbidden by its own range is allowed by a wider one."""
    wanted = bool({"*/*", "text/*", "text/event-stream"} & set(ranges)) or not ranges
    assert headers.accepts(", ".join(ranges), "text/event-stream") is wanted
    refused = ", ".join([*ranges, "text/event-stream;q=0.000"])
    if "text/event-stream" not in ranges:
        assert headers.accepts(refused, "text/event-stream") is False


@given(st.integers(0, 10**18 - 1), st.integers(0, 10**18 - 1))
def test_event_ids_are_read_back(stream: int, number: int) -> None:
    """They name the stream and the place in it."""
    found = events.EventId(stream, number)
    assert events.read_id(str(found)) == found
    assert events.read_id(f" {found}\t") == found


def test_an_event_is_one_line_of_data() -> None:
    """JSON has no line ends in it."""
    assert events.event(b"{}") == b"event: message\ndata: {}\n\n"
    assert events.event(b"{}", events.EventId(2, 3)) == b"event: message\nid: 2-3\ndata: {}\n\n"
    assert events.priming(events.EventId(1, 0), 0.0004) == b"id: 1-0\nretry: 0\ndata: \n\n"
    assert events.KEEP_ALIVE.startswith(b":")


def test_every_status_has_its_reason() -> None:
    """As RFC 9110 names them."""
    import http as standard

    for number, reason in status.REASONS.items():
        usual = standard.HTTPStatus(number).phrase
        assert reason in (usual, {413: "Content Too Large"}.get(number))
