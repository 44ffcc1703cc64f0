"""What a store knows beside its patterns: episodes, memories, error solutions, preferences.

To 10,000 patterns come 4,000 episodes (a fifth of them failed), 2,000 memories, 1,000 error
solutions and 20 preferences, with vectors mixed from those of the patterns.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.episode import Episode, EpisodeEnd, EpisodeError, EpisodeStart, EpisodeStatus
from lot_grpc.domain.error_solution import ErrorSolution, ErrorSolutionContent
from lot_grpc.domain.memory import Memory, MemoryContent, MemoryKind
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.preference import Preference
from lot_grpc.lexical.bm25 import document_vector
from lot_grpc.pb.lot.v1 import outcome_pb2, task_context_pb2
from lot_grpc.ports import Record, Vector
from lot_grpc.services.records.collections import (
    EPISODES,
    ERROR_SOLUTIONS,
    MEMORIES,
    PREFERENCES,
    SPARSE_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.services.records.episodes import episode_record
from lot_grpc.services.records.error_solutions import error_solution_record
from lot_grpc.services.records.memories import memory_record
from lot_grpc.services.records.preferences import preference_record
from tests.bench import data

EPISODE_COUNT, MEMORY_COUNT, ERROR_COUNT, PREFERENCE_COUNT = 4_000, 2_000, 1_000, 20
_ERRORS = ("KeyError: 'host'", "TimeoutError: deadline exceeded", "ConnectionError: refused")
_TIME = 1_700_000_000_000_000
_MINUTE = 60_000_000


def ask(number: int, *, error: bool = False) -> bytes:
    """The context of a task that lies ahead; with ``error`` the task names one."""
    content = data.content(number)
    named = f"\n{_ERRORS[number % 3]} {number}" if error else ""
    return task_context_pb2.GetTaskContextRequest(
        task=data.sentence(number) + named,
        category=content.category,
        task_type=content.task_type,
        language=data.LANGUAGES[number % len(data.LANGUAGES)],
        complexity=outcome_pb2.COMPLEXITY_MEDIUM,
        max_tokens=2_000,
    ).SerializeToString()


def records(known: NDArray[np.float32]) -> Iterator[tuple[str, list[Record]]]:
    """All of it, by collection."""
    vectors = iter(list(data.mixed(known, len(known) + EPISODE_COUNT + 3_000))[len(known) :])
    yield EPISODES, [_episode(n, next(vectors)) for n in range(EPISODE_COUNT)]
    yield MEMORIES, [_memory(n, next(vectors)) for n in range(MEMORY_COUNT)]
    yield ERROR_SOLUTIONS, [_error_solution(n, next(vectors)) for n in range(ERROR_COUNT)]
    yield PREFERENCES, [_preference(n) for n in range(PREFERENCE_COUNT)]


def _vectors(text: str, vector: list[float]) -> dict[str, Vector]:
    return {TEXT_VECTOR: vector, SPARSE_VECTOR: document_vector(text)}


def _episode(number: int, vector: list[float]) -> Record:
    content, time = data.content(number), _TIME + number * _MINUTE
    failed = number % 5 == 0
    start = EpisodeStart(
        data.sentence(number),
        category=content.category,
        task_type=content.task_type,
        complexity=list(Complexity)[number % 3],
        approach=content.approach,
    )
    kind, _, message = _ERRORS[number % 3].partition(": ")
    end = EpisodeEnd(
        EpisodeStatus.FAILED if failed else EpisodeStatus.SUCCEEDED,
        summary=data.sentence(number + 1),
        error=EpisodeError(kind, f"{message} {number}") if failed else None,
        success_factors=() if failed else content.tags,
        tools_used=content.tools,
    )
    episode = Episode(
        data.NAMESPACE,
        f"e-{number}",
        start,
        end.status,
        end,
        time,
        time + _MINUTE,
        event_count=0,
        reused_count=0,
        writer_epoch=0,
        revision=1,
        create_time=time,
        update_time=time,
    )
    return episode_record(episode, time, _vectors(start.task, vector))


def _memory(number: int, vector: list[float]) -> Record:
    text, time = f"{data.sentence(number)}. {data.sentence(number + 7)}", _TIME + number
    kind = list(MemoryKind)[number % 3]
    memory = Memory(data.NAMESPACE, f"m-{number}", MemoryContent(text, kind), 1, time, time)
    return memory_record(memory, time, _vectors(text, vector))


def _error_solution(number: int, vector: list[float]) -> Record:
    text, time = f"{_ERRORS[number % 3]} {number}", _TIME + number
    content = ErrorSolutionContent(text, resolution=data.sentence(number), worked=number % 7 > 0)
    solution = ErrorSolution(
        data.NAMESPACE,
        f"s-{number}",
        content,
        content.error.signature,
        OutcomeStats(),
        1,
        time,
        time,
    )
    return error_solution_record(solution, time, _vectors(text, vector))


def _preference(number: int) -> Record:
    time = _TIME + number
    preference = Preference(
        data.NAMESPACE, f"editor.setting-{number}", number, "editor", 1, time, time
    )
    return preference_record(preference, time)
