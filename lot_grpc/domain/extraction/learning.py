"""Learns a pattern from the episodes of a group."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from lot_grpc.domain.extraction.digest import Digest
from lot_grpc.domain.extraction.groups import Group, GroupBy
from lot_grpc.domain.extraction.indicators import Indicator, Indicators, indicators
from lot_grpc.domain.extraction.sequences import common_sequence
from lot_grpc.domain.extraction.task_regex import task_regex
from lot_grpc.domain.extraction.telling import recommended_context, task_sentence
from lot_grpc.domain.ids import content_hash
from lot_grpc.domain.origin import BY_SERVER
from lot_grpc.domain.outcomes import wilson_lower_bound
from lot_grpc.domain.pattern import Action, PatternContent, PatternKind, PatternType

MOST_SOURCES: Final = 1_000
EXTRACTION: Final = "extraction"
"""The metadata key for what a pattern was learned from."""

_SEQUENCES = 200
_FREQUENT = 10
_FREQUENT_SHARE = 0.2

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class LearningTask:
    """What to learn, from which group. ``regex`` as the caller gave it, empty: none.

    ``group_count`` is how many episodes the group has, read or not.
    """

    namespace: str
    pattern_type: PatternType
    regex: str
    group: Group
    group_count: int

    @property
    def pattern_id(self) -> str:
        """The id of the pattern: equal whenever the same is learned again."""
        parts = [self.namespace, self.pattern_type, self.regex, self.group.by, self.group.value]
        return f"l-{content_hash(parts)[:24]}"


@dataclass(frozen=True, slots=True)
class Learned:
    """A learned pattern, with the share of its group that succeeded."""

    learning_task: LearningTask
    content: PatternContent
    success_rate: float


def learn(
    learning_task: LearningTask,
    digests: Sequence[Digest],
    others: Sequence[AbstractSet[str]],
    min_samples: int,
    pause: Callable[[], None] = lambda: None,
) -> Learned | None:
    """Learn from a group, newest first; None if there is too little to learn.

    SUCCESS and FAILURE need ``min_samples`` episodes with that outcome, OPTIMIZATION as many
    successes of known duration, some fast and some slow, and a sign that separates them. ``others``
    are the terms of other groups' tasks. ``pause`` is called between steps.
    """
    compared, focus = _sides(learning_task.pattern_type, digests)
    if (
        len(compared if learning_task.pattern_type is PatternType.OPTIMIZATION else focus)
        < min_samples
    ):
        return None
    inside = {id(one) for one in focus}
    won = [id(one) in inside for one in compared]
    signs = indicators(compared, won, pause)
    if learning_task.pattern_type is PatternType.OPTIMIZATION and not signs.winning:
        return None
    actions, support = _actions(focus, pause)
    successes = sum(one.succeeded for one in digests)
    failing = learning_task.pattern_type is PatternType.FAILURE
    good, bad = (signs.losing, signs.winning) if failing else (signs.winning, signs.losing)
    regex = learning_task.regex or task_regex(
        "" if learning_task.group.by is GroupBy.WORDS else learning_task.group.value,
        [one.task_words for one in digests],
        others,
    )
    tools = _frequent((one.tools for one in focus), len(focus))
    content = PatternContent(
        task_sentence(learning_task.pattern_type, learning_task.group, focus),
        kind=PatternKind.LEARNED,
        pattern_type=learning_task.pattern_type,
        actions=actions,
        language=_agreed(one.language for one in digests) or "",
        category=_agreed(one.category for one in digests) or "",
        task_type=_agreed(one.task_type for one in digests) or "",
        task_type_pattern=regex,
        complexity=_agreed(one.complexity for one in digests),
        approach=_commonest(one.approach for one in focus),
        success_indicators=tuple(sign.label for sign in good),
        failure_indicators=tuple(sign.label for sign in bad),
        recommended_context=recommended_context(
            learning_task.pattern_type, focus, len(compared) - len(focus), tools, signs
        ),
        success_factors=_frequent(
            (one.success_factors for one in digests if one.succeeded), successes
        ),
        tools=tools,
        confidence=_confidence(learning_task.pattern_type, len(focus), len(compared), signs),
        source_episode_ids=_sources(digests),
        metadata={EXTRACTION: _provenance(learning_task, digests, successes, support, signs)},
        origin=BY_SERVER,
    )
    return Learned(learning_task, content, successes / len(digests))


def group_count_of(content: PatternContent) -> float:
    """The group size of a stored pattern; 0 if an edit removed it."""
    provenance = content.metadata.get(EXTRACTION)
    count = provenance.get("group_count") if isinstance(provenance, Mapping) else None
    return count if isinstance(count, (int, float)) else 0.0


def _sources(digests: Sequence[Digest]) -> tuple[str, ...]:
    """The ids of the newest; two namespaces may share an id."""
    newest = list(dict.fromkeys(one.episode_id for one in digests))[:MOST_SOURCES]
    return tuple(sorted(newest))


def _sides(
    pattern_type: PatternType, digests: Sequence[Digest]
) -> tuple[Sequence[Digest], list[Digest]]:
    """The episodes that are compared, and those of them that the pattern is about.

    OPTIMIZATION compares successes: fast are those up to the median time.
    """
    if pattern_type is PatternType.SUCCESS:
        return digests, [one for one in digests if one.succeeded]
    if pattern_type is PatternType.FAILURE:
        return digests, [one for one in digests if not one.succeeded]
    timed = [one for one in digests if one.succeeded and one.seconds is not None]
    if not timed:
        return [], []
    median = statistics.median(one.seconds or 0.0 for one in timed)
    return timed, [one for one in timed if (one.seconds or 0.0) <= median]


def _confidence(pattern_type: PatternType, focus: int, compared: int, signs: Indicators) -> float:
    """Wilson's lower bound of the share with that outcome.

    OPTIMIZATION: of the share of fast ones among those with its most certain sign.
    """
    if pattern_type is PatternType.OPTIMIZATION:
        surest = signs.winning[0]
        focus, compared = surest.shown_won, surest.shown_won + surest.shown_lost
    return wilson_lower_bound(focus, compared)


def _actions(focus: Sequence[Digest], pause: Callable[[], None]) -> tuple[tuple[Action, ...], int]:
    """What most did in order, and how many did: tools, or event types where no tool is named."""
    latest = focus[:_SEQUENCES]
    steps = [[step for run in one.runs() for step in run] for one in latest]
    by_tool = any(step.tool for run in steps for step in run)
    runs = [
        [step.tool if by_tool else step.event_type for step in run if step.tool or not by_tool]
        for run in steps
    ]
    sequence, support = common_sequence(runs, pause)
    notes: dict[str, Counter[str]] = {}
    for step in (step for run in steps for step in run):
        notes.setdefault(step.tool if by_tool else step.event_type, Counter())[step.note] += 1
    return tuple(Action(name, note=_note(notes[name])) for name in sequence), support


def _note(notes: Counter[str]) -> str:
    """The note that at least half of the steps have."""
    note, count = min(notes.items(), key=lambda one: (-one[1], one[0]))
    return note if 2 * count >= notes.total() else ""


def _agreed(values: Iterable[T]) -> T | None:
    different = set(values)
    return different.pop() if len(different) == 1 else None


def _commonest(values: Iterable[str]) -> str:
    counts = Counter(value for value in values if value)
    return min(counts, key=lambda value: (-counts[value], value), default="")


def _frequent(lists: Iterable[tuple[str, ...]], total: int) -> tuple[str, ...]:
    """The values that at least a fifth has, the most frequent first."""
    counts = Counter(value for values in lists for value in set(values))
    ordered = sorted(counts, key=lambda value: (-counts[value], value))
    return tuple(v for v in ordered if counts[v] >= _FREQUENT_SHARE * total)[:_FREQUENT]


def _provenance(
    learning_task: LearningTask,
    digests: Sequence[Digest],
    successes: int,
    support: int,
    signs: Indicators,
) -> Mapping[str, Any]:
    """The provenance of the pattern, for its metadata."""
    return {
        "group_by": learning_task.group.by.value,
        "group": learning_task.group.value,
        "group_count": learning_task.group_count,
        "episode_count": len(digests),
        "success_count": successes,
        "namespaces": sorted({one.namespace for one in digests}),
        "action_support": support,
        "signs_tried": signs.tried,
        "signs": [_sign(one) for one in (*signs.winning, *signs.losing)],
    }


def _sign(sign: Indicator) -> Mapping[str, Any]:
    return {
        "label": sign.label,
        "shown_by": sign.shown_won,
        "shown_by_others": sign.shown_lost,
        "p": float(f"{sign.p:.3g}"),
    }
