"""Clients of the hostile server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from raxol_sync.client import eras
from raxol_sync.client.client import Client
from raxol_sync.client.means import AUTHORITIES
from tests.client.http.hostile import Hostile, Polite, Script


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    """No test knows what another one has found out."""
    eras._known.clear()
    yield
    eras._known.clear()


@pytest.fixture(autouse=True)
def nobody_else_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees whom this machine's environment trusts."""
    for name in AUTHORITIES:
        monkeypatch.delenv(name, raising=False)


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
