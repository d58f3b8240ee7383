"""A raw client of a stdio server: bytes in, lines out, everything with a deadline."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.server.helpers import WAIT, Json

PROGRAM = Path(__file__).parent / "programs" / "stdio_server.py"


class Stdio:
    """A server process, and what it has written so far."""

    def __init__(
        self,
        *arguments: str,
        env: dict[str, str] | None = None,
        program: Path = PROGRAM,
        **options: Any,
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(program), *arguments],
            stdin=subprocess.PIPE,
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            **options,
        )
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self.stderr = b""
        self._threads = [threading.Thread(target=self._drain_stderr)]
        if self.process.stdout is not None:
            self._threads.append(threading.Thread(target=self._read))
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _drain_stderr(self) -> None:
        assert self.process.stderr is not None
        self.stderr = self.process.stderr.read()

    def send(self, *messages: object) -> None:
        """Send messages, each as one line; bytes as they are."""
        assert self.process.stdin is not None
        for message in messages:
            data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            self.process.stdin.write(data)
        self.process.stdin.flush()

    def line(self) -> bytes:
        """Return the next line; empty at the end."""
        return self._lines.get(timeout=WAIT) or b""

    def receive(self) -> Any:
        """Return the next message."""
        line = self.line()
        assert line.endswith(b"\n"), line
        return json.loads(line)

    def ask(self, message: Json) -> Json:
        """Send a request and return its answer, which must be the next message."""
        self.send(message)
        answer: Json = self.receive()
        assert answer.get("id") == message["id"], answer
        return answer

    def rest(self) -> list[bytes]:
        """Return all lines that are left, up to the end."""
        lines = []
        while line := self.line():
            lines.append(line)
        return lines

    def end(self, *, close: bool = True) -> int:
        """Close its stdin and return its exit status, which must come soon."""
        assert self.process.stdin is not None
        if close:
            self.process.stdin.close()
        status = self.process.wait(WAIT)
        for thread in self._threads:
            thread.join(WAIT)
        return status

    def __enter__(self) -> Stdio:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(WAIT)
        for thread in self._threads:
            thread.join(WAIT)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:  # what it never read
                    continue
