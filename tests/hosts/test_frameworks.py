"""Flask and Django with our server in them: their own pages go on, and tools see their request."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from tests.hosts.serving import SINGLE, each_of
from tests.hosts.talk import Talk

pytestmark = pytest.mark.peers

served = each_of([host for host in SINGLE if host.name.startswith(("flask", "django"))])


def get(talk: Talk, path: str) -> Any:
    with contextlib.closing(talk.send("GET", path=path)) as stream:
        return stream.all()


def test_the_sites_own_pages_are_served(talk: Talk) -> None:
    """Beside ours, and its own idea of what is not there."""
    assert get(talk, "/").body == b"the front page"
    assert get(talk, "/login/ada").body == b"welcome ada"
    assert get(talk, f"{talk.path}x").status in (404, 405)  # Flask has such a page, for POST


def test_a_tool_sees_who_is_logged_in(talk: Talk) -> None:
    """The session cookie of the framework, read in a tool."""
    cookie = get(talk, "/login/ada").headers["set-cookie"].partition(";")[0]
    call = {"name": "person", "arguments": {}}
    headers = {"Cookie": cookie, "X-Trace": "abc"}
    found = talk.ask("tools/call", call, headers=headers).structured
    mounted = talk.path != "/mounted"  # there, Django's own handlers are not asked
    assert found["user"] == ("ada" if mounted else None)
    assert talk.ask("tools/call", call).structured["user"] is None


def test_no_csrf_token_is_asked_for(talk: Talk) -> None:
    """A POST of ours goes through the middleware of Django and comes to the server."""
    assert talk.call("echo", {"text": "through"}).text == "through"
