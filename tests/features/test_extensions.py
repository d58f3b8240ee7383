"""Extensions of the protocol: what a server declares, and what a callback sees of its client."""

from __future__ import annotations

from typing import Any

import pytest

from raxol_sync import Context, Server
from tests.features.helpers import EACH_ERA, LEGACY, connected

APPS = {"com.example/apps": {"mimeTypes": ["text/html"]}}


@EACH_ERA
def test_a_server_declares_its_extensions(revision: str) -> None:
    """Beside its own capabilities; without any there is no such member."""
    method = "initialize" if revision == LEGACY else "server/discover"
    params = {
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    for given in (APPS, None):
        with connected(Server(extensions=given), revision) as client:
            found = client.request(method, params)["capabilities"]
        assert found.get("extensions") == given
        assert "tools" in found


@pytest.mark.parametrize(
    ("given", "kind"), [({"apps": {}}, ValueError), ({"a/b": None}, TypeError)], ids=str
)
def test_names_have_a_prefix_and_settings_are_objects(given: Any, kind: type[Exception]) -> None:
    """Checked where they are given."""
    with pytest.raises(kind, match="extensions"):
        Server(extensions=given)


@EACH_ERA
def test_a_callback_sees_what_its_client_declares(revision: str) -> None:
    """Extensions are there with the rest."""
    with connected(server := Server(), revision, roots=["/"]) as client:

        @server.tool
        def look(context: Context) -> list[str]:
            return sorted(context.client_capabilities)

        assert client.call_tool("look").structured_content == {"result": ["roots"]}
