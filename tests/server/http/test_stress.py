"""Many clients at once that come, leave, come back and break off: nothing is left of them."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest

from raxol_sync import Context, Server
from raxol_sync.server.http import exchange
from tests.server.helpers import call, eventually, initialize, req
from tests.server.http.driver import Answer, Driver, Host, Session, driver_of

CLIENTS = 12
STEPS = 200


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(
        "http", max_in_flight=64, max_in_flight_per_connection=64, elicitation_timeout=0.2
    ) as server:

        @server.tool
        def work(n: int, context: Context) -> str:
            for step in range(n):
                context.progress(step + 1)
                context.check_cancelled()
                if step % 3 == 2:
                    context.close_stream(retry=0)
            return "done"

        @server.tool
        def ask(context: Context) -> str:
            return context.elicit("?", {"type": "object", "properties": {}}).action

        yield server


class Client:
    """One client, with a will of its own."""

    def __init__(self, http: Driver, seed: int) -> None:
        self.http = http
        self.random = random.Random(seed)
        self.session: Session | None = None
        self.open: list[Answer] = []
        self.last: list[str] = []
        self.wishes = [self.modern, self.listen, self.legacy, self.begin, self.get, self.delete]
        self.wishes += [self.leave, self.read, self.read]

    def run(self) -> None:
        """Do this and that."""
        for _ in range(STEPS):
            self.random.choice(self.wishes)()
        for answer in self.open:
            answer.close()

    def keep(self, answer: Answer) -> None:
        assert answer.status in (200, 400, 404, 503), answer.status
        if answer.is_stream:
            self.open.append(answer)

    def params(self) -> dict[str, object]:
        return {"name": "work", "arguments": {"n": self.random.randrange(6)}}

    def modern(self) -> None:
        host = Host()
        answer = self.http.modern(
            "tools/call",
            self.params(),
            meta={"progressToken": 1},
            environ={"raxol_sync.host": host},
        )
        if answer.is_stream and self.random.random() < 0.5:
            host.leave()
        self.keep(answer)

    def listen(self) -> None:
        wanted = {"notifications": {"toolsListChanged": True}}
        self.keep(self.http.modern("subscriptions/listen", wanted))

    def begin(self) -> None:
        answer = self.http.post(initialize(elicitation={}))
        assert answer.status in (200, 503)
        if answer.status == 200:
            self.session = Session(self.http, answer.headers["mcp-session-id"], "2025-11-25")
            self.last = ["0-0"]

    def legacy(self) -> None:
        if self.session is None:
            return self.begin()
        number = self.random.randrange(10**9)
        if self.random.random() < 0.3:
            answer = self.session.post(call("ask", id=number))
        else:
            message = req("tools/call", {**self.params(), "_meta": {"progressToken": 1}}, number)
            answer = self.session.post(message)
        self.keep(answer)
        return None

    def get(self) -> None:
        if self.session is not None:
            last = self.random.choice([None, *self.last])
            self.keep(self.session.get(last=last))

    def delete(self) -> None:
        if self.session is not None and self.random.random() < 0.2:
            self.session.delete()
            self.session = None

    def leave(self) -> None:
        if self.open:
            self.open.pop(self.random.randrange(len(self.open))).close()

    def read(self) -> None:
        if not self.open:
            return
        answer = self.random.choice(self.open)
        for event in [next(answer.events(), {}) for _ in range(2)]:
            if event.get("id"):
                self.last.append(event["id"])
            if "elicitation/create" in event.get("data", "") and self.session is not None:
                import json

                question = json.loads(event["data"])["id"]
                reply = {"jsonrpc": "2.0", "id": question, "result": {"action": "decline"}}
                self.session.post(reply)


def test_clients_that_do_what_they_want_leave_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Places, sessions, requests, connections: all are given back."""
    monkeypatch.setattr(exchange, "SILENT", 0.03)
    http = driver_of(server, max_streams=40, max_sessions=20, keep_alive=0.02)
    failures: list[BaseException] = []

    def client(seed: int) -> None:
        try:
            Client(http, seed).run()
        except BaseException as error:
            failures.append(error)

    stop = threading.Event()

    def shake() -> None:
        while not stop.is_set():
            server.notify("notifications/tools/list_changed")
            stop.wait(0.001)

    shaker = threading.Thread(target=shake)
    shaker.start()
    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    stop.set()
    shaker.join()
    assert failures == []
    service = http.app._service
    http.app.close()
    eventually(lambda: server.stats().connections == 0)
    eventually(lambda: server.stats().in_flight == 0)
    stats = server.stats()
    assert (stats.listens, stats.parked, stats.subscriptions, stats.capabilities) == (0, 0, 0, 0)
    assert service.places.open == 0
    assert service._endless == set()
    assert (len(service.sessions), service.sessions.store.bytes) == (0, 0)
    assert server._engine.connections.all() == []
    assert server._app.questions._open == {}
