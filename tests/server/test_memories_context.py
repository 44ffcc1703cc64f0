"""GetTaskContext on the wire."""

from __future__ import annotations

import pytest

from lot_grpc.pb.lot.v1 import change_pb2, episode_pb2, error_solution_pb2, outcome_pb2
from tests.server.service import serving
from tests.server.test_memories_watching import change_watcher
from tests.server.wire import failure
from tests.services.world import CalibratedDouble

TASK = "Rotate the signing keys"


async def fill(lot):
    await lot.patterns.SavePattern(pattern={"task": TASK}, pattern_id="p")
    failed = episode_pb2.EPISODE_STATUS_FAILED
    error = {"type": "KeyError", "message": "'vault'"}
    await lot.episodes.RecordEpisode(
        episode={"task": TASK, "status": failed, "error": error, "task_id": "T-1"}, episode_id="bad"
    )
    await lot.episodes.RecordEpisode(
        episode={
            "task": TASK,
            "status": episode_pb2.EPISODE_STATUS_SUCCEEDED,
            "category": "security",
            "approach": "plan",
        },
        episode_id="good",
    )
    await lot.memories.CreateMemory(memory={"content": f"{TASK} in March"}, memory_id="m")
    await lot.memories.PutPreference(key="tone", value={"string_value": "short"})
    await lot.memories.SaveErrorSolution(
        error_solution={"error_message": "KeyError: 'vault'", "resolution": "log in first"},
        error_solution_id="s",
    )


async def test_all_that_is_known_comes_in_one_answer(lot):
    await fill(lot)
    answer = await lot.memories.GetTaskContext(
        task=f"{TASK}, which fails with KeyError: 'safe'", category="security"
    )
    assert [hit.pattern.pattern_id for hit in answer.patterns] == ["p"]
    assert {hit.episode.episode_id for hit in answer.episodes} == {"bad", "good"}
    assert [hit.memory.memory_id for hit in answer.memories] == ["m"]
    assert [one.key for one in answer.preferences] == ["tone"]
    [solution] = answer.error_solutions
    assert solution.error_solution.error_solution_id == "s"
    assert solution.match == error_solution_pb2.ERROR_MATCH_EXACT_SIGNATURE
    assert [one.given for one in solution.differences] == ["safe"]
    [warning] = answer.warnings
    assert (warning.error_type, warning.count, list(warning.episode_ids)) == (
        "KeyError",
        1,
        ["bad"],
    )
    assert warning.message.startswith("1 similar task failed, last on ")
    assert answer.recommendations.approach == "plan"
    for name in ("p", "bad", "good", "m", "tone", "s"):
        assert f"`{name}`" in answer.prompt_text
    assert not answer.truncated
    assert not answer.notices
    used = await lot.patterns.RecordOutcome(
        pattern_ids=["p"],
        retrieval_id=answer.retrieval_id,
        outcome=outcome_pb2.OUTCOME_SUCCESS,
    )
    assert used.patterns[0].outcomes.success_count == 1


async def test_the_text_keeps_to_its_bound(lot):
    await fill(lot)
    whole = await lot.memories.GetTaskContext(task=TASK)
    less = await lot.memories.GetTaskContext(task=TASK, max_tokens=whole.prompt_token_count - 1)
    assert less.truncated
    assert less.prompt_token_count < whole.prompt_token_count
    assert "`p`" in less.prompt_text
    none = await lot.memories.GetTaskContext(task=TASK, max_tokens=1)
    assert (none.prompt_text, none.prompt_token_count, none.truncated) == ("", 0, True)
    assert none.patterns


async def test_an_earlier_task_by_its_id(lot):
    await fill(lot)
    answer = await lot.memories.GetTaskContext(task_id="T-1")
    assert [hit.pattern.pattern_id for hit in answer.patterns] == ["p"]
    failed = await failure(lot.memories.GetTaskContext(task_id="T-2"))
    assert failed.reason == "EPISODE_NOT_FOUND"
    assert "set task instead" in failed.message


async def test_an_empty_namespace_and_a_task_without_words(lot):
    answer = await lot.memories.GetTaskContext(task="\u200b", namespace="empty")
    assert "Nothing yet" in answer.prompt_text
    assert [notice.code for notice in answer.notices] == [
        outcome_pb2.NOTICE_CODE_QUERY_NOT_SEARCHABLE
    ]
    assert answer.notices[0].field == "task"


@pytest.mark.parametrize("fields", [{}, {"task": "t", "task_id": "i"}])
async def test_just_one_of_task_and_task_id(lot, fields):
    failed = await failure(lot.memories.GetTaskContext(**fields))
    assert "exactly one of task and task_id" in str(failed)


async def test_a_suggestion_is_told_live(lot):
    await fill(lot)
    async with change_watcher(lot, types=["CHANGE_TYPE_CONTEXT_SUGGESTED"]) as watcher:
        answer = await lot.memories.GetTaskContext(task=TASK)
        [told] = await watcher.until(1)
    assert told.type == change_pb2.CHANGE_TYPE_CONTEXT_SUGGESTED
    assert (told.cursor, told.resource_kind, told.id) == ("", 0, answer.retrieval_id)
    suggestion = told.context_suggestion
    assert suggestion.task == TASK
    assert list(suggestion.pattern_ids) == ["p"]
    assert set(suggestion.episode_ids) == {"bad", "good"}
    assert suggestion.retrieval_id == answer.retrieval_id


async def test_what_is_not_likely_to_help_is_left_out_with_a_notice():
    async with serving(embedder=CalibratedDouble()) as lot:
        await fill(lot)
        answer = await lot.memories.GetTaskContext(task="Tune a piano")
        assert not answer.patterns
        assert not answer.warnings
        [notice] = answer.notices
        assert notice.code == outcome_pb2.NOTICE_CODE_UNLIKELY_OMITTED
        assert notice.field == "min_similarity"
        assert "patterns: 1, memories: 1, episodes: 2" in notice.message
        everything = await lot.memories.GetTaskContext(task="Tune a piano", min_similarity=0)
        assert (len(everything.patterns), len(everything.episodes)) == (1, 2)
        assert not everything.notices
        near = await lot.memories.GetTaskContext(task=TASK)
        assert len(near.patterns) == 1
        assert near.patterns[0].match_probability > 0.8
