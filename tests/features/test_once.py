"""`Context.once`: what a callback does once, however often its questions run it again."""

from __future__ import annotations

import pytest

from raxol_sync import Context, Server
from tests.features.helpers import EACH_ERA, Json, connected, form

TEXT = {"type": "string"}


@EACH_ERA
def test_a_side_effect_before_a_question_happens_once(revision: str) -> None:
    """And its result is the same in every run; without the guard it would be another."""
    booked: list[int] = []
    runs: list[int] = []

    def book() -> tuple[str, int]:
        booked.append(1)
        return ("seat", len(booked))

    with connected(server := Server(), revision, on_elicit=lambda m, s: {"x": "y"}) as client:

        @server.tool
        def order(context: Context) -> Json:
            runs.append(1)
            seat = context.once("book", book)
            first = context.elicit("One?", form(x=TEXT)).action
            again = context.once("book", book)
            second = context.elicit("Two?", form(x=TEXT)).action
            return {"seat": seat, "again": again, "answers": [first, second]}

        found = client.call_tool("order").structured_content
    assert found == {"seat": ["seat", 1], "again": ["seat", 1], "answers": ["accept"] * 2}
    assert booked == [1]
    assert len(runs) == (1 if revision == "2025-11-25" else 3)


@EACH_ERA
def test_each_call_is_one_of_its_own(revision: str) -> None:
    """Nothing is kept from one call to the next."""
    done: list[int] = []

    def add() -> int:
        done.append(1)
        return len(done)

    with connected(server := Server(), revision) as client:

        @server.tool
        def act(context: Context) -> int:
            return int(context.once("act", add))

        assert [client.call_tool("act").structured_content for _ in range(2)] == [
            {"result": 1},
            {"result": 2},
        ]


@EACH_ERA
def test_what_fails_is_done_again_and_what_is_no_json_is_refused(revision: str) -> None:
    """An action that raised has not happened."""
    tries: list[int] = []

    def flaky() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise OSError
        return "done"

    with connected(server := Server(), revision) as client:

        @server.tool
        def act(context: Context) -> str:
            with pytest.raises(OSError):
                context.once("act", flaky)
            with pytest.raises(TypeError):
                context.once("odd", object)
            return str(context.once("act", flaky))

        assert client.call_tool("act").text == "done"
