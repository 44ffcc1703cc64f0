"""Streams of events: in order, once, over whatever happens to the connection."""

import asyncio

import pytest
from cutting import Cutter
from lot_client import AsyncLotClient, LotError


def events(first: int, last: int) -> list[dict]:
    return [{"event_type": "step", "data": {"n": n}} for n in range(first, last + 1)]


async def stored(client: AsyncLotClient, episode_id: str) -> list[tuple[int, float]]:
    return [
        (event.sequence, event.data["n"])
        async for event in client.list_episode_events(episode_id, page_size=1000)
    ]


def numbered(last: int) -> list[tuple[int, float]]:
    return [(n, float(n)) for n in range(1, last + 1)]


async def test_events_are_stored_in_order_however_they_are_sent(client: AsyncLotClient):
    episode = await client.start_episode("A task")
    async with client.record_events(episode.episode_id) as stream:
        assert await stream.send(events(1, 1)[0]) == 1
        assert await stream.send(events(2, 2500)) == 2500

    assert await stored(client, episode.episode_id) == numbered(2500)


async def test_an_event_that_breaks_the_contract_does_not_hold_up_those_behind_it(
    client: AsyncLotClient,
):
    episode = await client.start_episode("A task")
    async with client.record_events(episode.episode_id) as stream:
        await stream.send(events(1, 2))
        for bad in ({"x": "\0"}, {"x": float("nan")}, {"x": "y" * 300_000}):
            with pytest.raises(ValueError, match="data"):
                await stream.send([events(3, 3)[0], {"event_type": "step", "data": bad}])
        assert stream.unacknowledged == []
        await stream.send(events(3, 4))

    assert await stored(client, episode.episode_id) == numbered(4)


async def test_a_second_stream_goes_on_where_the_first_stopped(client: AsyncLotClient):
    episode = await client.start_episode("A task")
    for part in (events(1, 3), events(4, 6)):
        async with client.record_events(episode.episode_id, takeover_policy="REFUSE") as stream:
            await stream.send(part)

    assert await stored(client, episode.episode_id) == numbered(6)


async def test_the_episode_is_free_once_the_stream_is_closed(client: AsyncLotClient):
    episode = await client.start_episode("A task")
    async with client.record_events(episode.episode_id) as stream:
        await stream.send(events(1, 1))
    event = await client.record_event(episode.episode_id, {"event_type": "unary"})

    assert event.sequence == 2


async def test_a_cut_connection_is_made_good(cut_client: AsyncLotClient, cutter: Cutter):
    episode = await cut_client.start_episode("A task")
    async with cut_client.record_events(episode.episode_id) as stream:
        for first in range(1, 100, 10):
            await stream.send(events(first, first + 9))
            cutter.cut()

    assert await stored(cut_client, episode.episode_id) == numbered(100)
    assert cutter.connections > 1


async def test_a_lost_acknowledgement_stores_nothing_twice(
    cut_client: AsyncLotClient, cutter: Cutter
):
    episode = await cut_client.start_episode("A task")
    async with cut_client.record_events(episode.episode_id) as stream:
        await stream.send(events(1, 10))
        cutter.lose_next_answer()
        assert await stream.send(events(11, 20)) == 20
        assert stream.unacknowledged == []

    assert await stored(cut_client, episode.episode_id) == numbered(20)
    assert cutter.connections == 2


async def test_a_cancelled_send_is_finished_by_the_next(cutter: Cutter, namespace: str):
    async with AsyncLotClient(cutter.address, namespace=namespace) as client:
        episode = await client.start_episode("A task")
        async with client.record_events(episode.episode_id) as stream:
            await stream.send(events(1, 1))
            cutter.lose_next_answer()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await stream.send(events(2, 2))
            waiting = [event.sequence for event in stream.unacknowledged]
            await stream.send(events(3, 3))
        found = await stored(client, episode.episode_id)

    assert waiting == [2]
    assert found == numbered(3)


async def test_a_replaced_writer_is_told_and_does_not_take_the_episode_back(
    client: AsyncLotClient,
):
    episode = await client.start_episode("A task")
    first = client.record_events(episode.episode_id)
    await first.__aenter__()
    await first.send(events(1, 1))
    async with client.record_events(episode.episode_id) as second:
        with pytest.raises(LotError) as caught:
            await first.send(events(2, 2))
        await second.send(events(2, 2))
    await first.__aexit__(LotError, caught.value, None)

    assert caught.value.reason in {"WRITER_REPLACED", "EPISODE_STREAM_OPEN"}
    assert await stored(client, episode.episode_id) == numbered(2)


async def test_an_ended_episode_takes_no_more(client: AsyncLotClient):
    episode = await client.start_episode("A task")
    stream = client.record_events(episode.episode_id)

    async def end_and_send() -> None:
        async with stream:
            await client.end_episode(episode.episode_id, "SUCCEEDED")
            await stream.send(events(1, 1))

    with pytest.raises(LotError) as sending:
        await end_and_send()
    with pytest.raises(LotError) as opening:
        await client.record_events(episode.episode_id).__aenter__()

    assert sending.value.reason == opening.value.reason == "EPISODE_ENDED"
    assert sending.value.metadata["status"] == "SUCCEEDED"
    assert [event.sequence for event in stream.unacknowledged] == [1]
