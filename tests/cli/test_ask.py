"""`--ask`: what a server asks is answered at the terminal, and only there."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.helpers import cli, environment

SERVER = '''
from raxol_sync import Context, Server

server = Server("shop")


@server.tool
def order(ctx: Context) -> str:
    """Ask how many, and say it."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    found = ctx.elicit("How many?", schema)
    return f"{found.action} {found.content and found.content['n']}"
'''


@pytest.fixture
def server(tmp_path: Path) -> list[str]:
    """The words that name a server that asks."""
    path = tmp_path / "shop.py"
    path.write_text(SERVER)
    return ["--", sys.executable, "-m", "raxol_sync", "serve", str(path)]


@contextlib.contextmanager
def calling(tool: str, server: list[str]) -> Iterator[int]:
    """`raxol-sync call TOOL --ask` at a terminal, which is yielded; it must end well."""
    master, slave = pty.openpty()
    words = [sys.executable, "-m", "raxol_sync", "call", tool, "--ask", *server]
    process = subprocess.Popen(
        words, stdin=slave, stdout=slave, stderr=subprocess.PIPE, env=environment()
    )
    os.close(slave)
    try:
        yield master
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()
        os.close(master)


def read_until(master: int, words: str, shown: str = "") -> str:
    deadline = time.monotonic() + 30
    while words not in shown:
        assert time.monotonic() < deadline, shown
        if select.select([master], [], [], 0.1)[0]:
            try:
                shown += os.read(master, 65536).decode()
            except OSError:  # the other side has gone
                assert words in shown, shown
    return shown


@pytest.mark.parametrize(("typed", "printed"), [("7\ny\n", "accept 7"), ("\x04", "cancel None")])
def test_a_question_is_answered_at_the_terminal(
    server: list[str], typed: str, printed: str
) -> None:
    """Typed there; the result is printed after it."""
    with calling("order", server) as terminal:
        shown = read_until(terminal, "n ")
        assert "The server 'server' asks" in shown
        assert "| How many?" in shown
        os.write(terminal, typed.encode())
        read_until(terminal, printed)


def test_without_a_terminal_it_declines(server: list[str]) -> None:
    """Nobody is there to answer."""
    run = cli("call", "order", "--ask", *server)
    assert (run.stdout, run.stderr, run.returncode) == ("decline None\n", "", 0)


def test_without_the_option_the_error_names_it(server: list[str]) -> None:
    """One line, status 1."""
    run = cli("call", "order", *server)
    assert run.returncode == 1
    assert len(run.stderr.splitlines()) == 1
    assert "with --ask you can answer here" in run.stderr


APPROVED = """
from raxol_sync import Ask, Deny, Server

server = Server(
    "shop",
    authorizer=lambda name, arguments, context: Deny("no") if name == "burn" else Ask("Sell it?"),
    authorizer_source="configured",
)


@server.tool
def sell() -> str:
    return "sold"


@server.tool
def burn() -> str:
    return "burnt"
"""


@pytest.fixture
def careful(tmp_path: Path) -> list[str]:
    """The words that name a server that wants an approval."""
    path = tmp_path / "careful.py"
    path.write_text(APPROVED)
    return ["--", sys.executable, "-m", "raxol_sync", "serve", str(path)]


def test_an_approval_is_given_at_the_terminal(careful: list[str]) -> None:
    """It is asked for once."""
    with calling("sell", careful) as terminal:
        assert "| Sell it?" in read_until(terminal, "Approve (y/n)")
        os.write(terminal, b"y\n")
        assert "Send this?" not in read_until(terminal, "sold")


def test_without_the_option_an_approval_that_is_needed_names_it(careful: list[str]) -> None:
    """And no other denial does: there nothing can be answered."""
    run = cli("call", "sell", *careful)
    assert run.returncode == 1
    assert run.stderr.endswith("; with --ask you can answer here\n")
    for words in (["call", "burn"], ["call", "sell", "--ask"]):
        assert "--ask" not in cli(*words, *careful).stderr


@pytest.mark.parametrize("command", ["tools", "ping", "status"])
def test_what_no_server_may_ask_in_has_no_such_option(command: str, server: list[str]) -> None:
    """A wrong usage, as any other unknown option."""
    run = cli(command, "--ask", *server)
    assert run.returncode == 2
    assert "--ask" in run.stderr
