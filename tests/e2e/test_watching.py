"""Watchers over restarts: killed, stopped, and gone on with."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from lot_grpc.pb.lot.v1 import change_pb2 as pb
from tests.e2e.conftest import Serve
from tests.e2e.process import PATIENCE
from tests.server.service import Lot, reaching

RESTARTS = 3
WRITERS = 3
GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
"""How calls end whose server was killed."""


class Feed:
    """One who watches over restarts, and dies now and then itself."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.cursor = ""
        self.events: list[pb.ChangeEvent] = []

    async def watch(self, address: str, dice: random.Random) -> None:
        """Watch until the server is gone, taking up again at the last cursor."""
        async with reaching(address) as lot:
            while True:
                try:
                    await self._read(lot.on(self.namespace), dice)
                except grpc.aio.AioRpcError as error:
                    if error.code() in GONE:
                        return
                    raise

    async def _read(self, lot: Lot, dice: random.Random) -> None:
        call = lot.memories.WatchChanges(after_cursor=self.cursor)
        count = dice.randrange(5, 40)
        async for message in call:
            for event in message.change_events:
                self.events.append(event)
                if event.cursor:
                    self.cursor = event.cursor
                count -= 1
                if not count:
                    call.cancel()
                    return
            self.cursor = message.cursor


class OpenStream:
    """Stores, changes and deletes things of its own; knows what was acknowledged."""

    def __init__(self, lot: Lot, name: str, dice: random.Random) -> None:
        self.lot = lot
        self.name = name
        self.dice = dice
        self.history: dict[str, list[str]] = {}
        self.last: dict[str, Any] = {}
        self.doubt: set[str] = set()
        self.count = 0

    async def write(self) -> None:
        """Until the server is gone."""
        while True:
            identity = f"{self.name}-{self.count}"
            try:
                await self._step(identity)
            except grpc.aio.AioRpcError as error:
                if error.code() not in GONE:
                    raise
                self.doubt.add(identity)
                return

    async def _step(self, identity: str) -> None:
        lot, self.count = self.lot, self.count + 1
        kind = self.dice.choice(["pattern", "memory", "episode"])
        if kind == "pattern":
            stored = await lot.patterns.SavePattern(
                pattern={"task": identity}, pattern_id=identity, dedupe="DEDUPE_NONE"
            )
            self._note(identity, "stored", stored.pattern)
            used = await lot.patterns.RecordOutcome(
                pattern_ids=[identity], query="q", outcome="OUTCOME_SUCCESS"
            )
            self._note(identity, "updated", used.patterns[0])
            if self.dice.random() < 0.4:
                await lot.patterns.DeletePattern(pattern_id=identity)
                self._note(identity, "deleted", None)
        elif kind == "memory":
            made = await lot.memories.CreateMemory(memory={"content": identity}, memory_id=identity)
            self._note(identity, "stored", made.memory)
            if self.dice.random() < 0.4:
                await lot.memories.DeleteMemory(memory_id=identity)
                self._note(identity, "deleted", None)
        else:
            began = await lot.episodes.StartEpisode(episode={"task": identity}, episode_id=identity)
            self._note(identity, "stored", began.episode)
            done = await lot.episodes.EndEpisode(
                episode_id=identity, status="EPISODE_STATUS_SUCCEEDED"
            )
            self._note(identity, "updated", done.episode)

    def _note(self, identity: str, what: str, thing: Any) -> None:
        self.history.setdefault(identity, []).append(what)
        self.last[identity] = thing


@pytest.mark.slow
async def test_watchers_over_three_restarts_see_everything_at_least_once(serve: Serve, data: Path):
    dice = random.Random(11)
    feeds = [Feed("team"), Feed("team")]
    history: dict[str, list[str]] = {}
    last: dict[str, Any] = {}
    doubt: set[str] = set()
    for turn in range(RESTARTS + 1):
        server = serve(data)
        watches = [asyncio.create_task(feed.watch(server.address, dice)) for feed in feeds]
        async with reaching(server.address) as lot:
            writers = [OpenStream(lot.on("team"), f"t{turn}w{n}", dice) for n in range(WRITERS)]
            writing = [asyncio.create_task(writer.write()) for writer in writers]
            await asyncio.sleep(dice.uniform(0.5, 1.5))
            if turn % 2:
                assert await asyncio.to_thread(server.stop) == 0
            else:
                await asyncio.to_thread(server.kill)
            await asyncio.gather(*writing)
        await asyncio.gather(*watches)
        for writer in writers:
            history |= writer.history
            last |= writer.last
            doubt |= writer.doubt
    server = serve(data)
    async with reaching(server.address) as lot:
        team = lot.on("team")
        await team.memories.CreateMemory(memory={"content": "the end"}, memory_id="the-end")
        for feed in feeds:
            call = team.memories.WatchChanges(after_cursor=feed.cursor)
            while not feed.events or feed.events[-1].id != "the-end":
                message = await asyncio.wait_for(call.read(), PATIENCE)
                feed.events += message.change_events
            call.cancel()
    assert len(history) > 20
    for feed in feeds:
        check(feed, history, last, doubt)


def check(feed: Feed, history: dict[str, list[str]], last: dict[str, Any], doubt: set[str]) -> None:
    """Each thing was told, its last state last, and nothing of it after its delete."""
    by_id: dict[str, list[pb.ChangeEvent]] = {}
    for event in feed.events:
        by_id.setdefault(event.id, []).append(event)
    assert history.keys() <= by_id.keys()
    for identity, steps in history.items():
        events = by_id[identity]
        types = [event.type for event in events]
        if "deleted" in steps:
            assert types[-1] == pb.CHANGE_TYPE_DELETED, identity
        elif identity not in doubt:  # what failed may have been carried out
            [final] = events[-1:]
            thing = getattr(final, final.WhichOneof("payload") or "none")
            assert thing == last[identity], identity
        times = [(event.change_time.seconds, event.change_time.nanos) for event in events]
        assert times == sorted(times), f"out of order: {identity}"
