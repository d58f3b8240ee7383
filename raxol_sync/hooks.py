"""Callables that users hand in: refused where nobody would run what they return. Floor 1; pure.

An ``async def`` or a generator function returns at once, and its body is never run. As a guard it
would let everybody in, as an observer it would observe nothing; so it is refused when it is given.
"""

from __future__ import annotations

import functools
from types import AsyncGeneratorType, GeneratorType
from typing import Any

ASYNC = (
    "is asynchronous, and callbacks run in threads without an event loop; "
    "write `def` instead of `async def` and use blocking calls"
)
GENERATOR = "is a generator, whose body nobody would run; use return instead of yield"


def problem_of(function: Any, *, generators: bool = False) -> str | None:
    """Return why a callable cannot be a hook, ``None`` if it can; ``generators``: those may be."""
    import inspect  # at first use: it is slow to import, and most programs give few hooks

    while isinstance(function, functools.partial):
        function = function.func
    own = None if inspect.isroutine(function) else type(function).__call__
    for called in (function, own):
        if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
            return ASYNC
        if not generators and inspect.isgeneratorfunction(called):
            return GENERATOR
    return None


def check_hook(name: str, hook: Any, *, generators: bool = False) -> None:
    """Refuse what cannot be a hook; ``None`` stands for none.

    Raises:
        TypeError: it cannot be called, is asynchronous, or (without ``generators``) a generator.
    """
    if hook is None:
        return
    if not callable(hook):
        raise TypeError(f"{name} must be callable, not {type(hook).__name__}")
    problem = problem_of(hook, generators=generators)
    if problem is not None:
        raise TypeError(f"{name} {problem}")


def is_unrun(value: object) -> bool:
    """Return whether a value is a body that was not run; one that would warn of that is closed."""
    if isinstance(value, GeneratorType):
        value.close()
        return True
    if isinstance(value, AsyncGeneratorType):
        return True
    if not hasattr(type(value), "__await__"):
        return False
    close = getattr(value, "close", None)  # a coroutine's; futures have none
    if callable(close):
        close()
    return True
