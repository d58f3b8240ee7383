"""``Tool``: what ``tools/call`` calls. Floor 2."""

from __future__ import annotations

import copy
import inspect
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from raxol_sync.definitions.base import (
    Completer,
    Definition,
    Json,
    hook_problem,
    needs_callable,
    needs_hints,
    needs_mapping,
    non_empty,
    refuse_unbound,
)
from raxol_sync.errors import InvalidTool, ToolError
from raxol_sync.policy import is_sensitive
from raxol_sync.schema import (
    FunctionSchema,
    SchemaValidator,
    compile_schema,
    function_schema,
    header_paths,
    header_problems,
    to_json,
)

Isolation = Literal["thread", "process"]
IsFault = Callable[[ToolError], bool]
_log = logging.getLogger("raxol_sync.server")

NEEDS_PEBBLE = (
    "isolation='process' needs the package pebble: pip install 'raxol_sync[process]' (or pebble "
    "alone), or leave isolation out"
)


class Tool(Definition):
    """A tool: a name, a description, a JSON Schema of its arguments and a callback (row S44).

    Args:
        name: not empty; letters, digits, ``_``, ``-`` and ``.`` are what clients accept.
        description: not empty.
        input_schema: a valid JSON Schema, ``type: object`` (2020-12 unless ``$schema`` says so).
        callback: called with the arguments as one dict, on a worker thread.
        title: a name for people.
        annotations: hints such as ``readOnlyHint``.
        output_schema: what ``structuredContent`` conforms to; checked before it is sent.
        icons: icon objects, as the protocol defines them.
        meta: the definition's ``_meta``.
        isolation: ``thread``, or ``process`` for a callback that runs in a process of its own,
            which a time-out kills for real (row S18); it, its arguments and its result must pickle.
        is_fault: called with a ``ToolError`` of the callback's; ``True`` makes it count for the
            circuit breaker (row S45).
        completers: callables by argument name for ``completion/complete`` (row S12).

    Raises:
        InvalidTool: one of these is not valid; the text names which and why.
    """

    kind = "tool"

    def __init__(
        self,
        name: str,
        description: str,
        input_schema: Mapping[str, Any],
        callback: Callable[..., Any],
        *,
        title: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        icons: Sequence[Mapping[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
        isolation: Isolation = "thread",
        is_fault: IsFault | None = None,
        completers: Mapping[str, Completer] | None = None,
    ) -> None:
        super().__init__(callback, title=title, icons=icons, meta=meta, completers=completers)
        self.kind = f"tool {name!r}"
        self._check(
            non_empty("name", name),
            non_empty("description", description),
            needs_callable(callback),
            needs_mapping("input_schema", input_schema),
            needs_mapping("output_schema", {} if output_schema is None else output_schema),
            needs_hints({} if annotations is None else annotations),
        )
        self._take_running(isolation, is_fault)
        self.name = name
        self.description = description
        self.annotations = dict(annotations) if annotations is not None else None
        # Copies: a schema that its maker changes later must not change what was checked here.
        self.input_schema: Json = _copied(input_schema)
        self.output_schema: Json | None = None
        self._input: SchemaValidator | None = self._compile("input_schema", self.input_schema)
        self._output: SchemaValidator | None = None
        if output_schema is not None:
            self.output_schema = _copied(output_schema)
            self._output = self._compile("output_schema", self.output_schema)
        self.definition = self._definition()

    @property
    def circuit(self) -> tuple[str, str]:
        """The key of its circuit breaker (row S45)."""
        return ("tool", self.name)

    @cached_property
    def header_paths(self) -> Mapping[tuple[str, ...], str]:
        """Which arguments HTTP headers repeat (``x-mcp-header``): names by path of properties."""
        wrong = header_problems(self.input_schema)
        return {} if wrong else header_paths(self.input_schema)

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        *,
        context_type: type,
        name: str | None = None,
        description: str | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Tool:
        """Make a tool of a function; what is not given comes from its name, hints and docstring.

        Raises:
            InvalidTool: a hint has no schema, or the function cannot be a tool; in words.
        """
        refuse_unbound(function, "server.tool")
        signature = _signature(function, context_type, needed=input_schema is None)
        context_parameter = _context_parameter(function, signature, context_type)
        tool = cls.__new__(cls)
        named = signature.name if signature else getattr(function, "__name__", "")
        given_name = str(name or named)
        text = description or (signature.description if signature else inspect.getdoc(function))
        Definition.__init__(
            tool,
            function,
            title=options.get("title"),
            icons=options.get("icons", ()),
            meta=options.get("meta"),
            completers=options.get("completers"),
        )
        tool.kind = f"tool {given_name!r}"
        annotations = options.get("annotations")
        tool._check(
            non_empty("name", given_name),
            needs_callable(function),
            needs_hints({} if annotations is None else annotations),
        )
        tool.name, tool.description = given_name, text or given_name
        tool.annotations = dict(annotations) if annotations is not None else None
        tool._use_function(signature, context_parameter)
        tool._take_running(options.get("isolation", "thread"), options.get("is_fault"))
        tool._take_schemas(signature, input_schema, output_schema)
        tool.definition = tool._definition()
        return tool

    def bind(self, arguments: Json) -> Json:
        """Check the arguments of a call and convert them to the callback's hints.

        Raises:
            ArgumentError: they do not fit the schema; names path and keyword, never a value.
        """
        if self._input is not None:
            self._input.check(arguments)
            return arguments
        assert self._signature is not None  # one of the two always exists
        return self._signature.bind(arguments)

    def is_faulty(self, error: ToolError) -> bool:
        """Return whether ``is_fault`` counts an error of the callback's; never raises."""
        if self.is_fault is None:
            return False
        try:
            return self.is_fault(error) is True
        except BaseException:  # user code: the tool's answer is what counts, and goes out
            _log.exception("! is_fault of %s failed", self.kind)
            return False

    @property
    def sensitive(self) -> bool:
        """Whether its annotations make it one that needs an authorizer (row S31)."""
        return is_sensitive(self.annotations)

    @property
    def wraps_result(self) -> bool:
        """Whether ``structuredContent`` is ``{"result": value}`` by the output schema."""
        return self._output is None and self._signature is not None and self._signature.wraps_result

    @property
    def returns_any_value(self) -> bool:
        """Whether its output schema, given by hand, is not one of an object."""
        declared = self.output_schema if self._output is not None else None
        return declared is not None and declared.get("type") != "object"

    @property
    def returns_content(self) -> bool:
        """Whether the return hint says content objects; each item of a list is content then."""
        return self._signature is not None and self._signature.returns_content

    def is_content_missing(self, value: object) -> bool:
        """Return whether a result that is no content is against the return hint."""
        signature = self._signature
        if self._output is not None or signature is None or not signature.returns_only_content:
            return False
        return value is not None or not signature.returns_none

    def dump(self, value: object) -> object:
        """Return a callback's result as a JSON value, checked against the return hint."""
        if self._output is None and self._signature is not None:
            return self._signature.dump(value)
        return to_json(value)

    def check_structured(self, value: object) -> None:
        """Check ``structuredContent`` against an output schema that was given by hand.

        Raises:
            ArgumentError: it does not fit.
        """
        if self._output is not None:
            self._output.check(value)

    def _take_running(self, isolation: str, is_fault: Any) -> None:
        self._check(
            None if isolation in ("thread", "process") else "isolation is 'thread' or 'process'",
            hook_problem("is_fault", is_fault),
            NEEDS_PEBBLE if isolation == "process" and not _is_installed("pebble") else None,
            "a tool in a process of its own cannot take a Context: leave the parameter out"
            if isolation == "process" and self.needs_context
            else None,
        )
        self.isolation: Isolation = "process" if isolation == "process" else "thread"
        self.is_fault: IsFault | None = is_fault

    def _compile(self, name: str, schema: Mapping[str, Any]) -> SchemaValidator:
        try:
            # Since 2026-07-28 what a tool returns may be any JSON value.
            return compile_schema(schema, root_object=name != "output_schema")
        except ValueError as error:
            raise InvalidTool(f"{self.kind}: {name}: {error}") from error

    def _take_schemas(
        self,
        signature: FunctionSchema | None,
        input_schema: Mapping[str, Any] | None,
        output_schema: Mapping[str, Any] | None,
    ) -> None:
        self._input = self._output = None
        if input_schema is not None:
            self._check(needs_mapping("input_schema", input_schema))
            self.input_schema = _copied(input_schema)
            self._input = self._compile("input_schema", self.input_schema)
        else:
            assert signature is not None  # _signature raised otherwise
            self.input_schema = signature.input_schema
        if output_schema is not None:
            self._check(needs_mapping("output_schema", output_schema))
            self.output_schema = _copied(output_schema)
            self._output = self._compile("output_schema", self.output_schema)
        else:
            self.output_schema = signature.output_schema if signature else None

    def _definition(self) -> Json:
        item: Json = {"name": self.name, "description": self.description}
        item["inputSchema"] = self.input_schema
        if self.output_schema is not None:
            item["outputSchema"] = self.output_schema
        if self.annotations is not None:
            item["annotations"] = self.annotations
        return self._common(item)


def _is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    from importlib.util import find_spec  # at first use: most servers isolate nothing

    try:
        return find_spec(package) is not None
    except ValueError:  # somebody has put something else in its place
        return sys.modules[package] is not None


def _copied(schema: Mapping[str, Any]) -> Json:
    return copy.deepcopy(dict(schema))


def _signature(
    function: Callable[..., Any], context_type: type, *, needed: bool
) -> FunctionSchema | None:
    if needed:
        return function_schema(function, context_type=context_type)
    try:
        return function_schema(function, context_type=context_type)
    except InvalidTool:
        # The schema is given by hand, often just because a hint has none: the hints are not needed.
        return None


def _context_parameter(
    function: Callable[..., Any], signature: FunctionSchema | None, context_type: type
) -> str | None:
    if signature is not None:
        return signature.context_parameter
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # some builtins have none
        return None
    for name, parameter in parameters.items():
        if parameter.annotation in (context_type, context_type.__name__):
            return name
    return None
