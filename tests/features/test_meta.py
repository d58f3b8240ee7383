"""`_meta`: a trace context on its way from the caller to the callback."""

from __future__ import annotations

from typing import Any

import pytest

from raxol_sync import Context, InvalidArguments, MessageTooLarge, Server
from tests.features.helpers import EACH_ERA, Json, connected, form

TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", "baggage": "a=1"}


def offering(seen: list[Json]) -> Server:
    """A server whose callbacks tell what they see of `_meta`."""
    server = Server()

    def look(context: Context) -> str:
        known = ("io.modelcontextprotocol/", "progressToken")
        seen.append({k: v for k, v in context.meta.items() if not k.startswith(known)})
        return "done"

    server.tool(look)
    server.prompt(look)
    server.resource("a://b", name="look")(look)
    return server


@EACH_ERA
def test_what_the_caller_gives_reaches_the_callback(revision: str) -> None:
    """Of each kind of request, with and without progress."""
    seen: list[Json] = []
    with connected(offering(seen), revision) as client:
        client.call_tool("look", meta=TRACE)
        client.submit_tool("look", meta=TRACE).result(10)
        client.call_tool("look", meta=TRACE, progress=lambda *given: None)
        client.get_prompt("look", meta=TRACE)
        client.read_resource("a://b", meta=TRACE)
        client.request("tools/call", {"name": "look", "_meta": TRACE})
        client.call_tool("look", meta={})
        client.call_tool("look")
    assert seen == [TRACE] * 6 + [{}] * 2


def test_it_goes_with_each_round_of_a_call() -> None:
    """A retry is a request like the first one."""
    seen: list[Any] = []
    with connected(server := Server(), on_elicit=lambda m, s: {"x": "y"}) as client:

        @server.tool
        def ask(context: Context) -> str:
            seen.append(context.meta.get("traceparent"))
            return context.elicit("?", form(x={"type": "string"})).action

        assert client.call_tool("ask", meta=TRACE).text == "accept"
    assert seen == [TRACE["traceparent"]] * 2


@pytest.mark.parametrize(
    ("meta", "kind"),
    [
        ({"progressToken": 1}, ValueError),
        ({"io.modelcontextprotocol/logLevel": "debug"}, ValueError),
        ("trace", TypeError),
        ({"x": b"bytes"}, InvalidArguments),
    ],
    ids=str,
)
@EACH_ERA
def test_what_cannot_go_there_is_refused_before_anything_is_sent(
    revision: str, meta: Any, kind: type[Exception]
) -> None:
    """The protocol's own keys are the library's to set."""
    seen: list[Json] = []
    with connected(offering(seen), revision) as client:
        with pytest.raises(kind):
            client.call_tool("look", meta=meta)
        assert client.call_tool("look").text == "done"
    assert len(seen) == 1


def test_it_counts_for_the_size_of_a_message() -> None:
    """As the arguments do."""
    small = connected(offering([]), max_message_bytes=10_000)
    with small as client, pytest.raises(MessageTooLarge):
        client.call_tool("look", meta={"x": "y" * 10_000})
