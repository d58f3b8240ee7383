"""Anything at all, from JSON values to params of any method (rows S01, S06, S52)."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from raxol_sync import Server
from tests.server.helpers import WAIT, Recorder, eventually, modern, req

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["name", "arguments", "uri", "cursor", "level", "ref", "argument", "context", "type", "value",
     "notifications", "resourceSubscriptions", "toolsListChanged", "protocolVersion",
     "capabilities", "clientInfo", "requestId", "progressToken",
     "io.modelcontextprotocol/logLevel"]
)  # fmt: skip
WORDS = st.sampled_from(
    ["echo", "a://x", "a://1", "p", "ref/prompt", "ref/tool", "ref/resource", "debug", "p1", "x"]
)
VALUES = st.recursive(
    JSON | WORDS, lambda inner: st.dictionaries(KEYS, inner) | st.lists(inner), max_leaves=6
)
PARAMS = st.dictionaries(KEYS, VALUES)
METHODS = st.sampled_from(
    ["initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/read",
     "resources/templates/list", "resources/subscribe", "resources/unsubscribe", "prompts/list",
     "prompts/get", "logging/setLevel", "completion/complete", "server/discover",
     "notifications/cancelled", "nope"]
)  # fmt: skip


def offering() -> Server:
    """A server with one of everything."""
    server = Server(page_size=1)
    server.tool(name="echo")(lambda value=0: value)
    server.resource("a://x", name="x")(lambda: "x")

    @server.resource("a://{n}/y", name="y")
    def template(n: int) -> str:
        return str(n)

    @server.prompt(completers={"who": lambda value: [value]})
    def p(who: str) -> str:
        return who

    return server


def check(answer: Any) -> None:
    """What every response looks like."""
    assert answer["jsonrpc"] == "2.0"
    assert ("result" in answer) != ("error" in answer)
    assert type(answer.get("id")) in (str, int, type(None))
    if "error" in answer:
        assert type(answer["error"]["code"]) is int
        assert answer["error"]["code"] != -32603, answer
        assert type(answer["error"]["message"]) is str
    else:
        assert type(answer["result"]) is dict


@settings(max_examples=300)
@given(JSON)
def test_s01_no_json_value_makes_it_raise(message: object) -> None:
    """Any JSON value at all gets `None` or a well-formed error."""
    with Server() as server:
        answer = server.handle_message(message, timeout=WAIT)
        if answer is not None:
            check(answer)


def test_s01_no_params_of_any_method_make_it_raise() -> None:
    """Any params of any method get a well-formed answer, and no slot or request is left over."""
    with offering() as server:

        @settings(max_examples=250)
        @given(METHODS, PARAMS, st.booleans())
        def fuzz(method: str, params: dict[str, Any], is_modern: bool) -> None:
            message = (modern if is_modern else req)(method, params, 3)
            if is_modern:
                message["params"]["_meta"].update(params)
            answer = server.handle_message(message, "c", timeout=WAIT)
            assert answer is not None
            check(answer)
            assert answer["id"] == 3

        fuzz()
        eventually(lambda: server.stats().in_flight == 0)
        assert server.stats().in_flight_by_connection == {}


def test_s52_no_filter_of_a_listen_makes_it_raise() -> None:
    """Any filter is either refused or acknowledged, and then ends with the connection."""
    with offering() as server:

        @settings(max_examples=150)
        @given(VALUES | PARAMS)
        def fuzz(wanted: object) -> None:
            sink = Recorder()
            future = server.request(
                modern("subscriptions/listen", {"notifications": wanted}, 9), "c", sink=sink
            )
            first = sink.wait_for(1)[0]
            if "method" in first:
                assert first["method"] == "notifications/subscriptions/acknowledged"
                assert future.cancel()
            else:
                check(first)
                assert first["error"]["code"] == -32602
            assert future.done()

        fuzz()
        assert server.stats().listens == 0
