"""A ready-made ``on_elicit`` that asks on the terminal. Floor 2.

Spec: client/elicitation: it says who asks, shows what it will send before it does (but for a single
yes or no), and can always be declined or cancelled. What the server wrote is shown on lines that
begin with a bar, with control characters escaped: it can neither act on the terminal nor look like
a question of ours.
"""

from __future__ import annotations

import select
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from raxol_sync.client.responder import asking_server, given_up
from raxol_sync.values import ElicitResult

MAX_FIELDS = 64  # of a form; a longer one is declined
MAX_SHOWN = 4000  # characters of one text of the server's
_POLL = 0.1  # seconds; how often it looks whether the answer is still wanted
_terminal = threading.Lock()  # one conversation at a time; held while a person thinks


class _Ended(Exception):
    """The person pressed Ctrl-D, or nobody wants the answer any more."""


def terminal_elicit(
    message: str, schema: Mapping[str, Any] | None, *, url: str | None = None
) -> ElicitResult:
    """Ask the person at the terminal, field by field: a ready-made ``on_elicit``.

    It is never the default. Ctrl-D and Ctrl-C cancel. It declines where standard input or output is
    no terminal, and ends when the call that it is asked for is given up. Thread-safe: one
    conversation at a time.
    """
    if not (_is_terminal(sys.stdin) and _is_terminal(sys.stdout)):
        return ElicitResult("decline")
    try:
        while not _terminal.acquire(timeout=_POLL):
            if given_up():
                return ElicitResult("cancel")
        try:
            return _page(message, url) if url is not None else _form(message, schema or {})
        finally:
            _terminal.release()
    except (_Ended, KeyboardInterrupt):
        return ElicitResult("cancel")


def shown(text: object) -> str:
    """Return a server's text made harmless: cut, what a terminal would act on escaped."""
    given = str(text)
    cut = given[:MAX_SHOWN]
    safe = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut)
    return safe if len(given) <= MAX_SHOWN else f"{safe}..."


# ---------------------------------------------------------------- conversations


def _begin(message: str) -> None:
    server = asking_server()
    who = f"The server {shown(server)!r}" if server else "A server"
    _say(f"\n{who} asks (Ctrl-D cancels):")
    for line in message[:MAX_SHOWN].split("\n"):
        _say(f"| {shown(line)}")


def _page(message: str, url: str) -> ElicitResult:
    _begin(message)
    _say(f"It wants you to visit this page:\n| {shown(url)}")
    _say(f"Its host is: {shown(_host(url))}")
    agreed = _yes("Will you visit it?")
    return ElicitResult("accept" if agreed else "decline")


def _host(url: str) -> str:
    from urllib.parse import urlsplit  # not at the top: the package would take longer to import

    try:
        host = urlsplit(url).hostname or "none"
    except ValueError:
        return "not to be read; be careful"
    odd = "xn--" in host or not host.isascii()
    return f"{host} (with letters that may look like others; be careful)" if odd else host


def _form(message: str, schema: Mapping[str, Any]) -> ElicitResult:
    _begin(message)
    fields = list(_fields(schema))
    if len(fields) > MAX_FIELDS:
        _say(f"It has more than {MAX_FIELDS} questions: declined.")
        return ElicitResult("decline")
    if len(fields) == 1 and fields[0].plain:
        # Its answer is all that there is to send: it is not shown and asked for again.
        return ElicitResult("accept", {fields[0].name: _ask(fields[0])})
    while True:
        content: dict[str, Any] = {}
        for field in fields:
            value = _ask(field)
            if value is not None:
                content[field.name] = value
        for name, value in content.items():
            _say(f"  {shown(name)}: {shown(value)}")
        answer = _confirm(bool(fields))
        if answer == "y":
            return ElicitResult("accept", content)
        if answer == "n":
            return ElicitResult("decline")


def _confirm(has_fields: bool) -> str:
    """Return ``y``, ``n``, or where there is something to change, ``e``."""
    question = "Send this? [Y]es, [n]o, [e]dit:" if has_fields else "Do you agree? [y/n]:"
    while True:
        answer = _read(question).lower()
        if has_fields and answer in ("", "e", "edit"):
            return "e" if answer else "y"
        if answer in ("y", "yes", "n", "no"):
            return answer[0]


class _Field(NamedTuple):
    """One question: a property of the form's schema. ``choices`` are ``(value, title)`` pairs."""

    name: str
    schema: Mapping[str, Any]
    required: bool
    choices: list[tuple[str, str]]
    several: bool

    @property
    def plain(self) -> bool:
        """Whether it is to be answered with yes or no, and by nothing else, as an approval is."""
        asks = self.schema.get("type") == "boolean" and self.schema.get("default") is None
        return asks and self.required and not self.choices


def _fields(schema: Mapping[str, Any]) -> Iterator[_Field]:
    properties, required = schema.get("properties"), schema.get("required")
    named = required if isinstance(required, list) else []
    for name, given in (properties if isinstance(properties, dict) else {}).items():
        found = given if isinstance(given, dict) else {}
        several = found.get("type") == "array"
        items = found.get("items") if several else found
        choices = _choices(items if isinstance(items, dict) else {})
        yield _Field(name, found, name in named, choices, several)


def _choices(schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what may be chosen from, of each of the forms that the revisions have."""
    for word in ("oneOf", "anyOf"):
        options = schema.get(word)
        if isinstance(options, list):
            valid = [o for o in options if isinstance(o, dict) and isinstance(o.get("const"), str)]
            return [(o["const"], str(o.get("title", o["const"]))) for o in valid]
    values, names = schema.get("enum"), schema.get("enumNames")
    if not isinstance(values, list):
        return []
    titles = names if isinstance(names, list) and len(names) == len(values) else values
    return [(v, str(t)) for v, t in zip(values, titles, strict=True) if isinstance(v, str)]


def _ask(field: _Field) -> Any:
    """Ask until the answer fits; ``None`` where an optional one is left out."""
    schema, default = field.schema, field.schema.get("default")
    title = shown(schema.get("title") or field.name)
    if schema.get("description"):
        _say(f"| {shown(schema['description'])}")
    for number, (_, label) in enumerate(field.choices, 1):
        _say(f"  {number}) {shown(label)}")
    hint = _hint(field)
    while True:
        answer = _read(f"{title}{hint}:")
        if not answer and (default is not None or not field.required):
            return default
        try:
            if not answer:
                raise ValueError("Please answer: it is required.")
            return _value(field, answer)
        except ValueError as problem:
            _say(f"  {problem}")


def _hint(field: _Field) -> str:
    kind, default, hints = field.schema.get("type"), field.schema.get("default"), []
    if field.choices:
        hints.append("numbers, with commas" if field.several else "a number")
    elif kind == "boolean":
        hints.append("y/n")
    elif kind in ("integer", "number"):
        hints.append("a whole number" if kind == "integer" else "a number")
    if default is not None:
        hints.append(f"Enter: {shown(default)}")
    elif not field.required:
        hints.append("Enter: leave it out")
    return f" ({'; '.join(hints)})" if hints else ""


def _value(field: _Field, answer: str) -> Any:
    """Return an answer as the schema has it; ``ValueError`` says how it must be."""
    schema = field.schema
    kind = schema.get("type")
    if field.several:
        picked = [_choice(field, part.strip()) for part in answer.split(",") if part.strip()]
        _within(len(picked), schema, "minItems", "maxItems", "the number of choices")
        return picked
    if field.choices:
        return _choice(field, answer)
    if kind == "boolean":
        word = answer.lower()
        if word not in ("y", "yes", "true", "n", "no", "false"):
            raise ValueError("Please answer y or n.")
        return word in ("y", "yes", "true")
    if kind in ("integer", "number"):
        return _number(answer, schema, whole=kind == "integer")
    _within(len(answer), schema, "minLength", "maxLength", "the number of characters")
    return answer


def _number(answer: str, schema: Mapping[str, Any], *, whole: bool) -> int | float:
    try:
        value: int | float = int(answer)
    except ValueError:
        value = _float(answer)
        if whole:
            raise ValueError("Please answer with a whole number.") from None
    _within(value, schema, "minimum", "maximum", "the number")
    return value


def _float(answer: str) -> float:
    try:
        value = float(answer)
    except ValueError:
        value = float("nan")
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("Please answer with a number.")
    return value


def _within(value: float, schema: Mapping[str, Any], least: str, most: str, what: str) -> None:
    low, high = schema.get(least), schema.get(most)
    if isinstance(low, (int, float)) and value < low:
        raise ValueError(f"It is too small: {what} must be at least {low}.")
    if isinstance(high, (int, float)) and value > high:
        raise ValueError(f"It is too large: {what} must be at most {high}.")


def _choice(field: _Field, answer: str) -> str:
    for number, (value, _) in enumerate(field.choices, 1):
        if answer in (str(number), value):
            return value
    raise ValueError(f"Please answer with a number from 1 to {len(field.choices)}.")


# ---------------------------------------------------------------- the terminal


def _yes(question: str) -> bool:
    while True:
        answer = _read(f"{question} [y/n]:").lower()
        if answer in ("y", "yes", "n", "no"):
            return answer in ("y", "yes")


def _is_terminal(stream: Any) -> bool:
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:  # it is closed
        return False


def _say(text: str) -> None:
    stream = sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    # Not every terminal can show every letter.
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    stream.flush()


def _read(prompt: str) -> str:
    """Return one line without its end.

    Where the system can tell (not on Windows) it waits for a line in steps: a thread that blocks in
    a read would keep the next line from whoever reads after a call was given up.
    """
    sys.stdout.write(f"{prompt} ")
    sys.stdout.flush()
    if sys.platform != "win32":
        while not select.select([sys.stdin], [], [], _POLL)[0]:
            if given_up():
                _say("\nNo longer needed.")
                raise _Ended
    line = sys.stdin.readline()
    if not line:
        raise _Ended
    return line.strip()
