"""What a callback may ask of its client: a form, a page to visit, a model's answer, the roots.

Floor 1; pure. The questions and the answers are the same in both eras; how they travel is not: a
legacy client is sent a request, a modern one gets an ``input_required`` result (row S42, spec:
basic/patterns/mrtr, client/elicitation, client/sampling, client/roots).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from raxol_sync.content import Content, Message, Text, content_from_wire
from raxol_sync.errors import URL_ELICITATION_REQUIRED, RPCError
from raxol_sync.tool_use import ToolUse
from raxol_sync.values import ElicitResult

Json = dict[str, Any]


class InputError(ValueError):
    """Raised when a client's answer does not have the shape that its question asks for."""


@dataclass(frozen=True)
class Elicit:
    """A question to the person at the client: a form, or with ``url`` a page to visit.

    Attributes:
        message: what the person is asked.
        schema: the form: a JSON Schema of type object whose properties are strings, numbers,
            booleans, choices (``enum``, or ``oneOf`` with titles), or lists of choices.
        url: the page; then there is no form.
        elicitation_id: what tells the page's visit from others, in revision 2025-11-25; made up
            there if it is not given.
    """

    message: str
    schema: Mapping[str, Any] | None = None
    url: str | None = None
    elicitation_id: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if (self.schema is None) == (self.url is None):
            raise ValueError("an Elicit needs exactly one of schema= and url=")
        if self.schema is not None:
            _check_flat(self.schema)


class URLElicitationRequired(RPCError):
    """Raise it in a callback that can go on only when a person has visited a page.

    The client is told of the page, in the way of its revision, and may ask again later: -32042 in
    2025-11-25, an input that is required in 2026-07-28, else a failed result. Clients of this
    library get an ``RPCError`` with that code, or their ``on_elicit`` is called.

    Attributes:
        url: the page.
        elicitation_id: what ``Server.elicitation_completed`` is told when the visit has ended.
    """

    def __init__(self, message: str, url: str, elicitation_id: str | None = None) -> None:
        super().__init__(URL_ELICITATION_REQUIRED, message)
        self.url = url
        self.elicitation_id = elicitation_id


@dataclass(frozen=True)
class Sample:
    """A question to the client's model.

    Attributes:
        messages: a ``str``, or messages of the user's and the assistant's.
        max_tokens: how long the answer may be.
        options: more params of ``sampling/createMessage``, as the protocol names them. ``tools``
            may hold ``Tool`` objects too.
    """

    messages: str | Sequence[Message | str]
    max_tokens: int = 1024
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Roots:
    """A question for the folders that the client works in."""


@dataclass(frozen=True)
class SampleResult:
    """What the client's model answered.

    Attributes:
        content: its content items.
        model: which model it was.
        role: who speaks, usually ``assistant``.
        stop_reason: why it stopped, ``None`` if not said.
    """

    content: list[Content | ToolUse]
    model: str = ""
    role: str = "assistant"
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The text items, joined by line ends."""
        return "\n".join(item.text for item in self.content if isinstance(item, Text))

    @property
    def tool_uses(self) -> list[ToolUse]:
        """The tools that the model wants used; each needs a ``ToolUseResult`` in the next turn."""
        return [item for item in self.content if isinstance(item, ToolUse)]

    @property
    def message(self) -> Message:
        """The answer as a message, for the next turn."""
        return Message(list(self.content), self.role)

    def to_wire(self) -> Json:
        """Return the answer as the JSON object that goes on the wire."""
        items = [item.to_wire() for item in self.content]
        found: Json = {"role": self.role, "model": self.model or "unknown"}
        found["content"] = items[0] if len(items) == 1 else items
        return found if self.stop_reason is None else {**found, "stopReason": self.stop_reason}


@dataclass(frozen=True)
class Root:
    """A folder that the client works in: a ``file:`` URI, and a name or ``None``."""

    uri: str
    name: str | None = None


Question = Elicit | Sample | Roots
Answer = ElicitResult | SampleResult | list[Root]


def to_request(question: Question, *, revision: str = "2026-07-28") -> Json:
    """Return a question as ``{"method", "params"}``, in the form of a revision."""
    if isinstance(question, Elicit):
        return {"method": "elicitation/create", "params": _elicit_params(question, revision)}
    if isinstance(question, Sample):
        given = question.messages
        messages = [Message(given)] if isinstance(given, str) else [_message(m) for m in given]
        if revision < "2025-11-25":  # there a message holds one item
            messages = [Message(item, m.role) for m in messages for item in m.items]
        params = {
            **question.options,
            "messages": [message.to_wire() for message in messages],
            "maxTokens": question.max_tokens,
        }
        if "tools" in params:
            params["tools"] = [getattr(tool, "definition", tool) for tool in params["tools"]]
        return {"method": "sampling/createMessage", "params": params}
    if revision < "2026":
        return {"method": "roots/list"}
    return {"method": "roots/list", "params": {}}


def _message(item: Message | str) -> Message:
    return Message(item) if isinstance(item, str) else item


def _elicit_params(question: Elicit, revision: str) -> Json:
    if question.url is not None:
        params: Json = {"mode": "url", "message": question.message, "url": question.url}
        if revision < "2026":
            params["elicitationId"] = question.elicitation_id or _new_id()
        return params
    schema = {"type": "object", **(question.schema or {})}
    if revision < "2025-11-25":  # the mode came with that revision, and so did titles of choices
        fields = {name: _untitled(field) for name, field in schema["properties"].items()}
        return {"message": question.message, "requestedSchema": {**schema, "properties": fields}}
    return {"mode": "form", "message": question.message, "requestedSchema": schema}


def _new_id() -> str:
    from uuid import uuid4  # at first use: few servers ever need it

    return str(uuid4())


def _untitled(field_schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return choices with titles in the older form: ``enum`` and ``enumNames``."""
    choices = field_schema.get("oneOf")
    if not isinstance(choices, Sequence):
        return field_schema
    rest = {key: value for key, value in field_schema.items() if key != "oneOf"}
    names = [choice.get("title", choice["const"]) for choice in choices]
    return {**rest, "enum": [choice["const"] for choice in choices], "enumNames": names}


def _check_flat(schema: Mapping[str, Any]) -> None:
    """``ValueError`` for a form that the protocol does not allow."""
    fields = schema.get("properties")
    if not isinstance(fields, Mapping) or schema.get("type", "object") != "object":
        raise ValueError("the schema of a form must be of type object, with properties")
    for name, found in fields.items():
        kind = found.get("type") if isinstance(found, Mapping) else None
        if kind in ("string", "number", "integer", "boolean"):
            continue
        items = found.get("items") if kind == "array" else None
        if not (isinstance(items, Mapping) and ("enum" in items or "anyOf" in items)):
            raise ValueError(
                f"the form's property {name!r} must be a string, a number, an integer, a boolean, "
                "or an array whose items are choices (enum or anyOf)"
            )


def missing_capability(
    question: Question, declared: Mapping[str, Any], *, revision: str = "2026-07-28"
) -> Json | None:
    """Return what a client must declare to be asked this and does not; ``None`` if it does."""
    if isinstance(question, Elicit):
        found = declared.get("elicitation")
        mode = "form" if question.url is None else "url"
        allowed = isinstance(found, Mapping) and (mode in found or (mode == "form" and not found))
        if allowed and (mode == "form" or revision >= "2025-11-25"):
            return None
        return {"elicitation": {mode: {}}}
    if isinstance(question, Roots):
        return None if isinstance(declared.get("roots"), Mapping) else {"roots": {}}
    found = declared.get("sampling")
    with_tools = "tools" in question.options or "toolChoice" in question.options
    if isinstance(found, Mapping) and (not with_tools or "tools" in found):
        return None
    return {"sampling": {"tools": {}} if with_tools else {}}


def read_answer(question: Question, answer: object) -> Answer:
    """Return a client's answer to a question.

    Raises:
        InputError: it is not an answer to this question.
    """
    if not isinstance(answer, Mapping):
        raise InputError("the client's answer is not an object")
    if isinstance(question, Elicit):
        return _elicited(answer)
    if isinstance(question, Sample):
        return _sampled(answer)
    return _roots(answer)


def _elicited(answer: Mapping[str, Any]) -> ElicitResult:
    action, content = answer.get("action"), answer.get("content")
    if action not in ("accept", "decline", "cancel"):
        raise InputError("the client's answer has no valid action")
    if action != "accept":
        return ElicitResult(action)
    if content is not None and not isinstance(content, Mapping):
        raise InputError("the content of the client's answer is not an object")
    return ElicitResult(action, dict(content or {}))


def _sampled(answer: Mapping[str, Any]) -> SampleResult:
    raw = answer.get("content")
    items = raw if isinstance(raw, list) else [raw]
    try:
        content = [_sampled_item(item) for item in items]
    except ValueError as error:
        raise InputError(f"the client's model answered something invalid: {error}") from None
    stop = answer.get("stopReason")
    return SampleResult(
        content,
        model=str(answer.get("model", "")),
        role=str(answer.get("role", "assistant")),
        stop_reason=stop if isinstance(stop, str) else None,
    )


def _sampled_item(item: object) -> Content | ToolUse:
    if isinstance(item, Mapping) and item.get("type") == "tool_use":
        return ToolUse.from_wire(item)
    return content_from_wire(item)


def _roots(answer: Mapping[str, Any]) -> list[Root]:
    raw = answer.get("roots")
    if not isinstance(raw, list):
        raise InputError("the client's answer has no list of roots")
    roots = []
    for item in raw:
        if not isinstance(item, Mapping) or not isinstance(item.get("uri"), str):
            raise InputError("a root has no uri")
        name = item.get("name")
        roots.append(Root(item["uri"], name if isinstance(name, str) else None))
    return roots
