"""What client and server tell each other about themselves."""

from __future__ import annotations

import queue
from typing import Any

import pytest

from raxol_sync import Client, Context, InvalidSpec, Server, ServerInfo
from tests.features.helpers import EACH_ERA, LEGACY, MODERN, Json, connected

ICONS = ({"src": "https://example.com/i.png", "sizes": ["48x48"]},)
APPS = {"com.example/apps": {"mimeTypes": ["text/html"]}}


@EACH_ERA
def test_a_server_describes_itself(revision: str) -> None:
    """Name, version, title, icons, capabilities, extensions, instructions, revision."""
    server = Server(
        "shop",
        server_version="1.2",
        title="The shop",
        icons=ICONS,
        description="Sells fruit.",
        website_url="https://example.com",
        instructions="Ask for prices.",
        extensions=APPS,
    )
    with connected(server, revision) as client:
        found = client.describe()
    assert isinstance(found, ServerInfo)
    assert (found.name, found.version, found.title) == ("shop", "1.2", "The shop")
    assert (found.icons, found.instructions) == (ICONS, "Ask for prices.")
    assert (found.description, found.website_url) == ("Sells fruit.", "https://example.com")
    assert found.protocol_version == revision
    assert found.extensions == APPS
    assert found.capabilities["resources"] == {"listChanged": True, "subscribe": True}


@EACH_ERA
def test_a_client_describes_itself(revision: str) -> None:
    """The callback sees who calls, and which extensions it speaks."""
    info = {"name": "desk", "version": "3", "title": "The desk"}
    server = Server()

    @server.tool
    def look(context: Context) -> Json:
        return {"info": context.client_info, "declared": context.client_capabilities}

    with connected(server, revision, client_info=info, extensions=APPS) as client:
        found = client.call_tool("look").structured_content
    assert found == {"info": info, "declared": {"extensions": APPS}}
    with connected(server := Server(), revision) as client:
        server.tool(look)
        known = client.call_tool("look").structured_content
    assert known["info"]["name"] == "raxol_sync"
    assert known["declared"] == {}


@pytest.mark.parametrize(
    "options",
    [
        {"client_info": "desk"},
        {"client_info": {"name": 5}},
        {"extensions": {"apps": {}}},
        {"extensions": {"a/b": 1}},
        {"extensions": ["a/b"]},
    ],
    ids=str,
)
def test_what_a_client_says_of_itself_is_checked(options: Any) -> None:
    """Before anything is started."""
    with pytest.raises(InvalidSpec, match=r"client 'test': (client_info|extensions)="):
        Client("test", server=Server(), **options)


class Listening:
    """A server, with an ear at its door."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.heard: queue.SimpleQueue[str] = queue.SimpleQueue()

    def subscribe(self, subscriber: Any, conn_id: Any) -> Any:
        """As the server does."""
        return self.server.subscribe(subscriber, conn_id)

    def request(self, message: Any, conn_id: Any, **options: Any) -> Any:
        """As the server does."""
        self.heard.put(message.get("method", ""))
        return self.server.request(message, conn_id, **options)


@EACH_ERA
def test_a_client_tells_that_its_roots_have_changed(revision: str) -> None:
    """In legacy sessions; in the stateless era nobody keeps them, and there is nothing to say."""
    with Server() as server:
        ear = Listening(server)
        with Client("test", server=ear, protocol_version=revision, roots=["/"]) as client:
            client.roots_changed()
            client.ping()
            heard = [ear.heard.get(timeout=10) for _ in range(ear.heard.qsize())]
    told = heard.count("notifications/roots/list_changed")
    assert told == (1 if revision == LEGACY else 0)


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_roots_are_asked_for_anew_each_time(revision: str) -> None:
    """Nothing is kept, so nothing can be out of date."""
    roots = ["/a"]
    server = Server()

    @server.tool
    def look(context: Context) -> list[str]:
        return [root.uri for root in context.list_roots()]

    with connected(server, revision, roots=lambda: roots) as client:
        first = client.call_tool("look").structured_content
        roots[:] = ["/b", "/c"]
        client.roots_changed()
        second = client.call_tool("look").structured_content
    assert (first, second) == ({"result": ["file:///a"]}, {"result": ["file:///b", "file:///c"]})
