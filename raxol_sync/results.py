"""What callbacks return becomes what goes on the wire. Floor 2.

The rules are those of the public interface: text and content objects are themselves and have no
structured content, and so is each item of a list that holds a content object, or whose hint says
so; a mapping, dataclass or model is structured content and its JSON as text; any other value is
structured content ``{"result": value}`` and its JSON as text.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Mapping
from typing import Any, TypeGuard

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
    items = [value] if isinstance(value, CONTENT_TYPES) else _content_list(tool, value)
    if items is None:
        if tool.is_content_missing(value):
            raise Unsendable(_no_content(value))
        return _structured(tool, value)
    if _declares_output(tool):
        raise Unsendable(
            "content objects were returned, and the tool's output schema promises JSON: return a "
            "ToolResult with content and structured_content, or give the tool no output schema (a "
            "return hint such as list[Any] makes none)"
        )
    return {"content": [block for item in items for block in _blocks(item)], "isError": False}


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


def _no_content(value: object) -> str:
    text = f"the return hint promises content, and what was returned is a {type(value).__name__}"
    if isinstance(value, (bytes, bytearray, memoryview)):
        text += "; make content of bytes with Image(data, 'image/png') or the like"
    return text


def _explicit(tool: Tool, value: ToolResult) -> Json:
    alone = isinstance(value.content, (str, *CONTENT_TYPES))
    content: Any = [value.content] if alone else value.content
    if not _is_list(content) or not all(isinstance(i, (str, *CONTENT_TYPES)) for i in content):
        raise Unsendable("ToolResult.content must be a str or a list of str and content objects")
    items = [block for item in content for block in _blocks(item)]
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
    except ResultError as error:
        raise Unsendable(error.told("what was returned")) from None
    except (TypeError, ValueError) as error:
        raise Unsendable(str(error)) from None


def _check(tool: Tool, structured: object) -> None:
    try:
        tool.check_structured(structured)
    except ArgumentError as error:
        raise Unsendable(
            f"it does not fit the output schema: {error.told('the structured content')}"
        ) from None


def _declares_output(tool: Tool) -> bool:
    return tool.output_schema is not None


def _is_list(value: object) -> TypeGuard[Collection[Any]]:
    return isinstance(value, (list, tuple, deque)) and not hasattr(value, "_fields")


def _content_list(tool: Tool, value: object) -> Collection[Any] | None:
    """Return a list whose items are blocks of content, ``None`` where ``value`` is a JSON value."""
    if not _is_list(value):
        return None
    by_hint = tool.returns_content and not _declares_output(tool)
    return value if by_hint or any(isinstance(item, CONTENT_TYPES) for item in value) else None


def _blocks(item: object) -> list[Json]:
    """Return an item of a list of content: itself, text, nothing (``None``), or its JSON as text.

    So each item becomes what it would be as the content of a tool that returned it alone.
    """
    if isinstance(item, CONTENT_TYPES):
        return [item.to_wire()]
    if item is None:
        return []
    if isinstance(item, ToolResult) or (
        _is_list(item) and any(isinstance(inner, CONTENT_TYPES) for inner in item)
    ):
        raise Unsendable(
            f"a list of content objects holds a {type(item).__name__} of its own: make it one list"
        )
    return [Text(item if isinstance(item, str) else to_text(_json(item))).to_wire()]


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
