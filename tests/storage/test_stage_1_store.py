"""The store that stage 1 left behind opens, and everything in it is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lot_grpc.domain.episode import EpisodeStatus
from lot_grpc.domain.query import EpisodeFilter, Legs, MemoryFilter, PatternFilter
from lot_grpc.embedding.hashing import HashingEmbedder
from lot_grpc.lexical.bm25 import TOKENIZER
from lot_grpc.services.backfill import bring_up_to_date, needs_backfill
from lot_grpc.services.build import Services
from lot_grpc.services.patterns.drafts import PatternDraft
from lot_grpc.services.recall.targets import (
    RecallOptions,
    episode_request,
    memory_request,
    pattern_request,
)
from lot_grpc.services.store_contract import contract_row
from lot_grpc.storage.faults import FaultInjectingStore
from tests.contract.clock import FixedClock
from tests.fixtures.archive import unpack
from tests.fixtures.stage_1 import ARCHIVE, END, EVENTS, LOGIN, NS, RENAME, open_services


async def test_a_store_of_stage_1_opens_with_everything_in_it(tmp_path: Path) -> None:
    unpack(ARCHIVE, tmp_path)
    clock = FixedClock()
    clock.advance(3600)
    store, services = await open_services(tmp_path, clock)
    try:
        assert await bring_up_to_date(store, HashingEmbedder()) == 5
        await services.housekeeping.roll_forward(starting=True)
        login = await services.patterns.get(NS, "login")
        assert login.content == LOGIN
        assert (login.outcomes.success_count, login.outcomes.failure_count) == (1, 1)
        assert login.outcomes.partial_count == 1
        page = await services.patterns.list_page(NS, PatternFilter(), 10, None)
        assert [p.content.task for p in page.patterns] == ["Rename a branch", LOGIN.task]
        assert page.patterns[0].outcomes.usage_count == 1
        question = pattern_request(
            RecallOptions("Log in to the admin panel", 5), PatternFilter(languages=("py",))
        )
        [hit] = (await services.pattern_recall.find(NS, question)).hits
        assert hit.thing.pattern_id == "login"

        running = await services.episodes.get(NS, "running")
        assert (running.status, running.event_count) == (EpisodeStatus.RUNNING, 3)
        ended = await services.episodes.get(NS, "ended")
        assert ended.end is not None
        assert (ended.end.summary, ended.end.metrics) == (END.summary, END.metrics)
        events = (await services.episodes.list_events(NS, "ended", 0, 10)).events
        assert [event.sequence for event in events] == [event.sequence for event in EVENTS]
        succeeded = EpisodeFilter(statuses=(EpisodeStatus.SUCCEEDED,))
        found = await services.episodes.list_page(NS, succeeded, 10, None)
        assert [episode.episode_id for episode in found.episodes] == ["ended"]
        assert (await services.memories.get(NS, "panel")).content.content == "The panel's code"

        again = await services.pattern_writer.save(NS, PatternDraft(RENAME))
        assert not again.created
        assert again.pattern.outcomes.usage_count == 2
    finally:
        await store.close()


async def by_words(services: Services, query: str) -> list[str]:
    question = pattern_request(RecallOptions(query, 5, legs=Legs.BM25), PatternFilter())
    return [hit.thing.pattern_id for hit in (await services.pattern_recall.find(NS, question)).hits]


async def test_a_store_of_stage_1_is_searched_by_words_once_it_is_up_to_date(
    tmp_path: Path,
) -> None:
    unpack(ARCHIVE, tmp_path)
    store, services = await open_services(tmp_path, FixedClock())
    try:
        assert await needs_backfill(store)
        assert (await contract_row(store))["embedding"]["tokenizer"] == ""
        assert await by_words(services, "panel") == []
        assert await bring_up_to_date(store, HashingEmbedder()) == 5
        assert await by_words(services, "panel") == ["login"]
        assert (await contract_row(store))["embedding"]["tokenizer"] == TOKENIZER
        requested = RecallOptions("log in", 5, legs=Legs.BM25)
        episodes = episode_request(requested, EpisodeFilter(), success_only=False)
        answer = await services.episode_recall.find(NS, episodes)
        assert {hit.thing.episode_id for hit in answer.hits} == {"running", "ended"}
        memories = memory_request(replace(requested, query="code"), MemoryFilter())
        [hit] = (await services.memory_recall.find(NS, memories)).hits
        assert hit.thing.memory_id == "panel"
    finally:
        await store.close()

    counting, services = await open_services(tmp_path, FixedClock())
    again = FaultInjectingStore(counting)
    try:
        assert not await needs_backfill(again)
        assert await bring_up_to_date(again, HashingEmbedder()) == 0
        assert again.writes == []
        assert await by_words(services, "panel") == ["login"]
    finally:
        await counting.close()
