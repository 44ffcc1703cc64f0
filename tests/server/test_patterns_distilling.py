"""DistillPatterns, dedupe SEMANTIC, supersedes and lineage on the wire."""

from __future__ import annotations

import re

import pytest

from lot_grpc.pb.lot.v1 import outcome_pb2, pattern_pb2
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from tests.server.service import Lot
from tests.server.wire import failure

USERS = ("alice", "bob", "carol")


async def logins(lot: Lot, users: tuple[str, ...] = USERS) -> None:
    for user in users:
        task = f"Log in to the shop site as the user {user} and stay there"
        actions = [{"tool": "type", "args": {"user": user}}]
        await lot.patterns.SavePattern(
            pattern={"task": task, "actions": actions}, pattern_id=f"login-{user}"
        )


async def lineage(lot: Lot, pattern_id: str) -> list[tuple[str, str, int]]:
    answer = await lot.patterns.GetPattern(pattern_id=pattern_id, include_lineage=True)
    return [
        (
            pb.LineageRelation.Name(one.relation).removeprefix("LINEAGE_RELATION_"),
            one.pattern_id,
            one.distance,
        )
        for one in answer.lineage
    ]


# --- distilling -------------------------------------------------------------------------------


async def test_a_group_is_told_with_its_template_and_members(lot):
    await logins(lot)
    await lot.patterns.RecordOutcome(pattern_ids=["login-bob"], outcome=outcome_pb2.OUTCOME_SUCCESS)
    answer = await lot.patterns.DistillPatterns(similarity=0.7)
    (group,) = answer.groups
    made = group.pattern
    assert made.kind == pattern_pb2.PATTERN_KIND_DISTILLED
    assert made.task == "Log in to the shop site as the user {user} and stay there"
    assert made.actions[0].args["user"] == "{user}"
    assert list(made.metadata["slots"]["user"]) == list(USERS)
    assert made.outcomes.usage_count == made.outcomes.success_count == 1
    assert list(group.member_pattern_ids) == [f"login-{user}" for user in USERS]
    assert (answer.group_count, answer.pattern_count, answer.created_count) == (1, 3, 1)
    assert (group.member_count, answer.omitted_count, answer.extended_count) == (3, 0, 0)
    member = (await lot.patterns.GetPattern(pattern_id="login-bob")).pattern
    assert member.parent_pattern_id == made.pattern_id
    again = await lot.patterns.DistillPatterns(similarity=0.7)
    assert again.groups == answer.groups
    assert again.created_count == 0


async def test_a_dry_run_stores_nothing(lot):
    await logins(lot)
    dry = await lot.patterns.DistillPatterns(similarity=0.7, dry_run=True)
    assert len((await lot.patterns.ListPatterns()).patterns) == 3
    wet = await lot.patterns.DistillPatterns(similarity=0.7)
    for answer in (dry, wet):
        for name in ("create_time", "update_time", "etag"):
            answer.groups[0].pattern.ClearField(name)
    assert dry == wet


async def test_a_filter_narrows_and_none_is_an_empty_answer(lot):
    await logins(lot)
    answer = await lot.patterns.DistillPatterns(filter={"languages": ["go"]})
    assert answer == pb.DistillPatternsResponse()
    assert await lot.patterns.DistillPatterns(namespace="empty") == pb.DistillPatternsResponse()


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"similarity": 1.1}, "similarity"),
        ({"similarity": -0.1}, "similarity"),
        ({"min_group_size": 1}, "min_group_size"),
        ({"min_group_size": -1}, "min_group_size"),
        ({"min_group_size": 10_001}, "min_group_size"),
    ],
)
async def test_what_cannot_be_distilled_so_is_refused(lot, bad, field):
    await logins(lot)
    failed = await failure(lot.patterns.DistillPatterns(**bad))
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_INVALID")
    assert set(failed.fields) == {field}
    assert len((await lot.patterns.ListPatterns()).patterns) == 3


# --- merging ----------------------------------------------------------------------------------


async def test_a_merge_says_so_with_the_similarity_and_the_id(lot):
    task = "Log in to the web shop of the customer and open the long list of all the late orders"
    await lot.patterns.SavePattern(pattern={"task": task}, pattern_id="first")
    ask = {"pattern": {"task": f"{task}!"}, "dedupe": pb.DEDUPE_SEMANTIC, "request_id": "r"}
    merged = await lot.patterns.SavePattern(**ask)
    assert not merged.created
    assert merged.pattern.pattern_id == "first"
    assert merged.pattern.task == task
    assert merged.pattern.outcomes.success_count == 1
    (notice,) = merged.notices
    assert notice.code == outcome_pb2.NOTICE_CODE_MERGED
    told = re.search(r"similarity (\d\.\d+) to pattern first", notice.message)
    assert told is not None
    assert 0.95 <= float(told[1]) <= 1
    assert await lot.patterns.SavePattern(**ask) == merged
    other = await lot.patterns.SavePattern(
        pattern={"task": "Export a report"}, dedupe=pb.DEDUPE_SEMANTIC
    )
    assert (other.created, list(other.notices)) == (True, [])


async def test_semantic_finds_by_content_and_takes_no_id(lot):
    failed = await failure(
        lot.patterns.SavePattern(pattern={"task": "t"}, pattern_id="p", dedupe=pb.DEDUPE_SEMANTIC)
    )
    assert failed.fields == {"dedupe": "dedupe.pattern_id"}


# --- superseding ------------------------------------------------------------------------------


async def test_a_successor_takes_the_place_of_the_old_one_in_recall(lot):
    await lot.patterns.SavePattern(pattern={"task": "open the shop"}, pattern_id="old")
    await lot.patterns.SavePattern(
        pattern={"task": "open the shop well", "supersedes": "old"}, pattern_id="new"
    )
    hits = (await lot.patterns.RecallPatterns(query="open the shop")).hits
    assert [hit.pattern.pattern_id for hit in hits] == ["new"]
    requested = {"superseded": True}
    hits = (await lot.patterns.RecallPatterns(query="open the shop", filter=requested)).hits
    assert [(h.pattern.pattern_id, h.pattern.superseded_by) for h in hits] == [("old", "new")]
    assert len((await lot.patterns.ListPatterns()).patterns) == 2
    assert (await lot.patterns.GetPatternStats(filter=requested)).total_count == 1
    await lot.patterns.UpdatePattern(
        pattern_id="new", pattern={"task": ""}, update_mask={"paths": ["supersedes"]}
    )
    assert len((await lot.patterns.RecallPatterns(query="open the shop")).hits) == 2


async def test_what_cannot_be_superseded_is_refused(lot):
    await lot.patterns.SavePattern(pattern={"task": "a"}, pattern_id="a")
    await lot.patterns.SavePattern(pattern={"task": "b", "supersedes": "a"}, pattern_id="b")
    missing = await failure(lot.patterns.SavePattern(pattern={"task": "c", "supersedes": "x"}))
    assert (missing.code, missing.reason) == ("NOT_FOUND", "PATTERN_NOT_FOUND")
    circle = await failure(lot.patterns.UpdatePattern(pattern_id="a", pattern={"supersedes": "b"}))
    assert circle.fields == {"pattern.supersedes": "supersedes.circle"}
    itself = await failure(lot.patterns.UpdatePattern(pattern_id="a", pattern={"supersedes": "a"}))
    assert itself.fields == {"pattern.supersedes": "supersedes.itself"}
    mask = {"paths": ["superseded_by"]}
    output = await failure(
        lot.patterns.UpdatePattern(pattern_id="a", pattern={"task": "a"}, update_mask=mask)
    )
    assert output.fields == {"update_mask": "update_mask.path"}


async def test_lineage_shows_whether_the_successor_does_better(lot):
    await lot.patterns.SavePattern(pattern={"task": "a"}, pattern_id="a")
    await lot.patterns.SavePattern(pattern={"task": "b", "supersedes": "a"}, pattern_id="b")
    await lot.patterns.RecordOutcome(pattern_ids=["a"], outcome=outcome_pb2.OUTCOME_FAILURE)
    await lot.patterns.RecordOutcome(pattern_ids=["b"], outcome=outcome_pb2.OUTCOME_SUCCESS)
    assert await lineage(lot, "b") == [("SUPERSEDED", "a", 1)]
    answer = await lot.patterns.GetPattern(pattern_id="a", include_lineage=True)
    (successor,) = answer.lineage
    assert successor.relation == pb.LINEAGE_RELATION_SUCCESSOR
    assert (successor.task, successor.outcomes.success_rate) == ("b", 1.0)
    assert answer.pattern.outcomes.success_rate == pytest.approx(0.7)
    assert successor.HasField("create_time")
    assert not (await lot.patterns.GetPattern(pattern_id="a")).lineage


async def test_lineage_shows_groups_and_members(lot):
    await logins(lot)
    (group,) = (await lot.patterns.DistillPatterns(similarity=0.7)).groups
    head = group.pattern.pattern_id
    assert await lineage(lot, "login-bob") == [("GROUP", head, 1)]
    assert await lineage(lot, head) == [("MEMBER", f"login-{user}", 1) for user in USERS]
