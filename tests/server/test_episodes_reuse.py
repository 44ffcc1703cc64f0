"""``used_episode_ids`` and ``reused_count`` on the wire."""

from __future__ import annotations

import pytest

from tests.server.episodes import RUNNING, SUCCEEDED, listed, started
from tests.server.wire import failure


async def test_an_end_and_a_recording_count_the_use_of_what_they_name(lot):
    for name in ("u", "v"):
        await started(lot, "what is used", episode_id=name)
    await started(lot, episode_id="e")
    answer = await lot.episodes.EndEpisode(
        episode_id="e", status=SUCCEEDED, used_episode_ids=["u", "v"]
    )
    assert answer.episode.used_episode_ids == ["u", "v"]
    recorded = await lot.episodes.RecordEpisode(
        episode={"task": "t", "status": SUCCEEDED, "used_episode_ids": ["v"]}
    )
    assert recorded.episode.used_episode_ids == ["v"]
    wanted = {"u": 1, "v": 2}
    for name, count in wanted.items():
        got = (await lot.episodes.GetEpisode(episode_id=name)).episode
        assert (got.reused_count, got.status) == (count, RUNNING)
    hits = (await lot.episodes.RecallEpisodes(query="what is used", limit=2)).hits
    assert {hit.episode.episode_id: hit.episode.reused_count for hit in hits} == wanted


async def test_a_count_leaves_the_etag_alone_and_is_no_input(lot):
    before = await started(lot, episode_id="u", reused_count=7)
    assert before.reused_count == 0
    for _ in range(2):
        await lot.episodes.RecordEpisode(
            episode={"task": "t", "status": SUCCEEDED, "used_episode_ids": ["u"]}, request_id="r"
        )
    after = (await lot.episodes.GetEpisode(episode_id="u")).episode
    assert (after.reused_count, after.etag) == (1, before.etag)
    assert after.update_time == before.update_time


async def test_one_that_is_not_there_is_named_with_its_place(lot):
    await started(lot, episode_id="u")
    await started(lot, episode_id="e")
    failed = await failure(
        lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED, used_episode_ids=["u", "nope"])
    )
    assert (failed.code, failed.reason) == ("NOT_FOUND", "EPISODE_NOT_FOUND")
    assert failed.metadata == {
        "namespace": lot.namespace, "id": "nope", "field": "used_episode_ids[1]",
    }  # fmt: skip
    assert (await lot.episodes.GetEpisode(episode_id="e")).episode.status == RUNNING
    failed = await failure(
        lot.episodes.RecordEpisode(
            episode={"task": "t", "status": SUCCEEDED, "used_episode_ids": ["nope"]}
        )
    )
    assert failed.metadata["field"] == "episode.used_episode_ids[0]"
    assert sorted(await listed(lot)) == ["e", "u"]


@pytest.mark.parametrize(
    ("named", "path"),
    [
        (["no id"], "used_episode_ids[0]"),
        (["u", "u"], "used_episode_ids"),
        ([f"e{n}" for n in range(101)], "used_episode_ids"),
        (["e"], "used_episode_ids[0]"),
    ],
)
async def test_names_against_the_contract_are_refused(lot, named, path):
    for name in ("u", "e"):
        await started(lot, episode_id=name)
    failed = await failure(
        lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED, used_episode_ids=named)
    )
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_INVALID")
    assert set(failed.fields) == {path}
    assert (await lot.episodes.GetEpisode(episode_id="e")).episode.status == RUNNING
