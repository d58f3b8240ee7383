"""Verdicts, denials and approvals: the words of authorization."""

from __future__ import annotations

import copy
import pickle

import pytest

from raxol_sync.policy import (
    ALLOW,
    Ask,
    AuthorizationContext,
    Deny,
    allow_all,
    allowlist,
    approval_refused,
    approval_request,
    denial,
    deny_all,
    is_sensitive,
    takes_forms,
    verdict,
)

CONTEXT = AuthorizationContext("tools/call")


def test_s26_ready_made_authorizers() -> None:
    """They answer as they are called."""
    assert allow_all()("x", {}, CONTEXT) is ALLOW
    assert deny_all("closed")("x", {}, CONTEXT) == Deny("closed")
    only = allowlist(["read"])
    assert only("read", {}, CONTEXT) is ALLOW
    assert only("write", {}, CONTEXT) == Deny("write is not on the allowlist")


def test_s26_an_allowlist_of_one_str_is_refused() -> None:
    """A str is a collection of letters, and never what was meant."""
    with pytest.raises(TypeError, match="not one str"):
        allowlist("read")


@pytest.mark.parametrize("answer", [None, True, False, 1, "allow", object(), Deny])
def test_s25_anything_else_is_no_verdict(answer: object) -> None:
    """None and True included: whatever is not an answer denies."""
    assert verdict(answer) is None


@pytest.mark.parametrize("answer", [ALLOW, Ask("really?"), Deny("no")])
def test_s25_the_three_answers_are_verdicts(answer: object) -> None:
    """They are returned as they are."""
    assert verdict(answer) is answer


def test_s25_allow_is_one_object() -> None:
    """Also after copying and pickling it is the very ALLOW that is compared with."""
    assert copy.deepcopy(ALLOW) is ALLOW
    assert pickle.loads(pickle.dumps(ALLOW)) is ALLOW
    assert repr(ALLOW) == "ALLOW"


def test_s27_a_denial_is_machine_readable() -> None:
    """It names the tool or the method, the decision and the detail."""
    assert denial("tool", "wipe", "ask", "nobody to ask") == {
        "error": "authorization_required",
        "tool": "wipe",
        "decision": "ask",
        "detail": "nobody to ask",
    }


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (None, False),
        ({}, False),
        ({"readOnlyHint": False}, False),
        ({"destructiveHint": True}, True),
        ({"destructiveHint": False}, False),
        ({"destructiveHint": "yes"}, False),
        ({"sensitive": True}, True),
        ({"sensitive": True, "readOnlyHint": True}, True),
    ],
)
def test_s31_what_is_sensitive(annotations: dict[str, object] | None, expected: bool) -> None:
    """Either mark is enough, and no other annotation takes it away."""
    assert is_sensitive(annotations) is expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"action": "accept", "content": {"approve": True}}, None),
        ({"action": "accept", "content": {"approve": False}}, "not approved"),
        ({"action": "accept", "content": {"approve": "true"}}, "not approved"),
        ({"action": "accept", "content": {"approve": 1}}, "not approved"),
        ({"action": "accept", "content": {}}, "not approved"),
        ({"action": "accept"}, "not approved"),
        ({"action": "decline", "content": {"approve": True}}, "declined"),
        ({"action": "cancel"}, "cancelled"),
        ({"action": "Accept", "content": {"approve": True}}, "the answer is not valid"),
        ({}, "the answer is not valid"),
        (None, "the answer is not valid"),
        ([], "the answer is not valid"),
    ],
)
def test_s35_only_a_plain_yes_is_an_approval(answer: object, expected: str | None) -> None:
    """Silence, doubt and garbage are no consent."""
    assert approval_refused(answer) == expected


def test_s34_the_question_is_a_form_with_a_required_boolean() -> None:
    """The prompt, and one thing to decide."""
    params = approval_request("Wipe the disk?")
    assert params["message"] == "Wipe the disk?"
    assert params["requestedSchema"]["required"] == ["approve"]
    assert params["requestedSchema"]["properties"]["approve"]["type"] == "boolean"


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        (None, False),
        ({}, False),
        ({"elicitation": {}}, True),
        ({"elicitation": {"form": {}}}, True),
        ({"elicitation": {"form": {}, "url": {}}}, True),
        ({"elicitation": {"url": {}}}, False),
        ({"elicitation": None}, False),
        ({"elicitation": True}, False),
    ],
)
def test_s34_who_takes_forms(capabilities: dict[str, object] | None, expected: bool) -> None:
    """An empty object means forms; one that names only urls does not."""
    assert takes_forms(capabilities) is expected
