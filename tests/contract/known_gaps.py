"""What a backend cannot do: category of a test (its ``category`` mark) and the reason.

Tests of a listed category are skipped for that backend, the reason shown. The lists are empty:
qdrant-client 1.20's memory mode has insert-only and conditional upserts, ordered scrolls, exact
facets and named vectors added later. It has no payload indexes (``QdrantStore`` makes none there),
no second process and no death of a process, so these are proven on Edge and on a server only.
"""

KNOWN_GAPS: dict[str, dict[str, str]] = {
    "in_memory": {},
    "edge": {},
    "qdrant_memory": {},
    "qdrant_server": {},
}
