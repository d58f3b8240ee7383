"""The shape of the package: imports go down, pure modules stay pure, importing is cheap."""

from __future__ import annotations

import ast
import graphlib
import importlib
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import raxol_sync

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "raxol_sync"

# Module (without "raxol_sync.") -> floor. A name that ends with "." covers what is below it.
# The empty name is raxol_sync/__init__. `server` and `client` are the empty __init__ modules
# of those folders: on the lowest floor, because importing anything below them runs them first.
_BY_FLOOR = {
    0: """
        errors _deadline _version server client server.http
    """,
    1: """
        protocol protocol. content values inputs tool_use breaker policy hooks client.machine
        client.targets
        client.frames client.incoming client.naming client.effects client.results client.desk
        client.greeting server.parking server.older client.headers client.signals
        client.verdicts client.web_machine client.window client.listens client.unsendable
        server.http.host server.http.status server.http.headers server.http.guard
        server.http.body server.http.events
    """,
    2: """
        registry definitions definitions. results schema schema. telemetry _scheduler _delivery
        server.web server.web. server.ending
        _futures server.workers server.outbox server.connections server.channel server.batch
        server.forks server.seldom server.http.presence server.http.replies server.http.cors
        client.transport client.metering
        client.outbox client.calls client.spec client.listing client.config client.handlers
        client.responder client.terminal server.owners circuits client.backoff client.eras
        client.guard client.params client.handle client.arguments client.subscription
    """,
    3: """
        server.engine server.inflight server.results server.methods server.context
        server.completion server.app server.asking server.authorization server.callbacks
        server.events server.notices server.options server.processes server.questions
        server.border server.rounds server.tools server.subscription server.stdio server.dispatch
        server.http.app server.http.auth server.http.deployment server.http.exchange
        server.http.gets server.http.options server.http.posts server.http.service
        server.http.sessions server.http.sse server.http.store server.http.streams
        server.http.serving
        client.session client.noise
        client.stdio client.memory client.process client.http client.sse client.exchange
        client.wiring client.http_base client.http_sse client.web client.means
        client.web_wiring client.openings client.link client.watcher client.resolver client.reports
    """,
    4: """
        server.server server.networked server.decorators client.client client.base client.group
    """,
    5: """
        "" __main__ cli cli. demo demo_server pytest_plugin
    """,
}
FLOORS: dict[str, int] = {
    name.strip('"'): floor for floor, names in _BY_FLOOR.items() for name in names.split()
}
PURE = (
    "protocol.",
    "content",
    "values",
    "inputs",
    "tool_use",
    "hooks",
    "server.older",
    "client.machine",
    "client.targets",
    "client.frames",
    "client.incoming",
    "client.naming",
    "server.parking",
    "server.http.status",
    "server.http.headers",
    "server.http.guard",
    "server.http.events",
    "server.http.host",
    "server.web.access",
    "server.web.environ",
    "server.web.limits",
    "breaker",
    "policy",
    "client.desk",
    "client.greeting",
    "client.headers",
    "client.signals",
    "client.verdicts",
    "client.web_machine",
    "client.window",
    "client.effects",
    "client.listens",
    "client.results",
    "client.unsendable",
)
IMPURE_IMPORTS = {"threading", "queue", "time", "random", "secrets", "os", "socket", "subprocess",
                  "requests", "logging"}  # fmt: skip
NEWER_STDLIB = {"annotationlib"}  # of Pythons that this one may not be
LATE_IMPORTS = ("requests", "h11", "jsonschema", "asyncio", "pydantic", "tenacity")


def _names(path: Path) -> str:
    """The module's name below the package: `server/server.py` -> `server.server`."""
    parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_names(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def _covers(entry: str, module: str) -> bool:
    return module.startswith(entry) if entry.endswith(".") else module == entry


def _floor(module: str) -> int:
    floors = [floor for entry, floor in FLOORS.items() if _covers(entry, module)]
    assert floors, f"module raxol_sync.{module} has no floor: add it to FLOORS in this file"
    return floors[-1]


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def _imports(module: str) -> frozenset[str]:
    """Absolute names of all that a module imports, in functions and under TYPE_CHECKING too.

    `from x import y` counts as `x.y` where that is a module of ours, else as `x`.
    """
    found: set[str] = set()
    own = [part for part in ("raxol_sync", *module.split(".")) if part]
    if MODULES[module].name != "__init__.py":
        own.pop()
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = own[: len(own) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            found.update(
                name if name.removeprefix("raxol_sync.") in MODULES else origin
                for name in (f"{origin}.{alias.name}" for alias in node.names)
            )
    return frozenset(found)


def _ours(module: str) -> set[str]:
    """Which modules of the package a module imports, by their names below the package."""
    return {
        name.removeprefix("raxol_sync").removeprefix(".")
        for name in _imports(module)
        if name.split(".")[0] == "raxol_sync"
    }


@pytest.mark.parametrize("module", MODULES)
def test_imports_never_go_up(module: str) -> None:
    """A module imports from its own floor or lower ones."""
    own = _floor(module)
    above = sorted(name for name in _ours(module) if _floor(name) > own)
    assert not above, f"raxol_sync.{module} (floor {own}) imports upwards: {above}"


@pytest.mark.parametrize("module", MODULES)
def test_a_floor_in_a_docstring_is_the_one_here(module: str) -> None:
    """What a module says about itself and the table agree."""
    said = re.search(r"\bFloor (\d)", ast.get_docstring(_tree(module)) or "")
    assert said is None or int(said[1]) == _floor(module)


def test_no_import_cycles() -> None:
    """No cycle of imports, type-only and in-function ones included."""
    try:
        graphlib.TopologicalSorter({name: _ours(name) for name in MODULES}).prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"modules import each other: {error.args[1]}", pytrace=False)


def test_server_and_client_do_not_know_each_other() -> None:
    """The in-process client takes any object with the right methods instead."""
    for side, other in (("server", "client"), ("client", "server")):
        for module in MODULES:
            if module.split(".")[0] == side:
                wrong = sorted(name for name in _ours(module) if name.split(".")[0] == other)
                assert not wrong, f"raxol_sync.{module} imports {wrong}"


def test_pure_modules_have_no_clock_thread_or_io() -> None:
    """Modules with the protocol's rules import nothing that waits, logs or reads the world."""
    for module in MODULES:
        if any(_covers(entry, module) for entry in PURE):
            wrong = {name.split(".")[0] for name in _imports(module)} & IMPURE_IMPORTS
            assert not wrong, f"raxol_sync.{module} is pure and must not import {sorted(wrong)}"


def test_each_third_party_package_has_one_importer() -> None:
    """Whoever wants a package asks the one module that wraps it."""
    importers: dict[str, set[str]] = defaultdict(set)
    for module in MODULES:
        for name in {name.split(".")[0] for name in _imports(module)}:
            if name != "raxol_sync" and name not in sys.stdlib_module_names | NEWER_STDLIB:
                importers[name].add(module)
    shared = {name: sorted(modules) for name, modules in importers.items() if len(modules) > 1}
    assert not shared


def test_nothing_imports_asyncio() -> None:
    """The library has no event loop."""
    assert not [name for name in MODULES if "asyncio" in {i.split(".")[0] for i in _imports(name)}]


def test_importing_the_package_loads_no_heavy_module() -> None:
    """Third-party packages and asyncio load at first use, not with the package."""
    code = "import sys, raxol_sync; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert not loaded & set(LATE_IMPORTS)


def _defined_names(module: str) -> set[str]:
    """Names that a module defines at its top level: classes, functions, assignments."""
    found: set[str] = set()
    for node in _tree(module).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


@pytest.mark.parametrize("name", raxol_sync.__all__)
def test_each_public_name_is_documented_and_has_one_home(name: str) -> None:
    """What is exported exists, says what it is, and is defined in exactly one module."""
    value = getattr(raxol_sync, name)
    assert (value.__doc__ or "").strip(), f"raxol_sync.{name} has no docstring"
    homes = [module for module in MODULES if name in _defined_names(module)]
    assert len(homes) == 1, f"raxol_sync.{name} is defined in {homes}"
    home = importlib.import_module(f"raxol_sync.{homes[0]}".rstrip("."))
    assert getattr(home, name) is value


def test_all_lists_each_name_once() -> None:
    """`__all__` has no repetition."""
    assert len(set(raxol_sync.__all__)) == len(raxol_sync.__all__)


def test_each_public_name_has_its_home_in_the_table() -> None:
    """What loads at first use is exactly what is exported, and `dir` shows it before."""
    assert set(raxol_sync._HOMES) | {"__version__"} == set(raxol_sync.__all__)
    assert set(raxol_sync.__all__) <= set(dir(raxol_sync))
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        raxol_sync.no_such_name  # noqa: B018


@pytest.mark.parametrize(
    ("name", "other"), [("Server", "raxol_sync.client."), ("Client", "raxol_sync.server.")]
)
def test_one_side_does_not_load_the_other(name: str, other: str) -> None:
    """A server's process pays for no client, and the other way round."""
    code = f"import sys; from raxol_sync import {name}; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    assert not [module for module in run.stdout.split() if module.startswith(other)]
