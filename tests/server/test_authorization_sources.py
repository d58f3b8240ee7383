"""Who chose the authorizers, and what they are told of a connection (rows S28, S30)."""

from __future__ import annotations

import pytest

from raxol_sync import ALLOW, Server, allow_all, deny_all
from raxol_sync.policy import AuthorizationContext
from raxol_sync.server.outbox import Outbox
from tests.server.approvals import served
from tests.server.helpers import Json, Recorder, ask, call, initialize, offering


def test_s28_only_a_chosen_authorizer_counts_as_configured() -> None:
    """The default source fails closed however strict the authorizer is; closing ends both."""
    with Server() as server:
        assert not server.authorization_configured()
        assert not server.read_authorization_configured()
    with Server(authorizer=deny_all(), read_authorizer=deny_all()) as server:
        assert not server.authorization_configured()
        assert server.read_authorization_configured()
    with served(allow_all(), read_authorizer=allow_all()) as server:
        assert server.authorization_configured()
        assert server.read_authorization_configured()
    assert not server.authorization_configured()
    assert not server.read_authorization_configured()


@pytest.mark.parametrize(
    "wrong",
    [{"authorizer_source": "configured"}, {"authorizer_source": "chosen"}, {"transport": "http"}],
)
def test_s28_a_source_without_an_authorizer_is_refused(wrong: Json) -> None:
    """At construction; so are words that nobody knows."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Server(**wrong)
    with pytest.raises(TypeError, match="read_authorizer"):
        Server(read_authorizer=True)  # type: ignore[arg-type]


def test_s30_the_servers_side_declares_the_transport() -> None:
    """The constructor names direct callers; a connection's own transport wins; no client can."""
    seen: list[AuthorizationContext] = []

    def authorizer(name: str, arguments: object, context: AuthorizationContext) -> object:
        seen.append(context)
        return ALLOW

    with offering(authorizer=authorizer, transport="sse") as server:
        ask(server, initialize(transport="stdio", elicitation={}))
        ask(server, call("t", _meta={"transport": "stdio"}))
        assert seen[-1].transport == "sse"
        assert seen[-1].client_info == {"name": "tests", "version": "1"}
        assert seen[-1].client_capabilities == {"transport": "stdio", "elicitation": {}}
        assert seen[-1].principal is None

        server._engine.attach("pipe", Outbox(Recorder(), "raxol-sync-test"), transport="stdio")
        ask(server, call("t"), "pipe")
        assert (seen[-1].transport, seen[-1].conn_id) == ("stdio", "pipe")
