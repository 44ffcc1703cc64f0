"""Renders each kind of record as an entry, with its id and date."""

from __future__ import annotations

from lot_grpc.domain.context.entry import Bounds, Entry
from lot_grpc.domain.context.failing import TaskWarning
from lot_grpc.domain.context.known import KnownEpisode, KnownError, KnownPattern
from lot_grpc.domain.context.markdown import day, span
from lot_grpc.domain.counting import counted
from lot_grpc.domain.episode import EpisodeStatus
from lot_grpc.domain.json_values import json_text
from lot_grpc.domain.memory import ConversationSummary, Memory, MemoryKind, Project
from lot_grpc.domain.origin import AGENT, Origin, OriginKind
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.pattern import Action, PatternContent, PatternType
from lot_grpc.domain.preference import Preference
from lot_grpc.domain.recommendation import Recommendations
from lot_grpc.domain.text_form import visible

_MOST_IDS = 5

_BY = {
    OriginKind.PERSON: "by a person",
    OriginKind.TOOL: "observed by a tool",
    OriginKind.AGENT: "by an agent",
    OriginKind.EXTRACTION: "extracted",
    OriginKind.MODEL: "by a model, without evidence",
    OriginKind.IMPORT: "imported",
}


def error_entry(known: KnownError, bounds: Bounds) -> Entry:
    """A solution of an error, or what did not help."""
    solution, content = known.solution, known.solution.content
    kind = "a similar error"
    if known.exact:
        kind = "this error with other details" if known.differences else "this error"
    caption = [span(solution.error_solution_id), kind]
    if not content.worked:
        caption.append("NOT solved by this")
    caption += _by(content.origin)
    caption.append(_used(solution.outcomes, "helped", solution.update_time))
    message = content.error_message
    if content.error_type and content.error_type not in message:
        message = f"{content.error_type}: {message}"
    entry = Entry.headed(bounds, ", ".join(caption), message)
    for one in known.differences[: bounds.listed]:
        entry.part(
            f"Differs in a {one.part}", f"{_quoted(one.given)} here, {_quoted(one.stored)} there"
        )
    entry.part("When", content.context)
    entry.part("Fix" if content.worked else "Tried", content.resolution)
    entry.steps(content.steps)
    return entry


def pattern_entry(known: KnownPattern, bounds: Bounds) -> Entry:
    """A pattern: what to do, or what not to do."""
    pattern, content = known.pattern, known.pattern.content
    caption = [span(pattern.pattern_id)]
    if content.pattern_type is PatternType.FAILURE:
        caption.append("TO AVOID")
    if known.matched:
        caption.append("learned for such tasks")
    caption += _by(content.origin)
    caption += _likely(known.match)
    caption.append(_used(pattern.outcomes, "worked", pattern.update_time))
    title = visible(content.title) or content.task
    entry = Entry.headed(bounds, ", ".join(caption), title)
    if title != content.task:
        entry.part("Task", content.task)
    entry.part("When", content.context)
    entry.part("Needs", content.recommended_context)
    entry.part("Approach", content.approach)
    entry.steps(_action(one) for one in content.actions)
    entry.listing("What helped", content.success_factors)
    if not content.actions:
        entry.listing(
            "Tools", _omitted_note(content.tools and ("Tools",), content) and content.tools
        )
    entry.listing("Signs of success", _omitted_note(content.success_indicators, content))
    entry.listing("Signs of failure", _omitted_note(content.failure_indicators, content))
    entry.code(content.code, content.language)
    return entry


def warning_entry(warning: TaskWarning, bounds: Bounds) -> Entry:
    """Why similar tasks failed."""
    failed = counted(warning.count, "similar task")
    ids = _ids("episode", warning.episode_ids)
    caption = f"{failed} failed, last on {day(warning.last_time)} ({ids})"
    return Entry.headed(bounds, caption, warning.error or "reason unknown")


def advice_entry(advice: Recommendations, episode_ids: tuple[str, ...], bounds: Bounds) -> Entry:
    """What to do, based on what worked."""
    caption = f"From {_ids('episode', episode_ids) if episode_ids else 'similar tasks'}"
    first, *others = advice.sentences
    entry = Entry.headed(bounds, caption, first)
    for sentence in others:
        label, _, text = sentence.partition(": ")
        entry.part(label, text)
    return entry


def preference_entry(preference: Preference, bounds: Bounds) -> Entry:
    """A preference. One learned from feedback is quoted."""
    value = preference.value
    caption = f"{span(preference.key)}, set on {day(preference.update_time)}"
    if isinstance(value, dict) and isinstance(value.get("feedback"), str):
        entry = Entry.headed(bounds, f"{caption}, feedback", value["feedback"])
        if isinstance(value.get("task"), str):
            entry.part("On", value["task"])
        return entry
    return Entry.headed(bounds, caption, value if isinstance(value, str) else json_text(value))


def memory_entry(memory: Memory, bounds: Bounds) -> Entry:
    """A memory."""
    content = memory.content
    kind = content.kind.value.replace("_", " ")
    caption = ", ".join(
        (span(memory.memory_id), kind, *_by(content.origin), day(memory.update_time))
    )
    if content.kind is MemoryKind.CODE_SNIPPET:
        title = visible(content.title) or content.language or "code"
        entry = Entry.headed(bounds, caption, title)
        entry.code(content.content, content.language)
    elif visible(content.title):
        entry = Entry.headed(bounds, caption, content.title)
        entry.part("Text", content.content)
    else:
        entry = Entry.headed(bounds, caption, content.content)
    if isinstance(content.details, ConversationSummary):
        entry.listing("Decided", content.details.key_decisions)
        entry.part("The user said", content.details.user_feedback)
    if isinstance(content.details, Project):
        entry.part("Path", content.details.path)
        entry.listing("Built with", content.details.tech_stack)
        entry.part("Status", content.details.status)
    entry.part("Source", content.source_uri)
    return entry


def episode_entry(known: KnownEpisode, bounds: Bounds) -> Entry:
    """An episode of a similar task."""
    episode = known.episode
    went = "succeeded" if episode.status is EpisodeStatus.SUCCEEDED else "FAILED"
    ended = day(episode.start_time if episode.end_time is None else episode.end_time)
    caption = [span(episode.episode_id), *_likely(known.match), f"{went} on {ended}"]
    entry = Entry.headed(bounds, ", ".join(caption), episode.start.task)
    entry.part("Approach", episode.approach)
    if (end := episode.end) is not None:
        if end.summary != episode.start.task:
            entry.part("Summary", end.summary)
        if end.error is not None:
            kind, message = end.error.type, end.error.message
            entry.part("Failed with", f"{kind}: {message}" if kind and message else kind or message)
        entry.listing("What helped", end.success_factors)
        entry.listing("Tools", end.tools_used)
    return entry


def _by(origin: Origin) -> list[str]:
    """Who wrote it, unless that is an agent without a name."""
    if origin == AGENT:
        return []
    return [f"{_BY[origin.kind]} {span(origin.name)}" if origin.name else _BY[origin.kind]]


def _likely(match: float | None) -> list[str]:
    """The probability that it is for the same task, if known."""
    return [] if match is None else [f"{match:.0%} likely the same task"]


def _omitted_note(labels: tuple[str, ...], content: PatternContent) -> tuple[str, ...]:
    """Those that no line of the recommended context begins with: a learned one has them counted."""
    lines = content.recommended_context.casefold().splitlines()
    return tuple(
        label
        for label in labels
        if not any(line.startswith(f"{label.casefold()}: ") for line in lines)
    )


def _used(outcomes: OutcomeStats, verb: str, update_time: int) -> str:
    """How often it worked and when it was used last."""
    if not outcomes.usage_count:
        return f"not used yet, stored on {day(update_time)}"
    worked = f"{verb} {outcomes.success_count:,} of {outcomes.usage_count:,} times"
    if outcomes.partial_count:
        worked = f"{worked} and partly {outcomes.partial_count:,}"
    return f"{worked}, last on {day(outcomes.last_used_time or update_time)}"


def _action(action: Action) -> str:
    args = f" {json_text(dict(action.args))}" if action.args else ""
    note = f" ({action.note})" if action.note else ""
    return f"{action.tool}{args}{note}"


def _ids(resource_kind: str, ids: tuple[str, ...]) -> str:
    shown = ", ".join(span(one) for one in ids[:_MOST_IDS])
    more = f" and {len(ids) - _MOST_IDS:,} more" if len(ids) > _MOST_IDS else ""
    return f"{resource_kind if len(ids) == 1 else f'{resource_kind}s'} {shown}{more}"


def _quoted(text: str) -> str:
    return f'"{text}"' if text else "nothing"
