"""Errors of the store, the models and the configuration, for the operator to fix."""

from __future__ import annotations

from lot_grpc.domain.errors.base import LotError, StartupError


class StoreUnavailableError(LotError):
    """The store cannot be reached, or answered wrongly. The cause is in the log."""

    reason = "STORE_UNAVAILABLE"


class StorageFullError(LotError):
    """A write was refused because the disk is nearly full. Reads continue."""

    reason = "STORAGE_FULL"

    def __init__(self, free_bytes: int, min_free_bytes: int, path: str) -> None:
        super().__init__(
            f"{free_bytes // 2**20} MiB free in the data folder, but writes need "
            f"{min_free_bytes // 2**20} MiB; free some space (reads continue, and writes resume "
            "automatically)",
            free_bytes=free_bytes,
            min_free_bytes=min_free_bytes,
        )
        self.path = path


class EmbeddingModelUnavailableError(LotError):
    """A requested model cannot be opened on this server."""

    reason = "EMBEDDING_MODEL_UNAVAILABLE"

    def __init__(self, model: str, why: str) -> None:
        super().__init__(f"model {model!r} cannot be used: {why}", model=model)


class EmbeddingFailedError(LotError):
    """The model could not embed or rerank a text. The cause is in the log."""

    reason = "EMBEDDING_FAILED"


class EmbeddingUnavailableError(EmbeddingFailedError):
    """The remote model cannot be reached or is overloaded; the same call may succeed later."""

    reason = "EMBEDDING_UNAVAILABLE"

    def __init__(self, message: str, *, url: str) -> None:
        super().__init__(message, url=url)


class RerankerUnavailableError(LotError):
    """``rerank`` was requested, but there is no working cross-encoder."""

    reason = "RERANKER_UNAVAILABLE"

    def __init__(self) -> None:
        super().__init__(
            "this server has no working reranker; omit rerank, or have the operator run "
            "`lot-grpc check`, which reports what is missing"
        )


class MatchUnavailableError(LotError):
    """``min_match`` is set, but the match probability is not calibrated for the model."""

    reason = "MATCH_UNAVAILABLE"

    def __init__(self, model: str) -> None:
        super().__init__(
            f"min_match: match_probability is not calibrated for the embedding model {model!r}; "
            "omit min_match, or set min_similarity instead, to a value chosen for this model",
            model=model,
        )


class ServingEndedError(StartupError):
    """The server no longer takes calls, and only a restart helps."""

    reason = "SERVING_ENDED"


class StoreLockedError(StartupError):
    """Another process has the data folder open."""

    reason = "STORE_LOCKED"


class ModelUnavailableError(StartupError):
    """The embedding model's files are missing or damaged."""

    reason = "MODEL_UNAVAILABLE"


class ModelAbsentError(ModelUnavailableError):
    """The embedding model is not on this machine, and may not be downloaded."""


class EmbeddingModelMismatchError(StartupError):
    """The store's vectors were made by another model than the configured one."""

    reason = "EMBEDDING_MODEL_MISMATCH"

    def __init__(self, message: str, *, stored: str, configured: str) -> None:
        super().__init__(message, stored=stored, configured=configured)


class SchemaVersionMismatchError(StartupError):
    """Another version of this service wrote the store, in a form that this one does not read."""

    reason = "SCHEMA_VERSION_MISMATCH"


class KnowledgePackInvalidError(StartupError):
    """A file of knowledge (``LOT_SEED_PACKS``) that cannot be read, or says something impossible.

    ``entry`` and ``field`` are empty where it is about the whole file, or the whole entry.
    """

    reason = "KNOWLEDGE_PACK_INVALID"

    def __init__(self, file: str, entry: str, field: str, problem: str) -> None:
        where = ": ".join(part for part in (file, entry, field) if part)
        super().__init__(f"knowledge pack {where}: {problem}", file=file, entry=entry, field=field)


class RedactionRulesInvalidError(StartupError):
    """A file of redaction rules (``LOT_REDACT_RULES``) that cannot be read or used.

    ``rule`` is empty where it is about the whole file.
    """

    reason = "REDACTION_RULES_INVALID"

    def __init__(self, file: str, rule: str, problem: str) -> None:
        where = ": ".join(part for part in (file, rule and f"rule {rule}") if part)
        super().__init__(f"redaction rules {where}: {problem}", file=file, rule=rule)
