"""Whether two short statements contradict each other, and in what.

Both are read as words in order. What both say is their subject; what only one says is compared:

* one negates the other, or has the opposite of a word of it, and neither says more;
* each has another value in the same place, where one thing has one value at a time: an amount, a
  time, a place it runs on, a holder of a role. Two things that may both be so ("likes coffee",
  "likes tea") are none, nor are values of different subjects ("staging", "production").

An embedding hardly tells these apart, so similarity plays no part. The rule would rather miss a
contradiction than see one where there is none. English only; ``data/conflicts.toml`` has the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.opposites import opposites_among
from lot_grpc.lexical.statements import (
    COPULAS,
    NUMBER,
    PREPOSITIONS,
    UNITS,
    WEAK,
    Statement,
    Word,
    statements_of,
    stems,
    words,
)

_SINGLE, _HEADS = words("single"), stems("heads")
_RELATIONS, _FUNCTIONAL, _SEVERAL = stems("relations"), stems("functional"), stems("several")
_ROLES, _ATTRIBUTES, _TEMPORAL = stems("roles"), stems("attributes"), words("temporal")
_DIRECT, _USES, _ANYWHERE = stems("direct"), stems("uses"), stems("anywhere")
_BY: Final = COPULAS | {"by"}
_CHANNELS, _PURPOSES, _PAST = words("channels"), words("purposes"), words("past")
_OPPOSITE_PREPOSITIONS: Final = words("opposite_prepositions")

_DATE: Final = frozenset(("month", "number"))

_BARE: Final = 2
"""Content words of a statement such as "use tabs"."""

_DETAILS: Final = 2
"""Words of a detail that a denial of the whole denies too."""

_LONGEST_NAME: Final = 3
"""Words of a name."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What the first text says where the second says something else, in their own words."""

    ours: str
    theirs: str


def contradiction(one: str, other: str) -> Contradiction | None:
    """How two texts contradict each other; None if both may be true at the same time."""
    ours, theirs = statements_of(one), statements_of(other)
    for first in ours:
        for second in theirs:
            if found := _compare(first, second):
                return found
    return None


# --- comparing --------------------------------------------------------------------------------


def _compare(one: Statement, other: Statement) -> Contradiction | None:
    ours, theirs = one.content, other.content
    shared = {word.term for word in ours} & {word.term for word in theirs}
    if not shared and max(len(ours), len(theirs)) > _BARE:
        return None
    ours = [word for word in ours if word.term not in shared]
    theirs = [word for word in theirs if word.term not in shared]
    opposed = _opposed(ours, theirs)
    for first, second in opposed:
        ours = [word for word in ours if word is not first]
        theirs = [word for word in theirs if word is not second]
    ours, theirs = _telling(ours), _telling(theirs)
    if (len(one.negations) + len(other.negations) + len(opposed)) % 2:
        return _denied(one, other, opposed, (ours, theirs), shared)
    if opposed or one.negations or other.negations:
        return None  # not open and closed are the same; what is not so may be many things
    if not ours and not theirs:
        return _other_side(one, other)
    return _other_value(one, other, (ours, theirs), shared)


def _opposed(ours: Sequence[Word], theirs: Sequence[Word]) -> list[tuple[Word, Word]]:
    """Pairs of words of opposite meaning, each word once."""
    known = opposites_among({word.lower for word in (*ours, *theirs)})
    pairs: list[tuple[Word, Word]] = []
    for first in ours:
        for second in theirs:
            taken = any(second is used for _, used in pairs)
            if not taken and second.lower in known.get(first.lower, ()):
                pairs.append((first, second))
                break
    return pairs


def _telling(words: Sequence[Word]) -> list[Word]:
    return [word for word in words if word.term not in _RELATIONS]


def _other_side(one: Statement, other: Statement) -> Contradiction | None:
    """The same words, but before in one and after in the other, or the like."""
    ours, theirs = (
        [w for w in statement.words if w.lower in _OPPOSITE_PREPOSITIONS]
        for statement in (one, other)
    )
    if len(ours) != 1 or len(theirs) != 1:
        return None
    pairs = _opposed(ours, theirs)
    return Contradiction(pairs[0][0].text, pairs[0][1].text) if pairs else None


def _denied(
    one: Statement,
    other: Statement,
    opposed: Sequence[tuple[Word, Word]],
    left: tuple[Sequence[Word], Sequence[Word]],
    shared: set[str],
) -> Contradiction | None:
    """One says the opposite of the other, or denies it, and says nothing else."""
    ours, theirs = left
    if not shared - _RELATIONS:
        return None
    if opposed:
        first, second = opposed[0]
        placed = [
            {w.lower for w in each.words if not w.content} & PREPOSITIONS for each in (one, other)
        ]
        if ours or theirs or placed[0] != placed[1]:  # it closes at six, it is open until six
            return None
        return Contradiction(first.text, second.text)
    denying, more = (ours, theirs) if len(one.negations) % 2 else (theirs, ours)
    # "No approval" denies "approval by a lead"; "no approval on staging" leaves "approval" true.
    affirming = other if denying is ours else one
    if denying or len(more) > _DETAILS or (more and len(shared) <= 1):
        return None
    if not all(_is_detail(affirming, word) for word in more):
        return None
    said = [" ".join(statement.negations) for statement in (one, other)]
    return Contradiction(*said)


def _is_detail(statement: Statement, word: Word) -> bool:
    """Whether a word only adds to what a statement says: "by a lead", "for caching"."""
    before = _before(statement, [word])
    while before and before[-1].content and not before[-1].verb:
        before.pop()
    return bool(before) and before[-1].lower in PREPOSITIONS


def _other_value(
    one: Statement,
    other: Statement,
    left: tuple[list[Word], list[Word]],
    shared: set[str],
) -> Contradiction | None:
    """Each has a value where the other has another one of the same kind, and one at a time."""
    ours, theirs = left
    if len(ours) != len(theirs):
        ours, theirs = _without_heads(ours), _without_heads(theirs)
    first, second = _slots(one, ours), _slots(other, theirs)
    if not first or len(first) != len(second):
        return None
    kinds = [_kind(slot) for slot in first]
    if kinds != [_kind(slot) for slot in second]:
        return None
    if len(first) > 1 and not _TEMPORAL.issuperset(kinds):
        return None
    if not all(
        _one_at_a_time((one, mine), (other, yours), kind, shared)
        for mine, yours, kind in zip(first, second, kinds, strict=True)
    ):
        return None
    said = (" ".join(word.text for slot in slots for word in slot) for slots in (first, second))
    return Contradiction(*said)


def _without_heads(words: Sequence[Word]) -> list[Word]:
    return [word for word in words if word.term not in _HEADS]


def _slots(statement: Statement, words: Sequence[Word]) -> list[list[Word]]:
    """Words that stand together, but for articles and the like."""
    slots: list[list[Word]] = []
    for word in words:
        between = statement.words[slots[-1][-1].at + 1 : word.at] if slots else ()
        if slots and all(
            not one.content and not one.verb and one.lower not in PREPOSITIONS for one in between
        ):
            slots[-1].append(word)
        else:
            slots.append([word])
    return slots


def _kind(slot: Sequence[Word]) -> str:
    """What kind of value a slot has: that of its words, or "term"."""
    first, *others = slot
    if len(slot) == len(_DATE) and {one.kind for one in slot} == _DATE:
        return "date"
    if first.kind == "number":
        unit = others[0] if others and others[0].kind == "unit" else None
        if others[1 if unit else 0 :]:
            return "phrase"
        measure = UNITS[unit.term][0] if unit else _suffix(first)
        return f"number {measure}"
    if first.kind == "unit" and not others:  # of the same number
        return f"unit {UNITS[first.term][0]}"
    if first.kind and first.kind not in ("unit", "name"):
        return first.kind if not others else "phrase"
    return "term" if len(slot) <= _LONGEST_NAME else "phrase"


def _suffix(number: Word) -> str:
    found = NUMBER.fullmatch(number.term)
    suffix = found[2] if found else ""
    return str(UNITS[suffix][0]) if suffix in UNITS else suffix


def _amount(slot: Sequence[Word]) -> float | None:
    """The size of an amount with a unit of time or the like; None if it has none."""
    found = NUMBER.fullmatch(slot[0].term)
    unit = slot[1].term if len(slot) > 1 else found[2] if found else ""
    if found is None or unit not in UNITS or found[1].count(".") > 1:
        return None
    return float(found[1]) * float(UNITS[unit][1])


def _one_at_a_time(
    one: tuple[Statement, Sequence[Word]],
    other: tuple[Statement, Sequence[Word]],
    kind: str,
    shared: set[str],
) -> bool:
    """Whether one thing can have but one of two values, by how the statements say it."""
    if kind == "phrase":
        return False
    if kind in ("term", "address"):
        holders = all(_holds(*place) for place in (one, other))
        if holders and not shared.isdisjoint(_ROLES):
            return True
        return bool(shared) and all(_is_single(*place) for place in (one, other))
    if kind.startswith("number"):
        amounts = _amount(one[1]), _amount(other[1])
        if amounts[0] is not None and amounts[0] == amounts[1]:
            return False
        return bool(shared) and all(_counts(*place) for place in (one, other))
    if kind in _TEMPORAL or kind.startswith("unit"):
        return bool(shared) and all(_is_said(*place) for place in (one, other))
    if any(_is_one_of_several(*place) for place in (one, other)):
        return bool(shared) and all(_is_single(*place) for place in (one, other))
    return bool(shared) or all(len(place[0].content) <= _BARE for place in (one, other))


def _is_one_of_several(statement: Statement, slot: Sequence[Word]) -> bool:
    verb = _verb(_before(statement, slot))
    return verb is not None and verb.term in _SEVERAL


def _before(statement: Statement, slot: Sequence[Word]) -> list[Word]:
    """The words before a slot, without articles and the like next to it."""
    words = list(statement.words[: slot[0].at])
    while words and words[-1].lower in WEAK and not words[-1].verb:
        words.pop()
    return words


def _verb(words: Sequence[Word]) -> Word | None:
    """The last verb that says something, else the last copula."""
    verbs = [word for word in words if word.verb]
    full = [word for word in verbs if word.lower not in COPULAS] or verbs
    return full[-1] if full else None


def _is_said(statement: Statement, slot: Sequence[Word]) -> bool:
    """Whether a value is said of the subject, and is not part of its name."""
    before = _before(statement, slot)
    verb = _verb(before)
    if any(word.lower in _PAST for word in before):
        return False
    if verb is not None:
        return not _happened(statement, verb)
    placed = bool(before) and before[-1].lower in PREPOSITIONS
    return placed and any(word.content for word in before)


def _happened(statement: Statement, verb: Word) -> bool:
    """Whether a verb tells of something that happened once, not of how something is."""
    if verb.term in _RELATIONS:
        return False
    stated = verb.at and statement.words[verb.at - 1].lower in WEAK | COPULAS
    return verb.lower.endswith("ed") and not stated


def _counts(statement: Statement, slot: Sequence[Word]) -> bool:
    """Whether a number says how much, or which one of a thing that has one."""
    verb = _verb(_before(statement, slot))
    if not _is_said(statement, slot):
        return False
    after = statement.words[slot[-1].at + 1 : slot[-1].at + 2]
    quantity = len(slot) > 1 or bool(_suffix(slot[0])) or any(one.content for one in after)
    return quantity or verb is None or verb.term not in _SEVERAL


def _holds(statement: Statement, slot: Sequence[Word]) -> bool:
    """Whether a name is who does it: at the beginning, or after "by"."""
    before = _before(statement, slot)
    if not any(word.content for word in before):
        return slot[0].text[0].isupper()
    return slot[0].kind == "name" and before[-1].lower in _BY


def _is_single(statement: Statement, slot: Sequence[Word]) -> bool:
    """Whether a name stands where a thing has but one: "runs on", "the default is"."""
    before = _before(statement, slot)
    if not before:
        return False
    while len(before) > 1 and not before[-1].verb and before[-1].lower not in PREPOSITIONS:
        before.pop()  # "by the team lead", "by the security team"
    last = before[-1]
    if last.lower in PREPOSITIONS:
        return _is_single_place(before[:-1], last)
    if last.lower in COPULAS:
        subject = before[:-1]
        named = slot[0].kind == "name" and any(word.content for word in subject)
        return named or any(w.term in _ATTRIBUTES or w.lower in _SINGLE for w in subject)
    if last.term in _DIRECT:
        return True
    after = statement.words[slot[-1].at + 1 :]
    purpose = bool(after) and after[0].lower in _PURPOSES
    return last.term in _USES and purpose


def _is_single_place(before: Sequence[Word], preposition: Word) -> bool:
    """Whether what follows a preposition is one place, means or holder: "runs on", "signed by"."""
    verb = _verb(before)
    if verb is None:
        return False
    if preposition.lower in _CHANNELS:
        return True
    if verb.lower in COPULAS:  # or "is approved by", with a verb of no list
        done = [word for word in before if word.at > verb.at and word.content]
        return not done or (len(done) == 1 and done[0].lower.endswith(("ed", "en")))
    if verb.term in _FUNCTIONAL or verb.term in _ROLES:
        return True
    passive = any(word.lower in COPULAS for word in before[-3:-1])
    if verb.term in _RELATIONS or passive:
        return verb.term not in _SEVERAL and not (passive and verb.term in _ANYWHERE)
    return False
