"""The server's log lines for calls and background failures, with repeats summed up.

One line per call. Only bugs get a traceback; other server-side failures are logged with their
cause. Of identical failures within a minute, the first is logged in full as a warning or error. The
rest are logged at ``info``, like successful calls, and their count is a warning once the minute is
over.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import structlog

from lot_grpc.domain.errors import LotError
from lot_grpc.logs import REPEATS_SECONDS, Repeats, cause_of, place_of

_log = structlog.get_logger()


class Calls:
    """Logs calls (``server.calllog.CallLog``). ``end`` logs the pending counts of repeats."""

    def __init__(self) -> None:
        self._log = _log.bind()  # once, instead of for each call
        self._repeats = Repeats(self._summarize)
        self.end = self._repeats.end

    def __call__(self, record: Mapping[str, object]) -> None:
        """Log a record."""
        fields = {key: value for key, value in record.items() if value != ""}
        level = str(fields.pop("level"))
        # `code` would be taken for the code of a pattern and masked.
        status = fields["status"] = str(fields.pop("code"))
        reason = str(fields.get("reason", status))
        invented = fields.pop("invented", False)
        place, more = _explained(fields.pop("error", None), bug=reason == "INTERNAL")
        if level != "info":
            # A name that the caller invented must not become a key.
            method = "" if invented else str(fields["method"])
            if self._repeats.is_first((level, method, status, reason, place)):
                fields |= more
            else:
                level = "info"
        getattr(self._log, level)("call", **fields)

    def _summarize(self, key: tuple[str, ...], more: int) -> None:
        level, method, status, reason, _ = key
        getattr(self._log, level)(
            "the same again",
            method=method,
            status=status,
            reason=reason,
            times=more,
            within_seconds=REPEATS_SECONDS,
        )


class Background:
    """Logs failures of background work: the reason, or the traceback of a bug."""

    def __init__(self) -> None:
        self._repeats = Repeats(self._summarize)
        self.end = self._repeats.end

    def __call__(self, what: str, error: Exception) -> None:
        """Log a record."""
        reason = error.reason if isinstance(error, LotError) else "INTERNAL"
        place, more = _explained(error, bug=reason == "INTERNAL")
        if self._repeats.is_first((what, reason, place)):
            why = {"why": error.message} if isinstance(error, LotError) else {}
            _log.warning(what, reason=reason, **why, **more)

    def _summarize(self, key: tuple[str, ...], more: int) -> None:
        what, reason, _ = key
        _log.warning(what, reason=reason, times=more, within_seconds=REPEATS_SECONDS)


class AuditReports:
    """Logs that audit records cannot be written (at once, then every minute), and recovery."""

    def __init__(self) -> None:
        self._logged = float("-inf")

    def lost(self, records: int, why: str) -> None:
        """A record was lost; ``records``: how many so far."""
        now = time.monotonic()
        if now - self._logged >= REPEATS_SECONDS:
            self._logged = now
            _log.error("the audit log cannot be written; calls continue", lost=records, why=why)

    def recovered(self) -> None:
        """Records are written again."""
        self._logged = float("-inf")
        _log.warning("the audit log is written again")

    def not_rotated(self, why: str) -> None:
        """The file is full and cannot be renamed, so it grows on."""
        _log.error("the audit log cannot be rotated; it grows on", why=why)


def _explained(error: object, *, bug: bool) -> tuple[str, dict[str, object]]:
    """Where a bug is, and the field that shows the operator what happened."""
    if not isinstance(error, BaseException):
        return "", {}
    if bug:
        return place_of(error), {"exc_info": error}
    return "", {"cause": cause} if (cause := cause_of(error)) else {}
