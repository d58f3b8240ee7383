"""Rows S08 and S47: which era a message speaks, and what differs between revisions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.protocol import versions
from raxol_sync.protocol.versions import LEGACY_NAMES, REVISIONS, answer_to_initialize, era_of

KEY = "io.modelcontextprotocol/protocolVersion"
LEGACY_METHODS = {
    "initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/templates/list",
    "resources/read", "resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get",
    "logging/setLevel", "completion/complete",
}  # fmt: skip
MODERN_METHODS = {
    "server/discover", "subscriptions/listen", "tools/list", "tools/call", "resources/list",
    "resources/templates/list", "resources/read", "prompts/list", "prompts/get",
    "completion/complete",
}  # fmt: skip


def test_s08_methods_of_each_era() -> None:
    """The lists of the row, word for word."""
    for name, revision in REVISIONS.items():
        modern = name == "2026-07-28"
        assert revision.methods == (MODERN_METHODS if modern else LEGACY_METHODS)
        assert revision.era == ("modern" if modern else "legacy")


def test_the_revisions_and_their_order() -> None:
    """Newest first: `supported` is offered in this order."""
    assert versions.SUPPORTED == (
        "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05",
    )  # fmt: skip
    assert versions.SUPPORTED[:1] == versions.MODERN_NAMES
    assert versions.SUPPORTED[1:] == versions.LEGACY_NAMES


@pytest.mark.parametrize(
    ("name", "batches", "null_id", "missing"),
    [
        ("2026-07-28", False, False, -32602),
        ("2025-11-25", False, False, -32002),
        ("2025-06-18", False, True, -32002),
        ("2025-03-26", True, True, -32002),
        ("2024-11-05", False, True, -32002),
    ],
)
def test_s06_what_differs_between_revisions(
    name: str, batches: bool, null_id: bool, missing: int
) -> None:
    """Batches, the id of an error that has none, and the code of S53."""
    revision = REVISIONS[name]
    assert (revision.batches, revision.null_error_id) == (batches, null_id)
    assert revision.resource_missing == missing


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25", "2099-01-01", "", None, 5, []])
def test_s47_a_version_in_meta_is_modern(version: object) -> None:
    """Whatever it names: what is wrong with it is answered in the modern way."""
    assert era_of("tools/call", {"_meta": {KEY: version}}) == "modern"


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
def test_s47_two_methods_are_always_modern(method: str) -> None:
    """Also without the envelope that they need."""
    assert era_of(method, {}) == "modern"


@pytest.mark.parametrize(
    "meta", [None, [], "x", {}, {"progressToken": 1}, {"protocolVersion": "x"}]
)
def test_s47_all_else_is_legacy(meta: object) -> None:
    """No `_meta`, one of another type, or one without the key."""
    assert era_of("tools/call", {"_meta": meta}) == "legacy"
    assert era_of("tools/call", {KEY: "2026-07-28"}) == "legacy"
    assert era_of("initialize", {"protocolVersion": "2026-07-28"}) == "legacy"


@given(
    st.sampled_from(["initialize", "server/discover", "x", ""]),
    st.dictionaries(
        st.sampled_from(["_meta", KEY]),
        st.none() | st.integers() | st.dictionaries(st.sampled_from([KEY, "a"]), st.integers()),
    ),
)
def test_s47_every_message_has_one_era(method: str, params: dict[str, Any]) -> None:
    """Nothing in it makes the look-up raise."""
    assert era_of(method, params) in ("legacy", "modern")


@pytest.mark.parametrize("offered", [*LEGACY_NAMES])
def test_s47_initialize_answers_the_offered_revision(offered: str) -> None:
    """If it is a legacy one that we speak."""
    assert answer_to_initialize(offered).name == offered


@pytest.mark.parametrize(
    "offered", ["2026-07-28", "2099-01-01", "2024-10-07", "", "DRAFT", None, 5, [], {}, True]
)
def test_s47_initialize_never_answers_another(offered: object) -> None:
    """Unknown, modern and malformed offers get 2025-11-25."""
    assert answer_to_initialize(offered).name == "2025-11-25"
