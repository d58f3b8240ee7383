"""Row C22, the pure half: what a server's first answers say of its era."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.protocol import versions
from raxol_sync.protocol.negotiation import (
    Agreement,
    Hopeless,
    Legacy,
    Modern,
    Retry,
    Verdict,
    discovered,
    judge_discover,
    judge_initialize,
)
from raxol_sync.protocol.wire import Response

MODERN = "2026-07-28"
UNKNOWN = "2099-01-01"


def result(**members: Any) -> Response:
    return Response(1, members, None)


def failure(code: int, data: object = None) -> Response:
    return Response(1, None, {"code": code, "message": "m", "data": data})


def refused(code: int, *supported: str, retried: bool = False) -> Verdict:
    return judge_discover(failure(code, {"supported": list(supported)}), retried=retried)


@pytest.mark.parametrize("named", [[MODERN], [UNKNOWN, MODERN], ["2025-11-25", MODERN, 5]])
def test_c22_a_shared_modern_version_is_modern(named: list[object]) -> None:
    """Whatever else is named."""
    answer = result(supportedVersions=named)
    assert judge_discover(answer) == Modern(MODERN, answer.result or {})


@pytest.mark.parametrize(
    "named", [["2025-11-25"], ["2024-11-05", "2025-06-18"], [UNKNOWN, "2025-06-18"]]
)
def test_c22_only_legacy_revisions_in_common_is_legacy(named: list[str]) -> None:
    """In a result and in an error alike, also beside versions that nobody here knows."""
    assert isinstance(judge_discover(result(supportedVersions=named)), Legacy)
    for retried in (False, True):
        assert isinstance(refused(-32022, *named, retried=retried), Legacy)


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32603, -32002, 0, 1, 404])
def test_c22_any_other_error_is_legacy(code: int) -> None:
    """Even one that names modern versions: only modern servers know the three codes."""
    assert isinstance(judge_discover(failure(code)), Legacy)
    assert isinstance(refused(code, MODERN), Legacy)


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
def test_c22_a_modern_error_is_retried_once(code: int) -> None:
    """From the versions that it names; a second one ends it."""
    assert refused(code, UNKNOWN, MODERN) == Retry(MODERN)
    assert isinstance(refused(code, MODERN, retried=True), Hopeless)


@pytest.mark.parametrize("data", [None, [], "x", {}, {"supported": None}, {"supported": [5, None]}])
def test_c22_a_modern_error_without_versions_names_its_code(data: object) -> None:
    """The reason is not one of versions."""
    verdict = judge_discover(failure(-32021, data))
    assert isinstance(verdict, Hopeless)
    assert "-32021" in verdict.reason


def test_c22_only_unknown_versions_leave_nothing_to_try() -> None:
    """The reason names theirs and ours."""
    for verdict in (judge_discover(result(supportedVersions=[UNKNOWN])), refused(-32022, UNKNOWN)):
        assert isinstance(verdict, Hopeless)
        assert UNKNOWN in verdict.reason
        assert all(name in verdict.reason for name in versions.SUPPORTED)


@pytest.mark.parametrize("named", [None, [], "2026-07-28", {}, [5], {MODERN: 1}])
def test_c22_a_result_that_names_no_versions_is_legacy(named: object) -> None:
    """Some servers answer any method with a result."""
    assert isinstance(judge_discover(result(supportedVersions=named)), Legacy)


@pytest.mark.parametrize("name", versions.LEGACY_NAMES)
def test_c22_initialize_agrees_on_a_legacy_revision(name: str) -> None:
    """With what the server says of itself; members of another type count as absent."""
    answer = result(
        protocolVersion=name, capabilities={"tools": {}}, serverInfo={"name": "s"}, instructions="i"
    )
    assert judge_initialize(answer) == Agreement(name, {"tools": {}}, {"name": "s"}, "i")
    broken = result(protocolVersion=name, capabilities=[], serverInfo=5, instructions={})
    assert judge_initialize(broken) == Agreement(name, {}, {}, None)


@pytest.mark.parametrize("version", [MODERN, UNKNOWN, "", None, 5, [], {}, True])
def test_c22_an_unknown_revision_is_hopeless(version: object) -> None:
    """2026-07-28 too: it has no handshake."""
    assert isinstance(judge_initialize(result(protocolVersion=version)), Hopeless)


def test_c22_a_refused_initialize_says_why() -> None:
    """In the server's own words."""
    verdict = judge_initialize(Response(1, None, {"code": -1, "message": "go away"}))
    assert isinstance(verdict, Hopeless)
    assert "go away" in verdict.reason


def test_c22_reasons_are_bounded() -> None:
    """However much a server names."""
    long = "9" * 100_000
    for verdict in (
        judge_initialize(Response(1, None, {"code": -1, "message": long})),
        judge_initialize(result(protocolVersion=long)),
        judge_initialize(result(protocolVersion=[long])),
        judge_discover(result(supportedVersions=[f"{n}{long}" for n in range(100)])),
        refused(-32022, *(f"{n}{long}" for n in range(100))),
    ):
        assert isinstance(verdict, Hopeless)
        assert len(verdict.reason) < 1200


def test_c22_a_discover_result_reads_like_a_handshake() -> None:
    """Server info comes from its `_meta`."""
    members = {
        "supportedVersions": [MODERN], "capabilities": {"tools": {}}, "instructions": "i",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s"}},
    }  # fmt: skip
    expected = Agreement(MODERN, {"tools": {}}, {"name": "s"}, "i")
    assert discovered(Modern(MODERN, members)) == expected
    metas: tuple[object, ...] = (None, [], {"io.modelcontextprotocol/serverInfo": 5})
    for meta in metas:
        assert discovered(Modern(MODERN, {"_meta": meta})) == Agreement(MODERN, {}, {}, None)


JSON = st.recursive(
    st.none() | st.integers() | st.sampled_from([MODERN, "2025-11-25", UNKNOWN]),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["supported", "supportedVersions", "protocolVersion"]), inner
        )
    ),
)
OBJECTS = st.dictionaries(
    st.sampled_from(["supportedVersions", "protocolVersion", "capabilities", "_meta"]), JSON
)


@given(OBJECTS, st.sampled_from([-32020, -32022, -32601]), JSON, st.booleans())
def test_c22_no_answer_raises(
    members: dict[str, Any], code: int, data: object, retried: bool
) -> None:
    """Any answer gives a verdict."""
    for answer in (Response(1, members, None), failure(code, data)):
        verdict = judge_discover(answer, retried=retried)
        assert isinstance(verdict, (Modern, Retry, Legacy, Hopeless))
        assert isinstance(judge_initialize(answer), (Agreement, Hopeless))
        if isinstance(verdict, Modern):
            assert discovered(verdict).version == MODERN
