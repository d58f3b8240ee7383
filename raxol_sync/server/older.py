"""Results in the form that an older revision knows. Floor 1; pure.

What came later is said with what there was: a client that checks what it gets refuses the rest.
Members that it does not know are left in place: unknown ones are allowed in every revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def fit(method: str, value: Json, revision: str) -> Json:
    """Return a legacy result as ``revision`` has it; the value itself where nothing differs."""
    if method == "tools/call":
        structured = value.get("structuredContent")
        if structured is not None and not isinstance(structured, dict):  # any value: since 2026
            value = {key: member for key, member in value.items() if key != "structuredContent"}
        if revision < "2025-06-18" and "content" in value:
            value = {**value, "content": [_item(item, revision) for item in value["content"]]}
    elif method == "prompts/get" and revision < "2025-06-18" and "messages" in value:
        messages = [{**m, "content": _item(m["content"], revision)} for m in value["messages"]]
        value = {**value, "messages": messages}
    elif method == "tools/list":
        value = {**value, "tools": [_tool(tool) for tool in value["tools"]]}
    return value


def _item(item: Mapping[str, Any], revision: str) -> Mapping[str, Any]:
    kind = item.get("type")
    if kind == "resource_link":
        return {"type": "text", "text": f"{item.get('title') or item['name']}: {item['uri']}"}
    if kind == "audio" and revision < "2025-03-26":
        blob = {"uri": "audio:", "mimeType": item["mimeType"], "blob": item["data"]}
        return {"type": "resource", "resource": blob}
    return item


def _tool(tool: Json) -> Json:
    """Return a tool without an output schema that is not one of an object: that came with 2026."""
    schema = tool.get("outputSchema")
    if schema is None or schema.get("type") == "object":
        return tool
    return {key: member for key, member in tool.items() if key != "outputSchema"}
