"""What can go wrong with each command: its exact line on stderr, its status, nothing left running.

Real processes throughout: `raxol-sync`, and the server that it starts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.helpers import cli, odd, processes_with

COMMANDS = {
    "tools": ["tools"],
    "call": ["call", "add", "a=1", "b=2"],
    "read": ["read", "test://text"],
    "prompt": ["prompt", "greet"],
    "ping": ["ping"],
    "status": ["status"],
}
NOTES = Path(__file__).parents[1] / "server" / "web" / "localhost.pem"  # any file
SHOWN = r"\x1b[31mred\x1b]0;title\x07 \x9b2J\u202eturned\x0d over \u2028line"
EXITED = "the server's process exited with status 1"
TOOLS = "; its tools are add, echo, escapes, wide"

# What is wrong with the server -> the words that name it, the line, more of the environment.
FAULTS: dict[str, tuple[list[str], str, dict[str, str]]] = {
    "a missing binary": (
        ["--", "no-such-program", "x"],
        "could not connect: the command 'no-such-program' was not found; give its full path, "
        "or install it",
        {},
    ),
    "a file that may not be executed": (
        ["--", str(NOTES)],
        f"could not connect: the command '{NOTES}' may not be executed; check its permissions "
        "(chmod +x)",
        {},
    ),
    "a folder": (
        ["--", str(NOTES.parent)],
        f"could not connect: the command '{NOTES.parent}' is a folder; give the program in it",
        {},
    ),
    "words in one": (
        ["--", "no-such-python hidden.py"],
        "could not connect: the command 'no-such-python ...' was not found: write its words "
        "without quotes around all of them",
        {},
    ),
    "a script that never serves": (
        ["--", sys.executable, "-c", "pass"],
        "the server's process exited with status 0 before it answered; does it call server.run()?",
        {},
    ),
    "a script that never serves and prints": (
        ["--", sys.executable, "-c", "import sys; print('hi'); print('ho', file=sys.stderr)"],
        "the server's process exited with status 0 before it answered; does it call server.run()?; "
        "it wrote to stdout what is no message: hi; its stderr says: ho",
        {},
    ),
    "exits at once": (odd("exit"), f"{EXITED}: cannot start: the disk is full", {}),
    "never answers": (
        ["--timeout", "0.5", *odd("silent")],
        "could not connect: no answer to the handshake within 0.5 s (--timeout)",
        {},
    ),
    "answers rubbish": (
        ["--timeout", "0.5", *odd("rubbish")],
        "could not connect: no answer to the handshake within 0.5 s (--timeout); it wrote to "
        r"stdout what is no message: Listening on \x1b[1mport 80\x1b[0m",
        {},
    ),
    "needs a variable": (
        odd("needs"),
        f"{EXITED}: KeyError: 'TEST_API_KEY' (--verbose shows all of its stderr)",
        {},
    ),
    "needs a variable that is set here": (
        odd("needs"),
        f"{EXITED}: KeyError: 'TEST_API_KEY'; TEST_API_KEY is set here but not passed on: "
        "add --env TEST_API_KEY",
        {"TEST_API_KEY": "hidden"},
    ),
    "a URL where nobody listens": (
        ["http://127.0.0.1:9/mcp", "--header", "authorization: Bearer hidden"],
        "could not connect: 127.0.0.1:9: connection refused",
        {},
    ),
    "a URL after the dashes": (
        ["--", "http://127.0.0.1:9/mcp"],
        "could not connect: 127.0.0.1:9: connection refused",
        {},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_that_cannot_be_used_is_one_line_and_status_1(fault: str) -> None:
    """The same line for every command; nothing on stdout; no process is left."""
    words, line, env = FAULTS[fault]
    marker = f"marker-{uuid.uuid4().hex}"
    where = [*words, marker] if "--" in words and "://" not in words[-1] else words
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda own: cli(*own, *where, env=env), COMMANDS.values()))
    for command, run in zip(COMMANDS, runs, strict=True):
        found = (command, run.returncode, run.stdout, run.stderr)
        assert found == (command, 1, "", f"raxol-sync: {line}\n")
    assert processes_with(marker) == []


# What is asked of a good server -> the status, the line.
REFUSED: dict[str, tuple[list[str], str]] = {
    "a tool that does not exist": (
        ["call", "nope", "a=1"],
        f"Unknown tool: nope (-32602){TOOLS}",
    ),
    "arguments that do not fit": (["call", "add", "a=1", "b=x"], "a and b must be integers"),
    "arguments that are missing": (["call", "add"], "a and b must be integers"),
    "a resource that does not exist": (
        ["read", "test://nope"],
        f"there is no such resource {SHOWN} (-32602)".replace(r"\x0d over \u2028", " over "),
    ),
    "a prompt that does not exist": (
        ["prompt", "nope"],
        f"there is no such prompt {SHOWN} (-32602)".replace(r"\x0d over \u2028", " over "),
    ),
    "escape sequences in a tool's error": (["call", "fails"], f"no: {SHOWN}{TOOLS}"),
    "two lines in a tool's error": (["call", "two_lines"], f"one\ntwo{TOOLS}"),
    "a result of a wrong shape": (
        ["call", "wrong_shape"],
        "the server's answer to tools/call is not valid: it has no content list",
    ),
    "a server that dies during the call": (
        ["call", "die"],
        "the server's process exited with status 7: RuntimeError: it broke "
        "(--verbose shows all of its stderr)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_server_refuses_is_told_with_status_1(case: str) -> None:
    """The tool's or the server's own words, on stderr, harmless to a terminal."""
    words, line = REFUSED[case]
    run = cli(*words, *odd("good"))
    assert (run.returncode, run.stdout, run.stderr) == (1, "", f"raxol-sync: {line}\n")


def test_a_call_that_is_never_answered_ends_with_its_time(tmp_path: Path) -> None:
    """`--timeout` is the limit of the whole command, and the line names it as it was given."""
    marker = f"marker-{uuid.uuid4().hex}"
    program = tmp_path / "deaf.py"
    source = Path(odd("good")[2]).read_text(encoding="utf-8")
    program.write_text(source.replace('report("slow")', "pass"), encoding="utf-8")
    where = ["--", sys.executable, str(program), "good", marker]
    run = cli("call", "slow", "--timeout", "1.5", *where)
    line = "raxol-sync: tools/call was not answered within 1.5 s (--timeout)\n"
    assert (run.returncode, run.stdout, run.stderr) == (1, "", line)
    assert processes_with(marker) == []


def test_a_failed_call_as_json_is_the_result_and_status_1() -> None:
    """A program that reads the JSON sees what the tool said."""
    run = cli("call", "fails", "--json", *odd("good"))
    assert (run.returncode, run.stderr) == (1, "")
    assert json.loads(run.stdout)["isError"] is True
    assert "\x1b" not in run.stdout


ASK = "; see raxol-sync --help"
KNOWN = "; there are: demo, serve, tools, call, read, prompt, ping, status"
USAGE: dict[str, tuple[list[str], str]] = {
    "no command": ([], f"no command{KNOWN}{ASK}"),
    "an unknown command": (["tool"], f"there is no command 'tool'{KNOWN}{ASK}"),
    "demo with words": (["demo", "x"], "demo takes no words of its own"),
    "no server": (
        ["tools"],
        "which server? Add its command after --, as in: raxol-sync tools ... -- python server.py; "
        "or its URL, as in: http://127.0.0.1:8000/mcp; or --config FILE",
    ),
    "nothing after the dashes": (
        ["ping", "--"],
        "after -- comes the server's command, as in: -- python server.py",
    ),
    "dashes forgotten": (
        ["tools", "python", "server.py"],
        "unexpected 'python'; the server's command comes after --, as in: "
        "raxol-sync tools -- python server.py",
    ),
    "a script without its python": (
        ["tools", __file__],
        f"unexpected '{__file__}'; the server's command comes after --, as in: "
        f"raxol-sync tools -- python {__file__}",
    ),
    "a script as the command": (
        ["tools", "--", __file__, "hidden"],
        f"'{__file__}' is a Python file: start it with python, as in: "
        f"raxol-sync tools -- python {__file__} ...",
    ),
    "an argument that is broken JSON": (
        ["call", "add", 'a=[{"hidden": 1}', "b=1", *odd("good")],
        "a begins as JSON does and is none: Expecting ',' delimiter (character 15)",
    ),
    "a URL without its scheme": (
        ["tools", "127.0.0.1:8123/mcp"],
        "'127.0.0.1:8123/mcp' looks like a URL without its scheme: write http:// in front, "
        "or https:// for another machine",
    ),
    "a URL without its scheme after pairs": (
        ["call", "add", "a=1", "mcp.example.com/mcp"],
        "'mcp.example.com/mcp' looks like a URL without its scheme: write http:// in front, "
        "or https:// for another machine",
    ),
    "plain http to another machine": (
        ["tools", "http://far.example/mcp"],
        "far.example may not be dialled: plain http goes to this machine only: use https or "
        "--allow-http",
    ),
    "plain http for a command": (
        ["ping", "--allow-http", *odd("good")],
        "--allow-http is for a URL, and the server is a command",
    ),
    "a word that is no pair": (
        ["call", "add", "a", *odd("good")],
        "'a' is not NAME=VALUE (quote a value that has spaces; "
        "the server's command comes after --)",
    ),
    "a pair twice": (["call", "add", "a=1", "a=2", *odd("good")], "a is given twice"),
    "no tool": (
        ["call", *odd("good")],
        "which TOOL? See raxol-sync call --help",
    ),
    "an option that does not exist": (
        ["ping", "--loud", *odd("good")],
        "unrecognized arguments: --loud; see raxol-sync ping --help",
    ),
    "a time that is none": (
        ["ping", "--timeout", "soon", *odd("good")],
        "argument --timeout: it must be a number of seconds above 0; see raxol-sync ping --help",
    ),
    "a header for a command": (
        ["ping", "--header", "a: hidden", *odd("good")],
        "--header is for a URL: a command has no headers; it may want --env",
    ),
    "a header without a colon": (
        ["ping", "--header", "hidden", "http://localhost"],
        "--header wants NAME:VALUE, as in: --header 'authorization: Bearer ...'",
    ),
    "a variable without a name": (
        ["ping", "--env", "=hidden", *odd("good")],
        "--env wants NAME=VALUE, or NAME to pass on one of yours",
    ),
    "a variable that is not set": (
        ["ping", "--env", "NO_SUCH_VARIABLE", *odd("good")],
        "--env NO_SUCH_VARIABLE: there is no such variable to pass on",
    ),
    "two servers": (
        ["ping", "http://localhost", *odd("good")],
        "name one server: by a command after --, by a URL, or by --config",
    ),
    "a server without a file": (
        ["ping", "--server", "x", *odd("good")],
        "--server names a server of a --config FILE; there is none",
    ),
    "a file that is not there": (
        ["ping", "--config", "no-such.json"],
        "no-such.json: no such file or directory",
    ),
}


@pytest.mark.parametrize("case", USAGE)
def test_a_wrong_usage_is_one_line_and_status_2(case: str) -> None:
    """It says what was wrong and how to mend it, and never a value that may be a secret."""
    words, line = USAGE[case]
    run = cli(*words)
    assert (run.returncode, run.stdout, run.stderr) == (2, "", f"raxol-sync: {line}\n")


CONFIG = {
    "good": {"command": sys.executable, "args": [odd("good")[2], "${TEST_MODE:-good}"]},
    "needy": {"command": sys.executable, "env": {"KEY": "${TEST_SECRET_KEY}"}},
    "remote": {"type": "http", "url": "http://127.0.0.1:9/mcp"},
    "off": {"command": "x", "disabled": True},
    "odd": {"args": []},
}
CONFIG_CASES: dict[str, tuple[list[str], int, str]] = {
    "several servers and none named": (
        [],
        2,
        "mcp.json has several servers: add --server and one of good, needy, remote, odd",
    ),
    "a name that is not there": (
        ["--server", "off"],
        2,
        "mcp.json has no server off; it has good, needy, remote, odd",
    ),
    "a variable that is not set": (
        ["--server", "needy"],
        2,
        "server 'needy': env: KEY needs the environment variable TEST_SECRET_KEY, which is not "
        "set; set it, or write ${TEST_SECRET_KEY:-default}",
    ),
    "a URL": (
        ["--server", "remote"],
        1,
        "could not connect: 127.0.0.1:9: connection refused",
    ),
    "neither command nor URL": (
        ["--server", "odd"],
        2,
        "server 'odd' needs command or url, and has neither",
    ),
    "a header for a command": (
        ["--server", "good", "--header", "a: hidden"],
        2,
        "--header is for a URL, and server good is a command",
    ),
}


@pytest.mark.parametrize("case", CONFIG_CASES)
def test_a_configuration_that_does_not_fit(case: str, tmp_path: Path) -> None:
    """The line names the file, the server and the variable, and no value."""
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": CONFIG}), encoding="utf-8")
    words, status, line = CONFIG_CASES[case]
    run = cli("ping", "--config", "mcp.json", *words, cwd=tmp_path)
    assert (run.returncode, run.stdout, run.stderr) == (status, "", f"raxol-sync: {line}\n")


def test_a_server_of_a_configuration_is_called(tmp_path: Path) -> None:
    """Its only server needs no name; variables are filled in; `--env` is laid over its own."""
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"good": CONFIG["good"]}}), encoding="utf-8")
    run = cli("call", "add", "a=1", "b=2", "--config", str(config), "--env", "X=1")
    assert (run.returncode, run.stdout, run.stderr) == (0, "3\n", "")


def test_a_configuration_that_is_no_json_is_told_with_its_place(tmp_path: Path) -> None:
    """Line and column, not the text."""
    (tmp_path / "mcp.json").write_text('{"mcpServers": {\n "hidden" }', encoding="utf-8")
    run = cli("ping", "--config", "mcp.json", cwd=tmp_path)
    line = "mcp.json is no JSON: Expecting ':' delimiter at line 2, column 11"
    assert (run.returncode, run.stderr) == (2, f"raxol-sync: {line}\n")


def test_a_python_without_the_library_is_told_with_one_that_has_it(tmp_path: Path) -> None:
    """The usual reason is an environment that is not activated."""
    program = tmp_path / "calculator.py"
    program.write_text("from raxol_sync import Server\n", encoding="utf-8")
    run = cli("tools", "--", sys.executable, "-I", "-S", str(program))
    assert run.returncode == 1
    assert run.stderr == (
        f"raxol-sync: {EXITED}: ModuleNotFoundError: No module named 'raxol_sync'; "
        f"use a python that has it, such as {sys.executable}\n"
    )


def test_nothing_ever_prints_a_traceback() -> None:
    """Not even where Python itself is told to be talkative."""
    run = subprocess.run(
        [
            sys.executable,
            "-X",
            "dev",
            "-W",
            "error",
            "-m",
            "raxol_sync",
            "call",
            "nope",
            *odd("good"),
        ],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert (run.returncode, run.stderr.count("\n")) == (1, 1), run.stderr
