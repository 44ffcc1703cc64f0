"""What a caller gave and did not get is said, and nothing takes more than its share."""

from __future__ import annotations

import pytest

from lot_grpc.pb.lot.v1 import outcome_pb2, pattern_pb2
from lot_grpc.server.servicers import episodes
from tests.server.service import Lot
from tests.server.wire import failure

FAILURE = pattern_pb2.PATTERN_TYPE_FAILURE


async def test_what_not_to_do_is_another_pattern_than_what_to_do(lot: Lot):
    do = await lot.patterns.SavePattern(pattern={"task": "Drop the table"})
    dont = await lot.patterns.SavePattern(
        pattern={"task": "drop  the TABLE", "pattern_type": FAILURE}
    )
    assert do.created
    assert dont.created
    [found] = (await lot.patterns.ListPatterns(filter={"pattern_types": [FAILURE]})).patterns
    assert found.pattern_id == dont.pattern.pattern_id
    assert (await lot.patterns.GetPattern(pattern_id=do.pattern.pattern_id)).pattern == do.pattern


async def test_a_repeat_says_which_fields_it_gave_in_vain(lot: Lot):
    first = await lot.patterns.SavePattern(
        pattern={"task": "Rename a branch", "title": "old", "tags": ["git"]}
    )
    again = await lot.patterns.SavePattern(
        pattern={"task": "rename a branch", "title": "new", "tags": ["git"], "category": "vcs"}
    )
    assert not again.created
    assert again.pattern.title == "old"
    assert again.pattern.outcomes.usage_count == 1
    assert {(notice.code, notice.field) for notice in again.notices} == {
        (outcome_pb2.NOTICE_CODE_FIELDS_UNCHANGED, "pattern.title"),
        (outcome_pb2.NOTICE_CODE_FIELDS_UNCHANGED, "pattern.category"),
    }
    assert not first.notices
    same = await lot.patterns.SavePattern(pattern={"task": "Rename a branch"})
    assert not same.notices


@pytest.mark.parametrize("field", ["patterns", "episodes", "memories"])
async def test_a_label_key_that_no_label_can_have_is_refused(lot: Lot, field: str):
    calls = {
        "patterns": lambda: lot.patterns.ListPatterns(filter={"labels": {"team=x": "y"}}),
        "episodes": lambda: lot.episodes.ListEpisodes(filter={"labels": {"team=x": "y"}}),
        "memories": lambda: lot.memories.SearchMemories(
            query="q", filter={"labels": {"team=x": "y"}}
        ),
    }
    failed = await failure(calls[field]())
    assert failed.reason == "REQUEST_INVALID"
    assert all(path.startswith("filter.labels") for path in failed.fields)


async def test_an_answer_that_is_too_large_says_what_is_left_out(lot: Lot):
    content = "." * 1_000_000
    for number in range(5):
        await lot.memories.CreateMemory(memory={"content": f"{number} {content}"})
    answer = await lot.memories.SearchMemories(query="1", limit=5)
    [notice] = answer.notices
    assert notice.code == outcome_pb2.NOTICE_CODE_RESPONSE_TRUNCATED
    assert "long fields are omitted from hits[3] on (memory.content)" in notice.message
    assert "limit, read_mask" in notice.message
    assert [bool(hit.memory.content) for hit in answer.hits] == [True, True, True, False, False]
    assert not (await lot.memories.SearchMemories(query="1", limit=3)).notices


async def test_a_stream_that_names_no_episode_gives_its_place_back(lot: Lot, monkeypatch):
    monkeypatch.setattr(episodes, "_OPEN_SECONDS", 0.05)
    call = lot.episodes.RecordEvents()
    failed = await failure(call.read())
    assert failed.reason == "STREAM_NOT_OPENED"


async def test_an_episode_recorded_with_its_end_alone_started_then(lot: Lot):
    recorded = await lot.episodes.RecordEpisode(
        episode={"task": "t", "status": "EPISODE_STATUS_SUCCEEDED", "end_time": {"seconds": 1000}}
    )
    assert recorded.episode.start_time.seconds == 1000
    assert recorded.episode.end_time.seconds == 1000


async def test_a_taken_episode_id_with_one_other_event_is_in_use(lot: Lot):
    episode = {"task": "t", "status": "EPISODE_STATUS_SUCCEEDED"}
    await lot.episodes.RecordEpisode(
        episode_id="e", episode=episode, events=[{"event_type": "a"}, {"event_type": "b"}]
    )
    failed = await failure(
        lot.episodes.RecordEpisode(
            episode_id="e", episode=episode, events=[{"event_type": "a"}, {"event_type": "c"}]
        )
    )
    assert failed.reason == "EPISODE_ID_IN_USE"
