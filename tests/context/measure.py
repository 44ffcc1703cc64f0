"""``python -m tests.context.measure``: how much of a context belongs to its task.

One store knows the seeded knowledge and parts of the sets in ``--data``: tasks and code as
patterns, half of the tasks as episodes too, errors with their solutions, abstracts as memories.
Contexts are gathered for queries of each set, and for ``tasks.txt`` (a task, and what of the seeded
knowledge is right for it; for some nothing is). What is told belongs if it is right for the query.
Each is gathered twice: with everything that is nearest (``min_similarity`` 0), and by default.

Tokens are those of the entries of ``prompt_text``, as the service estimates them.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lot_grpc.domain.context.tokens import token_count
from lot_grpc.domain.episode import EpisodeEnd, EpisodeStart, EpisodeStatus
from lot_grpc.embedding.fastembed import open_fastembed
from lot_grpc.evaluation.as_error_solution import are_errors, as_error_solution
from lot_grpc.evaluation.as_pattern import are_code, as_pattern
from lot_grpc.evaluation.dataset import Dataset
from lot_grpc.services.context.request import ContextRequest
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.errors.drafts import ErrorSolutionDraft
from lot_grpc.services.patterns.drafts import Dedupe, PatternDraft
from lot_grpc.services.seeder import Seeds
from lot_grpc.storage.edge import EdgeStore
from tests.calibration.sets import ERRORS, SETS, sampled
from tests.calibration.vectors import CachedVectors
from tests.contract.clock import FixedClock
from tests.services.world import NS, World, memory, open_world

MEMORIES = "scifact"
EPISODES = ("webarena", "tau_retail")
SEEDED = "seeded"
TASKS = Path(__file__).with_name("tasks.txt")
QUERIES, DOCUMENTS = 40, 300
"""Of each set."""

_ENTRY = re.compile(r"^- (.*?)(?=^- |^## |\Z)", re.MULTILINE | re.DOTALL)
_ID = re.compile(r"`([^`]+)`")
_OWN = ("## Preferences",)


@dataclass(frozen=True)
class Task:
    """What a context is gathered for, and the ids of what is right for it."""

    source: str
    text: str
    right: frozenset[str]


@dataclass
class Told:
    """What contexts told. ``found``: how many right things; ``known``: how many there could be."""

    contexts: int = 0
    tokens: int = 0
    belonging: int = 0
    found: int = 0
    empty: int = 0
    by_section: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))

    def add(self, text: str, right: frozenset[str]) -> set[str]:
        """Count a context; give back the right things that it tells."""
        told: set[str] = set()
        entries = list(entries_of(text))
        for section, entry in entries:
            tokens, ids = token_count(entry), set(_ID.findall(entry.partition(": ")[0]))
            belongs = bool(ids & right)
            told |= ids & right
            self.tokens += tokens
            self.belonging += tokens * belongs
            counted = self.by_section[section]
            counted[0] += tokens
            counted[1] += tokens * belongs
            counted[2] += belongs
        self.contexts += 1
        self.found += len(told)
        self.empty += not entries
        return told

    @property
    def share(self) -> float:
        return self.belonging / self.tokens if self.tokens else 1.0


def entries_of(text: str) -> Iterable[tuple[str, str]]:
    """The entries of a text for a prompt, each with its section."""
    for part in text.split("\n## ")[1:]:
        section, _, body = part.partition("\n")
        for found in _ENTRY.finditer(body):
            yield section, found[0]


def cut(data: Dataset) -> Dataset:
    """A part of a sampled set, always the same."""
    queries = data.queries[:: max(1, len(data.queries) // QUERIES)][:QUERIES]
    right = {one for query in queries for one, gain in query.judged.items() if gain > 0}
    others = [one for one in data.documents if one.id not in right]
    kept = {one.id for one in others[: max(0, DOCUMENTS - len(right))]} | right
    documents = tuple(one for one in data.documents if one.id in kept)
    return Dataset(data.name, data.folder, documents, queries, data.filter_field)


async def fill(world: World, sets: Sequence[Dataset]) -> list[Task]:
    """Save all of it; give back the tasks."""
    await world.services.seeder.seed(NS, Seeds())
    tasks = []
    for data in sets:
        ids = await _save(world, data)
        for query in data.queries:
            right = {one for one, gain in query.judged.items() if gain > 0}
            known = frozenset(made for one in right if one in ids for made in ids[one])
            text = f"The build fails:\nerror: {query.text}" if data.name == ERRORS else query.text
            tasks.append(Task(data.name, text, known))
    for line in TASKS.read_text(encoding="utf-8").splitlines():
        text, _, right_ids = line.rpartition("|")
        known = frozenset(f"seed:{one}" for one in right_ids.split())
        tasks.append(Task(SEEDED, text.strip(), known))
    return tasks


async def _save(world: World, data: Dataset) -> Mapping[str, tuple[str, ...]]:
    """A set as what it is of; the ids that each document has got."""
    ids = {one.id: f"{data.name}-{number}" for number, one in enumerate(data.documents)}
    named: dict[str, tuple[str, ...]] = {one: (made,) for one, made in ids.items()}
    if are_errors(data.documents):
        for one in data.documents:
            solution = ErrorSolutionDraft(as_error_solution(one), ids[one.id])
            await world.services.errors.solutions.save(NS, solution)
        return named
    if data.name == MEMORIES:
        for one in data.documents:
            draft = memory(one.text, title=one.title, memory_id=ids[one.id])
            await world.services.memories.memories.create(NS, draft)
        return named
    code = are_code(data.documents)
    drafts = [
        PatternDraft(as_pattern(one, code=code), pattern_id=ids[one.id], dedupe=Dedupe.NONE)
        for one in data.documents
    ]
    for start in range(0, len(drafts), 64):
        await world.services.patterns.writer.save_many(NS, drafts[start : start + 64])
    if data.name in EPISODES:
        for one in data.documents[::2]:
            episode_id = f"run-{ids[one.id]}"
            end = EpisodeEnd(EpisodeStatus.SUCCEEDED)
            run = EpisodeDraft(EpisodeStart(one.text), episode_id, end=end)
            await world.services.episodes.creator.record(NS, run)
            named[one.id] = (ids[one.id], episode_id)
    return named


async def measure(data: Path, cache: Path, limit: int) -> tuple[dict[str, Told], dict[str, Told]]:
    """By set: with all that is nearest, and by default."""
    embedder = CachedVectors(await open_fastembed(threads=1), cache / "vectors.npz")
    with tempfile.TemporaryDirectory(prefix="lot-context-") as folder:
        clock = FixedClock()
        world = await open_world(
            EdgeStore(Path(folder), clock, min_free_bytes=0), clock, None, embedder
        )
        try:
            names = (*SETS, ERRORS, MEMORIES)
            tasks = await fill(world, [cut(sampled(data / name)) for name in names])
            before: dict[str, Told] = defaultdict(Told)
            after: dict[str, Told] = defaultdict(Told)
            for task in tasks:
                for told, least in ((before, 0.0), (after, None)):
                    question = ContextRequest(task.text, limit=limit, min_similarity=least)
                    found = await world.services.task_contexts.gather(NS, question)
                    told[task.source].add(found.prompt.text, task.right)
            return before, after
        finally:
            await world.store.close()
            await embedder.close()


def row(name: str, before: Iterable[Told], after: Iterable[Told]) -> str:
    """A line of the table: what was told, and what is by default."""
    columns = [name]
    for several in (list(before), list(after)):
        contexts = sum(one.contexts for one in several)
        tokens, belonging = sum(o.tokens for o in several), sum(o.belonging for o in several)
        columns += [
            f"{tokens / contexts:.0f}",
            f"{belonging / tokens:.0%}" if tokens else "-",
            f"{sum(one.found for one in several)}",
        ]
    return f"| {' | '.join(columns)} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.context.measure", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/eval"))
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir(), "lot-calibration")
    )
    parser.add_argument("--limit", type=int, default=3)
    options = parser.parse_args()
    missing = [n for n in (*SETS, ERRORS, MEMORIES) if not (options.data / n).is_dir()]
    if missing:
        print(f"{options.data}: no {missing[0]}; --data names a folder with the retrieval sets")
        return 2
    before, after = asyncio.run(measure(options.data, options.cache, options.limit))
    print("| tasks of | tokens | belong | right | tokens | belong | right |")
    print("|" + " --- |" * 7)
    for name in before:
        print(row(name, [before[name]], [after[name]]))
    print(row("all", before.values(), after.values()))
    for title, told in (("nearest", before), ("default", after)):
        sections: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for one in told.values():
            for section, counted in one.by_section.items():
                sections[section] = [a + b for a, b in zip(sections[section], counted, strict=True)]
        for section, (tokens, right, found) in sections.items():
            share = f"{right / tokens:.0%} belong, {found} right"
            print(f"{title:8} {section:24} {tokens:8,} tokens, {share}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
