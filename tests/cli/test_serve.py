"""`raxol-sync serve`: which server it finds, how it ends, and what it says when it finds none."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from raxol_sync import Client
from tests.cli.helpers import cli, environment

SERVER = """
    from raxol_sync import Server
    print("loud while it is imported")
    server = Server("first")
    @server.tool
    def here() -> str:
        "Where."
        return "here"
"""
SERVE = ["-m", "raxol_sync", "serve"]


def write(folder: Path, name: str, source: str) -> None:
    """Write a module."""
    (folder / name).write_text(textwrap.dedent(source), encoding="utf-8")


def call(folder: Path, spec: str) -> str:
    """Serve a spec in a folder and call its tool."""
    with Client(
        "served", command=sys.executable, args=[*SERVE, spec], cwd=folder, inherit_env=True
    ) as client:
        return client.call_tool("here").text


@pytest.mark.parametrize(
    "spec", ["mine", "mine:server", "mine.py", "mine.py:server", "./mine.py", "mine:alias"]
)
def test_serve_finds_a_module_or_a_file_with_or_without_a_name(spec: str, tmp_path: Path) -> None:
    """The one server needs no name, two names for it are one; prints harm nothing."""
    write(tmp_path, "mine.py", SERVER + "\n    alias = server\n")
    assert call(tmp_path, spec) == "here"


def test_serve_imports_what_lies_beside_the_file(tmp_path: Path) -> None:
    """As `python folder/file.py` would; and a file may have a standard module's name."""
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub", "calendar.py", "from beside import server\n")
    write(tmp_path / "sub", "beside.py", SERVER)
    assert call(tmp_path, "sub/calendar.py") == "here"


def test_serve_finds_a_module_of_a_package(tmp_path: Path) -> None:
    """With dots, from this folder."""
    (tmp_path / "package").mkdir()
    write(tmp_path / "package", "__init__.py", "")
    write(tmp_path / "package", "inner.py", SERVER)
    assert call(tmp_path, "package.inner:server") == "here"


WHERE = "; give a module or a file, as in: raxol-sync serve server.py:server"
CASES: dict[str, tuple[list[str], int, str]] = {
    "no word": ([], 2, f"serve takes one word: {WHERE[2:]}"),
    "two words": (["a", "b"], 2, f"serve takes one word: {WHERE[2:]}"),
    "an option": (["--http"], 2, f"serve takes one word: {WHERE[2:]}"),
    "an unknown option": (
        ["mine.py", "--port", "1"],
        2,
        "serve has no option --port: the port goes with --http PORT; see raxol-sync serve --help",
    ),
    "another unknown option": (
        ["mine.py", "--loud=1"],
        2,
        "serve has no option --loud; see raxol-sync serve --help",
    ),
    "no file": (["no.py"], 2, f"there is no file no.py{WHERE}"),
    "no module": (["no_such"], 2, f"there is no module no_such here{WHERE}"),
    "no module in a package": (["os.no"], 2, f"there is no module os.no here{WHERE}"),
    "no name after the colon": (
        ["mine:"],
        2,
        f"no name after the colon: {WHERE[2:]}",
    ),
    "no Python file": (["./notes.txt"], 2, f"notes.txt is no Python file{WHERE}"),
    "neither": (["a b"], 2, f"'a b' is neither a module nor a file{WHERE}"),
    "no such server": (["mine:other"], 2, "mine has no other; its servers: server"),
    "no server but a function": (
        ["mine.py:here"],
        2,
        "mine.py has a here, which is a function and no Server; its servers: server",
    ),
    "nothing there": (
        ["empty"],
        2,
        "empty has no Server at its top level, as in: server = Server('name')",
    ),
    "two servers": (
        ["two"],
        2,
        "two has several servers (one, other): say which, as in two:one",
    ),
    "an exception": (
        ["broken.py"],
        1,
        "broken.py cannot be imported: broken.py, line 2: ZeroDivisionError: division by zero",
    ),
    "no syntax": (
        ["wrong.py"],
        1,
        "wrong.py cannot be imported: line 1: SyntaxError: invalid syntax",
    ),
    "a module that it needs": (
        ["needy"],
        1,
        "needy cannot be imported: needy.py, line 1: ModuleNotFoundError: "
        "No module named 'no_such_thing'",
    ),
    "an exit": (
        ["leaves"],
        1,
        "leaves cannot be imported: it ended the program; put what runs under: "
        "if __name__ == '__main__'",
    ),
    "a bad tool": (
        ["bad_tool"],
        1,
        "bad_tool cannot be imported: bad_tool.py, line 4: InvalidTool: ",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_serve_says_in_one_line_what_is_wrong(case: str, tmp_path: Path) -> None:
    """A wrong spec is a wrong usage; a module that fails is a failure, told with its place."""
    write(tmp_path, "mine.py", SERVER.replace('print("loud while it is imported")', ""))
    write(tmp_path, "empty.py", "x = 1")
    write(tmp_path, "notes.txt", "x")
    write(
        tmp_path, "two.py", "from raxol_sync import Server\none, other = Server('a'), Server('b')"
    )
    write(tmp_path, "broken.py", "x = 0\ny = 1 / x")
    write(tmp_path, "wrong.py", "def :")
    write(tmp_path, "needy.py", "import no_such_thing")
    write(tmp_path, "leaves.py", "raise SystemExit(0)")
    write(tmp_path, "bad_tool.py", """\
        from raxol_sync import Server
        server = Server("x")
        def tool(*numbers: int) -> None: ...
        server.tool(tool)
    """)  # fmt: skip
    words, status, line = CASES[case]
    run = cli("serve", *words, cwd=tmp_path)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (status, "", 1), run.stderr
    if line.endswith(": "):
        assert run.stderr.startswith(f"raxol-sync: {line}")
    else:
        assert run.stderr == f"raxol-sync: {line}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_ends_cleanly_on_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    """Status 0 and nothing on stderr but what the module printed."""
    write(tmp_path, "mine.py", SERVER)
    process = subprocess.Popen(
        [sys.executable, *SERVE, "mine"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(),
    )
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018
    try:
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert b'"result"' in process.stdout.readline()  # it serves now
        os.kill(process.pid, number)
        _, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, stderr) == (0, b"loud while it is imported\n")


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
@pytest.mark.parametrize("closed", ["<&-", "</dev/null", "</dev/null >&-", "<&- >&- 2>&-"])
def test_serve_without_streams_ends_at_once(closed: str, tmp_path: Path) -> None:
    """Nobody to serve is no error."""
    write(tmp_path, "mine.py", SERVER.replace('print("loud while it is imported")', ""))
    run = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m raxol_sync serve mine {closed}"],
        capture_output=True,
        timeout=30,
        cwd=tmp_path,
        env=environment(),
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


SENSITIVE = """
    from raxol_sync import Server
    server = Server("edged")
    @server.tool(annotations={"destructiveHint": True})
    def here() -> str:
        "Where."
        return "cut"
"""


def test_s32_serve_refuses_sensitive_tools_without_a_policy(tmp_path: Path) -> None:
    """One line that names them and says what to do; nothing is served."""
    write(tmp_path, "edged.py", SENSITIVE)
    done = subprocess.run(
        [sys.executable, *SERVE, "edged.py"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "sensitive tools need an authorizer: here" in done.stderr
    assert "--allow-all" in done.stderr
    assert done.stderr.count("\n") == 1


def test_s32_serve_allow_all_lets_every_call_through(tmp_path: Path) -> None:
    """Whoever starts it so has decided."""
    write(tmp_path, "edged.py", SENSITIVE)
    with Client(
        "served",
        command=sys.executable,
        args=[*SERVE, "edged.py", "--allow-all"],
        cwd=tmp_path,
        inherit_env=True,
    ) as client:
        assert client.call_tool("here").text == "cut"


# ---------------------------------------------------------------- over HTTP


@contextlib.contextmanager
def served_http(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`serve --http 0` in a folder, and its URL, which is the end of a line on stderr."""
    process = subprocess.Popen(
        [sys.executable, *SERVE, "mine", "--http", "0", *words],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        while "http://" not in (line := process.stderr.readline()):
            assert line, "it ended"
        assert "first is served at http://" in line
        yield process, line.split("served at ")[1].split()[0]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("words", [[], ["--host", "127.0.0.2"], ["--host=localhost"]])
def test_serve_over_http(words: list[str], tmp_path: Path) -> None:
    """The URL can be clicked; the command line's own client reaches it; requests are logged."""
    write(tmp_path, "mine.py", SERVER)
    with served_http(tmp_path, "--allow-all", *words) as (process, url):
        assert url.endswith("/mcp")
        run = cli("call", "here", url)
        assert (run.returncode, run.stdout) == (0, "here\n")
        with Client("legacy", url=url, protocol_version="2025-11-25") as client:
            assert client.call_tool("here").text == "here"
        process.terminate()
        out, errors = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "")
    assert '"POST /mcp HTTP/1.1" 200 ' in errors
    assert "Traceback" not in errors


def test_serve_over_http_by_another_name(tmp_path: Path) -> None:
    """That was allowed; no other."""
    write(tmp_path, "mine.py", SERVER.replace('print("loud while it is imported")', ""))
    with served_http(tmp_path, "--allow-all", "--allowed-host", "mcp.example.com") as (_, url):
        port = int(url.split(":")[2].split("/")[0])
        for name, status in (("mcp.example.com", 405), ("localhost", 405), ("example.com", 421)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("PUT", "/mcp", headers={"Host": name})
            assert connection.getresponse().status == status
            connection.close()


def test_serve_over_http_with_a_taken_port(tmp_path: Path) -> None:
    """One line with the address and the reason."""
    write(tmp_path, "mine.py", SERVER.replace('print("loud while it is imported")', ""))
    with served_http(tmp_path, "--allow-all") as (_, url):
        port = url.split(":")[2].split("/")[0]
        run = cli("serve", "mine", "--http", port, "--allow-all", cwd=tmp_path)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (1, "", 1)
    assert run.stderr.startswith(f"raxol-sync: cannot listen at 127.0.0.1, port {port}: ")


WRONG_HTTP: dict[str, tuple[list[str], int, str]] = {
    "no port": (["mine", "--http"], 2, "--http takes a port, as in: --http 8000"),
    "a port that is none": (["mine", "--http=x"], 2, "--http takes a port, as in: --http 8000"),
    "a port too high": (["mine", "--http", "65536"], 2, "--http takes a port, as in: --http 8000"),
    "a host alone": (["mine", "--host", "h"], 2, "--host is for --http PORT, which is missing"),
    "a name alone": (
        ["mine", "--allowed-host", "h"],
        2,
        "--allowed-host is for --http PORT, which is missing",
    ),
    "a name that is none": (
        ["mine", "--http", "0", "--allow-all", "--allowed-host", "a b"],
        2,
        "--allowed-host: 'a b' is no host name, such as 'example.com:8443'",
    ),
    "no decision": (
        ["mine", "--http", "0"],
        1,
        "nobody has said who may use this server over a network: give it an authorizer and a "
        "read_authorizer, or add --allow-all for everybody who can reach it",
    ),
}


@pytest.mark.parametrize("case", WRONG_HTTP)
def test_serve_over_http_says_in_one_line_what_is_wrong(case: str, tmp_path: Path) -> None:
    """As over stdio; and nobody is served by mistake (S29)."""
    write(tmp_path, "mine.py", SERVER.replace('print("loud while it is imported")', ""))
    words, status, line = WRONG_HTTP[case]
    run = cli("serve", *words, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (status, "")
    assert run.stderr == f"raxol-sync: {line}\n"
