"""Sensitive tools are not served without an authorizer (rows S31 to S33)."""

from __future__ import annotations

from typing import Any

import pytest

from raxol_sync import Registry, SensitiveToolError, Server, Tool, allow_all
from tests.server.approvals import denial_of, served
from tests.server.helpers import ask, call, modern, req, result, text


def tool(name: str = "wipe", **annotations: object) -> Tool:
    """A tool with these annotations."""
    return Tool(name, "Wipes.", {"type": "object"}, lambda a: "ran", annotations=annotations)


SENSITIVE: list[dict[str, Any]] = [
    {"destructiveHint": True},
    {"sensitive": True},
    {"destructiveHint": True, "readOnlyHint": True},
    {"sensitive": True, "destructiveHint": False, "readOnlyHint": True},
]
HARMLESS: list[dict[str, Any]] = [
    {},
    {"destructiveHint": False},
    {"readOnlyHint": False},
]


@pytest.mark.parametrize("annotations", SENSITIVE)
def test_s31_either_mark_makes_a_tool_sensitive(annotations: dict[str, Any]) -> None:
    """`readOnlyHint` takes nothing away."""
    assert tool(**annotations).sensitive


@pytest.mark.parametrize("annotations", HARMLESS)
def test_s31_only_true_counts(annotations: dict[str, Any]) -> None:
    """Anything else is no mark."""
    assert not tool(**annotations).sensitive


def test_s32_a_server_without_an_authorizer_refuses_to_start() -> None:
    """The error names the tools; with an authorizer it starts."""
    registry = Registry()
    registry.register_tools([tool("a", sensitive=True), tool("b"), tool("c", destructiveHint=True)])
    with pytest.raises(SensitiveToolError) as caught:
        Server(registry=registry)
    assert "a" in str(caught.value)
    assert "c" in str(caught.value)
    assert "b" not in str(caught.value).split()
    Server(registry=registry, authorizer=allow_all()).close()


def test_s32_run_checks_again() -> None:
    """What was registered after construction is found before stdio is touched."""
    with Server() as server:
        server.registry.register_tools([tool(sensitive=True)])
        with pytest.raises(SensitiveToolError, match="wipe"):
            server.run()


@pytest.mark.parametrize("name", ["wipe", "agent.reset"])
def test_s32_only_the_flag_makes_a_tool_derived(name: str) -> None:
    """Not a dotted name, nor a key of the tool's own."""
    registry = Registry()
    marked = Tool(
        name, "Wipes.", {"type": "object"}, lambda a: "ran",
        annotations={"sensitive": True, "derived": True}, meta={"derived": True},
    )  # fmt: skip
    registry.register_tools([marked])
    assert registry.static_tools() == [marked]
    with pytest.raises(SensitiveToolError):
        Server(registry=registry)
    registry.register_tools([marked], derived=True)
    assert registry.static_tools() == []
    Server(registry=registry).close()


@pytest.mark.parametrize("derived", [True, False])
def test_s33_without_an_authorizer_it_is_denied_and_not_listed(derived: bool) -> None:
    """However and whenever it was registered, in both eras."""
    with Server() as server:
        server.registry.register_tools([tool("widget.wipe", sensitive=True)], derived=derived)
        server.registry.register_tools([tool("plain")])
        for message in (call("widget.wipe"), modern("tools/call", {"name": "widget.wipe"})):
            words = denial_of(ask(server, message))
            assert (words["decision"], words["tool"]) == ("deny", "widget.wipe")
        assert [t["name"] for t in result(server, req("tools/list"))["tools"]] == ["plain"]
        assert text(ask(server, call("plain"))) == "ran"


def test_s33_a_tool_replaced_by_a_sensitive_one_is_denied() -> None:
    """What it was before does not matter."""
    with Server() as server:
        server.registry.register_tools([tool()])
        assert text(ask(server, call("wipe"))) == "ran"
        server.registry.register_tools([tool(destructiveHint=True)])
        assert denial_of(ask(server, call("wipe")))["decision"] == "deny"


def test_s33_with_an_authorizer_it_decides() -> None:
    """Also about a sensitive one."""
    with served(allow_all()) as server:
        server.registry.register_tools([tool(sensitive=True)])
        assert text(ask(server, call("wipe"))) == "ran"
