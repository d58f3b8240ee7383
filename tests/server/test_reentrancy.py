"""Nothing of the user's runs under the lock: what calls back in, blocks or raises harms nobody."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from raxol_sync import ALLOW, Server, ToolError
from tests.server.approvals import Person, asks_about
from tests.server.helpers import WAIT, Gate, Json, Recorder, ask, call, eventually, initialize, req

Act = Callable[[Server], object]
HOOKS = (
    "authorizer", "read_authorizer", "telemetry", "subscriber", "sink", "is_fault", "completer",
    "unknown_tool_reply", "log handler", "tool", "done callback",
)  # fmt: skip


class Hooked:
    """A server all of whose callbacks do one thing where `where` says so."""

    def __init__(self, where: str, act: Act) -> None:
        self.where, self.act = where, act
        self.entered = threading.Event()
        self.once = threading.Lock()
        self.server = Server(
            authorizer=lambda *_: self.here("authorizer", ALLOW),
            read_authorizer=lambda *_: self.here("read_authorizer", ALLOW),
            telemetry=lambda *_: self.here("telemetry"),
            unknown_tool_reply=lambda name: self.here("unknown_tool_reply", "gone"),
            callback_timeout=WAIT,
        )

        @self.server.tool(is_fault=lambda error: self.here("is_fault", True))
        def t(n: int = 0) -> str:
            self.here("tool")
            raise ToolError("words")

        completer = lambda value: self.here("completer", ["x"])  # noqa: E731
        self.server.prompt(name="p", completers={"who": completer})(lambda who: who)
        self.server.tool(name="broken")(lambda: 1 / 0)

    def here(self, where: str, value: object = None) -> Any:
        """Do it, the first time that this hook is reached."""
        if where == self.where and self.once.acquire(blocking=False):
            self.entered.set()
            self.act(self.server)
        return value

    def reach(self) -> None:
        """Send one of everything from one connection, without waiting."""
        server = self.server
        server.subscribe(lambda message: self.here("subscriber"), "hooked")
        server.notify("notifications/test")
        ref = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "who", "value": ""}}
        complete = req("completion/complete", ref)
        reached = [req("tools/list"), call("t"), call("broken"), call("nothing"), complete]
        for n, message in enumerate(reached):
            sink = (lambda message: self.here("sink")) if n == 1 else None
            future = server.request({**message, "id": n}, "hooked", sink=sink, owner=None)
            future.add_done_callback(lambda f: self.here("done callback"))


class Handler(logging.Handler):
    """A log handler that does something."""

    def __init__(self, hooked: Hooked) -> None:
        super().__init__()
        self.hooked = hooked

    def emit(self, record: logging.LogRecord) -> None:
        """Do it."""
        self.hooked.here("log handler")


@pytest.fixture
def handlers() -> Iterator[Callable[[Hooked], None]]:
    """Adds a server's log handler, and takes it away again."""
    logger, added = logging.getLogger("raxol_sync.server"), []

    def add(hooked: Hooked) -> None:
        added.append(Handler(hooked))
        logger.addHandler(added[-1])

    yield add
    for handler in added:
        logger.removeHandler(handler)


def served_elsewhere(server: Server) -> None:
    """Another connection gets its answers, from callbacks too."""
    for message in (req("ping"), req("prompts/get", {"name": "p", "arguments": {"who": "x"}})):
        assert "result" in ask(server, message, "elsewhere")


def _cancel_all(server: Server) -> None:
    for outstanding in server._engine.outstanding():
        server._engine.cancel(outstanding)


CALLS: dict[str, Act] = {
    "handle_message": lambda server: ask(server, req("ping"), "inner"),
    "a call": lambda server: ask(server, call("t"), "inner"),
    "notify": lambda server: server.notify("notifications/x", {"n": 1}),
    "stats": lambda server: server.stats(),
    "cancel": _cancel_all,
    "subscribe": lambda server: server.subscribe(Recorder(), "hooked"),
    "register": lambda server: server.tool(name="new")(lambda: "x"),
}


@pytest.mark.parametrize("where", HOOKS)
@pytest.mark.parametrize("what", CALLS)
def test_calling_back_in_does_not_deadlock(
    where: str, what: str, handlers: Callable[[Hooked], None]
) -> None:
    """Whoever calls what; others are served, and nothing is left over."""
    returned = threading.Event()

    def act(server: Server) -> None:
        CALLS[what](server)
        returned.set()

    hooked = Hooked(where, act)
    with hooked.server as server:
        handlers(hooked)
        hooked.reach()
        assert returned.wait(WAIT)
        served_elsewhere(server)
        eventually(lambda: server._engine.outstanding() == [])
        eventually(lambda: server.stats().in_flight == 0)


@pytest.mark.parametrize("where", HOOKS)
def test_blocking_stalls_only_itself(where: str, handlers: Callable[[Hooked], None]) -> None:
    """While one hook is stuck, another connection is answered."""
    gate = Gate()
    hooked = Hooked(where, lambda server: gate())
    with hooked.server as server:
        handlers(hooked)
        hooked.reach()
        gate.wait_entered()
        served_elsewhere(server)
        server.stats()
        server.notify("notifications/x")
        gate.open()
        eventually(lambda: server.stats().in_flight == 0)


# A log handler that exits means it: logging passes that on to whoever logs.
RAISING = [(where, error) for where in HOOKS for error in (ValueError("x"), SystemExit(1))
           if where != "log handler" or isinstance(error, ValueError)]  # fmt: skip


@pytest.mark.parametrize(("where", "error"), RAISING)
def test_raising_harms_nobody_else(
    where: str, error: BaseException, handlers: Callable[[Hooked], None]
) -> None:
    """Every request of the others is answered, and the slots come back."""

    def act(server: Server) -> None:
        raise error

    hooked = Hooked(where, act)
    with hooked.server as server:
        handlers(hooked)
        hooked.reach()
        assert hooked.entered.wait(WAIT)
        served_elsewhere(server)
        eventually(lambda: server._engine.outstanding() == [])
        eventually(lambda: server.stats().in_flight == 0)
        assert server.stats().in_flight_by_connection == {}


@pytest.mark.parametrize("where", [h for h in HOOKS if h != "log handler"])
def test_closing_from_within_ends_the_server(where: str) -> None:
    """It returns, does not wait for itself, and what is outstanding ends."""
    closed = threading.Event()

    def act(server: Server) -> None:
        server.close(WAIT)
        closed.set()

    hooked = Hooked(where, act)
    hooked.reach()
    assert closed.wait(WAIT)
    hooked.server.close()
    assert hooked.server.stats().parked == 0
    assert hooked.server._engine.outstanding() == []


def test_a_subscriber_that_answers_questions_itself_is_no_deadlock() -> None:
    """It is called outside the lock, on its own thread."""
    with Server(authorizer=asks_about("t"), callback_timeout=WAIT) as server:
        server.tool(name="t")(lambda: "ran")
        person = Person(server)
        inner = Recorder()

        def answer(message: Json) -> None:
            inner(message)
            if "method" in message and "id" in message:
                person.answer(message)
                ask(server, req("ping", id=f"p{message['id']}"), "c")

        server.subscribe(answer, "c")
        ask(server, initialize(elicitation={}), "c")
        for n in range(20):
            assert server.handle_message(call("t", id=n), "c") is None
        eventually(lambda: sum("method" not in m for m in inner.messages) == 20)
