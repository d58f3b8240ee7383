"""Row S43: what a server offers, by name."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.definitions import Prompt, Resource, ResourceTemplate, Tool
from raxol_sync.errors import InvalidTool
from raxol_sync.registry import Registry

WAIT = 10.0  # seconds; a test that waits so long has failed


def tool(name: str, description: str = "d") -> Tool:
    return Tool(name, description, {"type": "object"}, lambda arguments: None)


def resource(uri: str) -> Resource:
    return Resource(uri, "n", lambda: "")


def template(text: str) -> ResourceTemplate:
    return ResourceTemplate(text, "n", lambda variables: "")


def prompt(name: str) -> Prompt:
    return Prompt(name, lambda arguments: "")


KINDS: dict[str, tuple[Any, str]] = {
    "tools": (tool, "name"),
    "resources": (resource, "uri"),
    "resource_templates": (template, "uri_template"),
    "prompts": (prompt, "name"),
}


def key_of(kind: str, text: str) -> str:
    return f"x:{text}/{{v}}" if kind == "resource_templates" else text


@pytest.mark.parametrize("kind", KINDS)
def test_s43_registering_listing_unregistering(kind: str) -> None:
    """The same for each kind; the order is that of registration, unknown keys are ignored."""
    make, key = KINDS[kind]
    registry = Registry()
    register = getattr(registry, f"register_{kind}")
    unregister = getattr(registry, f"unregister_{kind}")

    def listed() -> list[str]:
        return [getattr(item, key) for item in getattr(registry, f"list_{kind}")()]

    names = [key_of(kind, text) for text in ("b", "a", "c")]
    register(make(name) for name in names)
    assert listed() == names
    unregister(iter([names[1], "unknown"]))
    assert listed() == [names[0], names[2]]
    register([make(names[1])])
    assert listed() == [names[0], names[2], names[1]]
    register([make(names[0])])
    assert listed() == [names[0], names[2], names[1]]


@pytest.mark.parametrize("kind", KINDS)
def test_s43_all_or_nothing(kind: str) -> None:
    """One that does not belong here keeps the others out; its index is named."""
    make, _ = KINDS[kind]
    registry = Registry()
    wrong = prompt("p") if kind != "prompts" else tool("t")
    with pytest.raises(InvalidTool, match=r"\[1\].*\[2\]"):
        getattr(registry, f"register_{kind}")([make(key_of(kind, "a")), wrong, 5])
    assert getattr(registry, f"list_{kind}")() == []


def test_s43_register_all_is_all_or_nothing() -> None:
    """Over all kinds; resources and templates may be mixed."""
    registry = Registry()
    with pytest.raises(InvalidTool) as caught:
        registry.register_all(
            tools=[tool("t"), 5],  # type: ignore[list-item]
            resources=[resource("r"), prompt("p")],  # type: ignore[list-item]
            prompts=[tool("t")],  # type: ignore[list-item]
        )
    for what in ("tools[1]", "resources[1]", "prompts[0]"):
        assert what in str(caught.value)
    assert [registry.list_tools(), registry.list_resources(), registry.list_prompts()] == [[]] * 3
    registry.register_all(
        tools=iter([tool("t")]), resources=[template("x:{a}"), resource("r")], prompts=[prompt("p")]
    )
    assert [t.name for t in registry.list_tools()] == ["t"]
    assert [r.uri for r in registry.list_resources()] == ["r"]
    assert [t.uri_template for t in registry.list_resource_templates()] == ["x:{a}"]
    assert [p.name for p in registry.list_prompts()] == ["p"]


def test_s32_static_tools_leave_derived_ones_out() -> None:
    """Only the flag makes a tool derived; registering again without it takes it away."""
    registry = Registry()
    registry.register_tools([tool("static"), tool("a.b")])
    registry.register_tools([tool("derived")], derived=True)
    assert [t.name for t in registry.static_tools()] == ["static", "a.b"]
    assert [t.name for t in registry.list_tools()] == ["static", "a.b", "derived"]
    registry.register_tools([tool("derived")])
    assert [t.name for t in registry.static_tools()] == ["static", "a.b", "derived"]


def test_a_tool_of_the_same_name_takes_the_place(caplog: pytest.LogCaptureFixture) -> None:
    """It says so in the log, as does an unusual name."""
    registry = Registry()
    with caplog.at_level(logging.WARNING, "raxol_sync.server"):
        registry.register_tools([tool("a"), tool("b")])
        assert caplog.messages == []
        registry.register_tools([tool("a", "new")])
        registry.register_prompts([prompt("with space")])
    assert ["replaces" in caplog.messages[0], "many clients" in caplog.messages[1]] == [True, True]
    assert [t.description for t in registry.list_tools()] == ["new", "d"]
    found = registry.tools.get("a")
    assert found is not None
    assert found.description == "new"
    assert registry.tools.get("c") is None


def test_a_log_handler_may_use_the_registry() -> None:
    """Nothing is logged under the lock."""
    registry = Registry()
    handled = threading.Event()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            registry.unregister_tools(["nothing"])
            handled.set()

    logger, handler = logging.getLogger("raxol_sync.server"), Handler()
    registry.register_tools([tool("a")])
    logger.addHandler(handler)
    try:
        thread = threading.Thread(target=registry.register_tools, args=([tool("a")],), daemon=True)
        thread.start()
        assert handled.wait(WAIT)
        thread.join(WAIT)
    finally:
        logger.removeHandler(handler)


@given(st.integers(0, 12), st.integers(1, 5), st.data())
def test_s10_pages_are_cut_by_position(count: int, size: int, data: st.DataObject) -> None:
    """What stays registered is listed exactly once, whatever goes and comes between two pages."""
    registry = Registry()
    registry.register_tools(tool(f"t{number}") for number in range(count))
    stays = {t.name for t in registry.list_tools()}
    seen: list[str] = []
    after: int | None = 0
    while after is not None:
        page = registry.tools.page(after, size)
        assert len(page.items) <= size
        seen += [t.name for t in page.items]
        after = page.next_position
        gone = f"t{data.draw(st.integers(0, 12))}"
        registry.unregister_tools([gone])
        stays.discard(gone)
        if after is not None and len(seen) < 30:
            registry.register_tools([tool(f"new{len(seen)}")])
    assert len(seen) == len(set(seen))
    assert stays <= set(seen)


def test_pages_without_a_size_hold_everything() -> None:
    """And an empty registry has one empty page."""
    registry = Registry()
    assert registry.tools.page(0, 5).items == []
    assert registry.tools.page(0, 5).next_position is None
    registry.register_tools([tool("a"), tool("b")])
    assert len(registry.tools.page(0, None).items) == 2
    assert registry.tools.page(99, 1).next_position is None


def test_s43_a_snapshot_does_not_change() -> None:
    """Reads take no lock: who took a list keeps it."""
    registry = Registry()
    registry.register_tools([tool("a")])
    before, entries = registry.list_tools(), registry.tools.entries
    registry.register_tools([tool("b")])
    registry.unregister_tools(["a"])
    assert [t.name for t in before] == ["a"]
    assert list(entries) == ["a"]


def test_s43_many_writers_lose_nothing() -> None:
    """Eight threads at once; each position is one tool's."""
    registry = Registry()
    barrier = threading.Barrier(8)

    def work(thread: int) -> None:
        barrier.wait(WAIT)
        for step in range(25):
            registry.register_tools([tool(f"t{thread}-{step}"), tool(f"x{thread}")])
            registry.unregister_tools([f"x{thread}"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert {t.name for t in registry.list_tools()} == {
        f"t{a}-{b}" for a in range(8) for b in range(25)
    }
    positions = [entry.position for entry in registry.tools.entries.values()]
    assert positions == sorted(set(positions))


class Watcher:
    """Collects what a registry says has changed."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def changed(self, kind: str) -> None:
        self.kinds.append(kind)


def test_changes_are_told_once_for_each_write() -> None:
    """By kind, only where something changed, outside the lock."""
    registry, watcher = Registry(), Watcher()
    registry.watch(watcher.changed)
    registry.register_tools([])
    registry.unregister_tools(["unknown"])
    assert watcher.kinds == []
    registry.register_tools([tool("a"), tool("b")])
    registry.register_resources([resource("r")])
    registry.register_resource_templates([template("x:{a}")])
    registry.register_prompts([prompt("p")])
    registry.unregister_tools(["a", "b"])
    assert watcher.kinds == ["tools", "resources", "resources", "prompts", "tools"]
    registry.unwatch(watcher.changed)
    registry.unregister_prompts(["p"])
    assert len(watcher.kinds) == 5


def test_a_registry_does_not_keep_its_watchers_alive() -> None:
    """A server that nobody holds goes."""
    registry = Registry()
    registry.watch(Watcher().changed)
    registry.register_tools([tool("a")])
    watcher = Watcher()
    registry.watch(watcher.changed)
    assert len(registry._watchers) == 1


def test_the_first_template_that_fits_is_found() -> None:
    """With its variables' values."""
    registry = Registry()
    registry.register_resource_templates([template("x:{a}/z"), template("x:{b}/{c}")])
    found = registry.match_template("x:1/z")
    assert found is not None
    assert (found[0].uri_template, found[1]) == ("x:{a}/z", {"a": "1"})
    found = registry.match_template("x:1/%2F")
    assert found is not None
    assert (found[0].uri_template, found[1]) == ("x:{b}/{c}", {"b": "1", "c": "/"})
    assert registry.match_template("y:1") is None
