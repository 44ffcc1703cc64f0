"""Generalises a group of similar patterns to one pattern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from lot_grpc.domain.json_values import as_doubles
from lot_grpc.domain.origin import BY_SERVER
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.pattern import Pattern, PatternContent, PatternKind
from lot_grpc.domain.slots import Slots
from lot_grpc.domain.template import align_actions, align_texts

DEFAULT_SIMILARITY: Final = 0.85
"""Of WebArena's 1,722 tasks of 502 templates, groups of three and more hold 847 at this level, and
93 of 100 members share their group's main template. At .90 it is 706 and 95, at .80 991 and 87."""

LEVEL_STEP: Final = 0.1
"""How much less alike the groups of a group are."""

LEVELS: Final = 2
"""Groups, and groups of groups."""

DEFAULT_GROUP_SIZE: Final = 3
LEAST_GROUP_SIZE: Final = 2
"""Also how many groups make a group of groups."""

MOST_ALIGNED: Final = 100
"""Members that a template is made from: the best ones of a group."""

MOST_SOURCES: Final = 1000
"""Members that a DISTILLED pattern names; the others name it."""

_EXAMPLES, _LONGEST_EXAMPLE = 10, 200
_SHOWN_SLOTS, _SHOWN_VALUES, _SHOWN_LENGTH = 4, 4, 40
_CONTEXTS, _LONGEST_CONTEXT = 5, 2000
_MOST_TERMS = 100

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A group, apart from its members' contents. ``size``: its number of members."""

    member_ids: tuple[str, ...]
    size: int
    level: int
    similarity: float


def best_members(members: Sequence[Pattern]) -> list[Pattern]:
    """The members that a template is made from, in the given order: the most reliable and used."""
    if len(members) <= MOST_ALIGNED:
        return list(members)
    ranked = sorted(
        range(len(members)),
        key=lambda n: (-members[n].outcomes.reliability, -members[n].outcomes.usage_count, n),
    )
    return [members[n] for n in sorted(ranked[:MOST_ALIGNED])]


def generalised(members: Sequence[Pattern], summary: GroupSummary) -> PatternContent:
    """The DISTILLED content of a group. ``members`` are the best ones, the oldest first.

    If the tasks have too little in common for a template, the task is the first member's. A field
    with a single value keeps it if all members share it (for code, with the slots in place of their
    values); a list keeps what at least half of the members have.
    """
    contents = [member.content for member in members]
    slots = Slots()
    actions = align_actions([content.actions for content in contents])
    actions.learn_keys(slots)
    texts = align_texts([content.task for content in contents])
    task = texts.render(slots, as_task=True) if texts.tells_enough else contents[0].task
    steps = actions.render(slots)
    return PatternContent(
        task=task,
        kind=PatternKind.DISTILLED,
        pattern_type=contents[0].pattern_type,
        context=_applicability(contents, slots, summary),
        actions=steps,
        code=_shared(slots.put_in(content.code, n) for n, content in enumerate(contents)) or "",
        language=contents[0].language,
        category=_shared(content.category for content in contents) or "",
        task_type=_shared(content.task_type for content in contents) or "",
        complexity=_shared(content.complexity for content in contents),
        approach=_shared(content.approach for content in contents) or "",
        success_indicators=_usual(contents, lambda c: c.success_indicators),
        failure_indicators=_usual(contents, lambda c: c.failure_indicators),
        recommended_context=_contexts(content.recommended_context for content in contents),
        success_factors=_usual(contents, lambda c: c.success_factors),
        tools=_usual(contents, lambda c: c.tools),
        tags=_usual(contents, lambda c: c.tags),
        labels=dict(_usual(contents, lambda c: tuple(sorted(c.labels.items())))),
        origin=BY_SERVER,
        metadata={
            "slots": slots.examples(_EXAMPLES, _LONGEST_EXAMPLE),
            "member_count": summary.size,
            "similarity": summary.similarity,
            "level": summary.level,
        },
        source_pattern_ids=summary.member_ids[:MOST_SOURCES],
    )


def confidence_of(outcomes: OutcomeStats) -> float:
    """The mean chance of success after the outcomes, with a prior of one success and one failure.

    So it is .5 while nothing is known.
    """
    return (outcomes.weighted_successes + 1.0) / (outcomes.usage_count + 2.0)


def summed(outcomes: Sequence[OutcomeStats]) -> OutcomeStats:
    """The sum of counters. The rate is the mean by usage; the plain mean if nothing was used."""
    usage = sum(one.usage_count for one in outcomes)
    rates = (
        sum(one.success_rate * one.usage_count for one in outcomes) / usage
        if usage
        else sum(one.success_rate for one in outcomes) / len(outcomes)
    )
    return OutcomeStats(
        success_rate=min(1.0, max(0.0, rates)),
        success_count=sum(one.success_count for one in outcomes),
        failure_count=sum(one.failure_count for one in outcomes),
        partial_count=sum(one.partial_count for one in outcomes),
        duration_count=sum(one.duration_count for one in outcomes),
        duration_total=sum(one.duration_total for one in outcomes),
        last_used_time=max(one.last_used_time for one in outcomes),
    )


def _shared(values: Iterable[T]) -> T | None:
    """The value that all share."""
    different = set(values)
    return different.pop() if len(different) == 1 else None


def _usual(
    contents: Sequence[PatternContent], terms_of: Callable[[PatternContent], Sequence[T]]
) -> tuple[T, ...]:
    """What at least half of the members have, the most frequent first."""
    counts = Counter(term for content in contents for term in dict.fromkeys(terms_of(content)))
    usual = [(term, n) for term, n in counts.items() if 2 * n >= len(contents)]
    return tuple(term for term, _ in sorted(usual, key=lambda one: -one[1]))[:_MOST_TERMS]


def _contexts(given: Iterable[str]) -> str:
    different = list(dict.fromkeys(context[:_LONGEST_CONTEXT] for context in given if context))
    return "\n".join(different[:_CONTEXTS])


def _applicability(contents: Sequence[PatternContent], slots: Slots, summary: GroupSummary) -> str:
    """When the pattern applies, for people and for models."""
    lines = [_shared(content.context for content in contents) or ""]
    examples = slots.examples(_SHOWN_VALUES, _SHOWN_LENGTH)
    lines += [
        f"{{{name}}} was: {'; '.join(examples[name])}." for name in list(examples)[:_SHOWN_SLOTS]
    ]
    of = "groups of patterns" if summary.level > 1 else "patterns"
    lines.append(f"Generalised from {summary.size} {of}.")
    return "\n".join(line for line in lines if line)


def field_value(content: PatternContent, name: str) -> Any:
    """A field as JSON-like value for hashing."""
    value = getattr(content, name)
    if name == "actions":
        value = [[action.tool, action.args, action.note] for action in value]
    return as_doubles(value)


GENERALISED_FIELDS: Final = (
    "task", "context", "actions", "code", "category", "task_type", "complexity", "approach",
    "success_indicators", "failure_indicators", "recommended_context", "success_factors", "tools",
    "tags", "labels", "metadata", "source_pattern_ids",
)  # fmt: skip
"""The fields that are regenerated when a group gets new members."""
