"""The store that stage 4 left behind opens as it is, and who watched it goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio

from lot_grpc.domain.change import ChangeType
from lot_grpc.domain.episode import EpisodeStatus
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.embedding.hashing import HashingEmbedder
from lot_grpc.server.cursors import cursor_from_token
from lot_grpc.services.backfill import bring_up_to_date
from lot_grpc.services.build import Services
from lot_grpc.services.changes.events import ChangeEvent, WatchRequest
from lot_grpc.services.episodes.event_recorder import Takeover
from lot_grpc.services.episodes.replayer import Replay
from lot_grpc.services.error_backfill import read_errors_anew
from tests.contract.clock import FixedClock
from tests.fixtures.archive import unpack
from tests.fixtures.stage_1 import NS, open_services
from tests.fixtures.stage_4 import ARCHIVE, CURSOR
from tests.services.invariants import check_invariants

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(module_path: Path) -> AsyncIterator[Services]:
    unpack(ARCHIVE, module_path)
    clock = FixedClock()
    clock.advance(26 * 3600)
    store, opened = await open_services(module_path, clock)
    assert await bring_up_to_date(store, HashingEmbedder()) == 19  # all that has terms
    assert await read_errors_anew(store, HashingEmbedder()) > 0
    await opened.housekeeping.roll_forward(starting=True)
    await check_invariants(store, NS)
    yield opened
    await store.close()


async def test_episodes_are_as_they_stood(services: Services) -> None:
    left = await services.episodes.get(NS, "left")
    assert (left.status, left.event_count) == (EpisodeStatus.ABANDONED, 2)
    streamed = await services.episodes.get(NS, "streamed")
    assert (streamed.status, streamed.event_count) == (EpisodeStatus.FAILED, 5)
    assert (await services.episodes.get(NS, "at-it")).event_count == 3
    failures = await services.failures.analyze(NS, EpisodeFilter(), 10)
    assert failures.failed_count == 1


async def test_who_watched_goes_on(services: Services) -> None:
    cursor = cursor_from_token(CURSOR.read_text().strip())
    told: dict[str, list[ChangeEvent]] = {}
    async with aclosing(services.change_watcher.watch(WatchRequest(NS, cursor=cursor))) as news:
        while "at-it" not in told:
            for change in (await anext(news)).changes:
                told.setdefault(change.id, []).append(change)
    assert {one: changes[-1].type for one, changes in told.items()} == {
        "move-1": ChangeType.UPDATED,  # its use was reported
        "streamed": ChangeType.STORED,
        "retry": ChangeType.UPDATED,
        "books-8": ChangeType.DELETED,
        "at-it": ChangeType.STORED,
    }


async def test_what_runs_goes_on_and_is_replayed(services: Services) -> None:
    writer = await services.recorder.open(NS, "at-it", Takeover.TAKE_OVER)
    assert writer.last == 3
    await services.recorder.close(writer)
    async with aclosing(services.replaying.replay(NS, "streamed", Replay())) as batches:
        numbers = [event.sequence async for batch in batches for event in batch.events]
    assert numbers == [1, 2, 3, 4, 5]
