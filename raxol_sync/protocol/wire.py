"""JSON-RPC messages: bytes to values and back, and each malformed shape by name. Floor 1; pure.

``decode`` turns bytes into a JSON value, ``classify`` turns a JSON value into one of ``Request``,
``Notification``, ``Response`` or ``Malformed``. Neither raises for anything that a peer can send:
what is wrong comes back as a ``Malformed`` that says so, with the error code that answers it (rows
S06, S07). ``encode`` raises only for what our own side did.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from raxol_sync.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR

MAX_MESSAGE_BYTES = 32 * 2**20  # bytes; the same for both directions and both sides
MAX_DEPTH = 200  # nested arrays and objects; far more than any schema, far less than the C stack
MAX_CONTAINERS = 500_000  # arrays and objects; half a second's work, of 10 million that fit
MAX_INT_DIGITS = 4300  # Python's own limit, said here because 3.10.0 to 3.10.6 have none

Params = dict[str, Any]
RequestId = str | int

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_BRACKETS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed bytes: 1 and -1
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))


class Request(NamedTuple):
    """A call that wants an answer. ``params`` is ``{}`` where it was absent or null."""

    id: RequestId
    method: str
    params: Params


class Notification(NamedTuple):
    """A message that wants no answer."""

    method: str
    params: Params


class Response(NamedTuple):
    """The answer to a request: exactly one of ``result`` and ``error`` is not ``None``."""

    id: RequestId | None
    result: Params | None
    error: Params | None


class Malformed(NamedTuple):
    """What could not be read as one of the others.

    ``answer`` tells whether it must be answered: broken requests are, broken notifications and
    broken responses never. ``id`` is the request's id where a usable one could be read.
    """

    code: int
    reason: str
    id: RequestId | None = None
    answer: bool = True


Incoming = Request | Notification | Response | Malformed


class EncodeError(ValueError):
    """Raised when a value of our own cannot be written as JSON; the text names the cause."""


# ---------------------------------------------------------------- bytes -> value


class _Refused(ValueError):
    """A number that JSON has not, or that is too large."""


def _no_constant(name: str) -> object:
    raise _Refused(f"{name} is not a JSON value")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _Refused("a number is too large for a double")
    return value


def _bounded_int(text: str) -> int:
    if len(text.lstrip("-")) > MAX_INT_DIGITS:
        raise _Refused(f"an integer has more than {MAX_INT_DIGITS} digits")
    return int(text)


# Two decoders, because a hook for integers costs a call for each: it is needed only where a run of
# digits is so long that Python itself would refuse it (or, before 3.10.7, would not).
_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
_WARY_DECODER = json.JSONDecoder(
    parse_constant=_no_constant, parse_float=_finite, parse_int=_bounded_int
)


def _has_long_digits(text: str) -> bool:
    """Return whether a run of digits is longer than ``MAX_INT_DIGITS``.

    Such a run covers one of the places looked at here; so the time is linear in the text's length.
    """
    step = MAX_INT_DIGITS + 1
    for place in range(0, len(text), step):
        if text[place].isdigit():
            before = text[max(0, place - MAX_INT_DIGITS) : place]
            left = len(before) - len(before.rstrip("0123456789"))
            after = text[place : place + step]
            if left + len(after) - len(after.lstrip("0123456789")) > MAX_INT_DIGITS:
                return True
    return False


# Counts the members of the outermost object as they stand in the text, those given twice as two.
_MEMBER_COUNTER = json.JSONDecoder(object_pairs_hook=len)


def decode(data: bytes | bytearray, *, max_bytes: int = MAX_MESSAGE_BYTES) -> object:
    """Return the JSON value in ``data``, or a ``Malformed`` naming what is wrong with it.

    Refused: more than ``max_bytes`` bytes, bytes that are not UTF-8, text that is not JSON, NaN and
    Infinity, numbers out of range, more than ``MAX_DEPTH`` levels or ``MAX_CONTAINERS`` arrays and
    objects, lone surrogates, an object that gives its id twice. Of other members that are given
    twice the last one counts.
    """
    if len(data) > max_bytes:
        return Malformed(INVALID_REQUEST, f"the message is longer than {max_bytes} bytes")
    problem = _problem_of_shape(data)
    if problem is not None:
        return Malformed(PARSE_ERROR, problem)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Malformed(PARSE_ERROR, f"the message is not UTF-8 (byte {error.start})")
    decoder = _WARY_DECODER if len(text) > MAX_INT_DIGITS and _has_long_digits(text) else _DECODER
    try:
        value = decoder.decode(text)
        twice = data.count(b'"id"') > 1  # perhaps deeper down only: then it is parsed once more
        if twice and isinstance(value, dict) and _MEMBER_COUNTER.decode(text) != len(value):
            reason = "a member of the message is given twice"
            return Malformed(INVALID_REQUEST, reason, None, _answered(value))
    except json.JSONDecodeError as error:
        return Malformed(PARSE_ERROR, f"the message is not JSON: {error.msg} at {error.pos}")
    except _Refused as error:
        return Malformed(PARSE_ERROR, f"the message is not valid JSON: {error}")
    except ValueError:  # the interpreter's own limit for integers, if it is set lower than ours
        return Malformed(PARSE_ERROR, "the message is not valid JSON: an integer is too long")
    except RecursionError:  # the interpreter's own bound, if it is set lower than ours
        return Malformed(PARSE_ERROR, "the message is nested too deeply")
    if _SURROGATE_ESCAPE.search(data) and has_lone_surrogate(value):
        reason = "a string holds a lone surrogate"
        return Malformed(PARSE_ERROR, reason, _usable_id(value), _answered(value))
    return value


def _problem_of_shape(data: bytes | bytearray) -> str | None:
    """Return what is wrong with how arrays and objects are put together: too deep, or too many.

    Most messages have fewer brackets than either bound, and counting them is all it costs.
    """
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return None
    # Without escaped characters each quote begins or ends a string, and every other part of the
    # text is outside of one. What is no JSON may be misread here: the decoder refuses it anyway,
    # and never goes deeper than the part before the mistake says.
    parts = data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
    steps = b"".join(parts[::2]).translate(_BRACKETS, _NO_BRACKETS)
    if len(steps) > 2 * MAX_CONTAINERS:
        return f"the message has more than {MAX_CONTAINERS} arrays and objects"
    if max(itertools.accumulate(memoryview(steps).cast("b")), default=0) <= MAX_DEPTH:
        return None
    return f"the message is nested deeper than {MAX_DEPTH} levels"


def has_lone_surrogate(value: object) -> bool:
    """Return whether any string in a JSON value cannot be written as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):  # cannot be written at all: as good as lone
        return True
    return False


def _answered(value: object) -> bool:
    """Return whether a broken message is answered: not if it is a notification or a response."""
    if not isinstance(value, dict):
        return True
    return "id" in value if "method" in value else not ("result" in value or "error" in value)


# ---------------------------------------------------------------- value -> message


def _usable_id(value: object) -> RequestId | None:
    """Return a message's id where it is a string or an integer that an answer can repeat.

    Booleans and floats are neither; a string with a lone surrogate cannot be written.
    """
    if isinstance(value, dict):
        candidate = value.get("id")
        if type(candidate) is int:
            return candidate
        if type(candidate) is str and not has_lone_surrogate(candidate):
            return candidate
    return None


def classify(value: object) -> Incoming:
    """Return what a decoded JSON value is (rows S06, S07). A ``Malformed`` is returned as it is."""
    if type(value) is not dict:
        if isinstance(value, Malformed):
            return value
        kind = "a batch" if isinstance(value, list) else "not an object"
        return Malformed(INVALID_REQUEST, f"the message is {kind}")
    if value.get("jsonrpc") != "2.0":
        answer = "result" not in value and "error" not in value
        return Malformed(
            INVALID_REQUEST, 'the message lacks "jsonrpc": "2.0"', _usable_id(value), answer
        )
    if "method" in value:
        return _classify_call(value)
    if "result" in value or "error" in value:
        return _classify_response(value)
    return Malformed(INVALID_REQUEST, "the message has no method", _usable_id(value), "id" in value)


def _classify_call(value: dict[str, Any]) -> Incoming:
    has_id = "id" in value
    request_id = value.get("id")
    if has_id and type(request_id) is not int and type(request_id) is not str:
        reason = f"the id must be a string or an integer, not {_json_type(request_id)}"
        return Malformed(INVALID_REQUEST, reason)
    params = value.get("params")
    method = value["method"]
    if params is None:
        params = {}
    elif type(params) is not dict:
        reason = f"params must be an object, not {_json_type(params)}"
        return Malformed(INVALID_PARAMS, reason, request_id, has_id)
    if type(method) is not str:
        reason = f"the method must be a string, not {_json_type(method)}"
        return Malformed(INVALID_REQUEST, reason, request_id, has_id)
    meta = params.get("_meta")
    if meta is not None and not isinstance(meta, dict):
        reason = f"params._meta must be an object, not {_json_type(meta)}"
        return Malformed(INVALID_PARAMS, reason, request_id, has_id)
    if has_id:
        return Request(request_id, method, params)  # type: ignore[arg-type]  # checked above
    return Notification(method, params)


def _classify_response(value: dict[str, Any]) -> Incoming:
    response_id, result, error = value.get("id"), value.get("result"), value.get("error")
    if response_id is not None and type(response_id) is not int and type(response_id) is not str:
        return Malformed(
            INVALID_REQUEST, "a response's id must be a string or an integer", None, False
        )
    if error is not None:
        if result is not None or not _is_error(error):
            return Malformed(INVALID_REQUEST, "a response's error is not valid", response_id, False)
        return Response(response_id, None, error)
    if type(result) is not dict:
        reason = f"a response's result must be an object, not {_json_type(result)}"
        return Malformed(INVALID_REQUEST, reason, response_id, False)
    return Response(response_id, result, None)


def _is_error(error: object) -> bool:
    return (
        isinstance(error, dict)
        and type(error.get("code")) is int
        and isinstance(error.get("message"), str)
    )


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    names = {
        bool: "a boolean",
        int: "an integer",
        float: "a number",
        str: "a string",
        list: "an array",
    }
    return names.get(type(value), "an object")


# ---------------------------------------------------------------- our own messages


def request(request_id: RequestId, method: str, params: Mapping[str, Any] | None = None) -> Params:
    """Return a request message; ``params`` is left out where it is ``None``."""
    message: Params = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is not None:
        message["params"] = params
    return message


def notification(method: str, params: Mapping[str, Any] | None = None) -> Params:
    """Return a notification message; ``params`` is left out where it is ``None``."""
    message: Params = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return message


def result(request_id: RequestId, value: Mapping[str, Any]) -> Params:
    """Return a response message with a result."""
    return {"jsonrpc": "2.0", "id": request_id, "result": value}


def error(
    request_id: RequestId | None,
    code: int,
    message: str,
    data: object = None,
    *,
    null_id: bool = False,
) -> Params:
    """Return a response message with an error.

    Without an id the member is left out, or null with ``null_id`` (revisions up to 2025-06-18).
    """
    detail: Params = {"code": code, "message": message}
    if data is not None:
        detail["data"] = data
    answer: Params = {"jsonrpc": "2.0"}
    if request_id is not None or null_id:
        answer["id"] = request_id
    answer["error"] = detail
    return answer


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
)


def _keep_encoder(make: Any) -> Callable[[object], str]:
    """Return what writes a value as text: ``JSONEncoder.encode``, or what it makes for each call.

    Making that anew takes longer than writing a small message. ``make`` is documented nowhere, so
    whatever is not as expected leads back to the documented way.
    """
    quote = getattr(json.encoder, "encode_basestring", None)
    sample = {"a": ["\u20ac\n", 1, 2.5, None, True, {}]}
    try:
        parts = make(None, _ENCODER.default, quote, None, ":", ",", False, False, False)
        if "".join(parts(sample, 0)) == _ENCODER.encode(sample):
            return lambda value: "".join(parts(value, 0))
    except TypeError:
        pass
    return _ENCODER.encode


_write = _keep_encoder(getattr(json.encoder, "c_make_encoder", None))


def encode(message: object) -> bytes:
    """Return a message as UTF-8 JSON on one line, without the line's end.

    Raises:
        EncodeError: it holds something that JSON has not: NaN, a lone surrogate, an object of ours.
    """
    try:
        return _write(message).encode("utf-8")
    except UnicodeEncodeError as problem:
        raise EncodeError("a string holds a lone surrogate") from problem
    except RecursionError as problem:
        raise EncodeError("a value is nested too deeply") from problem
    except (TypeError, ValueError) as problem:
        raise EncodeError(str(problem)) from problem
