"""Times as people enter them, and as they are shown."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from google.protobuf.timestamp_pb2 import Timestamp

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|min|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}


def moment(text: str, now: datetime) -> datetime:
    """The time that ``text`` means: ISO 8601, or how long ago (``90s``, ``15min``, ``2h``, ``3d``).

    Without an offset it is local time; a date alone means its midnight.

    Raises:
        ValueError: It is neither, or outside the years 1 to 9999.
    """
    try:
        if _DURATION.fullmatch(text.strip()):
            return now - duration(text)
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{text!r} is not a time: give ISO 8601, such as 2026-03-01 or 2026-03-01T12:00Z, or "
            "how long ago, such as 90s, 15min, 2h, 3d or 1w"
        ) from None


def duration(text: str) -> timedelta:
    """The duration that ``text`` means, such as ``90s``, ``15min``, ``2h`` or ``3d``.

    Raises:
        ValueError: It is none, or too long.
    """
    found = _DURATION.fullmatch(text.strip())
    try:
        if found:
            return timedelta(seconds=float(found[1]) * _SECONDS[found[2]])
    except OverflowError:
        pass
    raise ValueError(f"{text!r} is not a duration: give 90s, 15min, 2h, 90d or 52w")


def local_time(time: Timestamp, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """A time in the local time zone."""
    utc = time.ToDatetime(tzinfo=UTC)
    try:
        return utc.astimezone().strftime(form)
    except (OverflowError, OSError):  # at the ends of the calendar
        return utc.strftime(form)


def offset(seconds: float) -> str:
    """The time since the start, as ``+1:02.345`` or ``+3:01:02.345``."""
    milliseconds = round(abs(seconds) * 1000)
    sign = "-" if seconds < 0 and milliseconds else "+"
    whole, rest = divmod(milliseconds, 1000)
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{sign}{hours}:{minute:02}:{second:02}.{rest:03}"
    return f"{sign}{minute}:{second:02}.{rest:03}"


def seconds_of(time: Timestamp) -> float:
    """Seconds since 1970."""
    return time.seconds + time.nanos / 1e9
