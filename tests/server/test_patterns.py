"""PatternService on the wire: saving patterns, and when they expire."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from lot_grpc.pb.lot.v1 import outcome_pb2
from tests.contract.clock import SECOND
from tests.server.patterns import (
    GIVEN_BY_SERVER,
    PB,
    SUCCESS,
    P,
    listed,
    recalled,
    saved,
    whole_pattern,
)
from tests.server.service import output_only
from tests.server.wire import failure

# --- saving -----------------------------------------------------------------------------------


async def test_every_field_comes_back_as_it_was_saved(lot):
    given = whole_pattern()
    unset = {f.name for f in P.Pattern.DESCRIPTOR.fields} - {f.name for f, _ in given.ListFields()}
    assert unset == {*GIVEN_BY_SERVER, "ttl"}, "the test does not set every field of a pattern"
    await saved(lot, "older", pattern_id=given.supersedes)
    answer = await lot.patterns.SavePattern(pattern=given, initial_success_rate=0.25)
    assert answer.created
    given.language = "python"  # languages have one name
    for again in (
        answer.pattern,
        (await lot.patterns.GetPattern(pattern_id=answer.pattern.pattern_id)).pattern,
        (await lot.patterns.ListPatterns()).patterns[0],
        (await lot.patterns.RecallPatterns(query=given.task)).hits[0].pattern,
    ):
        assert output_only(again, *GIVEN_BY_SERVER) == given
        assert again.namespace == lot.namespace
        assert again.etag
        assert again.create_time.seconds > 0
        assert again.create_time == again.update_time
        assert again.outcomes == outcome_pb2.OutcomeStats(success_rate=0.25)


async def test_what_only_the_server_gives_is_ignored_when_saving(lot):
    answer = await lot.patterns.SavePattern(
        pattern={
            "task": "t",
            "outcomes": {"usage_count": 99, "success_rate": 0.1},
            "namespace": "elsewhere",
            "etag": "made-up",
            "create_time": datetime(1999, 1, 1, tzinfo=UTC),
            "update_time": datetime(1999, 1, 1, tzinfo=UTC),
        }
    )
    pattern = answer.pattern
    assert pattern.outcomes == outcome_pb2.OutcomeStats(success_rate=1.0)
    assert pattern.namespace == lot.namespace
    assert pattern.etag != "made-up"
    assert pattern.create_time.ToDatetime(UTC).year > 2000


async def test_an_id_inside_must_be_the_one_beside(lot):
    same = await lot.patterns.SavePattern(
        pattern={"task": "t", "pattern_id": "p-1"}, pattern_id="p-1"
    )
    assert same.pattern.pattern_id == "p-1"
    for beside in ("p-2", ""):
        failed = await failure(
            lot.patterns.SavePattern(pattern={"task": "t", "pattern_id": "p-1"}, pattern_id=beside)
        )
        assert failed.reason == "REQUEST_INVALID"
        assert failed.fields == {"pattern.pattern_id": "pattern_id.beside"}


async def test_the_same_content_again_counts_as_one_success(lot):
    first = await lot.patterns.SavePattern(
        pattern={"task": "Sort  a\tlist", "title": "one"}, initial_success_rate=0.5
    )
    again = await lot.patterns.SavePattern(
        pattern={"task": "sort a LIST ", "title": "two"}, initial_success_rate=0.0
    )
    assert (first.created, again.created) == (True, False)
    assert again.pattern.pattern_id == first.pattern.pattern_id
    assert again.pattern.title == "one"
    assert again.pattern.outcomes.usage_count == again.pattern.outcomes.success_count == 1
    assert again.pattern.outcomes.success_rate == pytest.approx(0.5 * 0.7 + 0.3)
    assert again.pattern.etag == first.pattern.etag


@pytest.mark.parametrize(
    "other", [{"code": "x"}, {"language": "go"}, {"actions": [{"tool": "t"}]}, {"task": "other"}]
)
async def test_other_content_is_another_pattern(lot, other):
    await saved(lot, "sort a list")
    answer = await lot.patterns.SavePattern(pattern={"task": "sort a list"} | other)
    assert answer.created


async def test_dedupe_none_stores_another_one(lot):
    first = await saved(lot)
    second = await saved(lot, dedupe=PB.DEDUPE_NONE)
    assert len({first.pattern_id, second.pattern_id}) == 2
    assert second.outcomes.usage_count == 0


async def test_an_id_of_the_callers_own_means_no_dedupe(lot):
    first = await saved(lot)
    answer = await lot.patterns.SavePattern(pattern={"task": "sort a list"}, pattern_id="mine")
    assert answer.created
    assert answer.pattern.pattern_id == "mine" != first.pattern_id
    failed = await failure(
        lot.patterns.SavePattern(pattern={"task": "t"}, pattern_id="other", dedupe=PB.DEDUPE_EXACT)
    )
    assert (failed.code, failed.fields) == ("INVALID_ARGUMENT", {"dedupe": "dedupe.pattern_id"})


async def test_an_id_in_use_is_answered_for_the_same_content_and_refused_for_other(lot):
    await saved(lot, "one", pattern_id="p")
    again = await lot.patterns.SavePattern(pattern={"task": "one"}, pattern_id="p")
    assert not again.created
    assert again.pattern.outcomes.usage_count == 0
    failed = await failure(lot.patterns.SavePattern(pattern={"task": "two"}, pattern_id="p"))
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "PATTERN_ID_IN_USE")
    assert failed.metadata == {"namespace": lot.namespace, "id": "p"}
    assert failed.details["ResourceInfo"].resource_name == "p"
    assert (await lot.patterns.GetPattern(pattern_id="p")).pattern.task == "one"


async def test_a_request_id_makes_a_repeat_safe(lot):
    first = await lot.patterns.SavePattern(pattern={"task": "t"}, request_id="r")
    again = await lot.patterns.SavePattern(pattern={"task": "t"}, request_id="r")
    assert again == first
    assert again.pattern.outcomes.usage_count == 0
    failed = await failure(lot.patterns.SavePattern(pattern={"task": "u"}, request_id="r"))
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "REQUEST_ID_REUSED")
    assert failed.metadata == {"request_id": "r", "method": "SavePattern"}
    assert await listed(lot) == [first.pattern.pattern_id]


async def test_a_repeat_that_counted_counts_once_however_often_it_is_retried(lot):
    await saved(lot, "t")
    for _ in range(3):
        answer = await lot.patterns.SavePattern(pattern={"task": "t"}, request_id="r")
        assert not answer.created
        assert answer.pattern.outcomes.usage_count == 1


async def test_a_retry_does_not_bring_back_what_was_deleted(lot):
    pattern = await saved(lot, "t", request_id="r")
    await lot.patterns.DeletePattern(pattern_id=pattern.pattern_id)
    failed = await failure(lot.patterns.SavePattern(pattern={"task": "t"}, request_id="r"))
    assert failed.reason == "PATTERN_NOT_FOUND"
    assert "deleted" in failed.message
    assert await listed(lot) == []
    assert (await lot.patterns.SavePattern(pattern={"task": "t"}, request_id="r2")).created


async def test_many_callers_saving_one_content_make_one_pattern(lot):
    answers = await asyncio.gather(
        *(lot.patterns.SavePattern(pattern={"task": "same"}) for _ in range(20))
    )
    assert sum(answer.created for answer in answers) == 1
    assert len({answer.pattern.pattern_id for answer in answers}) == 1
    assert len(await listed(lot)) == 1
    pattern = (await lot.patterns.ListPatterns()).patterns[0]
    assert pattern.outcomes.usage_count == 19


async def test_a_kind_of_code_belongs_to_code(lot):
    failed = await failure(
        lot.patterns.SavePattern(pattern={"task": "t", "code_kind": P.CODE_KIND_CLASS})
    )
    assert failed.fields == {"pattern.code_kind": "code_kind.kind"}


async def test_a_long_text_is_stored_whole_and_its_unread_tail_is_told(lot):
    task = "word " * 9000
    answer = await lot.patterns.SavePattern(pattern={"task": task})
    assert answer.pattern.task == task
    [notice] = answer.notices
    assert notice.code == outcome_pb2.NOTICE_CODE_TEXT_TRUNCATED
    assert notice.field == "pattern.task"
    found = await lot.patterns.RecallPatterns(query="word " * 9000)
    assert [n.code for n in found.notices] == [outcome_pb2.NOTICE_CODE_QUERY_TRUNCATED]
    short = await lot.patterns.SavePattern(pattern={"task": "short"})
    assert not short.notices


# --- expiry -----------------------------------------------------------------------------------


async def test_a_time_to_live_becomes_a_time_of_expiry(lot):
    pattern = await saved(lot, ttl=timedelta(hours=1))
    assert pattern.WhichOneof("expiration") == "expire_time"
    seconds = pattern.expire_time.ToMicroseconds() - pattern.create_time.ToMicroseconds()
    assert seconds == 3600 * SECOND


async def test_a_time_of_expiry_that_has_passed_is_refused(lot):
    for field, value in (("expire_time", datetime(2001, 1, 1, tzinfo=UTC)), ("ttl", timedelta(0))):
        failed = await failure(lot.patterns.SavePattern(pattern={"task": "t", field: value}))
        assert failed.code == "INVALID_ARGUMENT"
        assert set(failed.fields) == {f"pattern.{field}"}


async def test_what_expired_is_absent_everywhere_and_its_id_and_content_are_free(lot):
    clock = lot.clock
    pattern = await saved(lot, "t", pattern_id="p", ttl=timedelta(seconds=10))
    other = await saved(lot, "u", ttl=timedelta(seconds=10))
    clock.advance(9)
    assert len(await listed(lot)) == 2
    clock.advance(1)
    assert await listed(lot) == []
    assert await recalled(lot, "t") == []
    assert (await lot.patterns.GetPatternStats()).total_count == 0
    for call in (
        lot.patterns.GetPattern(pattern_id="p"),
        lot.patterns.UpdatePattern(pattern_id="p", pattern={"title": "x"}),
        lot.patterns.DeletePattern(pattern_id="p"),
        lot.patterns.RecordOutcome(pattern_ids=["p"], outcome=SUCCESS),
    ):
        assert (await failure(call)).reason == "PATTERN_NOT_FOUND"
    again = await lot.patterns.SavePattern(pattern={"task": "new"}, pattern_id="p")
    assert (again.created, again.pattern.create_time) != (True, pattern.create_time)
    anew = await lot.patterns.SavePattern(pattern={"task": "u"})
    assert anew.created
    assert anew.pattern.create_time != other.create_time
