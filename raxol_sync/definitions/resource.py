"""``Resource`` and ``ResourceTemplate``: what ``resources/read`` reads. Floor 2."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from raxol_sync.definitions.base import (
    Completer,
    Definition,
    Json,
    caching,
    fill_from,
    needs_callable,
    non_empty,
    property_schema,
    refuse_unbound,
    signature_of,
    with_details,
)
from raxol_sync.errors import InvalidTool
from raxol_sync.protocol.templates import TemplateError, UriTemplate, is_template


class Resource(Definition):
    """A resource with a fixed URI. ``callback()`` gives its contents: text, bytes, ``Contents``.

    ``size`` is in bytes. ``cache_ttl`` says for how many seconds a client of the stateless era may
    keep the contents, ``cache_scope`` (``public`` or ``private``, by default the latter) for whom.

    Raises:
        InvalidTool: the uri or the name is empty, the uri is a template, or nothing is callable.
    """

    kind = "resource"

    def __init__(
        self,
        uri: str,
        name: str,
        callback: Callable[..., Any],
        *,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        size: int | None = None,
        icons: Sequence[Mapping[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
        cache_ttl: float | None = None,
        cache_scope: str | None = None,
    ) -> None:
        super().__init__(callback, title=title, icons=icons, meta=meta)
        self.kind = f"resource {uri!r}"
        self.caching = caching(cache_ttl, cache_scope)
        self._check(non_empty("uri", uri), non_empty("name", name), needs_callable(callback))
        self._check(
            f"uri {uri!r} is a template; use ResourceTemplate" if is_template(uri) else None
        )
        self.uri = uri
        self.name = name
        self.description = description
        self.mime_type = mime_type
        item: Json = {"uri": uri, "name": name}
        self.definition = self._common(
            with_details(item, description, mime_type, annotations=annotations, size=size)
        )

    def run(self, arguments: Json, context: object) -> Any:
        """Call the callback; a resource has no arguments."""
        return super().run({}, context) if self._by_keyword else self.callback()

    @property
    def circuit(self) -> tuple[str, str]:
        """The key of its circuit breaker (row S45)."""
        return ("resource", self.uri)

    @classmethod
    def from_function(
        cls, uri: str, function: Callable[..., Any], *, context_type: type, **options: Any
    ) -> Resource:
        """Make a resource of a function that takes nothing but, perhaps, a ``Context``."""
        refuse_unbound(function, f"server.resource({uri!r})")
        signature = signature_of(function, context_type)
        fill_from(options, signature)
        resource = cls(uri, callback=function, **options)
        if signature.parameters:
            names = ", ".join(signature.parameters)
            raise InvalidTool(f"resource {uri!r}: its uri has no variable for {names}")
        resource._use_function(signature, signature.context_parameter)
        return resource


class ResourceTemplate(Definition):
    """Resources whose URIs share an RFC 6570 level-1 template; ``callback`` gets the variables.

    Values arrive percent-decoded and may hold any character, ``/`` and ``..`` included: a callback
    that opens files must check them.

    Raises:
        InvalidTool: the template is not valid or holds no variable, or the name is empty.
    """

    kind = "resource template"

    def __init__(
        self,
        uri_template: str,
        name: str,
        callback: Callable[..., Any],
        *,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        icons: Sequence[Mapping[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
        completers: Mapping[str, Completer] | None = None,
        cache_ttl: float | None = None,
        cache_scope: str | None = None,
    ) -> None:
        super().__init__(callback, title=title, icons=icons, meta=meta, completers=completers)
        self.caching = caching(cache_ttl, cache_scope)
        self.kind = f"resource template {uri_template!r}"
        self._check(
            non_empty("uri_template", uri_template),
            non_empty("name", name),
            needs_callable(callback),
        )
        try:
            self.template = UriTemplate(uri_template)
        except TemplateError as error:
            raise InvalidTool(f"{self.kind}: {error}") from error
        self._check(None if self.template.variables else "it has no variable; use Resource")
        self.uri_template = uri_template
        self.name = name
        self.description = description
        self.mime_type = mime_type
        item: Json = {"uriTemplate": uri_template, "name": name}
        self.definition = self._common(
            with_details(item, description, mime_type, annotations=annotations)
        )

    @property
    def circuit(self) -> tuple[str, str]:
        """The key of its circuit breaker (row S45)."""
        return ("resource", self.uri_template)

    @classmethod
    def from_function(
        cls, uri: str, function: Callable[..., Any], *, context_type: type, **options: Any
    ) -> ResourceTemplate:
        """Make a template of a function whose parameters are the template's variables."""
        refuse_unbound(function, f"server.resource({uri!r})")
        signature = signature_of(function, context_type)
        fill_from(options, signature)
        template = cls(uri, callback=function, **options)
        required = set(signature.input_schema.get("required", ()))
        variables = set(template.template.variables)
        if not required <= variables <= set(signature.parameters):
            names = ", ".join(sorted(variables))
            raise InvalidTool(
                f"resource template {uri!r}: its variables ({names}) must be the function's "
                f"parameters ({', '.join(signature.parameters) or 'none'})"
            )
        template._use_function(signature, signature.context_parameter)
        return template

    def bind(self, variables: dict[str, str]) -> Json:
        """Convert a URI's variables to the callback's hints, or raise ``ArgumentError``."""
        return self._signature.bind(variables) if self._signature is not None else variables

    def argument_schema(self, name: str) -> Mapping[str, Any]:
        """Return the schema of one variable, for completion."""
        return property_schema(self._signature, name)
