"""Answers to what servers ask, from the user's handlers (rows C14, C28). Floor 2.

Spec: client/elicitation, client/sampling, client/roots, of 2025-11-25 and of 2026-07-28. What a
server sends is hostile and what a handler returns is careless: both are checked here.
"""

from __future__ import annotations

import inspect
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from raxol_sync.client.effects import Failure, Inquiry
from raxol_sync.errors import INTERNAL_ERROR, INVALID_PARAMS, InvalidSpec
from raxol_sync.inputs import SampleResult
from raxol_sync.protocol import versions, wire
from raxol_sync.values import ElicitResult

Json = dict[str, Any]
OnElicit = Callable[..., "Mapping[str, Any] | ElicitResult | None"]
OnSample = Callable[..., "str | Mapping[str, Any] | SampleResult"]
Paths = Iterable["str | os.PathLike[str]"]
GivenRoots = Paths | Callable[[], Paths]
_log = logging.getLogger("raxol_sync.client")
_current = threading.local()  # the inquiry and the server that this thread's handler works for


def given_up() -> bool:
    """Whether nobody wants this thread's handler's answer any more. For ready-made handlers."""
    inquiry: Inquiry | None = getattr(_current, "inquiry", None)
    return inquiry is not None and not inquiry.open


def asking_server() -> str | None:
    """The name of the server that this thread's handler is asked by; ``None`` elsewhere."""
    name: str | None = getattr(_current, "name", None)
    return name


class _Refused(Exception):
    """The server asks for what this client cannot give, or a handler gave nothing usable."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Responder:
    """The handlers of one client. Thread-safe as they are; it keeps nothing of an answer.

    Attributes:
        methods: what can be asked for.
    """

    def __init__(
        self,
        name: str,
        elicit: OnElicit | None = None,
        sample: OnSample | None = None,
        roots: GivenRoots | None = None,
        *,
        max_bytes: int = wire.MAX_MESSAGE_BYTES,
        extensions: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """``max_bytes`` bounds an answer. ``InvalidSpec`` for roots that are no files."""
        self._name = name
        self._extensions = {key: dict(value) for key, value in (extensions or {}).items()}
        self._elicit = elicit
        self._sample = sample
        self._list: Callable[[], Paths] | None = None
        if callable(roots):
            self._list = roots
        elif roots is not None:
            fixed = _checked_roots(name, roots)
            self._list = lambda: fixed
        self._max_bytes = max_bytes
        self._takes_url = elicit is not None and _takes(elicit, "url")
        self._takes_id = elicit is not None and _takes(elicit, "elicitation_id")
        self._takes_tools = sample is not None and _takes(sample, "tools")
        given = (
            ("elicitation/create", elicit),
            ("sampling/createMessage", sample),
            ("roots/list", roots),
        )
        self.methods = frozenset(method for method, handler in given if handler is not None)

    def capabilities(self, version: str) -> Json:
        """Return what is declared in a revision: only what there is a handler for."""
        declared: Json = {}
        if self._elicit is not None and version >= "2025-06-18":  # which brought it
            modes: Json = {"form": {}, "url": {}} if self._takes_url else {"form": {}}
            # Before 2025-11-25 there were no modes.
            declared["elicitation"] = modes if version >= "2025-11-25" else {}
        if self._sample is not None:
            with_tools = self._takes_tools and version >= "2025-11-25"  # which brought them
            declared["sampling"] = {"tools": {}} if with_tools else {}
        if self._list is not None:
            modern = version in versions.MODERN_NAMES
            declared["roots"] = {} if modern else {"listChanged": True}
        if self._extensions:
            declared["extensions"] = self._extensions
        return declared

    def answer(self, inquiry: Inquiry) -> bytes | Failure:
        """Call the handlers for all that is asked, in order; return what the machine wants.

        Stops as soon as nobody wants the answers any more.
        """
        legacy = inquiry.entry is None
        answers: Json = {}
        _current.inquiry, _current.name = inquiry, self._name
        try:
            for key, (method, params) in inquiry.wanted.items():
                if not inquiry.open:
                    return Failure(method, INTERNAL_ERROR, "nobody waits for the answer")
                found = self._one(method, params, legacy)
                if isinstance(found, Failure):
                    return found
                answers[key] = found
        finally:
            _current.inquiry = _current.name = None
        encoded = wire.encode(answers[""] if legacy else answers)
        if len(encoded) > self._max_bytes:
            reason = f"the answer is longer than {self._max_bytes} bytes (max_message_bytes)"
            return Failure(method, INTERNAL_ERROR, reason)
        return encoded

    def _one(self, method: str, params: Mapping[str, Any], legacy: bool) -> Json | Failure:
        """Return one answer, known to be JSON, or why there is none."""
        try:
            found = self._ask_handler(method, params, legacy)
            wire.encode(found)
        except _Refused as refused:
            return Failure(method, refused.code, refused.reason)
        except wire.EncodeError:
            reason = f"the handler for {method} returned what cannot be sent as JSON"
            return Failure(method, INTERNAL_ERROR, reason)
        except BaseException as error:  # user code, sys.exit() too: the server is still answered
            kind = type(error).__name__
            _log.exception("! %s: the handler for %s raised", self._name, method)
            return Failure(method, INTERNAL_ERROR, f"the handler for {method} raised {kind}", error)
        return found

    def _ask_handler(self, method: str, params: Mapping[str, Any], legacy: bool) -> Json:
        if method == "elicitation/create" and self._elicit is not None:
            return self._elicited(self._elicit, params, legacy)
        if method == "sampling/createMessage" and self._sample is not None:
            return _sampled(self._sample, params, self._takes_tools)
        if method == "roots/list" and self._list is not None:
            return {"roots": [_root(item) for item in self._list()]}
        raise _Refused(INTERNAL_ERROR, "it has no handler")  # the desk lets none of these through

    def _elicited(self, handler: OnElicit, params: Mapping[str, Any], legacy: bool) -> Json:
        message, mode = params.get("message"), params.get("mode", "form")
        if not isinstance(message, str):
            raise _Refused(INVALID_PARAMS, "message must be a string")
        if mode == "url":
            url = params.get("url")
            if not isinstance(url, str):
                raise _Refused(INVALID_PARAMS, "url must be a string")
            if not self._takes_url:
                # Only the older revisions have an error for it.
                if legacy:
                    raise _Refused(INVALID_PARAMS, "the mode url was not declared")
                return {"action": "decline"}
            more = {"elicitation_id": params.get("elicitationId")} if self._takes_id else {}
            return _elicit_answer(handler(message, None, url=url, **more), form=False)
        schema = params.get("requestedSchema")
        if mode != "form" or not isinstance(schema, dict):
            raise _Refused(INVALID_PARAMS, "a form needs a requestedSchema, an object")
        return _elicit_answer(handler(message, schema), form=True, defaults=_defaults(schema))


# ---------------------------------------------------------------- elicitation


def _takes(handler: Callable[..., object], word: str) -> bool:
    """Return whether a handler can be called with that keyword."""
    try:
        parameters = inspect.signature(handler).parameters.values()
    except (TypeError, ValueError):  # a callable of C without a signature
        return False
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD
        or (parameter.name == word and parameter.kind in named)
        for parameter in parameters
    )


def _defaults(schema: Mapping[str, Any]) -> Json:
    """Return what a form shows in its fields before anybody fills them in."""
    fields = schema.get("properties")
    found = fields.items() if isinstance(fields, dict) else ()
    return {
        name: field["default"]
        for name, field in found
        if isinstance(field, dict) and "default" in field and _is_flat(field["default"])
    }


def _elicit_answer(given: object, *, form: bool, defaults: Mapping[str, Any] = {}) -> Json:
    """Return what ``on_elicit`` gave as the protocol has it; a page's answer has no content.

    ``defaults`` fill what it left out of a form.
    """
    if given is None:
        return {"action": "decline"}
    content: object = given
    if isinstance(given, ElicitResult):
        if not given.accepted:
            return {"action": given.action}
        content = {} if given.content is None else given.content
    if not isinstance(content, Mapping):
        kind = type(given).__name__
        raise _Refused(
            INTERNAL_ERROR, f"on_elicit must return a dict, None or an ElicitResult, not {kind}"
        )
    if not form:
        return {"action": "accept"}
    if not all(isinstance(key, str) and _is_flat(value) for key, value in content.items()):
        raise _Refused(
            INTERNAL_ERROR,
            "on_elicit must return strings, numbers, booleans and lists of strings, by name",
        )
    return {"action": "accept", "content": {**defaults, **content}}


def _is_flat(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, (str, int, float))


# ---------------------------------------------------------------- sampling


def _sampled(handler: OnSample, params: Mapping[str, Any], takes_tools: bool) -> Json:
    if not isinstance(params.get("messages"), list):
        raise _Refused(INVALID_PARAMS, "messages must be a list")
    tools = params.get("tools", [])
    if not takes_tools and ("tools" in params or "toolChoice" in params):
        raise _Refused(INVALID_PARAMS, "this client does not sample with tools")
    if not isinstance(tools, list):
        raise _Refused(INVALID_PARAMS, "tools must be a list")
    given: object = handler(dict(params), **({"tools": tools} if takes_tools else {}))
    if isinstance(given, SampleResult):
        given = given.to_wire()
    if isinstance(given, str):
        given = {"content": {"type": "text", "text": given}}
    elif not isinstance(given, Mapping):
        kind = type(given).__name__
        raise _Refused(
            INTERNAL_ERROR, f"on_sample must return a str, a dict or a SampleResult, not {kind}"
        )
    found = {"role": "assistant", "model": "unknown", **given}
    items = found.get("content")
    items = items if isinstance(items, list) else [items]
    named = all(isinstance(item, Mapping) and isinstance(item.get("type"), str) for item in items)
    if not named or not isinstance(found["model"], str) or found["role"] not in _ROLES:
        raise _Refused(
            INTERNAL_ERROR,
            "on_sample must return a content item with a type, and role and model as strings",
        )
    return found


_ROLES = ("assistant", "user")


# ---------------------------------------------------------------- roots


def _checked_roots(name: str, roots: object) -> list[str]:
    """Return a fixed list of roots, each as an absolute URI, once and for all."""
    if isinstance(roots, (str, bytes)) or not isinstance(roots, Iterable):
        raise InvalidSpec(f"client {name!r}: roots= must be a list of paths, or callable")
    try:
        return [_root(item)["uri"] for item in roots]
    except _Refused as refused:
        raise InvalidSpec(f"client {name!r}: roots=: {refused.reason}") from None


def _root(item: object) -> Json:
    """Return a root as the protocol has it: a ``file:`` URI with a name."""
    # Not at the top: with pathlib and urllib.parse the package would take longer to import.
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    if not isinstance(item, (str, os.PathLike)):
        kind = type(item).__name__
        raise _Refused(INTERNAL_ERROR, f"a root must be a path or a file: URI, not {kind}")
    given = os.fspath(item)
    if not isinstance(given, str) or not given:
        raise _Refused(INTERNAL_ERROR, "a root must be a str that is not empty")
    if given.startswith("file://"):
        uri = given
    elif "://" in given:
        raise _Refused(INTERNAL_ERROR, "a root must be a path or a file: URI")
    else:
        uri = Path(os.path.abspath(given)).as_uri()
    folder = unquote(urlsplit(uri).path, errors="replace").rstrip("/")
    return {"uri": uri, "name": folder.rpartition("/")[2] or "/"}
