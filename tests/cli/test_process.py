"""The command as a process: pipes, closed streams, signals, and nothing left behind."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from tests.cli.helpers import cli, environment, odd, processes_with

PROGRAM = f"{shlex.quote(sys.executable)} -m raxol_sync"
AT_ONCE = 5.0  # seconds; a busy machine needs a part of them to end the processes
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it is about POSIX processes")


def shell(script: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash; ``CLI`` in it is the command, ``GOOD`` a good server."""
    script = script.replace("CLI", PROGRAM).replace("GOOD", shlex.join(odd("good")))
    return subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        stdin=subprocess.DEVNULL,
        env=environment(),
        check=False,
    )


@pytest.mark.parametrize("command", ["tools", "tools --json", "call big", "call big --json"])
def test_a_reader_that_has_enough_is_no_error(command: str) -> None:
    """`| head -1` prints a line, and neither side complains."""
    run = shell(f"CLI {command} GOOD | head -1; echo ${{PIPESTATUS[0]}}")
    assert run.stderr == ""
    lines = run.stdout.splitlines()
    assert (len(lines), lines[-1]) == (2, "0")


def test_the_demo_in_a_pipe() -> None:
    """The same for the command that prints as it goes."""
    run = shell("CLI demo | head -1; echo ${PIPESTATUS[0]}")
    assert (run.stderr, run.stdout.splitlines()[-1]) == ("", "0")


@pytest.mark.parametrize("words", [["tools", *odd("good")], ["--help"], ["demo"]])
def test_a_reader_that_has_left_already_is_no_error(words: list[str]) -> None:
    """Not even what is left in a buffer is complained about at the interpreter's exit."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        run = subprocess.run(
            [sys.executable, "-m", "raxol_sync", *words],
            stdin=subprocess.DEVNULL,
            stdout=write_end,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=60,
            env=environment(),
            check=False,
        )
    finally:
        os.close(write_end)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["tools", "call add a=1 b=2", "status --json", "--help"])
def test_closed_streams_are_no_error(closed: str, command: str) -> None:
    """What has nowhere to go is dropped; the status is that of the call."""
    server = "" if command == "--help" else "GOOD"
    run = shell(f"CLI {command} {server} {closed}")
    assert (run.returncode, run.stderr) == (0, "")
    if ">&-" not in closed.replace("2>&-", ""):
        assert run.stdout


def test_closed_streams_keep_the_status_of_a_refusal() -> None:
    """Status 1 needs nobody to read why."""
    assert shell("CLI call add a=x GOOD >&- 2>&-").returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_line_and_status_1() -> None:
    """Output that is lost is never a success."""
    run = shell("CLI tools GOOD > /dev/full")
    line = "raxol-sync: cannot write the output: no space left on device\n"
    assert (run.returncode, run.stderr) == (1, line)


def test_an_encoding_without_the_letters_is_no_error() -> None:
    """They are escaped instead."""
    env = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    run = cli("tools", *odd("good"), env=env)
    assert (run.returncode, run.stderr) == (0, "")
    assert r"\u65e5\u672c" in run.stdout


def test_what_lies_beside_its_python_is_found(tmp_path: Path) -> None:
    """An environment need not be activated to run what is installed in it."""
    beside = Path(sys.executable).name
    run = cli("ping", "--", beside, *odd("good")[2:], env={"PATH": str(tmp_path)})
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize(
    ("mode", "number", "status"),
    [
        ("good", signal.SIGINT, 130),
        ("stubborn", signal.SIGINT, 130),
        ("good", signal.SIGTERM, 143),
        ("stubborn", signal.SIGHUP, 129),
    ],
)
def test_a_signal_ends_it_at_once_and_leaves_no_process(
    mode: str, number: signal.Signals, status: int
) -> None:
    """Ctrl-C during a call, also with a server that heeds neither its stdin nor SIGTERM."""
    marker = f"marker-{uuid.uuid4().hex}"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        port = listener.getsockname()[1]
        words = ["call", "slow", "--env", f"TEST_PORT={port}", *odd(mode, marker)]
        process = subprocess.Popen(
            [sys.executable, "-m", "raxol_sync", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=environment(),
            start_new_session=True,
        )
        try:
            peer, _ = listener.accept()  # the tool runs now
            peer.close()
            begun = time.monotonic()
            os.kill(process.pid, number)
            stdout, stderr = process.communicate(timeout=30)
            took = time.monotonic() - begun
        finally:
            process.kill()
            process.wait()
    assert (process.returncode, stdout, stderr) == (status, "", "")
    assert took < AT_ONCE
    assert processes_with(marker) == []
