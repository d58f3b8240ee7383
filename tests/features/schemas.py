"""The official schema files of the revisions: validators, values to draw, and ways to spoil them.

The files are used where they lie beside the checkout. Without them every test that asks for one
passes at once: they are not part of this project.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

Json = dict[str, Any]
FOLDER = Path(__file__).resolve().parents[3] / "shared" / "schema"
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
DEEPEST = 7  # levels below which only what is required is made
HUGE = 20_000  # characters, members or items of what is oversized

SETTINGS = settings(
    max_examples=35,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # a failing message is small enough as it is
    suppress_health_check=list(HealthCheck),
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from(["", "x", "é"]), st.just(0.5)
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


class Revision:
    """One revision's schema file."""

    def __init__(self, name: str, document: Json) -> None:
        self.name = name
        self.document = document
        self.modern = name >= "2026"
        self._key = "$defs" if "$defs" in document else "definitions"
        self.types: dict[str, Json] = document[self._key]

    @cache  # noqa: B019  # there are five, and they live as long as the tests
    def validator(self, name: str) -> Any:
        """Return the validator of a type."""
        schema = {**self.document, "$ref": f"#/{self._key}/{name}"}
        return jsonschema.validators.validator_for(self.document)(schema)

    def problem(self, name: str, value: object) -> str | None:
        """Return what is wrong with a value of a type, ``None`` if it is valid."""
        error = next(self.validator(name).iter_errors(value), None)
        return None if error is None else f"{error.json_path}: {error.message[:200]}"

    def union(self, name: str) -> list[str]:
        """Return the types that a union such as ``ClientRequest`` is made of."""
        found = self.types.get(name, {})
        members = found.get("anyOf", [found] if "$ref" in found else [])
        return [member["$ref"].rpartition("/")[2] for member in members]

    def method(self, name: str) -> str:
        """Return the method that a request or notification type has."""
        method: str = self.types[name]["properties"]["method"]["const"]
        return method

    @cached_property
    def requests(self) -> dict[str, str]:
        """The requests of clients: type by method."""
        return {self.method(name): name for name in self.union("ClientRequest")}

    def result_type(self, method: str) -> str:
        """Return the type of a method's result."""
        name = self.requests[method].removesuffix("Request") + "Result"
        return name if name in self.types else "EmptyResult"

    def values(self, name: str) -> st.SearchStrategy[Any]:
        """Return a strategy for valid values of a type, or nearly: patterns are not looked at."""
        return self._of(self.types[name], 0)

    def _of(self, schema: Any, depth: int) -> st.SearchStrategy[Any]:
        if not isinstance(schema, dict) or not schema.keys() & _KNOWN:
            return ANYTHING
        if "$ref" in schema:
            return self._of(self.types[schema["$ref"].rpartition("/")[2]], depth)
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        for word in ("anyOf", "oneOf", "allOf"):
            if word in schema:
                return self._one_of(schema[word], depth)
        kind = schema["type"]
        kinds = kind if isinstance(kind, list) else [kind]
        return st.one_of(*(_MAKERS[k](self, schema, depth) for k in kinds))

    def _one_of(self, members: list[Any], depth: int) -> st.SearchStrategy[Any]:
        if depth > DEEPEST:  # no union of these files begins with a recursive type
            members = members[:1]
        return st.deferred(lambda: st.one_of(*(self._of(m, depth + 1) for m in members)))

    def _object(self, schema: Json, depth: int) -> st.SearchStrategy[Any]:
        fields, required = schema.get("properties", {}), schema.get("required", [])
        more = schema.get("additionalProperties")

        @st.composite
        def build(draw: st.DrawFn) -> Json:
            made: Json = {}
            for name, field in fields.items():
                if name in required or (depth < DEEPEST and draw(st.integers(0, 2)) == 0):
                    made[name] = draw(self._of(field, depth + 1))
            if isinstance(more, dict) and depth < DEEPEST:
                for name in draw(st.sets(st.sampled_from("pq"), max_size=2)):
                    made.setdefault(name, draw(self._of(more, depth + 1)))
            return made

        return build()

    def _array(self, schema: Json, depth: int) -> st.SearchStrategy[Any]:
        items = schema.get("items", {})
        size = 2 if depth < DEEPEST else 0
        return st.deferred(lambda: st.lists(self._of(items, depth + 1), max_size=size))

    def _string(self, schema: Json, depth: int) -> st.SearchStrategy[Any]:
        if schema.get("format") == "byte":
            return st.binary(max_size=8).map(lambda data: base64.b64encode(data).decode())
        if schema.get("format") in ("uri", "uri-template"):
            return st.sampled_from(["file:///a", "test://b", "x:y"])
        return st.sampled_from(["", "a", "b c", "ü", "☃"])

    def _number(self, schema: Json, depth: int) -> st.SearchStrategy[Any]:
        low, high = schema.get("minimum", -10), schema.get("maximum", 1000)
        whole = st.integers(int(low), int(high))
        if schema["type"] == "integer" or schema["type"] == ["integer"]:
            return whole
        return whole | st.floats(low, high, allow_nan=False, allow_infinity=False)


_KNOWN = {"$ref", "const", "enum", "anyOf", "oneOf", "allOf", "type"}
_MAKERS: dict[str, Callable[[Revision, Json, int], st.SearchStrategy[Any]]] = {
    "object": Revision._object,
    "array": Revision._array,
    "string": Revision._string,
    "integer": lambda self, schema, depth: self._number({**schema, "type": "integer"}, depth),
    "number": Revision._number,
    "boolean": lambda self, schema, depth: st.booleans(),
    "null": lambda self, schema, depth: st.none(),
}


@cache
def load(name: str) -> Revision | None:
    """Return a revision's schema, ``None`` where its file is not beside the checkout."""
    path = FOLDER / f"{name}.json"
    if not path.exists():
        return None
    return Revision(name, json.loads(path.read_text(encoding="utf-8")))


def with_schema(
    revisions: Sequence[str] = REVISIONS,
) -> Callable[[Callable[[Revision], None]], Callable[[str], None]]:
    """Run a test with the schema of each of these revisions that has its file here."""

    def decorate(test: Callable[[Revision], None]) -> Callable[[str], None]:
        @pytest.mark.parametrize("revision", revisions)
        def run(revision: str) -> None:
            known = load(revision)
            if known is not None:
                test(known)

        # As functools.wraps, but for the signature: pytest gives arguments by their names.
        run.__name__, run.__qualname__, run.__doc__ = test.__name__, test.__qualname__, test.__doc__
        run.__module__ = test.__module__
        return run

    return decorate


# ---------------------------------------------------------------- spoiling

Place = tuple[Any, ...]


def places(value: object, here: Place = ()) -> Iterator[Place]:
    """Yield the place of each value within a JSON value, the root first."""
    yield here
    if isinstance(value, dict):
        for key, member in value.items():
            yield from places(member, (*here, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from places(member, (*here, index))


def at(value: Any, place: Place) -> Any:
    """Return the value at a place."""
    for step in place:
        value = value[step]
    return value


@st.composite
def spoiled(draw: st.DrawFn, value: Json, below: Place = ()) -> tuple[str, Json]:
    """Draw a copy with one member missing, wrong-typed, oversized or too many, at or below a place.

    Returns what was done, and the copy.
    """
    copied: Json = copy.deepcopy(value)
    found = [place for place in places(copied) if place[: len(below)] == below and place]
    where = draw(st.sampled_from(found or [()]))
    how = draw(st.sampled_from(["missing", "wrong-typed", "oversized", "surplus"]))
    if not where or how == "surplus":
        inside = [p for p in places(copied) if isinstance(at(copied, p), dict)]
        target = at(copied, draw(st.sampled_from(inside)))
        target[draw(st.sampled_from(["surplus", "x-é", ""]))] = draw(ANYTHING)
        return "surplus", copied
    parent, key = at(copied, where[:-1]), where[-1]
    if how == "missing":
        del parent[key]
    elif how == "wrong-typed":
        kind = type(parent[key])
        parent[key] = draw(ANYTHING.filter(lambda other: type(other) is not kind))
    else:
        parent[key] = _oversized(parent[key])
    return how, copied


def _oversized(value: Any) -> Any:
    if isinstance(value, str):
        return value + "x" * HUGE
    if isinstance(value, list):
        return (value or [None]) * HUGE if len(str(value)) < 50 else value * 50
    if isinstance(value, Mapping):
        return {**value, **{f"more-{n}": n for n in range(HUGE // 10)}}
    return 10**40
