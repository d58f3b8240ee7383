"""Rows S06, S07: bytes become a JSON value, or a `Malformed` that names what is wrong."""

from __future__ import annotations

import inspect
import json
import sys
import time

import pytest

from raxol_sync.errors import INVALID_REQUEST, PARSE_ERROR
from raxol_sync.protocol import wire
from raxol_sync.protocol.wire import MAX_CONTAINERS, MAX_DEPTH, MAX_INT_DIGITS, Malformed, decode

QUICK = 5.0  # seconds; a linear reading takes a hundredth of it, a quadratic one far more


def malformed(data: bytes, *, max_bytes: int = wire.MAX_MESSAGE_BYTES) -> Malformed:
    value = decode(data, max_bytes=max_bytes)
    assert isinstance(value, Malformed), value
    return value


def nested(levels: int, inner: str = "0") -> bytes:
    return ("[" * levels + inner + "]" * levels).encode()


def test_s06_the_number_of_arrays_and_objects_is_bounded() -> None:
    """Half a million are read; brackets inside of strings do not count."""
    assert isinstance(decode(b"[" + b"{}," * (MAX_CONTAINERS - 2) + b"{}]"), list)
    assert isinstance(decode(b'["' + b"[]" * MAX_CONTAINERS + b'"]'), list)
    for many in (b"[" + b"[]," * MAX_CONTAINERS + b"[]]", b"[]" * (MAX_CONTAINERS + 1)):
        bad = malformed(many)
        assert bad.code == PARSE_ERROR
        assert "more than 500000 arrays and objects" in bad.reason


@pytest.mark.parametrize(
    ("data", "word"),
    [
        pytest.param(b"", "not JSON", id="empty"),
        pytest.param(b"   \n", "not JSON", id="blank"),
        pytest.param(b"{", "not JSON", id="cut-off"),
        pytest.param(b'{"a":1,}', "not JSON", id="trailing-comma"),
        pytest.param(b"{} {}", "not JSON", id="two-values"),
        pytest.param(b"{'a': 1}", "not JSON", id="single-quotes"),
        pytest.param(b'"a\tb"', "not JSON", id="raw-control-character"),
        pytest.param(b"01", "not JSON", id="leading-zero"),
        pytest.param(b"+1", "not JSON", id="plus"),
        pytest.param(b"1.", "not JSON", id="no-fraction"),
        pytest.param(b'"\\x41"', "not JSON", id="bad-escape"),
        pytest.param(b"\xef\xbb\xbf{}", "not JSON", id="byte-order-mark"),
        pytest.param("{}".encode("utf-16-le"), "not JSON", id="utf-16-le"),
        pytest.param("{}".encode("utf-16"), "not UTF-8", id="utf-16"),
        pytest.param(b'"\xff"', "not UTF-8", id="no-utf-8"),
        pytest.param(b'"\xed\xa0\x80"', "not UTF-8", id="raw-surrogate"),
        pytest.param(b'"\xc0\x80"', "not UTF-8", id="overlong-nul"),
        pytest.param(b'"\xe2\x82', "not UTF-8", id="cut-in-a-character"),
        pytest.param(b"NaN", "NaN", id="nan"),
        pytest.param(b'{"a":[Infinity]}', "Infinity", id="infinity"),
        pytest.param(b"-Infinity", "-Infinity", id="minus-infinity"),
        pytest.param(b"1e999", "too large", id="1e999"),
        pytest.param(b"[-1e999]", "too large", id="minus-1e999"),
        pytest.param(b"[" + b"9" * 400 + b".5]", "too large", id="400-digits-as-a-double"),
    ],
)
def test_s06_what_is_no_json_is_a_parse_error(data: bytes, word: str) -> None:
    """Each malformed shape is named, answered, and has no id."""
    bad = malformed(data)
    assert (bad.code, bad.id, bad.answer) == (PARSE_ERROR, None, True)
    assert word in bad.reason


@pytest.mark.parametrize("sign", ["", "-"])
def test_s06_integers_have_at_most_4300_digits(sign: str) -> None:
    """4300 digits are read; one more is refused, however Python itself is set."""
    most = sign + "9" * MAX_INT_DIGITS
    assert decode(most.encode()) == int(most)
    beside = '["' + "1" * (MAX_INT_DIGITS + 1) + f'",{most}]'
    assert decode(beside.encode()) == ["1" * (MAX_INT_DIGITS + 1), int(most)]
    bad = malformed(f"[{most}9]".encode())
    assert bad.code == PARSE_ERROR
    assert "4300 digits" in bad.reason


def test_s06_long_runs_of_digits_are_found_wherever_they_begin() -> None:
    """Every place of a run that is one digit too long, and of one that is not."""
    for before in (*range(0, 3 * MAX_INT_DIGITS, 487), MAX_INT_DIGITS, MAX_INT_DIGITS + 1):
        start = '["' + "x" * before + '",'
        assert isinstance(decode(f"{start}{'7' * (MAX_INT_DIGITS + 1)}]".encode()), Malformed)
        assert isinstance(decode(f"{start}{'7' * MAX_INT_DIGITS}]".encode()), list)


@pytest.mark.skipif(not hasattr(sys, "set_int_max_str_digits"), reason="no such limit")
@pytest.mark.parametrize("limit", [0, 640])
def test_s06_a_limit_of_the_interpreter_makes_no_difference(limit: int) -> None:
    """`decode` raises neither where Python's own limit is lower nor where it is lifted."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(limit)
    try:
        values = [decode(b"1" * digits) for digits in (700, MAX_INT_DIGITS + 1)]
    finally:
        sys.set_int_max_str_digits(before)
    assert isinstance(values[0], Malformed) == (limit == 640)
    assert isinstance(values[1], Malformed)


def test_s06_nesting_is_bounded() -> None:
    """200 levels are read; deeper ones are refused, also far beyond the interpreter's stack."""
    assert isinstance(decode(nested(MAX_DEPTH)), list)
    assert isinstance(decode(b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH), dict)
    for levels in (MAX_DEPTH + 1, 1000, 500_000):
        bad = malformed(nested(levels))
        assert bad.code == PARSE_ERROR
        assert "nested deeper than 200 levels" in bad.reason
    assert isinstance(decode(b'[{"a":' * 150 + b"1" + b"}]" * 150), Malformed)


@pytest.mark.parametrize(
    "text",
    ["[" * 300, "]" * 300, '"' + "[{" * 300, '\\"' + "[" * 300, '\\\\"' + "[" * 300 + '\\\\"'],
)
def test_brackets_in_strings_are_no_levels(text: str) -> None:
    """Quotes and backslashes before brackets do not mislead the count."""
    for value in ([text], {text: text}, [text, "[", '"']):
        assert decode(json.dumps(value).encode()) == value


def test_many_brackets_side_by_side_are_no_levels() -> None:
    """A long flat message is no deep one."""
    assert decode(json.dumps([[[]]] * 5000).encode()) == [[[]]] * 5000
    assert isinstance(decode(b"[" * 150 + b"]" * 150 + b"[" * 150), Malformed)  # just no JSON


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'["' + (b"1" * MAX_INT_DIGITS + b"a") * 1000 + b'"]', id="runs-of-digits"),
        pytest.param(b"[" * 201 + b'"' + b'\\"' * 1_000_000, id="a-string-without-end"),
        pytest.param(b"[" * 201 + b'"' + b"a" * 4_000_000 + b'"', id="a-long-string"),
        pytest.param(b'["' + b"\\\\" * 1_000_000 + b"[" * 300 + b'"]', id="backslashes"),
        pytest.param(b"[" + b"[]," * 500_000 + b"0]", id="flat"),
    ],
)
def test_reading_takes_time_in_proportion_to_the_length(data: bytes) -> None:
    """No message makes the checks quadratic: each of these took minutes or gigabytes once."""
    started = time.monotonic()
    decode(data)
    assert time.monotonic() - started < QUICK


@pytest.mark.parametrize(
    "text",
    [r'{"a":"\ud800"}', r'["\uDFFF x"]', r'{"\udead":1}', r'["\udc00\ud800"]', r'"\ud83d\u0041"'],
)
def test_s06_lone_surrogates_are_refused(text: str) -> None:
    """A half of a pair, in a value or in a name, cannot be sent on as UTF-8."""
    bad = malformed(text.encode())
    assert bad.code == PARSE_ERROR
    assert "lone surrogate" in bad.reason


def test_s06_an_id_that_cannot_be_repeated_is_left_out() -> None:
    """The answer to it must be JSON itself."""
    bad = malformed(rb'{"jsonrpc":"2.0","id":"\ud800","method":"ping"}')
    assert bad.id is None
    assert bad.answer


def test_pairs_of_surrogates_and_text_that_looks_like_them_are_read() -> None:
    """An escaped pair is one character; an escaped backslash begins no escape."""
    assert decode(rb'"\ud83d\ude00"') == "\U0001f600"
    assert decode(rb'"\\ud800"') == r"\ud800"
    assert decode(b'"\xf0\x9f\x98\x80"') == "\U0001f600"


@pytest.mark.parametrize("what", [r'"\ud800"', '1,"id":3'])
def test_s07_only_what_could_be_a_request_is_answered(what: str) -> None:
    """A notification or a response that is refused is still not answered; a request is."""

    def flags(text: str) -> tuple[int | str | None, bool]:
        bad = malformed(text.encode())
        return bad.id, bad.answer

    known = 7 if "d800" in what else None
    assert flags(f'{{"jsonrpc":"2.0","id":7,"method":"m","params":{{}},"x":{what}}}') == (
        known,
        True,
    )
    assert flags(f'{{"jsonrpc":"2.0","id":7,"result":{{}},"x":{what}}}') == (known, False)
    assert flags(f'{{"jsonrpc":"2.0","id":7,"error":{{}},"x":{what}}}') == (known, False)
    if known:
        assert flags(f'{{"jsonrpc":"2.0","method":"m","x":{what}}}') == (None, False)
        assert flags(f'["{what[1:]}]') == (None, True)


def test_s06_an_id_given_twice_is_refused() -> None:
    """Who of the two would be answered is not for the receiver to guess."""
    bad = malformed(b'{"jsonrpc":"2.0","id":1,"method":"ping","id":2}')
    assert bad == Malformed(INVALID_REQUEST, "a member of the message is given twice")
    assert isinstance(decode(rb'{"id":1,"id":2,"\u0069d":3}'), Malformed)


def test_ids_deeper_down_are_data() -> None:
    """The arguments of a call may have an id, and may even name it twice: the last one counts."""
    text = b' {"jsonrpc":"2.0","id":1,"method":"m","params":{"id":2,"rows":[{"id":3},{"id":3}]}}'
    assert decode(text) == json.loads(text)
    assert decode(b'{"id":1,"params":{"id":2,"id":3}}') == {"id": 1, "params": {"id": 3}}
    assert decode(b'[{"id":1},{"id":1}]') == [{"id": 1}, {"id": 1}]
    assert decode(b'{"params":1,"params":2}') == {"params": 2}


def test_s06_long_messages_are_refused_unread() -> None:
    """The limit is in bytes, and includes its last one."""
    assert decode(b'"aaaa"', max_bytes=6) == "aaaa"
    bad = malformed(b'"aaaaa"', max_bytes=6)
    assert (bad.code, bad.id, bad.answer) == (INVALID_REQUEST, None, True)
    assert "longer than 6 bytes" in bad.reason
    assert isinstance(decode('"ääa"'.encode(), max_bytes=6), Malformed)


def test_decode_survives_a_stack_that_is_nearly_full() -> None:
    """A caller deep in its own recursion gets an answer, too."""

    def dive(levels: int) -> object:
        return dive(levels - 1) if levels else decode(data)

    data = nested(MAX_DEPTH, r'{"id":{"id":"\ud83d\ude00"}}')
    before = sys.getrecursionlimit()
    used = len(inspect.stack(0))
    sys.setrecursionlimit(used + 260)
    try:
        values = [dive(levels) for levels in range(1, 200, 3)]
    finally:
        sys.setrecursionlimit(before)
    assert all(isinstance(value, (list, Malformed)) for value in values)


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_both_kinds_of_bytes_are_read(kind: type[bytes] | type[bytearray]) -> None:
    """`bytes` and `bytearray` give the same."""
    data = b'{"a":[1,-2.5e3,true,false,null,"\xc3\xa4 \\u00e4\\n"]}'
    assert decode(kind(data)) == {"a": [1, -2500.0, True, False, None, "ä ä\n"]}
