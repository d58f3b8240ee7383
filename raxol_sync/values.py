"""Values that the library hands out: results, listings, status. Floor 1; pure.

All are frozen. Listings keep what they do not know in ``extra``, so that a newer peer's members are
not lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from raxol_sync.content import Content, Message, Text, content_from_wire, message_from_wire

Json = dict[str, Any]
InfoT = TypeVar("InfoT")


@dataclass(frozen=True)
class ToolResult:
    """What a tool's callback may return to say everything itself.

    Attributes:
        content: content items, one of them, or a ``str`` for one text item.
        structured_content: any JSON value (an object for revisions up to 2025-11-25), or ``None``.
        is_error: the tool failed; ``content`` says how.
        meta: the result's ``_meta``.
    """

    __mcp_content__: ClassVar[bool] = True  # as a return hint it promises no structured content

    content: Sequence[Content] | Content | str = field(default_factory=list)
    structured_content: object = field(default=None, kw_only=True)
    is_error: bool = field(default=False, kw_only=True)
    meta: Mapping[str, Any] | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class CallResult:
    """What a call of a tool gave (row C10).

    Attributes:
        content: its content items, in order.
        is_error: the tool said that it failed.
        structured_content: the JSON value beside the content, or ``None``.
        meta: the result's ``_meta``, ``{}`` without one.
    """

    content: list[Content]
    is_error: bool = False
    structured_content: Any = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text items, joined by line ends."""
        return "\n".join(item.text for item in self.content if isinstance(item, Text))

    @classmethod
    def from_wire(cls, result: Json) -> CallResult:
        """Read a ``tools/call`` result.

        Raises:
            ValueError: it has no list of valid content items.
        """
        items = result.get("content")
        if not isinstance(items, list):
            raise ValueError("it has no content list")
        is_error = result.get("isError", False)
        if not isinstance(is_error, bool):
            raise ValueError("isError is not a boolean")
        return cls(
            [content_from_wire(item) for item in items],
            is_error,
            result.get("structuredContent"),
            _mapping(result.get("_meta")),
        )


@dataclass(frozen=True)
class ElicitResult:
    """What a person answered when asked.

    Attributes:
        action: ``accept``, ``decline`` or ``cancel``.
        content: the form's values by name when accepted, ``None`` otherwise.
    """

    action: str
    content: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.action not in ("accept", "decline", "cancel"):
            raise ValueError("action must be 'accept', 'decline' or 'cancel'")

    @property
    def accepted(self) -> bool:
        """Whether the person agreed."""
        return self.action == "accept"


class PromptMessages(list[Message]):
    """The messages of a prompt, a list, with the prompt's ``description`` (``None`` without)."""

    description: str | None = None

    @classmethod
    def from_wire(cls, result: Json) -> PromptMessages:
        """Read a ``prompts/get`` result.

        Raises:
            ValueError: it has no list of valid messages.
        """
        items = result.get("messages")
        if not isinstance(items, list):
            raise ValueError("it has no messages list")
        messages = cls(message_from_wire(item) for item in items)
        description = result.get("description")
        messages.description = description if isinstance(description, str) else None
        return messages


@dataclass(frozen=True)
class Completion:
    """What a server suggests for an argument.

    Attributes:
        values: the suggestions, best first.
        total: how many there are altogether, ``None`` when the server does not say.
        has_more: there are more than were sent.
    """

    values: list[str]
    total: int | None = None
    has_more: bool = False

    @classmethod
    def from_wire(cls, result: Json) -> Completion:
        """Read a ``completion/complete`` result.

        Raises:
            ValueError: it has no list of strings.
        """
        found = result.get("completion")
        values = found.get("values") if isinstance(found, dict) else None
        if not isinstance(found, dict) or not isinstance(values, list):
            raise ValueError("it has no completion values")
        if not all(isinstance(value, str) for value in values):
            raise ValueError("a completion value is not a string")
        total = found.get("total")
        return cls(values, total if type(total) is int else None, found.get("hasMore") is True)


@dataclass(frozen=True)
class ServerInfo:
    """What a server says of itself, unverified: for people and logs, not for decisions.

    Attributes:
        name: its name, and with ``version``, ``title``, ``description``, ``website_url`` and
            ``icons`` its ``serverInfo``; what it leaves out is empty.
        capabilities: what it offers, as the protocol names it.
        instructions: how a model should use it, or ``None``.
        protocol_version: the revision that is spoken with it.
    """

    name: str = ""
    version: str = ""
    title: str | None = None
    description: str = ""
    website_url: str | None = None
    icons: tuple[Mapping[str, Any], ...] = ()
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    instructions: str | None = None
    protocol_version: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def extensions(self) -> Mapping[str, Any]:
        """The protocol extensions that it speaks: their settings by name."""
        return _mapping(self.capabilities.get("extensions"))

    @classmethod
    def from_agreement(
        cls, version: str, capabilities: Json, info: Json, instructions: str | None
    ) -> ServerInfo:
        """Make one of what was agreed with a server."""
        known = _info(cls, {**info, "name": _text(info.get("name"))}, "name")
        return replace(
            known,
            capabilities=capabilities,
            instructions=instructions,
            protocol_version=version,
        )


@dataclass(frozen=True)
class ToolInfo:
    """A tool as a server lists it (row C08)."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    title: str | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    output_schema: Mapping[str, Any] | None = None
    icons: tuple[Mapping[str, Any], ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_wire(cls, item: Json) -> ToolInfo:
        """Read one entry of a list; ``ValueError`` without a name or an input schema."""
        if not isinstance(item.get("inputSchema"), dict):
            raise ValueError("a tool has no inputSchema")
        return _info(cls, item, "name")


@dataclass(frozen=True)
class ResourceInfo:
    """A resource as a server lists it. ``size`` is in bytes."""

    uri: str
    name: str = ""
    description: str = ""
    title: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    icons: tuple[Mapping[str, Any], ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_wire(cls, item: Json) -> ResourceInfo:
        """Read one entry of a list; ``ValueError`` without a uri."""
        return _info(cls, item, "uri")


@dataclass(frozen=True)
class ResourceTemplateInfo:
    """A resource template as a server lists it. ``uri_template`` is RFC 6570."""

    uri_template: str
    name: str = ""
    description: str = ""
    title: str | None = None
    mime_type: str | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    icons: tuple[Mapping[str, Any], ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_wire(cls, item: Json) -> ResourceTemplateInfo:
        """Read one entry of a list; ``ValueError`` without a template."""
        return _info(cls, item, "uriTemplate")


@dataclass(frozen=True)
class PromptInfo:
    """A prompt as a server lists it; each argument has ``name``, ``description``, ``required``."""

    name: str
    description: str = ""
    title: str | None = None
    arguments: tuple[Mapping[str, Any], ...] = ()
    icons: tuple[Mapping[str, Any], ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_wire(cls, item: Json) -> PromptInfo:
        """Read one entry of a list; ``ValueError`` without a name."""
        return _info(cls, item, "name")


@dataclass(frozen=True)
class Status:
    """Where a client stands (row C05).

    Attributes:
        name: the client's name.
        state: ``starting``, ``initializing``, ``ready`` or ``closed``.
        protocol_version: the negotiated revision, ``None`` before.
        era: ``legacy``, ``modern``, or ``None`` before it is known.
        concurrency: ``stateless``, ``pooled`` or ``serialized``.
        tools: how many tools are kept of the last ``list_tools``: 0 before it, and where the server
            lets nothing be kept (``cache_ttl`` of 0), so not how many it has.
        pending: requests that wait for their answer.
        queued: requests that wait for a place in the window.
        error: why the session failed last, or that the breaker is open; else ``None``.
    """

    name: str
    state: str
    protocol_version: str | None = None
    era: str | None = None
    concurrency: str = "stateless"
    tools: int = 0
    pending: int = 0
    queued: int = 0
    error: str | None = None


@dataclass(frozen=True)
class ServerStats:
    """What a server is doing right now. The two dicts hold no zero entries.

    Attributes:
        in_flight: callbacks that hold a worker, abandoned ones included.
        abandoned: of those, the ones that were cancelled or timed out and have not ended yet.
        parked: calls that wait for an approval; they hold no worker.
        connections: connections with a subscriber.
        subscriptions: resource subscriptions over all connections.
        listens: open ``subscriptions/listen`` requests.
        capabilities: connections whose ``initialize`` is remembered.
        in_flight_by_connection: ``in_flight`` by ``conn_id``.
        parked_by_connection: ``parked`` by ``conn_id``.
    """

    in_flight: int = 0
    abandoned: int = 0
    parked: int = 0
    connections: int = 0
    subscriptions: int = 0
    listens: int = 0
    capabilities: int = 0
    in_flight_by_connection: Mapping[object, int] = field(default_factory=dict)
    parked_by_connection: Mapping[object, int] = field(default_factory=dict)


# ---------------------------------------------------------------- reading listings

_FIELDS: dict[str, tuple[str, type]] = {
    "name": ("name", str),
    "uri": ("uri", str),
    "uriTemplate": ("uri_template", str),
    "description": ("description", str),
    "title": ("title", str),
    "version": ("version", str),
    "websiteUrl": ("website_url", str),
    "mimeType": ("mime_type", str),
    "size": ("size", int),
    "inputSchema": ("input_schema", dict),
    "outputSchema": ("output_schema", dict),
    "annotations": ("annotations", dict),
    "arguments": ("arguments", list),
    "icons": ("icons", list),
    "_meta": ("meta", dict),
}


def _info(cls: type[InfoT], item: Json, key: str) -> InfoT:
    if not isinstance(item.get(key), str):
        raise ValueError(f"an entry has no {key}")
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for wire_name, value in item.items():
        name, kind = _FIELDS.get(wire_name, ("", object))
        if name not in cls.__dataclass_fields__:  # type: ignore[attr-defined]  # every Info is one
            extra[wire_name] = value
        elif isinstance(value, list) and kind is list:
            known[name] = tuple(entry for entry in value if isinstance(entry, dict))
        elif isinstance(value, kind) and not isinstance(value, bool):
            known[name] = value
    return cls(extra=extra, **known)  # type: ignore[call-arg]  # every Info has it


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}
