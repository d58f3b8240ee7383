"""Several worker processes behind one port: what needs no stickiness, and what says so clearly."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Peers
from tests.hosts.programs.gunicorn_stop import READY
from tests.hosts.serving import SEVERAL, Host, each_of, gunicorn, running, serve
from tests.hosts.talk import Talk, eventually

pytestmark = pytest.mark.peers

TURN_SECONDS = 10.0  # for two processes to have had a turn; the last one may still be starting
CAN_ELICIT: dict[str, Any] = {"elicitation": {"form": {}}}

served = each_of(SEVERAL)


def turns() -> Iterator[None]:
    """Yield until the time is up in which two processes must have had a turn."""
    deadline = time.monotonic() + TURN_SECONDS
    while time.monotonic() < deadline:
        yield


def test_s24_any_worker_answers_a_request_without_a_session(talk: Talk) -> None:
    """All of them are right, and more than one has a turn."""
    processes: set[int] = set()
    for _ in turns():
        answer = talk.call("seen")
        assert answer.status == 200
        processes.add(answer.structured["process"])
        if len(processes) > 1:
            break
    assert len(processes) > 1


def test_s42_a_round_is_finished_by_another_worker(talk: Talk) -> None:
    """They share `request_state_key`; what one has asked, another one takes the answer to."""
    pairs = []
    for _ in turns():
        first = talk.call("greet", capabilities=CAN_ELICIT, progress=True)
        assert first.result["resultType"] == "input_required"
        (key,) = first.result["inputRequests"]
        second = talk.call(
            "greet",
            capabilities=CAN_ELICIT,
            progress=True,
            inputResponses={key: {"action": "accept", "content": {"name": "Ada"}}},
            requestState=first.result["requestState"],
        )
        assert second.text == "hello Ada"
        # The tool reports its process as progress.
        pairs.append([a.messages[0]["params"]["progress"] for a in (first, second)])
        if pairs[-1][0] != pairs[-1][1]:
            return
    raise AssertionError(f"one process had all the turns: {pairs}")


def test_s48_a_session_that_lives_in_another_worker_is_a_404(talk: Talk) -> None:
    """Right or clearly refused, and never another worker's idea of it."""
    session = talk.session(CAN_ELICIT)
    right, refused = set(), 0
    for _ in turns():
        answer = session.call("seen")
        if answer.status == 200:
            right.add(answer.structured["process"])
        else:
            assert answer.status == 404
            assert "session" in answer.message["error"]["message"].lower()
            refused += 1
        if right and refused:
            break
    assert len(right) == 1
    assert refused


def test_s24_clients_of_any_age_are_served_without_sessions(peers: Peers, tmp_path: Path) -> None:
    """With `max_sessions=0` any worker is the right one, also for a revision with sessions."""
    host = gunicorn("sessionless", "--workers", "3", app="sessionless:app")
    with running(lambda port: host.command(peers, port), host, tmp_path) as served:
        session = served.talk.session()
        assert not session.name
        processes: set[int] = set()
        for _ in turns():
            processes.add(session.call("seen").structured["process"])
            if len(processes) > 1:
                break
        assert len(processes) > 1
        counted = session.call("count", {"steps": 2}, progress=True)
        assert [m["params"]["progress"] for m in counted.messages[:-1]] == [1, 2]
        with contextlib.closing(session.listen()) as stream:
            assert stream.status == 405


def test_s50_a_client_that_leaves_cancels_its_call(talk: Talk) -> None:
    """Whichever worker has it: none is left with a call that runs."""
    for _ in range(3):
        params = {"name": "hang", "arguments": {}}
        with contextlib.closing(talk.open("tools/call", params, progress=True)) as stream:
            assert stream.next()["method"] == "notifications/progress"

    def quiet() -> bool:
        return all(talk.seen()["in_flight"] == 1 for _ in range(10))

    assert eventually(quiet, 5.0)


@pytest.mark.parametrize("host", SEVERAL, ids=lambda host: host.name)
def test_s51_it_stops_with_streams_open(host: Host, peers: Peers, tmp_path: Path) -> None:
    """Some listeners: all workers end in bounded time."""
    with serve(host, peers, tmp_path) as served, contextlib.ExitStack() as stack:
        if host.program == "gunicorn":  # one that is told while it starts never hears of it
            assert eventually(lambda: served.log.read_text().count(READY) == 3, TURN_SECONDS)
        for _ in range(6):
            stream = served.talk.open("subscriptions/listen", {"notifications": {}})
            stack.enter_context(contextlib.closing(stream))
            assert stream.next()["method"] == "notifications/subscriptions/acknowledged"
        served.stop()


def test_a_server_that_was_used_before_the_fork_says_so(peers: Peers, tmp_path: Path) -> None:
    """Its threads are the parent's: each worker refuses, instead of waiting for ever."""
    host = gunicorn("used", "--workers", "1", "--preload", app="used:app")
    with running(lambda port: host.command(peers, port), host, tmp_path, health=503) as served:
        refused = served.talk.call("echo", {"text": "x"})
        assert refused.status == 503
        assert "fork" in refused.message["error"]["message"]
