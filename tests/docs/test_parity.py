"""docs/parity.md and the suite name the same tests for the same rows."""

from __future__ import annotations

import re

from tests.docs.parity import PAGE, ROW, suite

EVERY_ROW = [f"S{n:02d}" for n in range(1, 54)] + [f"C{n:02d}" for n in range(1, 32)]


def _page() -> dict[str, tuple[str, set[str]]]:
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        match = ROW.match(line)
        if match:
            rows[match["row"]] = (match["state"], set(re.findall(r"`(test_\w+)`", match["tests"])))
    return rows


def _suite() -> dict[str, set[str]]:
    return {
        row: {name for names in files.values() for name in names} for row, files in suite().items()
    }


def test_every_row_is_on_the_page_once() -> None:
    """No row of the design is forgotten."""
    assert list(_page()) == EVERY_ROW


def test_the_page_links_the_tests_that_exist() -> None:
    """Each row names exactly the tests that are named after it."""
    found = _suite()
    for row, (_, tests) in _page().items():
        assert tests == found.get(row, set()), f"{row}: python -m tests.docs.parity"


def test_a_row_that_is_built_has_a_test() -> None:
    """Done and part rows are proved by something; rows that are not yet built say so."""
    for row, (state, tests) in _page().items():
        assert state.startswith(("done", "part", "not yet")), row
        assert bool(tests) or state.startswith("not yet"), row
