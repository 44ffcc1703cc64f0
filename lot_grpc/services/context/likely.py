"""Selects, from the nearest hits of all kinds, those likely to help with the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from lot_grpc.domain.context.near import least_likely, likely_enough
from lot_grpc.domain.episode import Episode
from lot_grpc.domain.error_found import ErrorFound
from lot_grpc.domain.match_probability import NONE_LEFT_OUT, LeftOut
from lot_grpc.domain.memory import Memory
from lot_grpc.ports import Embedder
from lot_grpc.services.context.patterns import ContextPatterns
from lot_grpc.services.context.request import ContextRequest
from lot_grpc.services.recall.matching import error_text, match_of
from lot_grpc.services.recall.recall import Hit

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NearHits:
    """The nearest of each kind, best first. ``failures`` are failed episodes to warn of.

    ``left_out``: how many of each kind were unlikely to help, by response field;
    ``below_min_match``: what the searches left out, of all kinds.
    """

    patterns: ContextPatterns
    episodes: Sequence[Hit[Episode]]
    failures: Sequence[Hit[Episode]]
    memories: Sequence[Hit[Memory]]
    errors: Sequence[ErrorFound]
    left_out: Mapping[str, int] = field(default_factory=dict)
    below_min_match: LeftOut = NONE_LEFT_OUT

    @property
    def found(self) -> bool:
        """Whether there are any hits."""
        kinds = (self.patterns.hits, self.episodes, self.failures, self.memories, self.errors)
        return any(kinds)


def likely_hits(embedder: Embedder, request: ContextRequest, near: NearHits) -> NearHits:
    """The hits that are likely to help.

    Patterns that match by expression and solutions of this very error stay; if one of these
    solutions worked, those of other errors are left out. Errors are compared as tasks are, for one
    measure of all kinds: how similar they are, not how likely the solution of one fixes the other.
    """
    error = request.error if near.errors else ""  # parsing an error is slow
    alike = [match_of(embedder, error, error_text(hit), hit.similarity) for hit in near.errors]
    least = least_likely(
        [
            *(hit.match for hit in near.patterns.hits),
            *(hit.match for hit in near.episodes),
            *(hit.match for hit in near.memories),
            *alike,
        ]
    )
    solved = any(hit.exact and hit.error_solution.content.worked for hit in near.errors)

    def likely(hits: Sequence[Hit[T]]) -> list[Hit[T]]:
        return [hit for hit in hits if likely_enough(hit.match, least)]

    fitting = likely(near.patterns.hits)
    matched = near.patterns.matched
    kept = replace(
        near,
        patterns=replace(
            near.patterns,
            hits=[
                hit
                for hit in near.patterns.hits
                if hit in fitting or hit.thing.pattern_id in matched
            ],
        ),
        episodes=likely(near.episodes),
        failures=likely(near.failures),
        memories=likely(near.memories),
        errors=[
            hit
            for hit, match in zip(near.errors, alike, strict=True)
            if hit.exact or (likely_enough(match, least) and not solved)
        ],
    )
    return replace(
        kept,
        left_out={
            "patterns": len(near.patterns.hits) - len(kept.patterns.hits),
            "error_solutions": len(near.errors) - len(kept.errors),
            "memories": len(near.memories) - len(kept.memories),
            "episodes": len(near.episodes) - len(kept.episodes),
        },
    )
