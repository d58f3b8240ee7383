"""`Registry.call_tool`: a tool here and now, behind its breaker (rows S43, S45, S46)."""

from __future__ import annotations

from typing import Any

import pytest

from raxol_sync import Cancelled, Context, Registry, Server, Tool, ToolError


def registry(callback: Any, **options: Any) -> Registry:
    """A registry with one tool `t`."""
    found = Registry()
    found.register_tools([Tool("t", "A tool.", {"type": "object"}, callback, **options)])
    return found


def raising(error: BaseException) -> Any:
    """A callback that raises this."""

    def callback(arguments: object) -> object:
        raise error

    return callback


def test_s43_it_runs_the_tool_on_the_callers_thread() -> None:
    """Converted and checked as for a client."""
    with Server() as server:

        @server.tool
        def double(n: int) -> int:
            return 2 * n

        found = server.registry.call_tool("double", {"n": 4})
        assert (found.is_error, found.structured_content) == (False, {"result": 8})
        wrong = server.registry.call_tool("double", {"n": "x"})
        assert wrong.is_error
        assert "n" in wrong.text


def test_s43_mistakes_of_the_caller_are_raised() -> None:
    """No such tool, no mapping, or one that needs a `Context`."""
    with Server() as server:
        server.tool(name="c")(lambda: "x")

        @server.tool
        def needs(context: Context) -> str:
            return "x"

        with pytest.raises(LookupError, match="nothing"):
            server.registry.call_tool("nothing")
        with pytest.raises(TypeError, match="mapping"):
            server.registry.call_tool("c", 5)  # type: ignore[arg-type]
        with pytest.raises(ToolError, match="Context"):
            server.registry.call_tool("needs")
        assert server.registry.circuit_status(("tool", "c")) == "closed"


@pytest.mark.parametrize("error", [ValueError("secret"), SystemExit("secret"), MemoryError()])
def test_s46_failures_are_results_with_the_class_name_only(error: BaseException) -> None:
    """As a client sees them; five in a row open the circuit."""
    found = registry(raising(error))
    for _ in range(5):
        answer = found.call_tool("t")
        assert answer.is_error
        assert answer.text == f"the tool failed: {type(error).__name__}"
    assert found.circuit_status(("tool", "t")) == "open"
    assert "left alone" in found.call_tool("t").text
    found.reset_circuit(("tool", "t"))
    assert found.circuit_status(("tool", "t")) == "closed"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Cancelled("stop")])
def test_s45_being_told_to_stop_is_no_fault(error: BaseException) -> None:
    """It passes through, as often as it comes."""
    found = registry(raising(error))
    for _ in range(6):
        with pytest.raises(type(error)):
            found.call_tool("t")
    assert found.circuit_status(("tool", "t")) == "closed"


@pytest.mark.parametrize("judge", [None, raising(ValueError()), lambda error: 1])
def test_s45_words_are_an_answer(judge: Any) -> None:
    """Word for word, whatever `is_fault` does, and no fault unless it says `True`."""
    found = registry(raising(ToolError("no such disk")), is_fault=judge)
    for _ in range(6):
        assert found.call_tool("t").text == "no such disk"
    counted = registry(raising(ToolError("down")), is_fault=lambda error: True)
    for _ in range(5):
        counted.call_tool("t")
    assert counted.circuit_status(("tool", "t")) == "open"


def test_results_that_cannot_be_sent_are_said_in_words() -> None:
    """The same words as a client gets."""
    assert "cannot be sent" in registry(lambda a: object()).call_tool("t").text
