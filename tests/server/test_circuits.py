"""Circuit breakers of a server's callbacks, in front of real calls (row S45)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from raxol_sync import Cancelled, Context, Server, ToolError
from raxol_sync.registry import Registry
from tests.server.approvals import the_call as one_call
from tests.server.helpers import WAIT, Gate, Json, ask, call, eventually, gated, req, text

Moment = list[float]


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Moment:
    """The breakers' clock: set its one entry."""
    at = [100.0]
    monkeypatch.setattr("raxol_sync.circuits.now", lambda: at[0])
    return at


class Failing:
    """A server whose four callbacks do what `act` does."""

    def __init__(self, **options: Any) -> None:
        self.server = server = Server(**options)
        self.act: Callable[[], str] = self.fail
        self.runs = 0

        @server.tool(is_fault=lambda error: "down" in error.message)
        def t(context: Context) -> str:
            return self.run()

        server.resource("a://x", name="x")(self.run)
        server.resource("b://{v}", name="v")(lambda v: self.run())
        server.prompt(name="p")(self.run)

    def run(self) -> str:
        """Count, and do what is wanted now."""
        self.runs += 1
        return self.act()

    @staticmethod
    def fail() -> str:
        """What a broken callback does."""
        raise ValueError("secret")

    @staticmethod
    def work() -> str:
        """What a good one does."""
        return "fine"

    def say(self, error: BaseException) -> None:
        """Raise this from now on."""

        def act() -> str:
            raise error

        self.act = act


REQUESTS: dict[str, tuple[tuple[str, str], Json]] = {
    "tool": (("tool", "t"), call("t")),
    "resource": (("resource", "a://x"), req("resources/read", {"uri": "a://x"})),
    "template": (("resource", "b://{v}"), req("resources/read", {"uri": "b://1"})),
    "prompt": (("prompt", "p"), req("prompts/get", {"name": "p"})),
}


def is_open(answer: Json) -> bool:
    """Whether an answer says that the circuit is open."""
    if "error" in answer:
        return bool(answer["error"]["code"] == -31503)
    return "left alone" in str(answer["result"]["content"])


@pytest.mark.parametrize("kind", REQUESTS)
def test_s45_five_faults_open_it_for_thirty_seconds(kind: str, moment: Moment) -> None:
    """Then one probe: a good one closes it, a fault opens it for another thirty."""
    key, message = REQUESTS[kind]
    failing = Failing()
    with failing.server as server:
        status = server.registry.circuit_status
        for n in range(5):
            assert status(key) == "closed"
            assert "ValueError" in str(ask(server, message))
            assert failing.runs == n + 1
        assert status(key) == "open"
        answer = ask(server, message)
        assert is_open(answer)
        assert "secret" not in str(answer)
        if kind == "tool":
            assert answer["result"]["isError"] is True
        else:
            assert answer["error"]["data"]["retry_after"] == 30.0
        moment[0] += 29.9
        assert is_open(ask(server, message))
        assert failing.runs == 5
        moment[0] += 0.1
        assert status(key) == "half_open"
        assert "ValueError" in str(ask(server, message))
        assert status(key) == "open"
        moment[0] += 30.0
        failing.act = failing.work
        assert "fine" in str(ask(server, message))
        assert status(key) == "closed"
        assert [status(other) for other, _ in REQUESTS.values()] == ["closed"] * 4


def opened(failing: Failing) -> None:
    """Have the tool's breaker open."""
    failing.act = failing.fail
    for _ in range(5):
        ask(failing.server, call("t"))
    assert failing.server.registry.circuit_status(("tool", "t")) == "open"


def test_s45_half_open_lets_one_of_many_threads_through(moment: Moment) -> None:
    """32 at once: one runs, the others are told that it is left alone."""
    failing = Failing(max_in_flight=32, max_in_flight_per_connection=32)
    gate = Gate()
    with failing.server as server:
        opened(failing)
        moment[0] += 30.0
        before = failing.runs

        def wait() -> str:
            gate()
            return "fine"

        failing.act = wait
        barrier = threading.Barrier(32)
        answers: list[Json] = []

        def go(n: int) -> None:
            barrier.wait(WAIT)
            answers.append(ask(server, call("t", id=n)))

        threads = [threading.Thread(target=go, args=(n,)) for n in range(32)]
        for thread in threads:
            thread.start()
        gate.wait_entered()
        eventually(lambda: len(answers) == 31)
        assert all(is_open(answer) for answer in answers)
        gate.open()
        for thread in threads:
            thread.join(WAIT)
        assert failing.runs == before + 1
        assert server.registry.circuit_status(("tool", "t")) == "closed"


def test_s45_a_cancelled_probe_is_given_back(moment: Moment) -> None:
    """The next call may be it, although the cancelled one has not returned yet."""
    failing = Failing()
    gate = Gate()
    with failing.server as server:
        opened(failing)
        moment[0] += 30.0

        def wait() -> str:
            gate()
            raise ValueError("late")

        failing.act = wait
        future = server.request(call("t"), "c")
        gate.wait_entered()
        assert is_open(ask(server, call("t", id=2)))
        future.cancel()
        failing.act = failing.work
        assert text(ask(server, call("t", id=3))) == "fine"
        gate.open()
        eventually(lambda: server.stats().in_flight == 0)
        assert server.registry.circuit_status(("tool", "t")) == "closed"


def test_s45_a_time_out_counts_when_it_happens() -> None:
    """Not only when the callback has returned at last, and once."""
    with Server() as server:
        gate = gated(server)
        for n in range(5):
            future = server.request(call("wait", id=n), n)
            gate.wait_entered()
            running = one_call(server)
            server._engine._expire(running, running.runs)
            answer = future.result(WAIT)
            assert answer is not None
            assert answer["error"]["code"] == -31504
        assert server.registry.circuit_status(("tool", "wait")) == "open"
        server.registry.reset_circuit(("tool", "wait"))
        gate.open()  # five good outcomes of calls that count no more
        eventually(lambda: server.stats().in_flight == 0)
        assert server.registry.circuit_status(("tool", "wait")) == "closed"


@pytest.mark.parametrize(
    ("error", "opens"),
    [
        (ToolError("no such disk"), False),
        (ToolError("the backend is down"), True),
        (Cancelled("gone"), False),
        (SystemExit(1), True),
        (KeyboardInterrupt(), True),
        (MemoryError(), True),
    ],
)
def test_s45_what_counts_as_a_fault(error: BaseException, opens: bool) -> None:
    """Exceptions do; a `ToolError` only if `is_fault` says so; `Cancelled` never."""
    failing = Failing()
    with failing.server as server:
        failing.say(error)
        for _ in range(5):
            answer = ask(server, call("t"))
            if isinstance(error, ToolError):
                assert text(answer) == error.message
        status = server.registry.circuit_status(("tool", "t"))
        assert status == ("open" if opens else "closed")


@pytest.mark.parametrize("bad", [ValueError("x"), SystemExit(), "truthy"])
def test_s45_a_broken_is_fault_costs_the_answer_nothing(bad: Any) -> None:
    """It counts as no; the tool's words go out."""

    def judge(error: ToolError) -> Any:
        if isinstance(bad, BaseException):
            raise bad
        return bad

    with Server() as server:

        @server.tool(is_fault=judge)
        def t() -> str:
            raise ToolError("words")

        for _ in range(6):
            assert text(ask(server, call("t"))) == "words"
        assert server.registry.circuit_status(("tool", "t")) == "closed"


def test_s45_argument_errors_and_denials_never_count() -> None:
    """Five wrong calls, and the sixth works."""
    with Server() as server:

        @server.tool
        def double(n: int) -> int:
            return 2 * n

        for _ in range(6):
            assert ask(server, call("double", {"n": "x"}))["result"]["isError"] is True
        assert text(ask(server, call("double", {"n": 2}))) == "4"


def test_s45_a_success_between_starts_the_count_again() -> None:
    """Five in a row, not five in all."""
    failing = Failing()
    with failing.server as server:
        for _ in range(3):
            failing.act = failing.fail
            for _ in range(4):
                ask(server, call("t"))
            failing.act = failing.work
            assert text(ask(server, call("t"))) == "fine"


def test_s45_reset_closes_it_at_once() -> None:
    """And a key without a breaker is left alone."""
    failing = Failing()
    with failing.server as server:
        opened(failing)
        server.registry.reset_circuit(("tool", "t"))
        failing.act = failing.work
        assert text(ask(server, call("t"))) == "fine"
        server.registry.reset_circuit(("tool", "nothing"))
        assert server.registry.circuit_status(("tool", "nothing")) == "closed"


def test_s45_what_is_unregistered_is_forgotten() -> None:
    """A later one of that name begins afresh; what still ran of the old one says nothing of it."""
    registry = Registry()
    with Server(registry=registry) as server:
        gate = Gate()

        def late() -> str:
            gate()
            raise ValueError

        server.tool(name="t")(late)
        futures = [server.request(call("t", id=n), n) for n in range(8)]
        gate.wait_entered(8)
        registry.unregister_tools(["t"])
        server.tool(name="t")(lambda: "new")
        gate.open()
        for future in futures:
            future.result(WAIT)
        eventually(lambda: server.stats().in_flight == 0)
        assert registry.circuit_status(("tool", "t")) == "closed"
        assert registry.circuits._breakers == {}
        assert text(ask(server, call("t"))) == "new"


def test_s45_what_is_registered_anew_begins_afresh() -> None:
    """Whoever mends a callback and defines it again is not kept waiting for the old one's faults.

    The very same one registered once more is still the one that failed.
    """
    failing = Failing()
    with failing.server as server:
        opened(failing)
        broken = server.registry.list_tools()[0]
        server.registry.register_tools([broken])
        assert server.registry.circuit_status(("tool", "t")) == "open"
        server.tool(name="t")(lambda: "mended")
        assert server.registry.circuit_status(("tool", "t")) == "closed"
        assert text(ask(server, call("t"))) == "mended"


def test_s45_tools_that_come_and_go_leave_no_breakers() -> None:
    """One that fails while it is dropped does not come back as a breaker of nothing."""
    registry = Registry()
    with Server(registry=registry) as server:
        gate = Gate()
        for n in range(8):

            def fail() -> str:
                gate()
                raise ValueError

            server.tool(name=f"t{n}")(fail)
        futures = [server.request(call(f"t{n}", id=n), n) for n in range(8)]
        gate.wait_entered(8)
        registry.unregister_tools([f"t{n}" for n in range(8)])
        gate.open()
        for future in futures:
            future.result(WAIT)
        assert registry.circuits._breakers == {}


def test_s45_servers_share_the_breakers_of_their_registry() -> None:
    """What fails for one is left alone by the other."""
    failing = Failing()
    with failing.server as one, Server(registry=failing.server.registry) as two:
        opened(failing)
        assert is_open(ask(two, call("t")))
        assert one.registry is two.registry
