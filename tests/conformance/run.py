"""Run the official conformance suite against this library, both sides, in each revision.

    python -m tests.conformance.run --suite DIR/conformance        # `.ci/peers DIR` installs it
    python -m tests.conformance.run --suite ... --side client --revision 2026-07-28 --scenario X

Each run is one side in one revision. What the suite requires of the revision must pass: a failure,
a warning, a scenario that proves nothing, or a client that does not end as it should fails the run.
Scenarios that the suite does not score are run too, and only reported: some of each revision, all
of the revisions for which it requires nothing, and those of extensions (`--extensions`): nobody has
to speak those. Not run: `auth/*`, before there is OAuth here.

The last lines are the summaries. Exit status: 0, or 1 when something required did not pass, or 2
when the suite could not be run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tests.starting import OLDEST_NODE, comes_to_listen, find_node, free_port

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

SIDES = ("client", "server")
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
FIRST_REQUIRED = "2025-11-25"  # of those before it the suite requires nothing
SCENARIO_SECONDS = {"client": 30.0, "server": 20.0}  # the suite's own limit for one scenario
START_SECONDS = 30.0  # for our server to listen
_STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")  # ends the name of a scenario's folder


class CannotRun(Exception):
    """Raised when the suite itself cannot be run: it says nothing about this library."""


# ---------------------------------------------------------------- the suite


@dataclass(frozen=True)
class Suite:
    """The installed suite: a node that can run it, and its program."""

    node: str
    program: Path

    def command(self, *words: str) -> list[str]:
        """Return the command line that runs the suite with these words."""
        return [self.node, str(self.program), *words]

    def text(self, *words: str) -> str:
        """Return what the suite prints."""
        done = subprocess.run(
            self.command(*words), capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode:
            raise CannotRun(f"the suite failed on {' '.join(words)}:\n{done.stderr or done.stdout}")
        return done.stdout

    def applicable(self, side: str, revision: str) -> list[str]:
        """Return the scenarios that apply to a revision, scored or not; no `auth/*`."""
        found = _listed(self.text("list", f"--{side}", "--spec-version", revision))
        return [name for name in found if not name.startswith("auth/")]

    def of_extensions(self, side: str) -> list[str]:
        """Return the scenarios of extensions, which belong to no revision; no `auth/*`."""
        lines = self.text("list", f"--{side}").splitlines()
        found = _listed("\n".join(line for line in lines if "[extension]" in line))
        return [name for name in found if not name.startswith("auth/")]

    def required(self, side: str, revision: str) -> set[str]:
        """Return the scenarios that the suite requires of a revision: none of the oldest."""
        if revision < FIRST_REQUIRED:
            return set()
        text = self.text("list", "--requirements", revision)
        heading = f"{side.capitalize()} scenarios"
        _, found, rest = text.partition(f"\n{heading}")
        if not found:
            raise CannotRun(f"the suite lists no requirements for {side}, {revision}")
        return set(_listed(re.split(r"\n\n|\n(?=\S)", rest, maxsplit=1)[0]))


def _listed(text: str) -> list[str]:
    return re.findall(r"^ +- (\S+)", text, re.M)


def find_suite(folder: Path) -> Suite:
    """Return the suite that `.ci/peers` has installed in a folder."""
    modules = folder / "node_modules"
    program = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    if not program.exists():
        raise CannotRun(f"{folder} holds no conformance suite; run: .ci/peers {folder.parent}")
    node = find_node(modules)
    if node is None:
        raise CannotRun(f"the suite needs node {OLDEST_NODE} or newer")
    return Suite(node, program)


# ---------------------------------------------------------------- outcomes


@dataclass
class Outcome:
    """What came of one scenario: the suite's checks, and what else went wrong."""

    checks: list[dict[str, Any]] = field(default_factory=list)
    trouble: str | None = None

    @property
    def verdict(self) -> str:
        """`failed`, `warnings`, `passed`, or `skipped` where nothing was proved."""
        states = {check["status"] for check in self.checks}
        if self.trouble or "FAILURE" in states:
            return "failed"
        if "WARNING" in states:
            return "warnings"
        # The suite checks the wire's schema in each scenario, also in one that skips itself.
        own = {c["status"] for c in self.checks if not c["id"].startswith("wire-schema-")}
        return "passed" if "SUCCESS" in own else "skipped"

    def complaints(self) -> Iterator[str]:
        """Yield what is wrong, a line for each thing."""
        if self.trouble:
            yield self.trouble
        for check in self.checks:
            if check["status"] in ("FAILURE", "WARNING"):
                text = check.get("errorMessage") or check.get("description", "")
                yield f"{check['status']} {check['id']}: {text}"


def read_outcome(folder: Path, log: Path, status: int | None) -> Outcome:
    """Return what a run of the suite left in a folder; without results, how it ended."""
    found = sorted(folder.rglob("checks.json"))
    if found:
        return Outcome(json.loads(found[-1].read_text(encoding="utf-8")))
    said = log.read_text(encoding="utf-8", errors="replace").strip()[-400:]
    how = "it did not end in time" if status is None else f"exit status {status}"
    return Outcome(trouble=f"no result ({how}): {said}")


# ---------------------------------------------------------------- processes


def run_logged(command: Sequence[str], log: Path, seconds: float) -> int | None:
    """Run a command, its output to a file; return its status, `None` if it took too long."""
    with log.open("wb") as sink:
        process = start(command, sink)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end(process)


def start(command: Sequence[str], sink: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a process whose output goes to a file; ``end`` ends it."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sink,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        env=environment(),
        start_new_session=True,
    )


def environment() -> dict[str, str]:
    """Return this process's environment, in which the checkout can be imported."""
    known = os.environ.get("PYTHONPATH")
    path = str(ROOT) if not known else f"{ROOT}{os.pathsep}{known}"
    return {**os.environ, "PYTHONPATH": path}


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that we started, with all that it has started."""
    for word in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, word)
            process.wait(5)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue


@contextmanager
def our_server(out: Path) -> Iterator[str]:
    """Serve the fixture on a free port and give its URL."""
    port = free_port()
    log = out / "server.log"
    command = [sys.executable, str(HERE / "server.py"), "--port", str(port)]
    with log.open("wb") as sink:
        process = start(command, sink)
    try:
        if not comes_to_listen(port, process, START_SECONDS):
            said = log.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise CannotRun(f"server.py does not listen:\n{said}")
        yield f"http://127.0.0.1:{port}/mcp"
        if process.poll() is not None:
            print(f"! server.py ended during the run; see {log}", file=sys.stderr)
    finally:
        end(process)


# ---------------------------------------------------------------- one side, one revision


@dataclass(frozen=True)
class Run:
    """One side in one revision, or one side's extensions (revision: the newest)."""

    suite: Suite
    side: str
    revision: str
    out: Path

    @property
    def seconds(self) -> float:
        """How long one scenario may take."""
        return SCENARIO_SECONDS[self.side]

    def words(self) -> list[str]:
        """Return the options that each call of the suite gets."""
        milliseconds = str(int(self.seconds * 1000))
        return ["--spec-version", self.revision, "--timeout", milliseconds]

    def one(self, name: str, *target: str) -> Outcome:
        """Run one scenario in a process of its own."""
        folder = self.out / name.replace("/", "__")
        folder.mkdir(parents=True, exist_ok=True)
        log = folder / "suite.log"
        words = [*target, "--scenario", name, "--force", *self.words(), "-o", str(folder)]
        status = run_logged(self.suite.command(self.side, *words), log, self.seconds + 15)
        outcome = read_outcome(folder, log, status)
        if self.side == "client" and not outcome.trouble:
            outcome.trouble = _bad_end(log.read_text(encoding="utf-8", errors="replace"))
        return outcome

    def clients(self, names: Sequence[str], jobs: int) -> dict[str, Outcome]:
        """Run client scenarios; the suite starts the fixture for each."""
        target = ("--command", f"{sys.executable} {HERE / 'client.py'}")
        with ThreadPoolExecutor(jobs) as pool:
            found = pool.map(lambda name: (name, self.one(name, *target)), names)
            return dict(found)

    def servers(self, names: Sequence[str]) -> dict[str, Outcome]:
        """Run server scenarios against one server: all in one process, stragglers one by one."""
        with our_server(self.out) as url:
            found = self._whole_suite(url) if len(names) > 1 else {}
            for name in names:
                if name not in found:
                    found[name] = self.one(name, "--url", url)
        return {name: found[name] for name in names}

    def _whole_suite(self, url: str) -> dict[str, Outcome]:
        folder = self.out / "suite"
        words = ["--url", url, "--suite", "all", *self.words(), "-o", str(folder)]
        log = self.out / "suite.log"
        run_logged(self.suite.command("server", *words), log, 60 + 20 * self.seconds)
        return {
            _STAMP.sub("", found.name).removeprefix("server-"): read_outcome(found, log, 0)
            for found in sorted(folder.glob("server-*"))
        }


def _bad_end(log: str) -> str | None:
    """Return what the suite says of a client that did not end well."""
    if "CLIENT TIMED OUT" in log:
        return "the client did not end in time"
    found = re.search(r"CLIENT EXITED WITH ERROR[^\n]*", log)
    return found[0].strip() if found else None


def summary(run: Run, outcomes: dict[str, Outcome], required: set[str]) -> tuple[str, bool]:
    """Return a run's summary, and whether all that is required has passed."""
    scored = {name: found for name, found in outcomes.items() if name in required}
    others = {name: found for name, found in outcomes.items() if name not in required}
    words = [_counts(scored, "required")] if scored else []
    if others:
        words.append(_counts(others, "not scored"))
    states = Counter(check["status"] for found in outcomes.values() for check in found.checks)
    words.append(f"checks: {states['SUCCESS']} passed, {states['FAILURE']} failed, ")
    words[-1] += f"{states['WARNING']} warnings, {states['SKIPPED']} skipped"
    text = f"{run.side} {run.revision}: {'; '.join(words)}"
    return text, all(found.verdict == "passed" for found in scored.values())


def _counts(outcomes: dict[str, Outcome], what: str) -> str:
    found = Counter(outcome.verdict for outcome in outcomes.values())
    bad = ", ".join(f"{found[key]} {key}" for key in ("failed", "warnings", "skipped"))
    return f"{what} {found['passed']} of {len(outcomes)} passed ({bad})"


def report(outcomes: dict[str, Outcome], required: set[str], *, briefly: bool = False) -> None:
    """Print each scenario with its verdict, and what is wrong below it, if not ``briefly``."""
    for name, outcome in outcomes.items():
        kind = "" if name in required else " (not scored)"
        print(f"  {outcome.verdict:8} {name}{kind}")
        for line in () if briefly else outcome.complaints():
            print(f"           {line}")
    sys.stdout.flush()


def perform(
    run: Run, names: Sequence[str], required: set[str], jobs: int, *, briefly: bool = False
) -> tuple[str, bool]:
    """Run scenarios and report on them; return the summary, and whether it is a good one."""
    run.out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    print(f"\n{run.side} {run.revision}: {len(names)} scenarios", flush=True)
    outcomes = run.clients(names, jobs) if run.side == "client" else run.servers(names)
    report(outcomes, required, briefly=briefly)
    text, good = summary(run, outcomes, required)
    return f"{text}; {time.monotonic() - begun:.0f} s", good


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", type=Path, required=True, help="where .ci/peers has put it")
    parser.add_argument("--side", choices=SIDES, action="append")
    parser.add_argument("--revision", action="append", help=f"default: {', '.join(REVISIONS)}")
    parser.add_argument("--scenario", action="append", help="only this one")
    parser.add_argument("--extensions", action="store_true", help="run those of extensions too")
    parser.add_argument("--jobs", type=int, default=2, help="client scenarios at a time")
    parser.add_argument("--out", type=Path, help="keep logs and results here")
    return parser.parse_args(arguments)


def runs(given: argparse.Namespace, suite: Suite, out: Path) -> Iterator[tuple[str, bool]]:
    """Do all that the command line asks for; yield the summaries."""
    for side in given.side or SIDES:
        for revision in given.revision or REVISIONS:
            required = suite.required(side, revision)
            names = given.scenario or suite.applicable(side, revision)
            lost = {name for name in required - set(names) if not name.startswith("auth/")}
            if lost and not given.scenario:
                raise CannotRun(f"required but not applicable: {', '.join(sorted(lost))}")
            if names:  # for the oldest revision clients are asked for nothing but `auth/*`
                run = Run(suite, side, revision, out / f"{side}-{revision}")
                yield perform(run, names, required, given.jobs)
        if given.extensions and not given.scenario:
            run = Run(suite, side, REVISIONS[-1], out / f"{side}-extensions")
            names = suite.of_extensions(side)
            text, _ = perform(run, names, set(), given.jobs, briefly=True)
            yield f"{text} (extensions)", True


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; return the exit status."""
    given = options(arguments)
    with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
        try:
            suite = find_suite(given.suite.resolve())
            done = list(runs(given, suite, (given.out or Path(scratch)).resolve()))
        except CannotRun as error:
            print(error, file=sys.stderr)
            return 2
    print()
    for text, _ in done:
        print(text)
    return 0 if all(good for _, good in done) else 1


if __name__ == "__main__":
    sys.exit(main())
