"""What must hold after a crash: for what was acknowledged, and for what was in doubt."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from lot_grpc.clock import SystemClock
from lot_grpc.services.records.collections import (
    EPISODES,
    EVENTS,
    OUTCOMES,
    PATTERNS,
)
from lot_grpc.services.resources import REGISTRY
from lot_grpc.storage.edge import EdgeStore
from tests.e2e.crash_clients import HOT, Book, Round, event
from tests.server.service import Lot
from tests.server.test_episodes_stream import Stream


async def check(lot: Lot, round_: Round) -> None:
    """All that was acknowledged is there, once; then the rest is sent again, and is there, once."""
    await _check(lot, round_, settled=False)
    await resend(lot, round_)
    await _check(lot, round_, settled=True)


async def resend(lot: Lot, round_: Round) -> None:
    """What any client does after a crash: repeat what it had no answer to."""
    for book, call in (
        (round_.patterns, lot.patterns.SavePattern),
        (round_.repeats, lot.patterns.SavePattern),
        (round_.outcomes, lot.patterns.RecordOutcome),
        (round_.events, lot.episodes.RecordEvent),
        (round_.memories, lot.memories.CreateMemory),
        (round_.episodes, lot.episodes.RecordEpisode),
    ):
        for request_id in book.doubt:
            await book.ask(call, request_id, **book.sent[request_id])
    for name, (sent, acked) in round_.streams.items():
        stream = Stream(lot)
        last = (await stream.open(name)).last_sequence
        assert acked <= last <= sent, f"{name}: {last} stored, {acked} acknowledged, {sent} sent"
        if last < sent:
            rest = [event(name, number) for number in range(last + 1, sent + 1)]
            assert (await stream.send(events=rest)).last_sequence == sent
        await stream.close()
        round_.streams[name] = (sent, sent)


async def _check(lot: Lot, round_: Round, *, settled: bool) -> None:
    patterns = {p.pattern_id: p for p in await _all_patterns(lot)}
    _check_patterns(round_, patterns, settled=settled)
    _check_counters(round_, patterns, settled=settled)
    await _check_events(lot, round_, settled=settled)
    await _check_memories(lot, round_, settled=settled)
    await _check_episodes(lot, round_, settled=settled)


async def _all_patterns(lot: Lot) -> list[Any]:
    found: list[Any] = []
    token = ""
    while True:
        page = await lot.patterns.ListPatterns(page_size=1000, page_token=token)
        found += page.patterns
        token = page.next_page_token
        if not token:
            return found


def _within(acked: int, count: int, book: Book, *, settled: bool) -> None:
    """Between what was acknowledged and what was sent; once all is settled, what was sent."""
    assert acked <= count <= len(book.sent)
    assert not settled or count == len(book.sent)


def _check_patterns(round_: Round, patterns: dict[str, Any], *, settled: bool) -> None:
    book = round_.patterns
    tasks = Counter(pattern.task for pattern in patterns.values())
    assert max(tasks.values()) == 1, f"stored twice: {tasks.most_common(3)}"
    for answer in book.acked.values():
        stored = patterns[answer.pattern.pattern_id]
        assert stored == answer.pattern
    mine = [task for task in tasks if task.startswith("task of ")]
    assert set(mine) <= {ask["pattern"]["task"] for ask in book.sent.values()}
    _within(len(book.acked), len(mine), book, settled=settled)
    assert not set(round_.deletes.acked) & set(patterns), "what was deleted is back"


def _check_counters(round_: Round, patterns: dict[str, Any], *, settled: bool) -> None:
    for name in HOT:
        told = patterns[name].outcomes
        acked = sum(name in round_.outcomes.sent[r]["pattern_ids"] for r in round_.outcomes.acked)
        sent = [ask for ask in round_.outcomes.sent.values() if name in ask["pattern_ids"]]
        parts = told.success_count + told.failure_count + told.partial_count
        assert acked <= told.usage_count == parts <= len(sent)
        if settled:
            assert told.usage_count == len(sent)
            kinds = Counter(ask["outcome"] for ask in sent)
            counts = {1: told.success_count, 2: told.failure_count, 3: told.partial_count}
            assert counts == {kind: kinds[kind] for kind in counts}
    [repeated] = [p for p in patterns.values() if p.task == "saved again and again"]
    count = repeated.outcomes.usage_count
    _within(len(round_.repeats.acked), count, round_.repeats, settled=settled)


async def _events(lot: Lot, episode_id: str) -> list[Any]:
    found: list[Any] = []
    while True:
        page = await lot.episodes.ListEpisodeEvents(
            episode_id=episode_id, page_size=1000, after_sequence=len(found)
        )
        found += page.events
        if not page.next_page_token:
            assert [each.sequence for each in found] == list(range(1, len(found) + 1))
            return found


async def _check_events(lot: Lot, round_: Round, *, settled: bool) -> None:
    for name, (sent, acked) in round_.streams.items():
        stored = await _events(lot, name)
        assert acked <= len(stored) <= sent
        assert not settled or len(stored) == sent
        for each in stored:
            assert each.event_type == f"{name}/{each.sequence}"
            assert each.data["n"] == each.sequence
    stored = await _events(lot, "unary")
    assert len({each.event_type for each in stored}) == len(stored), "an event is stored twice"
    for answer in round_.events.acked.values():
        assert stored[answer.event.sequence - 1] == answer.event
    _within(len(round_.events.acked), len(stored), round_.events, settled=settled)


async def _check_memories(lot: Lot, round_: Round, *, settled: bool) -> None:
    book = round_.memories
    for answer in book.acked.values():
        stored = await lot.memories.GetMemory(memory_id=answer.memory.memory_id)
        assert stored.memory == answer.memory
    found = await lot.memories.SearchMemories(query="content", explain=True)
    count = found.explanation.namespace_count
    _within(len(book.acked), count, book, settled=settled)


async def _check_episodes(lot: Lot, round_: Round, *, settled: bool) -> None:
    book = round_.episodes
    for request_id, answer in book.acked.items():
        episode_id = answer.episode.episode_id
        stored = await lot.episodes.GetEpisode(episode_id=episode_id)
        assert stored.episode == answer.episode
        events = await _events(lot, episode_id)
        wanted = len(book.sent[request_id].get("events", []))
        assert [each.event_type for each in events] == [request_id] * wanted
    listed = await lot.episodes.ListEpisodes(page_size=1000)
    mine = [e.task for e in listed.episodes if e.task.startswith("task of ")]
    assert len(set(mine)) == len(mine)
    _within(len(book.acked), len(mine), book, settled=settled)


async def check_store(folder: Path) -> tuple[int, int]:
    """With the server stopped: counters equal their facts, and no event is without its episode.

    Returns how many outcomes and events there are.
    """
    store = EdgeStore(folder, SystemClock())
    try:
        await store.ensure_collections(REGISTRY.collection_specs(384))
        facts = await store.scroll(OUTCOMES, None, [], limit=1_000_000)
        assert all(fact.payload["applied"] for fact in facts), "a fact is not settled"
        counted = Counter((fact.namespace, fact.payload["resource_id"]) for fact in facts)
        patterns = await store.scroll(PATTERNS, None, [], limit=1_000_000)
        for pattern in patterns:
            key = (pattern.namespace, pattern.payload["pattern_id"])
            assert pattern.payload["usage_count"] == counted.pop(key, 0), key
        assert not counted, "facts of patterns that are gone"
        episodes = await store.scroll(EPISODES, None, [], limit=1_000_000, payload=("episode_id",))
        known = {(one.namespace, one.payload["episode_id"]) for one in episodes}
        events = await store.scroll(EVENTS, None, [], limit=5_000_000, payload=("episode_id",))
        lost = {(one.namespace, one.payload["episode_id"]) for one in events} - known
        assert not lost, f"events without their episode: {lost}"
        return len(facts), len(events)
    finally:
        await store.close()
