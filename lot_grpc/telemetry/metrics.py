"""All metrics of this service: one for everything that is counted or timed.

A metric is used by importing it: ``RATE_LIMITED.add("rate")``. Labels never hold a namespace, a
principal, or anything else that a caller chooses.
"""

from __future__ import annotations

from typing import Final

from lot_grpc.telemetry.instruments import Counter, Gauge, Metric

# --- who may call, and how much -------------------------------------------------------------------

AUTH_FAILURES: Final = Counter(
    "lot_auth_failures", "Calls whose credentials were not accepted, by cause.", ["cause"]
)
"""``missing``, ``unknown``, ``wrong``, ``expired``, ``revoked``, ``malformed``, ``unavailable``…"""
ACCESS_DENIED: Final = Counter(
    "lot_access_denied", "Calls refused for lack of a grant or role, by reason.", ["reason"]
)
RATE_LIMITED: Final = Counter(
    "lot_rate_limited", "Calls refused by a limit of their principal, by limit.", ["limit"]
)
"""``rate``, ``concurrency`` or ``streams``."""
QUOTA_REFUSED: Final = Counter(
    "lot_quota_refused", "Writes refused by a quota of their namespace, by quota.", ["quota"]
)
"""``records`` or ``bytes``."""

# --- what is stored, and who did it ---------------------------------------------------------------

REDACTIONS: Final = Counter(
    "lot_redactions", "Secrets replaced in requests before they were stored, by rule.", ["rule"]
)
AUDIT_RECORDS: Final = Counter("lot_audit_records", "Audit records written.")
AUDIT_LOST: Final = Counter("lot_audit_records_lost", "Audit records that could not be written.")

# --- files that are read again when they change ---------------------------------------------------

RELOADS: Final = Counter(
    "lot_reloads",
    "Attempts to read a changed file or key set, by what and result.",
    ["what", "result"],
)
"""What: ``keys``, ``certificate``, ``client_ca``, ``jwks``. Result: ``ok`` or ``failed``."""
CERTIFICATE_EXPIRY: Final = Gauge(
    "lot_certificate_expiry_timestamp_seconds",
    "Unix time at which the server's certificate expires.",
)


def every_metric() -> tuple[Metric, ...]:
    """All of them, in the order of this module."""
    return tuple(one for one in globals().values() if isinstance(one, Metric))


ALL: Final = every_metric()
