"""A function's signature and docstring as schemas, converters and checks. Floor 2.

``function_schema`` runs once, when a function is registered; ``FunctionSchema.bind`` and ``dump``
run for each call and look at no types.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MethodType
from typing import Annotated, Any, get_args, get_origin

from raxol_sync.errors import InvalidTool
from raxol_sync.schema.containers import union_node
from raxol_sync.schema.docstrings import Docstring, parse_docstring
from raxol_sync.schema.dump import to_json
from raxol_sync.schema.headers import header_problems
from raxol_sync.schema.hints import UNIONS, Builder
from raxol_sync.schema.models import is_field_info
from raxol_sync.schema.node import Convert, Node, Schema, UnsupportedHint
from raxol_sync.schema.output import output_of
from raxol_sync.schema.records import MISSING, Field, convert_fields, object_schema
from raxol_sync.schema.scopes import Scope, function_scope, is_class, resolve
from raxol_sync.schema.violations import (
    ArgumentError,
    Mismatch,
    ResultError,
    Violation,
    wrong_type,
)

_EMPTY = inspect.Parameter.empty


@dataclass(frozen=True)
class FunctionSchema:
    """What a function takes and returns. Immutable, so thread-safe.

    ``input_schema`` has type object at its root and refers to nothing outside itself.
    ``output_schema`` is ``None`` where the return hint promises no JSON; where ``wraps_result`` is
    true it describes ``{"result": value}``, and ``dump`` returns the bare value still.
    ``returns_content`` says that the return hint names content objects, such as ``list[Text]``, and
    no list of anything else; ``returns_only_content`` that it names nothing else but texts, and
    ``returns_none`` that ``None`` is one of the values it names.
    ``context_parameter`` names the parameter that takes the context, which no schema mentions.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    wraps_result: bool
    returns_content: bool
    returns_only_content: bool
    returns_none: bool
    context_parameter: str | None
    parameters: tuple[str, ...]
    _converters: Mapping[str, Convert] = field(repr=False, compare=False)
    _required: Mapping[str, str] = field(repr=False, compare=False)
    _rest: Convert | None = field(repr=False, compare=False)
    _fills: Mapping[str, Callable[[], object]] = field(repr=False, compare=False)
    _check: Convert | None = field(repr=False, compare=False)

    def bind(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return checked, converted keyword arguments; what is absent is left to its default.

        Raises:
            ArgumentError: Naming path and keyword of up to ten violations, never a value.
        """
        if not isinstance(arguments, Mapping):
            raise ArgumentError(wrong_type("an object of arguments by name", arguments).violations)
        try:
            made = convert_fields(
                arguments, 1, self._converters, self._required, closed=True, rest=self._rest
            )
        except Mismatch as mismatch:
            raise ArgumentError(mismatch.violations) from None
        except RecursionError:  # the caller's own stack was nearly full already
            raise ArgumentError([Violation("", "depth", "fewer levels")]) from None
        for name, fill in self._fills.items():
            if name not in made:
                made[name] = fill()
        return made

    def dump(self, value: object) -> object:
        """Return a callback's result as a JSON value, checked against the output schema if any.

        Raises:
            ResultError: If it has no JSON form or does not fit the return hint. Holds no value.
        """
        try:
            made = to_json(value)
        except (TypeError, ValueError) as error:
            raise ResultError([Violation("", "json", str(error))]) from None
        if self._check is not None:
            try:
                self._check(made, 0)
            except Mismatch as mismatch:
                raise ResultError(mismatch.violations) from None
        return made


def function_schema(
    function: Callable[..., object], *, context_type: type | None = None
) -> FunctionSchema:
    """Return the schema of a function, method, partial or callable object.

    Args:
        function: What will be called with the keyword arguments that ``bind`` returns.
        context_type: A parameter annotated with it, or with ``Optional`` of it, is left out of the
            schema and named in ``context_parameter``.

    Raises:
        InvalidTool: If it is no function, is asynchronous or a generator, takes positional-only
            parameters or ``*args``, or has a hint without a JSON form.
    """
    name = _name_of(function)
    _refuse_kinds(function, name)
    target = _innermost(function)
    scope = function_scope(target)
    if context_type is not None:
        # So that an import under TYPE_CHECKING is enough to name the context.
        scope = replace(scope, globals={context_type.__name__: context_type, **scope.globals})
    texts = parse_docstring(_docstring(function))
    reader = _Reader(name, scope, context_type, texts)
    signature = _signature(function, name)
    hidden = _hidden(function)
    for parameter in signature.parameters.values():
        if parameter.name not in hidden:
            reader.read(parameter)
    reserved = _reserved(target, reader.fields) | hidden
    schema = _root(reader, reader.builder.definitions)
    problems = header_problems(schema)
    if problems:
        raise InvalidTool(f"function {name!r}: " + "; ".join(problems))
    output = output_of(signature.return_annotation, scope)
    return FunctionSchema(
        name=name,
        description=texts.description,
        input_schema=schema,
        output_schema=output.schema,
        wraps_result=output.wraps,
        returns_content=output.content,
        returns_only_content=output.only_content,
        returns_none=output.optional,
        context_parameter=reader.context,
        parameters=tuple(f.name for f in reader.fields),
        _converters={
            **({} if reader.rest is None else dict.fromkeys(reserved, _refuse_reserved)),
            **{name: node.lenient for name, node in reader.nodes.items()},
        },
        _required={f.name: reader.nodes[f.name].expected for f in reader.fields if f.required},
        _rest=None if reader.rest is None else reader.rest.lenient,
        _fills=reader.fills,
        _check=output.check,
    )


def _root(reader: _Reader, definitions: Mapping[str, Schema]) -> Schema:
    schema = object_schema(reader.fields, reader.nodes, closed=True)
    if reader.rest is not None:
        schema["additionalProperties"] = reader.rest.schema or True
    if definitions:
        schema["$defs"] = definitions
    # Nodes share parts with each other; what is handed out is the owner's alone.
    return copy.deepcopy(schema)


def _refuse_reserved(value: Any, depth: int) -> Any:
    raise Mismatch("additionalProperties", "leave it out, since callers may not give it")


class _Reader:
    """Collects the parameters of one function. Belongs to one call of ``function_schema``."""

    def __init__(
        self, name: str, scope: Scope, context_type: type | None, texts: Docstring
    ) -> None:
        self.builder = Builder()
        self.fields: list[Field] = []
        self.nodes: dict[str, Node] = {}
        self.fills: dict[str, Callable[[], object]] = {}
        self.rest: Node | None = None
        self.context: str | None = None
        self._function = name
        self._scope = scope
        self._context_type = context_type
        self._texts = texts.parameters

    def read(self, parameter: inspect.Parameter) -> None:
        """Add one parameter. Raises ``InvalidTool``."""
        name, hint = parameter.name, parameter.annotation
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise self._invalid(name, "is positional-only, but arguments have names; remove the /")
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise self._invalid(name, f"*{name} cannot be named; take a list instead")
        try:
            if self._is_context(hint):
                self._take_context(name)
            elif parameter.kind is parameter.VAR_KEYWORD:
                self.rest = self.builder.build(_rest_hint(hint), self._scope)
            else:
                self._add(name, Any if hint is _EMPTY else hint, parameter.default)
        except UnsupportedHint as error:
            raise self._invalid(name, str(error)) from None

    def _add(self, name: str, hint: Any, default: Any) -> None:
        if is_field_info(default):
            info = default
            hint, default = Annotated[hint, info], _EMPTY
            if not info.is_required():
                default = info.get_default(call_default_factory=True)
                self.fills[name] = lambda: info.get_default(call_default_factory=True)
        node = self.builder.build(hint, self._scope)
        if default is None and not node.nullable:
            # `b: str = None` says that None may be given, whatever the hint says.
            node = _or_none(node, self.builder, self._scope)
        required = default is _EMPTY
        text = self._texts.get(name, "")
        given = MISSING if required else default
        self.fields.append(Field(name, hint, self._scope, required, given, text))
        self.nodes[name] = node

    def _is_context(self, hint: Any) -> bool:
        wanted = self._context_type
        if wanted is None or hint is _EMPTY:
            return False
        try:
            members = list(_members(hint, self._scope))
        except UnsupportedHint:
            return False  # building it reports the same, with the parameter's name
        real = [member for member in members if member is not None and member is not type(None)]
        return bool(real) and all(
            is_class(member) and issubclass(member, wanted) for member in real
        )

    def _take_context(self, name: str) -> None:
        if self.context is not None:
            raise self._invalid(name, f"{self.context!r} takes the context already; keep one")
        self.context = name

    def _invalid(self, parameter: str, reason: str) -> InvalidTool:
        return InvalidTool(f"function {self._function!r}, parameter {parameter!r}: {reason}")


def _or_none(node: Node, builder: Builder, scope: Scope) -> Node:
    made = union_node([node, builder.build(None, scope)])
    if "x-mcp-header" not in node.schema:
        return made
    return replace(made, schema=node.schema)  # one primitive type must stay beside a header


def _rest_hint(hint: Any) -> Any:
    unpacked = getattr(get_origin(hint), "_name", None) == "Unpack"
    return Any if hint is _EMPTY or unpacked else hint


def _members(hint: Any, scope: Scope) -> Iterator[Any]:
    """Yield the members of a union, or the hint, without ``Annotated`` around any."""
    hint, scope = resolve(hint, scope)
    if hasattr(hint, "__metadata__"):
        yield from _members(hint.__origin__, scope)
    elif get_origin(hint) in UNIONS:
        for member in get_args(hint):
            yield from _members(member, scope)
    else:
        yield hint


# --- looking at callables ----------------------------------------------------------------------


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _refuse_kinds(function: Any, name: str) -> None:
    if isinstance(function, classmethod):
        raise InvalidTool(f"{name!r} is a classmethod of no class yet; pass Class.{name} instead")
    if isinstance(function, type) or not callable(function):
        raise InvalidTool(f"{name!r} is not a function; pass a function, method or callable object")
    called = function
    while isinstance(called, functools.partial):
        called = called.func
    if not inspect.isroutine(called):
        called = type(called).__call__
    if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
        raise InvalidTool(
            f"function {name!r} is asynchronous, and callbacks run in threads without an event "
            "loop; write `def` instead of `async def` and use blocking calls"
        )
    if inspect.isgeneratorfunction(called):
        raise InvalidTool(
            f"function {name!r} is a generator, and a result is one value; return a list instead"
        )


def _innermost(function: Any) -> Any:
    """Return the function that wrote the annotations which ``inspect.signature`` reports."""
    for _ in range(100):
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, (MethodType, staticmethod)):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif not inspect.isroutine(function) and not isinstance(function, type):
            function = type(function).__call__
        else:
            break
    return function


def _signature(function: Any, name: str) -> inspect.Signature:
    try:
        if sys.version_info >= (3, 14):
            from annotationlib import Format

            return inspect.signature(function, annotation_format=Format.FORWARDREF)
        else:
            return inspect.signature(function)
    except (ValueError, TypeError):
        raise InvalidTool(
            f"the parameters of {name!r} cannot be read (it is not written in Python); wrap it in "
            "a function"
        ) from None


def _hidden(function: Any) -> set[str]:
    """Return keywords that a partial binds: its author chose them, so callers do not."""
    names: set[str] = set()
    while isinstance(function, functools.partial):
        names.update(function.keywords)
        function = function.func
    return names


def _reserved(target: Any, fields: list[Field]) -> set[str]:
    """Return the target's own parameter names that callers may not fill through ``**kwargs``."""
    code = getattr(target, "__code__", None)
    if code is None:
        return set()
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return set(names) - {f.name for f in fields}


def _docstring(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function):
        call = type(function).__call__
        return getattr(call, "__doc__", None) or type(function).__doc__ or ""
    return inspect.getdoc(function) or ""
