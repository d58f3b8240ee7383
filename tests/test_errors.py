"""Exceptions: their facts, their texts, and that they travel between processes."""

from __future__ import annotations

import copy
import pickle

import pytest

from raxol_sync import errors
from raxol_sync.errors import (
    Busy,
    Cancelled,
    ConnectFailed,
    InputRequired,
    InvalidResponse,
    InvalidSpec,
    InvalidTool,
    MCPError,
    MessageTooLarge,
    NotReady,
    RequestTimeout,
    RPCError,
    ServerExited,
    ToolError,
)

EXAMPLES: list[tuple[MCPError, str]] = [
    (InvalidSpec("give one of command= and url="), "give one of command= and url="),
    (InvalidTool("tool 'x': no"), "tool 'x': no"),
    (NotReady("starting"), "the session is not ready (state: starting)"),
    (NotReady("closed", status=1, detail="d"), "the session is not ready (state: closed): d"),
    (ConnectFailed("no route"), "could not connect: no route"),
    (ServerExited(None), "the server's process ended"),
    (ServerExited(3), "the server's process exited with status 3"),
    (
        ServerExited(-9, "oops"),
        "the server's process was killed by signal 9; its last words on stderr:\noops",
    ),
    (Busy("queue", 64), "busy: the queue allows 64 at once; try again later"),
    (MessageTooLarge(10), "a message is longer than 10 bytes (max_message_bytes)"),
    (MessageTooLarge(10, "the result"), "the result is longer than 10 bytes (max_message_bytes)"),
    (RequestTimeout("tools/call", 2.5), "tools/call was not answered within 2.5 s"),
    (RequestTimeout("ping", None), "ping was not answered within the time allowed"),
    (RPCError(-32601, "Unknown method", {"a": 1}), "Unknown method (-32601)"),
    (InvalidResponse("ping"), "the server's answer to ping is not valid"),
    (InvalidResponse("ping", "why"), "the server's answer to ping is not valid: why"),
    (
        InputRequired({"b": {"method": "roots/list"}, "a": {"method": "m"}, "c": 5}),
        "the server asks for input and no handler was given for it: m, roots/list",
    ),
    (ToolError("word for word"), "word for word"),
]


@pytest.mark.parametrize(("error", "text"), EXAMPLES)
def test_texts_are_composed_of_the_facts(error: MCPError, text: str) -> None:
    """Each names what happened."""
    assert str(error) == text


@pytest.mark.parametrize("error", [error for error, _ in EXAMPLES])
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_exceptions_can_be_copied_and_pickled(error: MCPError, again: object) -> None:
    """A process pool hands them on whole."""
    assert callable(again)
    other = again(error)
    assert type(other) is type(error)
    assert str(other) == str(error)
    assert vars(other) == vars(error)
    assert other.args == error.args


def test_every_exception_is_in_one_flat_tree() -> None:
    """But for `Cancelled`, which `except Exception` must not swallow."""
    classes = [
        value for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, BaseException)
    ]  # fmt: skip
    for kind in classes:
        assert issubclass(kind, MCPError) != (kind is Cancelled)
    assert not issubclass(Cancelled, Exception)
    assert {kind for kind, _ in ((type(error), 0) for error, _ in EXAMPLES)} <= set(classes)


def test_a_request_timeout_is_a_timeout_error() -> None:
    """Also an OSError therefore: with no errno, which would be taken for the system's."""
    error = RequestTimeout("tools/call", 5.0)
    assert isinstance(error, TimeoutError)
    assert error.errno is None
    assert error.strerror is None
    assert (error.method, error.timeout) == ("tools/call", 5.0)


def test_argument_values_and_inputs_are_in_no_text() -> None:
    """The data of an error and the questions of a server stay attributes."""
    secret = "s3cr3t"
    for error in (
        RPCError(-1, "m", {"password": secret}),
        InputRequired({"q": {"method": "elicitation/create", "params": {"message": secret}}}),
        NotReady("closed", status=secret),
    ):
        assert secret not in str(error)
        assert secret not in repr(error)
