"""Dates, times and durations as text, the same on every Python version. Floor 2; pure.

``datetime.fromisoformat`` knows different forms on 3.10 and 3.11; here one pattern decides (ISO
8601 as RFC 3339 profiles it, the offset optional), and the standard library only builds the value.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import Any

from raxol_sync.schema.node import Node
from raxol_sync.schema.scalars import text_node

DATE = "an ISO 8601 date such as 2026-07-28"
DATETIME = "an ISO 8601 date and time such as 2026-07-28T08:30:00Z"
TIME = "an ISO 8601 time of day such as 08:30:00"
DURATION = "an ISO 8601 duration such as PT1H30M"

_DATE = r"\d{4}-\d{2}-\d{2}"
_TIME = r"(\d{2}:\d{2})(:\d{2})?(?:\.(\d{1,9}))?(Z|z|[+-]\d{2}:\d{2})?"
_DATE_ONLY = re.compile(_DATE, re.ASCII)
_TIME_ONLY = re.compile(_TIME, re.ASCII)
_DATE_TIME = re.compile(f"({_DATE})[Tt ]{_TIME}", re.ASCII)
_DURATION = re.compile(
    r"(?P<sign>[+-])?P(?=[0-9T])(?:(?P<weeks>\d{1,9})W)?(?:(?P<days>\d{1,9})D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?"
    r"(?:(?P<seconds>\d{1,12}(?:\.\d{1,9})?)S)?)?",
    re.ASCII,
)


def _clock(hours: str, seconds: str | None, fraction: str | None, offset: str | None) -> str:
    if fraction is not None and seconds is None:
        raise ValueError("a fraction without seconds")
    micros = "." + (fraction + "000000")[:6] if fraction else ""
    zone = "+00:00" if offset in ("Z", "z") else offset or ""
    return f"{hours}{seconds or ':00'}{micros}{zone}"


def parse_datetime(text: str) -> datetime:
    """Return the date and time in ``text``; naive if it has no offset. Raises ``ValueError``.

    Digits past microseconds are cut off.
    """
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        raise ValueError("not a date-time")
    day, hours, seconds, fraction, offset = match.groups()
    return datetime.fromisoformat(f"{day}T{_clock(hours, seconds, fraction, offset)}")


def parse_date(text: str) -> date:
    """Return the date in ``text`` (``2026-07-28``). Raises ``ValueError``."""
    if _DATE_ONLY.fullmatch(text) is None:
        raise ValueError("not a date")
    return date.fromisoformat(text)


def parse_time(text: str) -> time:
    """Return the time of day in ``text`` (``08:30:00+02:00``). Raises ``ValueError``."""
    match = _TIME_ONLY.fullmatch(text)
    if match is None:
        raise ValueError("not a time")
    return time.fromisoformat(_clock(*match.groups()))


def parse_duration(text: str) -> timedelta:
    """Return the ISO 8601 duration in ``text`` (``P1DT2H``, ``-PT0.5S``).

    Years and months are refused: they have no fixed length. Raises ``ValueError`` or
    ``OverflowError``.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("not a duration")
    parts = match.groupdict()
    whole, _, fraction = (parts["seconds"] or "0").partition(".")
    length = timedelta(
        weeks=int(parts["weeks"] or 0),
        days=int(parts["days"] or 0),
        hours=int(parts["hours"] or 0),
        minutes=int(parts["minutes"] or 0),
        seconds=int(whole),
        microseconds=int((fraction + "000000")[:6]),
    )
    return -length if parts["sign"] == "-" else length


def format_duration(length: timedelta) -> str:
    """Return ``length`` as an ISO 8601 duration that ``parse_duration`` reads back the same."""
    sign = "-" if length < timedelta(0) else ""
    total = abs(length)
    hours, rest = divmod(total.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    second = f"{seconds}.{total.microseconds:06d}".rstrip("0") if total.microseconds else seconds
    days = f"{total.days}D" if total.days else ""
    return f"{sign}P{days}T{hours}H{minutes}M{second}S"


def _midnight(value: Any) -> datetime:
    if not isinstance(value, str):
        raise TypeError("not text")
    day = parse_date(value)
    return datetime(day.year, day.month, day.day)


def _seconds(value: Any) -> timedelta:
    if type(value) not in (int, float):
        raise TypeError("not a number")
    return timedelta(seconds=value)  # NaN: ValueError; infinity: OverflowError


def datetime_node() -> Node:
    """Return the node of ``datetime``. Lenient: a date alone is its midnight."""
    return text_node("date-time", DATETIME, parse_datetime, _midnight)


def date_node() -> Node:
    """Return the node of ``date``."""
    return text_node("date", DATE, parse_date)


def time_node() -> Node:
    """Return the node of ``time``."""
    return text_node("time", TIME, parse_time)


def duration_node() -> Node:
    """Return the node of ``timedelta``. Lenient: a number of seconds."""
    return text_node("duration", DURATION, parse_duration, _seconds)
