"""What a caller does in a day, over both clients."""

from datetime import UTC, datetime, timedelta

import pytest
from lot_client import AsyncLotClient, LotError
from lot_client.fields import OriginFields
from lot_client.pb.lot.v1.namespace_policy_pb2 import NamespacePolicy, UpdateNamespacePolicyRequest
from lot_client.pb.lot.v1.origin_pb2 import OriginKind, ReviewState
from lot_client.pb.lot.v1.pattern_pb2 import Pattern


async def test_a_saved_pattern_comes_back_as_it_was_given(client: AsyncLotClient):
    until = datetime.now(UTC) + timedelta(days=1)
    saved = await client.save_pattern(
        "Deploy the billing service",
        pattern_id="deploy",
        initial_success_rate=0.5,
        kind="CODE",
        actions=[{"tool": "kubectl", "args": {"file": "a.yaml", "replicas": 2}}],
        language="py",
        tags=["ops"],
        labels={"team": "billing"},
        metadata={"nested": {"list": [1, "two", None]}},
        complexity="HIGH",
        expire_time=until,
    )
    found = await client.get_pattern("deploy")

    assert saved.created
    assert found == saved.pattern
    assert found.kind == Pattern(kind=2).kind
    assert found.language == "python"
    assert found.outcomes.success_rate == 0.5
    assert dict(found.actions[0].args) == {"file": "a.yaml", "replicas": 2.0}
    assert found.metadata["nested"]["list"][1] == "two"
    assert found.expire_time.ToDatetime(UTC) == until


async def test_recall_gives_only_what_the_filter_lets_through(client: AsyncLotClient):
    await client.save_pattern("Parse a CSV file", language="python", tags=["files"])
    await client.save_pattern("Parse a CSV file with a library", language="go", tags=["files"])
    await client.save_pattern("Parse a JSON file", language="python", initial_success_rate=0.1)

    everything = await client.recall_patterns("read comma separated values")
    narrow = await client.recall_patterns(
        "read comma separated values",
        filter={"languages": ["python"], "min_success_rate": 0.9},
        explain=True,
    )

    assert len(everything.hits) == 3
    assert [hit.pattern.task for hit in narrow.hits] == ["Parse a CSV file"]
    assert narrow.response.explanation.matching_count == 1


async def test_an_outcome_moves_the_pattern_and_knows_its_query(client: AsyncLotClient):
    saved = await client.save_pattern("Sort a list in place")
    recall = await client.recall_patterns("order the items of a list")
    counted = await client.record_outcome(
        saved.pattern.pattern_id, "FAILURE", recall=recall, reward=0.0, duration=1.5
    )
    [after] = counted.patterns

    assert after.outcomes.failure_count == 1
    assert after.outcomes.success_rate == pytest.approx(0.7)
    assert after.outcomes.average_duration.ToTimedelta() == timedelta(seconds=1.5)


async def test_an_outcome_counts_though_the_server_forgot_the_recall(client: AsyncLotClient):
    saved = await client.save_pattern("Sort a list in place")
    recall = await client.recall_patterns("order the items of a list")
    recall.response.retrieval_id = "r-forgotten"

    counted = await client.record_outcome(saved.pattern.pattern_id, "SUCCESS", recall=recall)

    assert counted.patterns[0].outcomes.success_count == 1


async def test_an_outcome_names_what_was_used_of_any_kind(client: AsyncLotClient):
    memory = (await client.create_memory("The staging server is called sid")).memory
    episode = await client.start_episode("Deploy to the staging server")
    found = await client.search_memories("what is the staging server called", seed=1)
    counted = await client.record_outcome(
        [], "SUCCESS", memory_ids=[memory.memory_id], recall=found
    )
    assert counted.memories[0].outcomes.success_count == 1
    nothing = await client.record_outcome([], "FAILURE", retrieval_id=found.retrieval_id)
    assert nothing.outcome_id
    assert not nothing.memories
    seen = await client.recall_episodes("deploy to staging", seed=1)
    counted = await client.record_outcome(
        (), "PARTIAL", episode_ids=[episode.episode_id], retrieval_id=seen.retrieval_id
    )
    assert counted.episodes[0].outcomes.partial_count == 1


async def test_an_update_sets_what_it_names_even_to_nothing(client: AsyncLotClient):
    await client.save_pattern("A task", pattern_id="p", title="Old", tags=["a"], ttl=3600)
    updated = await client.update_pattern("p", title="", task="Another task", ttl=None)

    assert updated.pattern.task == "Another task"
    assert updated.pattern.title == ""
    assert list(updated.pattern.tags) == ["a"]
    assert not updated.pattern.HasField("expire_time")


async def test_lists_go_over_all_pages(client: AsyncLotClient):
    items = [{"pattern": {"task": f"Task number {n}"}} for n in range(7)]
    batch = await client.batch_save_patterns(items)
    listed = [pattern.task async for pattern in client.list_patterns(page_size=3)]
    stats = await client.get_pattern_stats()

    assert batch.created_count == 7
    assert listed == [f"Task number {n}" for n in reversed(range(7))]
    assert stats.total_count == 7


async def test_a_deleted_pattern_is_gone(client: AsyncLotClient):
    await client.save_pattern("A task", pattern_id="p")

    assert await client.delete_pattern("p")
    assert not await client.delete_pattern("p", allow_missing=True)


async def test_an_episode_can_be_recorded_whole(client: AsyncLotClient):
    episode = await client.record_episode(
        "Fix the login page",
        "FAILED",
        [{"event_type": "tool_call"}, {"event_type": "error", "data": {"line": 3}}],
        error={"type": "TimeoutError", "message": "too slow"},
        metrics={"tokens": 12},
        category="frontend",
    )
    single = await client.start_episode("Fix the logout page")
    event = await client.record_event(single.episode_id, {"event_type": "note"})
    await client.end_episode(single.episode_id, "SUCCEEDED", summary="done")
    failed = [e.episode_id async for e in client.list_episodes(filter={"statuses": ["FAILED"]})]
    recalled = await client.recall_episodes(
        "repair the sign-in form", success_only=True, ranking="SIMILARITY"
    )

    assert episode.event_count == 2
    assert event.sequence == 1
    assert (await client.get_episode(single.episode_id)).summary == "done"
    assert failed == [episode.episode_id]
    assert [hit.episode.episode_id for hit in recalled.hits] == [single.episode_id]


async def test_what_an_episode_teaches_is_kept_when_asked_for(client: AsyncLotClient):
    done = [{"event_type": "tool_call", "data": {"tool": "pg_dump"}}]
    await client.record_episode(
        "Back up the shop's database", "SUCCEEDED", done, extract_knowledge=True
    )
    single = await client.start_episode("Restore the shop's database")
    await client.end_episode(single.episode_id, "SUCCEEDED", extract_knowledge=True)
    explored = await client.recall_patterns("save the shop's data", ranking="EXPLORE", seed=3)
    again = await client.recall_patterns("save the shop's data", ranking="EXPLORE", seed=3)

    assert {hit.pattern.task for hit in explored.hits} == {
        "Back up the shop's database",
        "Restore the shop's database",
    }
    assert [hit.score for hit in again.hits] == [hit.score for hit in explored.hits]


async def test_memories_are_found_by_meaning(client: AsyncLotClient):
    made = await client.create_memory(
        "The staging database is reset every night", kind="FACT", importance=0.9, tags=["db"]
    )
    await client.create_memory("Lunch is at noon", kind="FACT", importance=0.1)
    found = await client.search_memories(
        "when is test data wiped?", filter={"kinds": ["FACT"], "min_importance": 0.5}
    )

    assert [hit.memory for hit in found.hits] == [made.memory]
    assert await client.get_memory(made.memory.memory_id) == made.memory
    assert await client.delete_memory(made.memory.memory_id)


async def test_what_a_model_wrote_is_found_once_it_is_approved(
    client: AsyncLotClient, namespace: str
):
    policy = NamespacePolicy(review_origins=[OriginKind.ORIGIN_KIND_MODEL])
    request = UpdateNamespacePolicyRequest(namespace=namespace, policy=policy)
    await client.call(client.admin.UpdateNamespacePolicy, request)
    origin: OriginFields = {"kind": "MODEL", "name": "m1"}
    stored = (await client.create_memory("The port is 8080", origin=origin)).memory
    assert stored.review.state == ReviewState.REVIEW_STATE_PENDING
    assert not (await client.search_memories("Which port?")).hits
    answer = await client.review_records(
        "MEMORY", {stored.memory_id: stored.etag}, "APPROVED", note="looked it up"
    )
    assert (answer.changed_count, answer.results[0].review.note) == (1, "looked it up")
    [hit] = (await client.search_memories("Which port?", filter={"origins": ["MODEL"]})).hits
    assert hit.memory.review.state == ReviewState.REVIEW_STATE_APPROVED
    again = await client.review_records("MEMORY", [stored.memory_id], "REJECTED")
    assert again.changed_count == 1
    assert not (await client.search_memories("Which port?")).hits


async def test_a_correction_is_noticed_supersedes_and_leaves_history(client: AsyncLotClient):
    then = datetime.now(UTC) - timedelta(days=2)
    fact = "The staging database runs on Postgres {}"
    old = await client.create_memory(fact.format(14), valid_from=then - timedelta(days=1))
    new = await client.create_memory(fact.format(16))
    assert list(new.conflicting_memory_ids) == [old.memory.memory_id]

    right = await client.create_memory(
        fact.format(17), supersedes=old.memory.memory_id, valid_from=then + timedelta(days=1)
    )
    before = await client.search_memories("staging database", as_of=then)
    assert [hit.memory.memory_id for hit in before.hits] == [old.memory.memory_id]
    now = await client.search_memories("staging database", filter={"superseded": False})
    assert {hit.memory.memory_id for hit in now.hits} == {
        new.memory.memory_id,
        right.memory.memory_id,
    }


async def test_the_context_of_a_task_is_ready_for_a_prompt(client: AsyncLotClient):
    saved = await client.save_pattern("Reset the staging database", language="sql")
    found = await client.get_task_context(
        "Reset the staging database", language="sql", complexity="LOW", max_tokens=500
    )

    assert [hit.pattern for hit in found.patterns] == [saved.pattern]
    assert f"`{saved.pattern.pattern_id}`" in found.prompt_text
    assert found.prompt_token_count <= 500
    with pytest.raises(LotError, match="no episode"):
        await client.get_task_context(task_id="unknown")


async def test_nothing_rather_than_what_does_not_fit(client: AsyncLotClient):
    task = "Rotate the signing keys of the payment gateway"
    await client.save_pattern(task)
    await client.create_memory(task)
    await client.record_episode(task, status="SUCCEEDED")
    for query, count in ((task, 1), ("Bake a chocolate cake", 0)):
        for found in (
            await client.recall_patterns(query, min_match=0.5),
            await client.search_memories(query, min_match=0.5),
            await client.recall_episodes(query, min_match=0.5),
        ):
            assert len(found.hits) == count
        context = await client.get_task_context(query, min_match=0.5)
        assert len(context.patterns) == count


async def test_namespaces_keep_apart_over_one_connection(client: AsyncLotClient, namespace: str):
    await client.save_pattern("A task")
    other = client.using(namespace=f"{namespace}-other")

    assert [pattern async for pattern in other.list_patterns()] == []


async def test_the_server_tells_what_it_is(client: AsyncLotClient):
    info = await client.get_server_info()

    assert info.contract_version == "lot.v1"
    assert (await client.check_ready()).ready


async def test_texts_are_embedded_for_their_use(client: AsyncLotClient):
    answer = await client.embed(["save the data", {"text": "back it up", "use": "QUERY"}])

    assert [len(one.vector) for one in answer.embeddings] == [answer.dimensions] * 2
    assert len(answer.embeddings[1].similarities) == 2
    with pytest.raises(LotError, match="text"):
        await client.embed([""])


async def test_a_round_of_learning(client: AsyncLotClient):
    await client.save_pattern("Parse a CSV file", language="python", pattern_id="csv")
    await client.save_pattern("Parse a CSV file", language="go", pattern_id="go")
    recall = await client.recall_patterns("read a CSV", filter={"languages": ["python"]})
    episode = await client.start_episode("Import the customers")
    async with client.record_events(episode.episode_id) as stream:
        last = await stream.send([{"event_type": "row", "data": {"n": n}} for n in range(2500)])
    await client.end_episode(episode.episode_id, "SUCCEEDED")
    once = {"recall": recall, "request_id": "once"}
    [after] = (await client.record_outcome("csv", "PARTIAL", **once)).patterns
    [again] = (await client.record_outcome("csv", "PARTIAL", **once)).patterns
    events = [e async for e in client.list_episode_events(episode.episode_id, page_size=1000)]

    assert [hit.pattern.pattern_id for hit in recall.hits] == ["csv"]
    assert last == 2500
    assert [event.sequence for event in events] == list(range(1, 2501))
    assert after.outcomes.partial_count == again.outcomes.partial_count == 1
    assert len([each async for each in client.list_patterns(page_size=1)]) == 2
    embedded = await client.embed(["csv"], omit_vectors=True)
    assert not embedded.embeddings[0].vector
