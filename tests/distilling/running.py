"""Tasks saved and distilled through the services, and how well the groups meet the templates."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lot_grpc.ports import Embedder
from lot_grpc.services.distillation.distiller import DistillRequest
from lot_grpc.services.patterns.drafts import Dedupe, PatternDraft
from tests.distilling.families import DIFFERENT, FAMILIES
from tests.services.world import NS, draft, open_world

Labelled = list[tuple[str, str]]
"""Tasks, each with the name of its template."""


def tasks_of(half: str) -> Labelled:
    """All tasks of a half; each of those that are of no template is of its own."""
    found = [(task, f"f{n}") for n, tasks in enumerate(FAMILIES[half]) for task in tasks]
    for n, tasks in enumerate(DIFFERENT[half]):
        found += [(task, f"d{n}-{at}") for at, task in enumerate(tasks)]
    return found


@dataclass(frozen=True)
class Found:
    """``groups``: the templates of the members, group by group."""

    groups: list[list[str]]
    templates: int
    """Of which there are enough tasks for a group."""
    texts: list[str]
    """The tasks of the groups, and of those that they are grouped in."""

    @property
    def pure(self) -> float:
        """Share of the groups whose members are of one template."""
        return sum(len(set(group)) == 1 for group in self.groups) / max(1, len(self.groups))

    @property
    def in_main(self) -> float:
        """Share of the members that are of their group's main template."""
        main = sum(Counter(group).most_common(1)[0][1] for group in self.groups)
        return main / max(1, sum(map(len, self.groups)))

    @property
    def found(self) -> float:
        """Share of the templates that have a group of which they are most."""
        mains = {Counter(group).most_common(1)[0] + (len(group),) for group in self.groups}
        return len({name for name, n, size in mains if 2 * n > size}) / max(1, self.templates)

    def merged(self) -> list[list[str]]:
        """Groups with two tasks of one set of different ones."""
        sets = [[name.split("-")[0] for name in set(group) if "-" in name] for group in self.groups]
        return [names for names in sets if len(names) > len(set(names))]


async def distilled(embedder: Embedder, tasks: Labelled, least: int = 3) -> Found:
    """Distil them with the defaults, but for the least size of a group."""
    world = await open_world(embedder=embedder)
    for start in range(0, len(tasks), 100):
        some: list[PatternDraft] = [
            draft(task, pattern_id=f"p{start + n}", dedupe=Dedupe.NONE)
            for n, (task, _) in enumerate(tasks[start : start + 100])
        ]
        await world.services.patterns.writer.save_many(NS, some)
    run = await world.services.distillation.distiller.distil(
        NS, DistillRequest(min_group_size=least)
    )
    lowest = [inner for top in run.groups for inner in (top.groups or [top])]
    groups = [[tasks[int(one[1:])][1] for one in group.member_ids] for group in lowest]
    sizes = Counter(name for _, name in tasks)
    everything = [one for top in run.groups for one in (top, *top.groups)]
    texts = [group.pattern.content.task for group in everything]
    return Found(groups, sum(size >= least for size in sizes.values()), texts)
