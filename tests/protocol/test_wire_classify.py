"""Rows S06, S07: what a JSON value is, and which malformed ones are answered."""

from __future__ import annotations

from typing import Any

import pytest

from raxol_sync.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from raxol_sync.protocol import wire
from raxol_sync.protocol.wire import Malformed, Notification, Request, Response, classify

BIG = 10**30


def message(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **members}


def malformed(value: object) -> Malformed:
    incoming = classify(value)
    assert isinstance(incoming, Malformed), incoming
    return incoming


@pytest.mark.parametrize("request_id", [0, 7, -1, BIG, "", "7", "ä"])
def test_s06_ids_are_strings_or_integers(request_id: str | int) -> None:
    """Such a message is a request, and its id comes back as it was."""
    assert classify(message(id=request_id, method="m", params={"a": 1})) == Request(
        request_id, "m", {"a": 1}
    )


@pytest.mark.parametrize(
    ("request_id", "word"),
    [
        (None, "null"),
        (True, "a boolean"),
        (False, "a boolean"),
        (1.0, "a number"),
        (1.5, "a number"),
        ([], "an array"),
        ({}, "an object"),
    ],
)
def test_s06_other_ids_are_refused_without_an_id(request_id: object, word: str) -> None:
    """-32600; the answer cannot name the request."""
    bad = malformed(message(id=request_id, method="m"))
    assert (bad.code, bad.id, bad.answer) == (INVALID_REQUEST, None, True)
    assert word in bad.reason


def test_s06_absent_and_null_params_are_empty() -> None:
    """Of a request and of a notification."""
    cases: tuple[dict[str, Any], ...] = ({}, {"params": None}, {"params": {}})
    for members in cases:
        assert classify(message(id=1, method="m", **members)) == Request(1, "m", {})
        assert classify(message(method="m", **members)) == Notification("m", {})


@pytest.mark.parametrize("params", [[], [1], "a", 0, 1.5, True, False])
@pytest.mark.parametrize("method", ["m", 5, None])
def test_s06_params_are_looked_at_before_the_method(params: object, method: object) -> None:
    """Params of another type are -32602 whatever the method; in a notification they are dropped."""
    bad = malformed(message(id="x", method=method, params=params))
    assert (bad.code, bad.id, bad.answer) == (INVALID_PARAMS, "x", True)
    assert not malformed(message(method=method, params=params)).answer


@pytest.mark.parametrize("method", [None, 5, True, [], {}])
def test_s06_methods_are_strings(method: object) -> None:
    """-32600 for a request; a notification is dropped."""
    bad = malformed(message(id=3, method=method))
    assert (bad.code, bad.id, bad.answer) == (INVALID_REQUEST, 3, True)
    assert not malformed(message(method=method)).answer


@pytest.mark.parametrize("value", [None, 1, 1.5, True, "text", [], [message(id=1, method="m")]])
def test_s06_what_is_no_object_is_refused(value: object) -> None:
    """Batches too: transports of revision 2025-03-26 unpack them before."""
    bad = malformed(value)
    assert (bad.code, bad.id, bad.answer) == (INVALID_REQUEST, None, True)
    assert ("batch" in bad.reason) == isinstance(value, list)


@pytest.mark.parametrize("version", [None, 2, 2.0, "2", "1.0", "2.0 ", ["2.0"], True])
def test_s06_jsonrpc_is_2_0(version: object) -> None:
    """Any other version is -32600 with the id, if there is a usable one."""
    bad = malformed({"jsonrpc": version, "id": 4, "method": "m"})
    assert (bad.code, bad.id, bad.answer) == (INVALID_REQUEST, 4, True)
    assert malformed({"id": True, "method": "m"}).id is None
    assert malformed({}).answer


def test_s07_a_response_never_gets_a_reply() -> None:
    """Whatever is wrong with it."""
    error = {"code": 1, "message": "m"}
    for broken in (
        {"id": 1, "result": {}},
        {"jsonrpc": "1.0", "id": 1, "error": error},
        message(id=1, result=[]),
        message(id=1, result=None),
        message(id=1, result={}, error=error),
        message(id=1, error={}),
        message(id=1, error="text"),
        message(id=1, error={"code": "1", "message": "m"}),
        message(id=1, error={"code": True, "message": "m"}),
        message(id=1, error={"code": 1.0, "message": "m"}),
        message(id=1, error={"code": 1, "message": None}),
        message(id=1, error=None),
        message(id=True, result={}),
        message(id=1.0, result={}),
        message(id=[], error=error),
    ):
        assert not malformed(broken).answer, broken


def test_a_broken_response_keeps_a_usable_id() -> None:
    """So that the request it answers can fail at once."""
    assert malformed(message(id="a", result=5)).id == "a"
    assert malformed(message(id=9, error=5)).id == 9
    assert malformed(message(id=True, error=5)).id is None


def test_responses_have_a_result_or_an_error() -> None:
    """A null beside the other one is none."""
    error = {"code": -1, "message": "m", "data": [1]}
    assert classify(message(id=1, result={"a": 1})) == Response(1, {"a": 1}, None)
    assert classify(message(id="1", result={}, error=None)) == Response("1", {}, None)
    assert classify(message(id=1, error=error)) == Response(1, None, error)
    assert classify(message(id=1, error=error, result=None)) == Response(1, None, error)
    assert classify(message(id=None, error=error)) == Response(None, None, error)
    assert classify(message(error=error)) == Response(None, None, error)


def test_a_method_makes_it_no_response() -> None:
    """A message with both is a request."""
    assert classify(message(id=1, method="m", result={})) == Request(1, "m", {})


def test_no_method_and_no_answer_is_refused() -> None:
    """With an id somebody waits for an answer."""
    assert malformed(message(id=1)) == Malformed(
        INVALID_REQUEST, "the message has no method", 1, True
    )
    assert not malformed(message(params={})).answer


def test_what_decode_refused_passes_through() -> None:
    """`classify(decode(data))` needs no look in between."""
    assert classify(wire.decode(b"nope")) is not None
    bad = Malformed(PARSE_ERROR, "reason", 5, False)
    assert classify(bad) is bad


def test_reasons_hold_no_value_of_the_message() -> None:
    """What a peer sent is not echoed in an error's text."""
    secret = "s3cr3t"
    for value in (
        [secret], secret, {"jsonrpc": secret}, message(id=[secret], method="m"),
        message(id=1, method=[secret]), message(id=1, method=secret, params=secret),
        message(id=1, result=secret), message(id=1, error=secret),
    ):  # fmt: skip
        assert secret not in malformed(value).reason


def test_our_own_messages_are_what_they_say() -> None:
    """Each builder's message is read as its kind, by way of bytes."""

    def read(value: object) -> wire.Incoming:
        return classify(wire.decode(wire.encode(value)))

    assert read(wire.request(1, "m")) == Request(1, "m", {})
    assert read(wire.request("a", "m", {"x": 1})) == Request("a", "m", {"x": 1})
    assert read(wire.notification("n")) == Notification("n", {})
    assert read(wire.notification("n", {"x": 1})) == Notification("n", {"x": 1})
    assert read(wire.result(1, {"x": 1})) == Response(1, {"x": 1}, None)
    assert read(wire.error(1, -5, "no", {"y": 2})) == Response(
        1, None, {"code": -5, "message": "no", "data": {"y": 2}}
    )


def test_s06_an_error_without_an_id_has_none_or_null() -> None:
    """Left out from 2025-11-25 on, null before."""
    assert "id" not in wire.error(None, -1, "m")
    assert wire.error(None, -1, "m", null_id=True)["id"] is None
    assert "data" not in wire.error(None, -1, "m")["error"]
