"""Ended episodes as learning reads them: their words as terms, their events as steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from lot_grpc.domain.episode import Episode, EpisodeStatus
from lot_grpc.domain.extraction.digest import Digest, Step, step_of, without_repeats
from lot_grpc.domain.extraction.groups import constant_part
from lot_grpc.domain.extraction.single import language_of
from lot_grpc.lexical.terms import FUNCTION_TERMS, terms_of
from lot_grpc.ports import Record
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.records.episodes import committed_prefix_of, episode_from_record

READ_CHARACTERS = 4_000
"""Of a task and of a context."""

READ_EVENTS = 100
"""Events read at each end of an episode; in a longer one those in between are not read."""

_WORD = re.compile(r"\w+")
_DURATION = "duration_seconds"
_MICROS = 1_000_000


class DigestReader:
    """Reads episodes and their events."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def digest(self, record: Record) -> Digest:
        """An ended episode from its record."""
        episode = episode_from_record(record)
        steps = await self.steps(episode, record)
        start, end = episode.start, episode.end
        words = words_of(start.task)
        seen = (step.tool for step in steps if step is not None and step.tool)
        return Digest(
            namespace=episode.namespace,
            episode_id=episode.episode_id,
            succeeded=episode.status is EpisodeStatus.SUCCEEDED,
            task=start.task,
            task_type=start.task_type,
            category=start.category,
            language=language_of(episode),
            complexity=start.complexity,
            approach=episode.approach,
            context=start.context,
            seconds=_seconds(episode),
            tools=tuple(dict.fromkeys((*(end.tools_used if end else ()), *seen))),
            success_factors=end.success_factors if end else (),
            error_type=end.error.type if end and end.error else "",
            error_patterns=end.error_patterns if end else (),
            terms={**words_of(start.context), **words},
            task_words=words,
            steps=without_repeats(steps),
        )

    async def steps(
        self, episode: Episode, record: Record, *, with_args: bool = False
    ) -> list[Step | None]:
        """The steps of an ended episode; None stands for those that were not read."""
        count = episode.event_count
        if count <= 2 * READ_EVENTS:
            return [*await self._read(episode, record, 0, count, with_args=with_args)]
        head = await self._read(episode, record, 0, READ_EVENTS, with_args=with_args)
        after = count - READ_EVENTS
        tail = await self._read(episode, record, after, READ_EVENTS, with_args=with_args)
        return [*head, None, *tail]

    async def _read(
        self, episode: Episode, record: Record, after: int, limit: int, *, with_args: bool
    ) -> list[Step]:
        if not limit:
            return []
        events = await self._log.read(
            episode.namespace, episode.episode_id, after, limit, committed_prefix_of(record.payload)
        )
        return [
            step_of(event.event_type, event.data or b"", with_args=with_args) for event in events
        ]


def words_of(text: str) -> dict[str, str]:
    """The terms of a text, each with a word to show for it.

    Without function words, numbers, quoted names, paths and addresses.
    """
    words: dict[str, str] = {}
    for word in _WORD.findall(constant_part(text[:READ_CHARACTERS])):
        for term, shown in _terms(word).items():
            words.setdefault(term, shown)
    return words


@lru_cache(maxsize=65_536)
def _terms(word: str) -> Mapping[str, str]:
    """A word that is a single term is shown as itself, a part of a compound as the term."""
    terms = [term for term in terms_of(word).counts if term not in FUNCTION_TERMS]
    return {term: word.lower() if len(terms) == 1 else term for term in terms}


def _seconds(episode: Episode) -> float | None:
    """Its duration: the metric ``duration_seconds``, else from start to end."""
    reported = episode.end.metrics.get(_DURATION, 0.0) if episode.end else 0.0
    if reported > 0:
        return reported
    lasted = (episode.end_time or 0) - episode.start_time
    return lasted / _MICROS if lasted > 0 else None
