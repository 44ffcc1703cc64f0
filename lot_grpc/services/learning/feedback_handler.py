"""Learning from feedback in words, rewards, or both.

Feedback is stored as a learning event, inserted as pending after all checks. Then its target is
changed, the preference is written, and the event is marked as applied. Each of these knows the
event by its id and applies it once, so a retry or a recovery completes the rest. A target that was
deleted after the checks is left alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import LearningEventNotFoundError, NotFoundError
from lot_grpc.domain.ids import new_id
from lot_grpc.domain.judging import Judgement, judge, only_praises
from lot_grpc.domain.learning_event import (
    USER_FEEDBACK,
    FeedbackTarget,
    LearningEvent,
    LearningEventContent,
    TargetKind,
)
from lot_grpc.domain.preference import Preference, learned_key
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.kernel.idempotency import (
    CREATE_TIME,
    IdempotencyKey,
    IdempotencyRecord,
)
from lot_grpc.kernel.intents import Journal, Mark
from lot_grpc.kernel.tombstones import DELETED_SINCE
from lot_grpc.ports import Record
from lot_grpc.services.preferences.preferences import Preferences
from lot_grpc.services.records.collections import LEARNING_EVENTS
from lot_grpc.services.records.learning_events import (
    APPLIED,
    learning_event_from_record,
    learning_event_point,
    learning_event_record,
)
from lot_grpc.services.runtime import Runtime
from lot_grpc.work import follow_up

_PREFERRED_ABOVE = 0.5
"""Reward from which on a judgement is a preference as well."""


class Target(Protocol):
    """What feedback refers to."""

    @property
    def create_time(self) -> int:
        """In microseconds."""


Check = Callable[[str, str], Awaitable[Target | None]]
"""Returns the target (namespace, id); None for a kind whose ids are never taken again.

Raises the NotFoundError of the kind if there is none."""

Move = Callable[["Judged"], Awaitable[object]]
"""Lets a judgement move its target, once however often it is called."""


@dataclass(frozen=True, slots=True)
class FeedbackTextDraft:
    """Feedback: ``text``, ``reward`` in [-1, 1] (None: judge the text), or both."""

    text: str = ""
    reward: float | None = None
    target: FeedbackTarget | None = None
    task: str = ""
    request_id: str = ""

    def hash(self) -> str:
        """Equal for equal requests."""
        return request_hash(self)


@dataclass(frozen=True, slots=True)
class Judged:
    """Judged feedback, to be applied to its target."""

    namespace: str
    event_id: str
    target_id: str
    reward: float
    text: str
    create_time: int


@dataclass(frozen=True, slots=True)
class Submitted:
    """What was learned. ``reward_inferred``: the server derived it from the text.

    Not ``conclusive``: it could not, so the reward is 0 and nothing changed.
    """

    event: LearningEvent
    reward: float
    reward_inferred: bool
    conclusive: bool
    preference: Preference | None


class FeedbackHandler:
    """Learns from submitted feedback."""

    def __init__(
        self,
        runtime: Runtime,
        preferences: Preferences,
        checks: Mapping[TargetKind, Check],
        moves: Mapping[TargetKind, Move],
    ) -> None:
        """``checks`` know every kind of target; of a kind without a move nothing moves."""
        self._store = runtime.store
        self._time = runtime.time
        self._idempotency = runtime.idempotency
        self._preferences = preferences
        self._checks = checks
        self._moves = moves
        self._tombstones = runtime.tombstones
        self._events = Journal(runtime.store, LEARNING_EVENTS, Mark(APPLIED))

    async def submit(self, namespace: str, draft: FeedbackTextDraft) -> Submitted:
        """Learn from feedback once.

        Raises the NotFoundError of the target, and then keeps nothing; LearningEventNotFoundError
        where a repeat meets what was deleted since; RequestIdReusedError;
        ContentionError, after which a retry or the sweep does the rest.
        """
        plan = {"learning_event_id": new_id("le")}
        key = IdempotencyKey(namespace, "SubmitFeedback", draft.request_id, draft.hash(), plan)
        entry = await self._idempotency.find(key)
        if entry is None:
            if draft.target is not None:
                target = await self._checks[draft.target.kind](namespace, draft.target.id)
                created = {CREATE_TIME: target.create_time} if target is not None else {}
                key = replace(key, plan={**key.plan, **created})
            entry = await self._idempotency.begin(key)
        record = await self._event(namespace, draft, entry)
        with follow_up():
            await self._finish(record, again=not entry.first)
        await self._idempotency.finish(entry, {})
        return await self._submitted(learning_event_from_record(record))

    async def roll_forward(self, before: int) -> int:
        """Finish feedback submitted before ``before`` but never applied; return how much."""

        async def finish(row: Record) -> None:
            await self._finish(row, again=True)

        return await self._events.recover(before, finish)

    async def _event(
        self, namespace: str, draft: FeedbackTextDraft, entry: IdempotencyRecord
    ) -> Record:
        """The learning event as stored; the first try of the request may have written it."""
        plan, own = entry.plan, entry.plan["learning_event_id"]
        point = learning_event_point(namespace, own)
        if not entry.first:
            found = await self._store.get(LEARNING_EVENTS, namespace, [point])
            if point in found:
                return found[point]
            if await self._tombstones.deleted_since(entry, ResourceKind.LEARNING_EVENT, own):
                raise LearningEventNotFoundError(namespace, own, DELETED_SINCE)
        given = draft.reward is not None
        judgement = Judgement(draft.reward or 0.0, conclusive=True) if given else judge(draft.text)
        content = LearningEventContent(
            USER_FEEDBACK,
            task=draft.task,
            text=draft.text,
            reward=judgement.reward,
            target=draft.target,
            metadata={} if given else {"reward_inferred": True, "conclusive": judgement.conclusive},
        )
        event = LearningEvent(namespace, own, content, self._time.now())
        record = learning_event_record(event, self._time.sort_key(), applied=False)
        if CREATE_TIME in plan:
            record.payload["target"][CREATE_TIME] = plan[CREATE_TIME]
        if point not in await self._store.insert(LEARNING_EVENTS, [record]):
            record = (await self._store.get(LEARNING_EVENTS, namespace, [point])).get(point, record)
        return record

    async def _finish(self, record: Record, *, again: bool) -> None:
        """Move what is to be moved, unless it was. ``again``: an earlier try may have."""
        if record.payload[APPLIED]:
            return
        event = learning_event_from_record(record)
        content = event.content
        if _sure(event) and content.target is not None and content.target.kind in self._moves:
            judged = Judged(
                event.namespace,
                event.learning_event_id,
                content.target.id,
                _reward(event),
                content.text,
                event.create_time,
            )
            with suppress(NotFoundError):  # it was there when the judgement was taken
                if not again or await self._is_there(record, content.target):
                    await self._moves[content.target.kind](judged)
        if (key := _preference_key(event)) is not None:
            value = {"feedback": content.text, "task": content.task}
            repeat_of = event.create_time if again else None
            await self._preferences.take_in(
                event.namespace, key, value, content.task, record.id, repeat_of
            )
        await self._events.finish(record.namespace, record.id)

    async def _is_there(self, record: Record, target: FeedbackTarget) -> bool:
        """Whether a target is the one judged, not another that has reused its id."""
        found = await self._checks[target.kind](record.namespace, target.id)
        judged = record.payload["target"].get(CREATE_TIME)
        return judged is None or found is None or bool(found.create_time == judged)

    async def _submitted(self, event: LearningEvent) -> Submitted:
        key = _preference_key(event)
        preference = await self._preferences.find(event.namespace, key) if key else None
        judged = bool(event.content.metadata.get("reward_inferred", False))
        return Submitted(event, _reward(event), judged, _sure(event), preference)


def _reward(event: LearningEvent) -> float:
    return event.content.reward or 0.0


def _sure(event: LearningEvent) -> bool:
    return bool(event.content.metadata.get("conclusive", True))


def _preference_key(event: LearningEvent) -> str | None:
    """The key of the preference to learn from an event; None if there is none."""
    content = event.content
    if _reward(event) <= _PREFERRED_ABOVE or not (content.task or content.text):
        return None
    if only_praises(content.text):
        return None
    return learned_key(content.task, content.text)
