"""A server's end is final, and a person at a terminal is told what it waits for."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raxol_sync import Server
from raxol_sync.errors import RPCError
from tests.server.helpers import WAIT
from tests.server.stdio_client import PROGRAM, Stdio

WAYS: dict[str, Callable[[Server], Any]] = {
    "with": lambda server: server.__enter__(),
    "run": lambda server: server.run(),
    "run_http": lambda server: server.run_http(port=0, require_authorization=False),
    "start_http": lambda server: server.start_http(port=0, require_authorization=False),
    "wsgi_app": lambda server: server.wsgi_app(require_authorization=False),
}


@pytest.mark.parametrize("way", WAYS)
def test_s51_a_closed_server_cannot_be_used_again(way: str) -> None:
    """All ways to serve say so in the same words."""
    with Server("gone") as server:
        pass
    with pytest.raises(RuntimeError) as caught:
        WAYS[way](server)
    assert str(caught.value) == "the server is closed, and stays so: make another one"


def test_s51_a_subscriber_of_a_closed_server_is_refused_as_a_request_is() -> None:
    """With the protocol's error."""
    with Server("gone") as server:
        pass
    with pytest.raises(RPCError) as caught:
        server.subscribe(print)
    assert caught.value.code == -32603


def said_at_a_terminal(*command: str) -> str:
    """What a program writes to stderr while its stdin is a terminal; then Ctrl-D ends it."""
    controller, terminal = os.openpty()
    process = subprocess.Popen(
        command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=PROGRAM.parent
    )
    os.close(terminal)
    assert process.stderr is not None
    os.set_blocking(process.stderr.fileno(), False)
    said, until = b"", time.monotonic() + WAIT
    while b"\n" not in said and time.monotonic() < until:
        if select.select([process.stderr], [], [], 0.1)[0]:
            said += os.read(process.stderr.fileno(), 4096)
    os.write(controller, b"\x04")
    process.communicate(timeout=WAIT)
    os.close(controller)
    assert process.returncode == 0
    return said.decode()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs terminals")
def test_a_person_who_runs_a_server_is_told_how_to_try_it() -> None:
    """One line on stderr, with the command that was typed."""
    said = said_at_a_terminal(sys.executable, PROGRAM.name)
    assert said.count("\n") == 1
    assert said.startswith("stdio-tests waits for a client on stdin")
    assert f"raxol-sync tools -- {Path(sys.executable)} {PROGRAM.name} (Ctrl-C" in said


def test_a_client_is_told_nothing_of_the_kind() -> None:
    """Stderr stays the program's own."""
    with Stdio() as server:
        assert server.end() == 0
    assert b"waits for a client" not in server.stderr
