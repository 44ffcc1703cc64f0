"""Retrievals on the wire: what was asked and shown, read, listed, watched, moved and cleared."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.domain.retrieval import query_hash
from lot_grpc.pb.lot.v1 import namespace_policy_pb2 as policy_pb
from lot_grpc.pb.lot.v1 import outcome_pb2, resource_kind_pb2, retrieval_pb2
from tests.server.service import Lot
from tests.server.transfers import exported, imported, records_of
from tests.server.wire import failure

KIND: Any = resource_kind_pb2
P: Any = retrieval_pb2
TASK = "deploy the web site to the server"
ERROR = "KeyError: 'port'"
DAY = 24 * 3600


async def fill(lot: Lot) -> None:
    await lot.patterns.SavePattern(pattern={"task": TASK}, pattern_id="p")
    await lot.patterns.SavePattern(pattern={"task": f"{TASK} again"}, pattern_id="q")
    await lot.memories.CreateMemory(memory={"content": TASK}, memory_id="m")
    await lot.memories.SaveErrorSolution(
        error_solution={"error_message": ERROR, "resolution": "use get"}, error_solution_id="s"
    )
    await lot.episodes.RecordEpisode(
        episode={"task": TASK, "status": "EPISODE_STATUS_SUCCEEDED"}, episode_id="e"
    )
    await lot.episodes.RecordEpisode(
        episode={
            "task": TASK,
            "status": "EPISODE_STATUS_FAILED",
            "error": {"type": "Timeout", "message": "timed out"},
        },
        episode_id="failed",
    )


async def read(lot: Lot, retrieval_id: str, **named: Any) -> Any:
    answer = await lot.learning.GetRetrieval(retrieval_id=retrieval_id, **named)
    return answer.retrieval


async def listed(lot: Lot, **narrowed: Any) -> list[str]:
    answer = await lot.learning.ListRetrievals(filter=narrowed, page_size=100)
    return [one.retrieval_id for one in answer.retrievals]


async def set_policy(lot: Lot, **policy: Any) -> None:
    await lot.admin.UpdateNamespacePolicy(policy=policy)


async def test_a_recall_of_patterns_can_be_read_back_at_once(lot):
    await fill(lot)
    answer = await lot.patterns.RecallPatterns(
        query=TASK, limit=2, ranking=outcome_pb2.RANKING_RELIABLE, min_similarity=0.1, explain=True
    )
    found = await read(lot, answer.retrieval_id)
    assert (found.retrieval_id, found.namespace) == (answer.retrieval_id, lot.namespace)
    assert (found.method, found.query) == (P.RETRIEVAL_METHOD_RECALL_PATTERNS, TASK)
    assert (found.ranking, found.limit) == (outcome_pb2.RANKING_RELIABLE, 2)
    assert (found.min_similarity, found.rerank) == (0.1, False)
    assert not any(found.HasField(name) for name in ("min_match", "as_of", "holdout"))
    assert found.expire_time.seconds - found.create_time.seconds == 7 * DAY
    assert len(found.items) == len(answer.hits) == 2
    for item, hit in zip(found.items, answer.hits, strict=True):
        assert (item.resource_kind, item.id) == (KIND.RESOURCE_KIND_PATTERN, hit.pattern.pattern_id)
        assert item.etag == hit.pattern.etag
        assert (item.score, item.similarity) == (hit.score, hit.similarity)
        assert list(item.score_parts) == list(hit.score_parts)
        assert item.HasField("match_probability") == hit.HasField("match_probability")
        assert item.match_probability == hit.match_probability
        assert item.outcome == outcome_pb2.OUTCOME_UNSPECIFIED
    assert not found.outcomes


async def test_each_call_that_recalls_leaves_a_receipt_with_the_etags_of_what_it_showed(lot):
    await fill(lot)
    episodes = await lot.episodes.RecallEpisodes(query=TASK)
    memories = await lot.memories.SearchMemories(query=TASK)
    errors = await lot.memories.FindErrorSolutions(error_message=ERROR)
    context = await lot.memories.GetTaskContext(task=f"{TASK}: {ERROR}", min_similarity=0)
    shown = {
        episodes.retrieval_id: ("RECALL_EPISODES", [one.episode for one in episodes.hits]),
        memories.retrieval_id: ("SEARCH_MEMORIES", [one.memory for one in memories.hits]),
        errors.retrieval_id: (
            "FIND_ERROR_SOLUTIONS",
            [one.error_solution for one in (*errors.hits, *errors.unsolved)],
        ),
        context.retrieval_id: (
            "GET_TASK_CONTEXT",
            [
                *(one.pattern for one in context.patterns),
                *(one.memory for one in context.memories),
                *(one.episode for one in context.episodes),
                *(one.error_solution for one in context.error_solutions),
            ],
        ),
    }
    for retrieval_id, (method, records) in shown.items():
        found = await read(lot, retrieval_id)
        assert P.RetrievalMethod.Name(found.method) == f"RETRIEVAL_METHOD_{method}"
        assert records
        etags = [one.etag for one in found.items]
        assert etags[: len(records)] == [one.etag for one in records]
        assert all(one.score_parts for one in found.items)


async def test_a_context_shows_episodes_that_only_its_warnings_cite(lot):
    await fill(lot)
    context = await lot.memories.GetTaskContext(task=TASK, limit=1, min_similarity=0)
    [warning] = context.warnings
    [shown] = context.episodes
    found = await read(lot, context.retrieval_id)
    episodes = [one.id for one in found.items if one.resource_kind == KIND.RESOURCE_KIND_EPISODE]
    assert episodes[0] == shown.episode.episode_id
    assert {*warning.episode_ids} - {episodes[0]} <= {*episodes[1:]}
    assert len(episodes) == len({*episodes})


async def test_a_receipt_survives_an_edit_and_a_delete_of_what_it_showed(lot):
    await fill(lot)
    answer = await lot.memories.SearchMemories(query=TASK)
    before = await read(lot, answer.retrieval_id)
    await lot.memories.UpdateMemory(memory_id="m", memory={"title": "x"})
    await lot.memories.DeleteMemory(memory_id="m")
    assert await read(lot, answer.retrieval_id) == before
    assert [one.id for one in before.items] == ["m"]


async def test_retrievals_are_listed_newest_first_page_by_page(lot):
    await fill(lot)
    ids = [(await lot.memories.SearchMemories(query=f"{TASK} {n}")).retrieval_id for n in range(7)]
    found, token = [], ""
    while True:
        page = await lot.learning.ListRetrievals(page_size=3, page_token=token)
        found += [one.retrieval_id for one in page.retrievals]
        token = page.next_page_token
        if not token:
            break
        assert len(page.retrievals) == 3
    assert found == ids[::-1]


async def test_a_list_is_narrowed_by_call_by_item_and_by_time(lot):
    await fill(lot)
    patterns = (await lot.patterns.RecallPatterns(query=TASK)).retrieval_id
    lot.clock.advance(60)
    memories = (await lot.memories.SearchMemories(query=TASK)).retrieval_id
    lot.clock.advance(60)
    context = (await lot.memories.GetTaskContext(task=TASK, min_similarity=0)).retrieval_id
    assert await listed(lot) == [context, memories, patterns]
    assert await listed(lot, methods=[P.RETRIEVAL_METHOD_SEARCH_MEMORIES]) == [memories]
    assert await listed(lot, item_kinds=[KIND.RESOURCE_KIND_MEMORY]) == [context, memories]
    assert await listed(lot, item_kinds=[KIND.RESOURCE_KIND_ERROR_SOLUTION]) == []
    assert await listed(lot, item_id="q") == [context, patterns]
    assert await listed(lot, item_id="p", item_kinds=[KIND.RESOURCE_KIND_MEMORY]) == []
    middle = (await read(lot, memories)).create_time
    assert await listed(lot, created_after=middle) == [context]
    assert await listed(lot, created_before=middle) == [patterns]


async def test_a_read_mask_leaves_out_the_rest(lot):
    await fill(lot)
    await lot.memories.SearchMemories(query=TASK)
    answer = await lot.learning.ListRetrievals(read_mask={"paths": ["query", "items"]})
    [found] = answer.retrievals
    assert (found.query, found.retrieval_id) == (TASK, "")
    assert [one.id for one in found.items] == ["m"]


async def test_an_unknown_retrieval_and_that_of_another_namespace_is_not_found(lot):
    await fill(lot)
    answer = await lot.memories.SearchMemories(query=TASK)
    for named in ({"retrieval_id": "r-0"}, {"namespace": f"{lot.namespace}-2"}):
        error = await failure(
            lot.learning.GetRetrieval(**{"retrieval_id": answer.retrieval_id, **named})
        )
        assert error.reason == "RETRIEVAL_NOT_FOUND"
    page = await lot.learning.ListRetrievals(namespace=f"{lot.namespace}-2")
    assert not page.retrievals


@pytest.mark.parametrize(
    ("narrowed", "field"),
    [
        ({"methods": [0]}, "filter.methods[0]"),
        ({"methods": [99]}, "filter.methods[0]"),
        ({"item_kinds": [KIND.RESOURCE_KIND_SESSION]}, "filter.item_kinds[0]"),
        ({"item_id": "no/id"}, "filter.item_id"),
        ({"created_after": {"seconds": -1}}, "filter.created_after"),
    ],
)
async def test_a_bad_filter_is_refused(lot, narrowed, field):
    error = await failure(lot.learning.ListRetrievals(filter=narrowed))
    assert list(error.fields) == [field]


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"max_retrieval_age": {"seconds": 0}}, "policy.max_retrieval_age"),
        ({"max_retrieval_age": {"seconds": -5}}, "policy.max_retrieval_age"),
        ({"retrieval_queries": 9}, "policy.retrieval_queries"),
        ({"holdout_share": 0.51}, "policy.holdout_share"),
        ({"holdout_share": -0.1}, "policy.holdout_share"),
        ({"holdout_share": float("nan")}, "policy.holdout_share"),
    ],
)
async def test_a_bad_policy_is_refused(lot, policy, field):
    error = await failure(lot.admin.UpdateNamespacePolicy(policy=policy))
    assert list(error.fields) == [field]


async def test_the_policy_sets_how_long_later_retrievals_are_retained(lot):
    await fill(lot)
    before = (await lot.memories.SearchMemories(query=TASK)).retrieval_id
    await set_policy(lot, max_retrieval_age={"seconds": 60})
    short = (await lot.memories.SearchMemories(query=TASK)).retrieval_id
    found = await read(lot, short)
    assert found.expire_time.seconds - found.create_time.seconds == 60
    lot.clock.advance(61)
    assert (await failure(lot.learning.GetRetrieval(retrieval_id=short))).reason == (
        "RETRIEVAL_NOT_FOUND"
    )
    assert await listed(lot) == [before]
    update = {"policy": {}, "update_mask": {"paths": ["max_retrieval_age"]}}
    await lot.admin.UpdateNamespacePolicy(**update)
    again = await read(lot, (await lot.memories.SearchMemories(query=TASK)).retrieval_id)
    assert again.expire_time.seconds - again.create_time.seconds == 7 * DAY


async def test_the_policy_is_shown_with_its_defaults_and_a_preset_resets_only_the_age(lot):
    policy = (await lot.admin.GetNamespacePolicy()).policy
    assert policy.retrieval_queries == policy_pb.RETRIEVAL_QUERIES_TEXT
    assert (policy.holdout_share, policy.HasField("max_retrieval_age")) == (0, False)
    given = {
        "max_retrieval_age": {"seconds": 60},
        "retrieval_queries": policy_pb.RETRIEVAL_QUERIES_HASH,
        "holdout_share": 0.25,
    }
    policy = (await lot.admin.UpdateNamespacePolicy(policy=given)).policy
    assert policy.max_retrieval_age.seconds == 60
    assert (policy.retrieval_queries, policy.holdout_share) == (2, 0.25)
    preset = await lot.admin.UpdateNamespacePolicy(preset=policy_pb.POLICY_PRESET_UNLIMITED)
    assert not preset.policy.HasField("max_retrieval_age")
    assert (preset.policy.retrieval_queries, preset.policy.holdout_share) == (2, 0.25)


async def test_retrievals_are_exported_and_imported_without_their_vectors(lot):
    await fill(lot)
    retrieval_id = (await lot.patterns.RecallPatterns(query=TASK)).retrieval_id
    before = await read(lot, retrieval_id)
    assert await listed(lot) == [retrieval_id]  # which writes what waits
    messages = await exported(lot, resource_kinds=[KIND.RESOURCE_KIND_RETRIEVAL])
    [record] = records_of(messages)
    assert record.retrieval == before
    assert "vector" not in record.stored_form.fields["row"].string_value
    await lot.admin.ClearNamespace(confirm_namespace=lot.namespace)
    assert await listed(lot) == []
    ack = await imported(lot, messages)
    assert (ack.imported_count, dict(ack.imported_counts)) == (1, {"RETRIEVAL": 1})
    assert await read(lot, retrieval_id) == before
    again = await imported(lot, messages)
    assert (again.imported_count, again.unchanged_count) == (0, 1)


async def test_retrievals_are_cleared_alone(lot):
    await fill(lot)
    await lot.patterns.RecallPatterns(query=TASK)
    assert await listed(lot)
    cleared = await lot.admin.ClearNamespace(
        confirm_namespace=lot.namespace, resource_kinds=[KIND.RESOURCE_KIND_RETRIEVAL]
    )
    assert dict(cleared.deleted_counts) == {"RETRIEVAL": 1}
    assert await listed(lot) == []
    assert (await lot.patterns.GetPattern(pattern_id="p")).pattern.task == TASK


async def test_hashes_are_stored_where_the_policy_says_so(lot):
    await fill(lot)
    await set_policy(lot, retrieval_queries=policy_pb.RETRIEVAL_QUERIES_HASH)
    answers = [
        await lot.patterns.RecallPatterns(query=TASK),
        await lot.memories.GetTaskContext(task=TASK),
    ]
    for answer in answers:
        found = await read(lot, answer.retrieval_id)
        assert found.query == query_hash(TASK)
    error = await lot.memories.FindErrorSolutions(error_message=ERROR, error_type="KeyError")
    found = await read(lot, error.retrieval_id)
    assert found.query == query_hash(f"KeyError\n{ERROR}")
    assert [one.id for one in found.items] == ["s"]


async def test_a_retrieval_that_many_outcomes_name_shows_the_latest(lot):
    """All of them would exceed what gRPC clients accept."""
    await fill(lot)
    ids = [f"{number:0128d}" for number in range(99)]
    for one in ids:
        await lot.patterns.SavePattern(pattern={"task": f"{TASK} {one}"}, pattern_id=one)
    answer = await lot.patterns.RecallPatterns(query=TASK, limit=100)
    shown = [hit.pattern.pattern_id for hit in answer.hits]
    outcomes = []
    for number in range(52):
        named = {"pattern_ids": shown, "note": f"{number:02}" * 8192}
        recorded = await lot.patterns.RecordOutcome(
            retrieval_id=answer.retrieval_id,
            outcome="OUTCOME_FAILURE" if number else "OUTCOME_SUCCESS",
            **(named if number else {}),
        )
        outcomes.append(recorded.outcome_id)
    found = await read(lot, answer.retrieval_id)
    assert found.ByteSize() < 3 * 2**20
    assert [one.outcome_id for one in found.outcomes] == outcomes[-50:]
    [again] = (await lot.learning.ListRetrievals()).retrievals
    assert again == found
