"""MCP Inspector's command line against our server over HTTP."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Peers
from tests.peers.serving import SERVERS, node

pytestmark = pytest.mark.peers

RUN_TIMEOUT = 60.0  # seconds for one command


@pytest.fixture(params=SERVERS)
def url(request: pytest.FixtureRequest, urls: dict[str, str]) -> str:
    """One server after another."""
    return urls[str(request.param)]


def inspect(peers: Peers, url: str, method: str, *words: str) -> Any:
    """Run one method; return what was printed."""
    folder = peers.folder / "clients" / "node_modules" / "@modelcontextprotocol" / "inspector"
    package = json.loads((folder / "package.json").read_text())
    program = folder / Path(next(iter(package["bin"].values())))
    command = [node(peers), str(program), "--cli", url, "--method", method, *words]
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=RUN_TIMEOUT, stdin=subprocess.DEVNULL
    )
    assert run.returncode == 0, run.stderr[-2000:] + run.stdout[-2000:]
    return json.loads(run.stdout)


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
def test_tools_are_listed(peers: Peers, url: str, path: str) -> None:
    """By the endpoint of today, and that of 2024."""
    tools = {tool["name"]: tool for tool in inspect(peers, url + path, "tools/list")["tools"]}
    assert set(tools["add"]["inputSchema"]["required"]) == {"a", "b"}


def test_a_tool_is_called(peers: Peers, url: str) -> None:
    """With arguments that the Inspector converts by the schema."""
    words = ("--tool-name", "add", "--tool-arg", "a=2", "--tool-arg", "b=3")
    found = inspect(peers, f"{url}/mcp", "tools/call", *words)
    assert found["structuredContent"] == {"result": 5}


def test_resources_and_prompts(peers: Peers, url: str) -> None:
    """Read and get."""
    read = inspect(peers, f"{url}/mcp", "resources/read", "--uri", "peer://items/7")
    assert read["contents"][0]["text"] == "item 7"
    words = ("--prompt-name", "greet", "--prompt-args", "name=Ada")
    prompt = inspect(peers, f"{url}/mcp", "prompts/get", *words)
    assert prompt["messages"][0]["content"]["text"] == "Please greet Ada."
