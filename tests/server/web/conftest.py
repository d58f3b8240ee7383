"""Fixtures for the embedded web server's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from raxol_sync.server.web.service import WebServer
from tests.server.web.raw import POLLERS, App, Raw, serving


@pytest.fixture(params=sorted(POLLERS))
def poller(request: pytest.FixtureRequest) -> str:
    """Each kind of poller that this system has."""
    return str(request.param)


@pytest.fixture
def app() -> App:
    """An application with known answers."""
    return App()


@pytest.fixture
def server(app: App, poller: str) -> Iterator[WebServer]:
    """A server of it, with limits that are quick to reach."""
    with serving(
        app,
        poller=poller,
        max_body=100_000,
        header_timeout=0.4,
        body_timeout=0.4,
        write_timeout=0.4,
        drain_timeout=0.4,
        idle_timeout=30.0,
    ) as server:
        yield server


@pytest.fixture
def raw(server: WebServer) -> Iterator[Raw]:
    """A connection to it."""
    with Raw(server.port) as raw:
        yield raw
