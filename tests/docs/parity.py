"""Bring the links of docs/parity.md into step with the suite.

    python -m tests.docs.parity

What a row says and its state are written by hand; which tests are named after it is found out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "parity.md"
ROW = re.compile(
    r"^\| (?P<row>[SC]\d\d) \| (?P<what>[^|]+) \| (?P<state>[^|]+) \| (?P<tests>[^|]*) \|$"
)
_NAMED = re.compile(r"def (test_([sc]\d\d)_\w+)")


def suite() -> dict[str, dict[Path, list[str]]]:
    """The tests that are named after a row, by row and file."""
    found: dict[str, dict[Path, list[str]]] = defaultdict(dict)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name, row in _NAMED.findall(path.read_text(encoding="utf-8")):
            found[row.upper()].setdefault(path.relative_to(ROOT), []).append(name)
    return found


def main() -> None:
    """Rewrite the page."""
    found = suite()

    def linked(match: re.Match[str]) -> str:
        cells = [
            f"[{path.name}](../{path.as_posix()}): " + ", ".join(f"`{name}`" for name in names)
            for path, names in found[match["row"]].items()
        ]
        return f"| {match['row']} | {match['what']} | {match['state']} | {'; '.join(cells)} |"

    lines = PAGE.read_text(encoding="utf-8").splitlines()
    PAGE.write_text("\n".join(ROW.sub(linked, line) for line in lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
