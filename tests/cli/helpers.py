"""Running the command line as a user does: a process, its status, what it printed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SERVER = Path(__file__).parent / "programs" / "server.py"
TIMEOUT = 60.0  # seconds for one command


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a command: this one's, but for how Python writes."""
    # Without a buffer there would be nothing to complain about at the interpreter's exit.
    own = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return {**own, "PYTHONUTF8": "1", **more}


def cli(
    *words: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``raxol-sync`` with nothing on its stdin."""
    return subprocess.run(
        [sys.executable, "-m", "raxol_sync", *words],
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT,
        stdin=subprocess.DEVNULL,
        env=environment(**(env or {})),
        cwd=cwd,
        check=False,
    )


def odd(mode: str, *words: str) -> list[str]:
    """Return the words that name the small server of these tests."""
    return ["--", sys.executable, str(SERVER), mode, *words]


def processes_with(word: str) -> list[str]:
    """Return the command lines of all processes that have this word, zombies left out."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # it has just ended
            continue
        if word.encode() in words:
            found.append(b" ".join(words).decode(errors="replace"))
    return found
