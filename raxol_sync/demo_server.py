"""The server that ``python -m raxol_sync demo`` starts and calls. Floor 5.

Run it alone with ``python -m raxol_sync.demo_server`` to point another client at it; over HTTP with
``raxol-sync serve raxol_sync.demo_server --http 8000 --allow-all``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from raxol_sync.content import Message
from raxol_sync.errors import ToolError
from raxol_sync.policy import ALLOW, Ask, AuthorizationContext
from raxol_sync.server.context import Context
from raxol_sync.server.server import Server


def policy(tool: str, arguments: Mapping[str, Any], context: AuthorizationContext) -> object:
    """Let everything run, but have a person approve of what cannot be undone."""
    if tool == "cancel_booking":
        return Ask(f"Cancel the table of {arguments.get('guest', 'a guest')}?")
    return ALLOW


server = Server(
    "raxol_sync demo",
    instructions="Four small tools, a resource and a prompt.",
    authorizer=policy,
    authorizer_source="configured",
)


class Split(TypedDict):
    """What ``split_bill`` answers."""

    each: float
    rest: float


@server.tool
def split_bill(
    total: Annotated[float, "what the meal cost"],
    people: Annotated[int, "how many share it"] = 2,
) -> Split:
    """Split a bill evenly, rounded down to cents."""
    if people < 1:
        raise ToolError("a bill needs at least one person to pay it")
    cents, rest = divmod(round(total * 100), people)
    return Split(each=cents / 100, rest=rest / 100)


@server.tool
def count(to: int, context: Context) -> str:
    """Count slowly, and tell the progress."""
    for number in range(1, to + 1):
        context.progress(number, to, f"counted to {number}")
        time.sleep(0.02)
    return f"counted to {to}"


@server.tool
def nap(seconds: float, context: Context) -> str:
    """Do nothing for a while; stops early when nobody waits for it any more."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        context.check_cancelled()
        time.sleep(min(left, 0.05))
    return f"slept for {seconds:g} s"


@server.tool(annotations={"destructiveHint": True})
def cancel_booking(guest: str) -> str:
    """Cancel a booked table; a person must approve."""
    return f"the table of {guest} is free again"


@server.resource("demo://menu/{meal}")
def menu(meal: str) -> str:
    """What there is to eat."""
    meals = {"breakfast": "porridge", "lunch": "soup", "dinner": "dumplings"}
    if meal not in meals:
        raise ToolError(f"no menu for {meal}; there is one for {', '.join(meals)}")
    return meals[meal]


@server.prompt
def review(dish: str, stars: int = 5) -> list[Message]:
    """Ask for a restaurant review."""
    return [Message(f"Write a {stars}-star review of the {dish}, in two sentences.")]


if __name__ == "__main__":
    server.run()
