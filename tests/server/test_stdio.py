"""A server as a real process over stdin and stdout."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from raxol_sync.protocol.wire import MAX_MESSAGE_BYTES
from tests.server.helpers import SERVER_INFO, WAIT, call, cancelled, initialize, modern, note, req
from tests.server.stdio_client import Stdio

PROMPT_END = 3.0  # seconds within which a process must have ended, whatever hangs in it


def value(answer: Any) -> Any:
    """The text of a tool's answer."""
    return answer["result"]["content"][0]["text"]


def test_s14_nothing_that_is_printed_reaches_the_protocol() -> None:
    """print, os.write(1), a shell and a child: all of it goes to stderr; it exits with 0."""
    with Stdio() as server:
        assert value(server.ask(call("stray", {"text": "stray words"}))) == "printed"
        assert value(server.ask(call("echo", {"text": "x"}, id=2))) == "x"
        assert server.end() == 0
        assert server.rest() == [b"restored\n"]
        for words in (b"stray words", b"raw", b"from a shell", b"from a child"):
            assert words in server.stderr
        assert server.stderr.count(b"stray words") == 2


def test_a_child_that_reads_stdin_takes_nothing_of_the_protocol() -> None:
    """Children and `sys.stdin` find nothing there; the next request is answered."""
    with Stdio() as server:
        assert value(server.ask(call("child_reads"))) == "''''"
        assert value(server.ask(call("echo", {"text": "x"}, id=2))) == "x"
        assert server.end() == 0


@pytest.mark.parametrize("env", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"},
                                 {"PYTHONIOENCODING": "utf-16"}])  # fmt: skip
def test_no_locale_takes_part(env: dict[str, str]) -> None:
    """Bytes are UTF-8 in and out, whatever the environment says."""
    with Stdio(env=env) as server:
        text = "äöü \u2028 \u0085 \x0b \U0001f600"
        message = json.dumps(call("echo", {"text": text}), ensure_ascii=False).encode() + b"\n"
        server.send(message)
        line = server.line()
        assert value(json.loads(line)) == text
        assert "\U0001f600".encode() in line
        assert server.end() == 0


def test_line_ends_and_odd_framing() -> None:
    """CRLF, empty lines, lines cut anywhere, several at once, and a last one without an end."""
    with Stdio() as server:
        data = json.dumps(req("ping", id=1)).encode()
        server.send(data + b"\r\n\r\n\n  \n")
        assert server.receive()["id"] == 1
        for cut in range(0, len(data), 7):
            server.send(data[cut : cut + 7])
        server.send(b"\n" + data + b"\n" + data + b"\n")
        assert [server.receive()["id"] for _ in range(3)] == [1, 1, 1]
        server.send(json.dumps(req("ping", id="last")).encode())
        assert server.end() == 0
        assert json.loads(server.rest()[0])["id"] == "last"


def test_ten_megabytes_both_ways() -> None:
    """A request and a response of ten megabytes are one line each."""
    with Stdio() as server:
        assert value(server.ask(call("size", {"text": "x" * 10_000_000}))) == "10000000"
        assert value(server.ask(call("big", {"n": 5_000_000}, id=2))) == "é" * 5_000_000
        assert server.end() == 0


def test_a_line_past_the_limit_is_refused_and_the_next_one_served() -> None:
    """Memory stays bounded while it is thrown away."""
    with Stdio() as server:
        server.ask(req("ping", id=1))
        block = b"x" * 2**20
        for _ in range(200):
            server.send(block)
        server.send(b"\n")
        error = server.receive()
        assert error["error"]["code"] == -32600
        assert "id" not in error
        assert server.ask(req("ping", id=2))["result"] == {}
        status = Path(f"/proc/{server.process.pid}/status")
        if status.exists():
            peak = next(s for s in status.read_text().splitlines() if s.startswith("VmHWM"))
            assert int(peak.split()[1]) < 150_000  # kB
        assert server.end() == 0


GARBAGE = [
    (b"\xff\xfe\x00garbage\n", -32700),
    (b"{\n", -32700),
    (b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}\n', -32700),
    (b"[" * 10_000 + b"\n", -32700),
    (b'"ping"\n', -32600),
    (b"[]\n", -32600),
    (b"\x00\n", -32700),
]


@pytest.mark.parametrize(("data", "error"), GARBAGE)
def test_garbage_is_answered_and_the_next_request_served(data: bytes, error: int) -> None:
    """Each bad line gets one error; nothing else happens."""
    with Stdio() as server:
        server.send(data)
        assert server.receive()["error"]["code"] == error
        assert server.ask(req("ping"))["result"] == {}
        assert server.end() == 0


def test_s47_both_eras_in_one_process() -> None:
    """A modern request, an initialize, a modern one again."""
    with Stdio() as server:
        found = server.ask(modern("server/discover", id=1))["result"]
        assert found["_meta"][SERVER_INFO]["name"] == "stdio-tests"
        assert server.ask(initialize("2025-06-18", id=2))["result"]["protocolVersion"]
        server.send(note("notifications/initialized"))
        assert "resultType" not in server.ask(call("echo", {"text": "x"}, id=3))["result"]
        params = {"name": "echo", "arguments": {"text": "x"}}
        answer = server.ask(modern("tools/call", params, id=4))["result"]
        assert answer["resultType"] == "complete"
        assert server.end() == 0


def test_s52_a_listen_over_stdio() -> None:
    """Acknowledged, told, and ended with its result when the server goes."""
    with Stdio() as server:
        wanted = {"notifications": {"toolsListChanged": True}}
        server.send(modern("subscriptions/listen", wanted, id="L"))
        assert server.receive()["method"] == "notifications/subscriptions/acknowledged"
        server.send(modern("tools/call", {"name": "change"}, id=2))
        assert server.receive()["method"] == "notifications/tools/list_changed"
        assert value(server.receive()) == "changed"
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
        lines = server.rest()
        assert json.loads(lines[0])["id"] == "L"
        assert lines[1:] == [b"restored\n"]


# ---------------------------------------------------------------- batches


def test_s06_batches_are_for_2025_03_26_only() -> None:
    """There the responses come as one array; elsewhere a batch is `-32600`."""
    batch = [req("ping", id=1), note("notifications/x"), req("no/such", id=2), 5]
    for revision in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
        with Stdio() as server:
            server.ask(initialize(revision))
            server.send(batch)
            answer = server.receive()
            if revision == "2025-03-26":
                assert [a.get("id") for a in answer] == [1, 2, None]
                assert [a.get("error", {}).get("code") for a in answer] == [None, -32601, -32600]
            else:
                assert answer["error"]["code"] == -32600
            assert server.end() == 0


def test_s06_odd_batches() -> None:
    """Empty, too long, only notifications, an initialize within, what cannot be sent within."""
    with Stdio() as server:
        server.ask(initialize("2025-03-26"))
        server.send([])
        assert server.receive()["error"]["code"] == -32600
        server.send([note("x")] * 1001)
        assert server.receive()["error"]["code"] == -32600
        server.send([note("x"), note("y")])
        server.send([initialize(id=[1]), initialize(id="i"), note("initialize")])
        first, second = sorted(server.receive(), key=lambda a: str(a["id"]), reverse=True)
        assert (first["id"], second["id"]) == ("i", None)
        server.send([call("unsendable", id=1), req("ping", id=2)])
        answers = {a["id"]: a for a in server.receive()}
        assert answers[1]["error"]["code"] == -32603
        assert answers[2]["result"] == {}
        assert server.ask(req("ping", id=3))["result"] == {}
        assert server.end() == 0


def test_a_batch_in_flight_is_still_answered_when_stdin_closes() -> None:
    """Its array is the last thing written."""
    with Stdio() as server:
        server.ask(initialize("2025-03-26"))
        server.send([call("echo", {"text": str(i)}, id=i) for i in range(10)])
        assert server.end() == 0
        lines = server.rest()
        assert {a["id"] for a in json.loads(lines[0])} == set(range(10))
        assert lines[1:] == [b"restored\n"]


# ---------------------------------------------------------------- what cannot be sent


TOO_MANY = MAX_MESSAGE_BYTES // 2  # letters of two bytes; what is around them is too much


def test_a_result_that_is_too_long_fails_its_own_call_only() -> None:
    """It says how long it is and what the bound is; a call that runs meanwhile goes on."""
    with Stdio() as server:
        server.send(call("hang", id=1))
        assert server.receive()["method"] == "notifications/message"
        error = server.ask(call("big", {"n": TOO_MANY}, id=2))["error"]
        assert error["code"] == -32603
        words = r"it has (\d+) bytes, and a message may have 33554432"
        (size,) = re.findall(words, error["message"])
        assert MAX_MESSAGE_BYTES < int(size) < MAX_MESSAGE_BYTES + 200
        assert value(server.ask(call("echo", {"text": "x"}, id=3))) == "x"
        server.send(cancelled(1))
        assert value(server.ask(call("echo", {"text": "y"}, id=4))) == "y"
    assert b"a result cannot be sent: it has" in server.stderr


def test_a_result_just_below_the_bound_is_sent() -> None:
    """To the byte: its own length decides, not a guess."""
    with Stdio() as server:
        small = server.ask(call("big", {"n": 0}))
        around = len(json.dumps(small, separators=(",", ":"), ensure_ascii=False).encode())
        room = (MAX_MESSAGE_BYTES - around) // 2
        assert len(value(server.ask(call("big", {"n": room}, id=2)))) == room
        assert "error" in server.ask(call("big", {"n": room + 1}, id=3))
        assert server.end() == 0


def test_a_notification_that_is_too_long_is_left_out() -> None:
    """With a log line; what follows is sent."""
    with Stdio() as server:
        server.send(call("long_log", {"n": TOO_MANY}))
        assert server.receive()["params"]["data"] == "short"
        assert value(server.receive()) == "logged"
        assert server.end() == 0
    assert b"notifications/message cannot be sent: it has" in server.stderr


def test_a_batch_that_is_too_long_loses_its_longest_answers() -> None:
    """Two that fit alone do not fit together; the small one is answered as ever."""
    with Stdio() as server:
        assert server.ask(initialize("2025-03-26"))["result"]["protocolVersion"] == "2025-03-26"
        letters = TOO_MANY * 2 // 3
        big = [call("big", {"n": letters + extra}, id=extra) for extra in (1, 2)]
        server.send(call("echo", {"text": "warm"}, id=9))
        server.receive()
        server.send([*big, req("ping", id=3)])
        answers = {answer["id"]: answer for answer in server.receive()}
        assert len(value(answers[1])) == letters + 1
        assert "together with others" in answers[2]["error"]["message"]
        assert answers[3]["result"] == {}
        assert server.end() == 0


def test_what_cannot_be_sent_is_an_error_and_never_an_empty_line() -> None:
    """The request is answered; a notification is dropped; the stream stays whole."""
    with Stdio() as server:
        assert server.ask(call("unsendable"))["error"]["code"] == -32603
        assert server.ask(call("surrogate", id=2))["error"]["code"] == -32603
        assert server.ask(req("ping", id=3))["result"] == {}
        assert server.end() == 0
        assert server.rest() == [b"restored\n"]


# ---------------------------------------------------------------- the end


def test_quick_calls_in_flight_are_answered_when_stdin_closes() -> None:
    """All that was sent before the end is answered, once."""
    with Stdio() as server:
        for i in range(10):
            server.send(call("echo", {"text": "x"}, id=i))
        assert server.end() == 0
        lines = server.rest()
        assert sorted(json.loads(line)["id"] for line in lines[:-1]) == list(range(10))


def test_a_hung_tool_does_not_hold_up_the_end() -> None:
    """Neither at stdin's end nor at a signal."""
    for how in ("stdin", "signal"):
        with Stdio() as server:
            server.send(call("hang"))
            assert server.receive()["method"] == "notifications/message"
            began = time.monotonic()
            if how == "signal":
                server.process.send_signal(signal.SIGTERM)
                server.process.wait(WAIT)
            assert server.end() == 0
            assert time.monotonic() - began < PROMPT_END
            assert server.rest() == [b"restored\n"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_with_status_zero(number: signal.Signals) -> None:
    """Stdin is given back with what was not read."""
    with Stdio() as server:
        server.ask(req("ping"))
        server.process.send_signal(number)
        server.process.wait(WAIT)
        assert server.end() == 0
        assert server.rest() == [b"restored\n"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_again_while_it_ends_does_no_harm(number: signal.Signals) -> None:
    """A tool that does not return keeps `run` busy ending; more signals change nothing."""
    with Stdio() as server:
        server.send(call("talk", {"n": 10**9}, id="t", _meta={"progressToken": 1}))
        server.receive()
        for _ in range(3):
            server.process.send_signal(number)
        server.process.wait(WAIT)
        # After run() the program's own handlers are back: a signal so late is the program's.
        assert server.end() in (0, -number)


def test_the_descriptors_are_given_back_and_no_thread_is_left() -> None:
    """After `run()` the program reads its stdin and writes its stdout as before."""
    with Stdio("--rest") as server:
        server.ask(req("ping"))
        server.process.send_signal(signal.SIGTERM)
        assert server.line() == b"restored\n"
        server.send(b"for the program\n")
        assert server.end() == 0
        assert b"left: ['MainThread'] b'for the program\\n'" in server.stderr


def test_run_from_another_thread() -> None:
    """It serves and ends with stdin."""
    with Stdio("--thread") as server:
        assert value(server.ask(call("echo", {"text": "x"}))) == "x"
        assert server.end() == 0
        assert b"left: ['MainThread']" in server.stderr


def test_a_client_that_stops_reading_ends_it() -> None:
    """EPIPE: nobody is left to serve."""
    with Stdio() as server:
        server.ask(req("ping"))
    read_end, write_end = os.pipe()
    with Stdio(stdout=write_end) as server:
        os.close(write_end)
        os.close(read_end)
        server.send(req("ping"))
        assert server.end(close=False) != 120
        assert b"Traceback" not in server.stderr.replace(b"BrokenPipeError", b"") or (
            b"os.write(1" in server.stderr  # the program's own last write
        )


def test_a_server_that_a_tool_closes_ends() -> None:
    """`run()` returns although stdin stays open."""
    with Stdio() as server:
        server.send(call("close"))
        assert server.end(close=False) == 0
        assert server.rest() == [b"restored\n"]


def test_s20_a_client_that_never_reads_is_cut_off() -> None:
    """Past the bound its connection ends, and with it the process."""
    read_end, write_end = os.pipe()
    with Stdio(stdout=write_end) as server:
        os.close(write_end)
        server.send(initialize())
        message = json.dumps(req("ping")).encode() + b"\n"
        try:
            for _ in range(20):
                server.send(message * 1000)
        except BrokenPipeError:
            assert server.process.poll() is not None or server.process.wait(WAIT) is not None
        os.close(read_end)
        server.end(close=False)
        assert b"does not read" in server.stderr


def test_pipes_that_do_not_block_are_read_and_written_all_the_same() -> None:
    """A parent that left its ends non-blocking does no harm."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with Stdio(stdout=write_end) as server:
        os.close(write_end)
        server.send(call("big", {"n": 200_000}))
        data = b""
        while not data.endswith(b"\n"):
            data += os.read(read_end, 65536)
        assert len(value(json.loads(data))) == 200_000
        assert server.end() == 0
        os.close(read_end)


def test_without_stderr_it_serves_all_the_same() -> None:
    """With descriptor 2 closed nothing that is printed reaches the client."""
    with Stdio(preexec_fn=lambda: os.close(2)) as server:
        assert value(server.ask(call("stray", {"text": "x"}))) == "printed"
        assert server.end() == 0
        assert server.rest() == [b"restored\n"]


# ---------------------------------------------------------------- cancelling


def test_s50_nothing_is_written_after_a_cancel() -> None:
    """Neither progress nor a response follows the answer to what was sent after the cancel."""
    with Stdio() as server:
        message = call("talk", {"n": 10**9}, id="t", _meta={"progressToken": 1})
        server.send(message)
        server.receive()
        server.send(cancelled("t"), req("ping", id="after"))
        while server.receive().get("id") != "after":
            continue
        assert server.ask(req("ping", id="next"))["result"] == {}
        assert server.end() == 0
        assert server.rest() == [b"restored\n"]


def test_s20_a_tool_that_reports_without_pause_loses_no_connection() -> None:
    """It is slowed down to what a client that reads can take; every report arrives, in order."""
    with Stdio() as server:
        count = 20_000  # many times what the outbox holds
        server.send(call("talk", {"n": count}, id=1, _meta={"progressToken": "p"}))
        got = [server.receive() for _ in range(count + 1)]
        assert [m["params"]["progress"] for m in got[:-1]] == list(range(1, count + 1))
        assert got[-1]["id"] == 1
        assert server.ask(req("ping", id=2))["result"] == {}
        assert server.end() == 0


def test_s20_progress_comes_before_the_response() -> None:
    """All in order on the one channel."""
    with Stdio() as server:
        server.send(call("talk", {"n": 500}, id=1, _meta={"progressToken": "p"}))
        got = [server.receive() for _ in range(501)]
        assert [m["params"]["progress"] for m in got[:-1]] == list(range(1, 501))
        assert got[-1]["id"] == 1
        assert server.end() == 0
