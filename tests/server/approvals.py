"""What the tests of approvals and questions share: a client's person, stepped deadlines."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from raxol_sync import ALLOW, Ask, Server
from raxol_sync.policy import Authorizer
from raxol_sync.server.connections import Call
from tests.server.helpers import CAPABILITIES, Json, Recorder, ask, eventually, initialize
from tests.server.helpers import modern as modern_request

FORMS: Json = {"elicitation": {"form": {}}}
YES = {"action": "accept", "content": {"approve": True}}
NO: Json = {"action": "decline"}


class Person:
    """A legacy client that declares elicitation, and the person in front of it."""

    def __init__(self, server: Server, conn_id: object = "c", **capabilities: Any) -> None:
        self.server = server
        self.conn_id = conn_id
        self.inbox = Recorder()
        self.subscription = server.subscribe(self.inbox, conn_id)
        ask(server, initialize(**(capabilities or {"elicitation": {}})), conn_id)

    def pushed(self, pick: Callable[[Json], bool], count: int = 1) -> list[Json]:
        """Wait until that many pushed messages fit, and return them."""
        eventually(lambda: sum(map(pick, list(self.inbox.messages))) >= count)
        return [message for message in self.inbox.messages if pick(message)]

    def questions(self, count: int = 1) -> list[Json]:
        """Wait for that many requests of the server's and return them."""
        return self.pushed(lambda message: "method" in message and "id" in message, count)

    def responses(self, count: int = 1) -> list[Json]:
        """Wait for that many pushed responses and return them."""
        return self.pushed(lambda message: "method" not in message, count)

    def answer(self, question: Json, result: Json | None = None, **message: object) -> None:
        """Answer a question; with an approval unless something else is given."""
        body = message or {"result": YES if result is None else result}
        reply = {"jsonrpc": "2.0", "id": question["id"], **body}
        assert self.server.handle_message(reply, self.conn_id) is None


def asks(prompt: str = "Run it?") -> Authorizer:
    """An authorizer that asks about every call."""
    return lambda name, arguments, context: Ask(prompt)


def asks_about(*names: str) -> Authorizer:
    """An authorizer that asks about these tools and allows the others."""
    return lambda name, arguments, context: Ask(f"Run {name}?") if name in names else ALLOW


def served(authorizer: Authorizer | None = None, **options: Any) -> Server:
    """A server whose authorizer was chosen; by default it asks about everything."""
    return Server(authorizer=authorizer or asks(), authorizer_source="configured", **options)


def wiping(**options: Any) -> tuple[Server, list[int]]:
    """A server with one tool that is asked about, and what that tool was called with."""
    server, wiped = served(asks_about("wipe"), **options), []

    @server.tool
    def wipe(disk: int) -> str:
        wiped.append(disk)
        return f"wiped {disk}"

    server.tool(name="free")(lambda: "free")
    return server, wiped


def idle(server: Server) -> None:
    """Nothing is parked, in flight or outstanding any more."""
    eventually(lambda: server.stats().in_flight == 0)
    stats = server.stats()
    assert (stats.parked, stats.parked_by_connection, stats.in_flight_by_connection) == (0, {}, {})
    assert server._engine.outstanding() == []


def denial_of(answer: Json | None) -> Json:
    """The machine-readable words of a denied tool call."""
    assert answer is not None
    assert answer["result"]["isError"] is True, answer
    content = answer["result"]["content"]
    assert [item["type"] for item in content] == ["text"]
    value: Json = json.loads(content[0]["text"])
    return value


def the_call(server: Server) -> Call:
    """The one request that is outstanding."""
    (found,) = server._engine.outstanding()
    return found


def expire(call: Call) -> None:
    """Have a parked call's time run out, as the timer would say it."""
    assert call.place is not None
    place = call.place
    eventually(lambda: place.timer is not None)
    action = place.timer.action
    if action is not None:  # else it was disarmed
        action()


def modern(method: str, params: Json | None = None, id: object = 1, **meta: object) -> Json:
    """A modern request of a client that takes forms."""
    return modern_request(method, params, id, **{CAPABILITIES: FORMS, **meta})


def modern_call(name: str, arguments: Json | None = None, **more: object) -> Json:
    """A modern `tools/call` of a client that takes forms."""
    return modern("tools/call", {"name": name, "arguments": arguments or {}, **more})


def retry(first: Json, name: str, arguments: Json | None = None, **answers: Any) -> Json:
    """The retry of a modern call, with its state and these answers (`_` stands for `-`)."""
    state = first["result"]["requestState"]
    given = {key.replace("_", "-"): value for key, value in answers.items()}
    return modern_call(name, arguments, requestState=state, inputResponses=given)
