"""What servers send, made from the official schemas, as it should be and spoiled, to the client.

A valid result is read; one that is none raises ``InvalidResponse``; a request is answered once, and
with the specified error where it is wrong; notifications are taken or ignored. Nothing is fatal.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from raxol_sync import Client, Context, InputRequired, InvalidResponse, Server
from tests.features.schemas import REVISIONS, SETTINGS, Revision, spoiled, with_schema
from tests.server.helpers import WAIT, initialize

Json = dict[str, Any]

FOR_EACH = settings(SETTINGS, max_examples=20)  # of the result types
CAPABILITIES: Json = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}}
INFO = {"name": "puppet", "version": "1"}
LEGACY = [name for name in REVISIONS if name < "2026"]

# For each method: how it is called, and what its result cannot be read without.
CALLS: dict[str, tuple[Callable[[Client], object], str | None]] = {
    "tools/list": (lambda client: client.list_tools(refresh=True), "tools"),
    "tools/call": (lambda client: client.call_tool("x"), "content"),
    "resources/list": (lambda client: client.list_resources(), "resources"),
    "resources/templates/list": (
        lambda client: client.list_resource_templates(),
        "resourceTemplates",
    ),
    "resources/read": (lambda client: client.read_resource("a:b"), "contents"),
    "prompts/list": (lambda client: client.list_prompts(), "prompts"),
    "prompts/get": (lambda client: client.get_prompt("x"), "messages"),
    "completion/complete": (
        lambda client: client.complete({"type": "ref/prompt", "name": "x"}, {"name": "a"}),
        "completion",
    ),
}


class Puppet:
    """A server whose results are put into its mouth, and which hears what it is answered."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.results: list[Json] = []
        self.answers: queue.SimpleQueue[Json] = queue.SimpleQueue()
        self.push: Callable[[Json], object] = lambda message: None

    def subscribe(self, subscriber: Callable[[Json], object], conn_id: object) -> Puppet:
        """Take the way to the client."""
        self.push = subscriber
        return self

    def close(self) -> None:
        """End the subscription."""

    def request(
        self,
        message: Json,
        conn_id: object,
        *,
        sink: Callable[[Json], object],
        owner: object = None,
    ) -> Future[Json | None]:
        """Answer what is asked with the next result."""
        future: Future[Json | None] = Future()
        future.set_result(None)
        if "method" not in message:
            self.answers.put(message)
        elif "id" in message:
            result = self._opening(message["method"]) or self.results.pop(0)
            sink({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return future

    def _opening(self, method: str) -> Json | None:
        if method == "initialize":
            known = {"protocolVersion": self.revision, "capabilities": CAPABILITIES}
            return {**known, "serverInfo": INFO}
        if method == "server/discover":
            known = {"supportedVersions": [self.revision], "capabilities": CAPABILITIES}
            return {**known, "resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
        return None


@contextmanager
def connected(revision: str, **options: Any) -> Iterator[tuple[Puppet, Client]]:
    """A puppet and a client of it."""
    puppet = Puppet(revision)
    with Client("test", server=puppet, protocol_version=revision, **options) as client:
        yield puppet, client


def next_page(key: str, result: Json) -> list[Json]:
    """The last page of a list that goes on."""
    return [{key: [], "resultType": "complete"}] if "nextCursor" in result else []


def drawn(data: st.DataObject, known: Revision, method: str) -> Json:
    """A valid result of a method."""
    result: Json = data.draw(known.values(known.result_type(method)))
    if known.modern:
        result["resultType"] = "complete"
    return result


@with_schema()
def test_a_valid_result_is_read(known: Revision) -> None:
    """Whatever it holds, fields that nobody knows included."""
    with connected(known.name) as (puppet, client):

        @SETTINGS
        @given(st.data())
        def check(data: st.DataObject) -> None:
            method = data.draw(st.sampled_from(sorted(CALLS)))
            call, key = CALLS[method]
            result = drawn(data, known, method)
            result["surplus"] = {"a": 1}
            puppet.results = [result, *next_page(str(key), result)]
            call(client)

        check()
        assert client.status().state == "ready"


@with_schema()
def test_a_spoiled_result_is_read_or_refused(known: Revision) -> None:
    """Never anything else; what cannot be read without is missed."""
    with connected(known.name) as (puppet, client):

        @FOR_EACH
        @given(st.data())
        def check(method: str, data: st.DataObject) -> None:
            call, key = CALLS[method]
            _, result = data.draw(spoiled(drawn(data, known, method)))
            puppet.results = [result, *next_page(str(key), result)]
            kind = dict if key == "completion" else list
            unreadable = type(result.get(str(key))) is not kind
            try:
                call(client)
            except (InvalidResponse, InputRequired):
                return
            assert not unreadable, result

        for method in CALLS:
            check(method)
        assert client.status().state == "ready"


# ---------------------------------------------------------------- what a server asks

HANDLERS: Json = {
    "on_elicit": lambda message, schema, url=None: {},
    "on_sample": lambda params, tools=(): "hello",
    "roots": ["/"],
}
ANSWERS = {
    "ping": "EmptyResult",
    "elicitation/create": "ElicitResult",
    "sampling/createMessage": "CreateMessageResult",
    "roots/list": "ListRootsResult",
}
NEEDED = {"elicitation/create": ("message",), "sampling/createMessage": ("messages",)}


@with_schema(LEGACY)
def test_each_request_of_a_server_is_answered_once(known: Revision) -> None:
    """With a valid result, or with an error where it lacks what is needed."""
    types = {known.method(name): name for name in known.union("ServerRequest")}
    with connected(known.name, **HANDLERS) as (puppet, client):

        @SETTINGS
        @given(st.data())
        def check(data: st.DataObject) -> None:
            method = data.draw(st.sampled_from(sorted(types)))
            message = {"jsonrpc": "2.0", "id": 1, **data.draw(known.values(types[method]))}
            valid = known.problem(types[method], message) is None
            if message.get("params"):
                _, message = data.draw(spoiled(message, ("params",)))
                valid = known.problem(types[method], message) is None
            puppet.push(message)
            answer = puppet.answers.get(timeout=WAIT)
            assert answer["id"] == message["id"]
            params = message.get("params") or {}
            if "error" in answer:
                assert answer["error"]["code"] in {-32600, -32601, -32602}
                assert not valid or method not in ANSWERS, answer
            else:
                assert known.problem(ANSWERS[method], answer["result"]) is None
                assert all(name in params for name in NEEDED.get(method, ()))

        check()
        assert puppet.answers.empty()
        assert client.status().state == "ready"


@with_schema(["2026-07-28"])
def test_a_spoiled_input_request_is_answered_or_refused(known: Revision) -> None:
    """In the stateless era a server asks in a result; the call ends in a way that has a name."""
    complete = {"content": [], "resultType": "complete"}
    with connected(known.name, **HANDLERS) as (puppet, client):

        @SETTINGS
        @given(st.data())
        def check(data: st.DataObject) -> None:
            asked = data.draw(known.values("InputRequiredResult"))
            asked["resultType"] = "input_required"
            _, asked = data.draw(spoiled(asked))
            puppet.results = [asked, complete]
            try:
                assert client.call_tool("x").content == []
            except (InvalidResponse, InputRequired):
                return

        check()
        assert client.status().state == "ready"


@with_schema()
def test_notifications_of_a_server_are_taken_or_ignored(known: Revision) -> None:
    """However they look; nothing is answered, and the client goes on."""
    names = known.union("ServerNotification")
    told: list[object] = []
    hears = {"on_log": lambda *given: told.append(given), "on_notification": print}
    with connected(known.name, **hears) as (puppet, client):

        @SETTINGS
        @given(st.data())
        def check(data: st.DataObject) -> None:
            note = data.draw(known.values(data.draw(st.sampled_from(names))))
            _, note = data.draw(spoiled({"jsonrpc": "2.0", **note}, ("params",)))
            if "id" not in note:
                puppet.push(note)

        check()
        assert puppet.answers.empty()
        puppet.results = [{"content": [], "resultType": "complete"}]
        assert client.call_tool("x").content == []


# ---------------------------------------------------------------- what a client answers


@with_schema(LEGACY)
def test_a_spoiled_answer_of_a_client_ends_its_call_and_nothing_else(known: Revision) -> None:
    """The tool's call is answered once, validly; the tool itself is not blamed."""
    kinds = {"ask": "ElicitResult", "model": "CreateMessageResult", "folders": "ListRootsResult"}
    kinds = {tool: name for tool, name in kinds.items() if name in known.types}
    with Server() as server:
        _asking(server)
        heard: queue.SimpleQueue[Json] = queue.SimpleQueue()
        with server.subscribe(heard.put, "c"):
            everything: Json = {"elicitation": {}, "sampling": {}, "roots": {}}
            server.handle_message(initialize(known.name, **everything), "c")

            @SETTINGS
            @given(st.data())
            def check(data: st.DataObject) -> None:
                tool = data.draw(st.sampled_from(sorted(kinds)))
                _, result = data.draw(spoiled(data.draw(known.values(kinds[tool]))))
                params = {"name": tool}
                call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
                future = server.request(call, "c")
                question = heard.get(timeout=WAIT)
                reply = {"jsonrpc": "2.0", "id": question["id"], "result": result}
                server.handle_message(reply, "c")
                answer = future.result(WAIT)
                assert answer is not None
                assert known.problem("CallToolResult", answer["result"]) is None

            check()
        assert {server.registry.circuit_status(("tool", tool)) for tool in kinds} == {"closed"}


def _asking(server: Server) -> None:
    form = {"type": "object", "properties": {"x": {"type": "string"}}}

    @server.tool
    def ask(context: Context) -> str:
        return str(context.elicit("?", form).content)

    @server.tool
    def model(context: Context) -> str:
        return context.sample("?").text

    @server.tool
    def folders(context: Context) -> list[str]:
        return [root.uri for root in context.list_roots()]
