"""Legacy sessions over HTTP: who opens them, when they end, what goes without one."""

from __future__ import annotations

import pytest

from raxol_sync import Context, Server
from raxol_sync.server.http import exchange, sessions
from tests.server.helpers import (
    WAIT,
    call,
    eventually,
    gated,
    initialize,
    note,
    req,
)
from tests.server.http.driver import Driver, driver_of, in_thread

REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


# ---------------------------------------------------------------- sessions


@pytest.mark.parametrize("revision", REVISIONS)
def test_s21_initialize_begins_a_session_and_delete_ends_it(
    server: Server, http: Driver, revision: str
) -> None:
    """One session is one connection; after its end its id is nobody's: 404."""
    session = http.open(revision)
    assert server.stats().connections == 1
    answer = session.post(call("echo", {"text": "hi"}))
    assert answer.json["result"]["content"][0]["text"] == "hi"
    assert session.delete().status == 204
    assert server.stats().connections == 0
    for late in (session.post(req("ping")), session.get(), session.delete()):
        assert (late.status, late.code) == (404, -32600)
        assert "initialize" in late.json["error"]["message"]


@pytest.mark.parametrize("streaming", [False, True])
def test_s21_the_end_of_a_session_ends_what_it_has_outstanding(
    server: Server, http: Driver, streaming: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A POST that waits gets 404, a stream its end; the callback is told to stop."""
    monkeypatch.setattr(exchange, "SILENT", 0.03 if streaming else WAIT)
    gate = gated(server)
    session = http.open()
    pending = in_thread(lambda: session.post(call("wait")))
    gate.wait_entered()
    answer = pending.result() if streaming else None
    assert session.delete().status == 204
    if answer is not None:
        assert [m["error"]["code"] for m in answer.messages()] == [-32800]
        answer.close()
    else:
        assert pending.result().status == 404
    gate.open()
    eventually(lambda: server.stats().in_flight == 0)


def test_a_request_that_comes_with_its_sessions_end_leaves_nothing(
    server: Server, http: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between being let in and being handled."""
    session = http.open()
    table = http.app._service.sessions
    enter = table.enter

    def enter_and_end(session_id: str, principal: object, **more: bool) -> object:
        found = enter(session_id, principal, **more)
        if found is not None:
            table.end(found)
        return found

    monkeypatch.setattr(table, "enter", enter_and_end)
    assert session.post(req("logging/setLevel", {"level": "debug"})).status == 404
    assert server.stats().connections == 0
    assert server._engine.connections.all() == []


def test_a_session_that_ends_is_not_found_before_its_requests_are_dropped(
    server: Server, http: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that those who wait in it can tell why."""
    session = http.open()
    table, engine = http.app._service.sessions, server._engine
    end, seen = engine.end_connection, []

    def end_connection(conn: object) -> None:
        seen.append((len(table), table.enter(session.id, None)))
        end(conn)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "end_connection", end_connection)
    session.delete()
    assert seen[0] == (0, None)


def test_session_ids_are_unguessable_and_legal_in_headers(http: Driver) -> None:
    """256 bits, visible ASCII, never the same."""
    ids = {http.open().id for _ in range(20)}
    assert len(ids) == 20
    assert all(len(i) >= 43 and i.isascii() and i.isprintable() and " " not in i for i in ids)


def test_a_session_never_shows_its_id(server: Server, http: Driver) -> None:
    """Logs and telemetry get a number."""
    session = http.open()
    seen: list[object] = []

    @server.tool
    def who(context: Context) -> str:
        seen.append(context.conn_id)
        return repr(context.conn_id)

    text = session.post(call("who")).json["result"]["content"][0]["text"]
    assert session.id not in text
    assert session.id not in str(seen[0])


def test_a_failed_initialize_leaves_no_session(server: Server, http: Driver) -> None:
    """And gives out no id."""
    answer = http.post(req("initialize", {"protocolVersion": 7}))
    assert (answer.status, answer.code) == (200, -32602)
    assert "mcp-session-id" not in answer.headers
    assert server.stats().connections == 0


def test_initialize_may_carry_headers_of_later_requests(http: Driver) -> None:
    """Clients that always send them are served."""
    headers = {"MCP-Protocol-Version": "2025-11-25", "Mcp-Method": "initialize"}
    assert http.post(initialize(), headers).status == 200


def test_sessions_are_bounded_and_the_idle_one_makes_room(server: Server) -> None:
    """The one that idles longest goes; while all are in use a newcomer is refused."""
    gate = gated(server)
    http = driver_of(server, max_sessions=2)
    first, second = http.open(), http.open()
    assert first.post(req("ping")).status == 200  # so that the second idles longer
    third = http.open()
    assert second.post(req("ping")).status == 404
    pending = [in_thread(lambda s=s: s.post(call("wait"))) for s in (first, third)]  # type: ignore[misc]
    gate.wait_entered(2)
    refused = http.post(initialize(id=5))
    assert (refused.status, refused.code, refused.json["id"]) == (503, -31429, 5)
    assert refused.headers["retry-after"] == "1"
    gate.open()
    for one in pending:
        assert one.result().status == 200
    assert server.stats().connections == 2


def test_one_principal_cannot_crowd_out_another(server: Server) -> None:
    """Who has the most sessions loses one."""
    http = driver_of(server, max_sessions=3, authenticate=lambda environ: environ["HTTP_X_USER"])
    ann = Driver(http.app, HTTP_X_USER="ann").open()
    for _ in range(5):
        Driver(http.app, HTTP_X_USER="bob").open()
    assert Driver(http.app, HTTP_X_USER="ann").post(req("ping"), ann.headers).status == 200


def test_idle_sessions_end(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """By themselves, without anybody asking; one with an open stream does not idle."""
    monkeypatch.setattr(sessions, "_SWEEP", 0.01)
    http = driver_of(server, session_idle_timeout=0.1)
    idle, open_ = http.open(), http.open()
    stream = open_.get()
    stream.next_chunk()
    eventually(lambda: server.stats().connections == 1)
    assert idle.post(req("ping")).status == 404
    assert open_.post(req("ping")).status == 200
    stream.close()
    eventually(lambda: server.stats().connections == 0)


def test_a_session_is_its_principals(server: Server) -> None:
    """To anybody else there is no such session."""
    http = driver_of(server, authenticate=lambda environ: environ["HTTP_X_USER"])
    ann, bob = (Driver(http.app, HTTP_X_USER=user) for user in ("ann", "bob"))
    session = ann.open()
    for stolen in (
        bob.post(req("ping"), session.headers),
        bob.send("DELETE", headers=session.headers),
        bob.send("GET", headers={**session.headers, "Accept": "text/event-stream"}),
    ):
        assert stolen.status == 404
    assert session.post(req("ping")).status == 200


def test_s51_a_closed_server_has_ended_its_sessions(server: Server, http: Driver) -> None:
    """Their streams end, and what comes after is refused."""
    session = http.open()
    stream = session.get()
    stream.next_chunk()
    server.close()
    assert list(stream.messages()) == []
    stream.close()
    assert session.post(req("ping")).status == 503
    assert http.send("GET", "/health").status == 503


def test_the_application_may_close_alone_and_running_calls_are_answered(
    server: Server, http: Driver
) -> None:
    """No new requests; what runs is answered; then the sessions are gone."""
    gate = gated(server)
    session, idle = http.open(), http.open()
    stream = idle.get()
    stream.next_chunk()
    pending = in_thread(lambda: session.post(call("wait")))
    gate.wait_entered()
    http.app.close()
    assert list(stream.messages()) == []
    stream.close()
    assert session.post(req("ping")).status == 503
    gate.open()
    assert pending.result().json["result"]["content"][0]["text"] == "through"
    assert server.stats().connections == 0
    assert server.handle_message(req("ping"), "c") is not None


@pytest.mark.parametrize("moment", ["attach", "table"])
def test_s51_a_session_that_begins_while_all_closes(
    server: Server, http: Driver, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused, and takes no place."""
    engine, service = server._engine, http.app._service
    attach, opens = engine.attach, service.sessions.open

    def closed_first(*args: object, **options: object) -> object:
        server.close()
        return attach(*args, **options)  # type: ignore[arg-type]

    def table_closed_first(*args: object, **options: object) -> object:
        service.sessions.close()
        return opens(*args, **options)

    if moment == "attach":
        monkeypatch.setattr(engine, "attach", closed_first)
    else:
        monkeypatch.setattr(service.sessions, "open", table_closed_first)
    assert http.post(initialize()).status == 503
    service.closed = False
    with monkeypatch.context() as patch:
        patch.setattr(type(engine), "closed", False)
        assert http.send("GET", "/sse", headers={"Accept": "text/event-stream"}).status == 503
    assert len(service.sessions) == 0
    assert service.places.open == 0


def test_a_session_without_a_thread_for_its_deadline(
    server: Server, http: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins all the same; the next one tries again."""

    def none(*_: object) -> None:
        raise RuntimeError("no thread")

    with monkeypatch.context() as patch:
        patch.setattr(server._engine, "later", none)
        http.open()
    assert not http.app._service.sessions._sweeping
    http.open()
    assert http.app._service.sessions._sweeping


def test_sessions_may_idle_for_ever(server: Server) -> None:
    """Then nothing looks for them."""
    http = driver_of(server, session_idle_timeout=None)
    session = http.open()
    assert not http.app._service.sessions._sweeping
    assert session.post(req("ping")).status == 200


# ---------------------------------------------------------------- without a session


def test_s24_without_a_session_requests_are_served_and_nothing_is_kept(
    server: Server, http: Driver
) -> None:
    """Each on a connection of its own."""
    assert http.post(call("echo", {"text": "x"})).json["result"]["content"][0]["text"] == "x"
    assert http.post(req("logging/setLevel", {"level": "debug"})).json["result"] == {}
    assert http.post(req("resources/subscribe", {"uri": "a:b"})).json["result"] == {}
    assert http.post(note("notifications/initialized")).status == 202
    assert http.post({"jsonrpc": "2.0", "id": "no-one-asked", "result": {}}).status == 202
    stats = server.stats()
    assert (stats.connections, stats.subscriptions, stats.capabilities) == (0, 0, 0)


def test_sessions_can_be_turned_off(server: Server) -> None:
    """For several processes without stickiness: `initialize` is answered, no id is given."""
    http = driver_of(server, max_sessions=0)
    answer = http.post(initialize())
    assert answer.json["result"]["protocolVersion"] == "2025-11-25"
    assert "mcp-session-id" not in answer.headers
    assert http.post(req("tools/list")).json["result"] == {"tools": []}
    assert http.send("GET", headers={"Accept": "text/event-stream"}).status == 405
    assert http.send("GET", "/sse", headers={"Accept": "text/event-stream"}).status == 404
    stats = server.stats()
    assert (stats.connections, stats.capabilities) == (0, 0)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_get_and_delete_need_a_session(http: Driver, method: str) -> None:
    """Without one the endpoint takes POST only."""
    answer = http.send(method, headers={"Accept": "text/event-stream"})
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
