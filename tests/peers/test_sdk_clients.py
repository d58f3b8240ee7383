"""The official SDK's clients, 1.x and 2.x, against our stdio server, in both eras."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Peers

pytestmark = pytest.mark.peers

PROGRAMS = Path(__file__).parent / "programs"
RUN_TIMEOUT = 120.0  # seconds for one whole run of a client
LEGACY, MODERN = "2025-11-25", "2026-07-28"
# name of the peer, how it connects, the revision that must come out
CLIENTS = [
    ("mcp1", "legacy", LEGACY),
    ("mcp2", "legacy", LEGACY),
    ("mcp2", "auto", MODERN),
    ("mcp2", MODERN, MODERN),
]
Report = dict[str, Any]


@pytest.fixture(scope="module", params=CLIENTS, ids=lambda client: f"{client[0]}-{client[1]}")
def report(request: pytest.FixtureRequest, peers: Peers) -> Report:
    """What one client saw of our server. It returns only when the server has ended too."""
    peer, mode, revision = request.param
    command = [str(getattr(peers, peer)), str(PROGRAMS / "sdk_client.py"), mode]
    command += [sys.executable, str(PROGRAMS / "our_server.py")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT)
    assert run.returncode == 0, run.stderr[-4000:]
    found: Report = json.loads(run.stdout)
    return {**found, "mode": mode, "expected_revision": revision}


def test_s47_the_expected_revision_is_negotiated(report: Report) -> None:
    """Each client ends on the newest revision that its way of connecting allows."""
    assert report["protocol_version"] == report["expected_revision"]


def test_s09_the_server_says_its_name(report: Report) -> None:
    """The name arrives with the handshake or discover; a pinned client asks for neither."""
    assert report["server"] == (None if report["mode"] == MODERN else "ours")


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
    assert report["unknown_resource"] == (-32602 if modern else -32002)
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
