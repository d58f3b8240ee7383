"""What a server logs, and says, where deployment is the likely cause: workers, names."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from raxol_sync import Ask, Context, Server
from raxol_sync.server import seldom
from tests.server.helpers import call, initialize, req
from tests.server.http.driver import Driver, Json, driver_of

FORMS: Json = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings so far."""
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]


@pytest.fixture
def asking() -> Iterator[Callable[..., Driver]]:
    """Makes drivers of servers whose tool needs an approval."""
    with contextlib.ExitStack() as servers:

        def make(**options: Any) -> Driver:
            made = Server("asks", authorizer=lambda *given: Ask("Sure?"), **options)
            server = servers.enter_context(made)

            @server.tool
            def drop() -> str:
                return "dropped"

            return driver_of(server)

        yield make


def approved(asked: Json) -> Json:
    """The params of the retry that approves."""
    (key,) = asked["inputRequests"]
    answer = {"action": "accept", "content": {"approve": True}}
    more = {"requestState": asked["requestState"], "inputResponses": {key: answer}}
    return {"name": "drop", "arguments": {}, **more}


def test_a_state_of_another_worker_is_told_with_its_likely_cause(
    asking: Callable[..., Driver], caplog: pytest.LogCaptureFixture
) -> None:
    """To the client in the error, in the log once; neither holds the state."""
    one, other = asking(), asking()
    retry = approved(one.call("drop", meta=FORMS).json["result"])
    for _ in range(3):
        answer = other.modern("tools/call", retry, meta=FORMS)
        assert answer.code == -32602
        assert "all need the same request_state_key" in answer.json["error"]["message"]
    (told,) = warnings(caplog)
    assert "request_state_key=" in told
    assert retry["requestState"][:20] not in caplog.text


def test_workers_with_one_key_say_nothing(
    asking: Callable[..., Driver], caplog: pytest.LogCaptureFixture
) -> None:
    """Nor does a state that was used twice."""
    key = "a secret of 16 bytes or more"
    one, other = asking(request_state_key=key), asking(request_state_key=key)
    retry = approved(one.call("drop", meta=FORMS).json["result"])
    done = other.modern("tools/call", retry, meta=FORMS).json["result"]
    assert done["content"][0]["text"] == "dropped"
    assert other.modern("tools/call", retry, meta=FORMS).code == -32602
    assert warnings(caplog) == []


def test_an_unknown_session_is_told_with_its_likely_cause(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """In every method that names one; in the log once, without the session's id."""
    http = driver_of(server)
    named = {"Mcp-Session-Id": "of-another-worker"}
    for answer in (
        http.post(req("ping"), named),
        http.send("GET", headers={**named, "Accept": "text/event-stream"}),
        http.send("DELETE", headers=named),
    ):
        assert answer.status == 404
        assert "max_sessions" in answer.json["error"]["message"]
    (told,) = warnings(caplog)
    assert "max_sessions=0" in told
    assert "of-another-worker" not in caplog.text


def test_a_warning_comes_again_after_a_while_and_counts(
    server: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that asks in a loop floods no log."""
    moment = 1000.0
    monkeypatch.setattr(seldom, "now", lambda: moment)
    http = driver_of(server)
    for _ in range(5):
        http.post(req("ping"), {"Mcp-Session-Id": "x"})
    moment += seldom.INTERVAL
    http.post(req("ping"), {"Mcp-Session-Id": "x"})
    assert len(warnings(caplog)) == 2
    assert warnings(caplog)[1].endswith("(4 more since the last such line)")


def test_a_host_that_is_refused_is_logged(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """So that it can be allowed; in one line of its own, whatever the header holds."""
    http = driver_of(server)
    evil = "evil.example.com\x1b[2J\n! all is well\xff" + "x" * 1000
    assert http.send("POST", environ={"HTTP_HOST": evil}).status == 421
    (told,) = warnings(caplog)
    assert "Host 'evil.example.com\\x1b[2J\\n! all" in told
    assert "allowed_hosts" in told
    assert told.isprintable()
    assert len(told) < 300


def test_an_origin_that_is_refused_is_logged(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """With the host, for it may be that one which is missing."""
    assert driver_of(server).send("POST", headers={"Origin": "http://a.example"}).status == 403
    (told,) = warnings(caplog)
    assert "Origin 'http://a.example'" in told
    assert "allowed_origins" in told


def test_a_legacy_client_without_a_session_is_told_that_sessions_are_off() -> None:
    """It did declare that it can be asked: at `initialize`, which is forgotten."""
    with Server("asks") as plain:

        @plain.tool
        def city(context: Context) -> str:
            form = {"type": "object", "properties": {"city": {"type": "string"}}}
            return str(context.elicit("Which?", form))

        http = driver_of(plain, max_sessions=0)
        assert "mcp-session-id" not in http.post(initialize(elicitation={})).headers
        answer = http.post(call("city")).json["result"]
        assert answer["isError"] is True
        assert "max_sessions=0" in answer["content"][0]["text"]


def test_an_approval_without_a_session_says_so_too(asking: Callable[..., Driver]) -> None:
    """In the denial's detail."""
    http = asking()
    denied = http.post(call("drop")).json["result"]
    assert denied["isError"] is True
    assert "max_sessions=0" in denied["content"][0]["text"]
