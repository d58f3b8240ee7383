"""Clients of small misbehaving servers, and what must not be left behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from raxol_sync.client.client import Client

PROGRAM = Path(__file__).parent / "programs" / "server.py"


@pytest.fixture
def serve() -> Iterator[Callable[..., Client]]:
    """Make clients of the scripted server: `serve("era=legacy", ..., pool_size=2)`.

    They are not started; they are stopped after the test.
    """
    made: list[Client] = []

    def make(*options: str, **settings: Any) -> Client:
        command = [*settings.pop("command", [sys.executable, "-I", "-S"]), str(PROGRAM), *options]
        defaults = {"call_timeout": 15.0, "init_timeout": 15.0, "fail_fast": True}
        settings = {**defaults, **settings}
        client = Client("test", command=command[0], args=command[1:], **settings)
        made.append(client)
        return client

    yield make
    for client in made:
        client.stop()


@pytest.fixture(autouse=True)
def no_descriptor_left() -> Iterator[None]:
    """Fail a test that leaves descriptors open."""
    folder = Path("/proc/self/fd")
    if not folder.exists():
        yield
        return
    before = {fd: _target(folder / fd) for fd in os.listdir(folder)}
    yield
    left = {fd: _target(folder / fd) for fd in os.listdir(folder)}
    new = [f"{fd} -> {where}" for fd, where in left.items() if fd not in before and where]
    if new:
        pytest.fail(f"descriptors left open: {sorted(new)}", pytrace=False)


def _target(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:  # the one that listed the folder
        return ""
