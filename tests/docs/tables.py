"""The tables of the pages that are made from the code.

``python -m tests.docs.tables`` writes them into the pages, between ``<!-- table: NAME -->`` and
``<!-- end -->``; the tests compare.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import raxol_sync
from raxol_sync import errors, telemetry

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "raxol_sync"
MARKED = re.compile(r"<!-- table: (?P<name>[\w. ]+) -->\n(?P<text>.*?)<!-- end -->\n", re.S)
ROWS = re.compile(r"\s*\((?:rows? )?[SC]\d\d(?:(?:, | and | to )[SC]\d\d)*\)")
LOCKS = ("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Barrier")


def pages() -> list[Path]:
    """All pages that may hold tables."""
    return sorted((ROOT / "docs").rglob("*.md"))


def modules() -> list[tuple[str, Path]]:
    """Every module of the package: its name below it, and its file."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
        found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


@cache
def tree(path: Path) -> ast.Module:
    """A module's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


def plain(text: str) -> str:
    """Words of the code's on one line, as Markdown; without the rows, which are for our own use."""
    return ROWS.sub("", " ".join(text.split())).replace("``", "`").replace("|", r"\|")


def sentence(text: str | None) -> str:
    """The first sentence of a docstring, as ``plain`` has it."""
    first = plain(inspect.cleandoc(text or "").split("\n\n")[0])
    return re.split(r"(?<=[a-z)`\]])\. ", first)[0].rstrip(".:") + "."


def signature(function: Callable[..., Any]) -> str:
    """A signature without its annotations and without ``self``."""
    found = inspect.signature(function)
    parameters = [
        p.replace(annotation=inspect.Parameter.empty)
        for name, p in found.parameters.items()
        if name not in ("self", "cls")
    ]
    bare = found.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    return str(bare).replace("<factory>", "...").replace("|", r"\|")


def table(heads: list[str], rows: Iterator[list[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


# ---------------------------------------------------------------- public names


def members(name: str) -> str:
    """The public methods and properties of a class, in the order in which they are written."""

    def rows() -> Iterator[list[str]]:
        kind = getattr(raxol_sync, name)
        seen: dict[str, Any] = {}
        for base in reversed([c for c in kind.__mro__ if c.__module__.startswith("raxol_sync")]):
            seen.update(vars(base))
        for member, value in seen.items():
            if member.startswith("_"):
                continue
            value = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            if isinstance(value, property):
                yield [f"`.{member}`", sentence(value.__doc__)]
            elif callable(value):
                yield [f"`.{member}{signature(value)}`", sentence(value.__doc__)]

    return table(["member", "what it does"], rows())


def values(_: str) -> str:
    """The public classes that are handed out or returned, with what they are made of."""

    def rows() -> Iterator[list[str]]:
        for name in raxol_sync.__all__:
            value = getattr(raxol_sync, name)
            if inspect.isclass(value) and hasattr(value, "__dataclass_fields__"):
                yield [f"`{name}{signature(value)}`", sentence(value.__doc__)]

    return table(["class", "what it is"], rows())


def functions(_: str) -> str:
    """The public functions."""

    def rows() -> Iterator[list[str]]:
        for name in raxol_sync.__all__:
            value = getattr(raxol_sync, name)
            if inspect.isfunction(value):
                yield [f"`{name}{signature(value)}`", sentence(value.__doc__)]

    return table(["function", "what it does"], rows())


def exceptions(_: str) -> str:
    """The public exceptions, and what else ``raxol_sync.errors`` has."""
    named = {name: getattr(raxol_sync, name) for name in raxol_sync.__all__}
    more = {f"errors.{name}": value for name, value in vars(errors).items() if name not in named}

    def rows() -> Iterator[list[str]]:
        for name, value in {**named, **dict(sorted(more.items()))}.items():
            if inspect.isclass(value) and issubclass(value, BaseException):
                facts = re.findall(r"^    +(\w+): ", inspect.getdoc(value) or "", re.M)
                bases = ", ".join(f"`{base.__name__}`" for base in value.__bases__)
                attributes = ", ".join(f"`.{fact}`" for fact in facts)
                yield [f"`{name}`", bases, sentence(value.__doc__), attributes]

    return table(["exception", "is a", "when", "facts"], rows())


def codes(_: str) -> str:
    """The JSON-RPC error codes."""

    def rows() -> Iterator[list[str]]:
        for name, value in vars(errors).items():
            if name.isupper() and isinstance(value, int):
                yield [f"`{value}`", f"`{name}`"]

    return table(["code", "in `raxol_sync.errors`"], rows())


# ---------------------------------------------------------------- limits


def defaults(name: str) -> str:
    """The parameters of a class whose default is a number or ``None``."""

    def rows() -> Iterator[list[str]]:
        for parameter in inspect.signature(getattr(raxol_sync, name)).parameters.values():
            if type(parameter.default) in (int, float):
                yield [f"`{parameter.name}`", f"`{parameter.default:,}`".replace(",", " ")]

    return table(["parameter", "default"], rows())


def constants(_: str) -> str:
    """The public numbers of the modules: bounds and times that cannot be set."""

    def rows() -> Iterator[list[str]]:
        for module, path in modules():
            if module in ("errors", "_deadline") or module.split(".")[0] == "cli":
                continue
            loaded = importlib.import_module(f"raxol_sync.{module}".rstrip("."))
            _, beside = _comments(path)
            for node in tree(path).body:
                if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                    continue
                name = node.targets[0].id
                value = getattr(loaded, name)
                if name.isupper() and name[0] != "_" and type(value) in (int, float):
                    number = f"`{value:,}`".replace(",", " ")
                    yield [f"`{module}.{name}`", number, plain(beside.get(node.lineno, ""))]

    return table(["bound", "value", "unit, and what for"], rows())


def events(name: str) -> str:
    """The events of telemetry: ``EVENTS`` of a server, ``CLIENT_EVENTS`` of a client."""

    def rows() -> Iterator[list[str]]:
        for event, text in getattr(telemetry, name).items():
            yield [f"`{event}`", text]

    return table(["event", "fields"], rows())


def statuses(_: str) -> str:
    """The HTTP statuses of the application."""
    from raxol_sync.server.http import status

    rows = ([f"{line}", status.WHEN[number]] for number, line in status.LINES.items())
    return table(["status", "when"], rows)


def arguments(name: str) -> str:
    """The arguments of a class, or of a method of ``Server``, as its docstring has them."""

    def rows() -> Iterator[list[str]]:
        called = getattr(raxol_sync, name, None) or getattr(raxol_sync.Server, name)
        parameters = inspect.signature(called).parameters
        said = _said(inspect.getdoc(called) or "", parameters)
        for parameter in parameters.values():
            if parameter.name == "self":
                continue
            if parameter.kind is parameter.VAR_KEYWORD:
                yield [f"`**{parameter.name}`", "", said[parameter.name]]
                continue
            default = f"`{parameter.default}`"
            if parameter.default is parameter.empty:
                default = "needed"
            elif type(parameter.default) in (int, float):
                default = f"`{parameter.default:,}`".replace(",", " ")
            elif isinstance(parameter.default, str):
                default = f"`{parameter.default!r}`"
            yield [f"`{parameter.name}`", default, said[parameter.name]]

    return table(["argument", "default", "what it is"], rows())


def _said(text: str, names: Iterable[str]) -> dict[str, str]:
    """What the ``Args`` of a docstring say of each name.

    A name begins a line, or stands in an entry as ``name`` with a colon.
    """
    section = text.partition("Args:\n")[2].partition("\n\n")[0]
    either = "|".join(names)
    parts = re.split(rf"^    ({either}): |``({either})``:\s", section, flags=re.M)
    said = {}
    for first, second, words in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        said[first or second] = plain(words).rstrip(";. ") + "."
    return said


# ---------------------------------------------------------------- threads


def locks(_: str) -> str:
    """Every lock that the package makes, with the comment where it is made."""

    def rows() -> Iterator[list[str]]:
        for module, path in modules():
            said, beside = _comments(path)
            for name, line, shared in created(path, LOCKS):
                above = beside.get(line) or _comment_above(said, line)
                meaning = f"the same lock as `{shared}`" if shared else above
                yield [f"`{module}`", f"`{name}`", meaning]

    return table(["module", "lock", "what the comment at its making says"], rows())


def created(path: Path, kinds: tuple[str, ...]) -> list[tuple[str, int, str]]:
    """What a module makes of ``threading``: its name, the line, and the lock that it shares."""
    found = []
    for node in ast.walk(tree(path)):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        for call in ast.walk(node.value):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and isinstance(call.func.value, ast.Name)
                and call.func.value.id == "threading"
                and call.func.attr in kinds
            ):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                shared = ast.unparse(call.args[0]).removeprefix("self.") if call.args else ""
                found.append((ast.unparse(target).removeprefix("self."), node.lineno, shared))
    return sorted(found, key=lambda entry: entry[1])


def thread_names() -> set[str]:
    """The names that threads get, with words in capitals for what is filled in."""
    found = set()
    for _, path in modules():
        for node in ast.walk(tree(path)):
            text = ""
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            elif isinstance(node, ast.JoinedStr):
                parts = [
                    part.value if isinstance(part, ast.Constant) else _word(part)
                    for part in node.values
                ]
                text = "".join(map(str, parts))
            if re.fullmatch(r"raxol-sync-[\w-]*\w", text):
                found.add(text)
    return found


def _word(part: ast.expr) -> str:
    value = part.value if isinstance(part, ast.FormattedValue) else part
    return ast.unparse(value).split(".")[-1].strip("_").upper()


def _comments(path: Path) -> tuple[dict[int, str], dict[int, str]]:
    """The comments of a module by line: those that have the line to themselves, and the others."""
    said: dict[int, str] = {}
    beside: dict[int, str] = {}
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                alone = token.line.lstrip().startswith("#")
                (said if alone else beside)[token.start[0]] = token.string.lstrip("# ").rstrip()
    return said, beside


def _comment_above(said: dict[int, str], line: int) -> str:
    """The lines of comment right above a line."""
    above: list[str] = []
    while line - 1 in said:
        line -= 1
        above.insert(0, said[line])
    return " ".join(above).replace("|", r"\|")


# ---------------------------------------------------------------- writing

MAKERS: dict[str, Callable[[str], str]] = {
    "members": members,
    "values": values,
    "functions": functions,
    "exceptions": exceptions,
    "codes": codes,
    "defaults": defaults,
    "constants": constants,
    "events": events,
    "locks": locks,
    "statuses": statuses,
    "arguments": arguments,
}


def made(name: str) -> str:
    """The text of a table by its name in the page: a maker's, and what it is told."""
    maker, _, word = name.partition(" ")
    return MAKERS[maker](word)


def main() -> None:
    """Write every table into its page."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        new = MARKED.sub(
            lambda m: f"<!-- table: {m['name']} -->\n{made(m['name'])}<!-- end -->\n", text
        )
        if new != text:
            page.write_text(new, encoding="utf-8")
            print("wrote", page.relative_to(ROOT))


if __name__ == "__main__":
    main()
