"""Properties of the codec: what is written is read again, and nothing makes reading raise."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from raxol_sync.protocol import wire
from raxol_sync.protocol.wire import (
    EncodeError,
    Malformed,
    Notification,
    Request,
    Response,
    classify,
    decode,
    encode,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=20
)
MEMBERS = ["jsonrpc", "id", "method", "params", "result", "error", "code", "message"]
NEAR_MESSAGES = st.dictionaries(
    st.sampled_from(MEMBERS),
    st.sampled_from(["2.0", 1, 1.5, True, None, "m", {}, [], {"code": 1, "message": "m"}]) | VALUES,
)
PIECES = st.sampled_from(
    [b"{", b"}", b"[", b"]", b'"', b"\\", b"\\u", b"d800", b"dc00", b",", b":", b'"id"', b"1",
     b"e999", b"NaN", b"-", b".", b" ", b"\n", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"null"]
)  # fmt: skip


def same(one: object, other: object) -> bool:
    """Equal, and of equal types: ``1``, ``1.0`` and ``True`` are three values."""
    return json.dumps(one) == json.dumps(other)


@given(VALUES)
@example({"\u2028\u2029\x85\x0b\x0c\x1c\r\n": "\x00\x7f\ufeff"})
@example([-0.0, 5e-324, 1.7976931348623157e308, 10**4299])
@example('["[{\\"')
def test_what_is_encoded_is_decoded(value: object) -> None:
    """`decode(encode(x)) == x`, on one line."""
    data = encode(value)
    assert b"\n" not in data
    assert b"\r" not in data
    assert same(decode(data), value)


@given(st.binary(max_size=200) | st.lists(PIECES, max_size=60).map(b"".join))
@settings(max_examples=300)
def test_decode_never_raises(data: bytes) -> None:
    """Any bytes give a value or a `Malformed`; a value can be sent on, but for its depth."""
    value = decode(data)
    if not isinstance(value, Malformed):
        assert same(decode(encode(value)), value)


@given(st.binary(max_size=30), st.integers(0, 40))
def test_decode_never_reads_more_than_it_may(data: bytes, most: int) -> None:
    """The limit counts before everything else."""
    value = decode(data, max_bytes=most)
    assert len(data) <= most or (isinstance(value, Malformed) and value.answer)


@given(st.lists(PIECES, max_size=60).map(b"".join))
def test_decode_agrees_with_the_standard_library(data: bytes) -> None:
    """Both give the same value, where ours gives one; what ours alone refuses has a name."""
    value = decode(data)
    try:
        expected = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        assert isinstance(value, Malformed)
        return
    if isinstance(value, Malformed):
        assert any(word in value.reason for word in ("NaN", "too large", "surrogate", "twice"))
    else:
        assert same(value, expected)


@given(VALUES | NEAR_MESSAGES | st.lists(NEAR_MESSAGES))
@settings(max_examples=300)
def test_classify_never_raises(value: object) -> None:
    """Any JSON value is one of four kinds, and only one of them can lack a proper id."""
    incoming = classify(value)
    assert type(incoming) in (Request, Notification, Response, Malformed)
    if isinstance(incoming, (Request, Notification)):
        assert type(incoming.params) is dict
        assert type(incoming.method) is str
    if isinstance(incoming, Request):
        assert type(incoming.id) in (int, str)
    if isinstance(incoming, Response):
        assert (incoming.result is None) != (incoming.error is None)
    if isinstance(incoming, Malformed):
        assert incoming.id is None or type(incoming.id) in (int, str)
        is_response = isinstance(value, dict) and "method" not in value
        is_response = is_response and ("result" in value or "error" in value)  # type: ignore[operator]
        assert not (is_response and incoming.answer)


def _cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def _deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        math.nan, [math.inf], {"a": -math.inf}, {math.nan: 1}, "\ud800", {"\udfff": 1}, {1, 2},
        object(), {(1, 2): 3}, b"bytes", _cyclic(),
    ],
)  # fmt: skip
def test_what_json_has_not_is_an_encode_error(value: object) -> None:
    """NaN, lone surrogates, cycles and objects are refused by one exception."""
    with pytest.raises(EncodeError):
        encode({"params": value})


def test_what_is_too_deep_is_an_encode_error() -> None:
    """No RecursionError leaves `encode`."""
    with pytest.raises(EncodeError, match="nested too deeply"):
        encode(_deep())


def test_an_encode_error_names_no_value() -> None:
    """Its text is sent and logged."""
    for value in ("s3cr3t\ud800", {("s3cr3t",): 1}, {"s3cr3t"}):
        with pytest.raises(EncodeError) as caught:
            encode([value])
        assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("make", [None, lambda *_: 0, lambda *_: lambda *_: ["{}"]])
def test_encode_needs_nothing_that_is_not_documented(make: Any) -> None:
    """Where the interpreter's own encoder is missing or another one, `json` is used as it is."""
    assert wire._keep_encoder(make)({"ä": [1, 2.5, None]}) == '{"ä":[1,2.5,null]}'


def test_encode_is_compact_utf_8() -> None:
    """No spaces, no escapes that are not needed."""
    assert encode({"ä": [1, 2.5, None, "\U0001f600\n"]}) == (
        '{"ä":[1,2.5,null,"\U0001f600\\n"]}'.encode()
    )
    assert wire.encode("a") == b'"a"'
