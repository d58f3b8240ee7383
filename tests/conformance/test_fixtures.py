"""The conformance fixtures use the public interface only: else a pass would prove nothing."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import raxol_sync

FIXTURES = ["client.py", "server.py"]
# Words of the wire: a fixture that has one speaks the protocol itself.
WIRE = re.compile(
    r"json.?rpc|resultType|requestState|inputRe|Mcp-|event-stream|protocolVersion|(?<!\w)_meta|"
    r"notifications/|tools/|http\.client|socket|requests|urllib",
    re.I,
)


def _source(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FIXTURES)
def test_a_fixture_holds_no_word_of_the_wire(name: str) -> None:
    """Not in a comment either; the suite's own names for things are no such words."""
    own = _source(name).replace("request_state", "").replace("input_required", "")
    own = own.replace("call_timeout", "").replace("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
    assert WIRE.findall(own.replace("sep-2322-client-request-state", "")) == []


@pytest.mark.parametrize("name", FIXTURES)
def test_a_fixture_imports_what_is_public(name: str) -> None:
    """From the package itself, and names that it exports."""
    for node in ast.walk(ast.parse(_source(name))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("raxol_sync"):
            assert node.module == "raxol_sync"
            assert {alias.name for alias in node.names} <= set(raxol_sync.__all__)
        elif isinstance(node, ast.Import):
            assert not [alias.name for alias in node.names if alias.name.startswith("raxol_sync")]
