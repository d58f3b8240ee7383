"""What `authenticate` may return, and what is nobody however it looks."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from raxol_sync import Context, Server
from tests.server.helpers import req
from tests.server.http.driver import driver_of


class AnonymousUser:
    """As Django has it: true, hashable, and nobody."""

    is_authenticated = False
    is_anonymous = True

    def get_username(self) -> str:
        return ""


class AnonymousMixin:
    """As Flask-Login has it: properties; the other one of the two may be missing."""

    @property
    def is_authenticated(self) -> bool:
        return False


class Older:
    """As both had it once: methods."""

    def __init__(self, known: bool) -> None:
        self._known = known

    def is_authenticated(self) -> bool:
        return self._known

    def is_anonymous(self) -> bool:
        return not self._known


class OnlyAnonymous:
    is_anonymous = True


class User:
    is_authenticated = True
    is_anonymous = False

    def __str__(self) -> str:
        return "ada"


@pytest.mark.parametrize(
    ("who", "status"),
    [
        (AnonymousUser(), 401),
        (AnonymousMixin(), 401),
        (OnlyAnonymous(), 401),
        (Older(False), 401),
        (Older(True), 200),
        (User(), 200),
        ("ada", 200),
        (7, 200),
        (("ada", "admin"), 200),
    ],
)
def test_a_user_who_is_not_logged_in_is_a_stranger(
    server: Server, who: object, status: int
) -> None:
    """`request.user` of a framework is an object for strangers too."""
    answer = driver_of(server, authenticate=lambda environ: who).post(req("ping"))
    assert answer.status == status


class Lazy:
    """A proxy to this thread's user, as Flask's `current_user` is one."""

    _users = threading.local()

    def _get_current_object(self) -> object:
        return getattr(self._users, "user", "nobody's")


def test_a_proxy_is_taken_for_what_it_stands_for_now(server: Server) -> None:
    """In the tool's thread it would be somebody else, and equal to everybody."""

    @server.tool
    def who(context: Context) -> str:
        return f"{type(context.principal).__name__} {context.principal}"

    Lazy._users.user = User()
    http = driver_of(server, authenticate=lambda environ: Lazy())
    assert http.call("who").json["result"]["content"][0]["text"] == "User ada"
    Lazy._users.user = AnonymousUser()
    assert http.call("who").status == 401


async def coroutine(environ: Any) -> str:
    return "ada"


async def async_generator(environ: Any) -> AsyncIterator[str]:
    yield "ada"


def generator(environ: Any) -> Iterator[str]:
    yield "ada"


class Promise:
    def __await__(self) -> Iterator[None]:
        yield None


@pytest.mark.parametrize(
    "make", [coroutine, async_generator, generator, lambda environ: Promise()],
    ids=["coroutine", "async generator", "generator", "awaitable"],
)  # fmt: skip
def test_what_was_not_run_lets_nobody_in(
    server: Server, make: Callable[[Any], Awaitable[str]], caplog: pytest.LogCaptureFixture
) -> None:
    """A wrapper hides that a hook is asynchronous: 500, the log says what to write, no warning."""
    answer = driver_of(server, authenticate=lambda environ: make(environ)).post(req("ping"))
    assert answer.status == 500
    (record,) = [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert "`def` instead of `async def`" in record.getMessage()
    gc.collect()  # a coroutine that nobody closed would warn, which is an error here
