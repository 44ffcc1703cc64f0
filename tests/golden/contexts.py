"""The contexts of ten tasks, as the team's store tells them.

    python -m tests.golden.contexts --update

writes them anew; without ``--update`` it names those that differ. Texts are embedded by the hashing
double: it gives the same vector on every machine, which no model does to the last bit, and it needs
no model. What is kept here is what is told and how, not how well a model finds it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lot_grpc.services.context.request import ContextRequest
from lot_grpc.services.context.task_context import TaskContext
from tests.golden.team import open_team
from tests.services.world import NS, World

FOLDER = Path(__file__).with_name("context")

TASKS: Final[Mapping[str, ContextRequest]] = {
    "login": ContextRequest(
        "Add a login with GitLab to the web application", category="auth", task_type="feature"
    ),
    "deploy": ContextRequest(
        "Deploy the web service to the Kubernetes cluster",
        category="infrastructure",
        task_type="deploy",
    ),
    "deploy-in-400-tokens": ContextRequest(
        "Deploy the web service to the Kubernetes cluster",
        category="infrastructure",
        task_type="deploy",
        max_tokens=400,
    ),
    "missing-module": ContextRequest(
        "The nightly job fails with ModuleNotFoundError: No module named 'yaml'",
        language="python",
        limit=2,
    ),
    "moved-value": ContextRequest(
        "Make the build green: error[E0382]: borrow of moved value: `settings`",
        language="rust",
        limit=1,
    ),
    "csv": ContextRequest(
        "Import the orders of 2024 from a CSV file into the warehouse",
        category="data",
        task_type="import",
        limit=2,
    ),
    "retries": ContextRequest(
        "Call the payment API again when a request times out", language="py", limit=1
    ),
    "by-task-id": ContextRequest(task_id="SHOP-15", limit=1, preference_categories=("review",)),
    "report-in-chinese": ContextRequest("生成每月库存报告", limit=1, min_similarity=0.1),
    "something-new": ContextRequest(
        "Tune the piano", min_similarity=0.9, preference_categories=("music",)
    ),
}


async def told(world: World, name: str) -> TaskContext:
    """The context of a task."""
    return await world.services.task_contexts.gather(NS, TASKS[name])


async def texts() -> dict[str, str]:
    """All texts, by task."""
    world = await open_team()
    return {name: (await told(world, name)).prompt.text for name in TASKS}


def kept(name: str) -> str:
    """The text that is kept of a task."""
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def main() -> int:
    """Compare, or write."""
    made = asyncio.run(texts())
    if "--update" in sys.argv:
        for name, text in made.items():
            (FOLDER / f"{name}.md").write_text(text, encoding="utf-8")
        return 0
    different = [name for name, text in made.items() if kept(name) != text]
    print("\n".join(different))
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
