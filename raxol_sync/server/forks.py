"""What is done in a process that was just forked: no other thread of its parent is there. Floor 2.

A server that was not used before works in each child: its threads start at first use. One that was
used had threads and state that the child has not; it says so instead of waiting for them.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable

FORKED = (
    "this server was in use before its process was forked and cannot go on here; make it, or use "
    "it first, in the child (gunicorn: without --preload, or in post_fork)"
)

# The objects, and the function that each wants called. Not of ``WeakMethod``: its callback fails
# where both die while the interpreter ends.
_told: weakref.WeakKeyDictionary[object, Callable[..., None]] = weakref.WeakKeyDictionary()


def on_fork(method: Callable[[], None]) -> None:
    """Have a bound method called in each child of this process, as long as its object lives."""
    _told[method.__self__] = method.__func__  # type: ignore[attr-defined]  # it is bound


def _tell() -> None:
    for known, function in list(_told.items()):
        function(known)


if hasattr(os, "register_at_fork"):  # elsewhere there is no fork
    os.register_at_fork(after_in_child=_tell)
