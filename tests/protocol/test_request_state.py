"""The signed state: what it is bound to, and everything that it must not be used for."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.protocol.request_state import (
    MAX_STATE,
    BadState,
    Nonces,
    RequestState,
    check_keys,
    digest,
    identity,
    seal,
    unseal,
)

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
PARAMS: dict[str, Any] = {"name": "wipe", "arguments": {"disk": 1}}
BINDING = digest(identity("tools/call", PARAMS, "ann"))
STATE = RequestState(BINDING, expires=100.0, nonce="n1", prompt="Wipe?", asked=("approval",))


def test_s42_a_state_comes_back_as_it_was() -> None:
    """What one round says, the next one reads."""
    state = replace(STATE, approved="earlier", answers={"name": {"action": "accept"}})
    assert unseal(seal(state, KEY), [KEY], BINDING, now=99.0) == state


def test_s42_the_first_key_signs_and_all_verify() -> None:
    """A key can be replaced while states of the old one are still about."""
    assert unseal(seal(STATE, KEY), [OTHER_KEY, KEY], BINDING, now=0.0) == STATE
    with pytest.raises(BadState, match="not one that this server gave"):
        unseal(seal(STATE, KEY), [OTHER_KEY], BINDING, now=0.0)


@pytest.mark.parametrize(
    ("method", "params", "principal"),
    [
        ("prompts/get", PARAMS, "ann"),
        ("tools/call", {**PARAMS, "name": "list"}, "ann"),
        ("tools/call", {**PARAMS, "arguments": {"disk": 2}}, "ann"),
        ("tools/call", {**PARAMS, "arguments": {"disk": True}}, "ann"),
        ("tools/call", {**PARAMS, "arguments": {"disk": "1"}}, "ann"),
        ("tools/call", PARAMS, "bob"),
        ("tools/call", PARAMS, None),
    ],
)
def test_s42_a_state_is_good_for_one_request_only(
    method: str, params: dict[str, Any], principal: object
) -> None:
    """Another method, tool, argument or principal is another request."""
    with pytest.raises(BadState, match="another request"):
        unseal(seal(STATE, KEY), [KEY], digest(identity(method, params, principal)), now=0.0)


def test_s42_what_a_retry_adds_does_not_make_it_another_request() -> None:
    """Answers, state and _meta are the retry's own."""
    retry = {
        **PARAMS,
        "inputResponses": {"x": {}},
        "requestState": "s",
        "_meta": {"progressToken": 2},
    }
    assert digest(identity("tools/call", retry, "ann")) == BINDING


def test_s42_an_expired_state_is_refused() -> None:
    """At its very end it is over."""
    text = seal(STATE, KEY)
    unseal(text, [KEY], BINDING, now=99.999)
    with pytest.raises(BadState, match="expired"):
        unseal(text, [KEY], BINDING, now=100.0)


@given(st.data())
def test_s42_an_altered_state_is_refused(data: st.DataObject) -> None:
    """Whichever character is changed, to whatever."""
    text = seal(STATE, KEY)
    index = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(codec="utf-8").filter(lambda c: c != text[index]))
    altered = text[:index] + other + text[index + 1 :]
    try:
        found = unseal(altered, [KEY], BINDING, now=0.0)
    except BadState:
        return
    # Base64 has bits at its end that mean nothing; the state itself is untouched.
    assert found == STATE


@given(st.one_of(st.text(), st.none(), st.integers(), st.lists(st.text()), st.binary()))
def test_s42_garbage_is_refused_in_words(garbage: object) -> None:
    """Nothing that is no state of ours raises anything but BadState."""
    with pytest.raises(BadState):
        unseal(garbage, [KEY], BINDING, now=0.0)


def test_s42_a_payload_with_another_ones_signature_is_refused() -> None:
    """The signature covers the payload."""
    approved = seal(replace(STATE, approved="Wipe?"), KEY)
    head = approved.partition(".")[0]
    tail = seal(STATE, KEY).partition(".")[2]
    assert json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))["a"] == "Wipe?"
    with pytest.raises(BadState):
        unseal(f"{head}.{tail}", [KEY], BINDING, now=0.0)


def test_s42_a_state_that_would_be_too_large_is_not_given() -> None:
    """Better now than on the retry."""
    with pytest.raises(BadState, match="larger"):
        seal(replace(STATE, answers={"essay": "x" * MAX_STATE}), KEY)


def test_s42_a_nonce_is_good_once() -> None:
    """A state that was used is refused, whatever it would have approved."""
    nonces = Nonces()
    assert nonces.consume(STATE, now=0.0) is True
    with pytest.raises(BadState, match="used before"):
        nonces.consume(STATE, now=0.0)


def test_s42_nonces_are_bounded_and_expire() -> None:
    """Full is refused, not forgotten; what has expired makes room."""
    nonces = Nonces(limit=3)
    for n in range(3):
        assert nonces.consume(replace(STATE, nonce=f"n{n}", expires=10.0 + n), now=0.0)
    assert nonces.consume(replace(STATE, nonce="late"), now=9.0) is False
    assert nonces.consume(replace(STATE, nonce="late"), now=11.0) is True
    with pytest.raises(BadState):
        nonces.consume(replace(STATE, nonce="n2"), now=11.0)


@pytest.mark.parametrize("key", [b"short", "", [], [b"k" * 32, b"x"]])
def test_s42_short_keys_are_refused(key: object) -> None:
    """At least 16 bytes each, and at least one."""
    with pytest.raises(ValueError, match="at least 16 bytes"):
        check_keys(key)  # type: ignore[arg-type]  # some are wrong on purpose


def test_s42_keys_may_be_text_or_bytes_one_or_many() -> None:
    """As configuration gives them."""
    assert check_keys("k" * 16) == (b"k" * 16,)
    assert check_keys([b"a" * 16, "b" * 16]) == (b"a" * 16, b"b" * 16)
