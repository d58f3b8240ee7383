"""docs/parity.md and the suite name the same tests for the same rows."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(
    r"^\| (?P<row>[SC]\d\d) \| (?P<what>[^|]+) \| (?P<state>[^|]+) \| (?P<tests>[^|]*) \|$"
)
EVERY_ROW = [f"S{n:02d}" for n in range(1, 54)] + [f"C{n:02d}" for n in range(1, 31)]


def _page() -> dict[str, tuple[str, set[str]]]:
    rows = {}
    for line in (ROOT / "docs" / "parity.md").read_text(encoding="utf-8").splitlines():
        match = ROW.match(line)
        if match:
            rows[match["row"]] = (match["state"], set(re.findall(r"`(test_\w+)`", match["tests"])))
    return rows


def _suite() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name, row in re.findall(r"def (test_([sc]\d\d)_\w+)", path.read_text(encoding="utf-8")):
            found[row.upper()].add(name)
    return found


def test_every_row_is_on_the_page_once() -> None:
    """No row of the design is forgotten."""
    assert list(_page()) == EVERY_ROW


def test_the_page_links_the_tests_that_exist() -> None:
    """Each row names exactly the tests that are named after it."""
    suite = _suite()
    for row, (_, tests) in _page().items():
        assert tests == suite[row], row


def test_a_row_that_is_built_has_a_test() -> None:
    """Done and part rows are proved by something; rows that are not yet built say so."""
    for row, (state, tests) in _page().items():
        assert state.startswith(("done", "part", "not yet")), row
        assert bool(tests) or state.startswith("not yet"), row
