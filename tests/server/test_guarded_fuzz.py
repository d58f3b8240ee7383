"""Anything at all, with authorizers and tools that ask, in both eras (rows S01, S36, S42)."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from raxol_sync import ALLOW, Ask, Context, Deny, Elicit, Roots, Sample, Server
from tests.server.helpers import (
    CAPABILITIES,
    WAIT,
    Json,
    Recorder,
    ask,
    eventually,
    initialize,
    modern,
    req,
)
from tests.server.test_fuzz import JSON, METHODS, PARAMS, VALUES, check

FORM = {"type": "object", "properties": {"n": {"type": "integer"}}}
EVERYTHING: Json = {"elicitation": {}, "sampling": {}, "roots": {}}
NAMES = st.sampled_from(["asked", "asks", "denied", "garbage", "free", "none"])
ANSWERS = st.sampled_from(
    [{"action": "accept", "content": {"approve": True}}, {"action": "decline"}, {"roots": []}]
)
KEYS = st.sampled_from(["raxol-approval", "a", "b", "c", "x"])


def guarded() -> Server:
    """A server whose authorizers do everything, and whose tools ask."""

    def authorizer(name: str, arguments: Any, context: object) -> Any:
        if name == "asked":
            return Ask("sure?")
        return {"denied": Deny("no"), "garbage": True}.get(name, ALLOW)

    def reads(method: str, detail: Any, context: object) -> Any:
        return Deny("no") if "y" in str(detail) else ALLOW

    server = Server(
        authorizer=authorizer, read_authorizer=reads, max_parked_elicitations=4,
        max_parked_elicitations_total=4, elicitation_timeout=0.002, callback_timeout=WAIT,
    )  # fmt: skip
    for name in ("asked", "denied", "garbage", "free"):
        server.tool(name=name)(lambda value=0: value)

    @server.tool
    def asks(context: Context) -> str:
        found = context.ask({"a": Elicit("N?", FORM), "b": Sample("Hi"), "c": Roots()})
        return str(sorted(found))

    return server


def settle(server: Server) -> None:
    """Everything comes to rest, and every count to zero."""
    eventually(lambda: server._engine.outstanding() == [])
    eventually(lambda: server.stats().in_flight == 0)
    stats = server.stats()
    assert (stats.parked, stats.parked_by_connection, stats.in_flight_by_connection) == (0, {}, {})
    assert server._app.questions._open == {}


def test_s01_any_message_to_a_guarded_server_is_answered_or_parked() -> None:
    """Calls, reads, guessed answers and garbage, from a client that can be asked."""
    with guarded() as server:
        inbox = Recorder()
        server.subscribe(inbox, "c")
        ask(server, initialize(**EVERYTHING))

        @settings(max_examples=250)
        @given(METHODS, PARAMS, NAMES, st.booleans(), JSON, st.data())
        def fuzz(
            method: str, params: Json, name: str, is_modern: bool, garbage: Any, data: st.DataObject
        ) -> None:
            if data.draw(st.booleans()):
                method, params = "tools/call", {**params, "name": name}
            message = (modern if is_modern else req)(method, params, 3)
            if is_modern:
                message["params"]["_meta"][CAPABILITIES] = EVERYTHING
            future = server.request(message, "c")
            asked = [m["id"] for m in list(inbox.messages) if "method" in m and "id" in m]
            # What is drawn must not depend on what happened: a number picks from it.
            guesses = [*asked[-3:], "raxol-elicit-" + "0" * 32, 3, "x"]
            guess = guesses[data.draw(st.integers(0, 5)) % len(guesses)]
            body = data.draw(
                st.fixed_dictionaries({"result": VALUES | ANSWERS})
                | st.fixed_dictionaries({"error": VALUES})
                | st.just({"result": garbage, "error": garbage})
            )
            reply = {"jsonrpc": "2.0", "id": guess, **body}
            assert server.handle_message(reply, data.draw(st.sampled_from(["c", "d"]))) is None
            answer = future.result(WAIT)
            assert answer is not None
            check(answer)

        fuzz()
        settle(server)


def test_s42_any_answers_with_any_state_are_answered() -> None:
    """States that were given, used, cut or made up; answers of any shape under any key."""
    with guarded() as server:
        states: list[str] = []

        @settings(max_examples=250)
        @given(st.sampled_from(["asked", "asks"]), st.dictionaries(KEYS, VALUES | ANSWERS) | VALUES,
               st.data())  # fmt: skip
        def fuzz(name: str, answers: Any, data: st.DataObject) -> None:
            params: Json = {"name": name, "inputResponses": answers}
            known = data.draw(st.integers(0, 4))
            state: Any = data.draw(VALUES | st.text(max_size=9))
            length = data.draw(st.none() | st.integers(0, 300))
            if known < 3 and states:
                state = states[-1 - known % len(states)]
                state = state if length is None else state[:length]
            if state is not None:
                params["requestState"] = state
            answer = ask(server, modern("tools/call", params, 3, **{CAPABILITIES: EVERYTHING}))
            check(answer)
            found = answer.get("result", {})
            if found.get("resultType") == "input_required":
                assert found["inputRequests"]
                states.append(found["requestState"])

        fuzz()
        settle(server)
