"""What a client may be told, and names (rows C01, C04, C26)."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.client.client import Client
from raxol_sync.client.naming import parse_tool_name, tool_name
from raxol_sync.errors import InvalidSpec

WRONG: list[dict[str, Any]] = [
    {},
    {"command": "x", "server": object()},
    {"server": object()},
    {"command": ""},
    {"command": ["x", "y"]},
    {"command": "x", "args": "one two"},
    {"command": "x", "args": [1]},
    {"command": "x", "args": ["a\0b"]},
    {"command": "x", "env": {"A": 1}},
    {"command": "x", "env": {"A=B": "1"}},
    {"command": "x", "env": ["A"]},
    {"command": "x", "protocol_version": "2031-01-01"},
    {"command": "x", "concurrency": "wild"},
    {"command": "x", "pool_size": 0},
    {"command": "x", "queue_limit": -1},
    {"command": "x", "max_tools": True},
    {"command": "x", "max_message_bytes": 1.5},
    {"command": "x", "call_timeout": -1},
    {"command": "x", "init_timeout": "soon"},
    {"command": "x", "probe_timeout": float("nan")},
    {"command": "x", "on_log": 3},
]


@pytest.mark.parametrize("settings", WRONG, ids=lambda s: ",".join(map(str, s)))
def test_c01_what_describes_no_server_is_refused(settings: dict[str, Any]) -> None:
    """`InvalidSpec` in words, and no thread was started."""
    before = set(threading.enumerate())
    with pytest.raises(InvalidSpec) as caught:
        Client("x", **settings)
    assert "'x'" in str(caught.value)
    assert set(threading.enumerate()) <= before  # those of a test before may end meanwhile


def test_c01_a_name_is_needed() -> None:
    """None at all is a TypeError, as for any missing argument; an empty one is refused."""
    without: Any = Client
    with pytest.raises(TypeError):
        without(command="x")
    with pytest.raises(InvalidSpec):
        Client("", command="x")


def test_c04_no_secret_in_texts() -> None:
    """Neither argument nor environment values are in errors or reprs."""
    secret = "s3cr3t"
    client = Client("x", command="x", args=["--token", secret], env={"TOKEN": secret})
    assert secret not in repr(client)
    assert secret not in repr(client._target)
    wrong: list[dict[str, Any]] = [
        {"env": {"TOKEN": [secret]}},
        {"env": {"TOKEN": secret + "\0"}},
        {"args": [secret, 1]},
        {"args": secret},
    ]
    for settings in wrong:
        with pytest.raises(InvalidSpec) as caught:
            Client("x", command="x", **settings)
        assert secret not in str(caught.value)
    missing = Client("x", command="no-such", env={"TOKEN": secret}, fail_fast=True)
    with pytest.raises(Exception) as failed, missing:
        pass
    chain: BaseException | None = failed.value
    while chain is not None:
        assert secret not in f"{chain}{chain!r}"
        chain = chain.__cause__ or chain.__context__


def test_c26_names() -> None:
    """The server's odd characters become `_`, the tool's stay."""
    assert tool_name("my server.1", "read-file.x") == "mcp__my_server_1__read-file.x"
    assert parse_tool_name("mcp__srv__a__b") == ("srv", "a__b")
    for other in ("", "mcp__", "mcp__x", "mcp____x", "mcp__x__", "other__x__y"):
        assert parse_tool_name(other) is None


@given(st.from_regex(r"[A-Za-z0-9]+(_[A-Za-z0-9]+)*", fullmatch=True), st.text(min_size=1))
def test_c26_names_come_back(server: str, tool: str) -> None:
    """Unless the server's name holds `__` itself."""
    assert parse_tool_name(tool_name(server, tool)) == (server, tool)
