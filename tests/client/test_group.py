"""Several servers as one: `ClientGroup` (rows C03, C26)."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from raxol_sync import (
    Client,
    ClientGroup,
    ConnectFailed,
    InvalidSpec,
    NotReady,
    ReservationLedger,
    RPCError,
    Server,
    UnmeteredCall,
)

ROOT = Path(__file__).resolve().parents[2]
WEATHER = str(ROOT / "examples" / "server.py")
ENV = {"PYTHONPATH": str(ROOT)}
CONFIG: dict[str, Any] = {
    "mcpServers": {
        "weather": {"command": sys.executable, "args": [WEATHER], "env": ENV},
        "more weather": {"command": "${TEST_PYTHON}", "args": [WEATHER], "env": ENV},
        "off": {"command": "no-such-program", "disabled": True},
    }
}
BROKEN = {"broken": {"command": "no-such-program"}}


def shop(name: str, tool: str = "price") -> Server:
    """A server with one tool, which tells the server's name."""
    server = Server(name)
    server.tool(name=tool, description="Tell where this is.")(lambda: name)
    return server


def members(*servers: Server) -> dict[str, Client]:
    """A client for each server, by its name."""
    return {server.name: Client(server.name, server=server) for server in servers}


def test_c03_a_group_is_made_from_a_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real processes, started together; options are for every client."""
    monkeypatch.setenv("TEST_PYTHON", sys.executable)
    with ClientGroup.from_config(CONFIG, call_timeout=20.0) as group:
        assert list(group.clients) == ["weather", "more weather"]
        assert {name: status.state for name, status in group.status().items()} == {
            "weather": "ready",
            "more weather": "ready",
        }
        tools = group.list_tools()
        assert [tool.name for tool in tools] == [
            "mcp__weather__temperature",
            "mcp__weather__cities",
            "mcp__more_weather__temperature",
            "mcp__more_weather__cities",
        ]
        answer = group.call_tool("mcp__more_weather__temperature", {"city": "Oslo"})
        assert answer.structured_content == {"result": 4.0}
        assert group.submit_tool("mcp__weather__cities").result(20).is_error is False
    assert {status.state for status in group.status().values()} == {"closed"}


def test_c03_a_missing_variable_is_told_before_anything_starts() -> None:
    """With the server's name."""
    with pytest.raises(InvalidSpec, match=r"server 'more weather': command needs .* TEST_PYTHON"):
        ClientGroup.from_config(CONFIG)


def test_c03_a_url_is_a_server_too() -> None:
    """A server that cannot be reached says why, at once."""
    config = {"mcpServers": {"far": {"url": "http://127.0.0.1:9/mcp"}}}
    with ClientGroup.from_config(config) as group:
        assert "connection refused" in str(group.status()["far"].error)


def test_c03_a_server_that_fails_does_not_stop_the_others() -> None:
    """Its tools are missing, its status says why, its calls raise that."""
    config = {"mcpServers": {**BROKEN, "weather": CONFIG["mcpServers"]["weather"]}}
    with ClientGroup.from_config(config) as group:
        assert [tool.name for tool in group.list_tools()] == [
            "mcp__weather__temperature",
            "mcp__weather__cities",
        ]
        status = group.status()["broken"]
        assert status.state == "closed"
        assert "no-such-program" in str(status.error)
        with pytest.raises(ConnectFailed, match="no-such-program"):
            group.call_tool("mcp__broken__x")


def test_c03_a_strict_group_fails_as_a_whole() -> None:
    """Those that have started are stopped again."""
    config = {"mcpServers": {"weather": CONFIG["mcpServers"]["weather"], **BROKEN}}
    group = ClientGroup.from_config(config, strict=True)
    with pytest.raises(ConnectFailed, match="no-such-program"), group:
        pytest.fail("it is not entered")
    assert {status.state for status in group.status().values()} == {"closed"}


def test_c26_calls_find_their_server() -> None:
    """Every tool under its own name, also where a name has two underscores."""
    with shop("a") as a, shop("b-c", "x__price") as b, ClientGroup(members(a, b)) as group:
        assert [tool.name for tool in group.list_tools()] == [
            "mcp__a__price",
            "mcp__b_c__x__price",
        ]
        assert group.call_tool("mcp__a__price").text == "a"
        assert group.call_tool("mcp__b_c__x__price").text == "b-c"
        assert group.submit_tool("mcp__b_c__x__price").result(10).text == "b-c"
        with pytest.raises(RPCError):
            group.call_tool("mcp__a__nope")


def test_c02_a_stopped_group_says_that_it_is_stopped() -> None:
    """At once; it is not an empty list of tools, and no time is waited for."""
    with shop("a") as a:
        group = ClientGroup(members(a))
        with group:
            pass
        for use in (group.start, group.__enter__, group.await_ready, group.list_tools):
            with pytest.raises(NotReady, match="the group was stopped, which is final; make anoth"):
                use()
        for call in (group.call_tool, group.submit_tool):
            with pytest.raises(NotReady, match="the client was stopped, which is final; make anot"):
                call("mcp__a__price")
        group.stop()


def test_c02_a_group_that_was_never_started_says_how_to() -> None:
    """Instead of leaving out all of its servers."""
    with shop("a") as a:
        group = ClientGroup(members(a))
        for use in (group.await_ready, group.list_tools):
            with pytest.raises(NotReady, match=r"use it as in 'with group:', or call start\(\)"):
                use()
        with group:
            assert [tool.name for tool in group.list_tools()] == ["mcp__a__price"]
    with ClientGroup({}) as empty:
        assert empty.list_tools() == []


@pytest.mark.parametrize("name", ["price", "mcp__c__price", "mcp__a__", "mcp__a_price", ""])
def test_c26_a_name_of_no_server_is_refused(name: str) -> None:
    """Nothing is sent; the error names the prefixes that there are."""
    group = ClientGroup(members(shop("a")))
    with pytest.raises(ValueError, match=r"its tools are named mcp__a__\.\.\."):
        group.call_tool(name)
    with pytest.raises(ValueError, match="is no tool of this group"):
        group.submit_tool(name)


@pytest.mark.parametrize("names", [("a b", "a_b"), ("a", "a__b"), ("a__b", "a"), ("a", "a__")])
def test_c26_names_that_cannot_be_told_apart_are_refused(names: tuple[str, str]) -> None:
    """Before anything starts: no call may reach the wrong server."""
    with pytest.raises(InvalidSpec, match="would share tool names"):
        ClientGroup(members(*map(shop, names)))


def test_start_returns_at_once_and_all_start_side_by_side() -> None:
    """Each server's first answer waits until every other one was asked as well."""
    everyone = threading.Barrier(3)

    class Waiting(Server):
        def subscribe(self, *words: Any, **more: Any) -> Any:
            everyone.wait(10)
            return super().subscribe(*words, **more)

    servers = [Waiting(name) for name in "abc"]
    group = ClientGroup(members(*servers))
    group.start()
    group.start()
    assert {status.state for status in group.await_ready(10).values()} == {"ready"}
    group.stop()
    group.stop()
    for server in servers:
        server.close()
    with pytest.raises(NotReady):
        group.start()


def test_stop_and_list_run_side_by_side() -> None:
    """No client waits for another."""
    everyone = threading.Barrier(2)

    class Slow(Client):
        def list_tools(self, **more: Any) -> Any:
            everyone.wait(10)
            return super().list_tools(**more)

        def stop(self, **more: Any) -> None:
            everyone.wait(10)
            super().stop(**more)

    with shop("a") as a, shop("b") as b:
        group = ClientGroup({s.name: Slow(s.name, server=s) for s in (a, b)})
        group.start()
        group.await_ready()
        assert len(group.list_tools()) == 2
        group.stop()


def test_a_server_that_cannot_list_is_left_out_or_raises() -> None:
    """By `strict`; a mistake of the caller's is always raised."""

    class Mute(Client):
        def list_tools(self, **more: Any) -> Any:
            raise RPCError(-32603, "no list today")

    with shop("a") as a, shop("b") as b:
        for strict in (False, True):
            clients = {"a": Client("a", server=a), "b": Mute("b", server=b)}
            with ClientGroup(clients, strict=strict) as group:
                if strict:
                    with pytest.raises(RPCError, match="no list today"):
                        group.list_tools()
                else:
                    assert [tool.name for tool in group.list_tools()] == ["mcp__a__price"]
                with pytest.raises(ValueError, match="at least 0"):
                    group.list_tools(timeout=-1)


def test_an_empty_group_and_its_repr() -> None:
    """No servers, no tools, no error."""
    with ClientGroup({}) as group:
        assert (group.list_tools(), group.status(), repr(group)) == ([], {}, "<ClientGroup: empty>")
    assert repr(ClientGroup(members(shop("a")))) == "<ClientGroup: a starting>"
    with pytest.raises(TypeError):
        group.clients["x"] = Client("x", server=shop("x"))  # type: ignore[index]


def test_a_group_has_a_bound() -> None:
    """Told with the number."""
    with shop("a") as server, pytest.raises(InvalidSpec, match="at most 256 servers, not 257"):
        ClientGroup({str(n): Client(str(n), server=server) for n in range(257)})


def test_c25_a_group_hands_reservations_on() -> None:
    """To the server whose tool it is, by the tool's name there; once each."""
    ledger = ReservationLedger(10.0)
    server = Server("shop")

    @server.tool
    def buy(what: str) -> str:
        """Buy it."""
        return f"bought {what}"

    client = Client("shop", server=server, prices={"buy": 2.0}, reservations=ledger)
    with server, ClientGroup({"shop": client}) as group:
        with pytest.raises(UnmeteredCall):
            group.call_tool("mcp__shop__buy", {"what": "bread"})
        paid = ledger.mint("buy", 2.0)
        found = group.call_tool("mcp__shop__buy", {"what": "bread"}, reservation=paid)
        assert found.text == "bought bread"
        with pytest.raises(UnmeteredCall):
            group.submit_tool("mcp__shop__buy", {"what": "bread"}, reservation=paid)
        other = ledger.mint("buy", 2.0)
        future = group.submit_tool("mcp__shop__buy", {"what": "milk"}, reservation=other)
        assert future.result(10).text == "bought milk"
    assert ledger.remaining == 6.0
