# ruff: noqa: T201
"""One round of learning: recall, work, record what happened, say how it went.

Start a server with `make run`, then run this. LOT_ADDRESS names another server.
"""

from __future__ import annotations

import asyncio
import os

from lot_client import AsyncLotClient

TASK = "Add a health check endpoint to the orders service"


async def main() -> None:
    """Save, recall, record, learn."""
    address = os.environ.get("LOT_ADDRESS", "127.0.0.1:50051")
    async with AsyncLotClient(address, namespace="quickstart") as client:
        await client.save_pattern(
            "Add an HTTP endpoint to a FastAPI service",
            actions=[
                {"tool": "edit", "args": {"file": "app/routes.py"}, "note": "a route, typed"},
                {"tool": "pytest", "args": {"k": "routes"}},
            ],
            language="python",
            tags=["http"],
        )

        recall = await client.recall_patterns(TASK, filter={"languages": ["python"]}, limit=3)
        best = recall.hits[0]
        print(f"nearest pattern: {best.pattern.task!r}, similarity {best.similarity:.2f}")
        print(f"it is for the same task with a probability of {best.match_probability:.2f}")

        episode = await client.start_episode(TASK, category="backend")
        async with client.record_events(episode.episode_id) as stream:
            for action in best.pattern.actions:
                data = {"tool": action.tool, "ok": True}
                await stream.send({"event_type": "tool_call", "data": data})
        ended = await client.end_episode(episode.episode_id, "SUCCEEDED", reward=1.0)
        print(f"episode {ended.episode_id} has {ended.event_count} events")

        used = best.pattern.pattern_id
        counted = await client.record_outcome(used, "SUCCESS", recall=recall, duration=12.5)
        [learned] = counted.patterns
        print(f"success rate now {learned.outcomes.success_rate:.2f}")
        print(f"used {learned.outcomes.usage_count} times")


if __name__ == "__main__":
    asyncio.run(main())
