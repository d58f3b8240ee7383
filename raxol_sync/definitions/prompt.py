"""``Prompt``: what ``prompts/get`` renders. Floor 2."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from raxol_sync.definitions.base import (
    Completer,
    Definition,
    Json,
    fill_from,
    needs_callable,
    needs_mapping,
    non_empty,
    property_schema,
    refuse_unbound,
    signature_of,
)


class Prompt(Definition):
    """A prompt: a template of messages. ``callback`` gets the arguments, strings by name.

    ``arguments`` are mappings with ``name``, ``description`` and ``required``.

    Raises:
        InvalidTool: the name is empty, an argument has no name, or nothing is callable.
    """

    kind = "prompt"

    def __init__(
        self,
        name: str,
        callback: Callable[..., Any],
        *,
        title: str | None = None,
        description: str | None = None,
        arguments: Sequence[Mapping[str, Any]] = (),
        icons: Sequence[Mapping[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
        completers: Mapping[str, Completer] | None = None,
    ) -> None:
        super().__init__(callback, title=title, icons=icons, meta=meta, completers=completers)
        self.kind = f"prompt {name!r}"
        self._check(non_empty("name", name), needs_callable(callback))
        self._check(*(needs_mapping("an argument", a) for a in arguments))
        self._check(*(non_empty("an argument's name", a.get("name")) for a in arguments))
        self.name = name
        self.description = description
        self.arguments = tuple(dict(a) for a in arguments)
        item: Json = {"name": name}
        if description:
            item["description"] = description
        if arguments:
            item["arguments"] = list(self.arguments)
        self.definition = self._common(item)

    @property
    def circuit(self) -> tuple[str, str]:
        """The key of its circuit breaker (row S45)."""
        return ("prompt", self.name)

    @classmethod
    def from_function(
        cls, function: Callable[..., Any], *, context_type: type, **options: Any
    ) -> Prompt:
        """Make a prompt of a function; its parameters are the prompt's arguments."""
        refuse_unbound(function, "server.prompt")
        signature = signature_of(function, context_type)
        fill_from(options, signature)
        required = signature.input_schema.get("required", ())
        arguments = []
        for name in signature.parameters:
            argument: Json = {"name": name, "required": name in required}
            described = property_schema(signature, name)
            argument.update(
                {key: described[key] for key in ("title", "description") if key in described}
            )
            arguments.append(argument)
        prompt = cls(callback=function, arguments=arguments, **options)
        prompt._use_function(signature, signature.context_parameter)
        return prompt

    def missing(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return the names of required arguments that are not given."""
        return [
            a["name"] for a in self.arguments if a.get("required") and a["name"] not in arguments
        ]

    def bind(self, arguments: Json) -> Json:
        """Convert the arguments to the callback's hints; ``ArgumentError`` if one does not fit."""
        return self._signature.bind(arguments) if self._signature is not None else arguments

    def argument_schema(self, name: str) -> Mapping[str, Any]:
        """Return the schema of one argument, for completion."""
        return property_schema(self._signature, name)
