"""Deadlines on the monotonic clock, and the checks of numbers that users give."""

from __future__ import annotations

import math
import threading

import pytest

from raxol_sync import _deadline
from raxol_sync._deadline import DEFAULT, Deadline, check_count, check_seconds

WINDOWS_LONGEST = 0xFFFFFFFE / 1000  # seconds; what a wait accepts there


class Clock:
    """A monotonic clock that moves when told."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of `_deadline`, replaced."""
    made = Clock()
    monkeypatch.setattr(_deadline, "now", made)
    return made


def test_what_is_left_gets_less_and_never_negative(clock: Clock) -> None:
    """A negative time-out waits for ever in some primitives."""
    deadline = Deadline(5.0)
    assert (deadline.left(), deadline.expired(), deadline.at) == (5.0, False, 1005.0)
    clock.time += 4
    assert (deadline.left(), deadline.at_most(0.5), deadline.at_most(3)) == (1.0, 0.5, 1.0)
    clock.time += 1
    assert (deadline.left(), deadline.expired(), deadline.at_most(3)) == (0.0, True, 0.0)
    clock.time += 1
    assert (deadline.left(), deadline.seconds) == (0.0, 5.0)


def test_none_is_never(clock: Clock) -> None:
    """There is no limit."""
    deadline = Deadline(None)
    clock.time += 1e12
    assert (deadline.left(), deadline.expired(), deadline.at) == (None, False, None)
    assert deadline.at_most(7.0) == 7.0


@pytest.mark.parametrize("seconds", [1e300, math.inf, 5_000_000.0])
def test_no_wait_is_longer_than_any_platform_takes(seconds: float) -> None:
    """`OverflowError: timestamp too large` would come out of the wait otherwise."""
    left = Deadline(seconds).left()
    assert left is not None
    assert left <= min(WINDOWS_LONGEST, threading.TIMEOUT_MAX)
    checked = check_seconds("timeout", seconds)
    assert checked is None or checked <= WINDOWS_LONGEST


def test_a_deadline_of_nonsense_has_expired_or_nothing_left() -> None:
    """NaN and negative seconds never wait."""
    for seconds in (math.nan, -1.0, -math.inf):
        assert Deadline(seconds).left() == 0.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, None), (0, 0.0), (1, 1.0), (2.5, 2.5), (math.inf, None), (10**400, 4e6), (1e9, 4e6)],
)
def test_seconds(value: object, seconds: float | None) -> None:
    """A number of at least 0; None and infinity are no limit, very long is 46 days."""
    checked = check_seconds("timeout", value)
    assert checked == seconds
    assert checked is None or type(checked) is float


@pytest.mark.parametrize("value", [True, "5", [], DEFAULT, 1j])
def test_seconds_of_another_type(value: object) -> None:
    """The parameter is named."""
    with pytest.raises(TypeError, match="call_timeout must be a number of seconds"):
        check_seconds("call_timeout", value)


@pytest.mark.parametrize("value", [-1, -0.001, -math.inf, math.nan, -(10**400)])
def test_seconds_below_zero(value: float) -> None:
    """NaN is refused too."""
    with pytest.raises(ValueError, match="call_timeout must be at least 0"):
        check_seconds("call_timeout", value)


def test_counts() -> None:
    """Whole numbers from a least one on."""
    assert check_count("n", 1) == 1
    assert check_count("n", 0, least=0) == 0
    for value in (True, 1.0, "1", None):
        with pytest.raises(TypeError, match="n must be a whole number"):
            check_count("n", value)
    with pytest.raises(ValueError, match="n must be at least 2, not 1"):
        check_count("n", 1, least=2)


def test_default_says_its_name() -> None:
    """Signatures in help texts show it."""
    assert repr(DEFAULT) == "DEFAULT"
