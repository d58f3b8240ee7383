"""Looking names up: whoever waits can be woken, and a resolver that hangs harms nobody else."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from raxol_sync.client.handle import Handle
from raxol_sync.client.resolver import MAX_LOOKUPS, Resolver
from tests.waiting import wait_until

FOUND = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 1))]


class Names:
    """Stands in for the system's resolver, which hangs for names that begin with `hang`."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, **options: Any) -> Any:
        if options.get("flags"):
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        self.asked.append(host)
        if host.startswith("hang"):
            self.go.wait(10)
        if host.startswith("bad"):
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return FOUND


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    """The stand-in; look-ups that hang end with the test."""
    found = Names()
    monkeypatch.setattr(socket, "getaddrinfo", found)
    yield found
    found.go.set()
    wait_until(lambda: not lookups())


def lookups() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "raxol-sync-resolver"]


def start(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_c10_an_address_needs_no_look_up() -> None:
    """It is taken as it is, on the request's own thread."""
    assert Resolver().resolve("127.0.0.1", 80, Handle())[0][4] == ("127.0.0.1", 80)
    assert Resolver().resolve("::1", 80, Handle())[0][4][:2] == ("::1", 80)
    assert not lookups()


def test_c10_a_name_is_found_or_is_not(names: Names) -> None:
    """Each waiter raises an error of its own."""
    asked = Resolver()
    assert asked.resolve("good", 1, Handle()) == FOUND
    errors = []
    for _ in range(2):
        with pytest.raises(socket.gaierror, match="no such name") as caught:
            asked.resolve("bad", 1, Handle())
        errors.append(caught.value)
    assert errors[0] is not errors[1]


def test_c10_who_waits_for_a_hanging_look_up_can_be_woken(names: Names) -> None:
    """Before and after it has begun; others go on waiting, for the one look-up of all."""
    asked = Resolver()
    results: list[Any] = []
    handles = [Handle() for _ in range(5)]

    def wait(handle: Handle) -> None:
        try:
            results.append(asked.resolve("hang", 1, handle))
        except OSError as error:
            results.append(error)

    threads = [start(lambda handle=handle: wait(handle)) for handle in handles]  # type: ignore[misc]
    wait_until(lambda: names.asked == ["hang"])
    for handle in handles[:3]:
        handle.end()
    wait_until(lambda: len(results) == 3)
    assert all(isinstance(one, OSError) for one in results)
    names.go.set()
    for thread in threads:
        thread.join(5)
    assert results[3:] == [FOUND, FOUND]
    assert names.asked == ["hang"]
    names.go.clear()
    ended = Handle()
    ended.end()
    begun = time.monotonic()
    with pytest.raises(OSError, match="given up"):
        asked.resolve("hang", 1, ended)
    assert time.monotonic() - begun < 2


def test_c10_look_ups_are_bounded_and_those_given_up_are_not_begun(names: Names) -> None:
    """The next ones wait for a thread, and can be woken there too."""
    asked = Resolver()
    handles = [Handle() for _ in range(MAX_LOOKUPS + 3)]

    def wait(number: int) -> None:
        try:
            asked.resolve(f"hang{number}", 1, handles[number])
        except OSError:
            return

    threads = [start(lambda n=n: wait(n)) for n in range(len(handles))]  # type: ignore[misc]
    wait_until(lambda: len(names.asked) == MAX_LOOKUPS)
    assert len(lookups()) == MAX_LOOKUPS
    for handle in handles:
        handle.end()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()
    names.go.set()
    wait_until(lambda: not lookups())
    assert len(names.asked) == MAX_LOOKUPS
    assert (asked._threads, asked._lookups, len(asked._queue)) == (0, {}, 0)


def test_c10_many_names_at_once_are_all_found(names: Names) -> None:
    """More than there are threads for them."""
    asked, found = Resolver(), []
    threads = [
        start(lambda n=n: found.append(asked.resolve(f"good{n}", 1, Handle())))  # type: ignore[misc]
        for n in range(5 * MAX_LOOKUPS)
    ]
    for thread in threads:
        thread.join(10)
    assert found == [FOUND] * 5 * MAX_LOOKUPS
