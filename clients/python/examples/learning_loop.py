# ruff: noqa: T201, S311
"""Agents that learn: each recalls, tries, reports, and does better than without a memory.

The world is a simulation with a hidden rule: for each family of tasks one approach works nearly
always and the others seldom. An agent knows nothing of it. Before a task it asks its memory for
patterns like it that have worked at least half of the time; it reuses the first one if that is
probably for the same task, else it tries an approach at random. During the task it streams events;
after it it reports the outcome, or saves what worked as a new pattern.

Beside each agent stands one without a memory, which does the same tasks by approaches tried at
random. The table has the mean over all agents and the spread between them, so that luck shows.

    learning_loop.py [--tasks DIR] [--agents N] [--days N] [--per-day N] [--seed N]

DIR holds `corpus.jsonl` with `text` and `template_id`; without it the agents take tasks of their
own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lot_client import LotClient, PatternRecall

REUSE_FROM = 0.5
"""Probability that a pattern is for the same task from which it is reused; the agent's to say."""

APPROACHES = ("search box", "category page", "sort and filter", "site map", "direct link")
WORKS, FAILS = 0.92, 0.15
FAMILIES = 10
SHOWN = 4
"""Tasks of the first agent that are shown on its first and its last day."""

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


def works(task: Task, approach: str, chance: random.Random) -> bool:
    """The hidden rule, and its exceptions."""
    digest = hashlib.sha256(task.family.encode()).digest()
    right = approach == APPROACHES[digest[0] % len(APPROACHES)]
    return chance.random() < (WORKS if right else FAILS)


class Agent:
    """Works on tasks with a memory."""

    def __init__(self, memory: LotClient, chance: random.Random) -> None:
        self._memory = memory
        self._chance = chance

    def work(self, task: Task, *, show: bool) -> tuple[bool, bool]:
        """Carry a task out; whether it worked, and whether a pattern was reused."""
        recall = self._memory.recall_patterns(task.text, filter={"min_success_rate": 0.5})
        known = recall.hits[0] if recall.hits else None
        reuse = known is not None and known.match_probability >= REUSE_FROM
        approach = known.pattern.approach if known and reuse else self._chance.choice(APPROACHES)
        success = self._carry_out(task, approach)
        if known and reuse:
            counted = self._memory.record_outcome(
                known.pattern.pattern_id, "SUCCESS" if success else "FAILURE", recall=recall
            )
            [learned] = counted.patterns
            after = f"its success rate is {learned.outcomes.success_rate:.2f} now"
        else:
            after = self._save(task, approach) if success else "nothing to save"
        if show:
            self._show(task, recall, approach, after, success=success, reuse=reuse)
        return success, reuse

    def _carry_out(self, task: Task, approach: str) -> bool:
        """Try an approach in the simulated world, and record it as an episode."""
        episode = self._memory.start_episode(task.text, approach=approach, category="web")
        success = works(task, approach, self._chance)
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

    def _show(
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
            found = f"{best.pattern.task[:44]!r} ({best.pattern.approach}), "
            found += f"the same task with {best.match_probability:.0%}"
        how = "reused" if reuse else "tried"
        print(f"  task      {task.text[:70]}")
        print(f"  recalled  {found}")
        print(f"  {how:8}  {approach}: {'worked' if success else 'failed'}; {after}\n")


@dataclass
class Day:
    """Shares of a day's tasks, one of each agent."""

    learned: list[float] = field(default_factory=list)
    reused: list[float] = field(default_factory=list)
    without: list[float] = field(default_factory=list)


def live(
    memory: LotClient, tasks: Sequence[Task], days: Sequence[Day], per_day: int, seed: int
) -> None:
    """The days of one agent, and of one without a memory that has the same tasks."""
    chance, luck = random.Random(seed), random.Random(seed + 1)
    agent = Agent(memory, chance)
    for number, day in enumerate(days):
        work = [chance.choice(tasks) for _ in range(per_day)]
        first = not days[0].learned or (number == len(days) - 1 and not day.learned)
        if first:
            print(f"The first agent on day {number + 1}\n")
        done = [agent.work(task, show=first and n < SHOWN) for n, task in enumerate(work)]
        day.learned.append(statistics.fmean(success for success, _ in done))
        day.reused.append(statistics.fmean(reuse for _, reuse in done))
        tried = [works(task, luck.choice(APPROACHES), luck) for task in work]
        day.without.append(statistics.fmean(tried))


def spread(shares: Sequence[float]) -> str:
    """The mean, and the standard deviation between agents."""
    deviation = statistics.stdev(shares) if len(shares) > 1 else 0.0
    return f"{statistics.fmean(shares):4.0%} ±{100 * deviation:3.0f}"


def show_days(days: Sequence[Day]) -> None:
    """A line a day, and what the last half of them says."""
    agents = len(days[0].learned)
    print(f"Tasks that worked: mean of {agents} agents, ± standard deviation between them\n")
    print("day   with a memory                      without    patterns reused")
    for number, day in enumerate(days, 1):
        bar = "#" * round(statistics.fmean(day.learned) * 20)
        reused = statistics.fmean(day.reused)
        print(
            f"{number:3}   {spread(day.learned)}  {bar:20}   {spread(day.without)}   {reused:15.0%}"
        )
    late = days[len(days) // 2 :]
    gains = [
        statistics.fmean(day.learned[n] - day.without[n] for day in late) for n in range(agents)
    ]
    error = statistics.stdev(gains) / agents**0.5 if agents > 1 else 0.0
    print(
        f"\nGain in the second half: {100 * statistics.fmean(gains):+.0f} points"
        f" (standard error {100 * error:.0f}; the worst agent {100 * min(gains):+.0f})"
    )


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=Path, help="folder with corpus.jsonl")
    parser.add_argument("--agents", type=int, default=6, help="each with its own memory (6)")
    parser.add_argument("--days", type=int, default=8, help="days of each agent (8)")
    parser.add_argument("--per-day", type=int, default=12, help="tasks a day (12)")
    parser.add_argument("--seed", type=int, default=7, help="of the simulation (7)")
    return parser.parse_args()


def main() -> None:
    """All agents, one after the other."""
    given = arguments()
    tasks = read_tasks(given.tasks)
    sizes = Counter(task.family for task in tasks)
    kept = {family for family, _ in sizes.most_common(FAMILIES)}
    tasks = [task for task in tasks if task.family in kept]
    print(f"{len(tasks)} tasks of {len(kept)} families, {len(APPROACHES)} approaches to each\n")
    days = [Day() for _ in range(given.days)]
    address = os.environ.get("LOT_ADDRESS", "127.0.0.1:50051")
    run = random.randrange(10**9)
    for number in range(given.agents):
        with LotClient(address, namespace=f"demo-{run}-{number}") as memory:
            live(memory, tasks, days, given.per_day, given.seed + 1000 * number)
    show_days(days)


if __name__ == "__main__":
    main()
