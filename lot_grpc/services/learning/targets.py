"""Targets of feedback: whether they exist, and what feedback changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from lot_grpc.domain.action_values import TrajectoryStep
from lot_grpc.domain.errors import RetrievalNotFoundError
from lot_grpc.domain.ids import own_request_id
from lot_grpc.domain.learning_event import TargetKind
from lot_grpc.services.episodes.episodes import Episodes
from lot_grpc.services.learning.action_values import ActionValues
from lot_grpc.services.learning.decisions import Decisions
from lot_grpc.services.learning.feedback_handler import Check, Judged, Move
from lot_grpc.services.learning.selections import Selections
from lot_grpc.services.memories.memories import Memories
from lot_grpc.services.patterns.feedback import FeedbackDraft
from lot_grpc.services.records.actions import Trajectory
from lot_grpc.services.retrievals.retrievals import Retrievals

_CONFIDENCE_SHARE = 0.1
"""How far a reward of 1 moves a pattern's confidence: as far as a bare ``helpful`` does."""


class Confidences(Protocol):
    """Adjusts the confidence of patterns (``services.patterns.feedback``)."""

    async def give(self, namespace: str, draft: FeedbackDraft) -> object:
        """Adjust it once for a request id. Raises PatternNotFoundError."""


def checks_of(
    pattern: Check,
    episodes: Episodes,
    error_solution: Check,
    decisions: Decisions,
    selections: Selections,
    memories: Memories,
    retrievals: Retrievals,
) -> Mapping[TargetKind, Check]:
    """For each kind of target, a check that raises if the id does not exist."""

    async def retrieval(namespace: str, id: str) -> None:
        if await retrievals.find(namespace, id) is None:
            raise RetrievalNotFoundError(namespace, id, "omit the target")

    return {
        TargetKind.PATTERN: pattern,
        TargetKind.EPISODE: episodes.get,
        TargetKind.ERROR_SOLUTION: error_solution,
        TargetKind.DECISION: decisions.get,
        TargetKind.SELECTION: selections.get,
        TargetKind.MEMORY: memories.get,
        TargetKind.RETRIEVAL: retrieval,
    }


def moves_of(
    confidences: Confidences,
    decisions: Decisions,
    selections: Selections,
    values: ActionValues,
) -> Mapping[TargetKind, Move]:
    """What feedback changes, by kind of target; kinds that are left out do not change."""

    async def pattern(judged: Judged) -> None:
        if adjustment := _CONFIDENCE_SHARE * judged.reward:
            draft = FeedbackDraft(
                judged.target_id,
                helpful=judged.reward > 0,
                confidence_adjustment=adjustment,
                text=judged.text,
                request_id=own_request_id("feedback", judged.event_id),
            )
            await confidences.give(judged.namespace, draft)

    async def decision(judged: Judged) -> None:
        await decisions.take_reward(judged.namespace, judged.target_id, judged.reward)

    async def selection(judged: Judged) -> None:
        """A trajectory of one step that ended there, under the event's id."""
        chosen = await selections.get(judged.namespace, judged.target_id)
        steps = (TrajectoryStep(chosen.state, chosen.action, judged.reward),)
        await values.learn(Trajectory(judged.namespace, judged.event_id, steps, judged.create_time))

    return {
        TargetKind.PATTERN: pattern,
        TargetKind.DECISION: decision,
        TargetKind.SELECTION: selection,
    }
