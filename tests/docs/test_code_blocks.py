"""Every block of the pages runs, in order, and prints what the page says it prints.

- ``python`` blocks are executed in one namespace for each page;
- ``sh`` blocks that begin with ``$`` or ``raxol-sync`` are run by a shell; after a line with ``$``
  comes what it prints, on stdout and stderr (``...`` stands for anything);
- a comment before a block changes that: ``<!-- file: NAME -->`` saves it, ``<!-- prints -->`` is
  what the block before it printed, ``<!-- not run: WHY -->`` leaves it out.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(
    r"^(?:<!-- (?P<note>[^\n]*) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S
)
COMMAND_TIMEOUT = 60.0  # seconds


def _pages_with_code() -> list[Path]:
    return [page for page in PAGES if re.search("```(python|sh)", page.read_text(encoding="utf-8"))]


class Shell:
    """Runs commands in a folder where ``raxol-sync`` and ``python`` are those under test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        programs = folder / ".programs"
        programs.mkdir()
        for name, words in (("python", ""), ("python3", ""), ("raxol-sync", " -m raxol_sync")):
            script = f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}"{words} "$@"\n'
            (programs / name).write_text(script, encoding="utf-8")
            (programs / name).chmod(0o755)
        self._path = f"{programs}{os.pathsep}{os.environ['PATH']}"

    def run(self, command: str) -> tuple[int, str]:
        """Return the status and what was printed."""
        done = subprocess.run(
            ["sh", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            timeout=COMMAND_TIMEOUT,
            cwd=self._folder,
            env={**os.environ, "PATH": self._path},
            check=False,
        )
        return done.returncode, done.stdout


def _transcript(text: str) -> Iterator[tuple[str, str]]:
    """Split a block into commands and what the page shows after each."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = command[:-1] + more.strip()
        yield command, shown


def _is_shown(shown: str, printed: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in shown.strip().split("..."))
    return re.fullmatch(pattern, printed.strip(), re.S) is not None


def _run_sh(shell: Shell, text: str) -> str:
    """Run a block; compare what it shows, and return what it printed."""
    printed = ""
    if text.startswith("$ "):
        for command, shown in _transcript(text):
            _, printed = shell.run(command)
            assert _is_shown(shown, printed), f"{command}\nshown:\n{shown}\nprinted:\n{printed}"
    elif text.startswith("raxol-sync"):
        for command in text.splitlines():
            status, output = shell.run(command)
            assert status == 0, f"{command}\n{output}"
            printed += output
    return printed


def _run_python(page: Path, source: str, begins: int, text: str, names: dict[str, Any]) -> str:
    output = io.StringIO()
    line = source[:begins].count("\n")
    code = compile("\n" * line + text, str(page), "exec")
    with contextlib.redirect_stdout(output):
        exec(code, names)
    return output.getvalue()


@pytest.mark.parametrize("page", _pages_with_code(), ids=lambda p: str(p.relative_to(ROOT)))
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page from its beginning, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    shell = Shell(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / '.programs'}{os.pathsep}{os.environ['PATH']}")
    names: dict[str, Any] = {"__name__": "page"}
    printed = ""
    source = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(source):
        note, kind, text = block["note"] or "", block["kind"], block["text"]
        if note == "prints":
            assert printed == text
        elif note.startswith("file: "):
            (tmp_path / note.removeprefix("file: ")).write_text(text, encoding="utf-8")
        elif note.startswith("not run: "):
            continue
        elif kind == "python":
            printed = _run_python(page, source, block.start("text"), text, names)
        elif kind == "sh":
            printed = _run_sh(shell, text)


def test_each_block_of_the_readme_runs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People copy one block: it has its imports, and needs no other but the saved files."""
    monkeypatch.chdir(tmp_path)
    page = ROOT / "README.md"
    source = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(source):
        note, text = block["note"] or "", block["text"]
        if note.startswith("file: "):
            (tmp_path / note.removeprefix("file: ")).write_text(text, encoding="utf-8")
        elif block["kind"] == "python" and not note.startswith("not run: "):
            _run_python(page, source, block.start("text"), text, {"__name__": "page"})


def test_links_between_pages_lead_somewhere() -> None:
    """A relative link names a file that exists."""
    broken = []
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert broken == []
