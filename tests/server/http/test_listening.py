"""`subscriptions/listen` over HTTP, and the bound of event streams."""

from __future__ import annotations

import pytest

from raxol_sync import Server
from tests.server.helpers import SUBSCRIPTION, eventually, gated
from tests.server.http.driver import Driver, Host, Json, driver_of, in_thread


def test_a_listen_is_a_stream_of_what_it_asked_for(server: Server, http: Driver) -> None:
    """The acknowledgement comes first; every message names the subscription."""
    answer = http.modern(
        "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id=9
    )
    assert answer.is_stream
    first = answer.next_message()
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["notifications"] == {"toolsListChanged": True}

    @server.prompt
    def unheard() -> str:
        return "x"

    @server.tool
    def heard() -> str:
        return "x"

    changed = answer.next_message()
    assert changed["method"] == "notifications/tools/list_changed"
    assert changed["params"]["_meta"][SUBSCRIPTION] == 9
    answer.close()
    eventually(lambda: server.stats().listens == 0)


def test_a_client_that_leaves_ends_its_listen(server: Server, http: Driver) -> None:
    """At once, where the host tells."""
    host = Host()
    answer = http.modern(
        "subscriptions/listen", {"notifications": {}}, environ={"raxol_sync.host": host}
    )
    answer.next_message()
    assert server.stats().listens == 1
    host.leave()
    eventually(lambda: server.stats().listens == 0)
    assert answer.next_chunk() == b""
    answer.close()


@pytest.mark.parametrize("how", ["server", "app"])
def test_s51_a_listen_ends_with_its_result(server: Server, how: str) -> None:
    """When the server closes, and when only the application does."""
    http = driver_of(server)
    answer = http.modern("subscriptions/listen", {"notifications": {}}, id=4)
    answer.next_message()
    (server if how == "server" else http.app).close()
    last = answer.next_message()
    assert (last["id"], last["result"]["_meta"][SUBSCRIPTION]) == (4, 4)
    assert answer.next_chunk() == b""
    answer.close()
    refused = http.modern("server/discover")
    assert (refused.status, refused.code) == (503, -32603)


def test_streams_have_a_bound(server: Server) -> None:
    """Past it a listen is 503 with Retry-After; a place that is given back is free again."""
    http = driver_of(server, max_streams=2)
    filter_: Json = {"notifications": {}}
    taken = [http.modern("subscriptions/listen", filter_) for _ in range(2)]
    refused = http.modern("subscriptions/listen", filter_, id=3)
    assert (refused.status, refused.code) == (503, -31429)
    assert refused.headers["retry-after"] == "1"
    assert refused.json["id"] == 3
    for answer in taken:
        answer.close()
    answer = http.modern("subscriptions/listen", filter_)
    assert answer.is_stream
    answer.close()
    eventually(lambda: server.stats().listens == 0)


def test_a_listen_that_is_refused_takes_no_place(server: Server) -> None:
    """Its error is plain JSON."""
    http = driver_of(server, max_streams=1)
    for _ in range(2):
        assert http.modern("subscriptions/listen", {"notifications": 7}).code == -32602
    assert http.app._service.places.open == 0


def test_a_host_that_fails_to_start_an_answer_gets_the_place_back(server: Server) -> None:
    """It gets no iterable that it could close."""
    http = driver_of(server)

    def start_response(status: str, headers: object, exc_info: object = None) -> object:
        raise OSError("the client is gone")

    filter_: Json = {"notifications": {}}
    inner = http.app

    def app(environ: Json, _: object) -> object:
        return inner(environ, start_response)

    with pytest.raises(OSError, match="gone"):
        Driver(app).modern("subscriptions/listen", filter_, validate=False)
    assert inner._service.places.open == 0
    eventually(lambda: server.stats().listens == 0)


def test_a_stream_that_opens_while_the_application_closes_ends(server: Server) -> None:
    """Whoever comes first."""
    service = driver_of(server).app._service

    class Late:
        ended = 0

        def finish(self) -> None:
            self.ended += 1

    service.close()
    late = Late()
    service.opened(late)
    assert late.ended == 1


def test_the_hosts_bound_counts_too(server: Server) -> None:
    """And what was taken here is given back when the host refuses."""
    http = driver_of(server, max_streams=1)
    for _ in range(2):
        refused = http.modern(
            "subscriptions/listen", {"notifications": {}}, environ={"raxol_sync.host": Host(0)}
        )
        assert refused.status == 503
    answer = http.modern("subscriptions/listen", {"notifications": {}})
    assert answer.is_stream
    answer.close()


def test_a_call_without_a_place_is_answered_without_its_progress(
    server: Server, http: Driver, impatient: None
) -> None:
    """It may have done its work: it is not thrown away for want of a stream."""
    crowded = driver_of(server, max_streams=0)
    answer = crowded.call("steps", {"n": 3}, meta={"progressToken": "t"})
    assert not answer.is_stream
    assert answer.json["result"]["content"][0]["text"] == "done"
    gate = gated(server)
    pending = in_thread(lambda: crowded.call("wait"))
    gate.wait_entered()
    gate.open()
    assert pending.result().json["result"]["isError"] is False


def test_a_host_with_one_thread_is_warned_of_once(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Its other requests wait for the stream's end."""
    http = driver_of(server)
    for threads in (True, False, False):
        answer = http.modern(
            "subscriptions/listen", {"notifications": {}}, environ={"wsgi.multithread": threads}
        )
        answer.close()
        warnings = [r for r in caplog.records if "one thread" in r.getMessage()]
        assert len(warnings) == (0 if threads else 1)
