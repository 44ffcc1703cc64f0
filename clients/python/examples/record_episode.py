# ruff: noqa: T201
"""Record an agent's work while it happens, over whatever the network does, then play it back.

Start a server with `make run`, then run this. LOT_ADDRESS names another server. Stop the server and
start it again meanwhile: the recorder waits for it, and nothing is lost.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor

from lot_client import LotClient, Recorder


class BuildError(Exception):
    """What goes wrong in this agent's work."""


def work(recorder: Recorder, role: str, steps: int, pause: float) -> None:
    """One of the agents that work on the task at once."""
    for step in range(1, steps + 1):
        data = {"tool": "pytest", "args": {"part": step}, "ok": True}
        recorder.record("tool_call", data, agent_role=role)
        time.sleep(pause)


def build(recorder: Recorder) -> None:
    """Work that fails."""
    recorder.record("tool_call", {"tool": "docker build"})
    raise BuildError("no space left")


def main() -> None:
    """Record one episode that succeeds and one that fails."""
    parser = argparse.ArgumentParser(description="Record an episode while it happens.")
    parser.add_argument("--steps", type=int, default=50, help="of each agent")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between steps")
    options = parser.parse_args()
    address = os.environ.get("LOT_ADDRESS", "127.0.0.1:50051")
    with LotClient(address, namespace="record-episode") as client:
        with client.recorder("Test the orders service", category="backend") as recorder:
            with ThreadPoolExecutor() as agents:
                for role in ("coder", "reviewer"):
                    agents.submit(work, recorder, role, options.steps, options.pause)
            stored = recorder.flush(timeout=60)
            print(f"{stored} events are stored while the episode is still running")
            recorder.succeed("all parts pass", tools_used=["pytest"], reward=1.0)
        print(f"{recorder.episode_id} ended with {recorder.stats.acknowledged} events")

        try:
            with client.recorder("Build the orders service", category="backend") as recorder:
                build(recorder)
        except BuildError:
            failed = client.get_episode(recorder.episode_id)
            print(f"{failed.episode_id} failed with {failed.error.type}: {failed.error.message}")
        last = list(client.list_episode_events(failed.episode_id))[-1]
        print(f"its last event is {last.event_type!r}")


if __name__ == "__main__":
    main()
