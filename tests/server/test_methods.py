"""The methods themselves (rows S08 to S13, S47, S53)."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

import raxol_sync
from raxol_sync import Context, InvalidTool, Server, ToolError
from tests.server.helpers import (
    LOG_LEVEL,
    SERVER_INFO,
    VERSION,
    WAIT,
    Recorder,
    ask,
    call,
    code,
    initialize,
    modern,
    req,
    result,
    text,
)

LEGACY: dict[str, Any] = {
    "initialize": initialize()["params"],
    "ping": {},
    "tools/list": {},
    "tools/call": {"name": "t"},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "r://x"},
    "resources/subscribe": {"uri": "r://x"},
    "resources/unsubscribe": {"uri": "r://x"},
    "prompts/list": {},
    "prompts/get": {"name": "p"},
    "logging/setLevel": {"level": "info"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "p"},
        "argument": {"name": "a", "value": ""},
    },
}
MODERN = {"server/discover", "tools/list", "tools/call", "resources/list", "resources/read",
          "resources/templates/list", "prompts/list", "prompts/get",
          "completion/complete"}  # fmt: skip


def offering(**options: Any) -> Server:
    """A server with one of everything."""
    server = Server("shop", **options)
    server.tool(name="t")(lambda: "tool")
    server.resource("r://x", name="x")(lambda: "resource")
    server.prompt(name="p")(lambda: "prompt")
    return server


@pytest.mark.parametrize("method", [*LEGACY, "server/discover", "subscriptions/listen"])
def test_s08_each_era_has_its_methods(method: str) -> None:
    """A legacy method is served there, `-32601` in the modern era unless it has it too."""
    with offering() as server:
        if method in LEGACY:
            result(server, req(method, LEGACY[method]))
        params = LEGACY.get(method, {})
        if method in MODERN:
            result(server, modern(method, params))
        elif method != "subscriptions/listen":
            assert code(server, modern(method, params)) == -32601


def test_s09_the_server_says_its_name_and_version() -> None:
    """It is "raxol" and the library's version unless given."""
    with Server() as server:
        info = result(server, initialize())["serverInfo"]
        assert info == {"name": "raxol", "version": raxol_sync.__version__}
    with Server("n", server_version="9", title="T", icons=[{"src": "a:b"}]) as server:
        info = result(server, initialize())["serverInfo"]
        assert info == {"name": "n", "version": "9", "title": "T", "icons": [{"src": "a:b"}]}


def test_s10_tools_are_listed_in_order_and_in_pages() -> None:
    """Pages are cut by position: what is dropped between two pages moves nothing."""
    with Server(page_size=2) as server:
        for name in "abcde":
            server.tool(name=name)(lambda: None)
        first = result(server, req("tools/list"))
        assert [t["name"] for t in first["tools"]] == ["a", "b"]
        server.registry.unregister_tools(["a", "c"])
        second = result(server, req("tools/list", {"cursor": first["nextCursor"]}))
        assert [t["name"] for t in second["tools"]] == ["d", "e"]
        assert "nextCursor" not in second


@pytest.mark.parametrize("cursor", ["", "x", "p", "p-1", "p1.5", "p٣", 5, [], "p" + "9" * 40])
@pytest.mark.parametrize("what", ["tools", "resources", "prompts", "resources/templates"])
def test_s53_a_bad_cursor_is_refused(what: str, cursor: object) -> None:
    """A cursor that we did not give out is `-32602`."""
    with offering() as server:
        assert code(server, req(f"{what}/list", {"cursor": cursor})) == -32602


@pytest.mark.parametrize("how", ["initialized", "direct", "subscribed"])
def test_s11_the_level_filters_that_connections_log(how: str) -> None:
    """Info unless set; the level holds for later requests of that connection alone."""
    with Server() as server:

        @server.tool
        def talk(context: Context) -> str:
            for level in ("debug", "info", "error"):
                context.log(level, {"said": level}, logger="talk")
            return "ok"

        def heard(conn: str, id: int) -> list[str]:
            sink = Recorder()
            server.request(call("talk", id=id), conn, sink=sink).result(WAIT)
            sink.wait_for(1)
            while sink.methods()[-1] != "response":
                sink.wait_for(len(sink.messages) + 1)
            return [m["params"]["level"] for m in sink.messages if "method" in m]

        if how == "initialized":
            result(server, initialize(), "a")
        if how == "subscribed":
            server.subscribe(Recorder(), "a")
        assert heard("a", 1) == ["info", "error"]
        result(server, req("logging/setLevel", {"level": "error"}), "a")
        assert heard("a", 2) == ["error"]
        result(server, req("logging/setLevel", {"level": "debug"}), "a")
        assert heard("a", 3) == ["debug", "info", "error"]
        assert heard("b", 4) == ["info", "error"]


@pytest.mark.parametrize("level", ["loud", "", None, 3, ["info"], "INFO"])
def test_s11_other_levels_are_refused(level: object) -> None:
    """Only the eight syslog levels are accepted."""
    with Server() as server:
        assert code(server, req("logging/setLevel", {"level": level})) == -32602


def test_s11_modern_requests_get_logs_only_on_request() -> None:
    """Without `logLevel` in `_meta` there are none, with it those of that level on."""
    with Server() as server:

        @server.tool
        def talk(context: Context) -> None:
            context.log("info", 1)
            context.log("error", 2)

        for level, expected in ((None, []), ("error", [2]), ("debug", [1, 2])):
            sink = Recorder()
            meta = {LOG_LEVEL: level} if level else {}
            future = server.request(modern("tools/call", {"name": "talk"}, **meta), "c", sink=sink)
            future.result(WAIT)
            got = sink.wait_for(len(expected) + 1)
            assert [m["params"]["data"] for m in got[:-1]] == expected


def test_s11_what_cannot_be_logged_is_the_callbacks_error() -> None:
    """A bad level or data raises in the callback; nothing is sent."""
    with Server() as server:

        @server.tool
        def talk(context: Context) -> str:
            with pytest.raises(ValueError):
                context.log("loud", "x")
            with pytest.raises(TypeError):
                context.log("info", object())
            for bad in (float("nan"), float("inf")):
                with pytest.raises(ValueError):
                    context.progress(bad)
            with pytest.raises(TypeError):
                context.progress([])  # type: ignore[arg-type]
            with pytest.raises(ValueError):
                context.progress(1, float("inf"))
            return "ok"

        sink = Recorder()
        message = call("talk", _meta={"progressToken": 1})
        assert text(server.request(message, "c", sink=sink).result(WAIT)) == "ok"
        assert sink.wait_for(1)[0]["id"] == 1


def completed(server: Server, ref: object, value: str, name: str = "a") -> Any:
    params = {"ref": ref, "argument": {"name": name, "value": value}}
    return result(server, req("completion/complete", params))["completion"]


def test_s12_completers_enums_and_nothing() -> None:
    """A completer answers, else the enum's values that start with the input, else nothing."""
    with Server() as server:

        @server.prompt(completers={"a": lambda value: [value + str(i) for i in range(150)]})
        def p(a: str, b: str) -> str:
            return a + b

        schema = {"type": "object", "properties": {"a": {"enum": ["red", "rose", "blue", 3]}}}
        server.tool(name="t", input_schema=schema)(lambda **arguments: None)
        found = completed(server, {"type": "ref/prompt", "name": "p"}, "x")
        assert found["values"] == [f"x{i}" for i in range(100)]
        assert (found["total"], found["hasMore"]) == (150, True)
        assert completed(server, {"type": "ref/tool", "name": "t"}, "r") == {
            "values": ["red", "rose"], "total": 2, "hasMore": False,
        }  # fmt: skip
        assert completed(server, {"type": "ref/prompt", "name": "p"}, "x", "b")["values"] == []


@pytest.mark.parametrize(
    "ref",
    [None, {}, {"type": "ref/prompt"}, {"type": "ref/prompt", "name": "no"}, {"type": "x"},
     {"type": "ref/prompt", "name": None}, {"type": "ref/resource", "uri": 5}],
)  # fmt: skip
def test_s53_a_bad_completion_ref_is_refused(ref: object) -> None:
    """A ref that names nothing here is `-32602`, also where a prompt is called `None`."""
    with Server() as server:
        server.prompt(name="None")(lambda: "x")
        params = {"ref": ref, "argument": {"name": "a", "value": ""}}
        assert code(server, req("completion/complete", params)) == -32602


def test_s13_an_unknown_tool_is_minus_32601() -> None:
    """Unless the owner has something to say."""
    with Server() as server:
        assert code(server, call("nope")) == -32601


def test_s13_the_owner_may_answer_for_an_unknown_tool(caplog: pytest.LogCaptureFixture) -> None:
    """A str is a failed result, `None` or an exception is `-32601`; it runs on a worker."""
    threads: list[str] = []

    def reply(name: str) -> str | None:
        threads.append(threading.current_thread().name)
        if name == "boom":
            raise ValueError("secret")
        return f"no {name}" if name == "known" else None

    with Server(unknown_tool_reply=reply) as server:
        answer = ask(server, call("known"))
        assert text(answer) == "no known"
        assert answer["result"]["isError"] is True
        assert code(server, call("other")) == -32601
        with caplog.at_level(logging.ERROR):
            assert code(server, call("boom")) == -32601
        assert "unknown_tool_reply" in caplog.text
        assert all(name.startswith("raxol-sync-worker") for name in threads)


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"),
     ("2025-11-25", "2025-11-25"), ("2026-07-28", "2025-11-25"), ("1999-01-01", "2025-11-25"),
     ("", "2025-11-25")],
)  # fmt: skip
def test_s47_initialize_agrees_on_a_legacy_revision(offered: str, agreed: str) -> None:
    """The offered one if it is known, else 2025-11-25, never the modern one."""
    with Server(instructions="be kind") as server:
        answer = result(server, initialize(offered))
        assert answer["protocolVersion"] == agreed
        assert answer["instructions"] == "be kind"
        capabilities = answer["capabilities"]
        assert capabilities["resources"] == {"listChanged": True, "subscribe": True}
        assert capabilities["tools"] == capabilities["prompts"] == {"listChanged": True}
        assert {"completions", "logging"} <= set(capabilities)


def test_s47_modern_results_carry_their_marks() -> None:
    """`resultType`, serverInfo, and on what may be cached `ttlMs` and `cacheScope`."""
    with offering() as server:
        for method, params in LEGACY.items():
            if method not in MODERN:
                continue
            answer = result(server, modern(method, params))
            assert answer["resultType"] == "complete"
            assert answer["_meta"][SERVER_INFO]["name"] == "shop"
            cached = method.endswith("/list") or method in ("resources/read", "server/discover")
            assert ("ttlMs" in answer) is ("cacheScope" in answer) is cached
            assert answer.get("cacheScope", "public") == (
                "private" if method == "resources/read" else "public"
            )
        found = result(server, modern("server/discover"))
        assert found["supportedVersions"][0] == "2026-07-28"
        assert "resultType" not in result(server, req("tools/list"))


@pytest.mark.parametrize(
    ("meta", "expected"),
    [({}, -32602), ({VERSION: "2026-07-28"}, -32602), ({VERSION: 5, "x": {}}, -32602),
     ({VERSION: "2099-01-01"}, -32022), ({VERSION: "2025-11-25"}, -32022)],
)  # fmt: skip
def test_s47_the_envelope_is_checked_before_the_method(meta: Any, expected: int) -> None:
    """Missing members `-32602`, an unknown version `-32022`, only then the method."""
    key = "io.modelcontextprotocol/clientCapabilities"
    full = {**meta, **({key: {}} if expected == -32022 else {})}
    with Server() as server:
        for method in ("server/discover", "subscriptions/listen"):
            assert code(server, req(method, {"_meta": full})) == expected
        answer = ask(server, req("no/such", {"_meta": {VERSION: "1", key: {}}}))["error"]
        assert answer["code"] == -32022
        assert answer["data"]["requested"] == "1"
        assert "2026-07-28" in answer["data"]["supported"]
        assert code(server, modern("no/such")) == -32601


def test_s47_both_eras_on_one_connection() -> None:
    """Each request is served by what it says itself."""
    with offering() as server:
        result(server, initialize("2025-06-18"))
        assert "resultType" in result(server, modern("tools/list"))
        assert "resultType" not in result(server, req("tools/list"))
        assert code(server, modern("ping")) == -32601
        assert result(server, req("ping")) == {}


def test_s53_unknown_things_have_their_codes() -> None:
    """An unknown resource carries its uri; the code depends on the revision."""
    with offering() as server:
        params = {"uri": "r://no"}
        error = ask(server, req("resources/read", params))["error"]
        assert (error["code"], error["data"]) == (-32002, {"uri": "r://no"})
        error = ask(server, modern("resources/read", params))["error"]
        assert (error["code"], error["data"]) == (-32602, {"uri": "r://no"})
        assert code(server, req("prompts/get", {"name": "no"})) == -32602
        result(server, req("resources/subscribe", {"uri": "any:thing"}))


def test_s53_prompt_arguments_are_checked() -> None:
    """A missing one, one that is no string, one that does not fit: `-32602`."""
    with Server() as server:

        @server.prompt
        def p(n: int) -> str:
            return str(n + 1)

        arguments: Any
        for arguments in (None, {}, {"n": 3}, {"n": "x"}, [], "n"):
            params = {"name": "p", "arguments": arguments}
            assert code(server, req("prompts/get", params)) == -32602
        params = {"name": "p", "arguments": {"n": "3"}}
        assert result(server, req("prompts/get", params))["messages"][0]["content"]["text"] == "4"


def test_s53_tool_errors_of_read_surfaces_pass_word_for_word() -> None:
    """`ToolError` is `-32603` with its message; anything else only its class (row S46)."""
    with Server() as server:

        @server.resource("r://{kind}", name="r")
        def r(kind: str) -> str:
            raise ToolError("not today") if kind == "said" else ValueError("secret")

        said = ask(server, req("resources/read", {"uri": "r://said"}))["error"]
        assert (said["code"], said["message"]) == (-32603, "not today")
        failed = ask(server, req("resources/read", {"uri": "r://other"}))["error"]
        assert failed["code"] == -32603
        assert "ValueError" in failed["message"]
        assert "secret" not in str(failed)


def test_a_resource_without_a_uri_is_refused() -> None:
    """A bare decorator would register nothing, silently."""
    with Server() as server, pytest.raises(InvalidTool, match="needs a URI"):
        server.resource(lambda: "text")  # type: ignore[arg-type]
