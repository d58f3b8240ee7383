"""Who is let in: hosts, origins, principals, the deployment gate, and what is never told."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from raxol_sync import (
    ALLOW,
    Ask,
    Context,
    Deny,
    Deployment,
    DeploymentError,
    SensitiveToolError,
    Server,
    allow_all,
)
from raxol_sync.policy import AuthorizationContext
from tests.server.helpers import call, initialize, req
from tests.server.http.driver import Driver, Json, driver_of

# ---------------------------------------------------------------- DNS rebinding


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:8000", None, 200),
        ("127.0.0.1", None, 200),
        ("[::1]:9", None, 200),
        ("LOCALHOST", None, 200),
        (None, None, 200),
        ("evil.example.com", None, 421),
        ("localhost.evil.example.com", None, 421),
        ("127.0.0.1.evil.example.com", None, 421),
        ("evil.example.com:8000", "http://evil.example.com:8000", 421),
        ("localhost, evil.example.com", None, 421),
        ("localhost:80:80", None, 421),
        ("", None, 421),
        ("192.168.1.7:8000", None, 421),
        ("localhost:8000", "http://localhost:8000", 200),
        ("localhost:8000", "http://127.0.0.1:3000", 200),
        ("localhost:8000", "http://[::1]", 200),
        ("localhost:8000", "http://evil.example.com", 403),
        ("localhost:8000", "http://localhost.evil.example.com", 403),
        ("localhost:8000", "http://localhost@evil.example.com", 403),
        ("localhost:8000", "http://evil.example.com/localhost", 403),
        ("localhost:8000", "null", 403),
        ("localhost:8000", "", 403),
        ("localhost:8000", "localhost:8000", 403),
        (None, "http://localhost", 403),
    ],
)
def test_only_loopback_names_are_served_by_default(
    server: Server, host: str | None, origin: str | None, status: int
) -> None:
    """A page that has its own name resolve to us is refused, whatever it says (S29)."""
    http = driver_of(server)
    answer = http.modern("server/discover", environ={"HTTP_HOST": host, "HTTP_ORIGIN": origin})
    assert answer.status == status
    if status != 200:
        assert answer.code == -32600
        assert "id" not in answer.json


def test_every_endpoint_is_guarded(server: Server) -> None:
    """All but `/health`, which tells nothing."""
    http = driver_of(server)
    for method, path in [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("OPTIONS", "/mcp"),
        ("GET", "/sse"),
        ("POST", "/messages"),
    ]:
        evil = {"Host": "evil.example.com", "Origin": "http://evil.example.com"}
        assert http.send(method, path, headers=evil).status == 421
        assert http.send(method, path, headers={"Origin": evil["Origin"]}).status == 403
    assert http.send("GET", "/health", headers={"Host": "10.0.0.7"}).json == {"status": "ok"}


@pytest.mark.parametrize(
    ("hosts", "host", "origin", "status"),
    [
        (["mcp.example.com"], "mcp.example.com", None, 200),
        (["mcp.example.com"], "mcp.example.com:8443", None, 200),
        (["MCP.example.com"], "mcp.EXAMPLE.com", None, 200),
        (["mcp.example.com"], "localhost:8000", None, 421),
        (["mcp.example.com:8443"], "mcp.example.com:8443", None, 200),
        (["mcp.example.com:8443"], "mcp.example.com", None, 421),
        (["mcp.example.com"], "mcp.example.com", "https://mcp.example.com", 200),
        (["mcp.example.com"], "mcp.example.com", "https://other.example.com", 403),
        (["mcp.example.com"], "mcp.example.com:8443", "https://mcp.example.com:9", 403),
        (["mcp.example.com"], "mcp.example.com", "http://localhost:3000", 403),
        (["::1"], "[::1]:8000", None, 200),
        (["*"], "anything.example.com", None, 200),
        (["*"], "anything.example.com", "http://other.example.com", 403),
    ],
)
def test_other_names_are_allowed_by_name(
    server: Server, hosts: list[str], host: str, origin: str | None, status: int
) -> None:
    """Then the loopback ones are not, unless they are named too."""
    http = driver_of(server, allowed_hosts=hosts)
    answer = http.modern("server/discover", environ={"HTTP_HOST": host, "HTTP_ORIGIN": origin})
    assert answer.status == status


def test_pages_of_allowed_origins_may_read_what_is_answered(server: Server) -> None:
    """Errors too; a browser asks first, without credentials."""
    http = driver_of(
        server, allowed_origins=["https://App.example.com/"], authenticate=lambda environ: None
    )
    origin = "https://app.example.com"
    wanted = "content-type, mcp-param-region"
    asked = http.send(
        "OPTIONS",
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": wanted,
        },
    )
    assert asked.status == 204
    assert asked.headers["access-control-allow-origin"] == origin
    assert asked.headers["access-control-allow-methods"] == "POST, GET, DELETE"
    assert asked.headers["access-control-allow-headers"] == wanted
    answer = http.post(req("ping"), {"Origin": origin})
    assert answer.status == 401
    assert answer.headers["access-control-allow-origin"] == origin
    assert "Mcp-Session-Id" in answer.headers["access-control-expose-headers"]
    assert answer.headers["vary"] == "Origin"
    own = http.post(req("ping"), {"Origin": "http://localhost:8000"})
    assert "access-control-allow-origin" not in own.headers
    odd = http.send(
        "OPTIONS",
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "x\r\nSet-Cookie: a=b",
        },
    )
    assert "Set-Cookie" not in odd.headers["access-control-allow-headers"]
    assert http.send("OPTIONS").status == 401


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"allowed_hosts": "example.com"}, TypeError, "allowed_hosts"),
        ({"allowed_origins": "https://example.com"}, TypeError, "allowed_origins"),
        ({"allowed_hosts": ["https://example.com"]}, ValueError, "https://example.com"),
        ({"allowed_hosts": ["a b"]}, ValueError, "allowed_hosts"),
        ({"allowed_origins": ["example.com"]}, ValueError, "https://example.com"),
        ({"authenticate": "me"}, TypeError, "authenticate"),
        ({"www_authenticate": "Bearer\r\nSet-Cookie: a=b"}, ValueError, "www_authenticate"),
        ({"max_body_bytes": 0}, ValueError, "max_body_bytes"),
        ({"max_sessions": -1}, ValueError, "max_sessions"),
        ({"max_streams": 1.5}, TypeError, "max_streams"),
        ({"session_idle_timeout": -1}, ValueError, "session_idle_timeout"),
        ({"keep_alive": 0}, ValueError, "keep_alive"),
        ({"keep_alive": None}, ValueError, "keep_alive"),
        ({"path": "mcp"}, ValueError, "/mcp"),
        ({"path": "/mcp?x"}, ValueError, "/mcp"),
        ({"require_authorization": "no"}, TypeError, "require_authorization"),
    ],
)
def test_options_are_checked_at_once(
    server: Server, options: Json, error: type[Exception], words: str
) -> None:
    """In words that name the option."""
    for make in (server.wsgi_app, lambda **given: server.mount(lambda e, s: [], **given)):
        with pytest.raises(error, match=words):
            make(**{"require_authorization": False, **options})


# ---------------------------------------------------------------- who it is


def bearer(environ: Mapping[str, Any]) -> str | None:
    """A tiny hook: who a token belongs to."""
    kind, _, token = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    return {"t0k-ann": "ann", "t0k-bob": "bob"}.get(token) if kind == "Bearer" else None


def credentials(who: str) -> dict[str, Any]:
    """What a client of that name sends."""
    return {"Authorization": f"Bearer t0k-{who}", "X-Mark": "!"}


def test_a_stranger_gets_401(server: Server) -> None:
    """With what the client should bring; before anything is read."""
    http = driver_of(server, authenticate=bearer, www_authenticate='Bearer realm="mcp"')
    for method, path in [("POST", "/mcp"), ("GET", "/mcp"), ("GET", "/sse"), ("POST", "/messages")]:
        answer = http.send(method, path, b"{")
        assert (answer.status, answer.headers["www-authenticate"]) == (401, 'Bearer realm="mcp"')
    assert http.send("GET", "/health").status == 200


def test_s25_the_principal_reaches_the_authorizer_and_the_tool() -> None:
    """And `Context.environ` is the request's."""
    seen: list[AuthorizationContext] = []

    def authorizer(name: str, arguments: object, context: AuthorizationContext) -> object:
        seen.append(context)
        return ALLOW if context.principal == "ann" else Deny("not you")

    server = Server(
        "http",
        authorizer=authorizer,
        authorizer_source="configured",
        read_authorizer=allow_all(),
    )
    with server:

        @server.tool
        def whoami(context: Context) -> str:
            assert context.environ is not None
            return f"{context.principal} {context.environ['HTTP_X_MARK']}"

        http = Driver(server.wsgi_app(authenticate=bearer))
        ann, bob = (credentials(who) for who in ("ann", "bob"))
        answer = http.call("whoami", headers=ann)
        assert answer.json["result"]["content"][0]["text"] == "ann !"
        assert http.call("whoami", headers=bob).json["result"]["isError"] is True
        opened = http.post(initialize(), ann)
        session = {**ann, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
        answer = http.post(call("whoami"), session)
        assert answer.json["result"]["content"][0]["text"] == "ann !"
        tools = http.modern("tools/list", headers=bob).json["result"]
        assert tools["tools"] == []
        assert tools["cacheScope"] == "private"
        assert {context.principal for context in seen} == {"ann", "bob"}


def test_s30_the_transport_is_declared_by_our_side() -> None:
    """Whatever a client says; anonymous ones and sessions alike."""
    seen: list[object] = []

    def authorizer(name: str, arguments: object, context: AuthorizationContext) -> object:
        seen.append(context.transport)
        return ALLOW

    with Server("http", authorizer=authorizer, authorizer_source="configured") as server:

        @server.tool
        def hello() -> str:
            return "hi"

        http = driver_of(server)
        http.call("hello")
        http.post(call("hello"))
        http.open().post(call("hello"))
        server.handle_message(call("hello"), "direct")
        assert seen == ["sse", "sse", "sse", "unknown"]


def test_s42_a_state_is_its_principals() -> None:
    """Another one's retry cannot use it."""

    def authorizer(name: str, arguments: object, context: AuthorizationContext) -> object:
        return Ask("Sure?")

    with Server("http", authorizer=authorizer, authorizer_source="configured") as server:

        @server.tool
        def drop() -> str:
            return "dropped"

        http = driver_of(server, authenticate=bearer)
        ann, bob = (credentials(who) for who in ("ann", "bob"))
        forms: Json = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        asked = http.call("drop", headers=ann, meta=forms).json["result"]
        assert asked["resultType"] == "input_required"
        (key,) = asked["inputRequests"]
        retry = {
            "name": "drop",
            "arguments": {},
            "requestState": asked["requestState"],
            "inputResponses": {key: {"action": "accept", "content": {"approve": True}}},
        }
        stolen = http.modern("tools/call", retry, headers=bob, meta=forms)
        assert stolen.code == -32602
        done = http.modern("tools/call", retry, headers=ann, meta=forms).json["result"]
        assert done["content"][0]["text"] == "dropped"


@pytest.mark.parametrize(
    ("error", "status"), [(PermissionError("t0k"), 401), (ValueError("t0k"), 500)]
)
def test_a_hook_that_raises_lets_nobody_in_and_tells_nothing(
    server: Server, error: Exception, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Its words may hold the token: they are neither sent nor logged."""

    def hook(environ: object) -> object:
        raise error

    with caplog.at_level(logging.DEBUG):
        answer = driver_of(server, authenticate=hook).post(req("ping"))
    assert answer.status == status
    assert b"t0k" not in answer.body
    assert "t0k" not in caplog.text
    assert ("ValueError" in caplog.text) is (status == 500)


def test_a_hook_must_return_what_can_be_remembered(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """A dict of claims is none: the log says what to return."""
    answer = driver_of(server, authenticate=lambda environ: {"sub": "ann"}).post(req("ping"))
    assert answer.status == 500
    assert "hashable" in caplog.text


@pytest.mark.parametrize(("nobody", "status"), [(False, 401), ("", 401), (True, 500)])
def test_what_names_nobody_lets_nobody_in(
    server: Server, nobody: object, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """`token == known and user`, `session.get("user", "")`; and a bool tells nobody apart."""
    assert driver_of(server, authenticate=lambda environ: nobody).post(req("ping")).status == status
    assert ("who it is" in caplog.text) is (status == 500)


# ---------------------------------------------------------------- the gate


def _make(server: Server, way: str, **options: Any) -> object:
    if way == "mount":
        return server.mount(lambda environ, start: [], **options)
    return server.wsgi_app(**options)


@pytest.mark.parametrize("way", ["wsgi_app", "mount"])
def test_s29_a_server_whose_use_nobody_decided_is_not_served(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error shows the lines that fix it; each of them does."""
    monkeypatch.delenv("RAXOL_SYNC_REQUIRE_AUTHORIZATION", raising=False)
    with Server("http", authorizer=allow_all()) as server:  # by default: nobody chose it
        with pytest.raises(DeploymentError) as caught:
            _make(server, way)
        assert caught.value.missing == ["authorizer", "read_authorizer"]
        for words in (
            'authorizer_source="configured"',
            "read_authorizer=allow_all()",
            "require_authorization=False",
            "RAXOL_SYNC_REQUIRE_AUTHORIZATION=0",
        ):
            assert words in str(caught.value)
        assert _make(server, way, require_authorization=False)
        monkeypatch.setenv("RAXOL_SYNC_REQUIRE_AUTHORIZATION", "0")
        assert _make(server, way)
        with pytest.raises(DeploymentError):
            _make(server, way, require_authorization=True)
        monkeypatch.setenv("RAXOL_SYNC_REQUIRE_AUTHORIZATION", "1")
        with pytest.raises(DeploymentError):
            _make(server, way)
    chosen = {"authorizer": allow_all(), "authorizer_source": "configured"}
    with Server("http", **chosen) as half, pytest.raises(DeploymentError) as caught:  # type: ignore[arg-type]
        _make(half, way)
    assert caught.value.missing == ["read_authorizer"]
    with Server("http", read_authorizer=allow_all(), **chosen) as whole:  # type: ignore[arg-type]
        assert _make(whole, way)


def test_s29_the_error_says_what_was_said_and_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An authorizer that nobody stands by, and knowing who calls."""
    monkeypatch.delenv("RAXOL_SYNC_REQUIRE_AUTHORIZATION", raising=False)
    words = 'there is one, without authorizer_source="configured"'
    with (
        Server("http", authorizer=allow_all()) as server,
        pytest.raises(DeploymentError, match=words),
    ):
        server.wsgi_app()
    with Server("http") as server, pytest.raises(DeploymentError, match="authenticate= tells who"):
        server.wsgi_app(authenticate=lambda environ: "ann")


@pytest.mark.parametrize("way", ["wsgi_app", "mount"])
def test_a_closed_server_says_so(way: str) -> None:
    """And not that nobody chose its authorizers."""
    server = Server("http")
    server.close()
    with pytest.raises(RuntimeError, match="closed"):
        _make(server, way)


def test_s29_the_gate_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without serving."""
    monkeypatch.delenv("RAXOL_SYNC_REQUIRE_AUTHORIZATION", raising=False)
    server = Server("http", read_authorizer=allow_all())
    gate = Deployment.of(server)
    assert gate == Deployment(authorization=False, read_authorization=True, required=True)
    assert gate.missing == ["authorizer"]
    server.close()
    assert Deployment.of(server, False) == Deployment(False, False, required=False)
    Deployment.of(server, False).check()


@pytest.mark.parametrize("way", ["wsgi_app", "mount"])
def test_s32_sensitive_tools_need_an_authorizer_even_so(way: str) -> None:
    """`require_authorization=False` does not serve them to everybody."""
    with Server("http") as server:

        @server.tool(annotations={"destructiveHint": True})
        def drop() -> None:
            pass

        with pytest.raises(SensitiveToolError, match="drop"):
            _make(server, way, require_authorization=False)


def test_a_server_that_makes_no_application_loads_none() -> None:
    """Importing the package, or serving stdio, does not pay for HTTP."""
    code = (
        "import sys; from raxol_sync import Server; Server('x');"
        "print(*[m for m in sys.modules if m.startswith('raxol_sync.server.http.')])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ.copy(),
        check=True,
    )
    assert set(run.stdout.split()) <= {
        "raxol_sync.server.http.options",
        "raxol_sync.server.http.guard",
    }


# ---------------------------------------------------------------- mounting


def test_a_mount_takes_its_path_and_what_is_below(server: Server) -> None:
    """All else goes to the application that it is mounted in, untouched."""
    seen: list[tuple[str, str]] = []

    def site(environ: Json, start_response: Any) -> list[bytes]:
        seen.append((environ["SCRIPT_NAME"], environ["PATH_INFO"]))
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
        return [b"site"]

    http = Driver(server.mount(site, "/tools/mcp", require_authorization=False), path="/tools/mcp")
    assert http.modern("server/discover").status == 200
    assert http.modern("server/discover", path="/tools/mcp/").status == 200
    assert http.send("GET", "/tools/mcp/health").json == {"status": "ok"}
    assert http.send("GET", "/tools/mcp/nothing").status == 404
    for path in ("/", "/tools", "/tools/mcphealth", "/mcp", "/health", "/sse"):
        assert http.send("GET", path).body == b"site"
        assert seen[-1] == ("", path)
    stream = http.send("GET", "/tools/mcp/sse", headers={"Accept": "text/event-stream"})
    assert b"data: /tools/mcp/messages?session_id=" in stream.next_chunk()
    stream.close()


def test_the_root_may_be_the_endpoint(server: Server) -> None:
    """And unknown paths are 404."""
    http = Driver(server.wsgi_app("/", require_authorization=False), path="/")
    assert http.modern("server/discover").status == 200
    assert http.send("GET", "/mcp").status == 404
    with pytest.raises(ValueError, match="below the root"):
        server.mount(lambda environ, start: [], "/", require_authorization=False)
    with pytest.raises(TypeError, match="mount"):
        server.mount("app", require_authorization=False)  # type: ignore[arg-type]
    assert driver_of(server).send("GET", "/").status == 404


def test_what_mount_is_given_is_looked_at() -> None:
    """No application, an option that there is none of, a path that another server has."""
    with Server("one") as one, Server("two") as two:
        with pytest.raises(TypeError, match="WSGI application"):
            one.mount(None, require_authorization=False)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="no option 'require_auth'; it has require_authorizat"):
            one.mount(lambda environ, start: [], require_auth=False)
        inner = one.mount(lambda environ, start: [], "/mcp", require_authorization=False)
        both = two.mount(inner, "/other", require_authorization=False)
        for path in ("/mcp", "/other"):
            with pytest.raises(ValueError, match="mounted at"):
                two.mount(both, path, require_authorization=False)


def test_an_application_that_is_mounted_in_itself_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """`app.wsgi_app = server.mount(app, ...)` is easily written; it must not recurse for ever."""

    class Framework:
        def __call__(self, environ: Json, start: Any) -> Any:
            return self.wsgi_app(environ, start)

        def wsgi_app(self, environ: Json, start: Any) -> Any:
            return []

    with Server("http") as server:
        site = Framework()
        mounted = server.mount(site, require_authorization=False)
        monkeypatch.setattr(site, "wsgi_app", mounted)
        with pytest.raises(RuntimeError, match=r"app\.wsgi_app in both places"):
            site({"PATH_INFO": "/", "REQUEST_METHOD": "GET"}, lambda *args: None)
