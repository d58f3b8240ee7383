"""What callbacks return becomes what goes on the wire. Floor 2.

The rules are those of the public interface: text and content objects are themselves and have no
structured content; a mapping, dataclass or model is structured content and its JSON as text; any
other value is structured content ``{"result": value}`` and its JSON as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from raxol_sync.content import CONTENT_TYPES, Contents, Message, Text, message_from_wire
from raxol_sync.definitions import Tool
from raxol_sync.schema import ArgumentError, ResultError, to_json
from raxol_sync.values import ToolResult

Json = dict[str, Any]


class Unsendable(Exception):
    """Raised when what a callback returned cannot be sent; the text says why, without the value."""


def tool_result(tool: Tool, value: object) -> Json:
    """Return the ``tools/call`` result for what a tool's callback returned.

    Raises:
        Unsendable: it cannot be sent: no JSON value, or not what the tool's output schema says.
    """
    if isinstance(value, ToolResult):
        return _explicit(tool, value)
    if isinstance(value, str) and not _declares_output(tool):
        return {"content": [{"type": "text", "text": value}], "isError": False}
    items = _content_items(value)
    if items is None or (not items and not tool.returns_content):
        return _structured(tool, value)
    if _declares_output(tool):
        raise Unsendable("the tool declares an output schema and returned only content objects")
    return {"content": items, "isError": False}


def error_result(text: str) -> Json:
    """Return a ``tools/call`` result that says the tool failed."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def resource_contents(uri: str, mime_type: str | None, value: object) -> list[Json]:
    """Return the ``contents`` of a ``resources/read`` result.

    A ``str`` is text, ``bytes`` a blob, ``Contents`` (or a list of them) themselves, any other
    value its JSON.

    Raises:
        Unsendable: it cannot be sent as JSON.
    """
    if isinstance(value, (list, tuple)) and value and _all_contents(value):
        return [_contents(uri, mime_type, item) for item in value]
    return [_contents(uri, mime_type, value)]


def prompt_messages(value: object) -> list[Json]:
    """Return the ``messages`` of a ``prompts/get`` result.

    A ``str`` or a content object is one message of the user's; ``Message`` objects, mappings of the
    wire's form, and lists of all these are taken in order.

    Raises:
        Unsendable: it holds something else.
    """
    values = value if isinstance(value, (list, tuple)) else [value]
    return [message for item in values for message in _messages(item)]


def to_text(value: object) -> str:
    """Return a JSON value as text; ``Unsendable`` where it has none (an integer too long)."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        raise Unsendable(f"a value cannot be written as JSON: {error}") from None


def _explicit(tool: Tool, value: ToolResult) -> Json:
    content = [Text(value.content)] if isinstance(value.content, str) else value.content
    items = _content_items(content)
    if items is None:
        raise Unsendable("ToolResult.content must be a str or a list of content objects")
    result: Json = {"content": items, "isError": value.is_error}
    if value.structured_content is not None:
        result["structuredContent"] = _json(value.structured_content)
        if not value.is_error:
            _check(tool, result["structuredContent"])
    elif not value.is_error and _declares_output(tool):
        raise Unsendable("the tool declares an output schema and returned no structured content")
    if value.meta is not None:
        result["_meta"] = _json(value.meta)
    return result


def _structured(tool: Tool, value: object) -> Json:
    dumped = _dumped(tool, value)
    if value is None and not _declares_output(tool):
        return {"content": [], "isError": False}
    text = [] if value is None else [{"type": "text", "text": to_text(dumped)}]
    bare = isinstance(dumped, dict) or tool.returns_any_value
    wrapped = tool.wraps_result or not bare
    structured = {"result": dumped} if wrapped else dumped
    _check(tool, structured)
    return {"content": text, "structuredContent": structured, "isError": False}


def _dumped(tool: Tool, value: object) -> object:
    try:
        return tool.dump(value)
    except (ResultError, TypeError, ValueError) as error:
        raise Unsendable(str(error)) from None


def _check(tool: Tool, structured: object) -> None:
    try:
        tool.check_structured(structured)
    except ArgumentError as error:
        raise Unsendable(
            f"the structured content does not fit the output schema: {error}"
        ) from None


def _declares_output(tool: Tool) -> bool:
    return tool.output_schema is not None


def _content_items(value: object) -> list[Json] | None:
    """Return content objects as wire items, or ``None`` where ``value`` is something else.

    In a list that holds at least one content object, a ``str`` is a text item.
    """
    if isinstance(value, CONTENT_TYPES):
        return [value.to_wire()]
    if not isinstance(value, (list, tuple)) or hasattr(value, "_fields"):
        return None
    if value and not any(isinstance(item, CONTENT_TYPES) for item in value):
        return None
    if not value and isinstance(value, tuple):
        return None
    items: list[Json] = []
    for item in value:
        if isinstance(item, CONTENT_TYPES):
            items.append(item.to_wire())
        elif isinstance(item, str):
            items.append(Text(item).to_wire())
        else:
            raise Unsendable(f"a list of content objects also holds a {type(item).__name__}")
    return items


def _all_contents(values: list[Any] | tuple[Any, ...]) -> bool:
    return all(isinstance(item, Contents) for item in values)


def _contents(uri: str, mime_type: str | None, value: object) -> Json:
    if isinstance(value, Contents):
        item = value.to_wire()
        item["uri"] = item["uri"] or uri
        if mime_type and "mimeType" not in item:
            item["mimeType"] = mime_type
        return item
    if isinstance(value, (bytes, bytearray, memoryview)):
        kind = mime_type or "application/octet-stream"
        return Contents(uri, data=bytes(value), mime_type=kind).to_wire()
    if isinstance(value, str):
        return Contents(uri, text=value, mime_type=mime_type or "text/plain").to_wire()
    text = to_text(_json(value))
    return Contents(uri, text=text, mime_type=mime_type or "application/json").to_wire()


def _messages(value: object) -> list[Json]:
    if isinstance(value, Message):
        if not all(isinstance(item, CONTENT_TYPES) for item in value.items):
            raise Unsendable("a prompt's message cannot hold a ToolUse or a ToolUseResult")
        return [Message(item, value.role).to_wire() for item in value.items]
    if isinstance(value, (str, *CONTENT_TYPES)):
        return [Message(value).to_wire()]
    if isinstance(value, Mapping):
        try:
            return [message_from_wire(dict(value)).to_wire()]
        except ValueError as error:
            raise Unsendable(f"a prompt returned a message that is not valid: {error}") from None
    raise Unsendable(f"a prompt cannot return a {type(value).__name__}; return str or Message")


def _json(value: object) -> Any:
    try:
        return to_json(value)
    except (TypeError, ValueError) as error:
        raise Unsendable(str(error)) from None
