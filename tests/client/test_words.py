"""What a client says to who has only begun to use it."""

from __future__ import annotations

import logging
import sys
import threading

import pytest

from raxol_sync import Client, Server
from raxol_sync.errors import InvalidArguments, InvalidSpec, NotReady


def test_c01_a_url_in_the_place_of_the_name_is_noticed() -> None:
    """It says how to write it, and does not repeat the URL, which may hold secrets."""
    for url in ("http://u:s3cret@localhost/mcp", "HTTPS://x.example/mcp?k=s3cret"):
        with pytest.raises(InvalidSpec) as caught:
            Client(url)
        assert "looks like a URL: write Client('any name', url=...)" in str(caught.value)
        assert "s3cret" not in str(caught.value)
    with pytest.raises(InvalidSpec, match="exactly one of command=, url= and server=, not none"):
        Client("http")


def test_c07_a_client_that_was_not_started_says_how() -> None:
    """`with`, or `start()` and `await_ready()`."""
    with pytest.raises(NotReady) as caught:
        Client("x", server=Server("y")).list_tools()
    assert "'with client:', or call start() and then await_ready()" in str(caught.value)


def test_c10_what_is_no_json_is_named_with_its_type_and_place() -> None:
    """In words that fit any type."""
    with Server("y") as server, Client("x", server=server) as client:
        with pytest.raises(InvalidArguments) as caught:
            client.call_tool("t", {"a": [{"b": object()}]})
        assert str(caught.value).startswith(
            "arguments.a[0].b: a value of type object cannot be written as JSON: convert it"
        )
        with pytest.raises(InvalidArguments) as caught:
            client.call_tool("t", {"a": {(1,): 2}})
        text = "arguments.a: a key has type tuple: keys of a dict must be strings"
        assert str(caught.value) == text


def test_c15_a_process_that_keeps_ending_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """With its status, and nothing of what it writes to stderr."""
    tried = threading.Semaphore(0)

    def note(event: str, fields: object) -> None:
        if event == "reconnecting":
            tried.release()

    program = "import sys; sys.stderr.write('s3cret\\n'); sys.exit(3)"
    client = Client(
        "x", command=sys.executable, args=["-c", program], reconnect_delay=0.02, telemetry=note
    )
    with caplog.at_level(logging.WARNING, "raxol_sync.client"):
        client.start()
        for _ in range(3):
            assert tried.acquire(timeout=30)
        client.stop()
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert told == ["! x: the server's process exited with status 3; trying again until stop()"]
