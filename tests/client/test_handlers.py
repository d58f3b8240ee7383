"""What servers ask of a client: answers, refusals and endings, in both eras (rows C14, C28)."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from raxol_sync.client import session
from raxol_sync.client.client import Client
from raxol_sync.errors import (
    Busy,
    HandlerFailed,
    InputRequired,
    InvalidResponse,
    InvalidSpec,
    MCPError,
    NotReady,
    RequestTimeout,
    ServerExited,
)
from raxol_sync.values import ElicitResult

Serve = Callable[..., Client]
Json = dict[str, Any]
WAIT = 10.0  # seconds that nothing here should take
FORM = ["elicitation/create", {"message": "Name?", "requestedSchema": {"type": "object"}}]
PAGE = ["elicitation/create", {"mode": "url", "message": "Go", "url": "https://x.example/"}]
SAMPLE = ["sampling/createMessage", {"messages": [], "maxTokens": 5}]
ROOTS = ["roots/list", {}]
ERAS = ["legacy", "modern"]


def ask(client: Client, *wants: Any, timeout: float | None = WAIT, **arguments: Any) -> list[Json]:
    """Have the server ask for things; return the answers that it got, errors too."""
    result = client.call_tool("ask", {"wants": list(wants), **arguments}, timeout=timeout)
    found = json.loads(result.text)
    if isinstance(found, dict):
        return list(found.values())
    return [answer.get("result", answer.get("error")) for answer in found]


def seen(client: Client) -> list[Json]:
    """Every message that the server got so far."""
    found: list[Json] = json.loads(client.call_tool("messages").text)
    return found


def asks(client: Client) -> list[Json]:
    return [m for m in seen(client) if m.get("params", {}).get("name") == "ask"]


class Gate:
    """A handler that waits until it is let go, and says how many are inside."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer
        self.inside = threading.Semaphore(0)
        self.go = threading.Event()

    def __call__(self, message: str, schema: Any) -> Any:
        self.inside.release()
        assert self.go.wait(WAIT)
        return self.answer

    def entered(self, count: int = 1) -> None:
        for _ in range(count):
            assert self.inside.acquire(timeout=WAIT)


# ---------------------------------------------------------------- what is declared


def declared(era: str, version: str | None, **handlers: Any) -> Any:
    """The capabilities that a client sends."""
    got: list[Any] = []

    class Server:
        def subscribe(self, subscriber: Any, conn_id: Any) -> Any:
            self.sink = subscriber
            return self

        def close(self) -> None:
            """Nothing to end."""

        def request(self, message: Json, conn_id: Any, *, sink: Any, owner: Any = None) -> Any:
            raise NotImplementedError

    client = Client("x", server=Server(), protocol_version=version, **handlers)
    machine = client._session._machine
    opening: Any = "initialize" if era == "legacy" else "discover"
    for effect in machine.begin(opening):
        frame = getattr(effect, "frame", None)
        if frame is not None:
            got.append(json.loads(frame.data)["params"])
    (params,) = got
    if era == "legacy":
        return params["capabilities"]
    return params["_meta"]["io.modelcontextprotocol/clientCapabilities"]


def with_url(message: str, schema: Any, url: str | None = None) -> ElicitResult:
    return ElicitResult("accept", None if url else {"name": "Ada"})


ALL = {"on_elicit": lambda message, schema: None, "on_sample": lambda params: "", "roots": ["/a"]}


@pytest.mark.parametrize(
    ("era", "version", "handlers", "expected"),
    [
        ("legacy", None, {}, {}),
        ("modern", None, {}, {}),
        ("legacy", None, ALL,
         {"elicitation": {"form": {}}, "sampling": {}, "roots": {"listChanged": True}}),
        ("legacy", "2025-06-18", ALL,
         {"elicitation": {}, "sampling": {}, "roots": {"listChanged": True}}),
        ("modern", "2026-07-28", ALL, {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}),
        ("legacy", "2025-11-25", {"on_elicit": with_url}, {"elicitation": {"form": {}, "url": {}}}),
        ("modern", None, {"roots": list}, {"roots": {}}),
        ("modern", None, {"roots": []}, {"roots": {}}),
        ("modern", None, {"on_sample": lambda params: ""}, {"sampling": {}}),
    ],
)  # fmt: skip
def test_c14_only_what_is_given_is_declared(
    era: str, version: str | None, handlers: Any, expected: Any
) -> None:
    """As each revision has it."""
    assert declared(era, version, **handlers) == expected


def test_c28_each_modern_request_declares(serve: Serve) -> None:
    """In `_meta`, on the first request and on later ones."""
    with serve("era=modern", roots=["/a"]) as client:
        client.call_tool("echo", {"text": "x"})
        for message in seen(client):
            meta = message["params"]["_meta"]
            assert meta["io.modelcontextprotocol/clientCapabilities"] == {"roots": {}}


@pytest.mark.parametrize(
    "wrong",
    [{"on_elicit": "yes"}, {"on_sample": 1}, {"roots": "/a"}, {"roots": 1}, {"roots": [1]},
     {"roots": ["https://x.example/"]}, {"roots": [""]}, {"roots": [b"/a"]}],
)  # fmt: skip
def test_c01_wrong_handlers_are_refused_at_once(wrong: Any) -> None:
    """Nothing is started for them."""
    with pytest.raises(InvalidSpec):
        Client("x", command="true", **wrong)


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"name": "Ada", "age": 3, "ok": True, "tags": ["a"]},
         {"action": "accept", "content": {"name": "Ada", "age": 3, "ok": True, "tags": ["a"]}}),
        ({}, {"action": "accept", "content": {}}),
        (None, {"action": "decline"}),
        (ElicitResult("accept", {"a": 1.5}), {"action": "accept", "content": {"a": 1.5}}),
        (ElicitResult("accept"), {"action": "accept", "content": {}}),
        (ElicitResult("decline", {"a": 1}), {"action": "decline"}),
        (ElicitResult("cancel"), {"action": "cancel"}),
    ],
)  # fmt: skip
def test_c14_c28_what_on_elicit_gives(serve: Serve, era: str, given: Any, expected: Any) -> None:
    """A dict accepts, None declines, an ElicitResult says it itself."""
    got: list[Any] = []

    def on_elicit(message: str, schema: Any) -> Any:
        got.append((message, schema))
        return given

    with serve(f"era={era}", on_elicit=on_elicit) as client:
        assert ask(client, FORM) == [expected]
    assert got == [("Name?", {"type": "object"})]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("hi",
         {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "unknown"}),
        ({"content": {"type": "text", "text": "hi"}, "model": "m", "stopReason": "endTurn"},
         {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m",
          "stopReason": "endTurn"}),
    ],
)  # fmt: skip
def test_c14_c28_what_on_sample_gives(serve: Serve, era: str, given: Any, expected: Any) -> None:
    """A string is the model's text, a dict the result."""
    got: list[Any] = []

    def on_sample(params: Json) -> Any:
        got.append(params)
        return given

    with serve(f"era={era}", on_sample=on_sample) as client:
        assert ask(client, SAMPLE) == [expected]
    assert got == [SAMPLE[1]]


@pytest.mark.parametrize("era", ERAS)
def test_c14_c28_roots_become_uris(
    serve: Serve, era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative paths are made absolute once, strange characters are quoted."""
    monkeypatch.chdir(tmp_path)
    roots = ["a b", Path("/x/ü#"), "file:///y/z%20z/", os.sep]
    with serve(f"era={era}", roots=roots) as client:
        monkeypatch.chdir("/")
        (answer,) = ask(client, ROOTS)
    assert answer["roots"] == [
        {"uri": (tmp_path / "a b").as_uri(), "name": "a b"},
        {"uri": "file:///x/%C3%BC%23", "name": "ü#"},
        {"uri": "file:///y/z%20z/", "name": "z z"},
        {"uri": "file:///", "name": "/"},
    ]


def test_c14_roots_may_change(serve: Serve) -> None:
    """A callable is asked each time."""
    found = ["/a"]
    with serve("era=legacy", roots=lambda: found) as client:
        assert len(ask(client, ROOTS)[0]["roots"]) == 1
        found.append("/b")
        assert len(ask(client, ROOTS)[0]["roots"]) == 2


def test_c14_a_page_goes_only_to_a_handler_that_takes_one(serve: Serve) -> None:
    """Else it is refused (legacy) or declined (modern), without calling the handler."""
    called: list[str] = []

    def on_elicit(message: str, schema: Any) -> None:
        called.append(message)

    def takes_all(message: str, schema: Any, **more: Any) -> Json:
        called.append(more["url"])
        return {"ignored": 1}

    with serve("era=legacy", on_elicit=on_elicit) as client:
        assert ask(client, PAGE)[0]["code"] == -32602
    with serve("era=modern", on_elicit=on_elicit) as client:
        assert ask(client, PAGE) == [{"action": "decline"}]
    assert called == []
    for era in ERAS:
        with serve(f"era={era}", on_elicit=takes_all) as client:
            assert ask(client, PAGE) == [{"action": "accept"}]
    assert called == ["https://x.example/"] * 2


def test_c28_several_things_are_asked_in_order(serve: Serve) -> None:
    """One round, one answer each, under the server's keys."""
    order: list[str] = []

    def note(word: str, value: Any) -> Any:
        order.append(word)
        return value

    with serve(
        "era=modern",
        on_elicit=lambda message, schema: note("elicit", {"n": 1}),
        on_sample=lambda params: note("sample", "s"),
        roots=lambda: note("roots", []),
    ) as client:
        found = ask(client, SAMPLE, ROOTS, FORM)
        assert [sorted(answer) for answer in found] == [
            ["content", "model", "role"], ["roots"], ["action", "content"]
        ]  # fmt: skip
        first, second = (m["params"] for m in asks(client))
    assert order == ["sample", "roots", "elicit"]
    assert "inputResponses" not in first
    assert list(second["inputResponses"]) == ["k0", "k1", "k2"]


def test_c28_prompts_and_resources_are_asked_for_too(serve: Serve) -> None:
    """Their requests are sent again with the answers."""
    with serve("era=modern", roots=["/a"]) as client:
        answer = '{"r": {"roots": [{"uri": "file:///a", "name": "a"}]}}'
        assert client.read_resource("x://y")[0].text == answer
        content: Any = client.get_prompt("p")[0].content
        assert content.text == answer


# ---------------------------------------------------------------- rounds on the wire


@pytest.mark.parametrize("state", ["", "s", '{"a": "\\u2028"} \u2028\x00\\"ü'])
def test_c28_the_retry_has_a_new_id_the_same_params_and_the_exact_state(
    serve: Serve, state: str
) -> None:
    """Also an empty state; nothing else changes."""
    with serve("era=modern", roots=["/a"]) as client:
        ask(client, ROOTS, state=state, rounds=3)
        sent = asks(client)
    assert len({m["id"] for m in sent}) == len(sent) == 4
    for message in sent[1:]:
        params = message["params"]
        assert params.pop("requestState") == state
        assert list(params.pop("inputResponses")) == ["k0"]
        assert params == sent[0]["params"]


def test_c28_without_a_state_none_is_sent(serve: Serve) -> None:
    """The member is left out."""
    with serve("era=modern", roots=["/a"]) as client:
        ask(client, ROOTS, state=None)
        assert "requestState" not in asks(client)[1]["params"]


def test_c28_a_state_alone_is_sent_again_at_once(serve: Serve) -> None:
    """No handler is needed for it; without answers none are sent."""
    with serve("era=modern") as client:
        result = client.call_tool("ask", {"wants": None, "rounds": 2})
        assert result.text == "null"
        assert ["inputResponses" in m["params"] for m in asks(client)] == [False] * 3


@pytest.mark.parametrize("wants", [None, [ROOTS]], ids=["state", "roots"])
def test_c28_ten_rounds_are_enough(serve: Serve, wants: Any) -> None:
    """The tenth retry may still be answered; a server that wants more is wrong."""
    with serve("era=modern", roots=["/a"]) as client:
        client.call_tool("ask", {"wants": wants, "rounds": 10})
        assert len(asks(client)) == 11
    with serve("era=modern", roots=["/a"]) as client:
        with pytest.raises(InvalidResponse, match="10 rounds"):
            client.call_tool("ask", {"wants": wants, "rounds": 11})
        assert len(asks(client)) == 11
        assert client.status().pending == 0


@pytest.mark.parametrize(
    ("wants", "handlers"),
    [([FORM], {}), ([ROOTS, SAMPLE], {"roots": ["/a"]}), ([FORM], {"roots": ["/a"]})],
    ids=["none", "one of two", "another"],
)
def test_c28_without_a_handler_it_is_raised(serve: Serve, wants: Any, handlers: Any) -> None:
    """With the server's requests; nothing is sent again."""
    with serve("era=modern", **handlers) as client:
        with pytest.raises(InputRequired) as caught:
            client.call_tool("ask", {"wants": wants})
        assert [r["method"] for r in caught.value.requests.values()] == [w[0] for w in wants]
        assert len(asks(client)) == 1


@pytest.mark.parametrize(
    "raw",
    [
        {"inputRequests": {"q": {"method": "tools/call"}}},
        {"inputRequests": {"q": {"method": ["roots/list"]}}},
        {"inputRequests": {"q": {}}},
        {"inputRequests": {"q": "roots/list"}},
        {"inputRequests": {"q": {"method": "roots/list", "params": []}}},
        {"inputRequests": []},
        {"inputRequests": {}, "requestState": None},
        {"requestState": 5},
        {"resultType": "perhaps"},
        {"resultType": None},
    ],
)
def test_c28_what_is_no_input_round_is_invalid(serve: Serve, raw: Json) -> None:
    """Named, at once, and nothing is sent again."""
    with serve("era=modern", roots=["/a"]) as client:
        with pytest.raises(InvalidResponse):
            client.call_tool("ask", {"wants": [ROOTS], "raw": raw})
        assert len(asks(client)) == 1


def test_c28_other_methods_may_not_require_input(serve: Serve) -> None:
    """Only three may: anything else is an invalid answer."""
    with serve("era=modern", roots=["/a"]) as client:
        machine = client._session._machine
        from raxol_sync.client.effects import Entry, Settle
        from raxol_sync.protocol.wire import Response

        class Token:
            def store(self, result: Any, error: Any) -> None:
                """Unused."""

            def release(self) -> None:
                """Unused."""

        entry = Entry("tools/list", b"{}", Token())
        machine.submit(entry)
        result = {"resultType": "input_required", "requestState": "s"}
        (settle,) = machine.receive(Response(entry.id, result, None))
        assert isinstance(settle, Settle)
        assert isinstance(settle.error, InvalidResponse)


def test_c28_progress_follows_each_round(serve: Serve) -> None:
    """Each retry has its own token, and all progress comes before the call returns."""
    got: list[float] = []
    with serve("era=modern", roots=["/a"]) as client:
        arguments = {"wants": [ROOTS], "rounds": 3, "progress": True}
        client.call_tool("ask", arguments, progress=lambda done, total, message: got.append(done))
        tokens = [m["params"]["_meta"]["progressToken"] for m in asks(client)]
        assert tokens == [m["id"] for m in asks(client)]
    assert got == [1, 2, 3]


def test_c28_own_input_responses_are_replaced(serve: Serve) -> None:
    """A request made by hand with answers of its own gets the new ones, once."""
    with serve("era=modern", roots=["/a"]) as client:
        params = {"name": "ask", "arguments": {"wants": [ROOTS], "rounds": 1},
                  "inputResponses": {"old": {}}, "requestState": "old"}  # fmt: skip
        client.request("tools/call", params)
        second = asks(client)[1]["params"]
        assert list(second["inputResponses"]) == ["k0"]
        assert second["requestState"] == "s"


# ---------------------------------------------------------------- refusals and bad handlers


def test_c14_without_a_handler_it_is_method_not_found(serve: Serve) -> None:
    """For each of the three, also where there is a handler for another; ping is answered."""
    with serve("era=legacy", roots=["/a"]) as client:
        found = ask(client, FORM, SAMPLE, ["tasks/get", {}], ["ping", {}])
        assert [answer.get("code") for answer in found] == [-32601] * 3 + [None]
        assert "error" not in ask(client, ROOTS)[0]


def fails(message: str, schema: Any) -> None:
    raise ValueError("secret 123")


def exits(message: str, schema: Any) -> None:
    sys.exit("secret 123")


BAD = [
    (fails, "raised ValueError"), (exits, "raised SystemExit"),
    (lambda m, s: 5, "not int"), (lambda m, s: "yes", "not str"), (lambda m, s: [1], "not list"),
    (lambda m, s: {"a": {"b": 1}}, "by name"), (lambda m, s: {"a": [1]}, "by name"),
    (lambda m, s: {"a": None}, "by name"), (lambda m, s: {1: "a"}, "by name"),
    (lambda m, s: {"a": object()}, "by name"), (lambda m, s: {"a": float("nan")}, "JSON"),
    (lambda m, s: {"a": "\ud800"}, "JSON"), (lambda m, s: {"a": "x" * 200_000}, "longer"),
    (lambda m: None, "raised TypeError"),
]  # fmt: skip


@pytest.mark.parametrize(("handler", "words"), BAD, ids=[words for _, words in BAD])
def test_c14_c28_a_handler_that_fails_harms_only_its_request(
    serve: Serve, handler: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Legacy: -32603. Modern: the call raises, with the cause. No value is told to the server."""
    with serve("era=legacy", on_elicit=handler, max_message_bytes=100_000) as client:
        (answer,) = ask(client, FORM)
        assert answer["code"] == -32603
        assert words in answer["message"]
        assert "secret" not in answer["message"]
        assert client.call_tool("echo", {"text": "x"}).text == "x"
    with serve("era=modern", on_elicit=handler, max_message_bytes=100_000) as client:
        with pytest.raises(HandlerFailed, match=words) as caught:
            ask(client, FORM)
        assert isinstance(caught.value, InputRequired)
        assert (caught.value.__cause__ is not None) is ("raised" in words)
        assert len(asks(client)) == 1
        assert client.call_tool("echo", {"text": "x"}).text == "x"
        assert client.status().pending == 0
    if "raised" in words:
        assert any("the handler for" in record.message for record in caplog.records)


@pytest.mark.parametrize(
    "given", [5, None, {}, {"content": "x"}, {"content": {"text": "x"}}, {"content": [1]},
              {"content": {"type": "text", "text": "x"}, "model": 5},
              {"content": {"type": "text", "text": "x"}, "role": "system"}],
    ids=str,
)  # fmt: skip
def test_c14_garbage_from_on_sample(serve: Serve, given: Any) -> None:
    """-32603, in words."""
    with serve("era=legacy", on_sample=lambda params: given) as client:
        assert ask(client, SAMPLE)[0]["code"] == -32603


@pytest.mark.parametrize("given", [5, None, [5], ["ftp://x/"], [""], "/a"], ids=str)
def test_c14_garbage_from_roots(serve: Serve, given: Any) -> None:
    """-32603, except that the letters of a string are paths, as in any Python."""
    with serve("era=legacy", roots=lambda: given) as client:
        (answer,) = ask(client, ROOTS)
        assert (answer.get("code") == -32603) is (given != "/a")


@pytest.mark.parametrize(
    "want",
    [["elicitation/create", {}], ["elicitation/create", {"message": "m"}],
     ["elicitation/create", {"message": 5, "requestedSchema": {}}],
     ["elicitation/create", {"message": "m", "mode": "fax", "requestedSchema": {}}],
     ["elicitation/create", {"message": "m", "mode": "url"}],
     ["sampling/createMessage", {}], ["sampling/createMessage", {"messages": [], "tools": []}]],
)  # fmt: skip
def test_c14_malformed_requests_never_reach_a_handler(serve: Serve, want: Any) -> None:
    """-32602, in words."""
    called: list[object] = []

    def handler(*given: object, url: str = "") -> None:
        called.append(given)

    with serve("era=legacy", on_elicit=handler, on_sample=handler) as client:
        assert ask(client, want)[0]["code"] == -32602
    assert called == []


# ---------------------------------------------------------------- bounds, cancels, endings


def test_c14_eight_run_at_once_and_the_rest_is_busy(serve: Serve) -> None:
    """A hundred at once: 8 are answered, 92 refused at once, then there is room again."""
    gate = Gate({"n": 1})
    with serve("era=legacy", on_elicit=gate) as client:
        future = client.submit_tool("ask", {"wants": [FORM] * 100}, timeout=WAIT)
        gate.entered(8)
        assert client.call_tool("echo", {"text": "x"}).text == "x"
        names = [t.name for t in threading.enumerate() if "-handler-" in t.name]
        assert len(names) == 8
        gate.go.set()
        answers = json.loads(future.result(WAIT).text)
        errors = [a["error"] for a in answers if "error" in a]
        assert len(errors) == 92
        assert {e["code"] for e in errors} == {-31429}
        assert errors[0]["data"] == {"scope": "handlers", "limit": 8}
        assert not gate.inside.acquire(blocking=False)
        assert ask(client, FORM)[0]["action"] == "accept"


def test_c14_a_cancelled_request_is_not_answered(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    """The handler goes on and keeps its thread; its answer is dropped. Strange ids do no harm."""
    gate = Gate({"n": 1})
    with serve("era=legacy", on_elicit=gate) as client:
        for name in ("one", 2):
            client.call_tool("ask", {"wants": [FORM], "ids": [name], "wait": False})
        gate.entered(2)
        client.call_tool("withdraw", {"ids": [["one"], {}, None, 2.0, True, "two", "one", 2]})
        gate.go.set()
        # The thread that answers this was busy with the others before: their answers would be here.
        for _ in range(8):
            assert ask(client, FORM)[0]["action"] == "accept"
        ids = [m["id"] for m in seen(client) if "method" not in m]
        assert "one" not in ids
        assert 2 not in ids
    assert not caplog.records


def test_c14_an_id_that_is_open_is_not_taken_twice(serve: Serve) -> None:
    """The second request with it is ignored; the first is answered once. Types are told apart."""
    gate = Gate({"n": 1})
    with serve("era=legacy", on_elicit=gate) as client:
        wants = [FORM, FORM, FORM]
        client.call_tool("ask", {"wants": wants, "ids": [1, 1, "1"], "wait": False})
        gate.entered(2)
        gate.go.set()
        deadline = time.monotonic() + WAIT
        while len(ids := [m["id"] for m in seen(client) if "method" not in m]) < 2:
            assert time.monotonic() < deadline
        assert ask(client, FORM)[0]["action"] == "accept"  # and no third answer came before it
        ids = [m["id"] for m in seen(client) if "method" not in m]
        assert sorted(map(repr, ids[:2])) == ["'1'", "1"]
        assert len(ids) == 3


def test_c28_rounds_wait_for_a_thread(serve: Serve) -> None:
    """Eight handlers at once, the others after them; past what may queue: `Busy`."""
    gate = Gate({"n": 1})
    with serve("era=modern", on_elicit=gate, pool_size=4, queue_limit=5) as client:
        arguments = {"wants": [FORM], "rounds": 0, "raw": {}}
        futures = []
        for _ in range(13):  # one after another, so that no queue for the window is needed
            futures.append(client.submit_tool("ask_user_form", {}, timeout=WAIT))
            assert client.call_tool("echo", {"text": "x"}).text == "x"
        gate.entered(8)
        with pytest.raises(Busy) as caught:
            client.call_tool("ask_user_form", arguments)
        assert (caught.value.scope, caught.value.limit) == ("handlers", 13)
        assert not gate.inside.acquire(blocking=False)
        gate.go.set()
        assert [future.result(WAIT).text for future in futures] == ["thanks"] * 13


@pytest.mark.parametrize("era", ERAS)
def test_c12_the_deadline_holds_while_a_handler_works(serve: Serve, era: str) -> None:
    """For blocking calls and futures alike; no retry is sent when the handler is done."""
    gate = Gate({"n": 1})
    tool = "ask" if era == "legacy" else "ask_user_form"
    with serve(f"era={era}", on_elicit=gate) as client:
        begun = time.monotonic()
        with pytest.raises(RequestTimeout):
            client.call_tool(tool, {"wants": [FORM]}, timeout=0.3)
        error = client.submit_tool(tool, {"wants": [FORM]}, timeout=0.3).exception(WAIT)
        assert isinstance(error, RequestTimeout)
        assert time.monotonic() - begun < 5
        assert (client.status().pending, client.status().queued) == (0, 0)
        gate.go.set()
        assert client.call_tool("echo", {"text": "x"}).text == "x"
        assert sum(m.get("params", {}).get("name") == tool for m in seen(client)) == 2
        cancelled = [m for m in seen(client) if m.get("method") == "notifications/cancelled"]
        # What waits for a handler in the modern era is not on the wire: nothing is cancelled there.
        assert len(cancelled) == (2 if era == "legacy" else 0)


def test_c28_cancelling_while_a_handler_works_sends_no_retry(serve: Serve) -> None:
    """The future is cancelled; the handler's answer is dropped."""
    gate = Gate({"n": 1})
    with serve("era=modern", on_elicit=gate) as client:
        future = client.submit_tool("ask", {"wants": [FORM, FORM]})
        gate.entered()
        assert future.cancel()
        with pytest.raises(CancelledError):
            future.result(0)
        gate.go.set()
        assert ask(client, FORM, rounds=2)[0]["action"] == "accept"
        assert len(asks(client)) == 3
        gate.entered(1)  # of the later call: the second question of the cancelled one is not asked
        assert not gate.inside.acquire(blocking=False)


@pytest.mark.parametrize("era", ERAS)
def test_c16_a_server_that_dies_while_a_handler_works(serve: Serve, era: str) -> None:
    """The call fails at once; the late answer goes nowhere."""
    gate = Gate({"n": 1})
    with serve(f"era={era}", on_elicit=gate) as client:
        future = client.submit_tool("ask", {"wants": [FORM]})
        gate.entered()
        with pytest.raises(ServerExited):
            client.call_tool("die")
        assert isinstance(future.exception(WAIT), ServerExited)
        gate.go.set()


@pytest.mark.parametrize("era", ERAS)
def test_c02_stop_does_not_wait_for_a_hung_handler(
    serve: Serve, era: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It says that a thread goes on; once the handler returns, no thread is left."""
    monkeypatch.setattr(session, "HANDLER_TIME", 0.1)
    gate = Gate({"n": 1})
    client = serve(f"era={era}", on_elicit=gate)
    client.start()
    client.await_ready()
    future = client.submit_tool("ask", {"wants": [FORM]})
    gate.entered()
    begun = time.monotonic()
    client.stop()
    assert time.monotonic() - begun < 4
    assert isinstance(future.exception(0), NotReady)
    assert any("has not returned" in record.message for record in caplog.records)
    gate.go.set()
    for thread in threading.enumerate():
        if "-handler-" in thread.name:
            thread.join(WAIT)
    assert not [t for t in threading.enumerate() if t.name.startswith("raxol-sync-test")]


@pytest.mark.parametrize("era", ERAS)
def test_c02_stop_from_a_handler(serve: Serve, era: str) -> None:
    """It returns, and everything ends."""
    clients: list[Client] = []
    returned = threading.Event()

    def on_elicit(message: str, schema: Any) -> None:
        clients[0].stop()
        returned.set()

    client = serve(f"era={era}", on_elicit=on_elicit)
    clients.append(client)
    client.start()
    client.await_ready()
    with pytest.raises(NotReady):
        ask(client, FORM)
    assert returned.wait(WAIT)
    assert client.status().state == "closed"


@pytest.mark.parametrize("era", ERAS)
def test_c14_one_handler_serves_many_calls(serve: Serve, era: str) -> None:
    """Each call gets the answer to its own question."""

    def on_elicit(message: str, schema: Any) -> Json:
        return {"echo": message}

    def one(client: Client, number: int, found: dict[int, Any]) -> None:
        form = ["elicitation/create", {"message": str(number), "requestedSchema": {}}]
        tool = "ask" if era == "legacy" else "ask_user_form"
        result = client.call_tool(tool, {"wants": [form], "message": str(number)}, timeout=WAIT)
        found[number] = json.loads(result.text)

    with serve(f"era={era}", on_elicit=on_elicit) as client:
        found: dict[int, Any] = {}
        threads = [threading.Thread(target=one, args=(client, n, found)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
    for number in range(8):
        answer = found[number]
        content = answer[0]["result"] if era == "legacy" else answer["q"]
        assert content["content"] == {"echo": str(number)}


# ---------------------------------------------------------------- handlers that make calls


@pytest.mark.parametrize("era", ERAS)
def test_c14_a_handler_may_call_the_client(serve: Serve, era: str) -> None:
    """While its own call waits for it."""
    clients: list[Client] = []

    def on_elicit(message: str, schema: Any) -> Json:
        inner = clients[0].call_tool("echo", {"text": "inner"}).text
        future = clients[0].submit_tool("echo", {"text": "future"})
        return {"inner": inner, "future": future.result(WAIT).text}

    with serve(f"era={era}", on_elicit=on_elicit) as client:
        clients.append(client)
        (answer,) = ask(client, FORM)
        assert answer["content"] == {"inner": "inner", "future": "future"}


@pytest.mark.parametrize("concurrency", ["serialized", "pooled"])
def test_c14_a_call_that_would_wait_for_itself_is_busy(serve: Serve, concurrency: str) -> None:
    """In a legacy session whose whole window may wait for handlers; at once."""
    clients: list[Client] = []
    errors: list[MCPError] = []

    def on_elicit(message: str, schema: Any) -> Json:
        with pytest.raises(Busy) as caught:
            clients[0].call_tool("echo", {"text": "inner"})
        errors.append(caught.value)
        return {"n": 1}

    with serve("era=legacy", on_elicit=on_elicit, concurrency=concurrency, pool_size=1) as client:
        clients.append(client)
        assert ask(client, FORM)[0]["action"] == "accept"
    assert isinstance(errors[0], Busy)
    assert errors[0].scope == "connection"


def test_c14_in_a_modern_serialized_session_the_wire_is_free(serve: Serve) -> None:
    """The handler's call is sent if nothing else is on the wire, else `Busy`: it never waits."""
    clients: list[Client] = []
    got: list[Any] = []
    gate = threading.Event()

    def on_elicit(message: str, schema: Any) -> Json:
        got.append(clients[0].call_tool("echo", {"text": "inner"}).text)
        other = clients[0].submit_tool("silent")
        with pytest.raises(Busy):
            clients[0].call_tool("echo", {"text": "inner"})
        other.cancel()
        gate.set()
        return {"n": 1}

    with serve("era=modern", on_elicit=on_elicit, concurrency="serialized") as client:
        clients.append(client)
        assert ask(client, FORM)[0]["action"] == "accept"
    assert got == ["inner"]


def test_c28_a_retry_goes_before_what_is_queued(serve: Serve) -> None:
    """It was admitted first."""
    gate = Gate({"n": 1})
    with serve("era=modern", on_elicit=gate, concurrency="serialized") as client:
        first = client.submit_tool("ask", {"wants": [FORM]})
        gate.entered()
        blocker = client.submit_tool("silent")
        later = client.submit_tool("echo", {"text": "later"})
        gate.go.set()
        deadline = time.monotonic() + WAIT
        while client.status().queued != 2:
            assert time.monotonic() < deadline
        blocker.cancel()
        assert json.loads(first.result(WAIT).text)["k0"]["action"] == "accept"
        assert later.result(WAIT).text == "later"
        names = [m["params"].get("name") for m in seen(client) if m.get("method") == "tools/call"]
        assert names[:4] == ["ask", "silent", "ask", "echo"]


def test_c14_a_progress_handler_and_an_input_handler_do_not_wait_for_each_other(
    serve: Serve,
) -> None:
    """A call made on the delivery thread needs input, whose handler makes a call."""
    clients: list[Client] = []
    got: list[Any] = []

    def on_elicit(message: str, schema: Any) -> Json:
        return {"inner": clients[0].call_tool("echo", {"text": "inner"}).text}

    def progress(done: float, total: float | None, message: str | None) -> None:
        if not got:
            got.append(clients[0].call_tool("ask_user_form", {}).text)

    with serve("era=modern", on_elicit=on_elicit) as client:
        clients.append(client)
        client.call_tool("progress", {"count": 3}, progress=progress)
    assert got == ["thanks"]


def test_c14_a_modern_servers_requests_are_ignored(serve: Serve) -> None:
    """There a client never answers."""
    called: list[object] = []
    with serve("era=modern", on_sample=called.append) as client:
        client.call_tool("ask_client")
        assert not [m for m in seen(client) if "method" not in m]
    assert called == []


def test_c14_nothing_is_logged_of_an_answer(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """Not at any level."""
    caplog.set_level(logging.DEBUG)
    for era in ERAS:
        with serve(f"era={era}", on_elicit=lambda message, schema: {"a": "s3cret"}) as client:
            ask(client, FORM)
    assert "s3cret" not in caplog.text
