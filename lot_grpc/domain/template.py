"""Templates: what texts and actions of a group have in common, and slots where they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lot_grpc.domain.alignment import common_to_all, gaps
from lot_grpc.domain.pattern import Action
from lot_grpc.domain.slots import Slots
from lot_grpc.domain.text_form import folded, normal_form, without_breaks, word_form
from lot_grpc.domain.tokens import TOKEN
from lot_grpc.domain.wording import action_places

_MOST_TOKENS: Final = 200
"""Of a text that are aligned; what lies behind them is one token more."""

_ALTERNATIVES: Final = 4
"""Actions that a template names at most."""

_MOST_ACTIONS: Final = 100
"""Of a pattern that are aligned, the first ones."""

_LEAST_CONSTANT: Final = 0.3
"""Share of a text's words, on the mean over the members, that must be constant: a template of less
says little."""


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    spaced: bool


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    text = without_breaks(text)
    for match in TOKEN.finditer(text):
        spaced = match.start() > 0 and text[match.start() - 1].isspace()
        if len(found) == _MOST_TOKENS:
            found.append(_Token(text[match.start() :].strip(), spaced))
            break
        found.append(_Token(match[0], spaced))
    return found


def _compared(text: str) -> str:
    """The word form in one case. In it 10³ would be 103, so a raised digit keeps its own form."""
    if text.isascii() or not any(one.isdigit() and not one.isdecimal() for one in text):
        return word_form(text).casefold()
    return folded(text)


@dataclass(frozen=True, slots=True)
class AlignedTexts:
    """Texts side by side: ``pieces`` are constant text, or one value a member."""

    pieces: tuple[tuple[str | tuple[str, ...], bool], ...]
    """Each with whether a space comes before it."""
    constant_share: float
    """How much of the words is constant, in [0, 1]."""
    varying_actions: frozenset[int] = frozenset()
    """The pieces that say what to do, where that varies; by their places."""

    @property
    def tells_enough(self) -> bool:
        """Whether a template of it says what the texts are about."""
        few = all(
            len(_alternatives(self.pieces[at][0])) <= _ALTERNATIVES for at in self.varying_actions
        )
        return self.constant_share >= _LEAST_CONSTANT and few

    def values(self) -> list[tuple[str, ...]]:
        """The varying values, in order."""
        return [piece for piece, _ in self.pieces if not isinstance(piece, str)]

    def render(self, slots: Slots, *, as_task: bool = False) -> str:
        """The text with ``{slots}`` for what varies.

        With ``as_task``, actions that vary are named ("Check or verify …") and are no slot: else
        tasks that do opposite things would have one template.
        """
        text = ""
        for at, (piece, spaced) in enumerate(self.pieces):
            if as_task and at in self.varying_actions:
                shown = " or ".join(_alternatives(piece))
            else:
                shown = piece if isinstance(piece, str) else f"{{{slots.name_of(piece)}}}"
            text += f" {shown}" if spaced and text else shown
        return text


def align_texts(texts: Sequence[str]) -> AlignedTexts:
    """Token by token: what all have in one order is constant (letter case does not count)."""
    tokens = [_tokens(text) for text in texts]
    words = [[_compared(token.text) for token in one] for one in tokens]
    constant, places = _constant(words)
    acts = [set(action_places(one)) for one in words]
    pieces: list[tuple[str | tuple[str, ...], bool]] = []
    varying_actions: set[int] = set()
    for number in range(len(constant) + 1):
        spans = [one[at[number][0] : at[number][1]] for one, at in zip(tokens, places, strict=True)]
        if any(spans):
            first = next(span for span in spans if span)
            if all(
                not acting.isdisjoint(range(*at[number]))
                and all(map(_is_word, one[slice(*at[number])]))
                for one, acting, at in zip(words, acts, places, strict=True)
            ):
                varying_actions.add(len(pieces))
            pieces.append((tuple(_joined(span) for span in spans), first[0].spaced))
        if number < len(constant):
            shown = [one[at[number][1]] for one, at in zip(tokens, places, strict=True)]
            pieces.append((shown[0].text, any(token.spaced for token in shown)))
    counted = sum(_is_word(word) for one in words for word in one)
    kept = len(words) * sum(_is_word(word) for word in constant)
    share = kept / counted if counted else 0.0
    return AlignedTexts(tuple(pieces), share, frozenset(varying_actions))


def _alternatives(piece: str | tuple[str, ...]) -> list[str]:
    """The different values; those after the first lose the capital letter of a sentence's start."""
    different: dict[str, str] = {}
    for value in [piece] if isinstance(piece, str) else piece:
        different.setdefault(_compared(value), value)
    first, *others = different.values()
    return [first, *(one[0].lower() + one[1:] if one.istitle() else one for one in others)]


def _constant(words: Sequence[list[str]]) -> tuple[list[str], list[list[tuple[int, int]]]]:
    """What is constant, and where the gaps lie in each.

    Without punctuation that stands between two slots: it would cut one value into two.
    """
    constant = common_to_all(words)
    places = [gaps(constant, one) for one in words]
    varies = [any(at[n][0] < at[n][1] for at in places) for n in range(len(constant) + 1)]
    kept = [
        word
        for number, word in enumerate(constant)
        if _is_word(word) or not (varies[number] and varies[number + 1])
    ]
    if len(kept) == len(constant):
        return constant, places
    return kept, [gaps(kept, one) for one in words]


def _is_word(token: str) -> bool:
    return token[0].isalnum()


def _joined(tokens: Sequence[_Token]) -> str:
    return "".join(f" {t.text}" if t.spaced and n else t.text for n, t in enumerate(tokens))


# --- actions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AlignedActions:
    """Steps that all members take in one order, each as the members' own actions."""

    steps: tuple[tuple[Action, ...], ...]

    def learn_keys(self, slots: Slots) -> None:
        """Tell ``slots`` what the arguments' keys are called."""
        for step in self.steps:
            _learn(slots, "", [dict(action.args) for action in step])

    def render(self, slots: Slots) -> tuple[Action, ...]:
        """The steps with slots for what varies in their arguments. A note is kept if all share it.

        An argument that not all give is left out.
        """
        return tuple(
            Action(
                step[0].tool,
                {key: _rendered(slots, values) for key, values in _shared(step)},
                step[0].note if len({action.note for action in step}) == 1 else "",
            )
            for step in self.steps
        )


def align_actions(members: Sequence[Sequence[Action]]) -> AlignedActions:
    """By their tools: the steps that all members have in one order."""
    cut = [list(actions[:_MOST_ACTIONS]) for actions in members]
    tools = [[normal_form(action.tool) for action in actions] for actions in cut]
    constant = common_to_all(tools)
    places = [gaps(constant, one) for one in tools]
    return AlignedActions(
        tuple(
            tuple(actions[at[number][1]] for actions, at in zip(cut, places, strict=True))
            for number in range(len(constant))
        )
    )


def _shared(step: Sequence[Action]) -> list[tuple[str, list[Any]]]:
    return _shared_keys([action.args for action in step])


def _shared_keys(args: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Any]]]:
    return [(key, [one[key] for one in args]) for key in args[0] if all(key in one for one in args)]


def _learn(slots: Slots, key: str, values: Sequence[Any]) -> None:
    if all(isinstance(value, Mapping) for value in values):
        for name, below in _shared_keys(values):
            _learn(slots, name, below)
    elif any(value != values[0] for value in values) and not _inline(values):
        slots.learn_key(key, values)


def _rendered(slots: Slots, values: Sequence[Any]) -> Any:
    if all(value == values[0] for value in values):
        return values[0]
    if all(isinstance(value, Mapping) for value in values):
        return {name: _rendered(slots, below) for name, below in _shared_keys(values)}
    if aligned := _inline(values):
        return aligned.render(slots)
    return f"{{{slots.name_of([_shown(value) for value in values])}}}"


def _inline(values: Sequence[Any]) -> AlignedTexts | None:
    """Texts that are the same but for a part of them, such as a sentence with a name in it."""
    if not all(isinstance(value, str) and value for value in values):
        return None
    aligned = align_texts(values)
    return aligned if aligned.constant_share >= 0.5 else None


def _shown(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool)) else str(value)
