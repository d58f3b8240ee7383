"""A client in process takes no server whose sensitive tools nobody guards."""

from __future__ import annotations

import pytest

from raxol_sync import ALLOW, Client, SensitiveToolError, Server


def test_s32_a_client_in_process_refuses_an_unguarded_server() -> None:
    """Before anything is started; with a policy it is served."""
    with Server("bare") as bare:
        bare.tool(name="wipe", annotations={"destructiveHint": True})(lambda: "wiped")
        with pytest.raises(SensitiveToolError, match="wipe"):
            Client("test", server=bare)
    with Server("guarded", authorizer=lambda *asked: ALLOW) as guarded:
        guarded.tool(name="wipe", annotations={"destructiveHint": True})(lambda: "wiped")
        with Client("test", server=guarded) as client:
            assert client.call_tool("wipe").text == "wiped"
