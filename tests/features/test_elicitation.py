"""Elicitation: forms with every kind of field, their defaults and checks; pages to visit."""

from __future__ import annotations

import queue
from collections.abc import Mapping
from typing import Any

import pytest

from raxol_sync import Context, Elicit, RPCError, Server, URLElicitationRequired
from tests.features.helpers import EACH_ERA, LEGACY, MODERN, Json, connected, form

TITLED = [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}]
EVERY_FIELD: Json = {
    "name": {"type": "string", "minLength": 2, "default": "Ann"},
    "mail": {"type": "string", "format": "email", "default": "ann@example.com"},
    "age": {"type": "integer", "minimum": 0, "default": 30},
    "score": {"type": "number", "maximum": 100, "default": 9.5},
    "agree": {"type": "boolean", "default": True},
    "plain": {"type": "string", "enum": ["a", "b"], "default": "b"},
    "titled": {"type": "string", "oneOf": TITLED, "default": "#f00"},
    "several": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["a"]},
    "colors": {"type": "array", "items": {"anyOf": TITLED}, "maxItems": 2, "default": []},
}
DEFAULTS = {name: field["default"] for name, field in EVERY_FIELD.items()}


@EACH_ERA
def test_every_kind_of_field_arrives_as_it_was_asked_and_its_default_fills_it(
    revision: str,
) -> None:
    """The handler leaves all fields but one out."""
    shown: list[Mapping[str, Any]] = []

    def person(message: str, schema: Mapping[str, Any]) -> Json:
        shown.append(schema["properties"])
        return {"titled": "#0f0"}

    with connected(server := Server(), revision, on_elicit=person) as client:

        @server.tool
        def ask(context: Context) -> Json:
            return dict(context.elicit("Who are you?", form(**EVERY_FIELD)).content or {})

        found = client.call_tool("ask").structured_content
    assert shown == [EVERY_FIELD]
    assert found == {**DEFAULTS, "titled": "#0f0"}


@EACH_ERA
@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "x"},
        {"age": -1},
        {"age": "old"},
        {"score": 1000},
        {"agree": "yes"},
        {"plain": "c"},
        {"titled": "Red"},
        {"several": ["c"]},
        {"colors": ["#f00", "#0f0", "#f00"]},
    ],
    ids=str,
)
def test_an_answer_that_does_not_fit_the_form_never_reaches_the_tool(
    revision: str, wrong: Json
) -> None:
    """A client may answer anything; the server checks it."""
    reached: list[object] = []
    with connected(server := Server(), revision, on_elicit=lambda m, s: wrong) as client:

        @server.tool
        def ask(context: Context) -> str:
            reached.append(context.elicit("?", form(**EVERY_FIELD)))
            return "reached"

        if revision == MODERN:
            with pytest.raises(RPCError, match="the client's answer") as failed:
                client.call_tool("ask")
            assert failed.value.code == -32602
        else:
            result = client.call_tool("ask")
            assert result.is_error
            assert "the client's answer" in result.text
    assert reached == []


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "array", "properties": {}},
        form(deep={"type": "object"}),
        form(items={"type": "array", "items": {"type": "string"}}),
        form(any={}),
    ],
    ids=str,
)
def test_what_is_no_form_is_refused_where_it_is_made(schema: Json) -> None:
    """The protocol allows flat objects only."""
    with pytest.raises(ValueError, match="form"):
        Elicit("?", schema)


def test_before_2025_11_25_titles_of_choices_travel_as_names() -> None:
    """`enumNames` is what that revision has, and there is no mode."""
    shown: list[Any] = []

    def person(message: str, schema: Mapping[str, Any]) -> Json:
        shown.append(schema["properties"]["titled"])
        return {"titled": "#f00"}

    with connected(server := Server(), "2025-06-18", on_elicit=person) as client:

        @server.tool
        def ask(context: Context) -> str:
            field = {"type": "string", "title": "Color", "oneOf": TITLED}
            return str((context.elicit("?", form(titled=field)).content or {})["titled"])

        assert client.call_tool("ask").text == "#f00"
    assert shown == [
        {
            "type": "string",
            "title": "Color",
            "enum": ["#f00", "#0f0"],
            "enumNames": ["Red", "Green"],
        }
    ]


# ---------------------------------------------------------------- pages

PAGE = "https://example.com/connect"


@EACH_ERA
def test_a_page_to_visit(revision: str) -> None:
    """Its answer tells only whether the person agreed; only the older revision has an id."""
    shown: list[tuple[object, ...]] = []

    def person(message: str, schema: object, *, url: str, elicitation_id: str | None) -> Json:
        shown.append((message, schema, url, elicitation_id))
        return {}

    with connected(server := Server(), revision, on_elicit=person) as client:

        @server.tool
        def connect(context: Context) -> str:
            answer = context.elicit_url("Sign in.", PAGE, elicitation_id="visit-1")
            return f"{answer.action} {answer.content}"

        assert client.call_tool("connect").text in ("accept {}", "accept None")
    assert shown == [("Sign in.", None, PAGE, "visit-1" if revision == LEGACY else None)]


def test_the_client_is_told_once_that_its_visit_has_ended() -> None:
    """Only the one that was sent there, and only in the revision that has the notification."""
    told: queue.SimpleQueue[tuple[str, Json]] = queue.SimpleQueue()
    server = Server()

    @server.tool
    def connect(context: Context) -> str:
        return context.elicit_url("Sign in.", PAGE, elicitation_id="visit-1").action

    def note(method: str, params: Json) -> None:
        told.put((method, params))

    with connected(server, LEGACY, on_elicit=lambda m, s, url: {}, on_notification=note) as client:
        client.call_tool("connect")
        assert server.elicitation_completed("visit-1") is True
        assert server.elicitation_completed("visit-1") is False
        assert server.elicitation_completed("visit-2") is False
        found = told.get(timeout=10)
    assert found == ("notifications/elicitation/complete", {"elicitationId": "visit-1"})


def test_a_tool_that_needs_a_page_first_says_so_in_2025_11_25() -> None:
    """The error -32042 names the page; the client may call again later."""
    server = Server()
    visited: list[bool] = []

    @server.tool
    def files() -> str:
        if not visited:
            raise URLElicitationRequired("Connect your files.", PAGE, "visit-2")
        return "three files"

    with connected(server, LEGACY, on_elicit=lambda m, s, url: {}) as client:
        for _ in range(6):
            with pytest.raises(RPCError, match="Connect your files") as failed:
                client.call_tool("files")
        assert server.elicitation_completed("visit-2")
        visited.append(True)
        assert client.call_tool("files").text == "three files"
    assert failed.value.code == -32042
    page = {"mode": "url", "message": "Connect your files.", "url": PAGE}
    assert failed.value.data == {"elicitations": [{**page, "elicitationId": "visit-2"}]}


def test_in_2026_07_28_the_page_is_asked_for_as_an_input() -> None:
    """Asked once for each call: one that comes back unvisited fails, and does not ask for ever."""
    server = Server()
    pages: list[str] = []

    @server.tool
    def files() -> str:
        if len(pages) < 2:
            raise URLElicitationRequired("Connect your files.", PAGE)
        return "three files"

    def person(message: str, schema: object, *, url: str) -> Json:
        pages.append(url)
        return {}

    with connected(server, MODERN, on_elicit=person) as client:
        result = client.call_tool("files")
        assert result.is_error
        assert PAGE in result.text
        assert client.call_tool("files").text == "three files"
    assert pages == [PAGE, PAGE]


@pytest.mark.parametrize("revision", ["2025-06-18", LEGACY])
def test_a_client_that_cannot_show_pages_gets_the_address(revision: str) -> None:
    """As a failed result: the model can tell its user."""
    server = Server()

    @server.tool
    def files() -> str:
        raise URLElicitationRequired("Connect your files.", PAGE)

    with connected(server, revision, on_elicit=lambda m, s: {}) as client:
        result = client.call_tool("files")
    assert result.is_error
    assert result.text == f"Connect your files.: {PAGE}"


def test_a_modern_client_that_cannot_show_pages_is_told_what_it_lacks() -> None:
    """-32021, as the revision wants it."""
    server = Server()

    @server.tool
    def files() -> str:
        raise URLElicitationRequired("Connect your files.", PAGE)

    answers_forms = connected(server, on_elicit=lambda m, s: {})
    with answers_forms as client, pytest.raises(RPCError) as failed:
        client.call_tool("files")
    assert failed.value.code == -32021
    assert failed.value.data == {"requiredCapabilities": {"elicitation": {"url": {}}}}
