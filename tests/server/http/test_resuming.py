"""Event ids, Last-Event-ID, and streams that close early so that nobody holds a connection."""

from __future__ import annotations

import threading

import pytest

from raxol_sync import Context, Server
from raxol_sync.server import channel
from raxol_sync.server.http import exchange, sessions, store
from tests.server.helpers import WAIT, Gate, call, eventually, gated, req, steps
from tests.server.http.driver import Driver, Host, driver_of, in_thread


@pytest.fixture
def http(server: Server, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Of a server whose answers become streams at once."""
    monkeypatch.setattr(exchange, "SILENT", 0.03)
    return driver_of(server)


def test_a_stream_begins_with_an_id_to_come_back_with(server: Server, http: Driver) -> None:
    """Since 2025-11-25: before there is anything to say."""
    gate = gated(server)
    answer = http.open().post(call("wait"))
    first = answer.next_chunk()
    assert first == b"id: 1-0\nretry: 1000\ndata: \n\n"
    gate.open()
    answer.close()


def test_older_clients_are_not_sent_events_without_data(server: Server, http: Driver) -> None:
    """Some would read them as messages."""
    gate = gated(server)
    answer = http.open("2025-06-18").post(call("wait"))
    gate.open()
    (event,) = answer.events()
    assert event["id"] == "1-1"
    answer.close()


def test_a_get_stream_opens_at_once_in_every_revision(server: Server, http: Driver) -> None:
    """With a comment where an event without data would be misread."""
    for revision in ("2025-06-18", "2025-03-26"):
        session = http.open(revision)
        for last in (None, "0-0"):
            stream = session.get(last=last)
            assert stream.next_chunk().startswith(b":")
            stream.close()


def test_a_broken_stream_is_gone_on_with(server: Server, http: Driver) -> None:
    """From the event after the last one that arrived, with the same ids."""
    gate = Gate()

    @server.tool
    def work(context: Context) -> str:
        for step in range(4):
            context.progress(step + 1)
        gate()
        return "done"

    session = http.open()
    answer = session.post(call("work", _meta={"progressToken": 1}))
    events = answer.events()
    seen = [next(events) for _ in range(3)]
    answer.close()  # the connection broke
    gate.open()
    again = session.get(last=seen[-1]["id"])
    rest = list(again.events())
    ids = [event["id"] for event in [*seen, *rest]]
    assert ids == ["1-0", "1-1", "1-2", "1-3", "1-4", "1-5"]
    assert '"done"' in rest[-1]["data"]
    again.close()
    once_more = session.get(last="1-0")
    assert [event["id"] for event in once_more.events()] == ids[1:]
    once_more.close()


def test_the_get_stream_is_gone_on_with_too(server: Server, http: Driver) -> None:
    """It is stream 0."""
    session = http.open()
    stream = session.get()
    for number in range(4):
        server.notify("notifications/x", {"n": number})
    events = [event for _, event in zip(range(5), stream.events(), strict=False)]
    stream.close()
    server.notify("notifications/x", {"n": 4})
    again = session.get(last=events[2]["id"])
    found = again.messages()
    assert [next(found)["params"]["n"] for _ in range(3)] == [2, 3, 4]
    again.close()


def test_a_client_that_comes_back_displaces_its_dead_connection(
    server: Server, http: Driver
) -> None:
    """The old stream ends; the new one has everything."""
    gate = gated(server)
    session = http.open()
    old = session.post(call("wait"))
    old.next_chunk()
    new = session.get(last="1-0")
    assert list(old.messages()) == []
    old.close()
    gate.open()
    assert new.next_message()["result"]["isError"] is False
    new.close()


@pytest.mark.parametrize("last", ["7-1", "x", "", "1", "-1-1", "1-1-1", "9" * 30 + "-1", "ü-1"])
def test_an_unknown_event_is_400(server: Server, http: Driver, last: str) -> None:
    """Nothing of another stream is replayed."""
    session = http.open()
    assert session.get(last=last).status == 400


def test_another_session_cannot_fetch_it(server: Server, http: Driver) -> None:
    """Numbers of streams are a session's own."""
    gate = gated(server)
    session, other = http.open(), http.open()
    answer = session.post(call("wait"))
    answer.close()
    gate.open()
    assert other.get(last="1-0").status == 400


def test_a_stream_closes_early_and_its_client_polls(server: Server, http: Driver) -> None:
    """The first event tells when to come back; then the answer is there."""
    gate = Gate()

    @server.tool
    def work(context: Context) -> str:
        context.close_stream(retry=0.25)
        gate()
        return "done"

    session = http.open()
    answer = session.post(call("work"))
    events = list(answer.events())
    assert events[0] == {"id": "1-0", "retry": "250", "data": ""}
    answer.close()
    again = session.get(last="1-0")
    gate.open()
    assert again.next_message()["result"]["content"][0]["text"] == "done"
    assert list(again.events()) == []
    again.close()


def test_a_stream_that_has_begun_closes_with_a_retry(server: Server, http: Driver) -> None:
    """And may do so more than once."""
    gate, second = Gate(), Gate()

    @server.tool
    def work(context: Context) -> str:
        context.progress(1)
        gate()
        context.close_stream()
        second()
        context.close_stream(retry=2)
        return "done"

    session = http.open()
    answer = session.post(call("work", _meta={"progressToken": 1}))
    assert answer.next_message()["method"] == "notifications/progress"
    gate.open()
    assert list(answer.events()) == [{"retry": "1000"}]
    answer.close()
    again = session.get(last="1-1")
    second.open()
    ends = list(again.events())
    again.close()
    if ends == [{"retry": "2000"}]:  # else it was closed before it was opened again
        again = session.get(last="1-1")
        ends = list(again.events())
        again.close()
    assert '"done"' in ends[-1]["data"]


def test_closing_early_does_nothing_where_nobody_would_come_back(
    server: Server, http: Driver
) -> None:
    """In the stateless era, without a session, in older revisions, in process."""

    @server.tool
    def work(context: Context) -> str:
        context.close_stream(retry=1)
        return "done"

    answers = [
        http.call("work"),
        http.post(call("work")),
        http.open("2025-06-18").post(call("work")),
    ]
    for answer in answers:
        assert answer.json["result"]["content"][0]["text"] == "done"
    assert server.handle_message(call("work"), "c") is not None


def test_closing_early_without_a_place_for_a_stream(server: Server) -> None:
    """Nobody could come back to it: the answer is waited for."""
    gate = Gate()

    @server.tool
    def work(context: Context) -> str:
        context.close_stream()
        gate()
        context.close_stream()
        return "done"

    session = driver_of(server, max_streams=0).open()
    pending = in_thread(lambda: session.post(call("work")))
    gate.wait_entered()
    gate.open()
    assert pending.result().json["result"]["content"][0]["text"] == "done"


def test_what_is_kept_is_bounded(
    server: Server, http: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By stream, by session and in all; the oldest goes."""
    steps(server)
    monkeypatch.setattr(sessions, "MAX_RESUMABLE", 3)
    session = http.open()
    for number in range(6):
        answer = session.post(call("steps", {"n": 400}, id=number, _meta={"progressToken": 1}))
        list(answer.events())
        answer.close()
    assert session.get(last="1-0").status == 400
    again = session.get(last="6-0")
    kept = list(again.events())
    assert len(kept) == channel.KEPT_MESSAGES
    assert kept[-1]["id"] == "6-401"
    again.close()
    store_ = http.app._service.sessions.store
    assert 0 < store_.bytes < 3 * channel.KEPT_BYTES
    session.delete()
    assert store_.bytes == 0


def test_all_that_is_kept_has_one_bound(
    server: Server, http: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Undelivered answers count too, when they come."""
    gates = Gate()

    @server.tool
    def big(context: Context) -> str:
        context.progress(1)
        gates()
        return "x" * 100_000

    held: store.EventStore = http.app._service.sessions.store
    held._limit = 250_000
    settled, told = held.settled, threading.Semaphore(0)

    def settled_and_told(box: channel.Channel) -> None:
        settled(box)
        told.release()

    monkeypatch.setattr(held, "settled", settled_and_told)
    session = http.open()
    for number in range(4):
        answer = session.post(call("big", id=number, _meta={"progressToken": 1}))
        answer.next_chunk()
        answer.close()
    gates.open()
    for _ in range(4):
        assert told.acquire(timeout=WAIT)
    assert 0 < held.bytes <= 250_000
    answers = [session.get(last=f"{number}-1") for number in range(1, 5)]
    assert sorted(answer.status for answer in answers) == [200, 200, 400, 400]
    for answer in answers:
        if answer.is_stream:
            assert len(list(answer.messages())) == 1
            answer.close()


def test_unfetched_answers_have_a_bound_in_number_too(
    server: Server, http: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that never comes back for them costs no more than this."""
    monkeypatch.setattr(sessions, "MAX_RESUMABLE", 3)

    @server.tool
    def work(context: Context) -> str:
        context.progress(1)
        return "done"

    session = http.open()
    for number in range(8):
        session.post(call("work", id=number, _meta={"progressToken": 1})).close()
    eventually(lambda: server.stats().in_flight == 0)
    (held,) = http.app._service.sessions._by_id.values()
    assert len(held.streams) <= 4
    assert session.get(last="1-0").status == 400


def test_a_watched_client_that_leaves_may_come_back(server: Server, http: Driver) -> None:
    """The host tells that it left; its call goes on, its answer is kept."""
    gate, host = gated(server), Host()
    session = http.open()
    answer = session.post(call("wait"), environ={"raxol_sync.host": host})
    answer.next_chunk()
    host.leave()
    assert list(answer.events()) == []
    answer.close()
    gate.open()
    again = session.get(last="1-0")
    assert again.next_message()["result"]["isError"] is False
    again.close()
    assert session.post(req("ping")).status == 200
