"""The ready-made `on_elicit`, at a real pseudo-terminal: questions, answers, endings."""

from __future__ import annotations

import io
import os
import pty
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from raxol_sync.client.client import Client
from raxol_sync.client.terminal import shown, terminal_elicit
from raxol_sync.errors import RequestTimeout
from raxol_sync.values import ElicitResult

WAIT = 10.0  # seconds that nothing here should take
Json = dict[str, Any]


class Terminal:
    """A pseudo-terminal in place of standard input and output."""

    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        self.stdin = os.fdopen(slave, "r")
        self.stdout = os.fdopen(os.dup(slave), "w", encoding="utf-8")
        self.data = b""
        self.more = threading.Condition()
        self.reader = threading.Thread(target=self._drain, daemon=True)
        self.reader.start()

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def _drain(self) -> None:
        """Read all that is shown: a full terminal would block whoever writes."""
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the last one who could write has gone
                return
            if not data:  # as some systems say it
                return
            with self.more:
                self.data += data
                self.more.notify_all()

    def until(self, words: str) -> str:
        """Wait until these words are shown; return what came before them."""
        wanted = words.encode()
        with self.more:
            assert self.more.wait_for(lambda: wanted in self.data, WAIT), self.data
            before, _, self.data = self.data.partition(wanted)
        return before.decode()

    def close(self) -> None:
        self.stdin.close()
        self.stdout.close()
        self.reader.join(WAIT)
        os.close(self.master)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    made = Terminal()
    # Not `sys` itself: pytest puts its own streams back after the fixtures have run.
    streams = SimpleNamespace(stdin=made.stdin, stdout=made.stdout, platform=sys.platform)
    monkeypatch.setattr("raxol_sync.client.terminal.sys", streams)
    yield made
    monkeypatch.undo()
    made.close()


def form(required: list[str] | None = None, **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": required or []}


def answer(terminal: Terminal, schema: Json, *lines: str, message: str = "Why?") -> ElicitResult:
    """Type lines ahead, Ctrl-D as it is, and return the outcome."""
    terminal.type("".join(line if line == "\x04" else line + "\n" for line in lines))
    return terminal_elicit(message, schema)


NAME = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "lines", "content"),
    [
        (form(name=NAME), ["Ada", "y"], {"name": "Ada"}),
        (form(name=NAME), ["", "y"], {}),
        (form(["name"], name=NAME), ["", "Ada", ""], {"name": "Ada"}),
        (form(name={"type": "string", "default": "Bob"}), ["", "y"], {"name": "Bob"}),
        (form(["n"], n={"type": "string", "minLength": 2, "maxLength": 3}),
         ["a", "abcd", "abc", "y"], {"n": "abc"}),
        (form(["n"], n={"type": "integer", "minimum": 1, "maximum": 5}),
         ["x", "1.5", "0", "6", "5", "y"], {"n": 5}),
        (form(["n"], n={"type": "number"}), ["nan", "inf", "1e400", "1.5", "y"], {"n": 1.5}),
        (form(["n"], n={"type": "number"}), ["2", "y"], {"n": 2}),
        (form(["b"], b={"type": "boolean"}), ["perhaps", "Y", "y"], {"b": True}),
        (form(b={"type": "boolean", "default": False}), ["", "y"], {"b": False}),
        (form(["c"], c={"type": "string", "enum": ["r", "g"]}), ["3", "0", "2", "y"], {"c": "g"}),
        (form(["c"], c={"type": "string", "enum": ["r", "g"]}), ["r", "y"], {"c": "r"}),
        (form(["c"], c={"type": "string", "enum": ["r"], "enumNames": ["Red"]}), ["1", "y"],
         {"c": "r"}),
        (form(["c"], c={"type": "string", "oneOf": [{"const": "#f", "title": "Red"}]}), ["1", "y"],
         {"c": "#f"}),
        (form(["c"], c={"type": "array", "minItems": 1, "maxItems": 2,
                        "items": {"type": "string", "enum": ["r", "g", "b"]}}),
         [",", "1,2,3", "1, b", "y"], {"c": ["r", "b"]}),
        (form(["c"], c={"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}}),
         ["1", "y"], {"c": ["x"]}),
        (form(c={"type": "array", "default": ["g"], "items": {"enum": ["r", "g"]}}), ["", "y"],
         {"c": ["g"]}),
        (form(["n"], n=NAME), ["typo", "e", "right", "y"], {"n": "right"}),
        (form(), ["", "y"], {}),
        ({"type": "object"}, ["y"], {}),
        ({"properties": [], "required": 5}, ["y"], {}),
        (form(n={"type": 5, "oneOf": [1], "enum": 7, "minLength": "x"}), ["a", "y"], {}),
    ],
)  # fmt: skip
def test_c14_a_form_is_asked_field_by_field(
    terminal: Terminal, schema: Json, lines: list[str], content: Json
) -> None:
    """Types, choices, required fields, defaults, and a look at it before it is sent."""
    result = answer(terminal, schema, *lines)
    if schema.get("properties") and "oneOf" in schema["properties"].get("n", {}):
        assert result.accepted
    else:
        assert result == ElicitResult("accept", content)


@pytest.mark.parametrize(
    ("lines", "action"),
    [(["Ada", "n"], "decline"), (["\x04"], "cancel"), (["Ada", "\x04"], "cancel")],
)
def test_c14_a_form_can_be_declined_and_cancelled(
    terminal: Terminal, lines: list[str], action: str
) -> None:
    """At the end with `n`; anywhere with Ctrl-D."""
    assert answer(terminal, form(["name"], name=NAME), *lines) == ElicitResult(action)


def test_c14_ctrl_c_cancels(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A KeyboardInterrupt while it waits."""

    def interrupt(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("select.select", interrupt)
    assert terminal_elicit("Why?", form(name=NAME)) == ElicitResult("cancel")


def test_c14_what_the_server_wrote_cannot_act_or_pose(terminal: Terminal) -> None:
    """Control characters are escaped, each line has a bar, and what is too long is cut."""
    evil = "\x1b[2J\r\u202e\x9b\x07\nSend this? [Y]es:" + "x" * 5000
    schema = form()
    schema["properties"]["\x1b[31m"] = {"title": "\x1b]0;t\x07", "description": evil}
    answer(terminal, schema, "a\x07", "y", message=evil)
    os.write(terminal.stdin.fileno(), b"")
    terminal.stdout.write("THE END")
    terminal.stdout.flush()
    output = terminal.until("THE END")
    typed = "a^G"  # the terminal's own echo
    assert typed in output
    assert not {c for c in output if not c.isprintable()} - {"\r", "\n"}
    assert "\n| Send this?" in output
    assert "\nSend this? [Y]es:" not in output
    assert "x" * 4001 not in output


@pytest.mark.parametrize(
    ("line", "action"), [("y", "accept"), ("n", "decline"), ("\x04", "cancel")]
)
def test_c14_a_page_is_shown_whole_and_never_opened(
    terminal: Terminal, line: str, action: str
) -> None:
    """With its host; the person agrees or not."""
    terminal.type(line if line == "\x04" else f"{line}\n")
    url = "https://pay.example/x?y=1#\x1b"
    assert terminal_elicit("Pay", None, url=url) == ElicitResult(action)
    output = terminal.until("Its host is: pay.example\r\n")
    assert "| https://pay.example/x?y=1#\\x1b\r\n" in output


def test_c14_a_deceptive_host_is_pointed_at(terminal: Terminal) -> None:
    """Letters that look like others, and what is no URL."""
    for url in ("https://xn--pple-43d.com/", "https://\u0430pple.com/", "http://[bad"):
        terminal.type("n\n")
        terminal_elicit("Go", None, url=url)
        terminal.until("be careful")


def test_c14_without_a_terminal_it_declines(monkeypatch: pytest.MonkeyPatch) -> None:
    """It never reads what is not meant for it."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert terminal_elicit("Why?", form()) == ElicitResult("decline")
    monkeypatch.setattr(sys, "stdin", None)
    assert terminal_elicit("Why?", form()) == ElicitResult("decline")


def test_c14_a_long_form_is_declined(terminal: Terminal) -> None:
    """More than 64 questions are no form."""
    schema = {"properties": {f"n{number}": NAME for number in range(65)}}
    assert terminal_elicit("Why?", schema) == ElicitResult("decline")


def test_shown_keeps_what_is_printable() -> None:
    """Letters of any script, no others."""
    assert shown("grüße 🎈 日本") == "grüße 🎈 日本"
    assert shown("a\tb\u2028\u200b") == "a\\tb\\u2028\\u200b"


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_c14_c28_with_a_client(terminal: Terminal, serve: Callable[..., Client], era: str) -> None:
    """It says which server asks, both modes are declared, and a call that is given up frees it."""
    with serve(f"era={era}", on_elicit=terminal_elicit) as client:
        wants = [["elicitation/create", {"message": "Name?", "requestedSchema": form(n=NAME)}]]
        with pytest.raises(RequestTimeout):
            client.call_tool("ask_user_form" if era == "modern" else "ask", {"wants": wants},
                             timeout=0.5)  # fmt: skip
        if era == "modern":  # a legacy server would have to cancel its request
            terminal.until("No longer needed.")
        else:
            terminal.type("\x04")
        future = client.submit_tool("ask", {"wants": wants}, timeout=WAIT)
        terminal.until("The server 'test' asks")
        terminal.until("n (Enter: leave it out):")
        terminal.type("Ada\ny\n")
        assert '"action": "accept"' in future.result(WAIT).text


def test_c14_one_conversation_at_a_time(terminal: Terminal) -> None:
    """A second one waits for the first."""
    found: list[ElicitResult] = []

    def run() -> None:
        found.append(terminal_elicit("Why?", form(n=NAME)))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for word in ("one", "two"):
        assert "asks" not in terminal.until("asks")
        terminal.type(f"{word}\ny\n")
        terminal.until("[e]dit:")
    for thread in threads:
        thread.join(WAIT)
    assert [result.content for result in found] == [{"n": "one"}, {"n": "two"}]
