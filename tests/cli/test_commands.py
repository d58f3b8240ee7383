"""Each command against a good server: what it prints, as text and as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.cli.helpers import cli, odd

GOOD = odd("good")
ESCAPED = r"\x1b[31mred\x1b]0;title\x07 \x9b2J\u202eturned\x0d over \u2028line"


def text(*words: str) -> str:
    """What a command prints, which must succeed and say nothing on stderr."""
    run = cli(*words, *GOOD)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def document(*words: str) -> Any:
    """The one JSON document that a command prints."""
    printed = text(*words, "--json")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028]", printed)
    return json.loads(printed)


def test_tools_is_a_table_of_all_pages() -> None:
    """Name, arguments as they are typed, description; nothing in it moves the cursor."""
    lines = text("tools").splitlines()
    assert lines[0] == "add      a=integer b=integer  Add two numbers."
    assert lines[1] == "echo     [text=string]        Say it again."
    assert lines[2].endswith(r"\u202eturned over line")
    assert lines[3] == "wide                          日本語の説明 Ünï 👩‍👩‍👧 end"


def test_tools_as_json_are_the_definitions_as_the_server_sent_them() -> None:
    """One array of all pages; members that nobody knows are kept."""
    found = document("tools")
    assert [tool["name"] for tool in found] == ["add", "echo", "escapes", "wide"]
    assert found[1]["x-own"] == [1]
    assert "\x1b[31m" in found[2]["description"]


def test_call_prints_text() -> None:
    """The text of the result, and as JSON the whole result."""
    assert text("call", "add", "a=1", "b=2") == "3\n"
    assert document("call", "add", "b=2", "a=1") == {"content": [{"type": "text", "text": "3"}]}


def test_call_sends_json_where_the_schema_takes_it() -> None:
    """A string stays as typed, quotes and all; what the schema does not know is JSON."""
    sent = json.loads(text("call", "echo", "text=1", "other=1", "list=[1, null]", "word=a=b"))
    assert sent == {"text": "1", "other": 1, "list": [1, None], "word": "a=b"}
    assert json.loads(text("call", "echo", 'text="x"')) == {"text": '"x"'}


def test_call_shows_escape_sequences_harmless() -> None:
    """Nothing that a terminal would act on is printed."""
    assert text("call", "escapes") == ESCAPED + "\n"


def test_call_summarises_what_is_no_text() -> None:
    """Type and size; links by name and URI; text inside a resource is shown."""
    assert text("call", "picture").splitlines() == [
        "[image image/png, 1234 bytes]",
        "[audio audio/wav, 10 bytes]",
        "[resource a://b of no type, 5 bytes]",
        "[resource a://t]",
        "embedded",
        "[resource link a link: a://link]",
        "[hologram: of a type that is not known here]",
    ]


def test_call_without_content() -> None:
    """Structured content takes its place; else that is said."""
    assert json.loads(text("call", "structured")) == {"n": [1, "\x1b\x7f\x9b"]}
    assert text("call", "nothing") == "(no content)\n"


@pytest.mark.parametrize("form", ["text", "json"])
def test_call_prints_ten_megabytes(form: str) -> None:
    """Whole."""
    words = ["call", "big"]
    printed = text(*words) if form == "text" else document(*words)["content"][0]["text"]
    assert len(printed) == 10 * 2**20


def test_read() -> None:
    """Text is shown harmless, bytes by type and size; JSON has the base64."""
    assert text("read", "test://text") == f"text {ESCAPED}\n"
    assert text("read", "test://blob") == "[binary application/zip, 3 bytes]\n"
    assert document("read", "test://blob")["contents"][0]["blob"] == "iYmJ"


def test_prompt() -> None:
    """Each message with who speaks; arguments are strings."""
    assert text("prompt", "greet", "name=1") == "user: greet {'name': '1'}\n"
    assert document("prompt", "greet")["messages"][0]["role"] == "user"


def test_ping() -> None:
    """How long it took; as JSON the empty result."""
    assert re.fullmatch(r"answered in \d+ ms\n", text("ping"))
    assert document("ping") == {}


def test_status() -> None:
    """Revision and offers."""
    lines = text("status").splitlines()
    assert lines[:3] == [
        "state               ready",
        "revision            2025-11-25 (legacy)",
        "tools               add, echo, escapes, wide",
    ]
    found = document("status")
    assert (found["state"], found["era"], found["offers"]["prompts"]) == ("ready", "legacy", [])


def test_verbose_logs_to_stderr() -> None:
    """What the server writes to its own stderr can be seen."""
    run = cli("ping", "--verbose", "--env", "TEST_API_KEY=12345", *odd("needs"))
    assert run.returncode == 1
    assert "the key is 5 letters long" in run.stderr


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["tools", "--help"], ["serve", "--help"]])
def test_help_is_printed_on_stdout(words: list[str]) -> None:
    """Asked for, it is no error."""
    run = cli(*words)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.lower().startswith("usage: raxol-sync")


def test_version() -> None:
    """One line."""
    run = cli("--version")
    assert re.fullmatch(r"raxol-sync \d+\.\d+\.\d+\S*\n", run.stdout)
