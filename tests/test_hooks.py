"""Callables that a user hands in: none of them is called without anything coming of it."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from raxol_sync import InvalidTool, Server
from raxol_sync.hooks import is_unrun
from tests.server.helpers import req, result


async def coroutine(*given: Any) -> Any: ...


async def async_generator(*given: Any) -> AsyncIterator[int]:
    yield 1


def generator(*given: Any) -> Iterator[str]:
    yield "x"


class AsyncCall:
    async def __call__(self, *given: Any) -> Any: ...


class Methods:
    async def coroutine(self, *given: Any) -> Any: ...


ASYNC: dict[str, Any] = {
    "coroutine": coroutine,
    "async generator": async_generator,
    "callable object": AsyncCall(),
    "method": Methods().coroutine,
    "partial": functools.partial(coroutine, 1),
    "partial of an object": functools.partial(AsyncCall(), 1),
}


def _serve(server: Server, **options: Any) -> Any:
    return server.start_http(port=0, require_authorization=False, **options)


# What takes a hook.
GIVEN: dict[str, Callable[[Server, Any], Any]] = {
    "authorizer": lambda server, hook: Server(authorizer=hook),
    "read_authorizer": lambda server, hook: Server(read_authorizer=hook),
    "unknown_tool_reply": lambda server, hook: Server(unknown_tool_reply=hook),
    "telemetry": lambda server, hook: Server(telemetry=hook),
    "authenticate": lambda server, hook: server.wsgi_app(
        require_authorization=False, authenticate=hook
    ),
    "authenticate of mount": lambda server, hook: server.mount(
        lambda environ, start: [], require_authorization=False, authenticate=hook
    ),
    "authenticate of start_http": lambda server, hook: _serve(server, authenticate=hook),
    "access_log": lambda server, hook: _serve(server, access_log=hook),
    "ready": lambda server, hook: server.run_http(
        port=0, require_authorization=False, access_log=False, ready=hook
    ),
    "subscriber": lambda server, hook: server.subscribe(hook),
    "sink": lambda server, hook: server.request(
        {"jsonrpc": "2.0", "id": 1, "method": "ping"}, sink=hook
    ),
}


@pytest.mark.parametrize("kind", ASYNC)
@pytest.mark.parametrize("place", GIVEN)
def test_an_asynchronous_hook_is_refused_when_it_is_given(place: str, kind: str) -> None:
    """It would return at once and do nothing: as a guard it would let everybody in."""
    with Server("hooks") as server:
        with pytest.raises(TypeError, match="write `def` instead of `async def`") as caught:
            GIVEN[place](server, ASYNC[kind])
        assert str(caught.value).startswith(place.partition(" ")[0])


@pytest.mark.parametrize("place", GIVEN)
def test_a_generator_is_no_hook(place: str) -> None:
    """Nobody would run its body."""
    with (
        Server("hooks") as server,
        pytest.raises(TypeError, match="use return instead of yield"),
    ):
        GIVEN[place](server, generator)


def test_what_goes_with_a_definition_is_refused_too() -> None:
    """As everything else that is wrong with one; a completer may be a generator."""
    with Server("hooks") as server:

        def city(name: str) -> str:
            return name

        wrong = {"name": coroutine}
        for decorate in (
            server.tool(is_fault=coroutine),  # type: ignore[arg-type]
            server.tool(completers=wrong),
            server.prompt(completers=wrong),
            server.resource("city://{name}", completers=wrong),
        ):
            with pytest.raises(InvalidTool, match="`def` instead of `async def`"):
                decorate(city)
        server.tool(completers={"name": generator})(city)
        ref, argument = {"type": "ref/tool", "name": "city"}, {"name": "name", "value": ""}
        asked = req("completion/complete", {"ref": ref, "argument": argument})
        assert result(server, asked)["completion"]["values"] == ["x"]


def test_an_application_for_another_interface_is_not_mounted_in() -> None:
    """ASGI's: the host would get a coroutine as the body."""
    with Server("hooks") as server, pytest.raises(TypeError, match="ASGI"):
        server.mount(coroutine, require_authorization=False)  # type: ignore[arg-type]


def test_a_body_that_was_not_run_is_known_as_one() -> None:
    """And closed, so that nothing warns of it."""
    for made in (coroutine(), async_generator(), generator()):
        assert is_unrun(made)
    for value in (None, "ann", 7, ("ann", 7), object()):
        assert not is_unrun(value)
