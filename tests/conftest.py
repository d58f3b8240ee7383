"""Fixtures for every test: nothing may be left behind, and where the official SDK's pythons are."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
LEFTOVER_WAIT = 5.0  # seconds for the library's threads to end after a test
PEERS_VARIABLE = "RAXOL_SYNC_PEERS"
# Helpers of multiprocessing that by design live as long as this process.
LASTING_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")

hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")


@dataclass(frozen=True)
class Peers:
    """Where the programs of others are: pythons with the official SDK (1.x, 2.x), and servers."""

    folder: Path

    @property
    def mcp1(self) -> Path:
        """The python that has the SDK 1.x."""
        return self.folder / "mcp1" / "bin" / "python"

    @property
    def mcp2(self) -> Path:
        """The python that has the SDK 2.x."""
        return self.folder / "mcp2" / "bin" / "python"

    def host(self, name: str) -> Path:
        """A program among the WSGI servers and frameworks: `gunicorn`, `flask`, `python`."""
        return self.folder / "hosts" / "bin" / name

    def python_server(self, name: str) -> Path:
        """The program ``mcp-server-NAME``: `time` or `git`."""
        return self.folder / name / "bin" / f"mcp-server-{name}"

    def node_server(self, name: str) -> Path:
        """The program ``mcp-server-NAME`` of node; skips where there was no npm to install it."""
        found = self.folder / "node" / "node_modules" / ".bin" / f"mcp-server-{name}"
        if not found.exists():
            pytest.skip(f"needs npm: install it and run `.ci/peers {self.folder}` again")
        return found


def _peers_folder() -> Path | None:
    value = os.environ.get(PEERS_VARIABLE)
    return Path(value).resolve() if value else None


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to start when the variable names a folder without all environments."""
    # A shell starts what runs in its background deaf to interrupts, and many tests send some.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = _peers_folder()
    for name in ("mcp1", "mcp2", "time", "git", "hosts") if folder else ():
        python = Path(str(folder), name, "bin", "python")
        if not python.exists():
            raise pytest.UsageError(
                f"{PEERS_VARIABLE}={folder} has no {name}/bin/python; run: .ci/peers {folder}"
            )
    # Programs that tests start import the same code as the tests, wherever they run.
    known = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if str(ROOT) not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *known])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs the official SDK or servers of others when they are not there."""
    if item.get_closest_marker("peers") and _peers_folder() is None:
        pytest.skip(
            "needs the official SDK and servers of others: run `.ci/peers DIR`, "
            f"then set {PEERS_VARIABLE}=DIR and run again"
        )


@pytest.fixture(scope="session")
def peers() -> Peers:
    """The official SDK and servers of others. Tests that use it are marked `peers`."""
    folder = _peers_folder()
    assert folder is not None, "mark the test with @pytest.mark.peers"
    return Peers(folder)


def _leftover_threads(before: set[threading.Thread]) -> list[str]:
    """Join the library's new threads within one deadline; return the names of all that live."""
    deadline = time.monotonic() + LEFTOVER_WAIT
    left = []
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("raxol-sync-") and thread.ident is not None:
            thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            left.append(thread.name)
    return sorted(left)


def _children() -> dict[int, str]:
    """The children of this process, zombies included: pid -> command line. Empty without /proc."""
    found = {}
    for listing in Path("/proc/self/task").glob("*/children"):
        try:
            pids = listing.read_text().split()
        except OSError:  # that thread has just ended; its children moved to another one's list
            continue
        for pid in pids:
            command = _command_line(pid)
            if not any(helper in command for helper in LASTING_HELPERS):
                found[int(pid)] = command
    return found


def _command_line(pid: str) -> str:
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return "(gone)"
    return raw.replace(b"\0", b" ").decode(errors="replace").strip() or "(ended, not waited for)"


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fail a test that leaves threads or child processes, and name them."""
    threads, children = set(threading.enumerate()), _children()
    yield
    problems = [f"thread {name}" for name in _leftover_threads(threads)]
    problems += [
        f"process {pid}: {command}"
        for pid, command in sorted(_children().items())
        if pid not in children
    ]
    if problems:
        pytest.fail("left behind after the test: " + "; ".join(problems), pytrace=False)
