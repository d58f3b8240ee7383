"""``to_json``: which Python values have a JSON form, and which are refused."""

from __future__ import annotations

import collections
import datetime as dt
import enum
import json
import pathlib
import re
import types
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.schema import to_json
from raxol_sync.schema.moments import format_duration, parse_duration


class Word(str):
    def __str__(self) -> str:
        return "changed"


class Count(int):
    pass


class Share(float):
    pass


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Row(NamedTuple):
    n: int
    c: Color


@dataclass
class Item:
    row: Row
    tags: set[str]


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, None), (True, True), (5, 5), (1.5, 1.5), ("a", "a"), (Word("a"), "a"), (Count(5), 5),
        (Share(0.5), 0.5),
        ([1, (2, 3)], [1, [2, 3]]), ({"b", "a"}, ["a", "b"]), (frozenset([1]), [1]),
        (collections.deque([1]), [1]), ({"a": {1: 2}}, {"a": {"1": 2}}),
        ({Color.RED: 1, Level.LOW: 2, Word("w"): 3}, {"red": 1, "1": 2, "w": 3}),
        (types.MappingProxyType({"a": 1}), {"a": 1}), (collections.Counter("aa"), {"a": 2}),
        (Color.RED, "red"), (Level.LOW, 1), (Row(1, Color.RED), {"n": 1, "c": "red"}),
        (Item(Row(1, Color.RED), {"x"}), {"row": {"n": 1, "c": "red"}, "tags": ["x"]}),
        (dt.datetime(2026, 7, 28, tzinfo=dt.timezone.utc), "2026-07-28T00:00:00+00:00"),
        (dt.date(2026, 7, 28), "2026-07-28"), (dt.time(8, 30), "08:30:00"),
        (dt.timedelta(days=-1, seconds=0.5), "-PT23H59M59.5S"),
        (Decimal("1.10"), "1.10"), (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (pathlib.PurePosixPath("/a"), "/a"), (re.compile("a+"), "a+"), (b"hi", "aGk="),
        (bytearray(b"hi"), "aGk="),
    ],
    ids=repr,
)  # fmt: skip
def test_values(value: object, result: object) -> None:
    """Each known value has its JSON form, of plain types."""
    made = to_json(value)
    assert made == result
    assert type(made) is type(result)
    assert json.loads(json.dumps(made)) == made


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (object(), TypeError, "the value is of type object"),
        ({"a": [0, object()]}, TypeError, r"the value at a\[1\] is of type object"),
        ({"a": {1.5: 1}}, TypeError, "a key of the value at a is of type float"),
        ({True: 1}, TypeError, "of type bool"),
        ({(1,): 1}, TypeError, "of type tuple"),
        (iter([]), TypeError, "list_iterator"),
        (Item, TypeError, "of type type"),
        (float("nan"), ValueError, "NaN"),
        ([float("-inf")], ValueError, r"at \[0\] is NaN or infinite"),
        (Decimal("NaN"), ValueError, "NaN"),
        ({1: "a", "1": "b"}, ValueError, "two keys that are both 1"),
        (re.compile(b"a"), TypeError, "Pattern"),
        (1j, TypeError, "complex"),
    ],
)
def test_refusals(value: object, error: type[Exception], words: str) -> None:
    """What has no JSON form is refused by place and type."""
    with pytest.raises(error, match=words):
        to_json(value)


def test_depth_is_bounded() -> None:
    """A value that contains itself ends as one that is nested too deeply."""
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="deeper than 64"):
        to_json(loop)
    mapping: dict[str, Any] = {}
    mapping["a"] = mapping
    with pytest.raises(ValueError, match="deeper than 64"):
        to_json(mapping)


def test_sets_of_several_types_have_some_order() -> None:
    """Items that cannot be compared are kept as they come."""
    made = to_json({1, "a"})
    assert isinstance(made, list)
    assert sorted(made, key=str) == [1, "a"]


def test_the_result_shares_nothing_with_the_value() -> None:
    """Changing the result does not change the value."""
    value = {"a": [1]}
    made: Any = to_json(value)
    made["a"].append(2)
    assert value == {"a": [1]}


@given(st.timedeltas())
def test_durations_are_read_back(length: dt.timedelta) -> None:
    """Every timedelta survives being written as an ISO 8601 duration."""
    assert parse_duration(format_duration(length)) == length
