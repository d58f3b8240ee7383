#!/usr/bin/env python3
"""Testing a server in process: no subprocess, no port, nothing to wait for. Run with pytest."""

from collections.abc import Iterator

import pytest

from raxol_sync import Client, Server


def make_server() -> Server:
    """Return the server under test."""
    server = Server("shop")

    @server.tool
    def price(item: str, pieces: int = 1) -> int:
        """Tell what some pieces of an item cost, in cents."""
        return {"apple": 30, "pear": 45}[item] * pieces

    return server


@pytest.fixture
def client() -> Iterator[Client]:
    """A client of the server, ready to use."""
    with make_server() as server, Client("test", server=server) as connected:
        yield connected


def test_price(client: Client) -> None:
    """Prices are per piece."""
    answer = client.call_tool("price", {"item": "pear", "pieces": 2})
    assert answer.structured_content == {"result": 90}


def test_unknown_item(client: Client) -> None:
    """What the shop does not have is an error of the tool, not of the client."""
    assert client.call_tool("price", {"item": "melon"}).is_error
