"""Long contents come back as one memory, with the passage that answers."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.domain import passages as passages_module
from lot_grpc.domain.memory import Memory, MemoryContent, MemoryKind
from lot_grpc.domain.query import Legs, MemoryFilter, Ranking
from lot_grpc.ports import MultiVector
from lot_grpc.services import indexer as indexer
from lot_grpc.services.memories import passages as memory_passages
from lot_grpc.services.memories.drafts import MemoryEdit
from lot_grpc.services.memories.passages import Passage
from lot_grpc.services.recall.recall import Hit
from lot_grpc.services.recall.targets import RecallOptions, memory_request
from lot_grpc.services.records.collections import (
    CODE_VECTOR,
    MEMORIES,
    PASSAGE_VECTORS,
    SPARSE_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.services.records.memories import memory_point
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.testing.hashing import OverlapReranker
from tests.contract.clock import FixedClock
from tests.services.world import NS, World, memory, open_world

FACT = "The blue kettle of Lisbon whistles in B flat."
ASKED = "how does the blue kettle of Lisbon whistle"


@pytest.fixture
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    if getattr(request, "param", "in_memory") == "in_memory":
        yield await open_world()
        return
    clock = FixedClock()
    store = EdgeStore(tmp_path, clock, min_free_bytes=0)
    yield await open_world(store, clock)
    await store.close()


def filler(seed: int, paragraphs: int) -> list[str]:
    return [
        " ".join(f"Clause {seed}x{n}x{m} concerns invoice {n * m}." for m in range(12))
        for n in range(paragraphs)
    ]


def long_text(seed: int, at: int, paragraphs: int = 40) -> str:
    parts = filler(seed, paragraphs)
    parts.insert(at, FACT)
    return "\n\n".join(parts)


async def find(
    world: World, query: str = ASKED, legs: Legs = Legs.HYBRID, **named: Any
) -> list[tuple[Hit[Memory], Passage | None]]:
    asked = RecallOptions(query, 10, legs=legs, **named)
    found = await world.services.recall.memories.find(NS, memory_request(asked, MemoryFilter()))
    things = [hit.thing for hit in found.hits]
    passages = await world.services.memories.passages.of(things, found.vector)
    return list(zip(found.hits, passages, strict=True))


async def vectors_of(world: World, memory_id: str) -> Any:
    point = memory_point(NS, memory_id)
    return (await world.store.get(MEMORIES, NS, [point], vectors=True))[point].vectors


@pytest.mark.parametrize(
    ("world", "at"),
    [("in_memory", 0), ("in_memory", 20), ("in_memory", 40), ("edge", 20)],
    indirect=["world"],
)
async def test_a_fact_anywhere_in_a_long_document_is_found_and_shown(world: World, at: int) -> None:
    content = long_text(1, at)
    await world.services.memories.memories.create(
        NS, memory(content, memory_id="has", title="Invoices")
    )
    for seed in (2, 3, 4):
        other = "\n\n".join(filler(seed, 40))
        await world.services.memories.memories.create(NS, memory(other, memory_id=f"other{seed}"))
    for legs in (Legs.DENSE, Legs.HYBRID):
        hits = await find(world, legs=legs)
        assert [hit.thing.memory_id for hit, _ in hits].count("has") == 1
        (best, passage), *_ = hits
        assert best.thing.memory_id == "has"
        assert best.thing.content.content == content
        assert passage is not None
        assert FACT in passage.text
        assert content[passage.span.start : passage.span.end] == passage.text
        assert len(passage.text) < len(content) / 10


async def test_a_short_content_has_no_passage_and_no_more_vectors_than_before(
    world: World,
) -> None:
    await world.services.memories.memories.create(NS, memory(FACT, memory_id="short"))
    [(hit, passage)] = await find(world)
    assert (hit.thing.memory_id, passage) == ("short", None)
    assert set(await vectors_of(world, "short")) == {TEXT_VECTOR, SPARSE_VECTOR}


async def test_the_offsets_count_unicode_characters(world: World) -> None:
    content = "🙂 naïve 漢字。" * 60 + "\n\n" + FACT + "\n\n" + "👩‍🚀 e\u0301t\u0301 " * 200
    await world.services.memories.memories.create(NS, memory(content))
    [(_, passage)] = await find(world)
    assert passage is not None
    assert FACT in passage.text
    assert passage.text == content[passage.span.start : passage.span.end]


async def test_an_edit_moves_the_passages(world: World) -> None:
    memories = world.services.memories.memories
    await memories.create(NS, memory(long_text(1, 0), memory_id="m"))
    edit = MemoryEdit(MemoryContent(long_text(1, 40)), frozenset({"content"}))
    await memories.update(NS, "m", edit, "")
    [(hit, passage)] = await find(world)
    assert passage is not None
    assert hit.thing.content.content[passage.span.start :].startswith(passage.text)
    assert passage.span.end == len(hit.thing.content.content)


async def test_vectors_of_another_text_name_no_passage(world: World) -> None:
    """Whoever reads a memory and then its vectors may find it edited in between."""
    made = await world.services.memories.memories.create(NS, memory(long_text(1, 0), memory_id="m"))
    edit = MemoryEdit(MemoryContent(long_text(1, 40)), frozenset({"content"}))
    await world.services.memories.memories.update(NS, "m", edit, "")
    vector = (await world.embedder.embed_query(ASKED)).vector
    assert await world.services.memories.passages.of([made.memory], vector) == [None]


async def test_so_many_passages_are_read_and_what_lies_behind_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passages_module, "MOST_PASSAGES", 4)
    world = await open_world()
    made = await world.services.memories.memories.create(NS, memory("word " * 1300, memory_id="m"))
    assert made.truncated
    passages = (await vectors_of(world, "m"))[PASSAGE_VECTORS]
    assert isinstance(passages, MultiVector)
    assert len(passages.vectors) == 4
    fits = await world.services.memories.memories.create(NS, memory("word " * 1200))
    assert not fits.truncated


async def test_a_long_text_is_split_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte takes 0.1 s, in which other calls go on."""
    threads: list[str] = []
    split = passages_module.passages_of

    def noted(text: str) -> passages_module.Passages:
        threads.append(threading.current_thread().name)
        return split(text)

    for module in (indexer, memory_passages):
        monkeypatch.setattr(module, "passages_of", noted)
    world = await open_world()
    await world.services.memories.memories.create(NS, memory(long_text(1, 40)))
    await find(world)
    assert len(threads) == 2
    assert threading.main_thread().name not in threads


async def test_the_cross_encoder_reads_the_passage_of_a_long_content(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = long_text(1, 40)
    await world.services.memories.memories.create(
        NS, memory(content, memory_id="m", title="Invoices")
    )
    await world.services.memories.memories.create(NS, memory("short", memory_id="short", title="T"))
    read: list[str] = []
    score = OverlapReranker.score

    async def kept(self: OverlapReranker, query: str, texts: Any, *, seconds: float) -> Any:
        read.extend(texts)
        return await score(self, query, texts, seconds=seconds)

    monkeypatch.setattr(OverlapReranker, "score", kept)
    [(best, passage), _] = await find(world, rerank=True)
    assert best.thing.memory_id == "m"
    assert passage is not None
    assert sorted(read) == [f"Invoices\n{passage.text}", "T\nshort"]


# --- code -------------------------------------------------------------------------------------


async def test_code_is_found_by_what_its_identifiers_say(world: World) -> None:
    code = "def computeMonthlyInterest(principalAmount, yearly_rate):\n    return 1"
    given_as: dict[str, dict[str, Any]] = {
        "snippet": {"kind": MemoryKind.CODE_SNIPPET},
        "tagged": {"language": "python"},
        "prose": {"language": "english"},
    }
    for memory_id, named in given_as.items():
        given = memory(code, memory_id=memory_id, **named)
        await world.services.memories.memories.create(NS, given)
    kinds = {name: set(await vectors_of(world, name)) for name in ("snippet", "tagged", "prose")}
    assert kinds == {
        "snippet": {TEXT_VECTOR, CODE_VECTOR, SPARSE_VECTOR},
        "tagged": {TEXT_VECTOR, CODE_VECTOR, SPARSE_VECTOR},
        "prose": {TEXT_VECTOR, SPARSE_VECTOR},
    }
    hits = await find(world, "compute monthly interest of the principal amount", Legs.DENSE)
    similar = {hit.thing.memory_id: hit.similarity for hit, _ in hits}
    assert similar["snippet"] == similar["tagged"] > similar["prose"] + 0.1
    terms = {name: (await vectors_of(world, name))[SPARSE_VECTOR] for name in kinds}
    assert list(terms["snippet"].values) == pytest.approx(list(terms["prose"].values))


# --- importance -------------------------------------------------------------------------------


async def test_importance_decides_between_the_nearly_equally_relevant_only(world: World) -> None:
    for memory_id, content, importance in (
        ("low", "The port of the web shop is 8080", 0.1),
        ("high", "The port of the web shop is now 8081", 0.9),
        ("far", "Cats sleep all day long", 1.0),
    ):
        given = memory(content, memory_id=memory_id, importance=importance)
        await world.services.memories.memories.create(NS, given)
    query = "what is the port of the web shop"
    hits = [hit for hit, _ in await find(world, query)]
    assert [hit.thing.memory_id for hit in hits][:2] == ["high", "low"]
    parts = {part.name: part for part in hits[0].parts}
    assert parts["importance"].value == pytest.approx(0.8)
    assert parts["importance"].weight == 0.05
    for hit in hits:
        total = sum(part.value * part.weight for part in hit.parts)
        assert hit.score == pytest.approx(total, abs=1e-6)
    plain = [hit.thing.memory_id for hit, _ in await find(world, query, ranking=Ranking.RELEVANCE)]
    assert plain[:2] == ["low", "high"]
