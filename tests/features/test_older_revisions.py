"""Results in the form that older revisions know."""

from __future__ import annotations

from typing import Any

import pytest

from raxol_sync import Audio, EmbeddedResource, ResourceLink, Server, Text, ToolResult
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
