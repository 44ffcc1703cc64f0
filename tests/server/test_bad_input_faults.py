"""Callers that leave, stores that fail, too much at once: nothing acknowledged is lost, no half."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc.aio
import pytest

from lot_grpc.domain.errors import StorageFullError, StoreUnavailableError
from lot_grpc.server.limits import Limits
from lot_grpc.services.records.collections import EVENTS, PATTERNS, SELECTIONS
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.server.examples import EXAMPLES, prepare
from tests.server.service import Lot, serving
from tests.server.test_episodes_stream import PB, Stream, events
from tests.server.wire import failure, until

WRITES = ("insert", "put", "replace", "update", "delete")


class HeldStore(InMemoryStore):
    """Holds writes while the gate is closed, or fails them; reads go on."""

    def __init__(self, clock: FixedClock) -> None:
        super().__init__(clock)
        self.gate = asyncio.Event()
        self.gate.set()
        self.held = 0
        self.error: Exception | None = None
        self.skip = 0
        """Writes to let through before one is held."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in WRITES:
            return found

        async def write(*args: Any, **options: Any) -> Any:
            if self.error is not None:
                raise self.error
            if not self.gate.is_set() and self.skip:
                self.skip -= 1
            elif not self.gate.is_set():
                self.held += 1
                await self.gate.wait()
            return await found(*args, **options)

        return write

    def hold(self, *, after: int = 0) -> None:
        self.held, self.skip = 0, after
        self.gate.clear()


def held_service(**limits: Any) -> tuple[HeldStore, Any]:
    clock = FixedClock()
    store = HeldStore(clock)
    return store, serving(store, clock=clock, limits=Limits(**limits))


async def settled(lot: Lot) -> None:
    """Until nothing is carried out any more, callers or not."""
    server = lot.server
    assert server is not None
    await until(lambda: server.calls_in_flight == 0)


# --- callers that leave in the middle of a write ----------------------------------------------


async def _new_patterns(lot: Lot) -> list[str]:
    answer = await lot.patterns.ListPatterns(filter={"tags_any": ["new"]})
    return sorted(pattern.task for pattern in answer.patterns)


async def _new_episodes(lot: Lot) -> list[tuple[str, int, int]]:
    answer = await lot.episodes.ListEpisodes(filter={"tags_any": ["new"]})
    return [(e.task, e.event_count, len(await _events(lot, e.episode_id))) for e in answer.episodes]


async def _events(lot: Lot, episode_id: str = "e") -> list[int]:
    answer = await lot.episodes.ListEpisodeEvents(episode_id=episode_id)
    return [event.sequence for event in answer.events]


async def _patterns(lot: Lot) -> list[tuple[str, str, int]]:
    answer = await lot.patterns.ListPatterns()
    return [(p.task, p.title, p.outcomes.usage_count) for p in answer.patterns]


async def _like_patterns(lot: Lot) -> None:
    for n in range(3):
        await lot.patterns.SavePattern(pattern={"task": f"buy {n} books"}, pattern_id=f"like-{n}")


async def _groups(lot: Lot) -> tuple[list[str], int]:
    """The templates, and how many patterns are marked as members."""
    answer = await lot.patterns.ListPatterns(filter={"kinds": [4]})
    heads = {pattern.pattern_id: pattern.task for pattern in answer.patterns}
    all_of_them = (await lot.patterns.ListPatterns(page_size=100)).patterns
    return sorted(heads.values()), sum(p.parent_pattern_id in heads for p in all_of_them)


async def _status(lot: Lot) -> int:
    return int((await lot.episodes.GetEpisode(episode_id="e")).episode.status)


async def _episodes(lot: Lot) -> list[str]:
    return [episode.episode_id for episode in (await lot.episodes.ListEpisodes()).episodes]


async def _confidences(lot: Lot) -> list[float]:
    return [pattern.confidence for pattern in (await lot.patterns.ListPatterns()).patterns]


async def _max_patterns(lot: Lot) -> int:
    return int((await lot.admin.GetNamespacePolicy()).policy.max_patterns)


async def _reviews(lot: Lot) -> Any:
    return [one.review.state for one in (await lot.memories.ListMemories()).memories]


async def _memories(lot: Lot) -> list[str]:
    answer = await lot.memories.SearchMemories(query="c")
    return sorted(hit.memory.content for hit in answer.hits)


async def _decisions(lot: Lot) -> list[tuple[str, int]]:
    answer = await lot.learning.ListDecisions()
    return [(decision.context, decision.outcome) for decision in answer.decisions]


async def _learning_events(lot: Lot) -> list[str]:
    answer = await lot.learning.ListLearningEvents()
    return [event.event_type for event in answer.learning_events]


async def _visits(lot: Lot) -> list[int]:
    answer = await lot.learning.ListActionValues(state={"task_type": "t"})
    return [value.visit_count for value in answer.action_values]


async def _selections(lot: Lot) -> int:
    assert lot.own_services is not None
    return int(await lot.own_services.learning.selections._store.count(SELECTIONS, lot.namespace))


async def _error_solutions(lot: Lot) -> list[str]:
    answer = await lot.memories.ListErrorSolutions()
    return sorted(one.error_message for one in answer.error_solutions)


async def _uses_of_solutions(lot: Lot) -> list[int]:
    answer = await lot.memories.ListErrorSolutions()
    return sorted(one.outcomes.usage_count for one in answer.error_solutions)


async def _preferences(lot: Lot) -> list[tuple[str, int]]:
    answer = await lot.memories.ListPreferences()
    return [(one.value.string_value, one.revision) for one in answer.preferences]


async def _session(lot: Lot) -> tuple[list[str], list[int]] | None:
    """The keys and the sequences; None where there is no session."""
    try:
        session = (await lot.memories.GetSession(session_id="c")).session
    except grpc.aio.AioRpcError:
        return None
    return sorted(session.values), [message.sequence for message in session.messages]


async def _seeded(lot: Lot) -> int:
    answer = await lot.memories.SearchMemories(
        query="c", filter={"labels": {"seed": "best_practices"}}, limit=100
    )
    return len(answer.hits)


async def _pieces(lot: Lot) -> list[str]:
    answer = await lot.patterns.ListPatterns(filter={"kinds": ["PATTERN_KIND_CODE"]})
    return [pattern.title for pattern in answer.patterns]


async def _an_ended_episode(lot: Lot) -> None:
    await lot.episodes.RecordEpisode(episode={"task": "t", "task_type": "x", "status": 2})


async def _somebody(lot: Lot) -> None:
    for content in ("one", "two"):
        await lot.memories.CreateMemory(memory={"content": content, "labels": {"subject": "s"}})


async def _memories_of_somebody(lot: Lot) -> int:
    found = await lot.memories.ListMemories(filter={"labels": {"subject": "s"}})
    return len(found.memories)


WRITING: dict[str, tuple[Callable[[Lot], Awaitable[Any]], Any, Any]] = {
    "SavePattern": (_new_patterns, [], ["a new one"]),
    "BatchSavePatterns": (_new_patterns, [], ["a new one", "other"]),
    "UpdatePattern": (_patterns, [("t", "", 1)], [("edited", "edited", 1)]),
    "RecordOutcome": (_patterns, [("t", "", 1)], [("t", "", 2)]),
    "CorrectOutcome": (_patterns, [("t", "", 1)], [("t", "", 0)]),
    "DeletePattern": (_patterns, [("t", "", 1)], []),
    "ExtractPatterns": (
        _patterns,
        [("t", "", 1)],
        [('Carry out x tasks, such as "t".', "", 0), ("t", "", 1)],
    ),
    "DistillPatterns": (_groups, ([], 0), (["buy {number} books"], 3)),
    "StartEpisode": (_new_episodes, [], [("a new one", 0, 0)]),
    "RecordEpisode": (_new_episodes, [], [("a new one", 3, 3)]),
    "RecordEvent": (_events, [], [1]),
    "EndEpisode": (_status, 1, 2),
    "CreateMemory": (_memories, ["c"], ["c", "c2"]),
    "BatchCreateMemories": (_memories, ["c"], ["c", "c2", "c3"]),
    "UpdateMemory": (_memories, ["c"], ["edited"]),
    "ReviewRecords": (_reviews, [0], [2]),
    "DeleteMemories": (_memories, ["c"], []),
    "DeleteMemory": (_memories, ["c"], []),
    "ClearNamespace": (_memories, ["c"], []),
    "DeleteEpisode": (_episodes, ["e"], []),
    "RecordPatternFeedback": (_confidences, [0.5], [0.6]),
    "PrunePatterns": (_confidences, [0.5], []),
    "UpdateNamespacePolicy": (_max_patterns, 0, 9),
    "RecordDecision": (_decisions, [("c", 0)], [("a new one", 0), ("c", 0)]),
    "RecordDecisionOutcome": (_decisions, [("c", 0)], [("c", 1)]),
    "DeleteDecision": (_decisions, [("c", 0)], []),
    "RecordLearningEvent": (_learning_events, ["before"], ["x", "before"]),
    "DeleteLearningEvent": (_learning_events, ["before"], []),
    "RecordSteps": (_visits, [], [1]),
    "SelectAction": (_selections, 0, 1),
    "SubmitFeedback": (_learning_events, ["before"], ["user_feedback", "before"]),
    "SaveErrorSolution": (_error_solutions, ["f", "g"], ["f", "f2", "g"]),
    "UpdateErrorSolution": (_error_solutions, ["f", "g"], ["edited", "f"]),
    "DeleteErrorSolution": (_error_solutions, ["f", "g"], ["g"]),
    "RecordErrorSolutionOutcome": (_uses_of_solutions, [0, 0], [0, 1]),
    "PutPreference": (_preferences, [("", 1)], [("v", 2)]),
    "DeletePreference": (_preferences, [("", 1)], []),
    "PutSessionValue": (_session, (["k"], []), (["k", "k2"], [])),
    "AppendSessionMessage": (_session, (["k"], []), (["k"], [1])),
    "ClearSession": (_session, (["k"], []), None),
    "EraseSubject": (_memories_of_somebody, 2, 0),
    "SeedKnowledge": (_seeded, 0, 12),
    "ExtractPatternsFromCode": (_pieces, [], ["f"]),
}
"""What shows whether each write was carried out: how to look, and what is seen before and after."""

BEFORE: dict[str, Callable[[Lot], Awaitable[None]]] = {
    "DistillPatterns": _like_patterns,
    "EraseSubject": _somebody,
    "ExtractPatterns": _an_ended_episode,
}
"""What a write needs beside what is prepared for all."""

NEW = {"task": "a new one", "tags": ["new"]}
ASKS: dict[str, dict[str, Any]] = {
    "SavePattern": {"pattern": NEW},
    "BatchSavePatterns": {"items": [{"pattern": NEW}, {"pattern": NEW | {"task": "other"}}]},
    "UpdatePattern": {"pattern_id": "p", "pattern": {"task": "edited", "title": "edited"}},
    "ExtractPatterns": {"min_samples": 1},
    "DistillPatterns": {"similarity": 0.5},
    "StartEpisode": {"episode": NEW},
    "RecordEpisode": {"episode": NEW | {"status": 2}, "events": [{"event_type": "x"}] * 3},
    "CreateMemory": {"memory": {"content": "c2"}, "memory_id": "m2"},
    "BatchCreateMemories": {
        "items": [{"memory": {"content": "c2"}}, {"memory": {"content": "c3"}}]
    },
    "UpdateMemory": {"memory_id": "m", "memory": {"content": "edited"}},
    "DeleteMemories": {"filter": {"max_importance": 1}},
    "PrunePatterns": {"max_success_rate": 1},
    "RecordDecision": {"decision": {"context": "a new one", "chosen_option": "o"}},
    "SeedKnowledge": {"packs": ["best_practices"]},
    "SaveErrorSolution": {"error_solution": {"error_message": "f2", "resolution": "r"}},
    "UpdateErrorSolution": {
        "error_solution_id": "u",
        "error_solution": {"error_message": "edited"},
    },
    "PutSessionValue": {"session_id": "c", "key": "k2", "value": {"bool_value": True}},
}


async def prepared(lot: Lot, method: str) -> None:
    await prepare(lot)
    if before := BEFORE.get(method):
        await before(lot)


def service_of(method: str) -> str:
    [name] = [rpc for rpc in EXAMPLES if rpc.endswith(f".{method}")]
    return {
        "PatternService": "patterns",
        "EpisodeService": "episodes",
        "MemoryService": "memories",
        "AdminService": "admin",
        "LearningService": "learning",
    }[name.partition(".")[0]]


def ask(lot: Lot, method: str, **more: Any) -> Any:
    [name] = [rpc for rpc in EXAMPLES if rpc.endswith(f".{method}")]
    fields = ASKS.get(method, EXAMPLES[name])
    if method == "ClearNamespace":
        more["confirm_namespace"] = lot.namespace
    return getattr(getattr(lot, service_of(method)), method)(**fields, **more)


def test_every_unary_write_is_tried():
    from lot_grpc.server.call import Method
    from tests.server.examples import method_of

    writes = {
        rpc.partition(".")[2]
        for rpc in EXAMPLES
        if (method := Method.of(method_of(rpc))).writes and not method.streaming
    }
    assert set(WRITING) == writes - {"Compact"}


@pytest.mark.parametrize(
    ("how", "after"), [("cancel", 0), ("cancel", 1), ("cancel", 2), ("deadline", 1)]
)
@pytest.mark.parametrize("method", sorted(WRITING))
async def test_a_write_whose_caller_leaves_is_carried_out_whole(method, how, after):
    look, nothing, all_of_it = WRITING[method]
    store, service = held_service()
    async with service as lot:
        await prepared(lot, method)
        assert await look(lot) == nothing
        store.hold(after=after)
        for seconds in (0.05, 0.5, 5) if how == "deadline" else (30,):
            call = asyncio.ensure_future(_awaited(ask(lot, method, timeout=seconds)))
            await until(lambda call=call: store.held or call.done())
            if store.held or store.skip < after:
                break  # else the machine is busy, and the deadline passed before it was begun
        if how == "cancel":
            call.cancel()
        await asyncio.wait([call])
        store.gate.set()
        await settled(lot)
        assert await look(lot) == all_of_it


@pytest.mark.parametrize(
    "method",
    [
        "SavePattern", "RecordOutcome", "RecordEvent", "CreateMemory", "StartEpisode",
        "PutPreference", "AppendSessionMessage",
    ],
)  # fmt: skip
async def test_a_retry_of_what_the_caller_gave_up_counts_once(method):
    store, service = held_service()
    async with service as lot:
        await prepare(lot)
        store.hold(after=1)
        failed = await _code(ask(lot, method, request_id="r", timeout=0.1))
        assert failed == "DEADLINE_EXCEEDED"
        retry = asyncio.ensure_future(_awaited(ask(lot, method, request_id="r")))
        await asyncio.sleep(0.02)
        store.gate.set()
        first = await retry
        await settled(lot)
        again = await ask(lot, method, request_id="r")
        if method == "RecordOutcome":
            assert again.patterns[0].outcomes.usage_count == 2  # one was there
        elif method == "RecordEvent":
            assert again == first
            assert await _events(lot) == [1]
        elif method == "PutPreference":
            assert again == first
            assert again.preference.revision == 2  # one was there
        elif method == "AppendSessionMessage":
            assert again == first
            assert await _session(lot) == (["k"], [1])
        else:
            [resource_kind] = {"pattern", "memory", "episode"} & set(
                again.DESCRIPTOR.fields_by_name
            )
            ids = {
                getattr(getattr(one, resource_kind), f"{resource_kind}_id")
                for one in (first, again)
            }
            assert len(ids) == 1


async def _awaited(call: Any) -> Any:
    return await call


async def _code(call: Any) -> str:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return str(error.code().name)
    return "OK"


async def test_a_batch_of_events_whose_caller_leaves_is_stored_whole():
    store, service = held_service()
    async with service as lot:
        await prepare(lot)
        stream = Stream(lot)
        await stream.open()
        store.hold()
        await stream.call.write(PB.RecordEventsRequest(events=events(range(1, 51))))
        await until(lambda: store.held)
        stream.call.cancel()
        store.gate.set()
        await settled(lot)
        answer = await Stream(lot).open()
        assert answer.last_sequence == 50


# --- stores that fail -------------------------------------------------------------------------


@pytest.mark.parametrize("method", sorted(WRITING))
async def test_a_full_disk_refuses_writes_with_a_reason_while_reads_go_on(method):
    store, service = held_service()
    async with service as lot:
        await prepared(lot, method)
        look, nothing, all_of_it = WRITING[method]
        store.error = StorageFullError(100 * 2**20, 400 * 2**20, "/data")
        failed = await failure(ask(lot, method))
        assert (failed.code, failed.reason) == ("RESOURCE_EXHAUSTED", "STORAGE_FULL")
        assert failed.metadata == {"free_bytes": "104857600", "min_free_bytes": "419430400"}
        assert "/data" not in failed.message
        assert await look(lot) == nothing
        assert (await lot.patterns.RecallPatterns(query="t")).hits
        store.error = None
        await ask(lot, method)
        assert await look(lot) == all_of_it


async def test_a_stream_on_a_full_disk_is_told_and_can_go_on_later():
    store, service = held_service()
    async with service as lot:
        await prepare(lot)
        stream = Stream(lot)
        await stream.open(events=events([1]))
        store.error = StorageFullError(1, 2, "/data")
        failed = await failure(stream.send([2]))
        assert failed.reason == "STORAGE_FULL"
        store.error = None
        again = Stream(lot)
        assert (await again.open()).last_sequence == 1
        assert (await again.send([2])).last_sequence == 2


async def test_a_store_that_is_away_is_told_without_its_cause():
    store, service = held_service()
    async with service as lot:
        await prepare(lot)
        error = StoreUnavailableError("the store did not answer; try again in a moment")
        error.__cause__ = OSError("secret-host:6333 refused")
        store.error = error
        failed = await failure(lot.patterns.SavePattern(pattern={"task": "new"}))
        assert (failed.code, failed.reason) == ("UNAVAILABLE", "STORE_UNAVAILABLE")
        assert failed.details["RetryInfo"].retry_delay.seconds == 1
        assert "secret-host" not in str(failed)


async def test_a_bug_shows_a_call_id_and_the_server_lives_on():
    store, service = held_service()
    async with service as lot:
        store.error = KeyError("secret")
        failed = await failure(lot.patterns.SavePattern(pattern={"task": "new"}))
        assert (failed.code, failed.reason) == ("INTERNAL", "INTERNAL")
        assert failed.metadata == {"call_id": failed.call_id}
        assert "secret" not in str(failed)
        store.error = None
        assert (await lot.patterns.SavePattern(pattern={"task": "new"})).created


# --- too much, too long -----------------------------------------------------------------------


async def test_one_call_too_many_is_refused_and_nothing_of_it_done():
    store, service = held_service(max_concurrent_calls=2)
    async with service as lot:
        await prepare(lot)
        store.hold()
        running = [
            asyncio.ensure_future(_awaited(lot.patterns.SavePattern(pattern={"task": f"t{n}"})))
            for n in range(2)
        ]
        await until(lambda: store.held == 2)
        failed = await failure(lot.patterns.SavePattern(pattern={"task": "too much"}))
        assert (failed.code, failed.reason) == ("RESOURCE_EXHAUSTED", "OVERLOADED")
        assert failed.metadata == {"limit": "2"}
        assert "RetryInfo" in failed.details
        store.gate.set()
        assert [(await call).created for call in running] == [True, True]
        assert (await lot.patterns.SavePattern(pattern={"task": "too much"})).created


async def test_one_stream_too_many_is_refused():
    async with serving(limits=Limits(max_streams=1)) as lot:
        await prepare(lot)
        first = Stream(lot)
        await first.open()
        failed = await Stream(lot).ended()  # a write on its way may hide the status (grpc#36066)
        assert (failed.reason, failed.metadata) == ("OVERLOADED", {"limit": "1"})
        assert (await first.send([1])).last_sequence == 1


async def test_a_call_over_the_servers_time_may_be_repeated_with_its_request_id():
    store, service = held_service(max_call_seconds=0.1)
    async with service as lot:
        await prepare(lot)
        store.hold(after=1)
        failed = await failure(lot.patterns.SavePattern(pattern=NEW, request_id="r"))
        assert (failed.code, failed.reason) == ("DEADLINE_EXCEEDED", "CALL_TIMEOUT")
        assert failed.metadata == {"limit_seconds": "0.1"}
        store.gate.set()
        await settled(lot)
        assert (await lot.patterns.SavePattern(pattern=NEW, request_id="r")).created
        assert await _new_patterns(lot) == ["a new one"]


async def test_a_limit_of_no_seconds_is_no_limit():
    store, service = held_service(max_call_seconds=0)
    async with service as lot:
        await prepare(lot)
        store.hold()
        call = asyncio.ensure_future(_awaited(lot.patterns.SavePattern(pattern=NEW)))
        await until(lambda: store.held or call.done())
        await asyncio.sleep(0.02)
        assert not call.done()
        store.gate.set()
        assert (await call).created
        assert not (await lot.admin.GetServerInfo()).limits.HasField("max_call_duration")


async def test_a_message_over_the_limit_is_refused_and_the_next_is_taken(lot):
    for rpc in (lot.patterns.SavePattern, lot.patterns.SavePattern):
        code = await _code(rpc(pattern={"task": "x" * (17 * 2**20)}))
        assert code == "RESOURCE_EXHAUSTED"
    assert (await lot.patterns.SavePattern(pattern={"task": "t"})).created


async def test_the_store_was_really_held():
    """The double itself: without it the tests above would prove nothing."""
    store, service = held_service()
    async with service as lot:
        store.hold()
        call = asyncio.ensure_future(_awaited(lot.patterns.SavePattern(pattern=NEW)))
        await until(lambda: store.held)
        assert not call.done()
        assert await InMemoryStore.count(store, PATTERNS, lot.namespace) == 0
        assert await InMemoryStore.count(store, EVENTS, lot.namespace) == 0
        store.gate.set()
        await call
        assert await InMemoryStore.count(store, PATTERNS, lot.namespace) == 1
