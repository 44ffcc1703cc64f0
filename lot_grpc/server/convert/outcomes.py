"""Outcomes, outcomes' kinds, rankings and notices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lot_grpc.domain.cells import Evidence
from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.outcomes import Outcome, Outcomes
from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import ScorePart
from lot_grpc.pb.lot.v1 import outcome_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as service_pb
from lot_grpc.server.convert.values import EnumCodec, duration_to_pb, time_to_pb
from lot_grpc.services.outcomes.outcome_log import LoggedOutcome
from lot_grpc.services.recall.recall import Answer, Explanation

OUTCOME = EnumCodec(pb.Outcome.DESCRIPTOR, Outcome, "OUTCOME_")
COMPLEXITY = EnumCodec(pb.Complexity.DESCRIPTOR, Complexity, "COMPLEXITY_")
RANKING = EnumCodec(pb.Ranking.DESCRIPTOR, Ranking, "RANKING_")


def outcomes_to_pb(outcomes: Outcomes) -> pb.Outcomes:
    """Counters."""
    average = outcomes.average_duration
    return pb.Outcomes(
        usage_count=outcomes.usage_count,
        success_count=outcomes.success_count,
        failure_count=outcomes.failure_count,
        partial_count=outcomes.partial_count,
        success_rate=outcomes.success_rate,
        reliability=outcomes.reliability,
        average_duration=None if average is None else duration_to_pb(average),
        last_used_time=time_to_pb(outcomes.last_used_time) if outcomes.last_used_time else None,
    )


def score_parts_to_pb(parts: Iterable[ScorePart]) -> list[pb.ScorePart]:
    """The components of a score."""
    return [pb.ScorePart(name=part.name, value=part.value, weight=part.weight) for part in parts]


def text_notices(field: str, *, truncated: bool) -> list[pb.Notice]:
    """Tells that the model did not read all of a stored text."""
    if not truncated:
        return []
    return [
        pb.Notice(
            code=pb.NOTICE_CODE_TEXT_TRUNCATED,
            field=field,
            message="longer than the 8 windows read of a text: it is stored whole, but the rest "
            "does not affect similarity; put what matters first, or split it",
        )
    ]


def unchanged_notices(resource_kind: str, decay: Iterable[str]) -> list[pb.Notice]:
    """Tells which fields a repeat gave otherwise, in vain."""
    return [
        pb.Notice(
            code=pb.NOTICE_CODE_FIELDS_UNCHANGED,
            field=f"{resource_kind}.{name}",
            message="the stored pattern retains its own; this save counted as a success of it. Use "
            "UpdatePattern to change it",
        )
        for name in decay
    ]


def merged_notices(resource_kind: str, id: str, similarity: float | None) -> list[pb.Notice]:
    """Tells that a save was merged by meaning, with what and how near; None: it was not."""
    if similarity is None:
        return []
    return [
        pb.Notice(
            code=pb.NOTICE_CODE_MERGED,
            field=resource_kind,
            message=f"similarity {similarity:.3f} to {resource_kind} {id}: nothing was stored, "
            "this save counted as a success of it. Use dedupe NONE or EXACT to store both",
        )
    ]


def query_notices(answer: Answer[Any]) -> list[pb.Notice]:
    """Tells what of a question was left out."""
    notices = unread_notices("query", truncated=answer.truncated, wordless=answer.wordless)
    if answer.unreached:
        notices.append(
            pb.Notice(
                code=pb.NOTICE_CODE_RERANK_INCOMPLETE,
                field="rerank",
                message=f"the cross-encoder had no time for {answer.unreached} of the candidates; "
                "they keep their place. Retry, or use a shorter query",
            )
        )
    return notices


def unread_notices(field: str, *, truncated: bool, wordless: bool) -> list[pb.Notice]:
    """Tells what of a text to search for was not read, and that there is nothing in it."""
    notices = []
    if truncated:
        notices.append(
            pb.Notice(
                code=pb.NOTICE_CODE_QUERY_TRUNCATED,
                field=field,
                message="longer than is read of a query (8 windows of the model, and 512 distinct "
                "terms): the rest was ignored; use fewer words",
            )
        )
    if wordless:
        notices.append(
            pb.Notice(
                code=pb.NOTICE_CODE_QUERY_NOT_SEARCHABLE,
                field=field,
                message="has no word, number or symbol to search for; use words",
            )
        )
    return notices


def left_out_notices(left_out: Mapping[str, int]) -> list[pb.Notice]:
    """How many of the nearest were left out as unlikely to help, by response field."""
    counts = [f"{name}: {count}" for name, count in left_out.items() if count]
    if not counts:
        return []
    return [
        pb.Notice(
            code=pb.NOTICE_CODE_UNLIKELY_OMITTED,
            field="min_similarity",
            message=f"omitted as unlikely to help: {', '.join(counts)}; set min_similarity to 0 to "
            "include them",
        )
    ]


def outcome_entry_to_pb(entry: LoggedOutcome) -> service_pb.OutcomeEntry:
    """An entry of the log."""
    fact = entry.fact
    return service_pb.OutcomeEntry(
        outcome_id=fact.outcome_id,
        pattern_id=fact.pattern_id,
        outcome=OUTCOME.to_pb(fact.outcome),
        reward=fact.reward,
        duration=None if fact.duration is None else duration_to_pb(fact.duration),
        query=fact.query,
        retrieval_id=fact.retrieval_id,
        note=fact.note,
        create_time=time_to_pb(fact.create_time),
        corrects=fact.corrects,
        corrected_by=entry.corrected_by,
        repeat=fact.repeat,
    )


def learned_from_to_pb(evidence: Evidence) -> list[service_pb.LearnedFrom]:
    """What a hit's learned part comes from."""
    return [
        service_pb.LearnedFrom(
            query=one.query,
            similarity=one.cosine,
            weight=one.weight,
            trial_count=one.trials,
            success_count=one.successes,
            last_time=time_to_pb(one.last_time),
        )
        for one in evidence.neighbours
    ]


def explanation_to_pb(explanation: Explanation | None) -> service_pb.RecallExplanation | None:
    """How an answer came about."""
    if explanation is None:
        return None
    weights = explanation.weights
    return service_pb.RecallExplanation(
        ranking=RANKING.to_pb(explanation.ranking),
        pool_size=explanation.pool,
        gate=weights.gate,
        learned_weight=weights.weight_of(explanation.ranking),
        matching_count=explanation.matching,
        namespace_count=explanation.in_namespace,
        filters=[
            service_pb.FilterCount(field=field, removed_count=count)
            for field, count in explanation.removed.items()
        ],
        kernel_width=weights.kernel_width,
        half_life=duration_to_pb(weights.fading.half_life) if weights.fading.half_life else None,
        decay=weights.fading.decay,
        seed=explanation.seed,
    )
