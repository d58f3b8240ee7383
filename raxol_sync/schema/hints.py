"""Type hints to nodes: the one place that knows which hint means what. Floor 2.

A builder lives while one function is registered. Everything is inlined; only a class or alias that
contains itself becomes a definition with references to it, since nothing else can be finite.
"""

from __future__ import annotations

import collections
import collections.abc as abc
import datetime
import re
import types
import typing
from collections.abc import Callable, Hashable
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, NewType, TypeVar, Union, get_args, get_origin

from raxol_sync.schema import containers, moments, scalars
from raxol_sync.schema.constraints import annotated_node
from raxol_sync.schema.models import is_pydantic, needs_pydantic, pydantic_node
from raxol_sync.schema.node import Node, Schema, UnsupportedHint, anything
from raxol_sync.schema.records import is_record, record_node
from raxol_sync.schema.scopes import Scope, class_scope, is_class, resolve

_MAX_NODES = 5_000  # a chain of classes that mention each other twice doubles at each step
_MAX_NESTING = 32  # a schema has two or three levels for each level of hints

LISTS: dict[Any, Callable[[list[Any]], Any]] = {
    collections.deque: collections.deque,
    **dict.fromkeys(
        (list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable), lambda items: items
    ),
}
"""Classes of an array, and what makes each of a list. ``tuple`` stands apart."""
_SETS: dict[Any, Callable[[list[Any]], Any]] = {
    set: set, abc.Set: set, abc.MutableSet: set, frozenset: frozenset,
}  # fmt: skip
_DICTS: dict[Any, Callable[[dict[Any, Any]], Any]] = {
    collections.OrderedDict: collections.OrderedDict,
    **dict.fromkeys((dict, abc.Mapping, abc.MutableMapping), lambda entries: entries),
}
# Named, because importing their modules would cost every program some milliseconds.
_BY_NAME: dict[str, Callable[[], Node]] = {
    "uuid.UUID": scalars.uuid_node,
    "pathlib.Path": scalars.path_node,
    "pathlib.PurePath": scalars.path_node,
    "pathlib._local.Path": scalars.path_node,  # where Python 3.13 defines them
    "pathlib._local.PurePath": scalars.path_node,
}
UNIONS = (Union, types.UnionType)
"""The origins of ``Union[A, B]`` and ``A | B``."""
_TRANSPARENT = ("Final", "ReadOnly", "Required", "NotRequired", "LiteralString")


class Builder:
    """Compiles the hints of one function. Not thread-safe: its owner is one call.

    Args:
        output: Whether the hints are return hints; their nodes check JSON values and build none.
    """

    def __init__(self, *, output: bool = False) -> None:
        self.output = output
        self.definitions: dict[str, Schema] = {}
        self._open: dict[Any, _Reference] = {}
        self._nodes = 0
        self._depth = 0
        flag = output
        self._scalars: dict[Any, Callable[[], Node]] = {
            str: scalars.string_node,
            bool: scalars.boolean_node,
            int: lambda: scalars.integer_node(flag),
            float: lambda: scalars.number_node(flag),
            None: scalars.none_node,
            type(None): scalars.none_node,
            bytes: lambda: scalars.bytes_node(bytes, flag),
            bytearray: lambda: scalars.bytes_node(bytearray, flag),
            Decimal: lambda: scalars.decimal_node(flag),
            re.Pattern: scalars.pattern_node,
            datetime.datetime: moments.datetime_node,
            datetime.date: moments.date_node,
            datetime.time: moments.time_node,
            datetime.timedelta: moments.duration_node,
            Any: anything,
            object: anything,
        }

    def build(self, hint: Any, scope: Scope) -> Node:
        """Return the node of a hint that was written in ``scope``.

        Raises:
            UnsupportedHint: If there is no JSON form; says which type and what to do.
        """
        self._nodes += 1
        if self._nodes > _MAX_NODES or self._depth >= _MAX_NESTING:
            raise UnsupportedHint("the hint is too large or too deep; use a simpler one")
        self._depth += 1
        try:
            return self._build(hint, scope)
        finally:
            self._depth -= 1

    def _build(self, hint: Any, scope: Scope) -> Node:
        named = isinstance(hint, (str, typing.ForwardRef))
        hint, scope = resolve(hint, scope)
        if named and not is_class(hint):
            # A name may stand for a union that mentions the name; classes are met in _class.
            return self._once(hint, "Value", lambda: self._resolved(hint, scope))
        return self._resolved(hint, scope)

    def _resolved(self, hint: Any, scope: Scope) -> Node:
        origin = get_origin(hint)
        if origin is typing.Annotated or hasattr(hint, "__metadata__"):
            return self._annotated(hint, scope)
        if origin in UNIONS:
            return self._union([self.build(member, scope) for member in get_args(hint)])
        if origin is Literal or getattr(origin, "_name", None) == "Literal":
            return scalars.choice_node([_literal(value) for value in get_args(hint)])
        if isinstance(hint, TypeVar):
            return self._variable(hint, scope)
        if isinstance(hint, NewType):
            return self.build(hint.__supertype__, scope)
        label = getattr(origin, "_name", None) or getattr(hint, "_name", None)
        if label in _TRANSPARENT:
            return self.build(get_args(hint)[0] if get_args(hint) else str, scope)
        alias = origin if origin is not None else hint
        if type(alias).__name__ == "TypeAliasType":
            inner = class_scope(alias, scope, get_args(hint))
            key = (alias, get_args(hint))
            return self._once(key, alias.__name__, lambda: self.build(alias.__value__, inner))
        return self._class(hint, origin, scope)

    def _annotated(self, hint: Any, scope: Scope) -> Node:
        if needs_pydantic(hint.__metadata__):
            return pydantic_node(hint, self._share, output=self.output)
        return annotated_node(self.build(hint.__origin__, scope), hint.__metadata__)

    def _union(self, members: list[Node]) -> Node:
        return members[0] if len(members) == 1 else containers.union_node(members)

    def _variable(self, hint: TypeVar, scope: Scope) -> Node:
        if hint.__constraints__:
            return self._union([self.build(option, scope) for option in hint.__constraints__])
        return self.build(hint.__bound__, scope) if hint.__bound__ is not None else anything()

    def _class(self, hint: Any, origin: Any, scope: Scope) -> Node:
        kind = origin if origin is not None else hint
        arguments = get_args(hint)
        if is_pydantic(kind):
            return pydantic_node(hint, self._share, output=self.output, name=_name(hint))
        made = self._collection(kind, arguments, scope, bare=origin is None)
        if made is not None:
            return made
        if is_record(kind):
            inner = class_scope(kind, scope, arguments)
            key = (kind, tuple(resolve(argument, scope)[0] for argument in arguments))
            return self._once(
                key,
                kind.__name__,
                lambda: record_node(kind, inner, self.build, output=self.output),
            )
        if is_class(kind) and issubclass(kind, Enum):
            return scalars.enum_node(kind, self.output)
        make = None
        if is_class(kind):
            make = _BY_NAME.get(f"{kind.__module__}.{kind.__qualname__}")
        if make is None and isinstance(kind, Hashable):
            make = self._scalars.get(kind)
        if make is None:
            raise UnsupportedHint(
                f"the type {_name(hint)} has no JSON form; use a dataclass, a TypedDict, an Enum, "
                "a pydantic model, or a type such as str, int, list[str] or dict[str, int]"
            )
        return make()

    def _collection(
        self, kind: Any, arguments: tuple[Any, ...], scope: Scope, *, bare: bool
    ) -> Node | None:
        if not is_class(kind):
            return None
        if kind in LISTS:
            return containers.list_node(self._item(arguments, 0, scope), LISTS[kind])
        if kind in _SETS:
            return containers.set_node(self._item(arguments, 0, scope), _SETS[kind])
        if kind in _DICTS:
            key = self.build(arguments[0] if arguments else str, scope)
            if key.keys is None and key.schema:
                raise UnsupportedHint(
                    f"keys of a JSON object are text, not {key.expected}; use str, int, an Enum or "
                    "Literal of str, UUID or date"
                )
            key = scalars.string_node() if key.keys is None else key
            return containers.dict_node(key, self._item(arguments, 1, scope), _DICTS[kind])
        if kind is tuple:
            if bare or (len(arguments) == 2 and arguments[1] is Ellipsis):
                return containers.list_node(self._item(arguments, 0, scope), tuple)
            items = [] if arguments == ((),) else [self.build(item, scope) for item in arguments]
            return containers.tuple_node(items)
        return None

    def _item(self, arguments: tuple[Any, ...], index: int, scope: Scope) -> Node:
        return self.build(arguments[index], scope) if arguments else anything()

    # --- recursion ---------------------------------------------------------------------------

    def _once(self, key: Any, name: str, make: Callable[[], Node]) -> Node:
        """Build what may contain itself: a reference inside, the definition outside."""
        try:
            reference = self._open.get(key)
        except TypeError:  # not hashable, so never seen again
            return make()
        if reference is not None:
            return reference.used(self._share)
        reference = self._open[key] = _Reference(name)
        node = make()
        if reference.node is None:  # nobody inside asked for it: inlined
            del self._open[key]
            return node
        if _meets_itself(node.schema, reference.node.schema):
            raise UnsupportedHint(f"{name} is defined as itself; put it inside a list or an object")
        reference.settle(node)
        return reference.node

    def _share(self, name: str, body: Schema) -> str:
        """Put a definition into the root's ``$defs`` under a free name; return that name."""
        clean = re.sub(r"\W", "_", name)
        free, number = clean, 2
        while free in self.definitions:
            free, number = f"{clean}_{number}", number + 1
        self.definitions[free] = body
        return free


def _meets_itself(schema: Schema, reference: Schema) -> bool:
    # `type X = int | X`: no value is ever reached, and converting one would never end.
    parts = [schema, *schema.get("anyOf", ())]
    return any(part.get("$ref") == reference["$ref"] for part in parts)


class _Reference:
    """A node that stands for one still being built. Belongs to one builder."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self._body: Schema = {}
        self._target: Node | None = None

    def used(self, share: Callable[[str, Schema], str]) -> Node:
        if self.node is None:
            schema = {"$ref": f"#/$defs/{share(self.name, self._body)}"}
            self.node = Node(schema, self._exact, self._lenient, self.name)
        return self.node

    def settle(self, node: Node) -> None:
        self._target = node
        self._body.update(node.schema)

    def _exact(self, value: Any, depth: int) -> Any:
        assert self._target is not None
        return self._target.exact(value, depth)

    def _lenient(self, value: Any, depth: int) -> Any:
        assert self._target is not None
        return self._target.lenient(value, depth)


def _literal(value: Any) -> tuple[Any, Any]:
    raw = value.value if isinstance(value, Enum) else value
    if raw is not None and not isinstance(raw, (str, int, bool)):
        raise UnsupportedHint(
            f"a Literal of {type(raw).__name__} has no JSON form; use str, int, bool or None"
        )
    return raw, value


def _name(hint: Any) -> str:
    if is_class(hint):
        return f"{hint.__module__}.{hint.__qualname__}".removeprefix("builtins.")
    return str(hint)
