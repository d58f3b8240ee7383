"""Requests without a session: whose they are, whose share they take (row S24)."""

from __future__ import annotations

import logging

import pytest

from raxol_sync import Context, Server
from tests.server.helpers import call, gated, req
from tests.server.http.driver import Driver, driver_of, in_thread


def test_s24_each_request_has_a_connection_of_its_own(server: Server, http: Driver) -> None:
    """It ends with the request and is never the default one."""
    seen: list[object] = []

    @server.tool
    def who(context: Context) -> str:
        seen.append(context.conn_id)
        return "ok"

    for _ in range(2):
        http.call("who")
    assert seen[0] is not seen[1]
    assert not {str(conn_id) for conn_id in seen} & {"DEFAULT"}
    stats = server.stats()
    assert (stats.connections, stats.capabilities, stats.in_flight_by_connection) == (0, 0, {})


def test_s24_the_same_id_twice_at_once(server: Server) -> None:
    """Ids of different requests have nothing to do with each other."""
    gate = gated(server)
    http = driver_of(server)
    pending = [in_thread(lambda: http.call("wait", id=1)) for _ in range(3)]
    gate.wait_entered(3)
    gate.open()
    assert [p.result().json["result"]["isError"] for p in pending] == [False] * 3


def test_s24_without_a_principal_only_the_total_binds() -> None:
    """Requests that nobody vouches for share no connection's bound."""
    with Server("http", max_in_flight=3, max_in_flight_per_connection=1) as server:
        gate = gated(server)
        http = driver_of(server)
        pending = [in_thread(lambda: http.call("wait")) for _ in range(3)]
        gate.wait_entered(3)
        refused = http.call("wait")
        assert (refused.status, refused.code) == (200, -31429)
        assert refused.json["error"]["data"]["scope"] == "server"
        gate.open()
        for one in pending:
            assert one.result().status == 200


def test_s24_a_share_counts_per_principal() -> None:
    """One person's requests take one person's share, however many connections they come over."""
    with Server("http", max_in_flight=3, max_in_flight_per_connection=1) as server:
        gate = gated(server)
        http = driver_of(server, authenticate=lambda environ: environ["HTTP_X_USER"])
        pending = [
            in_thread(lambda user=user: http.call("wait", headers={"X-User": user}))  # type: ignore[misc]
            for user in ("ann", "bob")
        ]
        gate.wait_entered(2)
        assert server.stats().in_flight_by_connection == {
            ("principal", "ann"): 1,
            ("principal", "bob"): 1,
        }
        refused = http.call("wait", headers={"X-User": "ann"})
        assert refused.json["error"]["data"] == {"error": "busy", "scope": "connection", "limit": 1}
        gate.open()
        for one in pending:
            assert one.result().status == 200
    assert server.stats().in_flight_by_connection == {}


def test_no_secret_is_logged(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """Neither tokens nor session ids, whatever goes wrong."""
    told: list[str] = []
    secret = "t0p-secret"
    with (
        caplog.at_level(logging.DEBUG),
        Server("told", telemetry=lambda event, facts: told.append(repr(facts))) as server,
    ):

        @server.tool
        def fails() -> None:
            raise ValueError

        http = driver_of(server, authenticate=lambda environ: environ["HTTP_AUTHORIZATION"][:3])
        http = Driver(http.app, HTTP_AUTHORIZATION=secret)
        session = http.open()
        session.post(call("fails"))
        session.post(b"{")
        stream = session.get()
        stream.close()
        session.get(last="x")
        http.call("fails")
        http.modern("tools/call", {"name": "fails"}, headers={"Mcp-Name": secret})
        http.post(req("ping"), {"Mcp-Session-Id": session.id + "x"})
        session.delete()
        session.post(req("ping"))
    assert told
    for text in (caplog.text, *told):
        assert secret not in text
        assert session.id not in text
