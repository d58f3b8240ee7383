"""The hosts: how each is started with our server in it, and what it can do."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Peers
from tests.hosts.talk import Talk
from tests.starting import free_port

PROGRAMS = Path(__file__).parent / "programs"
START_SECONDS = 30.0  # for a host to listen
THREADS = 16  # of each worker: more than any test needs streams at once


@dataclass(frozen=True)
class Host:
    """One way to run our server.

    Attributes:
        name: for people.
        program: what runs it: a name in `DIR/hosts/bin`, or `""` for this very python.
        words: its command line; `{port}` stands for the port.
        path: where the endpoint is.
        mounted: whether the health endpoint is below it, as `mount` has it, or beside it.
        stop: the signal that ends it.
        stop_seconds: within which it has ended, also with a stream open.
        ends_streams: whether a listener is told of the end with the listen's result.
        crowd: how many clients may come at the same moment.
        early: whether the application is called before all of the body has come.
        chunked: whether a body without a length reaches the application.
    """

    name: str
    program: str
    words: tuple[str, ...]
    path: str = "/mcp"
    mounted: bool = False
    stop: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10.0
    ends_streams: bool = False
    crowd: int = 24
    early: bool = True
    chunked: bool = True

    def beside(self, name: str) -> str:
        """Where the endpoint `health`, `sse` or `messages` is."""
        return f"{self.path}/{name}" if self.mounted else f"/{name}"

    def command(self, peers: Peers, port: int) -> list[str]:
        """The whole command line."""
        program = str(peers.host(self.program)) if self.program else sys.executable
        return [program, *(word.format(port=port) for word in self.words)]


def gunicorn(name: str, *words: str, app: str = "hosted:app", path: str = "") -> Host:
    """Run gunicorn with threads, and our hook that ends streams."""
    config = ("--config", str(PROGRAMS / "gunicorn_stop.py"))
    kind = ("--worker-class", "gthread", "--threads", str(THREADS))
    bind = (
        "--bind",
        "127.0.0.1:{port}",
        "--log-level",
        "warning",
        "--keep-alive",
        "1",
        "--no-control-socket",
    )
    whole = (*config, *kind, *bind, *words, app)
    return Host(name, "gunicorn", whole, path or "/mcp", bool(path), ends_streams=True)


GRANIAN = (
    *("--interface", "wsgi", "--blocking-threads", str(THREADS), "--workers-kill-timeout", "1"),
    *("--log-level", "warning", "--host", "127.0.0.1", "--port", "{port}"),
)
UWSGI = (
    *("--http-socket", "127.0.0.1:{port}", "--master", "--enable-threads", "--need-app"),
    *("--threads", str(THREADS), "--die-on-term", "--worker-reload-mercy", "1"),
    *("--disable-logging", "--add-header", "Connection: close", "--module", "hosted:app"),
)
WAITRESS = ("--listen=127.0.0.1:{port}", f"--threads={THREADS}", "--channel-request-lookahead=1")
FLASK = ("run", "--port", "{port}", "--no-reload")

# One process serves in each of these.
EMBEDDED = Host("embedded", "", (str(PROGRAMS / "embedded.py"), "{port}"), ends_streams=True)
SINGLE = [
    EMBEDDED,
    gunicorn("gunicorn", "--workers", "1"),
    gunicorn("gunicorn-preload", "--workers", "1", "--preload"),
    Host("granian", "granian", (*GRANIAN, "--workers", "1", "hosted:app")),
    Host("waitress", "waitress-serve", (*WAITRESS, "hosted:app"), early=False),
    Host("uwsgi", "uwsgi", UWSGI, chunked=False),
    Host("flask-run", "flask", ("--app", "site_flask", *FLASK), mounted=True),
    Host(
        "flask-waitress",
        "waitress-serve",
        (*WAITRESS, "site_flask:app"),
        mounted=True,
        early=False,
    ),
    Host(
        "django-runserver",
        "python",
        (str(PROGRAMS / "site_django.py"), "runserver", "--noreload", "127.0.0.1:{port}"),
        stop=signal.SIGINT,
        crowd=8,
        chunked=False,
    ),
    gunicorn("django-gunicorn", app="site_django:application", path="/mounted"),
    Host("wsgiref", "python", (str(PROGRAMS / "plain.py"), "{port}"), chunked=False),
]
# Several processes serve in each of these.
SEVERAL = [
    gunicorn("gunicorn-3", "--workers", "3"),
    gunicorn("gunicorn-3-preload", "--workers", "3", "--preload"),
    Host("granian-3", "granian", (*GRANIAN, "--workers", "3", "hosted:app")),
    Host("uwsgi-3", "uwsgi", (*UWSGI, "--processes", "3"), chunked=False),
]


class Running:
    """A host that serves."""

    def __init__(self, host: Host, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.host = host
        self.process = process
        self.log = log
        self.talk = Talk(port, host.path)

    def stop(self) -> None:
        """Tell it to stop; fails if that takes longer than it may."""
        self.process.send_signal(self.host.stop)
        self.process.wait(self.host.stop_seconds)


@contextlib.contextmanager
def running(
    command: Callable[[int], Sequence[str]],
    host: Host,
    folder: Path,
    modules: Path = PROGRAMS,
    health: int = 200,
) -> Iterator[Running]:
    """Start a host; end it, and all that it started, whatever happens.

    ``health``: the status that its health endpoint must have.
    """
    port = free_port()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(modules)])}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    log = folder / f"{host.name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command(port)),
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    served = Running(host, process, port, log)
    try:
        assert _first_health(served) == health, log.read_text()
        yield served
    finally:
        # All of them: a worker may outlive its master.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def serve(host: Host, peers: Peers, folder: Path) -> Iterator[Running]:
    """Start one of the hosts above."""
    with running(lambda port: host.command(peers, port), host, folder) as served:
        yield served


def each_of(hosts: Sequence[Host]) -> Any:
    """A fixture for a module: one of these hosts after another, each for all of its tests."""

    @pytest.fixture(scope="module", params=hosts, ids=lambda host: host.name)
    def served(
        request: pytest.FixtureRequest, peers: Peers, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Running]:
        with serve(request.param, peers, tmp_path_factory.mktemp("host")) as found:
            yield found

    return served


def _first_health(served: Running) -> int:
    """Wait until a host listens; return the status of its health endpoint."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with contextlib.closing(
                served.talk.send("GET", path=served.host.beside("health"))
            ) as stream:
                return stream.all().status
        except OSError as error:
            words = f"{served.host.name}: {error!r}\n{served.log.read_text()}"
            assert served.process.poll() is None, words
            assert time.monotonic() < deadline, words
            threading.Event().wait(0.05)
