"""Pages: walked, bounded, kept (rows C08, C09)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from raxol_sync.client import listing
from raxol_sync.client.listing import MAX_PAGES, Page, PageCache, read_page, read_tool, usable, walk
from raxol_sync.errors import InvalidResponse, RPCError


def pages(count: int, size: int = 2) -> Callable[[str | None], Page]:
    def fetch(cursor: str | None) -> Page:
        number = int(cursor or 0)
        following = str(number + 1) if number + 1 < count else None
        return Page([f"{number}.{index}" for index in range(size)], following, None)

    return fetch


def test_c08_all_pages_up_to_the_limits() -> None:
    """Entries and pages are both bounded."""
    assert walk("m", pages(3), 100) == ["0.0", "0.1", "1.0", "1.1", "2.0", "2.1"]
    assert walk("m", pages(3), 3) == ["0.0", "0.1", "1.0"]
    assert len(walk("m", pages(5000, 1), 10**6)) == MAX_PAGES


def test_c08_a_cursor_that_comes_again_is_an_error() -> None:
    """The list would never end."""
    with pytest.raises(InvalidResponse, match="nextCursor"):
        walk("m", lambda cursor: Page([1], "same", None), 100)


@pytest.mark.parametrize("result", [{}, {"tools": None}, {"tools": {}}])
def test_c11_a_page_without_a_list_is_not_valid(result: dict[str, Any]) -> None:
    """`InvalidResponse` names the method."""
    with pytest.raises(InvalidResponse) as caught:
        read_page("tools/list", "tools", result, lasting=False)
    assert caught.value.method == "tools/list"


@pytest.mark.parametrize("ttl", [None, 0, -5, "5", True, float("inf")])
def test_c08_odd_ttls_do_no_harm(ttl: object) -> None:
    """Absent, 0, negative or no number: stale at once."""
    page = read_page("m", "tools", {"tools": [], "ttlMs": ttl, "nextCursor": 3}, lasting=False)
    assert page.fresh_until is not None
    assert page.next is None


def test_c09_names_and_descriptions_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be used is left out and counted, without its content in the log."""
    schema = {"type": "object"}
    good = [{"name": name, "inputSchema": schema} for name in ("a", "A.b-c_1", "x" * 128)]
    bad: list[Any] = [
        {"name": name, "inputSchema": schema}
        for name in ("", "x" * 129, "with space", "ümlaut", "new\n", 5, None)
    ]
    bad += [{"name": "secretname"}, {"name": "y", "inputSchema": []}, "text", None, []]
    found = usable("tools/list", [*good, *bad], read_tool)
    assert [tool.name for tool in found] == ["a", "A.b-c_1", "x" * 128]
    assert f"left out {len(bad)} entries" in caplog.text
    assert "secretname" not in caplog.text


@pytest.mark.parametrize(("text", "length"), [("x" * 9000, 8192), ("€" * 3000, 8190), ("é", 2)])
def test_c09_descriptions_are_cut_on_a_characters_boundary(text: str, length: int) -> None:
    """8,192 bytes at most."""
    tool = read_tool({"name": "t", "description": text, "inputSchema": {}})
    assert len(tool.description.encode()) == length
    assert text.startswith(tool.description)


class Book:
    """A list whose pages count how often they are fetched."""

    def __init__(self, *fresh_until: float | None) -> None:
        self.fresh_until = fresh_until
        self.fetched: list[int] = []
        self.broken = False

    def fetch(self, cursor: str | None) -> Page:
        number = int(cursor or 0)
        self.fetched.append(number)
        if self.broken and number:
            self.broken = False
            raise RPCError(-32602, "unknown cursor")
        last = number + 1 == len(self.fresh_until)
        return Page([{"n": number}], None if last else str(number + 1), self.fresh_until[number])

    def read(self, cache: PageCache) -> list[int]:
        return cache.entries("m", self.fetch, 100, lambda item: int(item["n"]))


def test_c08_each_page_is_kept_while_it_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is stale is fetched again."""
    clock = [100.0]
    monkeypatch.setattr(listing, "now", lambda: clock[0])
    book, cache = Book(None, 110.0, 105.0), PageCache()
    assert book.read(cache) == [0, 1, 2]
    assert book.read(cache) == [0, 1, 2]
    assert book.fetched == [0, 1, 2]
    clock[0] = 106.0
    book.read(cache)
    assert book.fetched == [0, 1, 2, 2]
    assert cache.count == 3


def test_c08_a_kept_cursor_that_the_server_forgot_begins_anew() -> None:
    """All pages are dropped and fetched once more."""
    book, cache = Book(None, 0.0), PageCache()
    book.read(cache)
    book.broken = True
    assert book.read(cache) == [0, 1]
    assert book.fetched == [0, 1, 1, 0, 1]


def test_c08_an_error_of_a_fresh_walk_is_raised() -> None:
    """There is nothing to begin anew."""
    book = Book(0.0, 0.0)
    book.broken = True
    with pytest.raises(RPCError):
        book.read(PageCache())


def test_c08_a_change_during_the_fetch_is_not_forgotten() -> None:
    """What was fetched before list_changed came is not kept."""
    book, cache = Book(None, None), PageCache()
    plain = book.fetch

    def fetch(cursor: str | None) -> Page:
        page = plain(cursor)
        if cursor is None:
            cache.drop()
        return page

    assert cache.entries("m", fetch, 100, lambda item: int(item["n"])) == [0, 1]
    assert cache.count == 0
    book.read(cache)
    assert book.fetched == [0, 1, 0, 1]
