"""Commands for a server that is reached by a URL."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.client.http.hostile import Hostile, Polite


@pytest.fixture(params=["modern", "legacy"])
def server(request: pytest.FixtureRequest) -> Iterator[Hostile]:
    """A proper server over HTTP."""
    found = Hostile(Polite(request.param))
    yield found
    found.close()


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "raxol_sync", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_tools_of_a_url(server: Hostile) -> None:
    """Listed as those of a program."""
    found = run("tools", "--json", server.url)
    assert found.returncode == 0, found.stderr
    assert [tool["name"] for tool in json.loads(found.stdout)] == ["echo"]


def test_a_call_with_a_header(server: Hostile) -> None:
    """The header goes with every request."""
    found = run("call", "echo", "text=hello", "--header", "x-key: k1", "--", server.url)
    assert (found.returncode, found.stdout) == (0, "hello\n"), found.stderr
    assert all(seen.headers["x-key"] == "k1" for seen in server.seen)


def test_the_status_of_a_url(server: Hostile) -> None:
    """Its revision is told."""
    found = run("status", server.url)
    assert found.returncode == 0, found.stderr
    assert ("2026-07-28" in found.stdout) or ("2025-11-25" in found.stdout)


def test_allow_http_is_taken(server: Hostile) -> None:
    """With a URL, for machines other than this one."""
    found = run("tools", "--allow-http", server.url)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (401, "HTTP status 401: check --header"),
        (404, "HTTP status 404: check the URL, which is {url}: its path is usually /mcp"),
    ],
)
def test_a_refusal_says_what_to_check(status: int, line: str) -> None:
    """In the words of the command line, and in one line."""
    server = Hostile(lambda seen, conn: conn.reply(status))
    url = server.url.removesuffix("/mcp") + "/wrong"
    found = run("tools", url)
    server.close()
    text = f"could not connect: the server answered with {line.format(url=url)}"
    assert (found.returncode, found.stderr) == (1, f"raxol-sync: {text}\n")


def test_the_help_tells_of_urls() -> None:
    """That of all commands, and of one."""
    assert "raxol-sync tools http://127.0.0.1:8000/mcp" in run("--help").stdout
    one = run("call", "--help").stdout
    assert "| URL |" in " ".join(one.split())
    assert "--allow-http" in one
