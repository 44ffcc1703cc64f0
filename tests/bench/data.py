"""What is asked, saved and recorded: made up, distinct, and the same in every run.

Each request comes in two forms: as ``lot.v1`` has it, and as the bare server reads it (JSON).
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from google.protobuf.struct_pb2 import Struct
from numpy.typing import NDArray

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.context_stats import ContextStats, Fading
from lot_grpc.domain.episode import EpisodeEvent
from lot_grpc.domain.ids import ResourceRef
from lot_grpc.domain.outcomes import Outcome, OutcomeStats
from lot_grpc.domain.pattern import Action, Pattern, PatternContent, search_text
from lot_grpc.domain.recorded_outcome import RecordedOutcome
from lot_grpc.lexical.bm25 import document_vector
from lot_grpc.pb.lot.v1 import (
    episode_pb2,
    episode_service_pb2,
    outcome_pb2,
    pattern_pb2,
    pattern_service_pb2,
)
from lot_grpc.ports import Record, Vector
from lot_grpc.services.records.collections import SPARSE_VECTOR, TEXT_VECTOR
from lot_grpc.services.records.context_stats import context_stats_point, context_stats_record
from lot_grpc.services.records.counters import (
    PENDING,
    STATS_REVISION,
    outcomes_from_payload,
    outcomes_payload,
)
from lot_grpc.services.records.episodes import event_hash, event_records
from lot_grpc.services.records.outcomes import outcome_record
from lot_grpc.services.records.patterns import pattern_record

NAMESPACE = "default"
DIMENSIONS = 384
LANGUAGES = ("python", "typescript", "go", "rust")
MIN_SUCCESS_RATE = 0.5
BATCH_OF_EVENTS = 50


def _choices(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("|")]


_VERBS = _choices(
    """
    add | cache | check | clean | collect | compare | convert | debug | deploy | export | fix |
    harden | import | index | lint | measure | merge | migrate | parse | rename | replace |
    retry | schedule | split | test | trace | upgrade | validate | watch | wrap
    """
)
_THINGS = _choices(
    """
    the login form | the invoice report | an image upload | the search page | the order history |
    a CSV export | the payment webhook | user avatars | the release notes | stale sessions |
    the price table | a nightly backup | the error banner | the mailing list | a feature flag |
    the audit log | the shipping label | the time zone picker | a rate limiter |
    the product feed | the contact sheet | broken links | the signup wizard | a retry queue |
    the billing address | the map view | database connections | the translation file |
    a health check
    """
)
_PLACES = _choices(
    """
    in the admin panel | for the mobile client | behind the proxy | on the staging cluster |
    in the monorepo | for enterprise customers | of the booking service | in the checkout flow |
    on the old website | for the partner API | in the data pipeline | of the chat widget |
    in the test suite | on the edge nodes | for guest users | in the desktop app |
    of the metrics dashboard | in the mail gateway | for the sales team
    """
)
_REASONS = _choices(
    """
    because it times out under load | without breaking older clients | so that reviews go faster |
    after the schema changed | with as few queries as possible | before the audit next week |
    when the disk is nearly full | and write a regression test | using the new design tokens |
    while traffic is low | so that errors are visible | without a restart |
    as the vendor retires the old one | and document every step | when two users edit at once |
    with retries and a deadline | to keep the budget
    """
)
_LISTS = (_VERBS, _THINGS, _PLACES, _REASONS)
SENTENCES = len(_VERBS) * len(_THINGS) * len(_PLACES) * len(_REASONS)
"""How many there are."""

_STRIDE = 104_729  # a prime, so that neighbours differ in every part


def sentence(number: int) -> str:
    """A task in words; distinct for numbers below ``SENTENCES``."""
    rest = number * _STRIDE % SENTENCES
    words = []
    for choices in _LISTS:
        rest, place = divmod(rest, len(choices))
        words.append(choices[place])
    return " ".join(words)


# --- patterns ---------------------------------------------------------------------------------


def content(number: int) -> PatternContent:
    """A pattern of ordinary size: about 800 bytes of payload."""
    task = sentence(number)
    return PatternContent(
        task=task,
        context=f"Ticket {number}. {sentence(number + SENTENCES // 2).capitalize()}.",
        actions=(
            Action("read_file", {"path": f"src/module_{number % 97}.py"}, "look at the callers"),
            Action("edit_file", {"path": f"src/module_{number % 97}.py", "lines": 12}),
            Action("run_tests", {"only": f"test_{number % 89}"}, "must be green"),
        ),
        language=LANGUAGES[number % len(LANGUAGES)],
        category=("backend", "frontend", "data")[number % 3],
        task_type=("bugfix", "feature", "refactor", "ops")[number % 4],
        approach=("incremental", "standard")[number % 2],
        tools=("editor", "shell"),
        tags=(f"team-{number % 7}", f"area-{number % 31}"),
    )


def records(vectors: Iterable[list[float]]) -> Iterator[Record]:
    """A stored pattern with a history of outcomes for each of the vectors.

    It has no code, hence ``text`` and ``bm25`` and nothing else to be found by.
    """
    random = np.random.default_rng(20_240_229)
    for number, vector in enumerate(vectors):
        used = number % 23
        good = int(used * random.random())
        outcomes = OutcomeStats(
            success_rate=float(random.random()),
            success_count=good,
            failure_count=used - good,
        )
        given = content(number)
        pattern = Pattern(NAMESPACE, f"bench-{number}", given, outcomes, 1, number + 1, number + 1)
        vectors_of: dict[str, Vector] = {
            TEXT_VECTOR: vector,
            SPARSE_VECTOR: document_vector(search_text(given).whole),
        }
        yield pattern_record(pattern, number + 1, vectors_of)


def mixed(known: NDArray[np.float32], count: int) -> Iterator[list[float]]:
    """``count`` unit vectors: those known, then others near them.

    Vectors at random would all be about as far from a query as each other; real ones are not.
    """
    random = np.random.default_rng(20_240_301)
    yield from known[:count].tolist()
    for number in range(len(known), count):
        noise = random.standard_normal(DIMENSIONS, np.float32) / np.sqrt(DIMENSIONS)
        other = known[random.integers(0, len(known))]
        vector = known[number % len(known)] + 0.15 * other + 0.1 * noise
        yield (vector / np.linalg.norm(vector)).tolist()


def mean_payload_bytes(count: int) -> float:
    """Mean size of a stored pattern's payload as JSON."""
    return sum(len(json.dumps(one.payload)) for one in records([[]] * count)) / count


def recall(number: int, *, bare: bool, rerank: bool = False) -> bytes:
    """A recall of patterns, narrowed by language and success rate. The bare one cannot rerank."""
    query, language = sentence(number), LANGUAGES[number % len(LANGUAGES)]
    if bare:
        asked = {"query": query, "language": language, "min_success_rate": MIN_SUCCESS_RATE}
        return json.dumps(asked).encode()
    return pattern_service_pb2.RecallPatternsRequest(
        query=query,
        filter=pattern_pb2.PatternFilter(languages=[language], min_success_rate=MIN_SUCCESS_RATE),
        rerank=rerank,
    ).SerializeToString()


SHARES = {"all": "no filter", "eighth": "1 in 8 match", "few": "1 in 124 match"}
"""Filters of ``recall_among``, and how many patterns match each."""


def recall_among(number: int, share: str) -> bytes:
    """A recall with the filter that one of ``SHARES`` names."""
    if share == "eighth":
        return recall(number, bare=False)
    chosen = pattern_pb2.PatternFilter()
    if share == "few":
        chosen.languages.append(LANGUAGES[number % len(LANGUAGES)])
        chosen.tags_any.append(f"area-{number % 31}")
    request = pattern_service_pb2.RecallPatternsRequest(query=sentence(number), filter=chosen)
    return request.SerializeToString()


def save(number: int, *, bare: bool) -> bytes:
    """A pattern to save."""
    if bare:
        return json.dumps(_bare_items([number])).encode()
    return pattern_service_pb2.SavePatternRequest(pattern=_pattern(number)).SerializeToString()


def save_batch(number: int, size: int, *, bare: bool) -> bytes:
    """``size`` patterns to save at once."""
    numbers = range(number * size, (number + 1) * size)
    if bare:
        return json.dumps(_bare_items(numbers)).encode()
    items = [pattern_service_pb2.SavePatternItem(pattern=_pattern(n)) for n in numbers]
    return pattern_service_pb2.BatchSavePatternsRequest(items=items).SerializeToString()


def _bare_items(numbers: Any) -> list[dict[str, Any]]:
    """The text to embed, the point, and the payload that the real server would write."""
    items = []
    for number in numbers:
        pattern = Pattern(NAMESPACE, f"b-{number}", content(number), OutcomeStats(), 1, 1, 1)
        record = pattern_record(pattern, 1, {})
        payload = {**record.payload, "namespace": NAMESPACE}
        text = search_text(pattern.content).whole
        items.append({"text": text, "id": record.id, "payload": payload})
    return items


def _pattern(number: int) -> pattern_pb2.Pattern:
    given = content(number)
    actions = []
    for action in given.actions:
        args = Struct()
        args.update(action.args)
        actions.append(pattern_pb2.Action(tool=action.tool, args=args, note=action.note))
    return pattern_pb2.Pattern(
        task=given.task,
        context=given.context,
        actions=actions,
        language=given.language,
        category=given.category,
        task_type=given.task_type,
        approach=given.approach,
        tools=given.tools,
        tags=given.tags,
    )


# --- outcomes ---------------------------------------------------------------------------------


def _outcome(number: int) -> Outcome:
    return Outcome.SUCCESS if number % 3 else Outcome.FAILURE


def outcome(number: int, pattern_id: str, retrieval_id: str, request_id: str) -> bytes:
    """The outcome of a recalled pattern."""
    worked = outcome_pb2.Outcome.Value(f"OUTCOME_{_outcome(number).upper()}")
    return pattern_service_pb2.RecordOutcomeRequest(
        pattern_ids=[pattern_id],
        retrieval_id=retrieval_id,
        outcome=worked,
        request_id=request_id,
    ).SerializeToString()


def bare_outcome(number: int, pattern: dict[str, Any], query: str) -> bytes:
    """The same outcome as the three points that the real server would write."""
    now = 1_700_000_000_000_000 + number
    recorded = RecordedOutcome(
        NAMESPACE,
        f"o-{number:016d}",
        ResourceRef(ResourceKind.PATTERN, pattern["pattern_id"]),
        _outcome(number),
        now,
        query=query,
        retrieval_id=f"r-{number:016d}",
    )
    row = outcome_record(recorded, now)
    counted = outcomes_from_payload(pattern).record(_outcome(number), now)
    changed = {
        **outcomes_payload(counted),
        STATS_REVISION: 1,
        PENDING: [row.id],
        "writer_id": f"w-{0:016d}",
        "change_seq": now,
    }
    point = context_stats_point(NAMESPACE, recorded.resource, query)
    first = ContextStats().record(recorded.value, now, Fading())
    stats = context_stats_record(
        NAMESPACE, point, recorded.resource, query, (), first, [row.id], now
    )
    pattern_id = recorded.resource_point
    return json.dumps(
        {
            "outcome": {"id": row.id, "payload": {**row.payload, "namespace": NAMESPACE}},
            "pattern": {"id": pattern_id, "payload": changed},
            "context_stats": {"id": point, "payload": {**stats.payload, "namespace": NAMESPACE}},
        }
    ).encode()


# --- events -----------------------------------------------------------------------------------


def _event_data(number: int) -> Struct:
    data = Struct()
    data.update(
        {
            "tool": ("shell", "editor", "browser")[number % 3],
            "arguments": sentence(number),
            "ok": number % 11 != 0,
            "seconds": number % 50 / 10,
        }
    )
    return data


def event(sequence: int) -> episode_pb2.EpisodeEvent:
    """An event as an agent sends it."""
    return episode_pb2.EpisodeEvent(
        sequence=sequence,
        event_type="tool_call",
        agent_role="worker",
        data=_event_data(sequence),
    )


def event_batches(count: int, size: int = BATCH_OF_EVENTS) -> list[bytes]:
    """The messages of a stream after its first, with ``count`` events in all, ``size`` in each."""
    return [
        episode_service_pb2.RecordEventsRequest(
            events=map(event, range(start, min(start + size, count + 1)))
        ).SerializeToString()
        for start in range(1, count + 1, size)
    ]


def event_rows(episode_id: str, count: int, *, packed: bool) -> list[tuple[str, dict[str, Any]]]:
    """The same events as points.

    ``packed``: as the real server stores them. Else with a key for each field, a hash and an epoch,
    as it once stored them, so that results stay comparable with earlier ones.
    """
    given = [
        EpisodeEvent(
            sequence,
            "tool_call",
            "worker",
            _event_data(sequence).SerializeToString(deterministic=True),
            record_time=1_700_000_000_000_000 + sequence,
        )
        for sequence in range(1, count + 1)
    ]
    records = event_records(NAMESPACE, episode_id, given, epoch=1)
    if packed:
        return [(one.id, {**one.payload, "namespace": NAMESPACE}) for one in records]
    return [
        (
            record.id,
            {
                "namespace": NAMESPACE,
                "episode_id": episode_id,
                "sequence": event.sequence,
                "event_type": event.event_type,
                "agent_role": event.agent_role,
                "record_time": event.record_time,
                "epoch": 1,
                "hash": event_hash(event),
                "data": b64encode(event.data or b"").decode(),
            },
        )
        for record, event in zip(records, given, strict=True)
    ]
