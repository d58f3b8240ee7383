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
from raxol_sync.values import ElicitResult

Json = dict[str, Any]


class InputError(ValueError):
    """Raised when a client's answer does not have the shape that its question asks for."""


@dataclass(frozen=True)
class Elicit:
    """A question to the person at the client: a form, or with ``url`` a page to visit.

    Attributes:
        message: what the person is asked.
        schema: the form: a JSON Schema of type object with flat properties.
        url: the page; then there is no form.
    """

    message: str
    schema: Mapping[str, Any] | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        if (self.schema is None) == (self.url is None):
            raise ValueError("an Elicit needs exactly one of schema= and url=")
        if self.schema is not None and not isinstance(self.schema.get("properties"), Mapping):
            raise ValueError("the schema of a form must be of type object, with properties")


@dataclass(frozen=True)
class Sample:
    """A question to the client's model.

    Attributes:
        messages: a ``str``, or messages of the user's and the assistant's.
        max_tokens: how long the answer may be.
        options: more params of ``sampling/createMessage``, as the protocol names them.
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

    content: list[Content]
    model: str = ""
    role: str = "assistant"
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The text items, joined by line ends."""
        return "\n".join(item.text for item in self.content if isinstance(item, Text))


@dataclass(frozen=True)
class Root:
    """A folder that the client works in: a ``file:`` URI, and a name or ``None``."""

    uri: str
    name: str | None = None


Question = Elicit | Sample | Roots
Answer = ElicitResult | SampleResult | list[Root]


def to_request(question: Question, *, modern: bool = True) -> Json:
    """Return a question as ``{"method", "params"}``."""
    if isinstance(question, Elicit):
        if question.url is not None:
            params: Json = {"mode": "url", "message": question.message, "url": question.url}
        else:
            schema = {"type": "object", **(question.schema or {})}
            params = {"mode": "form", "message": question.message, "requestedSchema": schema}
        return {"method": "elicitation/create", "params": params}
    if isinstance(question, Sample):
        given = question.messages
        messages = [given] if isinstance(given, str) else list(given)
        params = {
            **question.options,
            "messages": [_message(item) for item in messages],
            "maxTokens": question.max_tokens,
        }
        return {"method": "sampling/createMessage", "params": params}
    return {"method": "roots/list", "params": {}} if modern else {"method": "roots/list"}


def _message(item: Message | str) -> Json:
    return (Message(item) if isinstance(item, str) else item).to_wire()


def missing_capability(question: Question, declared: Mapping[str, Any]) -> Json | None:
    """Return what a client must declare to be asked this and does not; ``None`` if it does."""
    if isinstance(question, Elicit):
        found = declared.get("elicitation")
        mode = "form" if question.url is None else "url"
        if isinstance(found, Mapping) and (mode in found or (mode == "form" and not found)):
            return None
        return {"elicitation": {mode: {}}}
    name = "sampling" if isinstance(question, Sample) else "roots"
    return None if isinstance(declared.get(name), Mapping) else {name: {}}


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
        content = [content_from_wire(item) for item in items]
    except ValueError as error:
        raise InputError(f"the client's model answered something invalid: {error}") from None
    stop = answer.get("stopReason")
    return SampleResult(
        content,
        model=str(answer.get("model", "")),
        role=str(answer.get("role", "assistant")),
        stop_reason=stop if isinstance(stop, str) else None,
    )


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
