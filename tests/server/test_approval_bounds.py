"""How many calls may wait for an approval, and who makes room (rows S15, S38 to S41)."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest

from raxol_sync import Server
from tests.server.approvals import NO, YES, Person, denial_of, idle, wiping
from tests.server.helpers import WAIT, Json, ask, call, eventually, initialize, req, text


def test_s38_a_share_above_the_total_is_refused() -> None:
    """At construction, naming both; the default share of 32 too."""
    shares: list[dict[str, Any]] = [{"max_parked_elicitations": 5}, {}]
    for share in shares:
        with pytest.raises(ValueError, match="max_parked_elicitations"):
            Server(max_parked_elicitations_total=4, **share)
    Server(max_parked_elicitations=4, max_parked_elicitations_total=4).close()


def test_s39_past_the_connections_cap_a_call_is_denied() -> None:
    """In those words; the ones before stay parked, and other connections are not touched."""
    server, _ = wiping(max_parked_elicitations=2, max_parked_elicitations_total=2)
    with server:
        Person(server)
        kept = [server.request(call("wipe", {"disk": n}, n), "c") for n in range(2)]
        eventually(lambda: server.stats().parked == 2)
        words = denial_of(ask(server, call("wipe", {"disk": 9}, 9)))
        assert words["detail"] == "too many elicitations pending"
        assert not any(future.done() for future in kept)


def test_s40_a_full_server_makes_room_at_the_cost_of_the_fullest() -> None:
    """Its oldest call is denied, to its own connection; who holds as many is refused himself."""
    server, _ = wiping(max_parked_elicitations=2, max_parked_elicitations_total=2)
    with server:
        greedy, modest = Person(server), Person(server, "m")
        for n in range(2):
            assert server.handle_message(call("wipe", {"disk": n}, n), "c") is None
            greedy.questions(n + 1)
        assert server.handle_message(call("wipe", {"disk": 5}, 50), "m") is None
        (response,) = greedy.responses()
        assert response["id"] == 0
        assert denial_of(response)["detail"] == "too many elicitations pending on this server"
        assert server.stats().parked_by_connection == {"c": 1, "m": 1}
        words = denial_of(ask(server, call("wipe", {"disk": 6}, 51), "m"))
        assert words["detail"] == "too many elicitations pending on this server"
        modest.answer(modest.questions()[0])
        assert text(modest.responses()[0]) == "wiped 5"
        greedy.answer(greedy.questions(2)[0])  # the victim's: too late
        greedy.answer(greedy.questions(2)[1], NO)
        assert [r["id"] for r in greedy.responses(2)] == [0, 1]
        idle(server)


def test_s41_many_parked_calls_have_one_timer_and_no_threads() -> None:
    """256 parked calls on 8 connections cost one armed timer."""
    server, _ = wiping(max_in_flight=1)  # else one that is not idle yet makes the next a thread
    with server:
        people = [Person(server, n) for n in range(8)]
        before = threading.active_count()
        for person, n in itertools.product(people, range(32)):
            server.request(call("wipe", {"disk": n}, n), person.conn_id)
            eventually(lambda: server.stats().in_flight == 0)
        assert server.stats().parked == 256
        # One worker, the timer, the delivery and the owners' watcher at most came with them.
        assert threading.active_count() <= before + 4
        names = [t.name for t in threading.enumerate()]
        assert names.count("raxol-sync-timer") == 1
        server.handle_message(req("ping"), 0)


def test_s15_an_approval_right_after_parking_is_not_busy() -> None:
    """The slot of a parked call is free before its question can be answered, also with one."""
    server, wiped = wiping(max_in_flight=1)
    with server:
        answered: list[bool] = []

        def at_once(message: Json) -> None:
            if message.get("method") == "elicitation/create":
                reply = {"jsonrpc": "2.0", "id": message["id"], "result": YES}
                server.handle_message(reply, "c")
                answered.append(True)

        server.subscribe(at_once, "c")
        ask(server, initialize(elicitation={}), "c")
        for n in range(50):
            future = server.request(call("wipe", {"disk": n}, n), "c")
            assert text(future.result(WAIT)) == f"wiped {n}"
        assert wiped == list(range(50))
        idle(server)
