"""The official clients, for Python and TypeScript, against our server: each era and transport."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from raxol_sync import Client
from tests.conftest import Peers
from tests.hosts.talk import eventually
from tests.peers.serving import SERVERS, node

pytestmark = pytest.mark.peers

PROGRAMS = Path(__file__).parent / "programs"
RUN_TIMEOUT = 120.0  # seconds for one whole run of a client
LEGACY, MODERN = "2025-11-25", "2026-07-28"
# name of the peer, how it connects, the revision that must come out, what serves, which transport
CLIENTS = [
    ("mcp1", "legacy", LEGACY, "stdio", ""),
    ("mcp2", "legacy", LEGACY, "stdio", ""),
    ("mcp2", "auto", MODERN, "stdio", ""),
    ("mcp2", MODERN, MODERN, "stdio", ""),
    ("mcp1", "legacy", LEGACY, "embedded", "/mcp"),
    ("mcp2", "legacy", LEGACY, "embedded", "/mcp"),
    ("mcp2", "auto", MODERN, "embedded", "/mcp"),
    ("mcp2", MODERN, MODERN, "embedded", "/mcp"),
    ("mcp1", "legacy", LEGACY, "embedded", "/sse"),
    ("mcp2", "legacy", LEGACY, "embedded", "/sse"),
    ("ts1", "legacy", LEGACY, "embedded", "/mcp"),
    ("ts2", "legacy", LEGACY, "embedded", "/mcp"),
    ("ts2", "auto", MODERN, "embedded", "/mcp"),
    ("ts2", MODERN, MODERN, "embedded", "/mcp"),
    ("ts1", "legacy", LEGACY, "embedded", "/sse"),
    ("mcp1", "legacy", LEGACY, "gunicorn", "/mcp"),
    ("ts2", "auto", MODERN, "gunicorn", "/mcp"),
    ("mcp2", "auto", MODERN, "gunicorn", "/mcp"),
    ("mcp1", "legacy", LEGACY, "gunicorn", "/sse"),
]
Report = dict[str, Any]


def _name(client: tuple[str, ...]) -> str:
    peer, mode, _, server, path = client
    return f"{peer}-{mode}-{server}{path.replace('/', '-')}"


@pytest.fixture(scope="module", params=CLIENTS, ids=_name)
def report(request: pytest.FixtureRequest, peers: Peers, urls: dict[str, str]) -> Report:
    """What one client saw of our server. It returns only when the server has ended too."""
    peer, mode, revision, server, path = request.param
    if peer.startswith("ts"):
        words = [str(PROGRAMS / "ts_client.cjs"), str(peers.folder / "clients"), peer[-1]]
        command = [node(peers), *words, mode]
    else:
        command = [str(getattr(peers, peer)), str(PROGRAMS / "sdk_client.py"), mode]
    if server == "stdio":
        command += [sys.executable, str(PROGRAMS / "our_server.py")]
    else:
        command += [urls[server] + path]
    run = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT)
    assert run.returncode == 0, run.stderr[-4000:]
    found: Report = json.loads(run.stdout)
    return {**found, "mode": mode, "expected_revision": revision, "peer": peer}


def test_s47_the_expected_revision_is_negotiated(report: Report) -> None:
    """Each client ends on the newest revision that its way of connecting allows."""
    assert report["protocol_version"] == report["expected_revision"]


def test_s09_the_server_says_its_name(report: Report) -> None:
    """The name arrives with the handshake or discover; a pinned client asks for neither."""
    silent = report["mode"] == MODERN and report["peer"] == "mcp2"
    assert report["server"] == (None if silent else "ours")


def test_s10_tools_are_listed_with_self_contained_schemas(report: Report) -> None:
    """Every tool is there, in order, and no schema needs a reference."""
    tools = report["tools"]
    assert list(tools)[:4] == ["echo", "add", "sleep", "point"]
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools.values())
    assert "$ref" not in json.dumps(tools)
    assert set(tools["add"]["inputSchema"]["required"]) == {"a", "b"}
    assert "context" not in tools["count"]["inputSchema"].get("properties", {})
    assert "outputSchema" not in tools["echo"]
    assert tools["add"]["outputSchema"]["properties"]["result"]["type"] == "integer"


def test_text_and_structured_results(report: Report) -> None:
    """A text comes alone; other values come structured, with their JSON as text."""
    assert report["echo"] == {
        "texts": ["grüße \u2028 🎈"],
        "structured": None,
        "is_error": False,
    }
    assert report["add"] == {"texts": ["5"], "structured": {"result": 5}, "is_error": False}
    assert report["point"]["structured"] == {"x": 1, "y": -1}
    assert json.loads(report["point"]["texts"][0]) == {"x": 1, "y": -1}
    assert report["picture"] == ["image/png", "89504e47"]


def test_s45_a_tool_error_reaches_the_client_word_for_word(report: Report) -> None:
    """`ToolError` is an answer, with `isError`."""
    assert report["fail"] == {"texts": ["no luck"], "structured": None, "is_error": True}


def test_s44_bad_arguments_are_named_without_their_value(report: Report) -> None:
    """The result names the argument and never repeats what was in it."""
    bad = report["bad_arguments"]
    assert bad["is_error"]
    assert "a" in bad["texts"][0]
    assert "'one'" not in bad["texts"][0]


def test_stray_output_does_not_reach_the_protocol(report: Report) -> None:
    """300 kB of prints on stdout and stderr, and a forged answer, disturb nobody."""
    assert report["noisy"]["texts"] == ["quiet again"]


def test_progress_arrives_in_order(report: Report) -> None:
    """Every step is seen, none twice."""
    assert report["progress"] == [[n, 3, f"step {n}"] for n in (1, 2, 3)]


def test_s11_log_messages_respect_the_level(report: Report) -> None:
    """At level info the debug message is left out."""
    assert report["logs"] == [["warning", "careful"]]
    assert report.get("set_level") is None


def test_s13_s53_unknown_names_have_their_codes(report: Report) -> None:
    """Unknown tool, resource and prompt, and a missing prompt argument."""
    modern = report["expected_revision"] == MODERN
    assert report["unknown_tool"] == -32601
    # The TypeScript client 2.x shows the modern code in either era.
    newer = modern or report["peer"] == "ts2"
    assert report["unknown_resource"] == (-32602 if newer else -32002)
    assert report["unknown_prompt"] == -32602
    assert report["missing_argument"] == -32602


def test_resources_and_prompts(report: Report) -> None:
    """Static and template resources, text and bytes, and a prompt."""
    assert report["resources"] == ["peer://blob", "peer://motd"]
    assert report["templates"] == ["peer://items/{number}"]
    assert (report["motd"], report["item"], report["blob"]) == ("hello", "item 7", "0001ff")
    assert report["prompts"] == ["greet"]
    assert report["prompt"] == ["user", "Please greet Ada."]


def test_s14_blocking_tools_run_side_by_side(report: Report) -> None:
    """Eight tools that block for 0.2 s at once take far less than eight times as long."""
    assert report["side_by_side"] < 1.0


def test_s50_a_cancelled_call_is_noticed(report: Report) -> None:
    """The running tool sees the cancel, and the connection goes on."""
    assert report["cancelled"] is True


def test_s34_the_client_answers_what_it_is_asked(report: Report) -> None:
    """A form, its model and its roots, in one call; by requests or by an input round."""
    action, form, text, model, roots = json.loads(report["survey"]["texts"][0])
    assert (action, form) == ("accept", {"name": "Who?", "age": 7})
    assert (text, model, roots) == ("because", "tiny", ["file:///srv/data"])


def test_s22_a_changed_resource_is_told(report: Report) -> None:
    """To a subscription of the legacy era, to a listen of the modern one."""
    assert report["updates"] == ["peer://motd"]


def test_s48_a_client_that_is_sent_away_comes_back(report: Report) -> None:
    """Streams that are closed between events lose none of them (only legacy HTTP has this)."""
    assert report["steps"] == [1, 2, 3]
    assert report["stepped"] == ["stepped"]


@pytest.mark.parametrize("name", SERVERS)
def test_s23_nothing_is_left_of_clients_that_have_gone(urls: dict[str, str], name: str) -> None:
    """No session, no stream, no call; the last test of this file, so that there were clients."""
    with Client("last", url=f"{urls[name]}/mcp", protocol_version=MODERN) as client:

        def quiet() -> bool:
            found = client.call_tool("left").structured_content
            return found == {  # type: ignore[no-any-return]
                "in_flight": 1,  # this very call
                "listens": 0,
                "connections": 0,
                "subscriptions": 0,
                "capabilities": 0,
            }

        assert eventually(quiet, 5.0), client.call_tool("left").text
