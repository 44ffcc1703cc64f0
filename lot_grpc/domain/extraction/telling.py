"""Renders what was learned as sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lot_grpc.domain.extraction.digest import Digest
from lot_grpc.domain.extraction.groups import Group, GroupBy
from lot_grpc.domain.extraction.indicators import Indicator, Indicators
from lot_grpc.domain.pattern import PatternType

_EXAMPLES = 2
_LONGEST_EXAMPLE = 160
_SIGNS = 5
_ERRORS = 3

_SENTENCES = {
    PatternType.SUCCESS: "Carry out {what}",
    PatternType.FAILURE: "Avoid what makes {what} fail",
    PatternType.OPTIMIZATION: "Make {what} faster",
}
_SIDES = {
    PatternType.SUCCESS: ("successes", "failures"),
    PatternType.FAILURE: ("failures", "successes"),
    PatternType.OPTIMIZATION: ("fast runs", "slow runs"),
}


def task_sentence(pattern_type: PatternType, group: Group, focus: Sequence[Digest]) -> str:
    """What the pattern is for, with the most typical tasks of the winning episodes."""
    if group.by in (GroupBy.TASK_TYPE, GroupBy.CATEGORY):
        what = f"{group.value.replace('_', ' ')} tasks"
    elif group.by is GroupBy.REGEX:
        what = f"tasks that match {group.value}"
    else:
        what = "tasks"
    examples = " and ".join(f'"{_short(task)}"' for task in _typical(focus))
    return f"{_SENTENCES[pattern_type].format(what=what)}, such as {examples}."


def recommended_context(
    pattern_type: PatternType,
    focus: Sequence[Digest],
    other_count: int,
    tools: Sequence[str],
    signs: Indicators,
) -> str:
    """The recommended context: context, tools, signs, and errors met."""
    ours, theirs = _SIDES[pattern_type]
    lines = []
    contexts = Counter(one.context for one in focus if one.context)
    shared = min(contexts, key=lambda text: (-contexts[text], text), default="")
    if shared and 2 * contexts[shared] > len(focus):
        lines.append(shared)
    if tools:
        whose = f" (of the {ours})" if pattern_type is PatternType.FAILURE else ""
        lines.append(f"Tools: {', '.join(tools)}{whose}.")
    lines += [
        f"{_sign(sign)}: in {sign.shown_won} of {len(focus)} {ours}, "
        f"in {sign.shown_lost} of {other_count} {theirs}."
        for sign in (*signs.winning[:_SIGNS], *signs.losing[:_SIGNS])
    ]
    if pattern_type is PatternType.FAILURE:
        errors = Counter(one.error_type for one in focus if one.error_type)
        first = sorted(errors, key=lambda error: (-errors[error], error))[:_ERRORS]
        lines += [f"{error}: ended {errors[error]} of {len(focus)} {ours}." for error in first]
    return _cut("\n".join(lines), 65_536)


def _typical(digests: Sequence[Digest]) -> list[str]:
    """The tasks whose words are most common in the group."""
    counts = Counter(term for one in digests for term in one.task_words)
    scores: dict[str, float] = {}
    for one in digests:
        words = one.task_words
        scores[one.task] = sum(counts[term] for term in words) / (len(words) or 1)
    return sorted(scores, key=lambda task: (-scores[task], task))[:_EXAMPLES]


def _short(task: str) -> str:
    line = " ".join(task.split())
    return line if len(line) <= _LONGEST_EXAMPLE else f"{line[: _LONGEST_EXAMPLE - 1]}…"


def _sign(sign: Indicator) -> str:
    return sign.label[:1].upper() + sign.label[1:]


def _cut(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")
