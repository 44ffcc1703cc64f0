"""The result of a recall, with its query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lot_client.pb.lot.v1.pattern_service_pb2 import PatternHit, RecallPatternsResponse


class Answer(Protocol):
    """What a recall, a search or a context returned."""

    @property
    def retrieval_id(self) -> str:
        """The server's id for it."""


@dataclass(frozen=True, slots=True)
class PatternRecall:
    """The result of a recall; pass it to `record_outcome` later.

    Attributes:
        query: an outcome counts for it even if the server no longer knows the retrieval.
        response: with `retrieval_id`, `notices` and, on request, `explanation`.
    """

    query: str
    response: RecallPatternsResponse

    @property
    def hits(self) -> Sequence[PatternHit]:
        """Best first."""
        return self.response.hits

    @property
    def retrieval_id(self) -> str:
        """The server's id for this recall."""
        return self.response.retrieval_id
