"""A regular expression (RE2) that the tasks of a group match and others do not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations
from typing import Final

ENOUGH_OTHERS: Final = 20
"""Tasks of other groups that must be known before a single word may stand for a group."""

_FREQUENT = 8
_ALTERNATIVES = 4
_SHARE = 0.2
_OTHERS = 0.05
_GAIN = 0.05
_SHORTEST, _LONGEST = 3, 64
"""Characters of a word."""

Words = Mapping[str, str]
"""The words of a task by term."""


def task_regex(name: str, tasks: Sequence[Words], others: Sequence[AbstractSet[str]]) -> str:
    """The expression: the group's name, or words that its tasks share.

    ``name`` is the task type or category, empty for a group without; ``others`` are the terms of
    other groups' tasks. A word, or two in any order, takes part if a fifth of the tasks has it and
    at most a twentieth of the others, and if it adds a twentieth of the tasks to those matched
    already. Words stand for their inflections. A single word takes part only if enough others are
    known; a group without any word that qualifies matches its commonest task's words all together.
    """
    alternatives = [part] if (part := _name_part(name)) else []
    alternatives += [_both(one, tasks) for one in _chosen(tasks, others)]
    if not alternatives:
        commonest = Counter(tuple(sorted(words)) for words in tasks)
        terms = min(commonest, key=lambda terms: (-commonest[terms], terms))[:_ALTERNATIVES]
        alternatives = [r"(?s:.*)".join(_word(term, tasks) for term in terms)]
    return "|".join(dict.fromkeys(alternatives))  # a task may be worded like its type


def _name_part(name: str) -> str:
    words = re.findall(r"[^\W_]+", name)
    return r"\b" + r"[\s_-]*".join(re.escape(word) for word in words) if words else ""


def _chosen(tasks: Sequence[Words], others: Sequence[AbstractSet[str]]) -> list[tuple[str, ...]]:
    shares = Counter(term for words in tasks for term in words)
    frequent = sorted(
        (term for term in shares if len(term) >= _SHORTEST), key=lambda t: (-shares[t], t)
    )[:_FREQUENT]
    singles = [(term,) for term in frequent] if len(others) >= ENOUGH_OTHERS else []
    candidates: list[tuple[str, ...]] = [*singles, *combinations(sorted(frequent), 2)]
    matched: set[int] = set()
    chosen: list[tuple[str, ...]] = []
    while len(chosen) < _ALTERNATIVES:
        gains = []
        for terms in candidates:
            those = {n for n, words in enumerate(tasks) if all(t in words for t in terms)}
            wrong = sum(all(t in other for t in terms) for other in others)
            if len(those) >= _SHARE * len(tasks) and wrong <= _OTHERS * len(others):
                gains.append((len(those - matched), -len(terms), terms, those))
        if not gains:
            break
        gain, _, terms, those = max(gains, key=lambda one: (one[0], one[1], one[2]))
        if gain < max(1.0, _GAIN * len(tasks)):
            break
        chosen.append(terms)
        matched |= those
    return chosen


def _both(terms: tuple[str, ...], tasks: Sequence[Words]) -> str:
    words = [_word(term, tasks) for term in terms]
    if len(words) == 1:
        return words[0]
    one, two = words
    return rf"{one}(?s:.*){two}|{two}(?s:.*){one}"


def _word(term: str, tasks: Sequence[Words]) -> str:
    """The beginning that a term's words share."""
    words = sorted({task[term].lower() for task in tasks if term in task}) or [term]
    shared = words[0]
    for word in (*words, term):
        while not word.startswith(shared):
            shared = shared[:-1]
    beginning = (shared if len(shared) >= _SHORTEST else words[0])[:_LONGEST]
    return (r"\b" if beginning[:1].isascii() else "") + re.escape(beginning)
