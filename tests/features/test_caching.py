"""`ttlMs` and `cacheScope`: what a server says of keeping its results (2026-07-28)."""

from __future__ import annotations

import pytest

from raxol_sync import ALLOW, Client, Context, InvalidTool, Resource, Server, deny_all
from tests.features.helpers import LEGACY, MODERN, Json, connected, form

LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")


def hints(client: Client, method: str, **params: str) -> tuple[int, str]:
    """What a result says of being kept: milliseconds, and for whom."""
    found = client.request(method, params)
    return found["ttlMs"], found["cacheScope"]


def test_without_a_word_nothing_is_kept() -> None:
    """Every cacheable result says so."""
    with connected(server := Server()) as client:
        server.resource("a://b")(lambda_text)
        assert {hints(client, method) for method in (*LISTS, "server/discover")} == {(0, "public")}
        assert hints(client, "resources/read", uri="a://b") == (0, "private")


def lambda_text() -> str:
    """A resource's text."""
    return "text"


def test_one_time_for_all_lists_or_one_for_each() -> None:
    """In seconds; reads are not lists."""
    with connected(server := Server(cache_ttl=1.5)) as client:
        server.resource("a://b")(lambda_text)
        assert {hints(client, method)[0] for method in (*LISTS, "server/discover")} == {1500}
        assert hints(client, "resources/read", uri="a://b")[0] == 0
    with connected(Server(cache_ttl={"tools/list": 60, "resources/read": 5})) as client:
        assert [hints(client, method)[0] for method in LISTS] == [60_000, 0, 0, 0]


def test_a_resource_says_how_long_and_for_whom_it_may_be_kept() -> None:
    """Templates too; what is guarded is private whatever it says."""
    server = Server()
    server.resource("a://b", cache_ttl=60, cache_scope="public")(lambda_text)

    @server.resource("a://{name}/c", cache_ttl=0.5)
    def template(name: str) -> str:
        return name

    with connected(server) as client:
        assert hints(client, "resources/read", uri="a://b") == (60_000, "public")
        assert hints(client, "resources/read", uri="a://x/c") == (500, "private")

    guarded = Server(registry=server.registry, read_authorizer=lambda *given: ALLOW)
    with connected(guarded) as client:
        assert hints(client, "resources/read", uri="a://b") == (60_000, "private")


def test_the_list_of_a_guarded_server_is_private() -> None:
    """It depends on who asks."""
    with connected(Server(cache_ttl=9, authorizer=deny_all("no"))) as client:
        assert hints(client, "tools/list") == (9000, "private")
        assert hints(client, "prompts/list") == (9000, "public")


def test_what_came_of_answers_is_never_kept() -> None:
    """It depends on more than the URI."""
    server = Server()

    @server.resource("a://b", cache_ttl=60)
    def ask(context: Context) -> str:
        return context.elicit("?", form(x={"type": "string"})).action

    with connected(server, on_elicit=lambda m, s: {"x": "y"}) as client:
        assert hints(client, "resources/read", uri="a://b") == (0, "private")


def test_older_revisions_know_no_hints() -> None:
    """Nothing of it is sent there."""
    server = Server(cache_ttl=9)
    server.resource("a://b", cache_ttl=60)(lambda_text)
    with connected(server, LEGACY) as client:
        for method, params in (("tools/list", {}), ("resources/read", {"uri": "a://b"})):
            assert not {"ttlMs", "cacheScope"} & set(client.request(method, params))


def test_a_client_keeps_the_tools_as_long_as_it_may() -> None:
    """And asks again when they change."""
    asked: list[str] = []
    server = Server(cache_ttl=600, telemetry=lambda event, facts: None)

    class Counting:
        """The server, with an ear at the door."""

        def __getattr__(self, name: str) -> object:
            return getattr(server, name)

        def request(self, message: Json, *args: object, **options: object) -> object:
            asked.append(message["method"])
            return server.request(message, *args, **options)  # type: ignore[arg-type]

    with server, Client("test", server=Counting(), protocol_version=MODERN) as client:  # type: ignore[arg-type]
        for _ in range(3):
            client.list_tools()
        assert asked.count("tools/list") == 1


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"cache_ttl": -1}, "from 0 to"),
        ({"cache_ttl": "soon"}, "a number of seconds"),
        ({"cache_ttl": float("nan")}, "from 0 to"),
        ({"cache_ttl": {"tools/call": 1}}, "not cacheable: tools/call"),
    ],
    ids=str,
)
def test_times_that_are_none_are_refused(options: Json, why: str) -> None:
    """Where they are given."""
    with pytest.raises(ValueError, match=why):
        Server(**options)


def test_a_resources_hints_are_checked_when_it_is_made() -> None:
    """As the rest of it is."""
    with pytest.raises(InvalidTool, match="'public' or 'private'"):
        Resource("a://b", "b", lambda_text, cache_scope="shared")
    with pytest.raises(InvalidTool, match="cache_ttl must be from 0"):
        Resource("a://b", "b", lambda_text, cache_ttl=-1)
