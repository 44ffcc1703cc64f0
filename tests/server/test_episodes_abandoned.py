"""ABANDONED on the wire: set by the server, undone by whoever comes late."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lot_grpc.pb.lot.v1 import episode_service_pb2 as pb
from tests.server.episodes import (
    FAILED,
    RUNNING,
    SUCCEEDED,
    P,
    events_of,
    listed,
    recalled,
    started,
)
from tests.server.service import Lot, serving

ABANDONED = P.EPISODE_STATUS_ABANDONED
DAY = 24 * 3600


@pytest.fixture
async def lot() -> AsyncIterator[Lot]:
    """A service whose clock can be moved, where ``e`` has two events and was abandoned."""
    async with serving() as service:
        await started(service, "tidy the shed", episode_id="e")
        for _ in range(2):
            await service.episodes.RecordEvent(episode_id="e", event={"event_type": "x"})
        await pass_a_day(service)
        yield service


async def pass_a_day(lot: Lot) -> None:
    assert lot.own_clock is not None
    assert lot.own_services is not None
    lot.own_clock.advance(DAY)
    await lot.own_services.housekeeping.sweep(lambda *told: None)


async def got(lot: Lot) -> P.Episode:
    return (await lot.episodes.GetEpisode(episode_id="e")).episode


async def test_it_is_told_with_the_time_of_its_last_activity(lot):
    episode = await got(lot)
    assert (episode.status, episode.event_count) == (ABANDONED, 2)
    last = (await events_of(lot, "e"))[-1]
    assert episode.end_time == last.record_time
    assert episode.update_time.seconds == episode.end_time.seconds + DAY
    listing = (await lot.episodes.ListEpisodes()).episodes
    hit = (await lot.episodes.RecallEpisodes(query="tidy the shed")).hits[0].episode
    assert list(listing) == [hit] == [episode]


async def test_a_late_event_reopens_it(lot):
    answer = await lot.episodes.RecordEvent(episode_id="e", event={"event_type": "late"})
    assert answer.event.sequence == 3
    episode = await got(lot)
    assert (episode.status, episode.event_count) == (RUNNING, 3)
    assert not episode.HasField("end_time")
    await pass_a_day(lot)
    assert ((await got(lot)).status, (await got(lot)).event_count) == (ABANDONED, 3)


async def test_a_late_stream_reopens_it_and_keeps_it_open_as_long_as_it_is(lot):
    stream = lot.episodes.RecordEvents()
    await stream.write(pb.RecordEventsRequest(namespace=lot.namespace, episode_id="e"))
    assert (await stream.read()).last_sequence == 2
    assert (await got(lot)).status == RUNNING
    await pass_a_day(lot)
    assert (await got(lot)).status == RUNNING
    await stream.write(
        pb.RecordEventsRequest(events=[P.EpisodeEvent(sequence=3, event_type="late")])
    )
    assert (await stream.read()).last_sequence == 3
    await stream.done_writing()
    await stream.read()
    await pass_a_day(lot)
    assert (await got(lot)).status == ABANDONED


@pytest.mark.parametrize("status", [SUCCEEDED, FAILED])
async def test_a_late_end_ends_it(lot, status):
    ended = (await lot.episodes.EndEpisode(episode_id="e", status=status)).episode
    assert (ended.status, ended.event_count) == (status, 2)
    assert ended.end_time.seconds == (await got(lot)).update_time.seconds
    await pass_a_day(lot)
    assert (await got(lot)).status == status


async def test_filters_find_it_by_its_status_and_its_end(lot):
    await started(lot, "tidy the shed", episode_id="running")
    for requested, wanted in (
        ({"statuses": [ABANDONED]}, ["e"]),
        ({"statuses": [RUNNING]}, ["running"]),
        ({"statuses": [SUCCEEDED, FAILED]}, []),
        ({"ended_after": {"seconds": 1}}, ["e"]),
        ({"ended_before": {"seconds": 2**33}}, ["e"]),
    ):
        assert await listed(lot, filter=requested) == wanted
        assert await recalled(lot, "tidy the shed", filter=requested) == wanted
    assert await recalled(lot, "tidy the shed", success_only=True) == []
    await lot.episodes.RecordEvent(episode_id="e", event={"event_type": "late"})
    assert await listed(lot, filter={"ended_after": {"seconds": 1}}) == []


async def test_trends_and_reports_leave_it_out(lot):
    await lot.episodes.RecordEpisode(episode={"task": "t", "status": SUCCEEDED})
    report = (await lot.learning.GetPerformanceReport()).report
    assert (report.total_count, report.success_count) == (1, 1)
    (trend,) = (await lot.learning.GetTrends()).trends
    assert trend.total_count == 1
    alone = {"statuses": [ABANDONED]}
    assert not (await lot.learning.GetTrends(filter=alone)).trends


async def test_it_is_deleted_with_its_events(lot):
    answer = await lot.episodes.DeleteEpisode(episode_id="e")
    assert (answer.deleted, answer.deleted_event_count) == (True, 2)
    assert await listed(lot) == []
