"""All metrics of this service.

A metric is used by importing it: ``RATE_LIMITED.add("rate")``. Labels never hold a namespace, a
principal, or anything else that a caller chooses. ``docs/metrics.md`` lists them all.
"""

from __future__ import annotations

from typing import Final

from lot_grpc.telemetry.instruments import Counter, Gauge, Histogram, Metric

OTHER: Final = "_OTHER"
"""Stands for the methods that the contract does not have."""

# --- calls ----------------------------------------------------------------------------------------

CALLS: Final = Counter(
    "lot_calls",
    "Calls that ended, by RPC (`_OTHER` for unknown ones), gRPC code and reason (empty for OK).",
    ["method", "code", "reason"],
)
CALL_DURATION: Final = Histogram(
    "lot_call_duration_seconds",
    "Time from the arrival of a unary call to its end.",
    ["method", "code"],
)
STREAM_DURATION: Final = Histogram(
    "lot_stream_duration_seconds",
    "Time for which a stream was open.",
    ["method"],
    (0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 21600.0, 86400.0),
)
CALLS_IN_FLIGHT: Final = Gauge(
    "lot_calls_in_flight", "Unary calls that are running, including writes whose callers have left."
)
STREAMS_OPEN: Final = Gauge("lot_streams_open", "Streams that are open.")
REQUEST_BYTES: Final = Counter(
    "lot_request_bytes", "Bytes of request messages, uncompressed.", ["method"]
)
RESPONSE_BYTES: Final = Counter(
    "lot_response_bytes", "Bytes of response messages, uncompressed.", ["method"]
)
STREAM_MESSAGES: Final = Counter(
    "lot_stream_messages", "Messages of streams, by direction.", ["method", "direction"]
)
SERVING: Final = Gauge(
    "lot_serving",
    "1 while health is SERVING; 0 while the store cannot be used, and while draining.",
)

# --- who may call, and how much -------------------------------------------------------------------

AUTH_FAILURES: Final = Counter(
    "lot_auth_failures",
    "Calls whose credentials were not accepted, by cause.",
    ["cause"],
    ("missing", "unknown", "wrong", "expired", "revoked", "claims", "malformed", "unavailable"),
)
"""``missing``: there were none; ``claims``: of a token; ``unavailable``: the issuer's keys."""
RATE_LIMITED: Final = Counter(
    "lot_rate_limited",
    "Calls refused by a limit of their principal, by limit.",
    ["limit"],
    ("rate", "concurrency", "streams"),
)
QUOTA_REFUSED: Final = Counter(
    "lot_quota_refused",
    "Writes refused by a quota of their namespace, by quota.",
    ["quota"],
    ("records", "bytes"),
)

# --- the model ------------------------------------------------------------------------------------

EMBEDDED_TEXTS: Final = Counter(
    "lot_embedded_texts",
    "Texts to embed, by role and by the source of the vector: the cache, the model, or a "
    "concurrent request for the same text (shared).",
    ["role", "source"],
    [(role, source) for role in ("query", "document") for source in ("cache", "model", "shared")],
)
EMBEDDING_QUEUE: Final = Gauge(
    "lot_embedding_queue_length", "Texts that wait for the model or are being embedded."
)
EMBEDDING_WAIT: Final = Histogram(
    "lot_embedding_wait_seconds", "Time for which a text waited for its turn at the model."
)
EMBEDDING_DURATION: Final = Histogram(
    "lot_embedding_duration_seconds",
    "Time that the model took for one text or window, or the endpoint for one request.",
)
EMBEDDING_ERRORS: Final = Counter("lot_embedding_errors", "Texts that could not be embedded.")
RERANKS: Final = Counter(
    "lot_reranks",
    "Recalls that were reranked, by result: complete, partial (time ran out) or failed.",
    ["result"],
    ("complete", "partial", "failed"),
)
RERANK_DURATION: Final = Histogram(
    "lot_rerank_duration_seconds",
    "Time that the cross-encoder took for the candidates of a recall.",
)

# --- the store ------------------------------------------------------------------------------------

STORE_DURATION: Final = Histogram(
    "lot_store_operation_duration_seconds", "Time of an operation of the store.", ["operation"]
)
STORE_ERRORS: Final = Counter(
    "lot_store_errors", "Operations of the store that failed, by reason.", ["operation", "reason"]
)
STORED_RECORDS: Final = Gauge(
    "lot_stored_records", "Records, expired ones included, by kind.", ["kind"]
)
STORED_BYTES: Final = Gauge(
    "lot_stored_bytes", "Bytes on disk by kind; absent on a Qdrant server.", ["kind"]
)
STORE_USED_BYTES: Final = Gauge(
    "lot_store_used_bytes", "Bytes on disk of the whole store; absent on a Qdrant server."
)
STORE_FREE_BYTES: Final = Gauge(
    "lot_store_free_bytes", "Bytes free on the store's disk; absent on a Qdrant server."
)
STORE_WRITABLE: Final = Gauge(
    "lot_store_writable", "1 if the store accepts writes, 0 if its disk is nearly full."
)
STORE_FIGURES_AGE: Final = Gauge(
    "lot_store_figures_age_seconds",
    "Age of the figures of the store, which are not read at every scrape.",
)

# --- episodes, learning, changes ------------------------------------------------------------------

EVENTS_RECORDED: Final = Counter("lot_events_recorded", "Events of episodes that were stored.")
RECALLS: Final = Counter("lot_recalls", "Recalls that were recorded, by operation.", ["operation"])
RECALLS_HELPED: Final = Counter(
    "lot_recalls_helped",
    "Recalls that returned something that was used with success; each counts once.",
)
OUTCOMES: Final = Counter(
    "lot_outcomes",
    "Outcomes that were stored, by kind of the record used (retrieval: none was) and result; "
    "without corrections.",
    ["kind", "outcome"],
)
FEED_LAG: Final = Gauge(
    "lot_change_feed_lag_seconds",
    "Age of the oldest unfinished write, which holds back the change feed; 0: none.",
)
FEED_BEHIND: Final = Gauge(
    "lot_change_feed_behind_changes",
    "Changes that have not been sent to the slowest watcher yet.",
)

# --- work in the background -----------------------------------------------------------------------

HOUSEKEEPING_RUNS: Final = Counter(
    "lot_housekeeping_runs", "Runs of a background task that succeeded.", ["task"]
)
HOUSEKEEPING_FAILURES: Final = Counter(
    "lot_housekeeping_failures", "Runs of a background task that failed.", ["task"]
)

# --- what is kept out, and who did what -----------------------------------------------------------

REDACTIONS: Final = Counter(
    "lot_redactions", "Secrets replaced in requests before they were stored, by rule.", ["rule"]
)
AUDIT_RECORDS: Final = Counter("lot_audit_records", "Audit records written.")
AUDIT_LOST: Final = Counter("lot_audit_records_lost", "Audit records that could not be written.")

# --- files that are read again when they change ---------------------------------------------------

RELOADS: Final = Counter(
    "lot_reloads",
    "Attempts to reread a changed file or key set, by what was read and result.",
    ["what", "result"],
    [(what, result) for what in ("keys", "certificate", "jwks") for result in ("ok", "failed")],
)
"""What failed is tried again, and counted each time, until it is mended."""
CERTIFICATE_EXPIRY: Final = Gauge(
    "lot_certificate_expiry_timestamp_seconds",
    "Unix time at which the server's certificate expires.",
)

# --- traces ---------------------------------------------------------------------------------------

SPANS_LOST: Final = Counter(
    "lot_spans_lost", "Spans that were dropped because the collector did not take them."
)

# --- the process ----------------------------------------------------------------------------------

LOOP_DELAY: Final = Gauge(
    "lot_event_loop_delay_seconds", "Time that the event loop took to answer this scrape."
)
BUILD_INFO: Final = Gauge(
    "lot_build_info",
    "Always 1; the version, the store and the model.",
    ["version", "store", "model"],
)


ALL: Final = tuple(one for one in globals().copy().values() if isinstance(one, Metric))
"""All of them, in the order of this module."""
