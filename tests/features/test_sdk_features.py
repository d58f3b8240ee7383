"""What came late to the protocol, against the official SDK's client."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Peers

PROGRAMS = Path(__file__).parent / "programs"
PAGE = "https://example.com/page"


@pytest.mark.peers
def test_pages_and_models_with_tools_work_with_the_official_client(peers: Peers) -> None:
    """In a session of 2025-11-25: the page's id, its end, the error that names it; two turns."""
    command = [str(peers.mcp1), str(PROGRAMS / "features_client.py")]
    server = [sys.executable, str(PROGRAMS / "features_server.py")]
    run = subprocess.run(
        [*command, *server], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    report = json.loads(run.stdout.splitlines()[-1])
    assert report["pages"] == [["Go there.", PAGE, "visit-1"]]
    assert report["told"] == ["visit-1"]
    assert report["visit"] == ["accept"]
    assert report["forecast"] == ["u1: blue"]
    code, data = report["locked"]
    assert code == -32042
    (page,) = data["elicitations"]
    assert page["elicitationId"] == "visit-2"
    assert page["url"] == PAGE
