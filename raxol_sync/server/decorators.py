"""``@server.tool``, ``@server.resource``, ``@server.prompt``: functions become offers. Floor 4."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

from raxol_sync.definitions import Prompt, Resource, ResourceTemplate, Tool
from raxol_sync.definitions.tool import IsFault, Isolation
from raxol_sync.errors import InvalidTool
from raxol_sync.protocol.templates import is_template
from raxol_sync.registry import Registry
from raxol_sync.server.context import Context

Json = dict[str, Any]
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
Completers = Mapping[str, Callable[..., Any]]
Icons = Sequence[Mapping[str, Any]]


class Decorators:
    """The registering half of ``Server``. Thread-safe: the registry is."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    @property
    def registry(self) -> Registry:
        """What this server offers; entries may be added and dropped at any time."""
        return self._registry

    @overload
    def tool(self, function: FunctionT, /) -> FunctionT: ...
    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
        isolation: Isolation = "thread",
        is_fault: IsFault | None = None,
        completers: Completers | None = None,
    ) -> Callable[[FunctionT], FunctionT]: ...
    def tool(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
        isolation: Isolation = "thread",
        is_fault: IsFault | None = None,
        completers: Completers | None = None,
    ) -> Any:
        """Register a function as a tool; bare, or with arguments that override what it says.

        Its name, docstring and type hints are the tool's name, description and schemas. It is
        called with keyword arguments, converted to its hints, and is returned unchanged.

        Raises:
            InvalidTool: it cannot be a tool; the text says why and what to do.
        """

        def register(function: FunctionT) -> FunctionT:
            tool = Tool.from_function(
                function,
                context_type=Context,
                name=name,
                description=description,
                input_schema=input_schema,
                output_schema=output_schema,
                title=title,
                annotations=annotations,
                icons=icons,
                meta=meta,
                isolation=isolation,
                is_fault=is_fault,
                completers=completers,
            )
            self._registry.register_tools([tool])
            return function

        _refuse_name(function, "tool")
        return register if function is None else register(function)

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        size: int | None = None,
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
        completers: Completers | None = None,
        cache_ttl: float | None = None,
        cache_scope: str | None = None,
    ) -> Callable[[FunctionT], FunctionT]:
        """Register a function as a resource, or with ``{name}`` in the URI as a template.

        A template's variables are the function's parameters, converted to its hints. ``size``, in
        bytes, is a resource's only. ``cache_ttl`` says for how many seconds a client of the
        stateless era may keep what it read, ``cache_scope`` (``public`` or ``private``) for whom.

        Raises:
            InvalidTool: the URI and the parameters do not fit together, or are not valid; or there
                is no URI, as in a bare ``@server.resource``.
        """
        if not isinstance(uri, str):
            raise InvalidTool(
                "a resource needs a URI: @server.resource('config://app'), or with variables "
                "@server.resource('notes://{name}')"
            )
        options: Json = {
            "name": name,
            "title": title,
            "description": description,
            "mime_type": mime_type,
            "annotations": annotations,
            "icons": icons,
            "meta": meta,
            "cache_ttl": cache_ttl,
            "cache_scope": cache_scope,
        }

        def register(function: FunctionT) -> FunctionT:
            if is_template(uri):
                if size is not None:
                    raise InvalidTool(f"resource template {uri!r}: it has no size of its own")
                template = ResourceTemplate.from_function(
                    uri, function, context_type=Context, completers=completers, **options
                )
                self._registry.register_resource_templates([template])
            else:
                resource = Resource.from_function(
                    uri, function, context_type=Context, size=size, **options
                )
                self._registry.register_resources([resource])
            return function

        return register

    @overload
    def prompt(self, function: FunctionT, /) -> FunctionT: ...
    @overload
    def prompt(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
        completers: Completers | None = None,
    ) -> Callable[[FunctionT], FunctionT]: ...
    def prompt(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Icons = (),
        meta: Mapping[str, Any] | None = None,
        completers: Completers | None = None,
    ) -> Any:
        """Register a function as a prompt; its parameters are the prompt's arguments.

        It returns a ``str``, a ``Message``, a content object, or a list of these.

        Raises:
            InvalidTool: it cannot be a prompt; the text says why.
        """

        def register(function: FunctionT) -> FunctionT:
            prompt = Prompt.from_function(
                function,
                context_type=Context,
                name=name,
                title=title,
                description=description,
                icons=icons,
                meta=meta,
                completers=completers,
            )
            self._registry.register_prompts([prompt])
            return function

        _refuse_name(function, "prompt")
        return register if function is None else register(function)


def _refuse_name(function: object, decorator: str) -> None:
    if isinstance(function, str):
        raise InvalidTool(f"a name goes in name=: @server.{decorator}(name={function[:60]!r})")
