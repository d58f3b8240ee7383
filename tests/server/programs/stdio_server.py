"""A server over stdio that misbehaves on request: it prints, floods, hangs, and starts children."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from raxol_sync import Context, Server
from raxol_sync.errors import RPCError

server = Server("stdio-tests")
forever = threading.Event()


@server.tool
def echo(text: str) -> str:
    """Return the text."""
    return text


@server.tool
def size(text: str) -> int:
    """Return the text's length."""
    return len(text)


@server.tool
def big(n: int) -> str:
    """Return that many letters."""
    return "é" * n


@server.tool
def stray(text: str) -> str:
    """Write to stdout in every way there is."""
    print(text)
    sys.stdout.flush()
    sys.__stdout__.write(text + "\n")  # type: ignore[union-attr]
    os.write(1, b"raw\n")
    os.system("echo from a shell")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    return "printed"


@server.tool
def child_reads() -> str:
    """Run a child that reads its stdin to the end; and read our own."""
    code = "import sys; print(repr(sys.stdin.read()))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip() + repr(sys.stdin.read())


@server.tool
def hang(context: Context) -> str:
    """Say that it runs, then never return."""
    context.log("error", "hanging")
    forever.wait()
    return "never"


@server.tool
def after(path: str) -> str:
    """Return once the named pipe has a writer that closed it."""
    return Path(path).read_text()


@server.tool
def talk(n: int, context: Context) -> str:
    """Report progress `n` times, until cancelled."""
    for step in range(n):
        context.progress(step + 1)
    return "done"


@server.tool
def unsendable() -> str:
    """Fail with what JSON has not, after a log message that it has not either."""
    raise RPCError(-1, "no", object())


@server.tool
def surrogate(context: Context) -> str:
    """Log and return half a character."""
    context.log("error", "\ud800")
    return "\ud800"


@server.tool
def long_log(n: int, context: Context) -> str:
    """Log that many letters, then a few, and return."""
    context.log("error", "é" * n)
    context.log("error", "short")
    return "logged"


@server.tool
def fork(context: Context, stays: bool = False) -> str:
    """Fork, and return in the child too, or have it wait there; tell the child's process id."""
    ready, begun = os.pipe()
    child = os.fork()
    if child == 0:
        context.log("error", "from the child")
        os.write(begun, b"!")
        if stays:
            forever.wait()
        return "from the child"
    os.read(ready, 1)
    return str(child)


@server.tool
def close() -> str:
    """Close the server from within."""
    server.close()
    return "closed"


@server.tool
def change() -> str:
    """Change the list of tools."""
    server.tool(name="new")(lambda: None)
    return "changed"


def main() -> None:
    """Serve on the main thread, or on another one, and say how it ended on stderr."""
    if "--flood" in sys.argv:
        server.notify("notifications/ignored")
    if "--thread" in sys.argv:
        thread = threading.Thread(target=server.run, name="runner")
        thread.start()
        thread.join()
    else:
        server.run()
    left = sorted(t.name for t in threading.enumerate() if "worker" not in t.name)
    os.write(1, b"restored\n")
    rest = os.read(0, 100) if "--rest" in sys.argv else b""
    if sys.stderr is not None:
        print("left:", left, rest, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
