"""Spans of time in words."""

from __future__ import annotations


def span(seconds: float) -> str:
    """A readable span in one or two units, such as ``4 min 10 s``."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    days, hours = divmod(hours, 24)
    if not days:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{days:,} d {hours} h" if hours else f"{days:,} d"
