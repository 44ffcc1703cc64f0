"""A recorder against a real server: everything in order, once, whatever happens in between."""

import asyncio
import threading

import pytest
from cutting import Cutter
from either import Either
from lot_client import AsyncLotClient, LotClient, LotError
from lot_client.pb.lot.v1.episode_pb2 import EpisodeStatus

QUICK = {"max_delay": 0.01}


async def stored(client: AsyncLotClient, episode_id: str) -> list[float]:
    found = [e async for e in client.list_episode_events(episode_id, page_size=1000)]
    assert [event.sequence for event in found] == list(range(1, len(found) + 1))
    return [event.data["n"] for event in found]


async def test_what_is_recorded_is_stored_and_the_episode_ends(
    either: Either, address: str, namespace: str, client: AsyncLotClient
):
    async with either(address, namespace=namespace) as recording:
        options = {"category": "backend", "max_batch_events": 7}
        async with recording.recorder("Fix the login page", **options) as recorder:
            for n in range(100):
                await recorder.record("step", {"n": n}, agent_role="coder")
            assert await recorder.flush(30.0) == 100
            assert recorder.state == "RECORDING"
            await recorder.record("step", {"n": 100})
            recorder.succeed("it works", reward=0.5)

    episode = await client.get_episode(recorder.episode_id)
    assert episode == recorder.episode
    assert episode.status == EpisodeStatus.EPISODE_STATUS_SUCCEEDED
    assert (episode.summary, episode.reward, episode.category) == ("it works", 0.5, "backend")
    assert await stored(client, recorder.episode_id) == list(range(101))
    assert recorder.stats.recorded == recorder.stats.acknowledged == recorder.last_sequence == 101
    assert recorder.stats.buffered == recorder.stats.reconnects == 0
    assert recorder.state == "CLOSED"


async def test_ten_thousand_events_are_stored_once_over_cuts(
    either: Either, cutter: Cutter, namespace: str, client: AsyncLotClient
):
    async with (
        either(cutter.address, namespace=namespace) as recording,
        recording.recorder("A task", max_buffer_events=1500, **QUICK) as recorder,
    ):
        for n in range(10_000):
            await recorder.record("step", {"n": n})
            if n % 1500 == 700:
                cutter.cut()

    assert await stored(client, recorder.episode_id) == list(range(10_000))
    assert recorder.stats.reconnects >= 1
    assert recorder.episode.event_count == 10_000


async def test_an_acknowledgement_that_is_lost_stores_nothing_twice(
    either: Either, cutter: Cutter, namespace: str, client: AsyncLotClient
):
    async with (
        either(cutter.address, namespace=namespace) as recording,
        recording.recorder("A task", max_batch_events=10, **QUICK) as recorder,
    ):
        await recorder.record("step", {"n": 0})
        await recorder.flush()
        cutter.lose_next_answer()
        for n in range(1, 60):
            await recorder.record("step", {"n": n})

    assert await stored(client, recorder.episode_id) == list(range(60))
    assert recorder.stats.reconnects == 1


async def test_a_server_that_is_away_costs_nothing(
    either: Either, cutter: Cutter, namespace: str, client: AsyncLotClient
):
    async with (
        either(cutter.address, namespace=namespace) as recording,
        recording.recorder("A task", **QUICK) as recorder,
    ):
        await recorder.record("step", {"n": 0})
        await recorder.flush()
        cutter.go_away()
        for n in range(1, 500):
            await recorder.record("step", {"n": n})
        with pytest.raises(LotError, match="the flush took longer") as late:
            await recorder.flush(0.5)
        away = recorder.stats
        cutter.come_back()
        assert await recorder.flush(30.0) == 500

    assert "499 events are not acknowledged" in str(late.value)
    assert (away.acknowledged, away.buffered) == (1, 499)
    assert away.last_error is not None
    assert await stored(client, recorder.episode_id) == list(range(500))


async def test_an_episode_that_exists_goes_on_and_may_stay_open(
    either: Either, address: str, namespace: str, client: AsyncLotClient
):
    episode = await client.start_episode("A task")
    await client.record_event(episode.episode_id, {"event_type": "step", "data": {"n": 0}})
    async with either(address, namespace=namespace) as recording:
        for n in (1, 2):
            async with recording.recorder(episode_id=episode.episode_id, end=False) as recorder:
                await recorder.record("step", {"n": n})
                with pytest.raises(ValueError, match="leaves the episode open"):
                    recorder.succeed()

    after = await client.get_episode(episode.episode_id)
    assert after.status == EpisodeStatus.EPISODE_STATUS_RUNNING
    assert await stored(client, episode.episode_id) == [0, 1, 2]
    assert recorder.stats.recorded == 1


async def test_messages_keep_within_their_bytes(
    either: Either, address: str, namespace: str, client: AsyncLotClient
):
    large = "x" * 200_000
    async with (
        either(address, namespace=namespace) as recording,
        recording.recorder("A task", max_batch_bytes=300_000) as recorder,
    ):
        for n in range(40):
            await recorder.record("step", {"n": n, "text": large})

    assert await stored(client, recorder.episode_id) == list(range(40))


def test_threads_record_at_once_and_each_keeps_its_order(sync_client: LotClient):
    def work(thread: int) -> None:
        for n in range(300):
            recorder.record("step", {"n": n}, agent_role=f"agent-{thread}")

    with sync_client.recorder("A task", max_buffer_events=50, max_delay=0.001) as recorder:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    found = list(sync_client.list_episode_events(recorder.episode_id, page_size=1000))
    assert [event.sequence for event in found] == list(range(1, 2401))
    for number in range(8):
        own = [e.data["n"] for e in found if e.agent_role == f"agent-{number}"]
        assert own == list(range(300))


async def test_tasks_record_at_once_and_each_keeps_its_order(client: AsyncLotClient):
    async def work(task: int) -> None:
        for n in range(100):
            await recorder.record("step", {"n": n}, agent_role=f"agent-{task}")

    async with client.recorder("A task", max_buffer_events=20, max_delay=0.001) as recorder:
        await asyncio.gather(*(work(number) for number in range(8)))

    found = [e async for e in client.list_episode_events(recorder.episode_id, page_size=1000)]
    for number in range(8):
        own = [e.data["n"] for e in found if e.agent_role == f"agent-{number}"]
        assert own == list(range(100))


async def test_another_writer_is_not_thrown_out_again(
    either: Either, address: str, namespace: str, client: AsyncLotClient
):
    async with either(address, namespace=namespace) as recording:
        first = recording.recorder("A task", **QUICK)
        await first.__aenter__()
        await first.record("step", {"n": 0})
        await first.flush()
        second = recording.recorder(episode_id=first.episode_id, **QUICK)
        async with second:
            await second.record("step", {"n": 1})
            with pytest.raises(LotError) as caught:
                await record_until_refused(first)
            await second.record("step", {"n": 2})
        with pytest.raises(LotError) as leaving:
            await first.__aexit__(None, None, None)

    assert caught.value.reason == leaving.value.reason
    # grpc.aio may forget why a stream ended; then the next one is refused, and takes nothing back.
    assert caught.value.reason in {"WRITER_REPLACED", "EPISODE_STREAM_OPEN"}
    assert await stored(client, first.episode_id) == [0, 1, 2]


async def record_until_refused(recorder) -> None:
    while True:
        await recorder.record("step", {"n": -1})
        await recorder.flush(30.0)


async def test_an_episode_that_is_recorded_may_be_refused(
    either: Either, address: str, namespace: str
):
    async with (
        either(address, namespace=namespace) as recording,
        recording.recorder("A task") as recorder,
    ):
        with pytest.raises(LotError) as caught:
            await recording.recorder(
                episode_id=recorder.episode_id, takeover_policy="REFUSE"
            ).__aenter__()

    assert caught.value.reason == "EPISODE_STREAM_OPEN"
