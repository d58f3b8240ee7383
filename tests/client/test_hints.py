"""What a client says to who has given it the wrong thing, or has not given it what is needed."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest

from raxol_sync import (
    Client,
    Context,
    InvalidSpec,
    MessageTooLarge,
    RPCError,
    Server,
)
from tests.features.helpers import LEGACY, MODERN, connected

Serve = Callable[..., Client]


def test_c01_a_class_or_a_file_in_the_place_of_a_server() -> None:
    """It says what to write instead."""
    with pytest.raises(InvalidSpec, match=r"must be an instance, as in Server\(\.\.\.\)"):
        Client("x", server=Server)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpec, match="a program goes in command=, an address in url="):
        Client("x", server="srv.py")  # type: ignore[arg-type]


def test_c01_an_argument_that_there_is_not() -> None:
    """No class is named that users do not know."""
    with pytest.raises(TypeError, match=r"^Client\(\) got an unexpected keyword argument 'comand'"):
        Client("x", comand="y")  # type: ignore[call-arg]


def test_completion_wants_mappings() -> None:
    """As `call_tool`, it says what was given and what is expected, and not what was in it."""
    with connected(Server("x")) as client:
        name = {"name": "x", "value": "s3cret"}
        wrong: list[tuple[tuple[Any, ...], str]] = [
            (("x", name), r'ref must be a mapping such as \{"type": "ref/prompt".*, not str'),
            (({"type": "ref/prompt", "name": "p"}, ["s3cret"]), "argument must be a mapping"),
            (({"type": "ref/prompt"}, {"name": "x", "value": 3}), "must hold strings only"),
            (({"type": "ref/prompt"}, name, "s3cret"), "context must be a mapping"),
        ]
        for given, words in wrong:
            with pytest.raises(TypeError, match=words) as caught:
                client.complete(*given)
            assert "s3cret" not in str(caught.value)


@pytest.fixture
def curious() -> Server:
    """A server whose tools ask for what a client may not have."""
    server = Server("curious")

    @server.tool
    def asks(context: Context) -> str:
        return str(context.elicit("Really?", {"type": "object", "properties": {}}))

    @server.tool
    def samples(context: Context) -> str:
        return str(context.sample("Say hello."))

    @server.tool
    def lists(context: Context) -> str:
        return str(context.list_roots())

    return server


@pytest.mark.parametrize(
    ("tool", "option"), [("asks", "on_elicit="), ("samples", "on_sample="), ("lists", "roots=")]
)
def test_c28_what_a_client_lacks_is_named(curious: Server, tool: str, option: str) -> None:
    """In the text only: code, message and data are the server's."""
    with connected(curious) as client:
        with pytest.raises(RPCError) as caught:
            client.call_tool(tool)
        with pytest.raises(RPCError) as later:
            client.submit_tool(tool).result(10)
    for error in (caught.value, later.value, pickle.loads(pickle.dumps(caught.value))):
        assert str(error).endswith(f"(-32021); this client was given no {option}")
        assert error.code == -32021
        assert "this client" not in error.message


def test_c28_what_it_has_is_not_named(curious: Server) -> None:
    """A server may miss what was given, and be wrong."""

    @curious.tool
    def refuses() -> str:
        raise RPCError(-32021, "no", {"requiredCapabilities": {"elicitation": {}, "other": {}}})

    with (
        connected(curious, on_elicit=lambda message, schema: None) as client,
        pytest.raises(RPCError, match=r"no \(-32021\)$"),
    ):
        client.call_tool("refuses")


def test_c14_an_older_server_gives_a_failed_result(curious: Server) -> None:
    """There is no error for it there."""
    with connected(curious, LEGACY) as client:
        assert client.call_tool("asks").is_error


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_c14_on_log_is_told_from_info_in_each_era(revision: str) -> None:
    """Without being asked for; `set_log_level` changes it."""
    server = Server("worker")
    logged: list[str] = []

    @server.tool
    def work(context: Context) -> None:
        for level in ("debug", "info", "warning"):
            context.log(level, "x")

    with connected(server, revision, on_log=lambda level, *more: logged.append(level)) as client:
        client.call_tool("work")
        client.set_log_level("warning")
        client.call_tool("work")
    assert logged == ["info", "warning", "warning"]


def test_c14_without_on_log_nothing_is_asked_for() -> None:
    """A modern server is told no level then."""
    told: list[str] = []
    server = Server("worker")

    @server.tool
    def work(context: Context) -> None:
        context.log("emergency", "x")

    with connected(server, on_notification=lambda method, params: told.append(method)) as client:
        client.call_tool("work")
    assert told == []


@pytest.mark.parametrize("way", ["in process", "http", "stdio"])
def test_c12_a_result_over_the_limit_is_the_same_error_everywhere(way: str, serve: Serve) -> None:
    """In process and over HTTP the next call is answered."""
    server = Server("large")

    @server.tool
    def huge(size: int) -> str:
        return "x" * size

    options: dict[str, Any] = {"max_message_bytes": 100_000, "fail_fast": True}
    with server, server.start_http(port=0, require_authorization=False) as http:
        if way == "stdio":
            client = serve(command=[sys.executable, "-I", "-S"], max_message_bytes=100_000)
        else:
            where = {"server": server} if way == "in process" else {"url": http.url}
            client = Client("test", **where, **options)
        with client:
            with pytest.raises(MessageTooLarge):
                client.call_tool("huge", {"size": 300_000})
            if way != "stdio":
                assert client.call_tool("huge", {"size": 3}).text == "xxx"
