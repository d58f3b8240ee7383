"""Each example runs as a user would run it, and says what it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SAYS = {
    "script.py": "Oslo: 4.0 degrees\n",
    "parallel.py": "Cairo: 75.2 F\nOslo: 39.2 F\nRome: 63.5 F\n",
    "resources.py": (
        "template: weather://{city}/report\n"
        "report: Rome: 17.5 degrees\n"
        "prompt: compare ['first', 'second']\n"
        "user: Is the weather nicer in Rome or in Oslo? Use the temperature tool.\n"
    ),
    "progress.py": (
        "1 3 in the oven\n2 3 in the oven\n3 3 in the oven\na cake\n"
        "gave up: tools/call was not answered within 0.1 s\n"
    ),
    "several.py": (
        "mcp__weather__temperature\nmcp__weather__cities\nmcp__kitchen__bake\n"
        "4.0 a cake\n"
        "{'weather': 'ready', 'kitchen': 'ready'}\n"
    ),
}
RUN_BY_OTHERS = {"server.py", "test_in_process.py"}


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a program of this Python, with nothing on its stdin."""
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        check=False,
    )


@pytest.mark.parametrize("name", SAYS)
def test_example_runs(name: str) -> None:
    """It prints this, nothing on stderr, and succeeds."""
    done = run(str(EXAMPLES / name))
    assert (done.returncode, done.stdout, done.stderr) == (0, SAYS[name], "")


def test_example_script_reports_what_the_tool_says() -> None:
    """A tool that says no is one line on stderr and status 1."""
    done = run(str(EXAMPLES / "script.py"), "Atlantis")
    assert done.returncode == 1
    assert done.stderr == "no station in Atlantis; there are Oslo, Rome, Cairo\n"


def test_example_tests_pass() -> None:
    """The example of a test suite is one that passes."""
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "test_in_process.py"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_example_is_run_and_short() -> None:
    """No example is forgotten here, and each fits on a screen."""
    programs = list(EXAMPLES.glob("*.py"))
    assert {program.name for program in programs} == set(SAYS) | RUN_BY_OTHERS
    for program in programs:
        lines = program.read_text(encoding="utf-8").splitlines()
        assert len([line for line in lines if line.strip()]) <= 40, program.name
