"""Bytes to lines to messages, and our own messages to bytes."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.client import frames
from raxol_sync.client.incoming import parse, shortened
from raxol_sync.client.unsendable import encode_params
from raxol_sync.errors import InvalidArguments
from raxol_sync.protocol.lines import LineSplitter
from raxol_sync.protocol.wire import Malformed, Response

LIMIT = 1000
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.binary(max_size=60))
def test_c20_no_line_raises(data: bytes) -> None:
    """Whatever comes is a message or a `Malformed`."""
    for line in LineSplitter(LIMIT).feed(data + b"\n"):
        assert isinstance(line, bytes)
        assert parse(line, max_bytes=LIMIT)
        assert shortened(line).isprintable()


@pytest.mark.parametrize(
    "result",
    [b"NaN", b"[-Infinity]", b'"\\ud800"', b"1e999", b"9" * 5000],
    ids=lambda b: str(b[:9]),
)
def test_c11_a_broken_answer_keeps_its_id(result: bytes) -> None:
    """So that its request fails at once."""
    line = b'{"jsonrpc":"2.0","id":7,"result":{"x":' + result + b"}}"
    (found,) = parse(line, max_bytes=10_000)
    assert isinstance(found, Malformed)
    assert found.id in (7, None) if result[:1] == b"9" else found.id == 7
    assert not found.answer


def test_c11_a_broken_request_of_the_servers_is_not_taken_for_an_answer() -> None:
    """Its ids are the server's own."""
    line = b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"x":NaN}}'
    (found,) = parse(line, max_bytes=10_000)
    assert isinstance(found, Malformed)
    assert found.id is None


def test_batches_are_unpacked() -> None:
    """Each item is a message of its own."""
    line = b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]'
    assert parse(line, max_bytes=1000) == [Response(1, {}, None), Response(2, {}, None)]


@given(
    st.dictionaries(st.text(max_size=5), json_values, max_size=3),
    st.none() | st.dictionaries(st.text(min_size=1, max_size=5), json_values, max_size=2),
    st.booleans(),
)
def test_c10_frames_are_what_plain_json_would_be(
    params: dict[str, Any], meta: dict[str, Any] | None, token: bool
) -> None:
    """Joining encoded pieces gives the same message, on one line."""
    params.pop("_meta", None)
    encoded = None if meta is None else json.dumps(meta).encode()
    if token:
        encoded = frames.with_token(encoded, 5)
        meta = {**(meta or {}), "progressToken": 5}
    frame = frames.request(5, "tools/call", encode_params(params), encoded)
    expected: dict[str, Any] = {"jsonrpc": "2.0", "id": 5, "method": "tools/call"}
    if params or meta is not None:
        expected["params"] = dict(params)
    if meta is not None:
        expected["params"]["_meta"] = meta
    assert json.loads(frame.data) == expected
    assert frame.data.count(b"\n") == 1
    assert frame.data.endswith(b"\n")


def test_c10_what_is_no_json_cannot_become_a_frame() -> None:
    """A ValueError that names the cause."""
    with pytest.raises(InvalidArguments, match="surrogate"):
        encode_params({"x": "\ud800"})
    with pytest.raises(InvalidArguments):
        encode_params({"x": float("inf")})


@pytest.mark.parametrize(
    ("arguments", "path", "words"),
    [
        ({"when": datetime.datetime.now(tz=datetime.timezone.utc)}, "arguments.when", "isoformat"),
        ({"a": [1, {"b": {1, 2}}]}, "arguments.a[1].b", "sorted"),
        ({"data": b"s3cret"}, "arguments.data", "base64"),
        ({"x": float("nan")}, "arguments.x", "None"),
        ({"x": {(1, 2): 3}}, "arguments.x", "keys"),
        ({"x": "s3cret\ud800"}, "arguments.x", "surrogate"),
        ({"x": object()}, "arguments.x", "object"),
        ({"x": 10**5000}, "", "convert"),
    ],
    ids=["datetime", "set", "bytes", "NaN", "key", "surrogate", "object", "integer"],
)
def test_c10_what_cannot_be_sent_is_named(
    arguments: dict[str, object], path: str, words: str
) -> None:
    """Where it is and what to do, and no value of it; nothing is sent."""
    with pytest.raises(InvalidArguments, match=words) as caught:
        encode_params({"name": "t", "arguments": arguments})
    assert isinstance(caught.value, ValueError)
    assert caught.value.path == path
    assert str(caught.value).startswith(path)
    assert caught.value.__context__ is None
    assert "s3cret" not in str(caught.value)


def test_c10_what_contains_itself_cannot_be_sent() -> None:
    """Nor what is nested without end."""
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(InvalidArguments, match="itself"):
        encode_params({"x": loop})
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidArguments, match="deeply"):
        encode_params({"x": deep})
