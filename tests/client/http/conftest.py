"""Clients of the hostile server, and what must not be left behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from raxol_sync.client import eras
from raxol_sync.client.client import Client
from tests.client.http.hostile import Hostile, Polite, Script


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    """No test knows what another one has found out."""
    eras._known.clear()
    yield
    eras._known.clear()


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


@pytest.fixture
def host() -> Iterator[Callable[[Script], Hostile]]:
    """Start servers: `host(script)`. They end with the test."""
    made: list[Hostile] = []

    def make(script: Script) -> Hostile:
        made.append(Hostile(script))
        return made[-1]

    yield make
    for server in made:
        server.close()


@pytest.fixture
def connect(host: Callable[[Script], Hostile]) -> Iterator[Callable[..., Client]]:
    """Make clients: `connect(server or script, ...)`. Not started; stopped before the servers."""
    made: list[Client] = []

    def make(server: Hostile | Script, **settings: Any) -> Client:
        found = server if isinstance(server, Hostile) else host(server)
        defaults = {"call_timeout": 10.0, "init_timeout": 10.0, "fail_fast": True}
        url = settings.pop("url", found.url)
        made.append(Client("test", url=url, **{**defaults, **settings}))
        return made[-1]

    yield make
    for client in made:
        client.stop()


@pytest.fixture(params=["modern", "legacy"])
def polite(request: pytest.FixtureRequest) -> Polite:
    """A proper server of each era."""
    return Polite(request.param)
