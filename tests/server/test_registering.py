"""What the decorators refuse, and say instead: mistakes that newcomers make."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from raxol_sync import InvalidTool, Server
from tests.server.helpers import call, result


def test_a_method_in_a_class_body_is_no_offer() -> None:
    """Callers would have to give it its `self`; the bound method is one."""
    with Server("s") as server:
        for decorate, how in (
            (server.tool, "server.tool(obj.price)"),
            (server.tool(input_schema={"type": "object"}), "server.tool(obj.price)"),
            (server.prompt, "server.prompt(obj.price)"),
            (server.resource("shop://x"), "server.resource('shop://x')(obj.price)"),
            (server.resource("shop://{item}"), "server.resource('shop://{item}')(obj.price)"),
        ):
            with pytest.raises(InvalidTool) as caught:

                class Shop:
                    @decorate
                    def price(self, item: str) -> int:
                        return 3

            assert "'price' is a method of Shop" in str(caught.value)
            assert str(caught.value).endswith(how)
        with pytest.raises(InvalidTool, match="its cls"):

            class Factory:
                @server.tool
                def make(cls) -> int:  # noqa: N805
                    return 3


def test_what_only_looks_like_a_method_is_one_offer_more() -> None:
    """Bound methods, static ones, functions with a `self` of their own, and one that is hinted."""
    with Server("s") as server:

        class Shop:
            def price(self, item: str) -> int:
                return 3

            @staticmethod
            @server.tool
            def free(item: str) -> int:
                return 0

            @server.tool
            def hinted(self: str) -> str:  # type: ignore[misc]
                return self

        @server.tool
        def share(self, item: str) -> str:  # type: ignore[no-untyped-def]  # untyped on purpose
            return f"{self} {item}"

        server.tool(Shop().price)
        names = [tool.name for tool in server.registry.list_tools()]
        assert names == ["free", "hinted", "share", "price"]
        answer = result(server, call("price", {"item": "x"}))
        assert answer["structuredContent"] == {"result": 3}


@pytest.mark.parametrize("kind", ["tool", "prompt"])
def test_a_name_goes_in_name(kind: str) -> None:
    """Other libraries take it as the first argument."""
    with Server("s") as server, pytest.raises(InvalidTool, match="a name goes in name=: @server"):
        getattr(server, kind)("add")


def work(item: str) -> str:
    return item


def test_s18_a_tool_for_a_process_needs_pebble_when_it_is_registered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And not when the first caller comes; nothing is imported to find out."""
    with Server("s") as server:
        before = set(sys.modules)
        server.tool(name="fine", isolation="process")(work)
        assert not {name for name in set(sys.modules) - before if name.startswith("pebble")}
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(InvalidTool, match=r"pip install 'raxol_sync\[process\]'"):
            server.tool(name="t", isolation="process")(work)
        server.tool(name="t", isolation="thread")(work)
