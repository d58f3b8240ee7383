"""Who may call and read what: authorizers answer, ask, fail, or are late (S10, S14, S25-S27)."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from raxol_sync import ALLOW, Ask, Deny, allow_all, allowlist, deny_all
from raxol_sync.policy import AuthorizationContext
from tests.server.approvals import Person, denial_of, served
from tests.server.approvals import the_call as one_call
from tests.server.helpers import (
    SERVER_INFO,
    WAIT,
    Gate,
    Json,
    Recorder,
    ask,
    call,
    eventually,
    initialize,
    modern,
    offering,
    req,
    result,
    text,
)

READS: list[tuple[str, Json, Json]] = [
    ("tools/list", {}, {}),
    ("resources/list", {}, {}),
    ("resources/templates/list", {}, {}),
    ("prompts/list", {}, {}),
    ("resources/read", {"uri": "a://x"}, {"uri": "a://x"}),
    ("resources/subscribe", {"uri": "a://x"}, {"uri": "a://x"}),
    ("resources/unsubscribe", {"uri": "a://x"}, {"uri": "a://x"}),
    ("prompts/get", {"name": "p", "arguments": {"who": "me"}},
     {"name": "p", "arguments": {"who": "me"}}),
    ("completion/complete",
     {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "who", "value": ""}},
     {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "who", "value": ""}}),
    ("logging/setLevel", {"level": "debug"}, {"level": "debug"}),
]  # fmt: skip


class Raises:
    """An authorizer that raises what it is given."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, name: str, arguments: object, context: object) -> object:
        raise self.error


def says(answer: object) -> Any:
    """An authorizer that answers this."""
    return lambda name, arguments, context: answer


BAD: dict[str, Any] = {
    "raises": Raises(ValueError("secret")),
    "exits": Raises(SystemExit(3)),
    "interrupts": Raises(KeyboardInterrupt()),
    "None": says(None),
    "True": says(True),
    "text": says("allow"),
    "a class": says(Deny),
    "a prompt that is none": says(Ask(None)),  # type: ignore[arg-type]
    "wrong arguments": lambda: ALLOW,
}


@pytest.mark.parametrize("bad", BAD)
def test_s25_whatever_is_wrong_with_an_authorizer_denies(
    bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The deny in its usual shape, logged, and nothing runs."""
    with offering(authorizer=BAD[bad], authorizer_source="configured") as server:
        Person(server)
        words = denial_of(ask(server, call("t")))
        assert (words["decision"], words["tool"]) == ("deny", "t")
        assert "secret" not in str(words)
        assert "authorizer" in caplog.text
        assert "result" in ask(server, req("ping"))


@pytest.mark.parametrize("bad", BAD)
def test_s25_whatever_is_wrong_with_a_read_authorizer_denies(bad: str) -> None:
    """Every read surface answers the error, with machine-readable data."""
    with offering(read_authorizer=BAD[bad]) as server:
        for method, params, _ in READS:
            error = ask(server, req(method, params))["error"]
            assert error["code"] == -31403
            assert error["data"]["method"] == method
            assert error["data"]["decision"] == "deny"
            assert "secret" not in str(error)


@pytest.mark.parametrize("reason", [None, 5, object(), b"x"])
def test_s25_a_deny_denies_whatever_its_reason_is(reason: Any) -> None:
    """A reason that is no text does not turn it into something else."""
    with offering(authorizer=says(Deny(reason)), read_authorizer=says(Deny(reason))) as server:
        assert denial_of(ask(server, call("t")))["detail"] == "denied by policy"
        assert ask(server, req("resources/list"))["error"]["code"] == -31403


@pytest.mark.parametrize(("method", "params", "detail"), READS, ids=lambda value: str(value)[:20])
def test_s25_the_read_authorizer_guards_every_read_surface(
    method: str, params: Json, detail: Json
) -> None:
    """It is asked once, on a worker, with the method and what identifies the target."""
    asked: list[tuple[str, Any]] = []

    def authorizer(name: str, detail: Any, context: AuthorizationContext) -> object:
        assert context.method == name
        asked.append((name, dict(detail)))
        return Deny("no") if len(asked) > 1 else ALLOW

    with offering(read_authorizer=authorizer) as server:
        assert "result" in ask(server, req(method, params))
        assert asked == [(method, detail)]
        error = ask(server, req(method, params))["error"]
        assert error["data"] == {
            "error": "authorization_required",
            "method": method,
            "decision": "deny",
            "detail": "no",
        }


def test_s25_listening_is_a_read_surface() -> None:
    """Denied: no acknowledgement; allowed: it holds no slot."""
    wanted = {"notifications": {"toolsListChanged": True}}
    with offering(read_authorizer=deny_all("no")) as server:
        sink = Recorder()
        server.request(modern("subscriptions/listen", wanted), "c", sink=sink)
        assert sink.wait_for(1)[0]["error"]["code"] == -31403
        assert server.stats().listens == 0
    with offering(read_authorizer=allow_all()) as server:
        sink = Recorder()
        server.request(modern("subscriptions/listen", wanted), "c", sink=sink)
        assert sink.wait_for(1)[0]["method"] == "notifications/subscriptions/acknowledged"
        eventually(lambda: server.stats().in_flight == 0)
        assert server.stats().listens == 1


def test_s25_ping_and_initialize_are_no_read_surface() -> None:
    """A client that may read nothing can still greet."""
    with offering(read_authorizer=deny_all()) as server:
        for message in (req("ping"), initialize(), modern("server/discover")):
            assert "result" in ask(server, message)
        assert text(ask(server, call("t"))) == "ran"


def test_s11_setting_the_level_is_gated_after_none() -> None:
    """A denied one changes nothing; an unknown level is told only to who may set one."""
    with offering(read_authorizer=deny_all()) as server:
        assert ask(server, req("logging/setLevel", {"level": "loud"}))["error"]["code"] == -31403
    with offering(read_authorizer=allow_all()) as server:
        assert ask(server, req("logging/setLevel", {"level": "loud"}))["error"]["code"] == -32602


def test_s27_ask_on_a_read_surface_is_a_deny() -> None:
    """Nobody is asked, and the prompt is not echoed."""
    with offering(read_authorizer=says(Ask("the secret plan"))) as server:
        person = Person(server)
        for method, params, _ in READS:
            answer = ask(server, req(method, params))
            assert answer["error"]["code"] == -31403
            assert answer["error"]["data"]["method"] == method
            assert "secret plan" not in json.dumps(answer)
        assert person.inbox.messages == []


def test_s53_the_read_authorizer_is_asked_before_the_look_up() -> None:
    """Who may not read does not learn what exists."""
    with offering(read_authorizer=deny_all("no")) as server:
        known = ask(server, req("resources/read", {"uri": "a://x"}))
        unknown = ask(server, req("resources/read", {"uri": "a://nothing"}))
        assert known["error"] == unknown["error"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_s27_a_denied_call_is_a_result_that_machines_read(era: str) -> None:
    """One text item of exactly these words; a modern result is stamped like any other."""
    with offering(authorizer=deny_all("no reason")) as server:
        message = call("t") if era == "legacy" else modern("tools/call", {"name": "t"})
        answer = ask(server, message)
        assert denial_of(answer) == {
            "error": "authorization_required",
            "tool": "t",
            "decision": "deny",
            "detail": "no reason",
        }
        assert "structuredContent" not in answer["result"]
        assert answer["result"].get("resultType") == (None if era == "legacy" else "complete")


# ---------------------------------------------------------------- lists (S10)


def test_s10_the_list_shows_what_this_caller_may_call() -> None:
    """Denied tools are left out, asked-about ones are listed; order is registration order."""
    contexts: list[AuthorizationContext] = []

    def authorizer(name: str, arguments: Any, context: AuthorizationContext) -> object:
        assert arguments == {}
        contexts.append(context)
        return {"a": ALLOW, "b": Deny("no"), "c": Ask("sure?"), "d": None}[name]

    with served(authorizer) as server:
        for name in "abcd":
            server.tool(name=name)(lambda: "x")
        tools = result(server, req("tools/list"))["tools"]
        assert [tool["name"] for tool in tools] == ["a", "c"]
        assert {context.method for context in contexts} == {"tools/list"}
        assert {context.conn_id for context in contexts} == {"c"}
        contexts.clear()
        result(server, modern("tools/list"))
        assert {context.conn_id for context in contexts} == {None}


def test_s10_pages_are_cut_before_filtering() -> None:
    """A page may be empty and still lead on; all pages together show what one page would."""
    with served(allowlist(["t4"]), page_size=2) as server:
        for n in range(6):
            server.tool(name=f"t{n}")(lambda: "x")
        pages, cursor = [], None
        while True:
            page = result(server, req("tools/list", {"cursor": cursor} if cursor else None))
            pages.append([tool["name"] for tool in page["tools"]])
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        assert pages == [[], [], ["t4"]]


@pytest.mark.parametrize("bad", ["raises", "exits", "None"])
def test_s10_a_tool_whose_authorizer_fails_is_hidden_and_logged_once(
    bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One failing tool does not cost the others; a second list logs nothing more."""

    def authorizer(name: str, arguments: Any, context: object) -> object:
        return BAD[bad](name, arguments, context) if name == "bad" else ALLOW

    with served(authorizer) as server:
        for name in ("good", "bad"):
            server.tool(name=name)(lambda: "x")
        for _ in range(3):
            tools = result(server, req("tools/list"))["tools"]
            assert [tool["name"] for tool in tools] == ["good"]
        errors = [r for r in caplog.records if r.levelno >= logging.ERROR]
        assert len(errors) == 1


# ---------------------------------------------------------------- too slow (S14)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_s14_an_authorizer_that_is_too_slow_denies(era: str) -> None:
    """The deny says so, and the ALLOW that comes later starts nothing."""
    gate, ran = Gate(), []

    def authorizer(name: str, arguments: object, context: object) -> object:
        gate()
        return ALLOW

    with served(authorizer) as server:
        server.tool(name="t")(lambda: ran.append(1))
        message = call("t") if era == "legacy" else modern("tools/call", {"name": "t"})
        future = server.request(message, "c")
        gate.wait_entered()
        running = one_call(server)
        server._engine._expire(running, running.runs)
        answer = future.result(WAIT)
        words = denial_of(answer)
        assert (words["decision"], words["detail"]) == ("deny", "authorizer timed out")
        if era == "modern":
            assert answer is not None
            assert answer["result"]["resultType"] == "complete"
            assert SERVER_INFO in answer["result"]["_meta"]
        assert server.stats().abandoned == 1
        gate.open()
        eventually(lambda: server.stats().in_flight == 0)
        assert ran == []


def test_s14_a_late_ask_parks_nothing() -> None:
    """Nor does anybody see its question."""
    gate = Gate()

    def authorizer(name: str, arguments: object, context: object) -> object:
        gate()
        return Ask("sure?")

    with served(authorizer) as server:
        server.tool(name="t")(lambda: "ran")
        person = Person(server)
        future = server.request(call("t"), "c")
        gate.wait_entered()
        running = one_call(server)
        server._engine._expire(running, running.runs)
        assert denial_of(future.result(WAIT))["detail"] == "authorizer timed out"
        gate.open()
        eventually(lambda: server.stats().in_flight == 0)
        assert server.stats().parked == 0
        assert person.inbox.messages == []


@pytest.mark.parametrize(
    ("method", "seam"),
    [("tools/list", "authorizer"), ("tools/list", "read_authorizer"),
     ("resources/read", "read_authorizer"), ("logging/setLevel", "read_authorizer")],
)  # fmt: skip
def test_s14_a_read_whose_authorizer_is_too_slow_is_denied(method: str, seam: str) -> None:
    """Lists too; a late ALLOW changes nothing, and a real short time-out does the same."""
    gate = Gate()

    def authorizer(name: str, arguments: object, context: object) -> object:
        gate()
        return ALLOW

    with offering(**{seam: authorizer}, callback_timeout=0.02) as server:
        params = next(params for name, params, _ in READS if name == method)
        error = ask(server, req(method, params))["error"]
        assert error["code"] == -31403
        assert error["data"]["detail"] == "authorizer timed out"
        gate.open()
        eventually(lambda: server.stats().in_flight == 0)


def test_s14_a_late_allow_changes_nothing_on_a_read_surface() -> None:
    """Neither the level nor the subscriptions of a connection that was told no."""
    gate = Gate()

    def authorizer(name: str, arguments: object, context: object) -> object:
        gate()
        return ALLOW

    with offering(read_authorizer=authorizer) as server:
        Person(server)
        for n, (method, params) in enumerate(
            [("logging/setLevel", {"level": "debug"}), ("resources/subscribe", {"uri": "a://x"})]
        ):
            future = server.request(req(method, params, n), "c")
            gate.wait_entered()
            running = one_call(server)
            server._engine._expire(running, running.runs)
            assert future.result(WAIT) is not None
        gate.open()
        eventually(lambda: server.stats().in_flight == 0)
        assert server.stats().subscriptions == 0
        conn = server._engine.connections.find("c")
        assert conn is not None
        assert conn.log_level == "info"


def test_s14_a_guarded_request_takes_one_slot() -> None:
    """A list asks for all its tools on one; `ping` and discover take none, even when all are."""
    gate = Gate()

    def authorizer(name: str, arguments: object, context: object) -> object:
        gate()
        return ALLOW

    with offering(authorizer=authorizer, max_in_flight=1) as server:
        server.tool(name="u")(lambda: "ran")
        future = server.request(req("tools/list"), "c")
        gate.wait_entered()
        assert server.stats().in_flight == 1
        assert ask(server, call("t"), "x")["error"]["code"] == -31429
        for message in (req("ping"), modern("server/discover"), req("prompts/list")):
            assert "result" in ask(server, message, "x")
        gate.open()
        answer = future.result(WAIT)
        assert answer is not None
        assert len(answer["result"]["tools"]) == 2


def test_s26_the_ready_made_ones_serve_both_seams() -> None:
    """An allow-list of methods lets through just these."""
    with offering(read_authorizer=allowlist(["tools/list"]), authorizer=allowlist(["t"])) as server:
        assert [tool["name"] for tool in result(server, req("tools/list"))["tools"]] == ["t"]
        assert ask(server, req("prompts/list"))["error"]["code"] == -31403
        assert text(ask(server, call("t"))) == "ran"


def test_an_ask_without_a_text_denies_and_the_log_says_what_it_lacks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ask is the right answer; its prompt is not."""
    with offering(authorizer=lambda *given: Ask(3)) as server:  # type: ignore[arg-type]
        assert result(server, call("t"))["isError"] is True
    assert "an Ask whose prompt is no str (int): denied" in caplog.text
