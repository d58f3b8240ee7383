"""What a model says of tools while it is sampled: that it wants one used, and what came of it.

Floor 1; pure. Only in messages of ``sampling/createMessage``, since revision 2025-11-25 (spec:
client/sampling "Tools in Sampling"). Both are frozen and so thread-safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

Json = dict[str, Any]


@dataclass(frozen=True)
class ToolUse:
    """A model's wish that a tool be used.

    Attributes:
        id: tells this use from others; its ``ToolUseResult`` names it.
        name: which tool.
        input: its arguments.
        meta: its ``_meta``; it goes back to the model with the message.
    """

    __mcp_content__: ClassVar[bool] = True

    id: str
    name: str
    input: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def to_wire(self) -> Json:
        """Return the item as the JSON object that goes on the wire."""
        item: Json = {"type": "tool_use", "id": self.id, "name": self.name}
        item["input"] = dict(self.input)
        return item if self.meta is None else {**item, "_meta": dict(self.meta)}

    @classmethod
    def from_wire(cls, item: Mapping[str, Any]) -> ToolUse:
        """Read an item of the peer's; ``ValueError`` where it is none."""
        use_id, name, given = item.get("id"), item.get("name"), item.get("input")
        if not isinstance(use_id, str) or not isinstance(name, str) or not isinstance(given, dict):
            raise ValueError("a tool_use needs an id, a name and an input object")
        meta = item.get("_meta")
        return cls(use_id, name, given, meta=meta if isinstance(meta, dict) else None)


@dataclass(frozen=True)
class ToolUseResult:
    """What came of a tool's use, for the model.

    Attributes:
        tool_use_id: the ``id`` of the ``ToolUse``.
        content: a ``str``, a content object, or a list of these.
        structured_content: a JSON object beside it, or ``None``.
        is_error: the tool failed.
        meta: its ``_meta``.
    """

    __mcp_content__: ClassVar[bool] = True

    tool_use_id: str
    content: Any = ()
    structured_content: Mapping[str, Any] | None = field(default=None, kw_only=True)
    is_error: bool = field(default=False, kw_only=True)
    meta: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        given = self.content
        listed = isinstance(given, Sequence) and not isinstance(given, str)
        items = tuple(given) if listed else (given,)
        if not all(isinstance(item, str) or hasattr(item, "to_wire") for item in items):
            raise TypeError("a ToolUseResult's content must be a str or content objects")
        object.__setattr__(self, "content", items)

    def to_wire(self) -> Json:
        """Return the item as the JSON object that goes on the wire."""
        content = [
            {"type": "text", "text": item} if isinstance(item, str) else item.to_wire()
            for item in self.content
        ]
        item: Json = {"type": "tool_result", "toolUseId": self.tool_use_id, "content": content}
        if self.structured_content is not None:
            item["structuredContent"] = dict(self.structured_content)
        if self.is_error:
            item["isError"] = True
        return item if self.meta is None else {**item, "_meta": dict(self.meta)}
