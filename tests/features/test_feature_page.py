"""The table of features: the 48 by which SDKs are compared, each with an example that runs."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "features.md"
ROW = re.compile(r"^\|([\d ]*)\|([^|]+)\|([^|]*)\|([^|]*)\| \[[^]]+\]\(#([\w-]+)\) \|$", re.M)


def _rows() -> list[tuple[str, ...]]:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return [tuple(cell.strip() for cell in row) for row in rows]


def test_the_page_has_all_48_features_and_more() -> None:
    """Numbered as the list of the SDKs' tiers is; no row is lost to a slip of the pen."""
    numbers = [row[0] for row in _rows()]
    assert [int(number) for number in numbers if number] == list(range(1, 49))
    assert numbers.count("") == PAGE.read_text(encoding="utf-8").count("\n| | ")


def test_each_feature_says_how_on_both_sides() -> None:
    """But transports, which have one side each, and what only a server does."""
    for number, feature, server, client, _ in _rows():
        one_sided = number in {"37", "38", "39", "40", "41", "42"} or feature.startswith("doing")
        assert bool(server) + bool(client) == (1 if one_sided else 2), feature


def test_each_feature_has_an_example_that_runs() -> None:
    """Its section has a block of code, and says what that prints (tests/docs runs it)."""
    text = PAGE.read_text(encoding="utf-8")
    parts = re.split(r"^##+ (.+)$", text, flags=re.M)
    sections = {
        heading.lower().replace(" ", "-"): body
        for heading, body in zip(parts[1::2], parts[2::2], strict=True)
    }
    for *_, feature, _, _, anchor in _rows():
        body = sections[anchor]
        assert "```python\n" in body, feature
        assert "<!-- prints -->\n" in body, feature
        assert "not run" not in body, feature
