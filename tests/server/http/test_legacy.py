"""Legacy sessions over HTTP: statuses, batches, streams, what the server asks."""

from __future__ import annotations

import threading

import pytest

from raxol_sync import ALLOW, Ask, Context, Server
from raxol_sync.server.http import streams
from tests.server.helpers import (
    WAIT,
    Gate,
    call,
    cancelled,
    eventually,
    gated,
    initialize,
    note,
    req,
)
from tests.server.http.driver import BOTH, Driver, Host, Json, driver_of, in_thread

REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


# ---------------------------------------------------------------- statuses


def test_s48_legacy_answers_are_200(http: Driver) -> None:
    """Whatever the JSON-RPC answer says; 400 for what cannot be read, and for versions."""
    session = http.open()
    for message, code in [
        (req("no/such"), -32601),
        (call("nobody"), -32601),
        (req("tools/call", {}), -32602),
        (req("resources/read", {"uri": "x:y"}), -32002),
        (req("prompts/get", {"name": "x"}), -32602),
        (req("server/nothing"), -32601),
    ]:
        answer = session.post(message)
        assert (answer.status, answer.code) == (200, code)
    for body in (b"{", b"[]", b"[{}]", b'{"jsonrpc":"2.0","id":1}'):
        assert session.post(body).status == 400


@pytest.mark.parametrize("version", ["1999-01-01", "", "2025-06-18, 2025-06-18", "x" * 9000])
def test_s48_an_unsupported_version_is_400(http: Driver, version: str) -> None:
    """The answer lists what there is, and does not repeat all of a long one."""
    session = http.open()
    for headers in ({}, session.headers):
        answer = http.post(req("ping", id=3), {**headers, "MCP-Protocol-Version": version})
        assert (answer.status, answer.code, answer.json["id"]) == (400, -32022, 3)
        assert "2025-11-25" in answer.json["error"]["data"]["supported"]
        assert len(answer.body) < 1000


def test_a_known_version_that_was_not_negotiated_is_served(http: Driver) -> None:
    """The session says what is spoken."""
    session = http.open("2025-06-18")
    headers = {**session.headers, "MCP-Protocol-Version": "2025-03-26"}
    assert http.post(req("ping"), headers).json["result"] == {}


def test_errors_without_an_id_are_as_the_revision_wants_them(http: Driver) -> None:
    """`null` up to 2025-06-18, nothing after."""
    for revision, there in (("2025-11-25", False), ("2025-06-18", True)):
        answer = http.open(revision).post(b"{")
        assert ("id" in answer.json) is there


def test_s50_a_cancelled_request_ends_its_post(server: Server, http: Driver) -> None:
    """With error -32800, as the official SDK does it."""
    gate, session = gated(server), http.open()
    pending = in_thread(lambda: session.post(call("wait", id=5)))
    gate.wait_entered()
    assert session.post(cancelled(5)).status == 202
    answer = pending.result()
    assert (answer.status, answer.code, answer.json["id"]) == (200, -32800, 5)
    gate.open()


def test_s50_and_so_does_one_that_streams(server: Server, http: Driver, impatient: None) -> None:
    """The stream ends with the error."""
    gate, session = gated(server), http.open()
    answer = session.post(call("wait", id=5))
    assert answer.is_stream
    session.post(cancelled(5))
    assert [m["error"]["code"] for m in answer.messages()] == [-32800]
    answer.close()
    gate.open()


def test_s50_and_so_does_each_of_a_batch(server: Server, http: Driver, impatient: None) -> None:
    """Those that were cancelled say so; none is left out."""
    gate, session = gated(server), http.open("2025-03-26")
    batch = [call("wait", id=5), call("wait", id=6), call("echo", {"text": "a"}, id=7)]
    answer = session.post(batch)
    assert answer.is_stream
    session.post(cancelled(5))
    session.post(cancelled(6))
    found = {m["id"]: m.get("error", {}).get("code") for m in answer.messages()}
    assert found == {5: -32800, 6: -32800, 7: None}
    answer.close()
    gate.open()


def test_s50_only_the_own_session_cancels(server: Server, http: Driver) -> None:
    """Another one's id means another request."""
    gate, session, other = gated(server), http.open(), http.open()
    pending = in_thread(lambda: session.post(call("wait", id=5)))
    gate.wait_entered()
    other.post(cancelled(5))
    http.post(cancelled(5))
    gate.open()
    assert "result" in pending.result().json


def test_an_id_in_use_is_refused(server: Server, http: Driver) -> None:
    """Within a session ids tell requests apart."""
    gate, session = gated(server), http.open()
    pending = in_thread(lambda: session.post(call("wait", id=5)))
    gate.wait_entered()
    answer = session.post(req("ping", id=5))
    assert (answer.status, answer.code) == (200, -32600)
    gate.open()
    assert "result" in pending.result().json


# ---------------------------------------------------------------- batches (2025-03-26)


def test_a_batch_is_answered_as_one(server: Server, http: Driver) -> None:
    """In the revision that has them; its malformed members are answered too."""
    session = http.open("2025-03-26")
    batch = [
        call("echo", {"text": "a"}, id=1),
        note("notifications/x"),
        req("ping", id=2),
        {"jsonrpc": "2.0", "id": 3},
        initialize(id=4),
    ]
    answer = session.post(batch)
    assert answer.status == 200
    found = {m["id"]: m.get("error", {}).get("code") for m in answer.json}
    assert found == {1: None, 2: None, 3: -32600, 4: -32600}
    assert session.post([note("notifications/x")]).status == 202
    assert session.post([]).status == 400
    assert session.post([{"jsonrpc": "2.0", "id": 3}]).status == 400


def test_a_batch_that_has_more_to_say_is_a_stream(http: Driver) -> None:
    """Progress of one of its calls, and all its responses."""
    session = http.open("2025-03-26")
    batch = [call("steps", {"n": 2}, id=1, _meta={"progressToken": 1}), req("ping", id=2)]
    answer = session.post(batch)
    messages = list(answer.messages() if answer.is_stream else [])
    assert sum("method" in m for m in messages) == 2
    assert {m["id"] for m in messages if "result" in m} == {1, 2}
    answer.close()


def test_s47_the_stateless_era_is_no_part_of_a_batch(server: Server, http: Driver) -> None:
    """Its requests are refused one by one: a listen that came so would never end."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    wanted = {"notifications": {"toolsListChanged": True}, "_meta": meta}
    batch = [
        req("subscriptions/listen", wanted, id=1),
        call("echo", {"text": "a"}, id=2, _meta=meta),
        req("server/discover", id=3),
        req("ping", id=4),
    ]
    for post in (http.post, http.open("2025-03-26").post):
        found = {m["id"]: m.get("error", {}).get("code") for m in post(batch).json}
        assert found == {1: -32600, 2: -32600, 3: -32600, 4: None}
    assert server.stats().listens == 0


@pytest.mark.parametrize("revision", ["2025-11-25", "2025-06-18"])
def test_elsewhere_an_array_is_invalid(http: Driver, revision: str) -> None:
    """Batches came with one revision and went with the next."""
    answer = http.open(revision).post([req("ping")])
    assert (answer.status, answer.code) == (400, -32600)


# ---------------------------------------------------------------- streams


def test_what_a_call_causes_goes_out_on_its_own_stream(server: Server, http: Driver) -> None:
    """Not on the GET stream; and the response comes there too (row S49)."""
    session = http.open()
    listening = session.get()
    assert listening.next_chunk().startswith(b"id: 0-0\nretry: ")
    answer = session.post(call("steps", {"n": 2}, _meta={"progressToken": "p"}))
    messages = list(answer.messages())
    assert [m.get("method", "response") for m in messages] == [
        *["notifications/progress"] * 2,
        "response",
    ]
    answer.close()
    server.notify("notifications/x")
    assert listening.next_message()["method"] == "notifications/x"
    listening.close()


def test_s20_what_waits_goes_out_in_pieces(server: Server, http: Driver) -> None:
    """A client that reads nothing is noticed at the first of them."""
    session = http.open()
    listening = session.get()
    assert listening.next_chunk().startswith(b"id: 0-0\n")
    words = "x" * (streams.CHUNK // 2)
    for n in range(6):
        server.notify("notifications/x", {"n": n, "words": words})
    sizes, found = [], 0
    while found < 6:
        chunk = listening.next_chunk()
        sizes.append(len(chunk))
        found += chunk.count(b"data: ")
    assert found == 6
    assert max(sizes) < 2 * streams.CHUNK
    listening.close()


def test_s22_the_get_stream_gets_what_belongs_to_no_request(server: Server, http: Driver) -> None:
    """Also what came while nobody read: within bounds, the newest of it."""
    session, other = http.open(), http.open()
    session.post(req("resources/subscribe", {"uri": "a:b"}))
    server.notify("notifications/resources/updated", {"uri": "a:b"})
    server.notify("notifications/resources/updated", {"uri": "a:other"})
    for number in range(1000):
        server.notify("notifications/x", {"n": number})
    stream = session.get()
    events = stream.events()
    got = [next(events) for _ in range(257)][1:]
    assert '"n":999' in got[-1]["data"]
    ids = [event["id"] for event in got]
    assert len(set(ids)) == 256
    stream.close()
    assert other.post(req("ping")).status == 200


def test_s20_a_stream_that_is_not_read_ends_alone(server: Server, http: Driver) -> None:
    """Its session lives on."""
    session = http.open()
    stream = session.get()
    stream.next_chunk()
    for number in range(5000):
        server.notify("notifications/x", {"n": number})
    assert list(stream.messages()) == []
    stream.close()
    assert session.post(req("ping")).status == 200
    again = session.get()
    assert '"n":' in next(e for e in again.events() if e.get("data"))["data"]
    again.close()


def test_a_second_get_takes_the_stream_over(server: Server, http: Driver) -> None:
    """A client that came back is not locked out by its own dead connection."""
    session = http.open()
    first = session.get()
    first.next_chunk()
    second = session.get()
    assert list(first.messages()) == []
    first.close()
    second.next_chunk()
    server.notify("notifications/x")
    assert second.next_message()["method"] == "notifications/x"
    second.close()


def test_a_get_must_accept_event_streams(http: Driver) -> None:
    """A browser is told what it found."""
    session = http.open()
    answer = http.send("GET", headers={**session.headers, "Accept": "text/html"})
    assert answer.status == 406
    assert "MCP" in answer.json["error"]["message"]


def test_s21_streams_come_and_go_without_ending_the_session(server: Server, http: Driver) -> None:
    """Whoever closes them."""
    session = http.open()
    host = Host()
    for leave in (False, True):
        stream = session.get(environ={"raxol_sync.host": host} if leave else None)
        stream.next_chunk()
        if leave:
            host.leave()
            assert list(stream.messages()) == []
        stream.close()
    assert session.post(req("ping")).status == 200
    assert server.stats().connections == 1


def test_streams_have_a_bound(server: Server) -> None:
    """503 with Retry-After, for GET too."""
    http = driver_of(server, max_streams=1)
    session, other = http.open(), http.open()
    stream = session.get()
    refused = other.get()
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    stream.close()
    again = other.get()
    assert again.is_stream
    again.close()


# ---------------------------------------------------------------- what the server asks


def test_a_question_goes_out_on_the_stream_of_its_call(server: Server, http: Driver) -> None:
    """And is answered by a POST of its own."""

    @server.tool
    def greet(context: Context) -> str:
        answer = context.elicit("Who?", {"type": "object", "properties": {"n": {"type": "string"}}})
        return f"{answer.action} {(answer.content or {}).get('n')}"

    session = http.open(elicitation={})
    answer = session.post(call("greet", id=3))
    question = answer.next_message()
    assert question["method"] == "elicitation/create"
    other = http.open(elicitation={})
    reply = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
    assert other.post(reply).status == 202  # it is not asked: nothing happens (row S36)
    assert http.post(reply).status == 202
    reply["result"] = {"action": "accept", "content": {"n": "Ann"}}
    assert session.post(reply).status == 202
    last = answer.next_message()
    assert last["result"]["content"][0]["text"] == "accept Ann"
    answer.close()


def test_s34_an_approval_is_asked_for_on_the_stream_of_its_call() -> None:
    """Over HTTP a call is parked too; its POST goes on as a stream."""

    def authorizer(name: str, arguments: object, context: object) -> object:
        return Ask("Sure?") if name == "drop" else ALLOW

    server = Server("http", authorizer=authorizer, authorizer_source="configured")
    with server:

        @server.tool
        def drop() -> str:
            return "dropped"

        session = driver_of(server).open(elicitation={})
        answer = session.post(call("drop"))
        question = answer.next_message()
        assert server.stats().parked == 1
        yes = {"action": "accept", "content": {"approve": True}}
        session.post({"jsonrpc": "2.0", "id": question["id"], "result": yes})
        assert answer.next_message()["result"]["content"][0]["text"] == "dropped"
        answer.close()


def test_a_broken_answer_ends_the_question(server: Server, http: Driver) -> None:
    """It is 400, and whoever waits for it need not wait on."""

    @server.tool
    def greet(context: Context) -> str:
        return context.elicit("Who?", {"type": "object", "properties": {}}).action

    session = http.open(elicitation={})
    answer = session.post(call("greet", id=3))
    question = answer.next_message()
    broken = {"jsonrpc": "2.0", "id": question["id"], "result": 7}
    assert session.post(broken).status == 400
    assert answer.next_message()["error"]["code"] == -32600
    answer.close()


def test_without_a_place_a_question_cannot_be_asked(server: Server) -> None:
    """The call is cancelled and refused: 503."""

    @server.tool
    def greet(context: Context) -> str:
        return context.elicit("Who?", {"type": "object", "properties": {}}).action

    session = driver_of(server, max_streams=0).open(elicitation={})
    answer = session.post(call("greet", id=3))
    assert (answer.status, answer.code) == (503, -31429)
    eventually(lambda: server.stats().in_flight == 0)


# ---------------------------------------------------------------- a client that leaves


def test_a_legacy_client_that_leaves_cancels_nothing(server: Server, http: Driver) -> None:
    """It may have lost its connection, or only said that it sends no more: it gets its answer."""
    gate, finished = Gate(), threading.Event()

    @server.tool
    def work(context: Context) -> str:
        gate()
        if not context.cancelled:
            finished.set()
        return "done"

    session, host = http.open(), Host()
    pending = in_thread(lambda: session.post(call("work"), environ={"raxol_sync.host": host}))
    gate.wait_entered()
    host.leave()
    gate.open()
    assert finished.wait(WAIT)
    assert pending.result().json["result"]["content"][0]["text"] == "done"


def _accepts(http: Driver, accept: str | None) -> int:
    headers: dict[str, str] = {"Content-Type": "application/json"}
    if accept is not None:
        headers["Accept"] = accept
    return http.send("POST", body=b"{", headers=headers).status


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (BOTH, 400),
        (None, 400),
        ("*/*", 400),
        ("application/*;q=0.5, text/*", 400),
        ("application/json", 406),
        ("text/event-stream", 406),
        ("application/json, text/event-stream;q=0", 406),
        ("*/*, text/event-stream;q=0.0", 406),
        ("text/html", 406),
        (";;,,", 406),
    ],
)
def test_both_media_types_must_be_acceptable(http: Driver, accept: str | None, status: int) -> None:
    """406 otherwise; the body (400 here) is looked at after."""
    assert _accepts(http, accept) == status


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 202),
        ("Application/JSON; charset=UTF-8", 202),
        ('application/json; charset="utf-8"', 202),
        ("application/json; charset=latin-1", 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
        (None, 415),
    ],
)
def test_the_content_must_be_json(http: Driver, kind: str | None, status: int) -> None:
    """415 otherwise: a form of a foreign page cannot be sent as JSON."""
    message: Json = note("notifications/x")
    answer = http.post(message, environ={"CONTENT_TYPE": kind})
    assert answer.status == status
