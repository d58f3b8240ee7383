"""Our servers, for the clients of others and for ours."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.conftest import Peers
from tests.peers.serving import SERVERS, serving


@pytest.fixture(scope="module")
def urls(peers: Peers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Our HTTP servers, one of a kind for all tests of a module; their URLs without a path."""
    with contextlib.ExitStack() as stack:
        folder = tmp_path_factory.mktemp("servers")
        yield {name: stack.enter_context(serving(name, peers, folder)) for name in SERVERS}
