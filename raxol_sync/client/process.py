"""A server's process: how it is started, watched and ended (rows C02, C16). Floor 3.

It runs in a process group of its own, so that what it started ends with it. The group is killed
before the process is reaped: until then its id cannot belong to anyone else.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from raxol_sync._deadline import Deadline
from raxol_sync.errors import ConnectFailed

WINDOWS = sys.platform == "win32"
KILL_WAIT = 2.0  # seconds for the kernel to end a process that was killed
_SCRIPT = "a Python file goes in args=, with command='python'"
_POLL = 0.01  # seconds between two looks, where the system has no pidfd

_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TMPDIR")
_KEPT_ON_WINDOWS = (
    "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT",
    "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP",
    "TMP", "USERNAME", "USERPROFILE", "WINDIR",
)  # fmt: skip


def environment(extra: Mapping[str, str] | None, *, inherit: bool) -> dict[str, str]:
    """Return a server's environment: ``extra`` over an allow-list of ours, or over all of it.

    The allow-list keeps secrets from servers that the caller did not write.
    """
    if inherit:
        base = dict(os.environ)
    elif WINDOWS:
        base = {k: v for k, v in os.environ.items() if k.upper() in _KEPT_ON_WINDOWS}
    else:
        base = {k: v for k, v in os.environ.items() if k in _KEPT or k.startswith("LC_")}
    return {**base, **(extra or {})}


class ServerProcess:
    """A running server. ``stdin``, ``stdout``, ``stderr`` are our ends of its pipes, descriptors.

    ``end`` is called by one thread; the rest from any.
    """

    def __init__(
        self, command: str, args: Sequence[str], env: Mapping[str, str], cwd: str | None
    ) -> None:
        """Start it. Raises ``ConnectFailed``, naming the command and what to do."""
        self._popen = _start(command, args, env, cwd)
        self.pid: int = self._popen.pid
        self.stdin: int = self._popen.stdin.fileno()
        self.stdout: int = self._popen.stdout.fileno()
        self.stderr: int = self._popen.stderr.fileno()
        self.pidfd = _open_pidfd(self.pid)
        # Guards: the reaping of the process, which must happen once. Leaf.
        self._lock = threading.Lock()
        self._reaped = False
        self._code: int | None = None

    def wait(self, seconds: float) -> int | None:
        """Wait for the process to exit, without reaping it; return its status if it has."""
        if self._look():
            return self._code
        if self.pidfd is not None:
            poller = select.poll()
            poller.register(self.pidfd, select.POLLIN)
            poller.poll(seconds * 1000)
        else:
            deadline, pause = Deadline(seconds), threading.Event()
            while not self._look() and not deadline.expired():
                pause.wait(_POLL)
        self._look()
        return self._code

    def end(self, grace: float, terminate: float) -> None:
        """End it and its group: wait ``grace`` seconds, terminate, wait, kill; then reap it.

        Its standard input should be closed before, which is what asks a server to exit.
        """
        if not self._exited_within(grace):
            self._signal("SIGTERM")
            self._exited_within(terminate)
        self._signal("SIGKILL")  # also when it has exited: what it started may live on
        self._exited_within(KILL_WAIT)
        self._reap()

    def close_stdin(self) -> None:
        """Close our end of its standard input; nobody may be writing."""
        with suppress(OSError):  # what was not written yet has nowhere to go
            self._popen.stdin.close()

    def close(self) -> None:
        """Close every descriptor; nobody may be reading."""
        self.close_stdin()
        self._popen.stdout.close()
        self._popen.stderr.close()
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None

    def _exited_within(self, seconds: float) -> bool:
        self.wait(seconds)
        return self._look()

    def _look(self) -> bool:
        """Return whether it has exited, and note its status."""
        with self._lock:
            if self._reaped or self._code is not None:
                return True
            if not hasattr(os, "waitid"):
                self._code = self._popen.poll()
                return self._code is not None
            try:
                found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # someone else reaped it; its status is lost
                self._reaped = True
                return True
            if found is not None:
                killed = found.si_code != os.CLD_EXITED
                self._code = -found.si_status if killed else found.si_status
            return found is not None

    def _reap(self) -> None:
        with self._lock:
            self._reaped = self._popen.poll() is not None or self._reaped

    def _signal(self, name: str) -> None:
        """Send a signal to the whole group; it may have nobody left."""
        with self._lock:
            if self._reaped:
                return
            with suppress(OSError):
                if WINDOWS:
                    _kill_tree(self._popen, gently=name == "SIGTERM")
                else:
                    os.killpg(self.pid, getattr(signal, name))


def _start(command: str, args: Sequence[str], env: Mapping[str, str], cwd: str | None) -> Any:
    import subprocess  # not at import time: it costs a tenth of importing the package

    options: dict[str, Any] = {"start_new_session": True}
    if WINDOWS:
        import shutil

        options = {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
        command = shutil.which(command, path=env.get("PATH")) or command  # finds npx.cmd
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(
            [command, *args], bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(env),
            cwd=cwd, **options,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise ConnectFailed(_why_not(command, cwd, error)) from error


def _why_not(command: str, cwd: str | None, error: Exception) -> str:
    """Return why a command could not be started, and what to do."""
    found = os.path.join(cwd or "", command)
    if isinstance(error, FileNotFoundError):
        if cwd is not None and not os.path.isdir(cwd):
            return f"the folder {cwd!r} (cwd=) does not exist"
        program, *more = command.split(maxsplit=1) or [command]
        if more and not os.path.exists(found):
            # What follows may be secret, as arguments may.
            return f"the command {program + ' ...'!r} was not found: arguments go in args="
        if found.endswith(".py") and os.path.isfile(found):
            return f"the command {command!r} was not found on PATH: {_SCRIPT}"
        return (
            f"the command {command!r} was not found; give its full path, or put its folder "
            "on PATH (env= replaces the server's PATH)"
        )
    if isinstance(error, PermissionError):
        if os.path.isdir(found):
            return f"the command {command!r} is a folder; give the program in it"
        if found.endswith(".py"):
            return f"the command {command!r} may not be executed: {_SCRIPT}"
        return f"the command {command!r} may not be executed; check its permissions (chmod +x)"
    if getattr(error, "errno", None) == errno.ENOEXEC and _is_text(found):
        return f"the command {command!r} has no #! line: start it with its interpreter"
    words = (getattr(error, "strerror", None) or str(error)).lower()
    return f"the command {command!r} could not be started: {words}"


def _is_text(path: str) -> bool:
    """Return whether a file begins as a script does, and not as a program of another machine."""
    try:
        with open(path, "rb") as file:
            return b"\0" not in file.read(256)
    except OSError:  # it was found on PATH, or may not be read
        return False


def _open_pidfd(pid: int) -> int | None:
    """Return a descriptor that is readable once the process has exited, where there are such."""
    opener = getattr(os, "pidfd_open", None)
    if opener is None:
        return None
    try:
        return int(opener(pid))
    except OSError:  # an old kernel, or one that forbids it
        return None


def _kill_tree(popen: Any, *, gently: bool) -> None:
    """End a process and what it started, as far as Windows lets us."""
    import subprocess

    if gently:
        popen.send_signal(getattr(signal, "CTRL_BREAK_EVENT", signal.SIGTERM))
        return
    tree = ["taskkill", "/F", "/T", "/PID", str(popen.pid)]
    with suppress(subprocess.SubprocessError):
        subprocess.run(tree, capture_output=True, timeout=KILL_WAIT, check=False)
    popen.kill()
