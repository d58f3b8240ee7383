"""The pages about hosts work as they stand: their files are saved, their commands serve.

`<!-- serves: URL -->` before a command says where it serves; after the URL may come a header that
the client needs, or `Login: PATH`, a page that gives it a cookie.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from raxol_sync import Client
from tests.conftest import ROOT, Peers
from tests.hosts.serving import Host, Running, running
from tests.hosts.talk import Talk

pytestmark = pytest.mark.peers

BLOCK = re.compile(r"^<!-- (file|serves): ([^\n]*) -->\n```\w+\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Command:
    """One command of a page, and the files that the page has shown before it."""

    page: str
    where: str
    header: str
    text: str
    files: tuple[tuple[str, str], ...]


def _commands() -> Iterator[Command]:
    for page in sorted((ROOT / "docs" / "how-to").glob("*.md")):
        files: dict[str, str] = {}
        for kind, note, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            if kind == "file":
                files[note] = text
            else:
                where, _, header = note.partition(" ")
                yield Command(page.stem, where, header, text, tuple(files.items()))


COMMANDS = list(_commands())


def _name(command: Command) -> str:
    words = command.text.split()
    return f"{command.page}-{COMMANDS.index(command)}-{words[0]}"


def _headers(talk: Talk, header: str) -> dict[str, str]:
    name, _, value = header.partition(": ")
    if name == "Login":
        with contextlib.closing(talk.send("GET", path=value)) as stream:
            return {"Cookie": stream.all().headers["set-cookie"].partition(";")[0]}
    return {name: value} if name else {}


@contextlib.contextmanager
def shown(command: Command, host: Host, peers: Peers, folder: Path) -> Iterator[Running]:
    """Run a page's command in a folder, on another port."""
    address = urlsplit(command.where)
    words = shlex.split(command.text.replace("\\\n", " "))
    words[0] = str(peers.host(words[0]))

    def elsewhere(port: int) -> list[str]:
        for name, text in command.files:  # some say the port in a file
            moved = text.replace(str(address.port), str(port))
            (folder / name).write_text(moved, encoding="utf-8")
        return [word.replace(str(address.port), str(port)) for word in words]

    with running(elsewhere, host, folder, folder) as served:
        yield served


@pytest.mark.parametrize("command", COMMANDS, ids=_name)
def test_what_a_page_shows_serves(command: Command, peers: Peers, tmp_path: Path) -> None:
    """In an empty folder; in both eras."""
    mounted = command.page == "flask" or "wsgi:application" in command.text
    host = Host(command.page, "", (), urlsplit(command.where).path, mounted)
    with shown(command, host, peers, tmp_path) as served:
        if command.header:  # who is not known is told how to become so
            refused = served.talk.call("add", {"a": 2, "b": 3})
            assert refused.status == 401
            assert refused.headers["www-authenticate"]
        headers = _headers(served.talk, command.header)
        for revision in ("2026-07-28", "2025-11-25"):
            # Where several workers share no sessions, only the era without them is sure to work.
            if "--workers" in command.text and revision < "2026":
                continue
            options = {"headers": headers, "protocol_version": revision, "call_timeout": 10.0}
            with Client("page", url=served.talk.url, **options) as client:  # type: ignore[arg-type]
                assert "add" in [tool.name for tool in client.list_tools()]
                assert client.call_tool("add", {"a": 2, "b": 3}).text == "5"


HOOKS = [
    ("gunicorn", "--config gunicorn.conf.py --bind"),
    ("waitress", "serve.py"),
    ("flask", "app:app"),
    ("flask", "proxied:app"),
]


@pytest.mark.parametrize(("page", "words"), HOOKS)
def test_hooks_end_streams(page: str, words: str, peers: Peers, tmp_path: Path) -> None:
    """A listener is told of the end, and stopping takes no time-out."""
    found = [each for each in COMMANDS if each.page == page and words in each.text]
    command = next(each for each in found if "--workers" not in each.text)
    host = Host(f"{page}-hook", "", (), mounted=page == "flask", stop_seconds=8.0)
    with shown(command, host, peers, tmp_path) as served:
        headers = _headers(served.talk, command.header)
        stream = served.talk.open("subscriptions/listen", {"notifications": {}}, headers=headers)
        with contextlib.closing(stream):
            stream.next()
            served.stop()
            assert stream.next()["result"]["resultType"] == "complete"
        assert "Traceback" not in served.log.read_text(encoding="utf-8")


def test_every_page_about_a_host_has_a_command() -> None:
    """So that none of them is forgotten."""
    pages = {command.page for command in COMMANDS}
    assert pages >= {"http", "gunicorn", "granian", "waitress", "uwsgi", "flask", "django"}
