"""Extracting patterns from ended episodes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from lot_grpc.domain.extraction.learning import Learned, Lesson, learn
from lot_grpc.domain.pattern import Pattern, PatternType
from lot_grpc.regexes import check_regex
from lot_grpc.services.extraction.gathering import Gathered, Gathering, Members
from lot_grpc.services.extraction.learned_patterns import LearnedPatterns
from lot_grpc.services.pacing import Breath

MIN_SAMPLES = 3


@dataclass(frozen=True, slots=True)
class ExtractionDraft:
    """What to extract. ``namespaces`` whose episodes are read; none: the one it is stored in."""

    regex: str = ""
    pattern_type: PatternType = PatternType.SUCCESS
    min_samples: int = MIN_SAMPLES
    namespaces: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Extracted:
    """The patterns, those of the largest groups first, and how many episodes were read."""

    patterns: list[Pattern]
    episode_count: int


class Extraction:
    """Learns from episodes, a group at a time."""

    def __init__(self, gathering: Gathering, learned: LearnedPatterns) -> None:
        self._gathering = gathering
        self._learned = learned

    async def extract(self, namespace: str, draft: ExtractionDraft) -> Extracted:
        """Learn from all groups that are large enough. Raises RequestInvalidError for the regex.

        Doing it again with the same episodes changes nothing, with more updates the same patterns.
        """
        check_regex(draft.regex, "task_type_pattern")
        gathered = await self._gathering.gather(draft.namespaces or (namespace,), draft.regex)
        patterns = []
        for group in sorted(gathered.groups, key=lambda g: (-gathered.groups[g].count, g)):
            members = gathered.groups[group]
            if members.count < draft.min_samples:
                continue
            lesson = Lesson(namespace, draft.pattern_type, draft.regex, group, members.count)
            learned = await self._learn(lesson, members, gathered, draft.min_samples)
            if learned is not None:
                keep = self._learned.preview if draft.dry_run else self._learned.store
                patterns.append(await keep(learned))
        return Extracted(patterns, gathered.count)

    async def refresh(self, lesson: Lesson) -> Pattern | None:
        """Bring the pattern of one group up to date; None if the group teaches too little."""
        members = await self._gathering.members(lesson.namespace, lesson.group)
        tasks = await self._gathering.contrast(lesson.namespace)
        learned = await self._learn(lesson, members, tasks, MIN_SAMPLES)
        return await self._learned.store(learned) if learned is not None else None

    async def _learn(
        self, lesson: Lesson, members: Members, tasks: Gathered, min_samples: int
    ) -> Learned | None:
        """Read a group and learn from it, in a thread that gives way."""
        digests = await self._gathering.read(members)
        others = [] if lesson.regex else await tasks.others(lesson.group)
        if not digests:
            return None
        pause = Breath().pause
        return await asyncio.to_thread(learn, lesson, digests, others, min_samples, pause)
