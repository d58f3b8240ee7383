"""Framing on stdio: bytes into lines, however the pipe cuts them."""

from __future__ import annotations

import itertools
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raxol_sync.protocol.lines import LineSplitter, Overlong

Lines = list[bytes | Overlong]
LIMIT = 8
STREAMS = st.lists(
    st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"bc", b" ", b"\xc3\xa4", b"1234567", b"x" * 9])
).map(b"".join)


def split(chunks: list[bytes], limit: int = LIMIT) -> Lines:
    splitter = LineSplitter(limit)
    lines: Lines = []
    for chunk in chunks:
        lines += splitter.feed(chunk)
    return lines + splitter.end()


def naive(stream: bytes, limit: int = LIMIT) -> Lines:
    """The same by looking at the whole stream at once."""
    lines: Lines = []
    for line in stream.split(b"\n"):
        line = line.removesuffix(b"\r")
        if len(line) > limit:
            lines.append(Overlong(limit))
        elif line.strip():
            lines.append(line)
    return lines


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[a:b] for a, b in itertools.pairwise(marks)] + [b""]


@given(STREAMS, st.lists(st.integers(0, 1000)))
@example(b"x" * LIMIT + b"\r\nrest\n", [LIMIT + 1])
@example(b"x" * LIMIT + b"\r\r\nrest\n", [LIMIT + 1])
def test_any_way_of_cutting_gives_the_same_lines(stream: bytes, places: list[int]) -> None:
    """One line end may be split between two reads, a character too."""
    assert split(cut(stream, places)) == naive(stream)
    assert split([stream[i : i + 1] for i in range(len(stream))]) == naive(stream)


@given(STREAMS, st.lists(st.integers(0, 1000)))
def test_memory_is_bounded(stream: bytes, places: list[int]) -> None:
    """After each read no more than one line and a return is held."""
    splitter = LineSplitter(LIMIT)
    for chunk in cut(stream, places):
        splitter.feed(chunk)
        held = [getattr(splitter, name) for name in vars(splitter)]
        assert sum(len(item) for item in held if isinstance(item, (bytes, bytearray))) <= LIMIT + 1


def test_a_line_without_an_end_is_not_collected() -> None:
    """A peer that never ends its line costs no more than the limit."""
    splitter = LineSplitter(1000)
    assert splitter.feed(b"x" * 1001) == [Overlong(1000)]
    for _ in range(100):
        assert splitter.feed(b"y" * 100_000) == []
    assert sum(sys.getsizeof(value) for value in vars(splitter).values()) < 2000
    assert splitter.feed(b"y\nok\n") == [b"ok"]


def test_an_overlong_line_is_reported_once_and_in_order() -> None:
    """The lines around it arrive, and the limit is named."""
    assert split([b"a\n", b"x" * 9, b"x" * 9, b"\nb", b"\n"]) == [b"a", Overlong(LIMIT), b"b"]
    assert split([b"x" * 100]) == [Overlong(LIMIT)]
    assert Overlong(LIMIT).limit == LIMIT


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_a_line_feed_ends_a_line(character: str) -> None:
    """`str.splitlines` would cut at these, which JSON strings may hold."""
    line = f'"{character}"'.encode()
    assert split([line + b"\n"], 100) == [line]


def test_empty_lines_and_one_return_are_dropped() -> None:
    """As Windows writes them."""
    assert split([b"\n\r\n  \n{}\r\n\r\n[]"]) == [b"{}", b"[]"]
    assert split([b"{}\r\r\n"]) == [b"{}\r"]


def test_the_last_line_needs_no_end() -> None:
    """Without one it arrives with the end of the stream."""
    splitter = LineSplitter(LIMIT)
    assert splitter.feed(b"a\nb") == [b"a"]
    assert splitter.end() == [b"b"]
    assert LineSplitter(LIMIT).end() == []
    assert split([b"x" * LIMIT + b"\r"]) == [b"x" * LIMIT]
