"""Never a hang: every state, every call, every fault (the whole grid, row C10).

A cell brings a client into a state, has the fault happen there, and makes the call. Whatever comes
must come in time; afterwards nothing is pending, no thread works on the request, its socket is
gone, and, where the client has not been stopped, the next call works.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests.adapters

from raxol_sync.client import http
from raxol_sync.client.client import Client
from raxol_sync.errors import (
    ConnectFailed,
    ConnectionLost,
    InvalidResponse,
    MCPError,
    MessageTooLarge,
    NotReady,
    RequestTimeout,
)
from tests.client.http import test_grid as faults
from tests.client.http.hostile import LEGACY, Conn, Hostile, Polite, Script, Seen, result, text
from tests.waiting import wait_until

GRACE = 2.0
SHORT = 0.1  # seconds; the deadline of what will not be answered
PEM = Path(__file__).parent / "tls.pem"
Errors = tuple[type[BaseException], ...]


# ---------------------------------------------------------------- faults


class World:
    """A server, a client of it, and the fault that befalls them."""

    def __init__(self, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fault = fault
        self.gate = threading.Event()  # the fault waits for it
        self.polite = Polite("legacy")
        tls = None
        if fault.tls:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(PEM)
            monkeypatch.setattr(requests.adapters, "DEFAULT_CA_BUNDLE_PATH", str(PEM))
        self.server = Hostile(self.polite, tls=tls)
        self.lookup = "works"
        self.hung = threading.Event()  # ends look-ups that hang
        monkeypatch.setattr(socket, "getaddrinfo", self.getaddrinfo)
        url = self.server.url.replace("127.0.0.1", "named.test")
        self.client = Client(
            "cell",
            url=url,
            allow_http=True,
            protocol_version=LEGACY,
            call_timeout=SHORT,
            init_timeout=SHORT,
            reconnect_delay=0.02,
            max_message_bytes=100_000,
        )

    def getaddrinfo(self, host: str, port: int, **options: Any) -> Any:
        if options.get("flags") and host == "named.test":
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        if self.lookup == "fails":
            self.gate.wait(5)
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        if self.lookup == "hangs":
            self.hung.wait(10)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    def befall(self, *methods: str) -> None:
        """From now on the fault happens to these methods."""
        if self.fault.script is not None:
            script = self.fault.script

            def gated(seen: Seen, conn: Conn) -> None:
                self.gate.wait(5)
                script(seen, conn)

            for method in methods:
                self.polite.on[method] = gated
        if self.fault.begin is not None:
            self.fault.begin(self)

    def heal(self) -> None:
        """The fault is over."""
        self.gate.set()
        self.polite.on.clear()
        if self.fault.end is not None:
            self.fault.end(self)

    def ready(self) -> None:
        """Have a session."""
        self.client.start()
        self.client.await_ready(10)

    def close(self) -> None:
        self.gate.set()
        self.hung.set()
        self.client.stop()
        self.server.close()


@dataclass(frozen=True)
class Fault:
    """What happens, and what a call says that it happens to."""

    script: Script | None
    errors: Errors
    begin: Callable[[World], object] | None = None
    end: Callable[[World], object] | None = None
    tls: bool = False


def duplicate(seen: Seen, conn: Conn) -> None:
    conn.events()
    agreement = {"protocolVersion": LEGACY, "capabilities": {"tools": {}}}
    for _ in range(2):
        conn.event(result(seen, {**text("one"), "tools": [], **agreement}))
    conn.end()


def late(seen: Seen, conn: Conn) -> None:
    time.sleep(2 * SHORT)  # the server's own slowness
    conn.json(result(seen, text("late")))


def one_byte_a_second(seen: Seen, conn: Conn) -> None:
    conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n")
    while not conn.server._closed and not conn.wait_gone(1.0):
        conn.send(b" ")


def endless(seen: Seen, conn: Conn) -> None:
    conn.events()
    while not conn.server._closed:
        conn.chunk(b": still here\n\n" * 50)
        time.sleep(0.001)


def broken_tls(seen: Seen, conn: Conn) -> None:
    conn.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n")
    conn.raw.send(b"this is no record of TLS")
    conn.close()


def _die(world: World) -> None:
    world.server.die()


def _revive(world: World) -> None:
    world.server.revive()


def _no_tls(world: World) -> None:
    world.server.bad_tls = True
    world.server.drop()


def _tls_again(world: World) -> None:
    world.server.bad_tls = False


def _no_name(how: str) -> Callable[[World], None]:
    def begin(world: World) -> None:
        world.lookup = how
        world.server.drop()

    return begin


def _name_again(world: World) -> None:
    world.lookup = "works"
    world.hung.set()


LOST = (ConnectFailed,)  # ConnectionLost is one
TIMES_OUT = (RequestTimeout,)
FAULTS = {
    "silent": Fault(faults.silent, TIMES_OUT),
    "dead": Fault(None, LOST, _die, _revive),
    "closes": Fault(faults.dies, LOST),
    "reset in the body": Fault(faults.resets, LOST),
    "half an event, then silence": Fault(faults.half_event, TIMES_OUT),
    "no TLS": Fault(None, LOST, _no_tls, _tls_again, tls=True),
    "broken TLS": Fault(broken_tls, LOST, tls=True),
    "no such name": Fault(None, LOST, _no_name("fails"), _name_again),
    "a name that hangs": Fault(None, TIMES_OUT, _no_name("hangs"), _name_again),
    "a byte a second": Fault(one_byte_a_second, TIMES_OUT),
    "an endless stream": Fault(endless, (RequestTimeout, MessageTooLarge)),
    "a gzip bomb": Fault(faults.bomb, (ConnectionLost,)),
    "another id": Fault(faults.wrong_id, (InvalidResponse,)),
    "a duplicate answer": Fault(duplicate, ()),
    "an answer after the time-out": Fault(late, TIMES_OUT),
}
assert len(faults.BOMB) < 100_000  # else it would only be too large


# ---------------------------------------------------------------- calls


def await_ready(client: Client) -> object:
    return client.await_ready(SHORT)


CALLS: dict[str, Callable[[Client], object]] = {
    "call_tool": lambda client: client.call_tool("echo", {"text": "x"}),
    "submit_tool": lambda client: client.submit_tool("echo", {"text": "x"}).result(10),
    "list_tools": lambda client: client.list_tools(refresh=True),
    "await_ready": await_ready,
    "stop": lambda client: client.stop(),
}


class Outcome:
    """What a call came to, and how long it took."""

    def __init__(self, call: str, client: Client) -> None:
        self.error: BaseException | None = None
        begun = time.monotonic()
        try:
            CALLS[call](client)
        except MCPError as error:
            self.error = error
        self.seconds = time.monotonic() - begun

    def expect(self, errors: Errors) -> None:
        """It was in time, and one of these; none of them: it returned."""
        assert self.seconds < SHORT + GRACE
        if not errors:
            assert self.error is None
        else:
            assert isinstance(self.error, errors), repr(self.error)


# ---------------------------------------------------------------- states

REFUSED = (NotReady, ConnectFailed)


def starting(world: World, call: str) -> tuple[Outcome, Errors]:
    """Not started yet."""
    world.befall("initialize", "DELETE")
    return Outcome(call, world.client), (() if call == "stop" else (NotReady,))


def initializing(world: World, call: str) -> tuple[Outcome, Errors]:
    """In the handshake, when the fault happens."""
    world.befall("initialize", "DELETE")
    world.client.start()
    if world.fault.script is not None:
        world.server.wait("initialize")
    if call in ("await_ready", "stop"):
        world.gate.set()
    found = Outcome(call, world.client)
    ready = not world.fault.errors and call == "await_ready"
    return found, (() if ready or call == "stop" else REFUSED)


def ready(world: World, call: str) -> tuple[Outcome, Errors]:
    """The fault happens to the call itself, or to another one that is in flight."""
    world.ready()
    world.befall("tools/call", "tools/list", "DELETE")
    world.gate.set()
    if call not in ("await_ready", "stop"):
        return Outcome(call, world.client), world.fault.errors
    other = world.client.submit_tool("echo")
    found = Outcome(call, world.client)
    if call == "stop":
        assert other.done()
    return found, ()


def closed(world: World, call: str) -> tuple[Outcome, Errors]:
    """The fault has ended the handshake; the client waits for the next attempt."""
    if not world.fault.errors:
        world.polite.on["initialize"] = lambda seen, conn: conn.reply(500)
    else:
        world.befall("initialize", "DELETE")
    world.gate.set()
    world.client.start()
    wait_until(lambda: world.client.status().error is not None, GRACE)
    return Outcome(call, world.client), (() if call == "stop" else REFUSED)


def stopping(world: World, call: str) -> tuple[Outcome, Errors]:
    """The fault happens to what ends the session."""
    world.ready()
    world.befall("DELETE")
    thread = threading.Thread(target=world.client.stop)
    thread.start()
    if world.fault.script is not None:
        world.server.wait("DELETE")
    else:
        wait_until(lambda: world.client.status().state == "closed", GRACE)
    world.gate.set()
    found = Outcome(call, world.client)
    thread.join(GRACE)
    assert not thread.is_alive()
    return found, (() if call == "stop" else (NotReady,))


STATES = [starting, initializing, ready, closed, stopping]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for a server to say goodbye."""
    monkeypatch.setattr(http, "GOODBYE_TIME", SHORT)


@pytest.fixture
def make_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], World]]:
    """Make the world of a fault."""
    made: list[World] = []

    def make(name: str) -> World:
        made.append(World(FAULTS[name], monkeypatch))
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("state", STATES, ids=lambda state: str(state.__name__))
def test_c10_every_state_every_call_every_fault(
    make_world: Callable[[str], World],
    state: Callable[[World, str], tuple[Outcome, Errors]],
    fault: str,
    call: str,
) -> None:
    """See the top of this file."""
    world = make_world(fault)
    outcome, errors = state(world, call)
    outcome.expect(errors)
    status = world.client.status()
    assert (status.queued, status.pending) == (0, 0) or (state is ready and call == "await_ready")
    assert_nothing_works(world.client)
    world.heal()
    if call == "stop" or state is stopping:
        assert_nothing_left(world)
        with pytest.raises(NotReady):
            world.client.call_tool("echo")
        return
    if state is starting:
        world.client.start()
    world.client.await_ready(10)
    assert world.client.call_tool("echo", {"text": "next"}, timeout=5).text == "next"
    assert len(world.client.list_tools(timeout=5, refresh=True)) == 1


def assert_nothing_works(client: Client) -> None:
    """No thread works on a request; of those of streams and handshakes nothing is said."""
    link = client._session._link
    transport: Any = None if link is None else link.transport
    if transport is not None and client.status().state == "ready":
        wait_until(lambda: not transport._jobs, GRACE)


def assert_nothing_left(world: World) -> None:
    """No thread of the client's, and no socket, whatever the server does."""
    ours = [t.name for t in threading.enumerate() if t.name.startswith("raxol-sync-cell")]
    assert not ours
    wait_until(lambda: not [conn for conn in world.server.conns if not conn.closed.is_set()], GRACE)
