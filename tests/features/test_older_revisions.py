"""Results in the form that older revisions know."""

from __future__ import annotations

from typing import Any

import pytest

from raxol_sync import Audio, EmbeddedResource, Image, ResourceLink, Server, Text, ToolResult
from tests.features.helpers import LEGACY, MODERN, connected

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY, MODERN)


@pytest.mark.parametrize("revision", REVISIONS)
def test_content_that_came_later_is_said_with_what_there_was(revision: str) -> None:
    """Links since 2025-06-18, audio since 2025-03-26."""
    server = Server()

    @server.tool
    def mixed() -> list[Text | Audio | ResourceLink]:
        return [Text("see"), Audio(b"wav", "audio/wav"), ResourceLink("a://b", "b", title="B")]

    @server.prompt
    def listen() -> list[Any]:
        return [Audio(b"wav", "audio/wav")]

    with connected(server, revision) as client:
        text, audio, link = client.call_tool("mixed").content
        (message,) = client.get_prompt("listen")
    assert text == Text("see")
    if revision >= "2025-03-26":
        assert audio == message.content == Audio(b"wav", "audio/wav")
    else:
        assert audio == message.content
        assert audio == EmbeddedResource("audio:", data=b"wav", mime_type="audio/wav")
    known = revision >= "2025-06-18"
    assert link == (ResourceLink("a://b", "b", title="B") if known else Text("B: a://b"))


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_list_of_anything_is_content_where_it_holds_some(revision: str) -> None:
    """In every revision; of JSON values alone it is structured content, where there is any."""
    server = Server()
    image = Image(b"png", "image/png")

    @server.tool
    def mixed() -> list[Any]:
        return ["see", image, {"n": 1}]

    @server.tool
    def plain() -> list:  # type: ignore[type-arg]
        return ["a", 1]

    @server.tool
    def texts() -> list[str | Image]:
        return ["a", "b"]

    with connected(server, revision) as client:
        assert [tool.output_schema for tool in client.list_tools()] == [None] * 3
        found = client.call_tool("mixed")
        assert found.content == [Text("see"), image, Text('{"n": 1}')]
        assert found.structured_content is None
        found = client.call_tool("plain")
        assert found.content == [Text('["a", 1]')]
        assert found.structured_content == {"result": ["a", 1]}
        found = client.call_tool("texts")
        assert (found.content, found.structured_content) == ([Text("a"), Text("b")], None)


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_structured_content_is_an_object_before_2026_07_28(revision: str) -> None:
    """And so is what a tool declares."""
    server = Server()

    @server.tool(output_schema={"type": "array"})
    def numbers() -> ToolResult:
        return ToolResult("one, two", structured_content=[1, 2])

    @server.tool(output_schema={"type": "array", "items": {"type": "integer"}})
    def plain() -> list[int]:
        return [1, 2]

    with connected(server, revision) as client:
        tool, _ = client.list_tools()
        result = client.call_tool("numbers")
        assert client.call_tool("plain").structured_content == result.structured_content
    modern = revision == MODERN
    assert tool.output_schema == ({"type": "array"} if modern else None)
    assert result.structured_content == ([1, 2] if modern else None)
    assert result.text == "one, two"
