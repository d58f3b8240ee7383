"""Our client against servers that nobody here wrote: node's and Python's, pinned in `.ci/peers`."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from raxol_sync import (
    CallResult,
    Client,
    ClientGroup,
    EmbeddedResource,
    Image,
    RequestTimeout,
    ResourceLink,
    RPCError,
    Text,
)
from tests.cli.helpers import cli
from tests.conftest import Peers

pytestmark = pytest.mark.peers

CLAIMS = str(Path(__file__).parent / "programs" / "claims.py")
NOTICE_TIMEOUT = 20.0  # seconds for a message to arrive
Logs = queue.SimpleQueue[tuple[str, object]]
# A committer, so that the machine's own configuration plays no part.
GIT = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.com"))
}


def refused(result: CallResult, words: str) -> bool:
    """Whether a call failed with these words in its text."""
    return result.is_error and words in result.text


# ---------------------------------------------------------------- everything


@pytest.fixture
def logs() -> Logs:
    """What the server logged."""
    return queue.SimpleQueue()


@pytest.fixture
def everything(peers: Peers, logs: Logs) -> Iterator[Client]:
    """The server that has one of everything."""
    command = peers.node_server("everything")
    with Client("all", command=command, on_log=lambda level, data, _: logs.put((level, data))) as c:
        yield c


def test_everything_is_spoken_to_in_its_revision(everything: Client) -> None:
    """It does not know `server/discover`, and is legacy."""
    status = everything.status()
    assert (status.state, status.era, status.protocol_version) == ("ready", "legacy", "2025-11-25")
    everything.ping()


def test_everything_lists_all_that_it_has(everything: Client) -> None:
    """Tools, resources, templates, prompts."""
    tools = {tool.name: tool for tool in everything.list_tools()}
    assert {"echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"} <= set(tools)
    assert set(tools["get-sum"].input_schema["properties"]) == {"a", "b"}
    assert tools["get-structured-content"].output_schema is not None
    uris = [resource.uri for resource in everything.list_resources()]
    assert "demo://resource/static/document/features.md" in uris
    templates = {t.uri_template for t in everything.list_resource_templates()}
    assert "demo://resource/dynamic/text/{resourceId}" in templates
    prompts = {prompt.name: prompt for prompt in everything.list_prompts()}
    assert [a["name"] for a in prompts["args-prompt"].arguments] == ["city", "state"]


def test_everything_answers_with_every_kind_of_content(everything: Client) -> None:
    """Text, structure, images, links, embedded resources, annotations."""
    call = everything.call_tool
    assert call("echo", {"message": "grüße \u2028 🎈"}).text == "Echo: grüße \u2028 🎈"
    weather = call("get-structured-content", {"location": "Chicago"})
    assert json.loads(weather.text) == weather.structured_content
    image = call("get-tiny-image").content[1]
    assert isinstance(image, Image)
    assert (image.mime_type, image.data[:4]) == ("image/png", b"\x89PNG")
    links = call("get-resource-links", {"count": 3}).content[1:]
    assert len([link for link in links if isinstance(link, ResourceLink)]) == 3
    reference = {"resourceType": "Blob", "resourceId": 2}
    embedded = call("get-resource-reference", reference).content[1]
    assert isinstance(embedded, EmbeddedResource)
    assert embedded.data
    noted = call("get-annotated-message", {"messageType": "error", "includeImage": False}).content
    assert isinstance(noted[0], Text)
    assert noted[0].annotations == {"priority": 1, "audience": ["user", "assistant"]}


def test_everything_refuses_politely(everything: Client) -> None:
    """Bad arguments and unknown tools are results, unknown resources and prompts are errors."""
    call = everything.call_tool
    assert refused(call("get-sum", {"a": 1, "b": "x"}), "expected number, received string")
    assert refused(call("echo"), "message")
    assert refused(call("nope", {}), "Tool nope not found")
    with pytest.raises(RPCError, match="demo://nope not found") as missing:
        everything.read_resource("demo://nope")
    assert missing.value.code == -32602
    with pytest.raises(RPCError, match="Invalid arguments for prompt"):
        everything.get_prompt("args-prompt")


def test_everything_reads_resources_and_prompts(everything: Client) -> None:
    """Static and by template, text and bytes; messages with resources in them; completion."""
    features = everything.read_resource("demo://resource/static/document/features.md")[0]
    assert "Features" in str(features.text)
    assert everything.read_resource("demo://resource/dynamic/blob/1")[0].data
    message = everything.get_prompt("args-prompt", {"city": "Oslo"})[0]
    assert message.content == Text("What's weather in Oslo?")
    wanted = {"resourceType": "Text", "resourceId": "1"}
    embedded = everything.get_prompt("resource-prompt", wanted)[1].content
    assert isinstance(embedded, EmbeddedResource)
    ref = {"type": "ref/prompt", "name": "completable-prompt"}
    assert everything.complete(ref, {"name": "department", "value": "E"}).values == ["Engineering"]


def test_everything_reports_progress_before_it_answers(everything: Client) -> None:
    """Every step, in order."""
    steps: list[tuple[float, float | None]] = []
    everything.call_tool(
        "trigger-long-running-operation",
        {"duration": 0.4, "steps": 4},
        progress=lambda done, total, _: steps.append((done, total)),
    )
    assert steps == [(n, 4) for n in (1, 2, 3, 4)]


def test_everything_is_cancelled_at_the_deadline(everything: Client) -> None:
    """And goes on answering."""
    slow = {"duration": 60, "steps": 2}
    with pytest.raises(RequestTimeout):
        everything.call_tool("trigger-long-running-operation", slow, timeout=0.2)
    future = everything.submit_tool("trigger-long-running-operation", slow)
    assert future.cancel()
    assert everything.call_tool("get-sum", {"a": 1, "b": 2}).text == "The sum of 1 and 2 is 3."


def test_everything_logs(everything: Client, logs: Logs) -> None:
    """At the level that it was told; its messages reach the handler."""
    everything.set_log_level("debug")
    assert not everything.call_tool("toggle-simulated-logging").is_error
    level, data = logs.get(timeout=NOTICE_TIMEOUT)
    assert level in (
        "debug",
        "info",
        "notice",
        "warning",
        "error",
        "critical",
        "alert",
        "emergency",
    )
    assert data
    everything.call_tool("toggle-simulated-logging")


def test_everything_answers_many_calls_and_large_ones(everything: Client) -> None:
    """Sixty-four at once, each with its own answer; five megabytes there and back."""
    futures = [everything.submit_tool("echo", {"message": str(n)}) for n in range(64)]
    assert [f.result(30).text for f in futures] == [f"Echo: {n}" for n in range(64)]
    assert (
        everything.call_tool("echo", {"message": "x" * 5_000_000}).text
        == "Echo: " + "x" * 5_000_000
    )


def test_everything_sees_few_of_our_variables(
    everything: Client, monkeypatch: pytest.MonkeyPatch, peers: Peers
) -> None:
    """What was not given to it does not leak."""
    monkeypatch.setenv("TEST_SECRET", "hidden")
    with Client("env", command=peers.node_server("everything"), env={"GIVEN": "yes"}) as client:
        seen = json.loads(client.call_tool("get-env").text)
    assert seen["GIVEN"] == "yes"
    assert "TEST_SECRET" not in seen


def test_requests_of_a_server_that_nobody_handles_are_refused_politely(peers: Peers) -> None:
    """A server that believes in sampling and elicitation gets -32601, and its tools say so."""
    program = str(peers.node_server("everything"))
    with Client("claims", command=sys.executable, args=[CLAIMS, program]) as client:
        for name, arguments in (
            ("trigger-sampling-request", {"prompt": "hi"}),
            ("trigger-elicitation-request", {}),
        ):
            assert refused(client.call_tool(name, arguments), "MCP error -32601"), name
        assert not client.call_tool("echo", {"message": "x"}).is_error


# ---------------------------------------------------------------- files, memory


def test_filesystem(peers: Peers, tmp_path: Path) -> None:
    """Files written, read, listed; what is outside, missing or badly asked for is refused."""
    folder = tmp_path.resolve()
    (folder / "big.txt").write_text("0123456789\n" * 500_000, encoding="utf-8")
    (folder / "dot.png").write_bytes(b"\x89PNG")
    with Client("files", command=peers.node_server("filesystem"), args=[folder]) as client:
        call = client.call_tool
        assert len(client.list_tools()) == 14
        text = "first\nzweite Zeile ß\n"
        assert not call("write_file", {"path": str(folder / "a.txt"), "content": text}).is_error
        read = call("read_text_file", {"path": str(folder / "a.txt")})
        assert (read.text, read.structured_content) == (text, {"content": text})
        assert (folder / "a.txt").read_text(encoding="utf-8") == text
        assert len(call("read_text_file", {"path": str(folder / "big.txt")}).text) == 5_500_000
        media = call("read_media_file", {"path": str(folder / "dot.png")}).content[0]
        assert media == Image(b"\x89PNG", "image/png")
        edit = {"oldText": "first", "newText": "last"}
        asked = {"path": str(folder / "a.txt"), "edits": [edit], "dryRun": True}
        assert "+last" in call("edit_file", asked).text
        assert "[FILE] a.txt" in call("list_directory", {"path": str(folder)}).text
        assert refused(call("read_text_file", {"path": "/etc/hostname"}), "Access denied")
        assert refused(call("read_text_file", {"path": str(folder / "no")}), "ENOENT")
        assert refused(call("read_text_file"), "expected string")
        assert (client.list_resources(), client.list_prompts()) == ([], [])


def test_memory(peers: Peers, tmp_path: Path) -> None:
    """A graph that is kept between two runs, because `env` reaches the server."""
    env = {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    ada = {"name": "Ada", "entityType": "person", "observations": ["counts"]}
    with Client("memory", command=peers.node_server("memory"), env=env) as client:
        made = client.call_tool("create_entities", {"entities": [ada]})
        assert made.structured_content == {"entities": [ada]}
        relation = {"from": "Ada", "to": "Ada", "relationType": "is"}
        assert not client.call_tool("create_relations", {"relations": [relation]}).is_error
        assert refused(client.call_tool("create_entities", {"entities": [{}]}), "entities[0].name")
    with Client("memory", command=peers.node_server("memory"), env=env) as client:
        graph = client.call_tool("read_graph").structured_content
        assert graph == {"entities": [ada], "relations": [relation]}
        uri = client.list_resources()[0].uri
        assert json.loads(str(client.read_resource(uri)[0].text)) == graph


# ---------------------------------------------------------------- time, git


def test_time(peers: Peers) -> None:
    """The clock of another place; places that do not exist are refused."""
    command = peers.python_server("time")
    with Client("time", command=command, args=["--local-timezone", "UTC"]) as client:
        call = client.call_tool
        assert [tool.name for tool in client.list_tools()] == ["get_current_time", "convert_time"]
        assert json.loads(call("get_current_time", {"timezone": "UTC"}).text)["timezone"] == "UTC"
        asked = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        assert json.loads(call("convert_time", asked).text)["time_difference"] == "+9.0h"
        assert refused(call("get_current_time", {"timezone": "Mars/Base"}), "Invalid timezone")
        assert refused(call("get_current_time"), "'timezone' is a required property")
        assert refused(call("nope"), "Unknown tool: nope")
        assert (client.list_resources(), client.list_prompts()) == ([], [])
        with pytest.raises(RPCError) as missing:
            client.get_prompt("x")
        assert missing.value.code == -32601


def test_git(peers: Peers, tmp_path: Path) -> None:
    """A commit is made and shown; what is no revision, and other folders, are refused."""
    folder = str(tmp_path.resolve())
    subprocess.run(["git", "init", "--quiet", folder], check=True, timeout=30)
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    command = peers.python_server("git")
    with Client("git", command=command, args=["-r", folder], env=GIT) as client:
        call = client.call_tool
        assert "a.txt" in call("git_status", {"repo_path": folder}).text
        assert not call("git_add", {"repo_path": folder, "files": ["a.txt"]}).is_error
        assert not call("git_commit", {"repo_path": folder, "message": "first"}).is_error
        assert "+one" in call("git_show", {"repo_path": folder, "revision": "HEAD"}).text
        assert "Message: first" in call("git_log", {"repo_path": folder, "max_count": 1}).text
        assert refused(call("git_show", {"repo_path": folder, "revision": "nope"}), "nope")
        assert refused(call("git_status", {"repo_path": "/"}), "outside the allowed repository")


# ---------------------------------------------------------------- all of them


def test_c03_c26_a_group_of_all_five(peers: Peers, tmp_path: Path) -> None:
    """From one configuration, started together, called by their names in the group."""
    folder = str(tmp_path.resolve())
    subprocess.run(["git", "init", "--quiet", folder], check=True, timeout=30)
    servers = {
        "everything": {"command": str(peers.node_server("everything"))},
        "files": {"command": str(peers.node_server("filesystem")), "args": [folder]},
        "memory": {"command": str(peers.node_server("memory"))},
        "time": {"command": str(peers.python_server("time"))},
        "git": {"command": str(peers.python_server("git")), "args": ["-r", folder]},
    }
    with ClientGroup.from_config({"mcpServers": servers}, strict=True) as group:
        assert {status.state for status in group.status().values()} == {"ready"}
        names = {tool.name for tool in group.list_tools()}
        assert len(names) == 13 + 14 + 9 + 2 + 12
        assert {name.split("__")[1] for name in names} == set(servers)
        total = group.call_tool("mcp__everything__get-sum", {"a": 2, "b": 3})
        assert total.text == "The sum of 2 and 3 is 5."
        assert not group.call_tool("mcp__time__get_current_time", {"timezone": "UTC"}).is_error
        assert not group.call_tool("mcp__git__git_status", {"repo_path": folder}).is_error


@pytest.mark.parametrize("name", ["everything", "filesystem", "memory", "time", "git"])
def test_stop_leaves_nothing_of_any_of_them(name: str, peers: Peers, tmp_path: Path) -> None:
    """The process has ended when `stop` returns; the fixture looks for what is left."""
    python = name in ("time", "git")
    command = peers.python_server(name) if python else peers.node_server(name)
    args = [tmp_path] if name == "filesystem" else []
    client = Client(name, command=command, args=args)
    client.start()
    client.await_ready()
    client.stop()
    assert client.status().state == "closed"


def test_the_command_line_calls_them(peers: Peers) -> None:
    """Numbers are numbers because the schema says so; a picture is told by its size."""
    where = ["--", str(peers.node_server("everything"))]
    run = cli("call", "get-sum", "a=1", "b=2", *where)
    assert (run.returncode, run.stdout, run.stderr) == (0, "The sum of 1 and 2 is 3.\n", "")
    assert "[image image/png, 4033 bytes]" in cli("call", "get-tiny-image", *where).stdout
    assert cli("tools", *where).stdout.startswith("echo")
    run = cli("call", "nope", *where)
    assert run.returncode == 1
    assert run.stderr.startswith("raxol-sync: MCP error -32602: Tool nope not found; its tools are")
