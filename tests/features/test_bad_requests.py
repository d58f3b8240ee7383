"""Requests made from the official schemas, as they should be and spoiled, against the server.

For each request type of each revision: what its client may not send gets the specified error, all
else is served; fields that nobody knows change nothing; and whatever is answered is valid itself.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from raxol_sync import Context, Server
from tests.features.schemas import ANYTHING, SETTINGS, Revision, spoiled, with_schema
from tests.server.helpers import WAIT, initialize

Json = dict[str, Any]

FOR_EACH = settings(SETTINGS, max_examples=30)  # of the request types
VERSION = "io.modelcontextprotocol/protocolVersion"
WRONG_PARAMS = {-32602, -32600}
NOTHING_THERE = {-32601, -32002}
# What is served although the schema has it otherwise: what is nested in capabilities and in the
# client's words about itself is looked at when it is needed, and so are answers to questions;
# tasks are not served here.
NOT_LOOKED_AT = re.compile(
    r"\$\.params(\['_meta'\][.\[]|\.(capabilities|inputResponses)[.\[]|\.task\b"
    r"|\.clientInfo\.(?!name$|version$))"
)
OFFERED = {
    "tools/call": ("name", ["echo", "ask"]),
    "prompts/get": ("name", ["greet"]),
    "resources/read": ("uri", ["test://b", "test://t/x"]),
}


def offering() -> Server:
    """A server with one of each."""
    server = Server(page_size=1, elicitation_timeout=0.05)

    @server.tool
    def echo(text: str = "") -> str:
        return text

    @server.tool
    def ask(context: Context) -> str:
        form = {"type": "object", "properties": {"x": {"type": "string"}}}
        return context.elicit("?", form).action

    @server.resource("test://b")
    def fixed() -> bytes:
        return b"b"

    @server.resource("test://t/{x}")
    def template(x: str) -> str:
        return x

    @server.prompt
    def greet(name: str = "") -> str:
        return name

    return server


def methods_of(known: Revision) -> list[str]:
    """The methods of a revision, but for the one that stays open."""
    return sorted(set(known.requests) - {"subscriptions/listen"})


def drawn(data: st.DataObject, known: Revision, method: str | None = None) -> Json:
    """A valid request, often one for something that is there."""
    method = method or data.draw(st.sampled_from(methods_of(known)))
    message: Json = data.draw(known.values(known.requests[method]))
    if method in OFFERED and data.draw(st.integers(0, 3)):
        key, values = OFFERED[method]
        message["params"][key] = data.draw(st.sampled_from(values))
        if not isinstance(message["params"].get("requestState"), type(None)):
            del message["params"]["requestState"]  # none of ours: always refused
    if "cursor" in message.get("params", {}):
        message["params"]["cursor"] = data.draw(st.sampled_from(["p0", "p1", "p9"]))
    if known.modern:
        message["params"]["_meta"][VERSION] = known.name
    if known.name <= "2025-06-18":  # their schemas have only what is in params
        message = {"jsonrpc": "2.0", "id": data.draw(st.sampled_from([1, "i"])), **message}
    return message


def complaints(known: Revision, method: str, message: Json) -> list[str]:
    """What is wrong with a request, as far as a server looks at it."""
    return [
        error.json_path
        for error in known.validator(known.requests[method]).iter_errors(message)
        # What may be left out may be null, and so may params as a whole.
        if error.instance is not None and not NOT_LOOKED_AT.match(error.json_path)
    ]


def answered(server: Server, known: Revision, message: Json) -> Json:
    """Have a message handled on a connection of its own; check the answer's form."""
    conn = object()
    if not known.modern:
        server.handle_message(initialize(known.name, elicitation={}), conn)
    answer = server.handle_message(copy.deepcopy(message), conn, timeout=WAIT)
    assert answer is not None
    assert answer["jsonrpc"] == "2.0"
    if "error" in answer:
        if answer.get("id") is not None:  # older revisions: null, where none could be read
            kinds = {"JSONRPCErrorResponse", "JSONRPCError"} & set(known.types)
            assert known.problem(kinds.pop(), answer) is None
        return answer
    assert answer["id"] == message["id"]
    kind = known.result_type(message["method"])
    if answer["result"].get("resultType") == "input_required":
        kind = "InputRequiredResult"
    assert known.problem(kind, answer["result"]) is None, answer
    return answer


@with_schema()
def test_what_a_client_may_send_is_served_and_the_rest_is_refused(known: Revision) -> None:
    """Missing, wrong-typed and oversized params, one at a time."""
    with offering() as server:

        @FOR_EACH
        @given(st.data())
        def check(method: str, data: st.DataObject) -> None:
            message = drawn(data, known, method)
            if message.get("params"):
                _, message = data.draw(spoiled(message, ("params",)))
            params = message.get("params")
            meta = params.get("_meta") if isinstance(params, dict) else None
            if known.modern and not (isinstance(meta, dict) and VERSION in meta):
                return  # over this kind of connection that is a request of the older era
            wrong = complaints(known, method, message)
            answer = answered(server, known, message)
            code = answer["error"]["code"] if "error" in answer else None
            if method.startswith("tasks/"):
                assert code in {-32601, -32602}
            elif wrong:  # what names nothing that is there may be told that first
                assert code in WRONG_PARAMS | (NOTHING_THERE if method in OFFERED else set()), wrong

        for method in methods_of(known):
            check(method)
        assert server.stats().in_flight == 0


@with_schema()
def test_fields_that_nobody_knows_change_nothing(known: Revision) -> None:
    """Beside the params and within them: the answer is the same."""
    with offering() as server:

        @SETTINGS
        @given(st.data())
        def check(data: st.DataObject) -> None:
            message = drawn(data, known)
            more = copy.deepcopy(message)
            more["surplus"] = data.draw(ANYTHING)
            if "params" in more:
                more["params"]["surplus"] = data.draw(ANYTHING)
                more["params"].setdefault("_meta", {})["com.example/x"] = data.draw(ANYTHING)
            plain = answered(server, known, message)
            again = answered(server, known, more)
            for found in (plain, again):  # the state is another one each time
                found.get("result", {}).pop("requestState", None)
            assert plain == again

        check()


@with_schema()
def test_a_spoiled_frame_around_a_request_is_refused_or_ignored(known: Revision) -> None:
    """Its id, method and version: -32600 or -32601, or nothing where it is no request."""
    with offering() as server:

        @SETTINGS
        @given(st.data())
        def check(data: st.DataObject) -> None:
            message = drawn(data, known)
            key = data.draw(st.sampled_from(["jsonrpc", "id", "method"]))
            if data.draw(st.booleans()):
                del message[key]
            else:
                message[key] = data.draw(ANYTHING.filter(lambda value: value != message[key]))
            conn = object()
            answer = server.handle_message(message, conn, timeout=WAIT)
            if key == "id" and "id" not in message:
                assert answer is None
            elif not (key == "id" and type(message["id"]) in (int, str)):
                assert answer is not None
                assert answer["error"]["code"] in {-32600, -32601}

        check()


@with_schema()
def test_notifications_are_never_answered(known: Revision) -> None:
    """However they look; the server goes on."""
    names = known.union("ClientNotification") or ["CancelledNotification"]
    with offering() as server:

        @SETTINGS
        @given(st.data())
        def check(data: st.DataObject) -> None:
            note = data.draw(known.values(data.draw(st.sampled_from(names))))
            _, note = data.draw(spoiled({"jsonrpc": "2.0", **note}, ("params",)))
            if "id" not in note and "method" in note:
                assert server.handle_message(note, "c", timeout=WAIT) is None

        check()
        assert answered(server, known, _question(known))["result"] is not None


def _question(known: Revision) -> Json:
    message: Json = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    if known.modern:
        capabilities = "io.modelcontextprotocol/clientCapabilities"
        message["params"]["_meta"] = {VERSION: known.name, capabilities: {}}
    return message
