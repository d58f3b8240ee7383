"""Text, tables and JSON on a terminal: nothing that a server sends can act on it."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.cli.printing import columns, one_line, safe, table, to_json, wrap

# Lone halves of a surrogate pair included: JSON can hold them.
TEXTS = st.text(
    st.characters(codec=None) | st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp"])
)
JOINERS = "\u200c\u200d"


def harmful(text: str) -> list[str]:
    """The characters of a text that are no letters, signs or spaces."""
    kinds = ("Cc", "Cs", "Zl", "Zp")
    return [c for c in text if unicodedata.category(c) in kinds and c not in "\n\t"]


@given(TEXTS)
def test_safe_leaves_nothing_that_a_terminal_acts_on(text: str) -> None:
    """Escaped, whatever it is; and it can be encoded."""
    shown = safe(text)
    assert harmful(shown) == []
    shown.encode("utf-8")
    assert not any(mark in shown for mark in "\u202e\u2066\u200b\ufeff\U000e0041")


@given(st.text(st.characters(categories=["L", "N", "P", "S", "M"])))
def test_safe_keeps_letters_and_signs(text: str) -> None:
    """Of every script."""
    assert safe(text) == text


def test_safe_keeps_emoji_tabs_and_line_ends() -> None:
    """Joined emoji stay whole; Windows' line ends become ours; a bare return is escaped."""
    assert safe("a\tb\r\n👩‍👩‍👧 c\rd") == "a\tb\n👩‍👩‍👧 c\\x0dd"


@given(TEXTS, st.integers(10, 60))
def test_one_line_is_one_line(text: str, limit: int) -> None:
    """Of at most that length."""
    line = one_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1


@given(st.recursive(st.none() | st.integers() | TEXTS, lambda inner: st.lists(inner)))
def test_json_comes_back_the_same_and_is_harmless(value: object) -> None:
    """One document, with every control character escaped as JSON does it."""
    printed = to_json(value)
    assert harmful(printed) == []
    assert "\x7f" not in printed
    printed.encode("utf-8")
    assert json.loads(printed) == value


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("ﾊﾝ", 2), ("", 0), ("👍", 2)]
)
def test_columns(text: str, width: int) -> None:
    """Wide letters take two, combining marks none."""
    assert columns(text) == width


WORDS = st.lists(st.text("ab日é", min_size=1, max_size=12), max_size=8).map(" ".join)


@given(WORDS, st.integers(4, 20))
def test_wrap_keeps_every_letter_and_the_width(text: str, width: int) -> None:
    """Broken at spaces, or inside a word that is too long."""
    lines = wrap(text, width)
    assert all(columns(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=4), st.integers(20, 120))
def test_a_table_fits_the_terminal(rows: list[tuple[str, str, str]], width: int) -> None:
    """No line is wider than the terminal, or than 40 columns where that is narrower."""
    assert all(columns(line) <= max(width, 40) for line in table(rows, width))


def test_a_table_of_wide_letters_is_aligned() -> None:
    """The second column begins in the same place in every line."""
    assert table([("日本", "a"), ("b", "c")], 60) == ["日本  a", "b     c"]
    assert table([("name", "one two three four five six seven eight nine")], 40) == [
        "name  one two three four five six seven",
        "      eight nine",
    ]
