"""The circuit breaker: its table, its one probe, and outcomes that come too late."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from raxol_sync.breaker import FAULTS, OPEN_FOR, Breaker, Ticket


def admitted(breaker: Breaker, now: float) -> Ticket:
    """Return an admission that must be given."""
    ticket = breaker.admit(now)
    assert ticket is not None
    return ticket


def opened(at: float = 0.0) -> Breaker:
    """Return a breaker that has just opened."""
    breaker = Breaker()
    for _ in range(FAULTS):
        breaker.fail(admitted(breaker, at), at)
    return breaker


def test_s45_five_faults_in_a_row_open_it() -> None:
    """The fifth fault opens, and says so; the fourth does not."""
    breaker = Breaker()
    told = [breaker.fail(admitted(breaker, 0.0), 0.0) for _ in range(FAULTS)]
    assert told == [False, False, False, False, True]
    assert breaker.state(0.0) == "open"
    assert breaker.admit(0.0) is None


def test_s45_a_success_starts_the_count_again() -> None:
    """Only faults in a row count."""
    breaker = Breaker()
    for _ in range(FAULTS - 1):
        breaker.fail(admitted(breaker, 0.0), 0.0)
    breaker.succeed(admitted(breaker, 0.0))
    for _ in range(FAULTS - 1):
        breaker.fail(admitted(breaker, 0.0), 0.0)
    assert breaker.state(0.0) == "closed"


def test_s45_open_for_thirty_seconds_then_one_probe() -> None:
    """A moment before, nobody passes; then exactly one does."""
    breaker = opened(at=100.0)
    assert breaker.admit(100.0 + OPEN_FOR - 0.001) is None
    assert breaker.retry_after(110.0) == OPEN_FOR - 10.0
    probe = admitted(breaker, 100.0 + OPEN_FOR)
    assert probe.probe
    assert breaker.admit(100.0 + OPEN_FOR) is None
    assert breaker.state(100.0 + OPEN_FOR) == "half_open"


def test_s45_the_probe_decides() -> None:
    """A good probe closes it, a bad one opens it anew for the whole time."""
    breaker = opened()
    assert breaker.succeed(admitted(breaker, OPEN_FOR)) is True
    assert breaker.state(OPEN_FOR) == "closed"

    breaker = opened()
    assert breaker.fail(admitted(breaker, OPEN_FOR), OPEN_FOR) is True
    assert breaker.admit(OPEN_FOR + OPEN_FOR - 0.001) is None
    assert admitted(breaker, OPEN_FOR + OPEN_FOR).probe


def test_s45_a_withdrawn_probe_is_given_back() -> None:
    """A probe that was cancelled says nothing; the next call is the probe."""
    breaker = opened()
    breaker.withdraw(admitted(breaker, OPEN_FOR))
    assert admitted(breaker, OPEN_FOR).probe


def test_s45_outcomes_of_an_older_generation_are_ignored() -> None:
    """What began before the breaker opened neither closes nor reopens it."""
    breaker = Breaker()
    old = [admitted(breaker, 0.0) for _ in range(FAULTS + 2)]
    for ticket in old[:FAULTS]:
        breaker.fail(ticket, 0.0)
    assert breaker.succeed(old[-1]) is False
    assert breaker.fail(old[-2], 50.0) is False
    assert breaker.state(0.0) == "open"
    assert breaker.state(OPEN_FOR) == "half_open"


class BreakerModel(RuleBasedStateMachine):
    """Whatever happens in whatever order, half open has one probe and open lets nobody in."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = Breaker(limit=3, open_for=10.0)
        self.now = 0.0
        self.out: list[Ticket] = []

    @rule(seconds=st.floats(0, 12))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds

    @rule()
    def admit(self) -> None:
        """A call asks."""
        state = self.breaker.state(self.now)
        ticket = self.breaker.admit(self.now)
        assert (ticket is None) or state != "open"
        if ticket is not None:
            assert ticket.probe == (state == "half_open")
            self.out.append(ticket)

    @precondition(lambda self: self.out)
    @rule(data=st.data(), how=st.sampled_from(["succeed", "fail", "withdraw"]))
    def finish(self, data: st.DataObject, how: str) -> None:
        """A call ends, in whatever order."""
        ticket = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        if how == "succeed":
            self.breaker.succeed(ticket)
        elif how == "fail":
            self.breaker.fail(ticket, self.now)
        else:
            self.breaker.withdraw(ticket)

    @invariant()
    def at_most_one_probe(self) -> None:
        """Of the generation that counts, at most one probe is out."""
        probes = [t for t in self.out if t.probe]
        assert len({t.generation for t in probes}) == len(probes)


TestBreakerModel = BreakerModel.TestCase
