"""Completion with a context: what a completer is told of the other arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from raxol_sync import RPCError, Server
from tests.features.helpers import EACH_ERA, connected

REF = {"type": "ref/resource", "uri": "maps://{country}/{city}"}
ARGUMENT = {"name": "city", "value": "O"}


def offering(seen: list[Mapping[str, str]]) -> Server:
    """A server with one template, whose completer notes what it is told."""
    server = Server()

    def cities(typed: str, others: Mapping[str, str]) -> list[str]:
        seen.append(others)
        return [f"{typed}slo"]

    @server.resource("maps://{country}/{city}", completers={"city": cities})
    def plan(country: str, city: str) -> str:
        return f"{city}, {country}"

    return server


@EACH_ERA
def test_a_completer_is_told_the_other_arguments(revision: str) -> None:
    """And without any, that there are none."""
    seen: list[Mapping[str, str]] = []
    with connected(offering(seen), revision) as client:
        assert client.complete(REF, ARGUMENT, {"country": "no"}).values == ["Oslo"]
        assert client.complete(REF, ARGUMENT).values == ["Oslo"]
        client.request("completion/complete", {"ref": REF, "argument": ARGUMENT, "context": {}})
    assert seen == [{"country": "no"}, {}, {}]


@EACH_ERA
@pytest.mark.parametrize(
    "context", [5, [], {"arguments": []}, {"arguments": {"country": 5}}], ids=str
)
def test_a_context_that_is_none_is_refused(revision: str, context: Any) -> None:
    """Before the completer sees it."""
    seen: list[Mapping[str, str]] = []
    params = {"ref": REF, "argument": ARGUMENT, "context": context}
    offered = connected(offering(seen), revision)
    with offered as client, pytest.raises(RPCError, match="context") as failed:
        client.request("completion/complete", params)
    assert failed.value.code == -32602
    assert seen == []
