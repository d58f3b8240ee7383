"""What tools, prompts and resources carry: text, images, audio, links, embedded resources.

Floor 1; pure. The same classes on both sides: a server's callback returns them, a client's call
gives them back. Binary ``data`` is always decoded ``bytes``; base64 exists on the wire only. All
are frozen and so thread-safe. Building one with a text that is no ``str``, or data that is no
``bytes``, raises ``TypeError``. Spec: server/tools "Tool Result", server/resources, server/prompts.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from raxol_sync.tool_use import ToolUse, ToolUseResult

Json = dict[str, Any]


class ContentError(ValueError):
    """Raised when a content item from the peer does not have the shape that its type promises."""


@dataclass(frozen=True)
class Text:
    """A piece of text."""

    __mcp_content__: ClassVar[bool] = True

    text: str
    annotations: Mapping[str, Any] | None = field(default=None, kw_only=True)
    meta: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _need_str(self, "text")

    def to_wire(self) -> Json:
        """Return the item as the JSON object that goes on the wire."""
        return _with_common({"type": "text", "text": self.text}, self)


@dataclass(frozen=True)
class Image:
    """An image: its bytes and their MIME type."""

    __mcp_content__: ClassVar[bool] = True

    data: bytes = field(repr=False)
    mime_type: str
    annotations: Mapping[str, Any] | None = field(default=None, kw_only=True)
    meta: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _need_bytes(self)
        _need_str(self, "mime_type")

    def to_wire(self) -> Json:
        """Return the item as the JSON object that goes on the wire."""
        item = {"type": "image", "data": _base64(self.data), "mimeType": self.mime_type}
        return _with_common(item, self)


@dataclass(frozen=True)
class Audio:
    """A sound: its bytes and their MIME type. Not in revision 2024-11-05."""

    __mcp_content__: ClassVar[bool] = True

    data: bytes = field(repr=False)
    mime_type: str
    annotations: Mapping[str, Any] | None = field(default=None, kw_only=True)
    meta: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _need_bytes(self)
        _need_str(self, "mime_type")

    def to_wire(self) -> Json:
        """Return the item as the JSON object that goes on the wire."""
        item = {"type": "audio", "data": _base64(self.data), "mimeType": self.mime_type}
        return _with_common(item, self)


@dataclass(frozen=True)
class ResourceLink:
    """A pointer to a resource that the receiver may read. Since revision 2025-06-18."""

    __mcp_content__: ClassVar[bool] = True

    uri: str
    name: str
    title: str | None = field(default=None, kw_only=True)
    description: str | None = field(default=None, kw_only=True)
    mime_type: str | None = field(default=None, kw_only=True)
    size: int | None = field(default=None, kw_only=True)
    annotations: Mapping[str, Any] | None = field(default=None, kw_only=True)
    meta: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _need_str(self, "uri", "name")

    def to_wire(self) -> Json:
        """Return the item as the JSON object that goes on the wire."""
        item: Json = {"type": "resource_link", "uri": self.uri, "name": self.name}
        _add(item, title=self.title, description=self.description)
        _add(item, mimeType=self.mime_type, size=self.size)
        return _with_common(item, self)


@dataclass(frozen=True)
class EmbeddedResource:
    """A resource with its contents: exactly one of ``text`` and ``data``."""

    __mcp_content__: ClassVar[bool] = True

    uri: str
    text: str | None = field(default=None, kw_only=True)
    data: bytes | None = field(default=None, kw_only=True, repr=False)
    mime_type: str | None = field(default=None, kw_only=True)
    annotations: Mapping[str, Any] | None = field(default=None, kw_only=True)
    meta: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_contents(self, self.text, self.data)

    def to_wire(self) -> Json:
        """Return the item as the JSON object that goes on the wire."""
        resource = _contents_to_wire(self.uri, self.text, self.data, self.mime_type)
        return _with_common({"type": "resource", "resource": resource}, self)


@dataclass(frozen=True)
class UnknownContent:
    """A content item of a type that this library does not know, as it came."""

    __mcp_content__: ClassVar[bool] = True

    raw: Mapping[str, Any]

    def to_wire(self) -> Json:
        """Return the item as the JSON object that goes on the wire."""
        return dict(self.raw)


Content = Text | Image | Audio | ResourceLink | EmbeddedResource | UnknownContent
CONTENT_TYPES = (Text, Image, Audio, ResourceLink, EmbeddedResource, UnknownContent)


@dataclass(frozen=True)
class Contents:
    """What a resource holds: exactly one of ``text`` and ``data``.

    A resource's callback may return one, or a list of them; there ``uri`` may be left out and
    becomes the one that was read.
    """

    uri: str = ""
    text: str | None = field(default=None, kw_only=True)
    data: bytes | None = field(default=None, kw_only=True, repr=False)
    mime_type: str | None = field(default=None, kw_only=True)
    meta: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_contents(self, self.text, self.data)

    def to_wire(self) -> Json:
        """Return the contents as the JSON object that goes on the wire."""
        item = _contents_to_wire(self.uri, self.text, self.data, self.mime_type)
        _add(item, _meta=self.meta)
        return item


@dataclass(frozen=True)
class Message:
    """One message of a prompt, or for a model: who speaks (``user`` or ``assistant``) and what.

    ``content`` may be given as a ``str``, which becomes a ``Text``, or as a list of items, which
    becomes a tuple: one message for a model, one for each item in a prompt. Only messages for a
    model hold ``ToolUse`` and ``ToolUseResult``.
    """

    content: Content | str | ToolUse | ToolUseResult | Sequence[Content | ToolUse | ToolUseResult]
    role: str = "user"

    def __post_init__(self) -> None:
        if self.role not in ("user", "assistant"):
            raise ValueError(f"a message's role must be 'user' or 'assistant', not {self.role!r}")
        content: object = self.content
        if isinstance(content, str):
            object.__setattr__(self, "content", Text(content))
            return
        several = isinstance(content, (list, tuple)) and len(content) > 0
        items = tuple(content) if isinstance(content, (list, tuple)) and content else (content,)
        for item in items:
            if not isinstance(item, (*CONTENT_TYPES, ToolUse, ToolUseResult)):
                kind = type(item).__name__
                raise TypeError(
                    f"a message's content must be a str or a content object, not {kind}"
                )
        if several:
            object.__setattr__(self, "content", items)

    @property
    def items(self) -> tuple[Any, ...]:
        """Its content items: one, or however many were given."""
        return self.content if isinstance(self.content, tuple) else (self.content,)

    def to_wire(self) -> Json:
        """Return the message as the JSON object that goes on the wire."""
        items = [item.to_wire() for item in self.items]
        several = isinstance(self.content, tuple)
        return {"role": self.role, "content": items if several else items[0]}


def content_from_wire(item: object) -> Content:
    """Return the content item that a JSON value from the peer describes.

    Raises:
        ContentError: it has no type, or is of a known type but lacks what that type needs.
    """
    if not isinstance(item, dict):
        raise ContentError("a content item is not an object")
    kind = item.get("type")
    if not isinstance(kind, str):
        raise ContentError("a content item has no type")
    build = _READERS.get(kind)
    return build(item) if build is not None else UnknownContent(item)


def contents_from_wire(item: object) -> Contents:
    """Return the resource contents that a JSON value from the peer describes.

    Raises:
        ContentError: it has no uri, or neither text nor data.
    """
    if not isinstance(item, dict):
        raise ContentError("a resource's contents are not an object")
    uri, text, data = _read_contents(item)
    return Contents(
        uri,
        text=text,
        data=data,
        mime_type=_optional(item, "mimeType"),
        meta=_object(item, "_meta"),
    )


def message_from_wire(item: object) -> Message:
    """Return the prompt message that a JSON value from the peer describes.

    Raises:
        ContentError: its role or its content is not valid.
    """
    if not isinstance(item, dict) or item.get("role") not in ("user", "assistant"):
        raise ContentError("a message has no valid role")
    return Message(content_from_wire(item.get("content")), item["role"])


# ---------------------------------------------------------------- reading


def _text(item: Json) -> Text:
    return Text(_string(item, "text"), **_common(item))


def _image(item: Json) -> Image:
    return Image(_bytes(item, "data"), _string(item, "mimeType"), **_common(item))


def _audio(item: Json) -> Audio:
    return Audio(_bytes(item, "data"), _string(item, "mimeType"), **_common(item))


def _link(item: Json) -> ResourceLink:
    size = item.get("size")
    return ResourceLink(
        _string(item, "uri"),
        _string(item, "name"),
        title=_optional(item, "title"),
        description=_optional(item, "description"),
        mime_type=_optional(item, "mimeType"),
        size=size if type(size) is int else None,
        **_common(item),
    )


def _embedded(item: Json) -> EmbeddedResource:
    resource = item.get("resource")
    if not isinstance(resource, dict):
        raise ContentError("an embedded resource has no resource")
    uri, text, data = _read_contents(resource)
    mime_type = _optional(resource, "mimeType")
    return EmbeddedResource(uri, text=text, data=data, mime_type=mime_type, **_common(item))


_READERS: dict[str, Any] = {
    "text": _text,
    "image": _image,
    "audio": _audio,
    "resource_link": _link,
    "resource": _embedded,
}


def _read_contents(item: Json) -> tuple[str, str | None, bytes | None]:
    uri = _string(item, "uri")
    if "text" in item:
        return uri, _string(item, "text"), None
    return uri, None, _bytes(item, "blob")


def _string(item: Json, key: str) -> str:
    value = item.get(key)
    if not isinstance(value, str):
        raise ContentError(f"{key} must be a string")
    return value


def _optional(item: Json, key: str) -> str | None:
    value = item.get(key)
    return value if isinstance(value, str) else None


def _object(item: Json, key: str) -> Json | None:
    value = item.get(key)
    return value if isinstance(value, dict) else None


def _bytes(item: Json, key: str) -> bytes:
    text = _string(item, key)
    try:
        # Line ends are what some encoders add; whatever else is no base64 would be lost unseen.
        return base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ContentError(f"{key} is not base64") from error


def _common(item: Json) -> dict[str, Any]:
    return {"annotations": _object(item, "annotations"), "meta": _object(item, "_meta")}


# ---------------------------------------------------------------- writing


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _add(item: Json, **members: object) -> None:
    item.update({key: value for key, value in members.items() if value is not None})


def _with_common(item: Json, content: Any) -> Json:
    if content.annotations is not None:
        item["annotations"] = content.annotations
    if content.meta is not None:
        item["_meta"] = content.meta
    return item


def _contents_to_wire(
    uri: str, text: str | None, data: bytes | None, mime_type: str | None
) -> Json:
    item: Json = {"uri": uri}
    if mime_type is not None:
        item["mimeType"] = mime_type
    if data is not None:
        item["blob"] = _base64(data)
    else:
        item["text"] = text
    return item


# ---------------------------------------------------------------- checking


def _need_str(content: object, *names: str) -> None:
    for name in names:
        value = getattr(content, name)
        if not isinstance(value, str):
            what = f"{type(content).__name__}.{name}"
            raise TypeError(f"{what} must be a str, not {type(value).__name__}")


def _need_bytes(content: Any) -> None:
    data = content.data
    if isinstance(data, (bytearray, memoryview)):
        object.__setattr__(content, "data", bytes(data))  # the caller's may still change
    elif not isinstance(data, bytes):
        what = f"{type(content).__name__}.data"
        raise TypeError(f"{what} must be bytes (not base64 text), not {type(data).__name__}")


def _check_contents(content: object, text: object, data: object) -> None:
    if (text is None) == (data is None):
        name = type(content).__name__
        raise ValueError(f"{name} needs exactly one of text= (a str) and data= (bytes)")
    _need_str(content, "uri", *(() if text is None else ("text",)))
    if data is not None:
        _need_bytes(content)
