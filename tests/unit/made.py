"""Things of every kind, made up by hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.episode import (
    Episode,
    EpisodeEnd,
    EpisodeError,
    EpisodeEvent,
    EpisodeStart,
    EpisodeStatus,
)
from lot_grpc.domain.error_solution import ErrorSolution, ErrorSolutionContent
from lot_grpc.domain.feedback import FeedbackCounts
from lot_grpc.domain.ids import ResourceRef
from lot_grpc.domain.label_keys import is_label_key
from lot_grpc.domain.memory import ConversationSummary, Memory, MemoryContent, MemoryKind, Project
from lot_grpc.domain.origin import Origin, OriginKind, Review, ReviewState
from lot_grpc.domain.outcomes import Outcome, OutcomeStats
from lot_grpc.domain.pattern import (
    Action,
    CodeKind,
    Pattern,
    PatternContent,
    PatternKind,
    PatternType,
)
from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import ScorePart
from lot_grpc.domain.recorded_outcome import RecordedOutcome
from lot_grpc.domain.retrieval import (
    Retrieval,
    RetrievalMethod,
    RetrievalOptions,
    RetrievedItem,
)
from lot_grpc.domain.text_form import visible
from lot_grpc.services.records.feedback import GivenFeedback

words = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=12)
some_words = words.filter(visible)
ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,20}", fullmatch=True)
times = st.integers(0, 253_402_300_799_999_999)
"""Microseconds, to the end of the year 9999."""

several = st.lists(some_words, max_size=3).map(tuple)
unique = st.lists(some_words, max_size=3, unique=True).map(tuple)
many_ids = st.lists(ids, max_size=3).map(tuple)
shares = st.floats(0, 1)
label_keys = some_words.filter(is_label_key)
labels = st.dictionaries(label_keys, words, max_size=3)
numbers = st.floats(allow_nan=False, allow_infinity=False)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3)


json_values = st.recursive(st.none() | st.booleans() | numbers | words, _nested, max_leaves=6)
"""As a Struct gives them: every number a double."""

json_objects = st.dictionaries(words, json_values, max_size=3)
origins = st.builds(Origin, st.sampled_from(OriginKind), words)
reviews = st.none() | st.builds(Review, st.sampled_from(ReviewState), words, st.none() | times)
actions = st.builds(Action, some_words, json_objects, words)

pattern_contents = st.builds(
    PatternContent,
    task=some_words,
    kind=st.sampled_from(PatternKind),
    code_kind=st.none() | st.sampled_from(CodeKind),
    pattern_type=st.sampled_from(PatternType),
    title=words,
    context=words,
    actions=st.lists(actions, max_size=2).map(tuple),
    code=words,
    language=words,
    category=words,
    task_type=words,
    task_type_pattern=words,
    complexity=st.none() | st.sampled_from(Complexity),
    approach=words,
    success_indicators=several,
    failure_indicators=several,
    recommended_context=words,
    success_factors=several,
    tools=unique,
    tags=unique,
    labels=labels,
    metadata=json_objects,
    pinned=st.booleans(),
    confidence=shares,
    source_episode_ids=many_ids,
    source_pattern_ids=many_ids,
    parent_pattern_id=st.just("") | ids,
    supersedes=st.just("") | ids,
    expire_time=st.none() | times,
    origin=origins,
)

outcomes = st.builds(
    OutcomeStats,
    success_rate=shares,
    success_count=st.integers(0, 10**6),
    failure_count=st.integers(0, 10**6),
    partial_count=st.integers(0, 10**6),
    duration_count=st.integers(0, 10**6),
    duration_total=st.floats(0, 1e9),
    last_used_time=times,
)

feedback_counts = st.builds(
    FeedbackCounts,
    feedback_count=st.integers(0, 10**6),
    helpful_count=st.integers(0, 10**6),
    unhelpful_count=st.integers(0, 10**6),
    last_feedback_time=times,
)

patterns = st.builds(
    Pattern,
    namespace=ids,
    pattern_id=ids,
    content=pattern_contents,
    outcomes=outcomes,
    feedback=feedback_counts,
    revision=st.integers(1, 10**6),
    create_time=times,
    update_time=times,
    review=reviews,
)

resource_refs = st.builds(
    ResourceRef, st.sampled_from(["pattern", "memory", "episode", "error_solution"]), ids
)

facts = st.builds(
    RecordedOutcome,
    namespace=ids,
    outcome_id=ids,
    resource=resource_refs,
    outcome=st.sampled_from(Outcome),
    create_time=times,
    reward=st.none() | st.floats(-1, 1),
    duration=st.none() | st.floats(0, 1e9),
    query=words,
    retrieval_id=words,
    note=words,
    from_repeated_save=st.booleans(),
)

retrieved_items = st.builds(
    RetrievedItem,
    resource=resource_refs,
    version=st.tuples(times, times, st.integers(1, 99)),
    score=numbers,
    similarity=numbers,
    matches=st.just(()) | st.tuples(st.floats(0, 1)),
    score_parts=st.lists(st.builds(ScorePart, words, numbers, numbers), max_size=3).map(tuple),
)

retrievals = st.builds(
    Retrieval,
    namespace=ids,
    retrieval_id=ids,
    method=st.sampled_from(RetrievalMethod),
    query=words,
    vector=st.lists(st.floats(-1, 1, width=32), max_size=4),
    items=st.lists(retrieved_items, max_size=3),
    create_time=times,
    expire_time=times,
    options=st.builds(
        RetrievalOptions,
        ranking=st.none() | st.sampled_from(Ranking),
        limit=st.integers(0, 100),
        min_similarity=st.floats(0, 1),
        min_match=st.none() | st.floats(0, 1),
        as_of=st.none() | times,
        rerank=st.booleans(),
        holdout=st.none() | st.booleans(),
    ),
    epoch=st.integers(0, 9),
)

starts = st.builds(
    EpisodeStart,
    task=some_words,
    task_id=words,
    category=words,
    task_type=words,
    complexity=st.sampled_from(Complexity),
    dependencies=several,
    effort=st.floats(0, 1e6),
    approach=words,
    agent_role=words,
    context=words,
    tags=unique,
    labels=labels,
    metadata=json_objects,
)

ends = st.builds(
    EpisodeEnd,
    status=st.just(EpisodeStatus.FAILED),
    summary=words,
    error=st.none() | st.builds(EpisodeError, words, words),
    error_patterns=several,
    success_factors=several,
    tools_used=unique,
    metrics=st.dictionaries(some_words, numbers, max_size=3),
    reward=st.none() | st.floats(-1, 1),
    used_pattern_ids=many_ids,
    used_episode_ids=many_ids,
    approach=words,
    end_time=times,
)


@st.composite
def episodes(draw: st.DrawFn) -> Episode:
    end = draw(st.none() | ends)
    running = st.sampled_from([EpisodeStatus.RUNNING, EpisodeStatus.ABANDONED])
    return Episode(
        namespace=draw(ids),
        episode_id=draw(ids),
        start=draw(starts),
        status=end.status if end else draw(running),
        end=end,
        start_time=draw(times),
        end_time=end.end_time if end else None,
        event_count=draw(st.integers(0, 10**6)) if end else 0,
        reused_count=0,
        writer_epoch=draw(st.integers(0, 10**6)),
        revision=draw(st.integers(1, 10**6)),
        create_time=draw(times),
        update_time=draw(times),
    )


events = st.builds(
    EpisodeEvent,
    sequence=st.integers(1, 10**9),
    event_type=some_words,
    agent_role=words,
    data=st.binary(max_size=20),
    event_time=times,
    record_time=times,
)

details = (
    st.none()
    | st.builds(ConversationSummary, several, words)
    | st.builds(Project, words, unique, some_words, st.none() | times)
)

memories = st.builds(
    Memory,
    namespace=ids,
    memory_id=ids,
    content=st.builds(
        MemoryContent,
        content=some_words,
        kind=st.sampled_from(MemoryKind),
        title=words,
        language=words,
        tags=unique,
        labels=labels,
        metadata=json_objects,
        importance=shares,
        pinned=st.booleans(),
        source_uri=words,
        details=details,
        expire_time=st.none() | times,
        origin=origins,
    ),
    revision=st.integers(1, 10**6),
    create_time=times,
    update_time=times,
    review=reviews,
)

feedback_facts = st.builds(
    GivenFeedback,
    namespace=ids,
    feedback_id=ids,
    pattern_id=ids,
    create_time=times,
    helpful=st.none() | st.booleans(),
    confidence_adjustment=st.none() | st.floats(-1, 1),
    text=words,
)

error_solutions = st.builds(
    ErrorSolution,
    namespace=ids,
    error_solution_id=ids,
    content=st.builds(
        ErrorSolutionContent,
        error_message=some_words,
        error_type=words,
        context=words,
        language=words,
        resolution=words,
        steps=several,
        categories=unique,
        worked=st.booleans(),
        tags=unique,
        labels=labels,
        metadata=json_objects,
        source_episode_ids=many_ids,
        pinned=st.booleans(),
        expire_time=st.none() | times,
        origin=origins,
    ),
    signature=some_words,
    outcomes=outcomes,
    revision=st.integers(1, 10**6),
    create_time=times,
    update_time=times,
    review=reviews,
)
