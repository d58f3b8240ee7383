"""What a client says of a server that cannot be started, or does not speak as one."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from raxol_sync import Client, ConnectFailed, ServerExited
from raxol_sync.client.noise import MAX_LOGGED

OLD = "2025-11-25"  # is not asked which era it speaks: there is one connection
NOISY = """
import sys
for number in range({lines}):
    sys.stdout.write("DEBUG password=hunter2 %d " % number + "x" * 300 + "\\n")
sys.stdout.flush()
sys.exit(2)
"""


def failure(command: str, *args: str, init_timeout: float = 20, **more: str) -> ConnectFailed:
    """How starting a server fails."""
    options = {"fail_fast": True, "init_timeout": init_timeout, **more}
    with (
        pytest.raises(ConnectFailed) as caught,
        Client("x", command=command, args=args, **options),  # type: ignore[arg-type]
    ):
        raise AssertionError("it was started")
    return caught.value


def test_c01_arguments_in_the_command() -> None:
    """They go elsewhere, and are not repeated: they may be secret."""
    reason = failure("no-such-python srv.py --token s3cret").reason
    assert reason == "the command 'no-such-python ...' was not found: arguments go in args="
    assert "was not found; give" in failure("   ").reason


def test_c01_a_folder_and_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no program is told apart."""
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "srv.py"
    script.write_text("print(1)\n")
    assert failure(str(tmp_path)).reason.endswith("is a folder; give the program in it")
    assert "a Python file goes in args=, with command='python'" in failure("srv.py").reason
    assert "a Python file goes in args=, with command='python'" in failure("./srv.py").reason
    script.chmod(0o755)
    reason = "the command './srv.py' has no #! line: start it with its interpreter"
    assert failure("./srv.py").reason == reason
    script.write_bytes(b"\x7fNOT\0" + bytes(100))
    assert "could not be started: exec format error" in failure("./srv.py").reason


def test_c16_a_script_that_never_serves() -> None:
    """Status 0, and no message: what a first server forgets is named."""
    error = failure(sys.executable, "-c", "server = 1")
    assert error.reason.endswith(
        "exited with status 0 before it answered; does it call server.run()?"
    )
    assert isinstance(error.__cause__, ServerExited)
    assert error.__cause__.code == 0
    assert "server.run()" not in failure(sys.executable, "-c", "raise SystemExit(3)").reason


@pytest.mark.parametrize("ends", ["stays", "exits"])
def test_c20_a_failed_handshake_tells_of_noise(ends: str) -> None:
    """The first line that was no message, shortened and harmless."""
    last = "sys.stdin.read()" if ends == "stays" else "sys.exit(2)"
    code = f"import sys; print('Starting \\x1b[1m' + 'x' * 500, flush=True); {last}"
    error = failure(sys.executable, "-c", code, init_timeout=3 if ends == "stays" else 20)
    assert r"; it wrote to stdout what is no message: Starting \x1b[1mxxx" in error.reason
    assert len(error.reason) < 300


def test_c20_noise_is_logged_up_to_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    """Ten lines, then a word that there are more, then how many there were."""
    lines = 20_000
    with caplog.at_level(logging.DEBUG, "raxol_sync"):
        failure(sys.executable, "-c", NOISY.format(lines=lines), protocol_version=OLD)
    told = [record.getMessage() for record in caplog.records]
    shown = [text for text in told if "hunter2" in text and "skipped" in text]
    assert len(shown) == MAX_LOGGED
    assert all(len(text) < 300 for text in shown)
    assert sum("left out here, and counted" in text for text in told) == 1
    assert f"< x: skipped {lines} lines on its stdout that were no messages" in told
    assert len(told) < 30


def test_c20_a_little_noise_is_not_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Each line was logged."""
    failure(sys.executable, "-c", NOISY.format(lines=MAX_LOGGED), protocol_version=OLD)
    told = [record.getMessage() for record in caplog.records]
    assert sum("skipped: " in text for text in told) == MAX_LOGGED
    assert not any("left out" in text or "skipped 1" in text for text in told)
