"""Our server under the servers that people have: one list of checks for each of them."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Peers
from tests.hosts.serving import SINGLE, Host, Running, each_of, serve
from tests.hosts.talk import LEGACY, META, MODERN, Stream, Talk, eventually

pytestmark = pytest.mark.peers

NOTICE_SECONDS = 5.0  # for a host to notice that a client has gone: a few comments are written
LISTEN = {"notifications": {"resourceSubscriptions": ["hosted://note"]}}

served = each_of(SINGLE)


def listen(talk: Talk) -> Stream:
    """Open a listen and wait until it is acknowledged."""
    stream = talk.open("subscriptions/listen", LISTEN)
    assert stream.status == 200
    assert stream.events
    assert stream.next()["method"] == "notifications/subscriptions/acknowledged"
    return stream


def test_s47_discover_says_what_is_served(talk: Talk) -> None:
    """Revision 2026-07-28, without a session."""
    answer = talk.ask("server/discover")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/json")
    assert "mcp-session-id" not in answer.headers
    assert MODERN in answer.result["supportedVersions"]
    assert answer.result["_meta"][META + "serverInfo"]["name"] == "hosted"


def test_s48_a_call_is_answered_with_plain_json(talk: Talk) -> None:
    """Text of any script comes back whole."""
    answer = talk.call("echo", {"text": "grüße \u2028 🎈" * 500})
    assert (answer.status, answer.text) == (200, "grüße \u2028 🎈" * 500)
    assert answer.headers["content-type"].startswith("application/json")
    assert int(answer.headers["content-length"]) == len(answer.body)


def test_s48_errors_have_their_status(talk: Talk) -> None:
    """An unknown method, an unknown tool, and what is no JSON."""
    assert talk.ask("no/such").status == 404
    assert talk.call("no_such").status == 200
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    with contextlib.closing(talk.send("POST", b"{", sent)) as stream:
        broken = stream.all()
    assert (broken.status, broken.message["error"]["code"]) == (400, -32700)


def test_s48_other_paths_and_verbs_are_refused(served: Running) -> None:
    """405 says what would do; a path beside ours is not ours."""
    talk = served.talk
    with contextlib.closing(talk.send("PUT", b"{}")) as stream:
        assert stream.status == 405
        assert "POST" in stream.headers["allow"]
    with contextlib.closing(talk.send("GET", path="/elsewhere")) as stream:
        assert stream.status == 404


def test_s21_a_call_in_a_legacy_session(talk: Talk) -> None:
    """From initialize to DELETE; after that the session is gone."""
    session = talk.session()
    assert len(session.name) > 30
    assert session.call("echo", {"text": "hello"}).text == "hello"
    assert session.end() in (200, 204)
    assert session.call("echo", {"text": "hello"}).status == 404


def test_s49_progress_comes_as_it_is_made(talk: Talk) -> None:
    """On the call's own event stream, before its result; in both eras."""
    call = {"name": "count", "arguments": {"steps": 3}}
    session = talk.session()
    for stream in (
        talk.open("tools/call", call, progress=True),
        session.open("tools/call", call, progress=True),
    ):
        with contextlib.closing(stream):
            assert stream.events
            assert stream.headers["x-accel-buffering"] == "no"
            assert "no-cache" in stream.headers["cache-control"]
            found = list(stream)
        assert [m["params"]["progress"] for m in found[:-1]] == [1, 2, 3]
        assert found[-1]["result"]["content"][0]["text"] == "counted"
    session.end()


def test_s49_a_stream_that_broke_is_gone_on_with(talk: Talk) -> None:
    """In a session, from the last event that was seen: none is lost, none comes twice."""
    session = talk.session()
    call = {"name": "count", "arguments": {"steps": 6}}
    with contextlib.closing(session.open("tools/call", call, progress=True)) as stream:
        first = [stream.next()["params"]["progress"] for _ in range(2)]
        last_id = stream.last_id
    with contextlib.closing(session.listen(last_id)) as stream:
        rest = list(stream)
    told = [message["params"]["progress"] for message in rest[:-1]]
    assert first + told == [1, 2, 3, 4, 5, 6]
    assert rest[-1]["result"]["content"][0]["text"] == "counted"
    session.end()


def test_s48_the_oldest_transport_is_served(served: Running) -> None:
    """HTTP+SSE: the stream's first event says where messages are to be posted."""
    talk = served.talk
    headers = {"Content-Type": "application/json"}
    with contextlib.closing(talk.send("GET", path=served.host.beside("sse"))) as stream:
        assert stream.events
        name, where = next(stream.events_named())
        assert name == "endpoint"
        assert where.startswith(served.host.beside("messages"))
        params = {
            "protocolVersion": "2024-11-05",
            "capabilities": {},
            "clientInfo": {"name": "talk", "version": "1"},
        }
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        for message in (hello, ping):
            body = json.dumps(message).encode()
            with contextlib.closing(talk.send("POST", body, headers, where)) as posted:
                assert posted.status == 202
            assert stream.next()["id"] == message["id"]


def test_s22_a_listener_is_told_and_its_end_is_noticed(talk: Talk) -> None:
    """Closing the stream is the cancellation."""
    assert eventually(lambda: talk.seen()["listens"] == 0, NOTICE_SECONDS)
    with contextlib.closing(listen(talk)) as stream:
        assert talk.seen()["listens"] == 1
        talk.call("touch", {"uri": "hosted://note"})
        told = stream.next()
        assert told["method"] == "notifications/resources/updated"
        assert told["params"]["uri"] == "hosted://note"
    assert eventually(lambda: talk.seen()["listens"] == 0, NOTICE_SECONDS)


def test_s22_a_legacy_session_hears_on_its_own_stream(talk: Talk) -> None:
    """GET; what is pushed comes there."""
    session = talk.session()
    session.ask("resources/subscribe", {"uri": "hosted://note"})
    with contextlib.closing(session.listen()) as stream:
        assert stream.status == 200
        talk.call("touch", {"uri": "hosted://note"})
        assert stream.next()["params"]["uri"] == "hosted://note"
    session.end()


def test_s50_a_client_that_leaves_cancels_its_call(talk: Talk) -> None:
    """The tool is told; the host's thread is free again."""
    before = talk.seen()["cancelled"]
    stream = talk.open("tools/call", {"name": "hang", "arguments": {}}, progress=True)
    with contextlib.closing(stream):
        assert stream.next()["method"] == "notifications/progress"
    assert eventually(lambda: talk.seen()["cancelled"] == before + 1, NOTICE_SECONDS)
    assert eventually(lambda: talk.seen()["in_flight"] == 1, NOTICE_SECONDS)  # `seen` itself


def test_s42_a_form_is_asked_for_in_both_eras(talk: Talk) -> None:
    """By an input round, and by a request on the call's stream."""
    capabilities: dict[str, Any] = {"elicitation": {"form": {}}}
    first = talk.call("greet", capabilities=capabilities)
    assert first.result["resultType"] == "input_required"
    (key,) = first.result["inputRequests"]
    answer = {key: {"action": "accept", "content": {"name": "Ada"}}}
    state = first.result["requestState"]
    second = talk.call(
        "greet", capabilities=capabilities, inputResponses=answer, requestState=state
    )
    assert second.text == "hello Ada"

    session = talk.session(capabilities)
    stream = session.open("tools/call", {"name": "greet", "arguments": {}})
    with contextlib.closing(stream):
        asked = stream.next()
        assert asked["method"] == "elicitation/create"
        assert session.reply(asked, answer[key]).status == 202
        assert stream.next()["result"]["content"][0]["text"] == "hello Ada"
    session.end()


def test_environ_reaches_the_tool(talk: Talk) -> None:
    """`Context.environ` is the request's own."""
    params = {"name": "place", "arguments": {}}
    found = talk.ask("tools/call", params, headers={"X-Trace": "abc"}).structured
    assert found["REMOTE_ADDR"] == "127.0.0.1"
    assert found["REQUEST_METHOD"] == "POST"
    assert (found["SCRIPT_NAME"] or "") + (found["PATH_INFO"] or "") == talk.path
    assert found["HTTP_X_TRACE"] == "abc"


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "sent"])
def test_413_a_body_past_the_limit(served: Running, announced: bool) -> None:
    """Whether it is only announced, where the host passes that on, or sent; the client is told."""
    talk = served.talk
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    body = b" " * (10 if announced and served.host.early else 200_000)
    headers["Content-Length"] = "200000"
    with contextlib.closing(talk.send("POST", body, headers)) as stream:
        assert stream.status == 413
    assert talk.call("echo", {"text": "still here"}).text == "still here"


def test_s48_a_body_without_a_length(served: Running) -> None:
    """Read where the host hands it on; else it is refused, and nothing waits for ever."""
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    head = (
        f"POST {served.talk.path} HTTP/1.1\r\nHost: 127.0.0.1:{served.talk.port}\r\n"
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:9], body[9:]))
    with socket.create_connection(("127.0.0.1", served.talk.port), 10) as connection:
        connection.sendall(head.encode() + chunks + b"0\r\n\r\n")
        status = int(connection.makefile("rb").readline().split()[1])
    assert status in ((200,) if served.host.chunked else (400, 411, 501))


@pytest.mark.parametrize(
    ("name", "value", "statuses"),
    [
        ("Origin", "http://evil.example", (403,)),
        ("Host", "evil.example", (400, 403, 421)),  # Django has a check of its own: 400
    ],
)
def test_foreign_names_are_refused(
    talk: Talk, name: str, value: str, statuses: tuple[int, ...]
) -> None:
    """DNS rebinding: whoever names another host, or comes from another page."""
    params = {"name": "echo", "arguments": {"text": "x"}}
    with contextlib.closing(talk.open("tools/call", params, headers={name: value})) as stream:
        assert stream.status in statuses


def test_our_own_pages_are_served(talk: Talk) -> None:
    """An Origin on this machine."""
    params = {"name": "echo", "arguments": {"text": "x"}}
    headers = {"Origin": f"http://localhost:{talk.port}"}
    assert talk.ask("tools/call", params, headers=headers).text == "x"


def test_slow_calls_delay_nobody(talk: Talk) -> None:
    """Eight calls that wait, and quick ones meanwhile."""
    done: list[int] = []

    def wait() -> None:
        done.append(talk.call("sleep", {"ms": 400}).status)

    threads = [threading.Thread(target=wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    for n in range(5):
        assert talk.call("echo", {"text": str(n)}).text == str(n)
        assert not done
    for thread in threads:
        thread.join()
    assert done == [200] * 8


def test_many_calls_at_once_are_not_mixed_up(served: Running) -> None:
    """More clients than the host has threads."""
    talk = served.talk
    wrong: list[str] = []

    def work(name: int) -> None:
        for n in range(10):
            text = f"{name}-{n}-" * 50
            answer = talk.call("echo", {"text": text})
            if answer.status != 200 or answer.text != text:
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(served.host.crowd)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_call_that_is_silent_keeps_its_client(talk: Talk) -> None:
    """After a second the answer is an event stream with comments in it."""
    stream = talk.open("tools/call", {"name": "sleep", "arguments": {"ms": 1400}})
    with contextlib.closing(stream):
        assert stream.next()["result"]["content"][0]["text"] == "slept"
        assert stream.events
        assert stream.comments >= 1


@pytest.mark.parametrize("host", SINGLE, ids=lambda host: host.name)
def test_s51_it_stops_with_streams_open(host: Host, peers: Peers, tmp_path: Path) -> None:
    """A listener and a legacy GET stream: the process ends in bounded time all the same.

    Where streams are told of the end, a call that runs is answered still.
    """
    answers: list[str] = []
    with serve(host, peers, tmp_path) as served, contextlib.ExitStack() as stack:
        talk = served.talk
        stream = stack.enter_context(contextlib.closing(listen(talk)))
        other = stack.enter_context(contextlib.closing(talk.session().listen()))
        assert other.status == 200
        running = {"name": "sleep", "arguments": {"ms": 500}}
        call = threading.Thread(target=lambda: answers.append(answer_of(talk, running)))
        call.start()
        assert eventually(lambda: talk.seen()["in_flight"] == 2, NOTICE_SECONDS)
        served.stop()
        call.join()
        if host.ends_streams:
            assert stream.next()["result"]["resultType"] == "complete"
            assert answers == ["slept"]


def answer_of(talk: Talk, call: dict[str, Any]) -> str:
    """Call a tool and return its text; nothing if the connection breaks."""
    try:
        return talk.ask("tools/call", call).text
    except (OSError, http.client.HTTPException):
        return ""


def test_s47_older_revisions_are_spoken(talk: Talk) -> None:
    """2025-03-26 and 2025-06-18 by the same endpoint."""
    for revision in ("2025-03-26", "2025-06-18", LEGACY):
        params = {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "talk", "version": "1"},
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        with contextlib.closing(talk.send("POST", json.dumps(message).encode(), headers)) as got:
            assert got.all().result["protocolVersion"] == revision
