"""The crew of the web server: threads that cannot be started lose no job and no thread."""

from __future__ import annotations

import threading

import pytest

from raxol_sync._deadline import Deadline
from raxol_sync.server.web.crew import Crew
from tests.server.web.raw import WAIT, until


def test_a_thread_that_cannot_be_started_while_another_becomes_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The idle one takes the job, and is there for the next one too."""
    crew = Crew("crew", 4, 30.0)
    begun, release = threading.Event(), threading.Event()

    def busy() -> None:
        begun.set()
        release.wait(WAIT)

    crew.put(busy)
    assert begun.wait(WAIT)
    start = threading.Thread.start

    def fail(self: threading.Thread) -> None:
        release.set()
        until(lambda: crew._idle == 1)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    second, third = threading.Event(), threading.Event()
    crew.put(second.set)
    monkeypatch.setattr(threading.Thread, "start", start)
    assert second.wait(WAIT)
    until(lambda: crew._idle == 1)
    crew.put(third.set)
    assert third.wait(WAIT)
    assert crew.size == 1
    crew.close()
    assert crew.join(Deadline(WAIT)) == []
