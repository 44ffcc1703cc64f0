"""Outcomes, and explanations of scores and rankings."""

from __future__ import annotations

from typing import Any

from lot_grpc.domain.context_stats import Neighbour
from lot_grpc.domain.ids import ResourceRef
from lot_grpc.domain.outcomes import NO_OUTCOMES, Outcome, OutcomeStats
from lot_grpc.domain.ranking import ScorePart
from lot_grpc.pb.lot.v1 import outcome_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as service_pb
from lot_grpc.server.codec.generic import Decoder, Encoder, Whole
from lot_grpc.server.codec.values import EnumCodec, duration_to_pb, time_to_pb
from lot_grpc.services.outcomes.outcome_log import CorrectionDraft, LoggedOutcome
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.recall.recall import Explanation, Hit
from lot_grpc.services.resources import REGISTRY

OUTCOME = EnumCodec(pb.Outcome.DESCRIPTOR, Outcome)

outcomes_to_pb = Encoder(
    OutcomeStats,
    pb.OutcomeStats,
    values={"last_used_time": lambda time: time_to_pb(time) if time else None},
    omit={"duration_count", "duration_total"},
)
score_part_to_pb = Encoder(ScorePart, pb.ScorePart)
outcome_evidence_to_pb = Encoder(
    Neighbour,
    pb.OutcomeEvidence,
    rename={"similarity": "cosine", "trial_count": "trials", "success_count": "successes"},
)


def _id_if(kind: str) -> Whole:
    def id_of(entry: LoggedOutcome) -> str:
        resource = entry.recorded.resource
        return resource.id if resource.kind == kind else ""

    return Whole(id_of)


outcome_entry_to_pb = Encoder(
    LoggedOutcome,
    service_pb.OutcomeEntry,
    flatten=("recorded",),
    values={spec.id_key: _id_if(kind) for kind, spec in REGISTRY.counted.items()},
    omit={"namespace", "root", "correction", "resource"},
)
_explanation = Encoder(
    Explanation,
    service_pb.RecallExplanation,
    rename={
        "candidate_count": "pool",
        "reorder_margin": "weights.reorder_margin",
        "matching_count": "matching",
        "namespace_count": "in_namespace",
        "filters": "removed",
        "kernel_width": "weights.kernel_width",
        "half_life": "weights.fading.half_life",
        "decay": "weights.fading.decay",
    },
    values={
        "filters": lambda removed: [
            service_pb.FilterCount(field=field, excluded_count=count)
            for field, count in removed.items()
        ],
        "half_life": lambda seconds: duration_to_pb(seconds) if seconds else None,
        "learned_weight": Whole(lambda one: one.weights.weight_of(one.ranking)),
    },
)


def explain_hit(message: Any, hit: Hit[Any]) -> None:
    """Add the parts of a hit's score, and the outcomes that they come from, to its message."""
    message.score_parts.extend(map(score_part_to_pb, hit.parts))
    message.outcome_evidence.extend(map(outcome_evidence_to_pb, hit.evidence.neighbours))


def explanation_to_pb(explanation: Explanation | None) -> service_pb.RecallExplanation | None:
    """How an answer came about."""
    return None if explanation is None else _explanation(explanation)


def outcomes_if_any_to_pb(outcomes: OutcomeStats) -> pb.OutcomeStats | None:
    """The counters of what may never have been used; then unset."""
    return outcomes_to_pb(outcomes) if outcomes != NO_OUTCOMES else None


def resource_from_pb(request: service_pb.ListOutcomesRequest) -> ResourceRef:
    """The resource that a request names by the one id that it has."""
    [resource] = [
        ResourceRef(kind, named)
        for kind, spec in REGISTRY.counted.items()
        if (named := getattr(request, spec.id_key))
    ]
    return resource


outcome_draft_from_pb = Decoder(service_pb.RecordOutcomeRequest, OutcomeDraft, omit={"namespace"})
correction_draft_from_pb = Decoder(
    service_pb.CorrectOutcomeRequest, CorrectionDraft, omit={"namespace"}
)
