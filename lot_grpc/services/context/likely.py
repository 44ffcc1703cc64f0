"""Selects, from the nearest hits of all kinds, those likely to help with the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from lot_grpc.domain.context.near import least_likely, likely_enough
from lot_grpc.domain.episode import Episode
from lot_grpc.domain.episode import search_text as episode_text
from lot_grpc.domain.error_found import ErrorFound
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.memory import search_text as memory_text
from lot_grpc.domain.search_text import SearchText, joined
from lot_grpc.ports import Embedder
from lot_grpc.services.context.patterns import ContextPatterns
from lot_grpc.services.context.request import ContextRequest
from lot_grpc.services.recall.matching import match_of
from lot_grpc.services.recall.recall import Hit

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NearHits:
    """The nearest of each kind, best first. ``failures`` are failed episodes to warn of.

    ``left_out``: how many of each kind were unlikely to help, by response field.
    """

    patterns: ContextPatterns
    episodes: Sequence[Hit[Episode]]
    failures: Sequence[Hit[Episode]]
    memories: Sequence[Hit[Memory]]
    errors: Sequence[ErrorFound]
    left_out: Mapping[str, int] = field(default_factory=dict)


def likely_hits(embedder: Embedder, request: ContextRequest, near: NearHits) -> NearHits:
    """The hits that are likely to help.

    Patterns that match by expression and solutions of this very error stay; if one of these
    solutions worked, those of other errors are left out.
    """
    memories = [
        match_of(embedder, request.task, memory_text(hit.thing.content), hit.similarity)
        for hit in near.memories
    ]
    error = request.error if near.errors else ""  # parsing an error is slow
    errors = [match_of(embedder, error, _error_text(hit), hit.similarity) for hit in near.errors]
    failures = [
        match_of(embedder, request.task, _episode_text(hit.thing), hit.similarity)
        for hit in near.failures
    ]
    patterns = [hit.match for hit in near.patterns.hits]
    episodes = [hit.match for hit in near.episodes]
    least = least_likely([*patterns, *episodes, *memories, *errors])
    solved = any(hit.exact and hit.error_solution.content.worked for hit in near.errors)

    def likely(hits: Sequence[T], matches: Sequence[float | None]) -> list[T]:
        pairs = zip(hits, matches, strict=True)
        return [hit for hit, match in pairs if likely_enough(match, least)]

    fitting = likely(near.patterns.hits, patterns)
    matched = near.patterns.matched
    kept = NearHits(
        replace(
            near.patterns,
            hits=[
                hit
                for hit in near.patterns.hits
                if hit in fitting or hit.thing.pattern_id in matched
            ],
        ),
        likely(near.episodes, episodes),
        likely(near.failures, failures),
        likely(near.memories, memories),
        [
            hit
            for hit, match in zip(near.errors, errors, strict=True)
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


def _episode_text(episode: Episode) -> SearchText:
    return episode_text(episode.start, episode.end)


def _error_text(hit: ErrorFound) -> SearchText:
    content = hit.error_solution.content
    return SearchText(joined(content.error_type, content.error_message))
