"""What a recall found, together with what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lot_client.pb.lot.v1.pattern_service_pb2 import PatternHit, RecallPatternsResponse


@dataclass(frozen=True, slots=True)
class PatternRecall:
    """The answer to a recall, to be given to `record_outcome` later.

    Attributes:
        query: that was asked. An outcome is counted for it even where the server no longer knows
            the retrieval.
        response: with `retrieval_id`, `notices` and, where asked for, `explanation`.
    """

    query: str
    response: RecallPatternsResponse

    @property
    def hits(self) -> Sequence[PatternHit]:
        """Best first."""
        return self.response.hits

    @property
    def retrieval_id(self) -> str:
        """The server's name of this recall."""
        return self.response.retrieval_id
