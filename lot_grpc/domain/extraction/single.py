"""The TASK pattern of a single successful episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lot_grpc.domain.episode import Episode
from lot_grpc.domain.extraction.digest import Step
from lot_grpc.domain.ids import own_request_id
from lot_grpc.domain.languages import language_name
from lot_grpc.domain.origin import BY_SERVER
from lot_grpc.domain.pattern import Action, PatternContent

MOST_ARGS: Final = 4_096
"""Characters of an action's arguments, as JSON, that are kept; longer ones are left out."""

MOST_DETAILS: Final = 2**20
"""Bytes of the arguments and notes of all actions; of those behind, just the tool is kept."""

_LONGEST_TOOLS = 100
_LONGEST_LANGUAGE = 64
"""Bytes."""


def task_pattern(episode: Episode, steps: Sequence[Step | None]) -> PatternContent:
    """The TASK pattern of an episode that succeeded.

    Its actions are the steps that name a tool; where none does, the tools that the end names, in
    its order. Two episodes that did the same for the same task give the same content.
    """
    start, end = episode.start, episode.end
    named = [step for step in steps if step is not None and step.tool]
    used = end.tools_used if end else ()
    actions = _actions(named) or tuple(Action(tool) for tool in used)
    tools = dict.fromkeys((*used, *(step.tool for step in named)))
    return PatternContent(
        start.task,
        context=start.context,
        actions=actions,
        language=language_of(episode),
        category=start.category,
        task_type=start.task_type,
        complexity=start.complexity,
        approach=episode.approach,
        success_factors=end.success_factors if end else (),
        tools=tuple(tools)[:_LONGEST_TOOLS],
        tags=start.tags,
        labels=start.labels,
        source_episode_ids=(episode.episode_id,),
        origin=BY_SERVER,
    )


def language_of(episode: Episode) -> str:
    """The language of an episode: its label ``language``, or that of its metadata; else empty."""
    named = episode.start.labels.get("language") or episode.start.metadata.get("language")
    name = language_name(named) if isinstance(named, str) else ""
    return name if len(name.encode()) <= _LONGEST_LANGUAGE else ""


def solution_request(episode: Episode, sort_key: int) -> str:
    """The request id under which its pattern is saved: the same for the same episode."""
    return own_request_id("extraction", episode.episode_id, sort_key)


def _actions(steps: Sequence[Step]) -> tuple[Action, ...]:
    actions = []
    room = MOST_DETAILS
    for step in steps:
        args = step.args if len(str(dict(step.args))) <= MOST_ARGS else {}
        room -= _size(args) + _size(step.note)
        whole = Action(step.tool, args, step.note)
        actions.append(whole if room >= 0 else Action(step.tool))
    return tuple(actions)


def _size(value: Any) -> int:
    """Bytes of a JSON value as protobuf has it, nearly."""
    if isinstance(value, Mapping):
        return sum(_size(key) + _size(one) + 6 for key, one in value.items())
    if isinstance(value, list | tuple):
        return sum(_size(one) + 4 for one in value)
    return len(value.encode()) + 4 if isinstance(value, str) else 10
