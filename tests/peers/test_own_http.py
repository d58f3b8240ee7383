"""Our own client against our own server over HTTP, in each era and transport."""

from __future__ import annotations

import json
import queue
import threading
import time
from dataclasses import dataclass
from typing import Any

import pytest

from raxol_sync import Client, RequestTimeout

pytestmark = pytest.mark.peers

LEGACY, MODERN = "2025-11-25", "2026-07-28"
NOTICE_SECONDS = 5.0
# path, pinned revision, the revision that must come out
WAYS = [
    ("/mcp", None, MODERN),
    ("/mcp", LEGACY, LEGACY),
    ("/mcp", "2025-06-18", "2025-06-18"),
    ("/mcp", "2025-03-26", "2025-03-26"),
    ("/sse", None, None),
]
CASES = [
    *(("embedded", *way) for way in WAYS),
    *(("gunicorn", *way) for way in WAYS if way[1] in (None, LEGACY)),
]


@dataclass
class Way:
    """One way to a server."""

    url: str
    pinned: str | None
    revision: str | None

    @property
    def modern(self) -> bool:
        """Whether it is the stateless era."""
        return self.revision == MODERN

    def client(self, **settings: Any) -> Client:
        """A client, not yet started."""
        defaults = {"call_timeout": 10.0, "fail_fast": True, "protocol_version": self.pinned}
        return Client("ours", url=self.url, **{**defaults, **settings})


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1][1:]}-{case[2] or 'any'}")
def way(request: pytest.FixtureRequest, urls: dict[str, str]) -> Way:
    """One way to one of them."""
    server, path, pinned, revision = request.param
    return Way(urls[server] + path, pinned, revision)


def test_s47_the_revision_is_agreed_on_and_tools_are_called(way: Way) -> None:
    """And the session ends cleanly."""
    with way.client() as client:
        status = client.status()
        assert way.revision in (status.protocol_version, None)
        assert status.era == ("modern" if way.modern else "legacy")
        assert [tool.name for tool in client.list_tools()][:2] == ["echo", "add"]
        assert client.call_tool("echo", {"text": "grüße \u2028 🎈"}).text == "grüße \u2028 🎈"
        assert client.call_tool("add", {"a": 2, "b": 3}).text == "5"
        assert client.read_resource("peer://motd")[0].text == "hello"
    assert client.status().state == "closed"


def test_c12_threads_share_a_client(way: Way) -> None:
    """Each gets its own sums."""
    wrong: list[tuple[int, int]] = []
    with way.client() as client:

        def work(a: int) -> None:
            for b in range(10):
                if client.call_tool("add", {"a": a, "b": b}).text != str(a + b):
                    wrong.append((a, b))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_c14_progress_and_logs(way: Way) -> None:
    """All of it, in order, before the call returns."""
    told: list[float] = []
    logs: queue.SimpleQueue[tuple[str, object]] = queue.SimpleQueue()
    with way.client(on_log=lambda level, data, logger: logs.put((level, data))) as client:
        client.set_log_level("info")
        client.call_tool("count", {"steps": 4}, progress=lambda done, *rest: told.append(done))
        assert told == [1, 2, 3, 4]
        client.call_tool("chatter")
        assert logs.get(timeout=NOTICE_SECONDS) == ("warning", "careful")


def test_s34_the_client_answers_what_it_is_asked(way: Way) -> None:
    """A form, its model and its roots, by requests of the server's or by an input round."""
    settings = {
        "on_elicit": lambda message, schema: {"name": message, "age": 7},
        "on_sample": lambda params: {
            "role": "assistant",
            "model": "tiny",
            "content": {"type": "text", "text": "because"},
        },
        "roots": ["file:///srv/data"],
    }
    with way.client(**settings) as client:
        found = client.call_tool("survey")
        if way.revision == "2025-03-26":  # there is no elicitation yet
            assert found.is_error
            assert "elicitation" in found.text
            return
        assert json.loads(found.text) == [
            "accept",
            {"name": "Who?", "age": 7},
            "because",
            "tiny",
            ["file:///srv/data"],
        ]


def test_c10_a_call_that_is_given_up_is_cancelled(way: Way) -> None:
    """The tool is told; the session goes on."""
    with way.client() as client:
        before = int(client.call_tool("cancelled_count").text)
        begun = time.monotonic()
        with pytest.raises(RequestTimeout):
            client.call_tool("hang", timeout=0.3)
        assert time.monotonic() - begun < 2.0
        deadline = time.monotonic() + NOTICE_SECONDS
        while int(client.call_tool("cancelled_count").text) == before:
            assert time.monotonic() < deadline, "the tool was not told"


def test_s22_a_changed_resource_is_told(way: Way) -> None:
    """By a subscription in either era."""
    heard: queue.SimpleQueue[str] = queue.SimpleQueue()
    with way.client() as client, client.subscribe("peer://motd", heard.put):
        client.call_tool("touch", {"uri": "peer://motd"})
        assert heard.get(timeout=NOTICE_SECONDS) == "peer://motd"


def test_s48_a_client_that_is_sent_away_comes_back(way: Way) -> None:
    """Streams that are closed between events lose none of them."""
    told: list[float] = []
    with way.client() as client:
        found = client.call_tool("slow_steps", progress=lambda done, *rest: told.append(done))
        assert found.text == "stepped"
        assert told == [1, 2, 3]
