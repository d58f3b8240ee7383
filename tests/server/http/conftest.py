"""A server, its application, and a driver of that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from raxol_sync import Server
from raxol_sync.server.http import exchange
from tests.server.helpers import steps
from tests.server.http.driver import Driver, driver_of


@pytest.fixture
def server() -> Iterator[Server]:
    with Server("http") as server:
        yield server


@pytest.fixture
def http(server: Server) -> Driver:
    """With the tools `echo` and `steps`."""

    @server.tool
    def echo(text: str) -> str:
        return text

    steps(server)
    return driver_of(server)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer becomes a stream at once."""
    monkeypatch.setattr(exchange, "SILENT", 0.03)
