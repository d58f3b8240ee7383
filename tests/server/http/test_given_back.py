"""A client that has its answer finds free what the request held: places, sessions, streams."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from raxol_sync import Context, Server
from raxol_sync.server.http.streams import Places
from tests.server.helpers import WAIT, call, initialize, note, steps
from tests.server.http.driver import Answer, Driver, Host, Json, driver_of, in_thread

Ask = Callable[[], Answer]
LISTEN: tuple[str, Json] = ("subscriptions/listen", {"notifications": {}})


@pytest.fixture
def end() -> Iterator[ExitStack]:
    """Closes answers at the test's end: their hosts' threads come that late to it."""
    with ExitStack() as stack:
        yield stack


def narrow(server: Server, **options: int) -> Driver:
    """An application with one place for a stream, and the tool `steps`."""
    steps(server)
    return driver_of(server, **{"max_streams": 1, **options})


def asking(http: Driver, revision: str, host: Host | None = None) -> Ask:
    """What calls `steps` in a revision."""
    environ = None if host is None else {"raxol_sync.host": host}
    if revision == "2026-07-28":
        meta = {"progressToken": 1}
        return lambda: http.call("steps", {"n": 2}, meta=meta, environ=environ)
    session = http.open(revision)
    asked = call("steps", {"n": 2}, _meta={"progressToken": 1})
    return lambda: session.post(asked, environ=environ)


def read_to_the_answer(end: ExitStack, answer: Answer) -> None:
    """Read a stream as far as the response is in it, and not to its end."""
    end.callback(answer.close)
    assert answer.is_stream, answer.body
    assert any("result" in message for message in answer.messages())


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-06-18"])
def test_a_stream_s_place_is_free_once_its_answer_is_out(
    server: Server, end: ExitStack, revision: str
) -> None:
    """The next request of a client that has its answer streams again, here and at the host."""
    host = Host(1)
    ask = asking(narrow(server), revision, host)
    for _ in range(3):
        read_to_the_answer(end, ask())
        assert host.places == 1
    end.close()
    assert host.places == 1  # each was given back once


def test_a_cancelled_call_s_place_is_free_once_that_is_told(server: Server, end: ExitStack) -> None:
    """The words for a call without a response are a stream's last ones too."""
    http = narrow(server)
    cancelled = threading.Event()

    @server.tool
    def wait(context: Context) -> None:
        context.progress(1)
        assert cancelled.wait(WAIT)
        context.check_cancelled()

    session = http.open()
    answer = session.post(call("wait", id=5, _meta={"progressToken": 1}))
    end.callback(answer.close)
    assert session.post(note("notifications/cancelled", {"requestId": 5})).status == 202
    cancelled.set()
    assert any("error" in message for message in answer.messages())
    stream = session.get()
    assert stream.is_stream
    stream.close()


def test_a_session_is_idle_once_its_answer_is_out(server: Server, end: ExitStack) -> None:
    """With one place for a session the next `initialize` takes it."""
    http = narrow(server, max_sessions=1)
    read_to_the_answer(end, asking(http, "2025-11-25")())
    assert http.post(initialize()).status == 200


def test_a_client_that_left_a_stream_finds_its_place(server: Server, end: ExitStack) -> None:
    """At once, also if the thread that had the stream has not looked yet."""
    http = narrow(server)
    first, second = Host(1), Host(1)
    left = http.modern(*LISTEN, environ={"raxol_sync.host": first})
    left.next_message()
    first.leave()
    assert first.places == 1
    answer = http.modern(*LISTEN, environ={"raxol_sync.host": second})
    assert answer.is_stream
    end.callback(answer.close)
    left.close()
    assert second.places == 0  # the one that was left gave back its own place alone


def test_a_session_s_streams_have_ended_when_it_is_deleted(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DELETE is answered when their places are free: the next session's stream needs one."""
    http = narrow(server)
    session = http.open()
    stream = session.get()
    deleted = threading.Event()
    too_early: list[bool] = []
    give_back = Places.give_back

    def slowly(places: Places) -> None:
        too_early.append(deleted.wait(0.1))  # in vain: DELETE waits for this
        give_back(places)

    monkeypatch.setattr(Places, "give_back", slowly)
    reading = in_thread(lambda: list(stream.messages()))
    assert session.delete().status == 204
    deleted.set()
    reading.result()
    stream.close()
    monkeypatch.undo()
    assert too_early == [False]
    again = http.open().get()
    assert again.is_stream
    again.close()
