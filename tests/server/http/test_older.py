"""The HTTP+SSE transport of revision 2024-11-05: `GET /sse`, `POST /messages`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from raxol_sync import Context, Server
from raxol_sync.server import outbox
from tests.server.helpers import call, eventually, gated, initialize, note, req, steps
from tests.server.http.driver import Answer, Driver, Host, Json, driver_of

EVENTS = {"Accept": "text/event-stream"}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server("http") as server:
        steps(server)
        yield server


@pytest.fixture
def http(server: Server) -> Driver:
    return driver_of(server)


class Older:
    """A client of that transport."""

    def __init__(self, http: Driver, path: str = "/sse", **more: object) -> None:
        self.http = http
        self.stream: Answer = http.send("GET", path, headers=EVENTS, **more)  # type: ignore[arg-type]
        assert self.stream.is_stream
        self._events = self.stream.events()
        first = next(self._events)
        assert first["event"] == "endpoint"
        self.url = first["data"]

    def post(self, message: object, **more: object) -> Answer:
        """POST a message to where the first event said."""
        return self.http.post(message, {"Accept": "*/*"}, path=self.url, **more)

    def ask(self, message: Json) -> Json:
        """POST a request and take its response off the stream."""
        assert self.post(message).status == 202
        return self.stream.next_message()


def test_a_session_from_begin_to_end(server: Server, http: Driver) -> None:
    """The stream carries all answers; its end is the session's."""
    client = Older(http)
    assert client.url.startswith("/messages?session_id=")
    answer = client.ask(initialize("2024-11-05"))
    assert answer["result"]["protocolVersion"] == "2024-11-05"
    assert client.post(note("notifications/initialized")).status == 202
    assert client.ask(req("ping"))["result"] == {}
    client.post(call("steps", {"n": 2}, _meta={"progressToken": 1}))
    methods = [client.stream.next_message().get("method") for _ in range(3)]
    assert methods == ["notifications/progress", "notifications/progress", None]
    server.notify("notifications/x")
    assert client.stream.next_message()["method"] == "notifications/x"
    assert server.stats().connections == 1
    client.stream.close()
    assert server.stats().connections == 0
    assert client.post(req("ping")).status == 404


def test_s21_the_clients_end_is_the_sessions(server: Server, http: Driver) -> None:
    """Where the host tells, at once; what it had outstanding is dropped."""
    gate, host = gated(server), Host()
    client = Older(http, environ={"raxol_sync.host": host})
    client.ask(initialize("2024-11-05"))
    client.post(call("wait"))
    gate.wait_entered()
    host.leave()
    assert client.stream.next_chunk() == b""
    client.stream.close()
    gate.open()
    eventually(lambda: server.stats().in_flight == 0)
    assert server.stats().connections == 0


def test_a_question_and_its_answer(server: Server, http: Driver) -> None:
    """All goes over the one stream, and back by POST."""

    @server.tool
    def where(context: Context) -> str:
        return context.list_roots()[0].uri

    client = Older(http)
    client.ask(initialize("2024-11-05", roots={}))
    client.post(call("where"))
    question = client.stream.next_message()
    assert question["method"] == "roots/list"
    roots = {"roots": [{"uri": "file:///x"}]}
    client.post({"jsonrpc": "2.0", "id": question["id"], "result": roots})
    assert client.stream.next_message()["result"]["content"][0]["text"] == "file:///x"
    client.stream.close()


def test_its_ids_mean_nothing_to_the_endpoint(server: Server, http: Driver) -> None:
    """Nor the other way round."""
    client, session = Older(http), http.open()
    stolen = client.url.partition("=")[2]
    assert http.post(req("ping"), {"Mcp-Session-Id": stolen}).status == 404
    assert http.send("DELETE", headers={"Mcp-Session-Id": stolen}).status == 404
    assert http.post(req("ping"), path=f"/messages?session_id={session.id}").status == 404
    client.stream.close()


def test_what_cannot_be_read_is_refused(http: Driver) -> None:
    """The POST says so itself."""
    client = Older(http)
    for body, status in [(b"{", 400), (b"[]", 400), (b"[{}]", 400), (b"7", 400)]:
        assert client.post(body).status == status, body
    assert client.post(req("ping"), environ={"CONTENT_TYPE": "text/plain"}).status == 415
    for path in ("/messages", "/messages?session_id=", "/messages?session_id=x&y", "/messages?&="):
        assert http.post(req("ping"), path=path).status == 404
    client.stream.close()


def test_batches_of_the_one_revision_that_has_them(http: Driver) -> None:
    """Each member is answered on the stream."""
    client = Older(http)
    client.ask(initialize("2025-03-26"))
    assert client.post([req("ping", id=1), req("ping", id=2), {"id": 3}]).status == 202
    found = [client.stream.next_message() for _ in range(3)]
    assert {m.get("id") for m in found} == {1, 2, 3}
    client.stream.close()


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("POST", "/sse", "GET"), ("GET", "/messages", "POST"), ("PUT", "/mcp", "POST, GET, DELETE")],
)
def test_other_methods_are_not_allowed(http: Driver, method: str, path: str, allowed: str) -> None:
    """405, with what is."""
    answer = http.send(method, path)
    assert (answer.status, answer.headers["allow"]) == (405, allowed)


def test_it_needs_an_event_stream(http: Driver) -> None:
    """406 for others."""
    assert http.send("GET", "/sse", headers={"Accept": "application/json"}).status == 406


def test_s51_the_stream_ends_with_the_application(server: Server, http: Driver) -> None:
    """And the session with it."""
    client = Older(http)
    http.app.close()
    assert client.stream.next_chunk() == b""
    client.stream.close()
    assert server.stats().connections == 0
    assert http.send("GET", "/sse", headers=EVENTS).status == 503


def test_its_streams_and_sessions_count_too(server: Server) -> None:
    """And are given back."""
    for bound in ({"max_streams": 1}, {"max_sessions": 1}):
        http = driver_of(server, **bound)
        client = Older(http)
        assert http.send("GET", "/sse", headers=EVENTS).status == 503
        client.stream.close()
        Older(http).stream.close()


def test_s20_a_stream_that_is_not_read_ends_its_session(server: Server, http: Driver) -> None:
    """It is the session's only way out."""
    client = Older(http)
    client.ask(initialize("2024-11-05"))
    for number in range(outbox.MAX_MESSAGES + 1):
        server.notify("notifications/x", {"n": number})
    assert server.stats().connections == 0
    client.stream.close()


def test_mounted_its_address_is_below_the_mount(server: Server) -> None:
    """Whatever the mount's path is."""
    app = server.mount(lambda environ, start: [], "/é/mcp", require_authorization=False)
    http = Driver(app, path="/Ã©/mcp")
    client = Older(http, "/Ã©/mcp/sse")
    assert client.url.startswith("/%C3%A9/mcp/messages?session_id=")
    client.stream.close()
