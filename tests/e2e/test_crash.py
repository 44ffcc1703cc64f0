"""SIGKILL in the middle of mixed writing, again and again, on one data folder."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
from pathlib import Path

import grpc.aio
import pytest

from tests.e2e.crash_checks import check, check_store
from tests.e2e.crash_clients import HOT, Round
from tests.e2e.process import PATIENCE, ROOT, command, environment, paths_below, wait_for
from tests.sampling import one_in
from tests.server.service import Lot, reaching, serving
from tests.server.wire import until

SEED = int(os.environ.get("LOT_TEST_CRASH_SEED", random.randrange(2**32)))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("rounds", one_in(2, [3, 20]))
async def test_nothing_acknowledged_is_lost_or_counted_twice(rounds, serve, data):
    print(f"LOT_TEST_CRASH_SEED={SEED}")
    dice = random.Random(SEED)
    done: list[Round] = []
    doubtful = 0
    for _ in range(rounds):
        server = serve(data)
        async with reaching(server.address) as lot:
            if done:
                await check(lot.on(done[-1].lot.namespace), done[-1])
            round_ = Round(lot, dice.randrange(2**32))
            await round_.prepare()
            writing = asyncio.create_task(round_.write())
            await asyncio.sleep(dice.uniform(0.05, 1.0))
            server.kill()
            await asyncio.wait_for(writing, PATIENCE)
        done.append(round_)
        doubtful += sum(len(book.doubt) for book in round_.books)
    server = serve(data)
    async with reaching(server.address) as lot:
        await check(lot.on(done[-1].lot.namespace), done[-1])
        for round_ in done[:-1]:  # and what was once settled has stayed so
            await check(lot.on(round_.lot.namespace), round_)
    assert server.stop() == 0
    outcomes, events = await check_store(data)
    requests = sum(len(book.sent) for round_ in done for book in round_.books)
    print(
        f"{rounds} kills: {requests} requests, {doubtful} of them in doubt, "
        f"{outcomes} outcomes, {events} events: all there, once"
    )


async def _deleted(lot: Lot, round_: Round) -> None:
    [first, *_] = round_.patterns.acked.values()
    await lot.patterns.DeletePattern(pattern_id=first.pattern.pattern_id)


async def _counted(lot: Lot, round_: Round) -> None:
    count = len(round_.outcomes.doubt) + 1
    for _ in range(count):
        await lot.patterns.RecordOutcome(pattern_ids=list(HOT), outcome=1)


async def _added(lot: Lot, round_: Round) -> None:
    await lot.episodes.RecordEvent(episode_id="unary", event={"event_type": "event-0-0"})


async def _stored(lot: Lot, round_: Round) -> None:
    await lot.patterns.SavePattern(pattern={"task": "save-0-0"}, dedupe=2)
    await lot.patterns.SavePattern(pattern={"task": "save-0-0"}, dedupe=2)


@pytest.mark.parametrize("harm", [None, _deleted, _counted, _added, _stored])
async def test_the_checks_notice_what_is_lost_or_there_twice(harm):
    async with serving() as lot:
        round_ = Round(lot, 1)
        await round_.prepare()
        writing = asyncio.create_task(round_.write())
        await until(lambda: all(len(book.acked) > 2 for book in round_.books))
        writing.cancel()
        await asyncio.wait([writing])
        await until(lambda: not lot.server or lot.server.calls_in_flight == 0)
        if harm is None:
            await check(lot, round_)
            return
        await harm(lot, round_)
        with pytest.raises((AssertionError, KeyError, grpc.aio.AioRpcError)):
            await check(lot, round_)


@pytest.mark.slow
async def test_a_server_that_is_killed_while_it_starts_starts_the_next_time(serve, data, tmp_path):
    dice = random.Random(SEED)
    for number in range(3):
        with (tmp_path / "killed.log").open("a") as log:
            process = subprocess.Popen(
                command("serve"),
                env=environment(data),
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        await _until_begun(process, data, number)
        await asyncio.sleep(dice.uniform(0, 0.5))
        process.kill()
        process.wait(30)
    server = serve(data)
    async with reaching(server.address) as lot:
        assert (await lot.patterns.SavePattern(pattern={"task": "t"})).created
        assert (await lot.admin.CheckReady()).ready


async def _until_begun(process: subprocess.Popen[bytes], data: Path, number: int) -> None:
    """Until it has begun on its folder, or on the next collections of it."""

    def begun() -> int:
        return sum(path.parent.parent == data for path in paths_below(data))

    wait_for(lambda: process.poll() is not None or begun() > 2 * number)
