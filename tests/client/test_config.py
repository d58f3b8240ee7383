"""The `mcpServers` JSON of desktop hosts: what is read, filled in, and refused (row C03)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync import InvalidSpec
from raxol_sync.client.config import MAX_CONFIG_BYTES, MAX_SERVERS, read_config, resolve

ENVIRON = {"TOKEN": "secret-value", "EMPTY": "", "HOME": "/home/ada"}


def resolved(**entry: Any) -> dict[str, Any]:
    """One server, filled in from `ENVIRON`."""
    return resolve("files", entry, ENVIRON)


def refusal(**entry: Any) -> str:
    """Why a server is refused."""
    with pytest.raises(InvalidSpec) as refused:
        resolved(**entry)
    return str(refused.value)


def test_c03_a_command_is_read_whole() -> None:
    """Each member becomes an argument of `Client`; unknown ones are ignored."""
    found = resolved(
        type="stdio",
        command="npx",
        args=["-y", "server"],
        env={"A": "b"},
        cwd="/srv",
        autoApprove=["x"],
        icon=3,
    )
    assert found == {
        "command": "npx",
        "args": ["-y", "server"],
        "env": {"A": "b"},
        "cwd": "/srv",
    }
    assert resolved(command="x") == {"command": "x", "args": [], "env": {}, "cwd": None}


@pytest.mark.parametrize("kind", [None, "http", "sse", "streamable-http", "streamableHttp"])
def test_c03_a_url_is_read_whole(kind: str | None) -> None:
    """With its headers; the type may be left out."""
    more = {} if kind is None else {"type": kind}
    found = resolved(url="https://x/mcp", headers={"authorization": "Bearer ${TOKEN}"}, **more)
    assert found == {"url": "https://x/mcp", "headers": {"authorization": "Bearer secret-value"}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${TOKEN}", "secret-value"),
        ("${env:TOKEN}", "secret-value"),
        ("a${HOME}b${HOME}c", "a/home/adab/home/adac"),
        ("${EMPTY}", ""),
        ("${EMPTY:-other}", "other"),
        ("${MISSING:-other}", "other"),
        ("${MISSING:-}", ""),
        ("${env:MISSING:-a:-b}", "a:-b"),
        ("${TOKEN:-other}", "secret-value"),
        ("$TOKEN $${x} ${} ${1} ${a b} ${input:key}", "$TOKEN $${x} ${} ${1} ${a b} ${input:key}"),
    ],
)
def test_c03_variables_are_filled_in(text: str, value: str) -> None:
    """In three forms; everything else is a literal. What is filled in is not looked at again."""
    if "$${x}" in text:
        text, value = text.replace("$${x} ", ""), value.replace("$${x} ", "")
    found = resolved(command=f"c{text}", args=[text], env={"K": text}, cwd=f"/{text}")
    assert found == {
        "command": f"c{value}",
        "args": [value],
        "env": {"K": value},
        "cwd": f"/{value}",
    }


def test_c03_what_a_variable_holds_is_not_filled_in_again() -> None:
    """Values are data."""
    found = resolve("x", {"command": "c", "args": ["${A}"]}, {"A": "${B}", "B": "no"})
    assert found["args"] == ["${B}"]


@pytest.mark.parametrize(
    ("entry", "member"),
    [
        ({"command": "${GONE}"}, "command"),
        ({"command": "x", "args": ["${TOKEN}", "${GONE}"]}, "args"),
        ({"command": "x", "env": {"TOKEN": "${TOKEN}", "KEY": "${env:GONE}"}}, "env: KEY"),
        ({"command": "x", "cwd": "${GONE}"}, "cwd"),
        ({"url": "https://${GONE}"}, "url"),
        ({"url": "https://x", "headers": {"a": "${TOKEN} ${GONE}"}}, "headers: a"),
    ],
)
def test_c03_a_variable_that_is_not_set_is_named_and_no_value(
    entry: dict[str, Any], member: str
) -> None:
    """Server, member and variable; not what another variable holds."""
    text = refusal(**entry)
    assert text == (
        f"server 'files': {member} needs the environment variable GONE, which is not set; "
        "set it, or write ${GONE:-default}"
    )
    assert "secret-value" not in text


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({}, "needs command or url, and has neither"),
        ({"command": "x", "url": "y"}, "needs command or url, and has both"),
        ({"type": "http", "command": "x"}, "its type wants url, which it does not have"),
        ({"type": "stdio", "url": "x"}, "its type wants command, which it does not have"),
        ({"type": "pigeon", "command": "x"}, "its type must be stdio, http or sse"),
        ({"type": ["x"], "command": "x"}, "its type must be stdio, http or sse"),
        ({"command": ""}, "command must be a string, not empty"),
        ({"command": ["x"]}, "command must be a string, not empty"),
        ({"command": "x", "args": "a b"}, "args must be a list of strings"),
        ({"command": "x", "args": [8080]}, "args must be a list of strings"),
        ({"command": "x", "env": ["A"]}, "env must be an object of strings"),
        ({"command": "x", "env": {"PORT": 8080}}, "env: PORT must be a string"),
        ({"command": "x", "cwd": 3}, "cwd must be a string, not empty"),
        ({"url": 3}, "url must be a string, not empty"),
        ({"url": "x", "headers": {"a": None}}, "headers: a must be a string"),
    ],
)
def test_c03_a_server_that_is_none_is_refused(entry: dict[str, Any], text: str) -> None:
    """Each in its words, with the server's name."""
    found = refusal(**entry)
    assert "server 'files'" in found
    assert text in found


def test_c03_a_file_is_read(tmp_path: Path) -> None:
    """With a byte order mark or without; those that are disabled are left out."""
    servers = {"a": {"command": "x"}, "b": {"command": "y", "disabled": True}}
    for encoding in ("utf-8", "utf-8-sig"):
        path = tmp_path / "mcp.json"
        path.write_text(json.dumps({"mcpServers": servers, "other": 1}), encoding=encoding)
        assert read_config(path) == {"a": {"command": "x"}}
        assert read_config(str(path)) == {"a": {"command": "x"}}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({}, 'has no object "mcpServers"'),
        ({"mcpServers": []}, 'has no object "mcpServers"'),
        ({"mcpServers": {"a": "x"}}, "each of mcpServers must be a name with an object"),
        ({"mcpServers": {"": {}}}, "each of mcpServers must be a name with an object"),
        ({"mcpServers": {str(n): {} for n in range(MAX_SERVERS + 1)}}, "more than 256 servers"),
    ],
)
def test_c03_what_is_no_configuration_is_refused(source: dict[str, Any], text: str) -> None:
    """Before anything is started."""
    with pytest.raises(InvalidSpec, match=text):
        read_config(source)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"{", "is no JSON: Expecting property name"),
        (b"\xff\xfe", "is no JSON: it is not UTF-8"),
        (b"[" * 100_000, "is no JSON"),
        (b"[]", 'has no object "mcpServers"'),
        (b" " * (MAX_CONFIG_BYTES + 1), "is longer than"),
    ],
)
def test_c03_a_file_that_is_no_configuration_is_refused(
    data: bytes, text: str, tmp_path: Path
) -> None:
    """With the file's name."""
    path = tmp_path / "mcp.json"
    path.write_bytes(data)
    with pytest.raises(InvalidSpec, match=text) as refused:
        read_config(path)
    assert str(path) in str(refused.value)


def test_c03_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Missing, or a folder."""
    with pytest.raises(InvalidSpec, match="no such file"):
        read_config(tmp_path / "no.json")
    with pytest.raises(InvalidSpec, match="directory"):
        read_config(tmp_path)


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.sampled_from(["${A}", "stdio", "http"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
)
MEMBERS = st.sampled_from(["command", "args", "env", "cwd", "url", "headers", "type", "disabled"])


@given(st.dictionaries(MEMBERS, VALUES))
def test_c03_whatever_a_file_holds_is_taken_or_refused(entry: dict[str, Any]) -> None:
    """There is no third way."""
    try:
        for name, found in read_config({"mcpServers": {"x": entry}}).items():
            resolve(name, found, {"A": "1"})
    except InvalidSpec:
        return
