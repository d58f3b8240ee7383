"""Row S47, the pure half: the modern envelope and what modern results carry."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.protocol import modern, versions
from raxol_sync.protocol.modern import Envelope, Refusal, build_meta, read_envelope, stamp

P = "io.modelcontextprotocol/"
VERSION, INFO, CAPABILITIES, LEVEL = (
    P + "protocolVersion", P + "clientInfo", P + "clientCapabilities", P + "logLevel",
)  # fmt: skip
SERVER = {"name": "s", "version": "1"}
GOOD: dict[str, Any] = {VERSION: "2026-07-28", CAPABILITIES: {}}


def read(meta: object) -> Envelope | Refusal:
    return read_envelope({"_meta": meta}, versions.SUPPORTED)


def code(meta: object) -> int | None:
    answer = read(meta)
    return answer.code if isinstance(answer, Refusal) else None


def test_s47_an_envelope_is_read() -> None:
    """What a request says of itself."""
    meta = {**GOOD, CAPABILITIES: {"a": {}}, INFO: {"name": "c"}, LEVEL: "error"}
    assert read(meta) == Envelope("2026-07-28", {"a": {}}, {"name": "c"}, "error")
    assert read(GOOD) == Envelope("2026-07-28", {}, None, None)
    assert read({**GOOD, INFO: "text"}) == Envelope("2026-07-28", {}, None, None)


@pytest.mark.parametrize(
    "meta",
    [None, [], "x", 5, {}, {VERSION: 5, CAPABILITIES: {}}, {VERSION: "x"}, {CAPABILITIES: {}},
     {VERSION: "2026-07-28", CAPABILITIES: []}, {VERSION: None, CAPABILITIES: {}}],
)  # fmt: skip
def test_s47_an_incomplete_envelope_is_invalid_params(meta: object) -> None:
    """-32602 for a missing version or missing capabilities, before the version is judged."""
    assert code(meta) == -32602


@pytest.mark.parametrize("version", ["2025-11-25", "2024-11-05", "2026-07-29", "2099-01-01", ""])
def test_s47_an_unknown_version_is_refused_with_what_is_supported(version: str) -> None:
    """-32022; a legacy revision cannot be spoken without its handshake."""
    answer = read({**GOOD, VERSION: version, LEVEL: "nonsense"})
    assert isinstance(answer, Refusal)
    assert answer.code == -32022
    assert answer.data == {"supported": list(versions.SUPPORTED), "requested": version}


@pytest.mark.parametrize("level", ["loud", "", 5, [], {}, True, "ERROR"])
def test_s47_log_levels_are_checked_last(level: object) -> None:
    """-32602 for what is no syslog level."""
    assert code({**GOOD, LEVEL: level}) == -32602


@given(
    st.none()
    | st.dictionaries(
        st.sampled_from([VERSION, INFO, CAPABILITIES, LEVEL, "x"]),
        st.none() | st.text() | st.lists(st.none()) | st.dictionaries(st.text(), st.none()),
    )
)
def test_s47_no_envelope_raises(meta: object) -> None:
    """Anything is an envelope or a refusal."""
    assert isinstance(read(meta), (Envelope, Refusal))


def test_what_is_built_is_read() -> None:
    """Our client's envelope is one for our server; a progress token goes beside it."""
    meta = build_meta(
        "2026-07-28", {"roots": {}}, {"name": "c"}, log_level="debug", extra={"progressToken": 1}
    )
    assert read(meta) == Envelope("2026-07-28", {"roots": {}}, {"name": "c"}, "debug")
    assert meta["progressToken"] == 1
    assert LEVEL not in build_meta("2026-07-28", {}, {})


@pytest.mark.parametrize(
    "method",
    ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list",
     "resources/read"],
)  # fmt: skip
def test_s47_discover_lists_and_reads_say_how_long_they_last(method: str) -> None:
    """`ttlMs` and `cacheScope`, unless the result says its own."""
    stamped = stamp(method, {"a": 1}, SERVER, scope="private", ttl=5)
    assert stamped == {
        "resultType": "complete", "a": 1, "ttlMs": 5, "cacheScope": "private",
        "_meta": {modern.SERVER_INFO_KEY: SERVER},
    }  # fmt: skip
    assert stamp(method, {"ttlMs": 9}, SERVER, scope="public")["ttlMs"] == 9


def test_s47_other_results_carry_type_and_server_info_only() -> None:
    """Of a call; its own `_meta` is kept, and its own dict is left as it was."""
    value = {"content": [], "_meta": {"mine": 1}}
    stamped = stamp("tools/call", value, SERVER, scope="public")
    assert stamped == {
        "resultType": "complete",
        "content": [],
        "_meta": {"mine": 1, modern.SERVER_INFO_KEY: SERVER},
    }
    assert value == {"content": [], "_meta": {"mine": 1}}


def test_s47_a_result_that_asks_for_input_is_not_cached() -> None:
    """Its type stays."""
    stamped = stamp("resources/read", {"resultType": "input_required"}, SERVER, scope="private")
    assert stamped["resultType"] == "input_required"
    assert "ttlMs" not in stamped
    assert "cacheScope" not in stamped
