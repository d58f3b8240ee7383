"""The parts of the HTTP transport alone: targets, headers, events, metering, backoff, the guard."""

from __future__ import annotations

import itertools
import json
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_sync.client import headers, targets
from raxol_sync.client.backoff import Backoff
from raxol_sync.client.client import Client
from raxol_sync.client.metering import Reservation, ReservationLedger
from raxol_sync.client.sse import EventReader
from raxol_sync.errors import (
    Busy,
    HTTPStatusError,
    InvalidSpec,
    MessageTooLarge,
    RedirectRefused,
    RequestTimeout,
    RPCError,
    TargetBlocked,
    UnknownPrice,
    UnmeteredCall,
)
from tests.client.http.hostile import Conn, Hostile, Polite, Seen, failure, result

Connect = Callable[..., Client]

# ---------------------------------------------------------------- targets


@pytest.mark.parametrize(
    ("url", "origin", "clean"),
    [
        ("https://a.example", "https://a.example:443", "https://a.example/"),
        ("HTTPS://A.example:443/x?y=1#z", "https://a.example:443", "https://a.example/x?y=1"),
        ("http://localhost:80/mcp", "http://localhost:80", "http://localhost/mcp"),
        ("http://127.0.0.9:8000/mcp", "http://127.0.0.9:8000", "http://127.0.0.9:8000/mcp"),
        ("http://[::1]:8000/mcp", "http://[::1]:8000", "http://[::1]:8000/mcp"),
        ("https://u:p@a.example/", "https://a.example:443", "https://a.example/"),
    ],
)
def test_c23_targets(url: str, origin: str, clean: str) -> None:
    """What is dialled has no userinfo and no fragment."""
    found = targets.parse_target(url)
    assert (found.origin, found.url) == (origin, clean)
    assert (found.authorization is not None) == ("@" in url)


@pytest.mark.parametrize("url", ["", "x", "ftp://a", "https://", "https://a b", "https://a\n", 7])
def test_c23_what_is_no_target(url: object) -> None:
    """`InvalidSpec`."""
    with pytest.raises(InvalidSpec):
        targets.parse_target(url)


def test_c23_plain_http_is_for_this_machine() -> None:
    """Unless `allow_http` says otherwise."""
    for url in ("http://far.example/", "http://10.0.0.1/", "http://localhost.evil.example/"):
        with pytest.raises(TargetBlocked):
            targets.parse_target(url)
        for kind in (InvalidSpec, TargetBlocked):  # a client that is made with it says both
            with pytest.raises(kind):
                Client("x", url=url)
        assert targets.parse_target(url, allow_http=True).scheme == "http"


@pytest.mark.parametrize(
    ("address", "refused"),
    [
        ("93.184.216.34", False), ("2606:4700::1111", False), ("10.0.0.1", True),
        ("127.0.0.1", True), ("169.254.169.254", True), ("100.64.0.1", True), ("0.0.0.0", True),
        ("224.0.0.1", True), ("::1", True), ("fe80::1%eth0", True), ("fd00::1", True),
        ("::ffff:10.0.0.1", True), ("2002:0a00:0001::", True), ("64:ff9b::a00:1", True),
        ("nonsense", True), ("255.255.255.255", True),
    ],
)  # fmt: skip
def test_c23_private_addresses(address: str, refused: bool) -> None:
    """Also those inside of IPv6 addresses."""
    assert targets.refused_address(address) is refused


def test_c23_block_private_dials_only_what_it_checked(connect: Connect) -> None:
    """A host that resolves to this machine is refused, with the rule's name."""
    client = connect(Polite(), block_private=True)
    with pytest.raises(Exception, match="block_private"):
        client.__enter__()


def test_c23_redirects_are_never_followed(connect: Connect, host: Any) -> None:
    """`RedirectRefused` says where to, without its secrets."""
    polite = Polite()
    location = {"Location": "https://u:p@b.example/x?key=1#f"}
    polite.on["tools/call"] = lambda seen, conn: conn.reply(308, b"", location)
    with connect(polite) as client, pytest.raises(RedirectRefused) as caught:
        client.call_tool("echo")
    assert (caught.value.status, caught.value.location) == (308, "https://b.example/x")


@pytest.mark.parametrize("name", ["Host", "mcp-session-id", "Mcp-Param-X", "Accept", "a b", ""])
def test_c23_reserved_headers(name: str) -> None:
    """They are the client's own."""
    with pytest.raises(InvalidSpec):
        targets.check_headers({name: "x"})


@given(st.dictionaries(st.text(), st.text()))
def test_c23_no_header_breaks_out(given_headers: dict[str, str]) -> None:
    """What is let through has no line end."""
    try:
        found = targets.check_headers(given_headers)
    except InvalidSpec:
        return
    for name, value in found.items():
        assert "\n" not in name + value
        assert "\r" not in name + value


def test_c27_auth_is_any_requests_auth_object(connect: Connect, host: Any) -> None:
    """It sees the prepared request."""
    from requests.auth import HTTPBasicAuth

    server = host(Polite())
    with connect(server, auth=HTTPBasicAuth("u", "p")) as client:
        client.call_tool("echo")
    assert all(seen.headers["authorization"] == "Basic dTpw" for seen in server.seen)


def test_c27_a_digest_is_answered(connect: Connect, host: Any) -> None:
    """An auth object may send the request again."""
    from requests.auth import HTTPDigestAuth

    polite = Polite()

    def script(seen: Seen, conn: Conn) -> None:
        if "authorization" in seen.headers:
            polite(seen, conn)
        else:
            conn.reply(401, b"", {"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth"'})

    with connect(script, auth=HTTPDigestAuth("u", "p")) as client:
        assert client.call_tool("echo", {"text": "in"}).content[0].text == "in"  # type: ignore[union-attr]


# ---------------------------------------------------------------- headers


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("us-west1", "us-west1"), (42, "42"), (-7, "-7"), (True, "true"), (False, "false"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="), ("", ""),
    ],
)  # fmt: skip
def test_c30_values_are_encoded_as_the_specification_shows(value: Any, encoded: str) -> None:
    """The table of its page."""
    assert headers.encode_value(value) == encoded


@given(st.text())
def test_c30_any_value_is_safe_and_comes_back(value: str) -> None:
    """Visible ASCII inside; decoding gives the value."""
    import base64

    try:
        value.encode()
    except UnicodeEncodeError:
        return
    found = headers.encode_value(value)
    assert all(" " <= char <= "~" or char == "\t" for char in found)
    assert found == found.strip()
    if found.startswith("=?base64?") and found.endswith("?="):
        found = base64.b64decode(found[9:-2]).decode()
    assert found == value


def test_c30_param_headers_come_from_the_last_list(connect: Connect, host: Any) -> None:
    """And -32020 lists again and sends once more; no value, no header."""
    polite = Polite("modern")
    name = ["Region"]

    def tools(seen: Seen, conn: Conn) -> None:
        region = {"type": "string", "x-mcp-header": name[0]}
        schema = {"type": "object", "properties": {"region": region}}
        conn.json(result(seen, {"tools": [{"name": "sql", "inputSchema": schema}]}))

    def call(seen: Seen, conn: Conn) -> None:
        if f"mcp-param-{name[0].lower()}" in seen.headers:
            polite.behave(seen, conn)
        else:
            conn.json(failure(seen, -32020), 400)

    polite.on.update({"tools/list": tools, "tools/call": call})
    server = host(polite)
    with connect(server) as client:
        client.list_tools()
        client.call_tool("sql", {"region": "us-west1"})
        assert server.of("tools/call")[-1].headers["mcp-param-region"] == "us-west1"
        name[0] = "Zone"
        client.call_tool("sql", {"region": "us-west1"})
        assert server.of("tools/call")[-1].headers["mcp-param-zone"] == "us-west1"
        assert len(server.of("tools/list")) == 2
        with pytest.raises(RPCError):
            client.call_tool("sql", {})
        assert len(server.of("tools/list")) == 3
        name[0] = "Area"
        future = client.submit_tool("sql", {"region": "us-west1"})
        future.result(5)
        assert server.of("tools/call")[-1].headers["mcp-param-area"] == "us-west1"
        assert client.status().pending == 0


def test_c30_the_deadline_covers_the_second_list(connect: Connect) -> None:
    """A list that is not answered: the call times out, and so does a future."""
    polite = Polite("modern")
    polite.on["tools/call"] = lambda seen, conn: conn.json(failure(seen, -32020), 400)
    with connect(polite) as client:
        client.list_tools()
        polite.on["tools/list"] = lambda seen, conn: conn.wait_gone(10)
        with pytest.raises(RequestTimeout):
            client.call_tool("echo", timeout=0.3)
        with pytest.raises(RequestTimeout):
            client.submit_tool("echo", timeout=0.3).result(5)
        future = client.submit_tool("echo", timeout=5.0)
        threading.Event().wait(0.1)
        assert future.cancel()
        assert future.cancelled()


def test_c09_c30_a_tool_with_a_bad_header_is_left_out(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """Over HTTP in the modern era; its name and the reason are logged."""
    polite = Polite("modern")

    def tools(seen: Seen, conn: Conn) -> None:
        bad = {"type": "object", "properties": {"x": {"type": "string", "x-mcp-header": "a b"}}}
        good = {"type": "object"}
        found = [{"name": "bad", "inputSchema": bad}, {"name": "good", "inputSchema": good}]
        conn.json(result(seen, {"tools": found}))

    polite.on["tools/list"] = tools
    with connect(polite) as client, caplog.at_level(logging.WARNING, "raxol_sync"):
        assert [tool.name for tool in client.list_tools()] == ["good"]
    assert "bad" in caplog.text
    assert "x-mcp-header" in caplog.text


# ---------------------------------------------------------------- events


def events(chunks: list[bytes], **limits: Any) -> list[tuple[str, str | None]]:
    reader = EventReader(iter(chunks), max_event=10_000, **{"max_total": None, **limits})
    return [tuple(event) for event in reader]  # type: ignore[misc]


STREAM = (
    "\ufeff: a comment\r\n\r\ndata:no space\r\n\r\nevent: other\ndata: two\ndata: lines\n\n"
    'id: 7\n\nretry: 250\nid: 8\ndata: {"t": "\u2028 \u0085 世界"}\n\ndata:\n\ndata\n\n'
    "data: cr\r\rdata: last\n\ndata: never finished"
).encode()
EXPECTED = [
    ("message", "no space"),
    ("other", "two\nlines"),
    ("message", '{"t": "\u2028 \u0085 世界"}'),
    ("message", "cr"),
    ("message", "last"),
]


@given(st.lists(st.integers(0, len(STREAM))))
def test_c21_any_cut_gives_the_same_events(cuts: list[int]) -> None:
    """Also inside a character, a CRLF or a field; what is unfinished or empty is no event."""
    places = sorted({0, *cuts, len(STREAM)})
    chunks = (STREAM[a:b] for a, b in itertools.pairwise(places))
    reader = EventReader(chunks, max_event=10_000, max_total=None)
    assert [tuple(event) for event in reader] == EXPECTED
    assert (reader.last_id, reader.retry) == ("8", 0.25)


@given(st.lists(st.binary(max_size=40)))
def test_c21_no_stream_raises(chunks: list[bytes]) -> None:
    """Whatever the bytes are."""
    events(chunks)


def test_c21_an_event_and_a_response_are_bounded() -> None:
    """By their own limits; the first is not held whole."""
    events([b"data: " + b"x" * 9_990, b"\n\n"])
    with pytest.raises(MessageTooLarge):
        events([b"data: " + b"x" * 10_010])
    with pytest.raises(MessageTooLarge):
        events([b"data: x\n\n"] * 100, max_total=500)


def test_c21_an_event_that_is_not_utf8_is_told() -> None:
    """And the next one is read."""
    assert events([b"data: \xff\n\ndata: ok\n\n"]) == [("message", None), ("message", "ok")]


# ---------------------------------------------------------------- metering


def test_c25_a_ledger_mints_expires_and_consumes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a budget."""
    moment = [100.0]
    monkeypatch.setattr("raxol_sync.client.metering.now", lambda: moment[0])
    ledger = ReservationLedger(10.0)
    first = ledger.mint("a", 6.0)
    with pytest.raises(UnmeteredCall, match="budget"):
        ledger.mint("a", 5.0)
    with pytest.raises(UnmeteredCall, match="another tool"):
        ledger.hold(first, "b")
    ledger.hold(first, "a")
    with pytest.raises(UnmeteredCall, match="in use"):
        ledger.hold(first, "a")
    ledger.give_back(first)
    ledger.hold(first, "a")
    ledger.spend(first)
    assert ledger.remaining == 4.0
    with pytest.raises(UnmeteredCall):
        ledger.hold(first, "a")
    late = ledger.mint("a", 4.0, lifetime=5.0)
    moment[0] += 6.0
    with pytest.raises(UnmeteredCall, match="expired"):
        ledger.hold(late, "a")
    assert ledger.remaining == 4.0
    with pytest.raises(UnmeteredCall):
        ledger.hold(Reservation("made up", "a", 1.0), "a")


def test_c25_threads_never_spend_more_than_the_budget() -> None:
    """Sixteen mint and spend at once."""
    ledger = ReservationLedger(100.0)
    spent: list[float] = []

    def work() -> None:
        for _ in range(50):
            try:
                found = ledger.mint("a", 1.0)
                ledger.hold(found, "a")
                ledger.spend(found)
                spent.append(1.0)
            except UnmeteredCall:
                pass

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(spent) == 100.0
    assert ledger.remaining == 0.0


def test_c25_no_request_without_a_price_and_a_reservation(connect: Connect, host: Any) -> None:
    """What was sent is paid for, once; what was not sent is given back."""
    polite = Polite("modern")
    server = host(polite)
    ledger = ReservationLedger(10.0)
    settings: dict[str, Any] = {"prices": {"echo": 2.0}, "reservations": ledger}
    with connect(server, concurrency="serialized", queue_limit=0, **settings) as client:
        with pytest.raises(UnmeteredCall):
            client.call_tool("echo")
        with pytest.raises(UnknownPrice):
            client.submit_tool("other", reservation="x")
        assert not server.of("tools/call")
        paid = ledger.mint("echo", 2.0)
        client.call_tool("echo", reservation=paid)
        assert ledger.remaining == 8.0
        with pytest.raises(UnmeteredCall):
            client.call_tool("echo", reservation=paid)
        kept = ledger.mint("echo", 1.0)
        for _ in range(3):  # what cannot be sent costs nothing
            with pytest.raises(ValueError, match="JSON"):
                client.call_tool("echo", {"x": object()}, reservation=kept)
        ledger.hold(kept, "echo")
        ledger.spend(kept)
        gate = threading.Event()

        def hold(seen: Seen, conn: Conn) -> None:
            gate.wait(5)
            polite.behave(seen, conn)

        polite.on["tools/call"] = hold
        one, two = ledger.mint("echo", 2.0), ledger.mint("echo", 2.0)
        future = client.submit_tool("echo", reservation=one)
        with pytest.raises(Busy):
            client.call_tool("echo", reservation=two)
        gate.set()
        future.result(5)
        del polite.on["tools/call"]
        client.call_tool("echo", reservation=two)
        assert ledger.remaining == 3.0


def test_c25_an_open_breaker_consumes_nothing(connect: Connect) -> None:
    """`BreakerOpen` gives the reservation back; a status does not."""
    polite = Polite("modern")
    ledger = ReservationLedger(100.0)
    with connect(polite, metered=True, prices={"echo": 1.0}, reservations=ledger) as client:
        polite.on["tools/call"] = lambda seen, conn: conn.reply(500)
        for _ in range(5):
            with pytest.raises(HTTPStatusError):
                client.call_tool("echo", reservation=ledger.mint("echo", 1.0))
        kept = ledger.mint("echo", 1.0)
        for _ in range(3):
            with pytest.raises(Exception, match="keeps failing"):
                client.call_tool("echo", reservation=kept)
        assert ledger.remaining == 94.0


def test_c25_opaque_reservations_are_used_once(connect: Connect) -> None:
    """Without a ledger any value will do."""
    with connect(Polite(), prices={"echo": 1}) as client:
        client.call_tool("echo", reservation="r1")
        with pytest.raises(UnmeteredCall):
            client.call_tool("echo", reservation="r1")
        client.call_tool("echo", reservation="r2")


# ---------------------------------------------------------------- backoff


@given(st.floats(0.001, 100), st.integers(1, 40))
def test_c15_delays_double_up_to_the_longest(first: float, count: int) -> None:
    """And no number overflows."""
    delays: list[float] = []
    backoff = Backoff(first, threading.Event(), sleep=delays.append)
    for _ in range(count):
        assert backoff.wait()
    most = max(60.0, first)
    assert delays == pytest.approx([min(first * 2**n, most) for n in range(count)])
    backoff.reset()
    assert backoff.next_delay() == pytest.approx(first)


def test_c15_a_closed_backoff_does_not_wait() -> None:
    """It says that the attempt is not to be made."""
    closing = threading.Event()
    closing.set()
    assert Backoff(600.0, closing).wait() is False


# ---------------------------------------------------------------- requests missing


def test_c01_without_requests_a_url_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """`InvalidSpec` names it, before anything starts."""
    import sys

    from raxol_sync.client import means

    means.means.cache_clear()
    monkeypatch.setitem(sys.modules, "requests", None)
    with pytest.raises(InvalidSpec, match="requests"):
        Client("x", url="https://a.example/mcp")
    monkeypatch.undo()
    Client("x", url="https://a.example/mcp")


def test_c01_headers_go_with_a_url_only() -> None:
    """They would be lost otherwise."""
    with pytest.raises(InvalidSpec, match="url="):
        Client("x", command="y", headers={"a": "b"})


@pytest.fixture
def loop() -> Iterator[Hostile]:
    """A server on this machine's name."""
    server = Hostile(Polite())
    yield server
    server.close()


def test_c21_localhost_by_name_and_no_environment(
    connect: Connect, loop: Hostile, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """No proxy, no netrc and no cookies for this machine."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine localhost login u password p\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    loop.script = lambda seen, conn: _with_cookie(seen, conn)
    with connect(loop, url=f"http://localhost:{loop.port}/mcp") as client:
        client.call_tool("echo")
    assert all("authorization" not in seen.headers for seen in loop.seen)
    assert all("cookie" not in seen.headers for seen in loop.seen)


def _with_cookie(seen: Seen, conn: Conn) -> None:
    value = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "content": []}
    body = json.dumps(result(seen, value)).encode()
    conn.reply(200, body, {"Content-Type": "application/json", "Set-Cookie": "a=b"})


def test_c21_a_proxy_that_was_given_is_used(connect: Connect, loop: Hostile) -> None:
    """`proxies=` as requests takes it; the request goes there in absolute form."""
    proxy = {"http": f"http://127.0.0.1:{loop.port}"}
    with connect(loop, url="http://far.example/mcp", allow_http=True, proxies=proxy) as client:
        client.call_tool("echo")
    assert loop.seen[0].path == "http://far.example/mcp"
