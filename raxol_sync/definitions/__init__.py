"""What a server offers: ``Tool``, ``Resource``, ``ResourceTemplate``, ``Prompt``. Floor 2.

Each is validated when it is built and immutable afterwards, so a registry can hand it to any
thread. A directly built one calls ``callback(arguments)`` with one dict (a resource:
``callback()``); ``from_function`` makes one of a plain function, whose type hints and docstring
become the schema.
"""

from raxol_sync.definitions.base import Definition
from raxol_sync.definitions.prompt import Prompt
from raxol_sync.definitions.resource import Resource, ResourceTemplate
from raxol_sync.definitions.tool import Tool

__all__ = ["Definition", "Prompt", "Resource", "ResourceTemplate", "Tool"]
