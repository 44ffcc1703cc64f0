from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.errors import EventConflictError, EventSequenceGapError
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.records.collections import EVENTS
from tests.services.world import NS, World, events, open_world


class Numbers:
    """A store in which the events 1 to ``last`` are there, and looks are counted."""

    def __init__(self, last: int) -> None:
        from lot_grpc.services.records.episodes import event_point

        self.there = {event_point(NS, "e", n) for n in range(1, last + 1)}
        self.looks = 0

    async def scroll(self, collection, namespace, where, *, limit, payload):
        from lot_grpc.ports import IdIn, Record

        (ids,) = where  # without a second process no epoch is asked for
        assert isinstance(ids, IdIn)
        assert len(ids.ids) <= limit
        self.looks += 1
        return [Record(one, NS, {}) for one in ids.ids if one in self.there]


@given(st.data())
def test_the_last_number_is_found_whatever_is_known_of_it(data):
    last = data.draw(
        st.integers(0, 70) | st.integers(0, 5000) | st.sampled_from([63, 64, 65, 1023, 1024, 4097])
    )
    known = data.draw(st.integers(0, last))
    store = Numbers(last)
    found = asyncio.run(EventLog(store).last_sequence(NS, "e", known))  # type: ignore[arg-type]
    assert found == last
    assert store.looks <= 5, "a look is a round trip to the store"


@pytest.mark.parametrize("last", range(200))
def test_the_last_number_of_a_short_episode_is_found(last):
    assert asyncio.run(EventLog(Numbers(last)).last_sequence(NS, "e")) == last  # type: ignore[arg-type]


@pytest.fixture
async def log(world: World) -> EventLog:
    return EventLog(world.store)


async def test_the_last_number_is_that_of_the_episode_and_namespace_alone(log):
    await log.append(NS, "e", events(1, 100), 0, 0)
    await log.append(NS, "f", events(1, 7), 0, 0)
    await log.append("other", "e", events(1, 9), 0, 0)
    assert await log.last_sequence(NS, "e") == 100
    assert await log.last_sequence(NS, "f") == 7
    assert await log.last_sequence("other", "e") == 9
    assert await log.last_sequence(NS, "g") == 0


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 9), st.booleans()), max_size=12),
)
def test_batches_are_taken_as_a_list_that_only_grows_at_its_end(batches):
    """Any batches at all against the simplest model: a list of texts."""
    asyncio.run(_against_model(batches))


async def _against_model(batches: list[tuple[int, int, bool]]) -> None:
    from tests.services.world import event

    log = EventLog((await open_world()).store)
    model: list[str] = []
    for first, length, other in batches:
        batch = [
            event(n, f"event {n}{' changed' if other and n == first else ''}")
            for n in range(first, first + length)
        ]
        expected: object = None
        before = model
        grown = list(model)
        for one in batch:
            text = (one.data or b"").decode()
            if one.sequence > len(grown) + 1:
                expected = EventSequenceGapError
                break
            if one.sequence == len(grown) + 1:
                grown.append(text)
            elif grown[one.sequence - 1] != text:
                expected = EventConflictError
                break
        if expected is None:
            model = grown
            assert await log.append(NS, "e", batch, len(before), 1) == len(model)
        else:
            with pytest.raises((EventSequenceGapError, EventConflictError)):
                await log.append(NS, "e", batch, len(before), 1)
        found = await log.read(NS, "e", 0, 1000)
        assert [(one.data or b"").decode() for one in found] == model
        assert await log.last_sequence(NS, "e") == len(model)


async def test_events_are_removed_by_number_and_writer(world, log):
    await log.append(NS, "e", events(1, 5), 0, 1)
    await log.append(NS, "e", events(6, 9), 5, 2)
    assert await log.remove(NS, "e", 1, 9, epoch=2) == 4
    assert await log.last_sequence(NS, "e") == 5
    assert await log.remove(NS, "e", 1, 2000) == 5
    assert await world.store.count(EVENTS, NS) == 0
