# ruff: noqa: T201, S311
"""An agent that learns: it recalls, tries, reports, and does better than on its first day.

The world is a simulation with a hidden rule: for each family of tasks one approach works nearly
always and the others seldom. The agent knows nothing of it. Before a task it asks the memory for
patterns like it that have worked at least half of the time; it reuses the first one if it is
similar enough, else it tries an approach at random. During the task it streams events; after it it
reports the outcome, or saves what worked as a new pattern.

    learning_loop.py [--tasks DIR] [--count N] [--seed N]

DIR holds `corpus.jsonl` with `text` and `template_id`; without it the agent takes tasks of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lot_client import LotClient, PatternRecall

REUSE_FROM = 0.7
"""Similarity from which a pattern is reused; what counts as similar is the agent's to say."""

APPROACHES = ("search box", "category page", "sort and filter", "site map", "direct link")
WORKS, FAILS = 0.92, 0.15
FAMILIES = 10
TELL = 8
"""Tasks that are told in full; the rest are summed up."""

OWN_TEMPLATES = (
    "Find the cheapest {} in the shop",
    "Show me all reviews of the {} that mention delivery",
    "Post a question about the {} to the forum",
    "Cancel my latest order of a {}",
    "Compare the prices of the {} in three shops",
    "Change the delivery address of my {} order",
)
OWN_THINGS = ("kayak", "red bicycle", "desk lamp", "camera", "tent", "keyboard", "guitar", "sofa")


@dataclass(frozen=True)
class Task:
    """What is to be done, and the family whose hidden rule decides."""

    text: str
    family: str


def read_tasks(folder: Path | None) -> list[Task]:
    """The tasks of a folder, else our own."""
    if folder and (folder / "corpus.jsonl").is_file():
        lines = (folder / "corpus.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        families: dict[str, list[Task]] = {}
        for row in rows:
            family = f"{row['bench']}-{row['template_id']}"
            families.setdefault(family, []).append(Task(row["text"], family))
        return [task for tasks in families.values() if len(tasks) > 3 for task in tasks]
    return [Task(template.format(x), template) for template in OWN_TEMPLATES for x in OWN_THINGS]


def best_approach(task: Task) -> str:
    """The hidden rule."""
    digest = hashlib.sha256(task.family.encode()).digest()
    return APPROACHES[digest[0] % len(APPROACHES)]


class Agent:
    """Works on tasks with a memory."""

    def __init__(self, memory: LotClient, chance: random.Random) -> None:
        self._memory = memory
        self._chance = chance

    def work(self, task: Task, *, tell: bool) -> tuple[bool, bool]:
        """Carry a task out; whether it worked, and whether a pattern was reused."""
        recall = self._memory.recall_patterns(task.text, filter={"min_success_rate": 0.5})
        known = recall.hits[0] if recall.hits else None
        reuse = known is not None and known.similarity >= REUSE_FROM
        approach = known.pattern.approach if known and reuse else self._chance.choice(APPROACHES)
        success = self._carry_out(task, approach)
        if known and reuse:
            [learned] = self._memory.record_outcome(
                known.pattern.pattern_id, "SUCCESS" if success else "FAILURE", recall=recall
            )
            after = f"its success rate is {learned.outcomes.success_rate:.2f} now"
        else:
            after = self._save(task, approach) if success else "nothing to save"
        if tell:
            self._tell(task, recall, approach, after, success=success, reuse=reuse)
        return success, reuse

    def _carry_out(self, task: Task, approach: str) -> bool:
        """Try an approach in the simulated world, and record it as an episode."""
        episode = self._memory.start_episode(task.text, approach=approach, category="web")
        right = approach == best_approach(task)
        success = self._chance.random() < (WORKS if right else FAILS)
        with self._memory.record_events(episode.episode_id) as stream:
            stream.send(
                [
                    {"event_type": "plan", "data": {"approach": approach}},
                    {"event_type": "tool_call", "data": {"tool": approach, "ok": success}},
                ]
            )
        self._memory.end_episode(
            episode.episode_id,
            "SUCCEEDED" if success else "FAILED",
            reward=1.0 if success else -1.0,
        )
        return success

    def _save(self, task: Task, approach: str) -> str:
        saved = self._memory.save_pattern(
            task.text, approach=approach, actions=[{"tool": approach}], category="web"
        )
        return f"saved as {saved.pattern.pattern_id}"

    def _tell(
        self,
        task: Task,
        recall: PatternRecall,
        approach: str,
        after: str,
        *,
        success: bool,
        reuse: bool,
    ) -> None:
        found = "nothing"
        if recall.hits:
            best = recall.hits[0]
            found = f"{best.pattern.task[:44]!r} at {best.similarity:.2f} ({best.pattern.approach})"
        how = "reused" if reuse else "tried"
        print(f"  task      {task.text[:70]}")
        print(f"  recalled  {found}")
        print(f"  {how:8}  {approach}: {'worked' if success else 'failed'}; {after}\n")


def show_hits(memory: LotClient, task: Task, when: str) -> None:
    """The order of hits for one question."""
    print(f'{when}, "{task.text[:60]}" finds (best: {best_approach(task)}):')
    hits = memory.recall_patterns(task.text, limit=5).hits
    for hit in hits:
        learned = hit.pattern.outcomes
        print(
            f"  score {hit.score:.3f}  similarity {hit.similarity:.3f}"
            f"  success {learned.success_rate:.2f} of {learned.usage_count:2} uses"
            f"  {hit.pattern.approach:15}  {hit.pattern.task[:40]}"
        )
    if not hits:
        print("  nothing")
    print()


def days(tasks: Sequence[Task], count: int, chance: random.Random) -> Iterator[list[Task]]:
    """The tasks in four days, each a random draw."""
    for _ in range(4):
        yield [chance.choice(tasks) for _ in range(max(1, count // 4))]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=Path, help="folder with corpus.jsonl")
    parser.add_argument("--count", type=int, default=320, help="tasks in all (default 320)")
    parser.add_argument("--seed", type=int, default=7, help="of the simulation (default 7)")
    return parser.parse_args()


def main() -> None:
    """Four days of work."""
    given = arguments()
    chance = random.Random(given.seed)
    tasks = read_tasks(given.tasks)
    sizes = Counter(task.family for task in tasks)
    kept = {family for family, _ in sizes.most_common(FAMILIES)}
    tasks = [task for task in tasks if task.family in kept]
    probe = tasks[0]
    address = os.environ.get("LOT_ADDRESS", "127.0.0.1:50051")
    with LotClient(address, namespace=f"demo-{random.randrange(10**9)}") as memory:
        print(f"{len(tasks)} tasks of {len(kept)} families, {len(APPROACHES)} approaches\n")
        agent = Agent(memory, chance)
        table = []
        for day, work in enumerate(days(tasks, given.count, chance), 1):
            print(f"day {day}")
            results = [agent.work(task, tell=i < TELL // day) for i, task in enumerate(work)]
            worked = sum(success for success, _ in results) / len(results)
            reused = sum(reuse for _, reuse in results) / len(results)
            held = [success for success, reuse in results if reuse]
            table.append((day, worked, reused, sum(held) / len(held) if held else 0.0))
            show_hits(memory, probe, f"after day {day}")
        print("day   tasks that worked          patterns reused   of these worked")
        for day, worked, reused, reused_well in table:
            bar = "#" * round(worked * 20)
            print(f"{day:3}   {worked:4.0%} {bar:20}  {reused:14.0%}   {reused_well:15.0%}")


if __name__ == "__main__":
    main()
