"""Who gets which notification, and listens (rows S22, S52)."""

from __future__ import annotations

import pytest

from raxol_sync import RPCError, Server
from tests.server.helpers import (
    SUBSCRIPTION,
    WAIT,
    Gate,
    Json,
    Recorder,
    ask,
    cancelled,
    eventually,
    initialize,
    modern,
    req,
    result,
)

TOOLS = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
BUSY = -31429


def listen(id: object = "L", **wanted: object) -> Json:
    """A `subscriptions/listen` request."""
    return modern("subscriptions/listen", {"notifications": wanted}, id)


def tags(messages: list[Json]) -> list[tuple[str, object]]:
    """Method and subscription id of each notification."""
    return [(m["method"], m["params"].get("_meta", {}).get(SUBSCRIPTION)) for m in messages]


def test_s22_registry_changes_are_told_to_all() -> None:
    """Each kind of definition has its notification."""
    with Server() as server:
        recorder = Recorder()
        server.subscribe(recorder, "c")
        server.tool(name="t")(lambda: None)
        server.resource("r://x", name="x")(lambda: None)
        server.prompt(name="p")(lambda: "")
        server.registry.unregister_tools(["no such"])
        assert [m["method"].split("/")[1] for m in recorder.wait_for(3)] == [
            "tools", "resources", "prompts",
        ]  # fmt: skip


def test_s22_at_most_one_change_of_a_kind_waits() -> None:
    """While the reader is busy a hundred changes become one notification."""
    with Server() as server:
        gate, recorder = Gate(), Recorder()

        def slow(message: Json) -> None:
            gate()
            recorder(message)

        server.subscribe(slow, "c")
        server.notify("notifications/first")
        gate.wait_entered()
        for i in range(100):
            server.tool(name=f"t{i}")(lambda: None)
        server.prompt(name="p")(lambda: "")
        server.notify("notifications/last")
        gate.open()
        recorder.wait_for(4)
        assert [m["method"].split("/")[1] for m in recorder.messages] == [
            "first", "tools", "prompts", "last",
        ]  # fmt: skip
        server.tool(name="again")(lambda: None)
        assert recorder.wait_for(5)[-1]["method"] == TOOLS


def test_s22_an_update_goes_to_those_who_subscribed_to_the_uri() -> None:
    """And to nobody else."""
    with Server() as server:
        mine, other = Recorder(), Recorder()
        server.subscribe(mine, "mine")
        server.subscribe(other, "other")
        result(server, req("resources/subscribe", {"uri": "r://x"}), "mine")
        server.notify(UPDATED, {"uri": "r://x"})
        server.notify(UPDATED, {"uri": "r://y"})
        server.notify(UPDATED, {"uri": ["r://x"]})
        server.notify(UPDATED)
        server.notify("notifications/end")
        assert [m["method"] for m in mine.wait_for(2)] == [UPDATED, "notifications/end"]
        assert [m["method"] for m in other.wait_for(1)] == ["notifications/end"]
        result(server, req("resources/unsubscribe", {"uri": "r://x"}), "mine")
        server.notify(UPDATED, {"uri": "r://x"})
        server.notify("notifications/end")
        assert mine.wait_for(3)[-1]["method"] == "notifications/end"


def test_s22_params_that_cannot_be_tagged_are_refused() -> None:
    """It raises in the caller, whether or not anybody listens."""
    with Server() as server:
        with pytest.raises(TypeError):
            server.notify(TOOLS, {"_meta": 5})
        server.notify(TOOLS, {"_meta": None})
        server.notify(TOOLS, {})


def test_s52_a_listen_is_acknowledged_first_and_gets_only_what_it_asked_for() -> None:
    """The filter that is honoured comes back; everything is tagged with its id."""
    with Server() as server:
        recorder = Recorder()
        server.subscribe(recorder, "c")
        wanted = {"toolsListChanged": True, "promptsListChanged": False, "other": True,
                  "resourceSubscriptions": ["r://x"]}  # fmt: skip
        future = server.request(listen(7, **wanted), "c")
        first = recorder.wait_for(1)[0]
        assert first["params"]["notifications"] == {
            "toolsListChanged": True, "resourceSubscriptions": ["r://x"],
        }  # fmt: skip
        server.prompt(name="p")(lambda: "")
        server.notify("notifications/custom")
        server.notify(UPDATED, {"uri": "r://y"})
        server.notify(UPDATED, {"uri": "r://x", "_meta": {"k": 1}})
        server.tool(name="t")(lambda: None)
        messages = recorder.wait_for(3)
        assert tags(messages) == [(ACKNOWLEDGED, 7), (UPDATED, 7), (TOOLS, 7)]
        assert messages[1]["params"]["_meta"]["k"] == 1
        assert messages[1]["params"]["uri"] == "r://x"
        assert not future.done()
        assert server.stats().listens == 1


def test_s52_two_listens_of_one_connection_both_hear() -> None:
    """Coalescing counts each subscription for itself."""
    with Server() as server:
        gate, recorder = Gate(), Recorder()

        def slow(message: Json) -> None:
            gate()
            recorder(message)

        server.subscribe(slow, "c")
        for id in ("one", "two"):
            server.request(listen(id, toolsListChanged=True), "c")
        server.tool(name="t")(lambda: None)
        server.tool(name="u")(lambda: None)
        gate.open()
        messages = recorder.wait_for(4)
        assert sorted(tags(messages)) == [
            (ACKNOWLEDGED, "one"), (ACKNOWLEDGED, "two"), (TOOLS, "one"), (TOOLS, "two"),
        ]  # fmt: skip
        assert server.stats().in_flight == 0


def test_s52_a_listen_with_a_sink_hears_there() -> None:
    """With or without a subscriber of its connection (row S49)."""
    for subscribed in (False, True):
        with Server() as server:
            subscriber, sink = Recorder(), Recorder()
            if subscribed:
                server.subscribe(subscriber, "c")
            server.request(listen("L", toolsListChanged=True), "c", sink=sink)
            server.tool(name="t")(lambda: None)
            assert tags(sink.wait_for(2)) == [(ACKNOWLEDGED, "L"), (TOOLS, "L")]
            server.close()
            assert subscriber.messages == []


def test_s52_a_legacy_client_that_also_listens_hears_both_ways() -> None:
    """It gets the plain notification and the tagged one."""
    with Server() as server:
        recorder = Recorder()
        server.subscribe(recorder, "c")
        result(server, initialize(), "c")
        server.request(listen("L", toolsListChanged=True), "c")
        server.tool(name="t")(lambda: None)
        plain = [m["method"] for m in recorder.wait_for(3)[1:] if "params" not in m]
        assert plain == [TOOLS]


@pytest.mark.parametrize("how", ["future", "notification", "disconnect"])
def test_s52_a_listen_ends_without_a_word_when_it_is_cancelled(how: str) -> None:
    """Nothing more is sent for it and the count goes down."""
    with Server() as server:
        recorder = Recorder()
        subscription = server.subscribe(recorder, "c")
        future = server.request(listen("L", toolsListChanged=True), "c")
        recorder.wait_for(1)
        if how == "future":
            future.cancel()
        elif how == "notification":
            server.handle_message(cancelled("L"), "c")
        else:
            subscription.close()
        assert future.result(WAIT) is None
        assert server.stats().listens == 0
        server.tool(name="t")(lambda: None)
        server.close()
        assert recorder.methods() == [ACKNOWLEDGED]


def test_s52_listens_are_bounded() -> None:
    """Sixteen of a connection, then busy; another connection may still listen."""
    with Server() as server:
        server.subscribe(Recorder(), "c")
        server.subscribe(Recorder(), "d")
        for i in range(16):
            server.request(listen(i), "c")
        error = ask(server, listen(16))["error"]
        assert error["code"] == BUSY
        assert error["data"] == {"error": "busy", "scope": "connection", "limit": 16}
        server.request(listen(1), "d")
        assert server.stats().listens == 17
        server.handle_message(cancelled(3), "c")
        server.request(listen(17), "c")
        assert server.stats().listens == 17


def test_s52_listens_are_bounded_over_all_connections() -> None:
    """1,024 of a server."""
    with Server() as server:
        shared = Recorder()
        futures = []
        for conn in range(64):
            server.subscribe(shared, conn)
            futures += [server.request(listen(i), conn) for i in range(16)]
        assert server.stats().listens == 1024
        server.subscribe(shared, "more")
        assert ask(server, listen(), "more")["error"]["data"]["scope"] == "server"


@pytest.mark.parametrize("wanted", [None, [], "x", {"resourceSubscriptions": "r://x"},
                                    {"resourceSubscriptions": [["r://x"]]},
                                    {"resourceSubscriptions": [1, "r://x"]}])  # fmt: skip
def test_s52_a_filter_that_is_none_is_refused(wanted: object) -> None:
    """`-32602`, and nothing stays outstanding."""
    with Server() as server:
        server.subscribe(Recorder(), "c")
        message = modern("subscriptions/listen", {"notifications": wanted})
        assert ask(server, message)["error"]["code"] == -32602
        assert result(server, req("ping", id=1)) == {}


def test_s52_a_listen_that_can_hear_nothing_is_refused() -> None:
    """With neither subscriber nor sink: `-32600`."""
    with Server() as server:
        assert ask(server, listen())["error"]["code"] == -32600


def test_a_server_that_shares_a_registry_hears_of_its_changes() -> None:
    """Until it is closed; the other one goes on."""
    with Server() as first:
        second = Server(registry=first.registry)
        recorders = [Recorder(), Recorder()]
        for server, recorder in zip((first, second), recorders, strict=True):
            server.subscribe(recorder, "c")
        first.tool(name="t")(lambda: None)
        for recorder in recorders:
            recorder.wait_for(1)
        second.close()
        first.tool(name="u")(lambda: None)
        assert len(recorders[0].wait_for(2)) == 2
        assert len(recorders[1].messages) == 1
        with pytest.raises(RPCError):
            second.subscribe(Recorder())
        eventually(lambda: second.stats().connections == 0)
