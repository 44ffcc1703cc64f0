"""RecallEpisodes on the wire, and every filter of recalls and lists."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import outcome_pb2
from tests.server.episodes import FAILED, RUNNING, START, SUCCEEDED, P, listed, recalled, started
from tests.server.wire import failure


async def test_the_nearest_comes_first_and_five_are_the_default(lot):
    for n in range(6):
        await started(lot, f"water garden bed number {n}")
    await started(lot, "rotate the signing keys", context="of the gateway", episode_id="near")
    answer = await lot.episodes.RecallEpisodes(
        query="rotate the signing keys of the gateway", explain=True
    )
    assert len(answer.hits) == 5
    best = answer.hits[0]
    assert best.episode.episode_id == "near"
    assert best.similarity > 0.8
    assert best.score == pytest.approx(best.similarity)  # the nearest by words as well
    assert [part.name for part in best.score_parts] == ["similarity", "bm25", "learned"]
    assert answer.retrieval_id
    query = "rotate the signing keys of the gateway"
    assert await recalled(lot, query, min_similarity=0.85) == ["near"]


async def test_success_only_leaves_the_others_out(lot):
    for name, status in (("good", SUCCEEDED), ("bad", FAILED)):
        await lot.episodes.RecordEpisode(episode={"task": "t", "status": status}, episode_id=name)
    await started(lot, "t", episode_id="running")
    assert set(await recalled(lot, "t")) == {"good", "bad", "running"}
    assert await recalled(lot, "t", success_only=True) == ["good"]
    both = {"statuses": [FAILED]}
    assert await recalled(lot, "t", success_only=True, filter=both) == []


# --- what the summary says --------------------------------------------------------------------

SUMMARY = "Implemented JWT authentication with refresh tokens in Redis"
ASKED = "JWT authentication with Redis"


@pytest.mark.parametrize("whole", [True, False], ids=["recorded whole", "started and ended"])
async def test_an_episode_is_found_by_what_its_summary_says(lot, whole):
    await started(lot, "Authentication of the printer", episode_id="other")
    task = "Work on ticket 4711"
    if whole:
        episode = {"task": task, "status": SUCCEEDED, "summary": SUMMARY}
        await lot.episodes.RecordEpisode(episode=episode, episode_id="e")
    else:
        await started(lot, task, episode_id="e", tags=["kept"])
        await lot.episodes.RecordEvent(episode_id="e", event={"event_type": "step"})
        assert await recalled(lot, ASKED, min_similarity=0.5) == []
        for _ in range(2):
            await lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED, summary=SUMMARY)
        [stored] = await listed(lot, filter={"tags_any": ["kept"]})
        assert stored == "e"
    answer = await lot.episodes.RecallEpisodes(query=ASKED, explain=True)
    assert answer.hits[0].episode.episode_id == "e"
    assert answer.hits[0].similarity > 0.5
    assert (await recalled(lot, task))[0] == "e", "and by its task as before"
    context = await lot.memories.GetTaskContext(task=ASKED)
    assert context.episodes[0].episode.episode_id == "e"


async def test_the_summary_takes_nothing_from_the_likeness_of_tasks(lot):
    for name, summary in (("with", "All green: " + "the printer works again. " * 50), ("bare", "")):
        episode = {"task": "rotate the signing keys", "status": SUCCEEDED, "summary": summary}
        await lot.episodes.RecordEpisode(episode=episode, episode_id=name)
    answer = await lot.episodes.RecallEpisodes(query="rotate the signing keys")
    assert {hit.episode.episode_id for hit in answer.hits} == {"with", "bare"}
    assert all(hit.similarity == pytest.approx(1) for hit in answer.hits)


async def test_the_task_may_be_left_out_where_a_summary_says_it(lot):
    given = {"status": SUCCEEDED, "summary": SUMMARY, "task_id": "task-123"}
    requested = {"episode": given, "episode_id": "e", "request_id": "r"}
    first = await lot.episodes.RecordEpisode(**requested)
    assert (first.episode.task, first.episode.summary) == (SUMMARY, SUMMARY)
    assert await lot.episodes.RecordEpisode(**requested) == first
    assert not (await lot.episodes.RecordEpisode(episode=given, episode_id="e")).created
    assert await recalled(lot, ASKED, min_similarity=0.5) == ["e"]
    advice = await lot.learning.GetRecommendations(task=SUMMARY)
    assert [one.episode.episode_id for one in advice.similar_episodes] == ["e"]
    page = (await lot.memories.GetTaskContext(task=ASKED)).prompt_text
    assert page.count(SUMMARY) == 1
    for call in (
        lot.episodes.RecordEpisode(episode={"status": SUCCEEDED, "task_id": "task-124"}),
        lot.episodes.StartEpisode(episode={"summary": SUMMARY}),
    ):
        assert list((await failure(call)).fields) == ["episode.task"]


async def test_a_summary_that_is_not_read_to_its_end_is_stored_whole_and_told(lot):
    summary = "word " * 9000
    await started(lot, "t", episode_id="e")
    ended = await lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED, summary=summary)
    assert ended.episode.summary == summary
    assert [one.field for one in ended.notices] == ["summary"]
    episode = {"task": "t", "status": SUCCEEDED, "summary": summary}
    recorded = await lot.episodes.RecordEpisode(episode=episode)
    assert [one.field for one in recorded.notices] == ["episode.summary"]


ENDED = START + timedelta(hours=1)
FILTERS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"statuses": [FAILED]}, {"status": FAILED}, {}),
    ({"statuses": [SUCCEEDED, RUNNING]}, {}, {"status": FAILED}),
    ({"categories": ["a", "b"]}, {"category": "b"}, {"category": "c"}),
    ({"task_types": ["a.b"]}, {"task_type": "a.b"}, {"task_type": "a"}),
    ({"task_ids": ["T-1"]}, {"task_id": "T-1"}, {"task_id": "T-10"}),
    (
        {"complexities": [outcome_pb2.COMPLEXITY_HIGH]},
        {"complexity": outcome_pb2.COMPLEXITY_HIGH},
        {"complexity": outcome_pb2.COMPLEXITY_LOW},
    ),
    ({"approaches": ["parallel"]}, {"approach": "parallel"}, {"approach": "x"}),
    ({"agent_roles": ["builder"]}, {"agent_role": "builder"}, {}),
    ({"tools_any": ["jq", "sed"]}, {"tools_used": ["curl", "jq"]}, {"tools_used": ["curl"]}),
    ({"tags_any": ["x", "y"]}, {"tags": ["y"]}, {"tags": ["z"]}),
    ({"tags_all": ["x", "y"]}, {"tags": ["x", "y"]}, {"tags": ["x"]}),
    ({"labels": {"a.b/c": "d.e"}}, {"labels": {"a.b/c": "d.e"}}, {"labels": {"a.b/c": "d"}}),
    ({"started_after": START}, {"start_time": START + timedelta(seconds=1)}, {"start_time": START}),
    ({"started_before": START}, {"start_time": START - timedelta(days=1)}, {"start_time": START}),
    ({"ended_after": ENDED}, {"end_time": ENDED + timedelta(microseconds=1)}, {"end_time": ENDED}),
    ({"ended_before": ENDED}, {"end_time": ENDED - timedelta(days=1)}, {"end_time": ENDED}),
    (
        {"error_types": ["KeyError"]},
        {"status": FAILED, "error": {"type": "KeyError"}},
        {"status": FAILED, "error": {"type": "OSError"}},
    ),
]


@pytest.mark.parametrize(("requested", "inside", "outside"), FILTERS)
async def test_each_filter_lets_through_what_it_should_and_nothing_else(
    lot, requested, inside, outside
):
    for name, fields in (("in", inside), ("out", outside)):
        episode = {"task": "a task of this test", "status": SUCCEEDED} | fields
        await lot.episodes.RecordEpisode(episode=episode, episode_id=name)
    assert await listed(lot, filter=requested) == ["in"]
    assert await recalled(lot, "a task of this test", filter=requested) == ["in"]
    assert len(await listed(lot)) == 2


def test_every_field_of_the_filter_is_in_the_table():
    tried = {name for requested, _, _ in FILTERS for name in requested}
    assert tried == set(P.EpisodeFilter.DESCRIPTOR.fields_by_name)


async def test_an_approach_is_found_by_what_the_end_says(lot):
    await started(lot, episode_id="e", approach="standard")
    await lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED, approach="parallel")
    assert await listed(lot, filter={"approaches": ["parallel"]}) == ["e"]
    assert await listed(lot, filter={"approaches": ["standard"]}) == []
