"""DeleteEpisode on the wire."""

from __future__ import annotations

import pytest

from lot_grpc.pb.lot.v1 import episode_service_pb2 as pb
from tests.server.wire import failure


async def test_an_episode_is_deleted_with_its_events(lot):
    events = [{"event_type": "step"}] * 3
    await lot.episodes.RecordEpisode(
        episode={"task": "t", "status": 2}, events=events, episode_id="e"
    )
    answer = await lot.episodes.DeleteEpisode(episode_id="e")
    assert (answer.deleted, answer.deleted_event_count) == (True, 3)
    for call in (
        lot.episodes.GetEpisode(episode_id="e"),
        lot.episodes.ListEpisodeEvents(episode_id="e"),
        lot.episodes.DeleteEpisode(episode_id="e"),
    ):
        failed = await failure(call)
        assert (failed.code, failed.reason) == ("NOT_FOUND", "EPISODE_NOT_FOUND")
    answer = await lot.episodes.DeleteEpisode(episode_id="e", allow_missing=True)
    assert (answer.deleted, answer.deleted_event_count) == (False, 0)
    assert not (await lot.episodes.ListEpisodes()).episodes


@pytest.mark.timeout(30)
async def test_the_stream_of_a_deleted_episode_ends_while_it_waits(lot):
    await lot.episodes.StartEpisode(episode={"task": "t"}, episode_id="e")
    stream = lot.episodes.RecordEvents()
    await stream.write(pb.RecordEventsRequest(namespace=lot.namespace, episode_id="e"))
    await stream.read()
    await lot.episodes.DeleteEpisode(episode_id="e")
    failed = await failure(stream.read())
    assert (failed.code, failed.reason) == ("NOT_FOUND", "EPISODE_NOT_FOUND")
