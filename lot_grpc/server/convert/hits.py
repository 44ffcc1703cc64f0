"""What was found, with its score."""

from __future__ import annotations

from lot_grpc.domain.episode import Episode
from lot_grpc.domain.pattern import Pattern
from lot_grpc.pb.lot.v1 import episode_service_pb2, pattern_service_pb2
from lot_grpc.server.convert.episodes import episode_to_pb
from lot_grpc.server.convert.outcomes import learned_from_to_pb, score_parts_to_pb
from lot_grpc.server.convert.patterns import pattern_to_pb
from lot_grpc.services.recall.recall import Hit


def pattern_hit_to_pb(
    hit: Hit[Pattern], *, explain: bool = False
) -> pattern_service_pb2.PatternHit:
    """A pattern that was found."""
    return pattern_service_pb2.PatternHit(
        pattern=pattern_to_pb(hit.thing),
        score=hit.score,
        similarity=hit.similarity,
        score_parts=score_parts_to_pb(hit.parts) if explain else (),
        learned_from=learned_from_to_pb(hit.evidence) if explain else (),
        match_probability=hit.match,
    )


def episode_hit_to_pb(
    hit: Hit[Episode], *, explain: bool = False
) -> episode_service_pb2.EpisodeHit:
    """An episode that was found."""
    return episode_service_pb2.EpisodeHit(
        episode=episode_to_pb(hit.thing),
        score=hit.score,
        similarity=hit.similarity,
        score_parts=score_parts_to_pb(hit.parts) if explain else (),
        match_probability=hit.match,
    )
