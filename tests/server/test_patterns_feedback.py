"""RecordPatternFeedback and ListFeedbackCandidates on the wire."""

from __future__ import annotations

import pytest

from lot_grpc.pb.lot.v1 import outcome_pb2
from tests.server.patterns import SUCCESS, saved
from tests.server.wire import failure


async def test_feedback_moves_the_confidence_and_tells_how(lot):
    pattern = await saved(lot, pattern_id="p")
    answer = await lot.patterns.RecordPatternFeedback(pattern_id="p", helpful=True, text="did it")
    assert answer.pattern.confidence == 0.6
    assert answer.pattern.etag == pattern.etag
    assert answer.pattern.update_time == pattern.update_time
    counts = answer.pattern.feedback
    assert (counts.feedback_count, counts.helpful_count, counts.unhelpful_count) == (1, 1, 0)
    assert counts.last_feedback_time.seconds > 0
    entry = answer.feedback
    assert (entry.sequence, entry.confidence_before, entry.confidence_after) == (1, 0.5, 0.6)
    assert (entry.helpful, entry.text) == (True, "did it")
    assert not entry.HasField("confidence_adjustment")
    answer = await lot.patterns.RecordPatternFeedback(pattern_id="p", confidence_adjustment=-0.25)
    assert answer.pattern.confidence == 0.35
    assert not answer.feedback.HasField("helpful")
    assert answer.feedback.confidence_adjustment == -0.25
    assert not pattern.HasField("feedback")


async def test_the_history_comes_with_the_pattern_where_it_is_asked_for(lot):
    await saved(lot, pattern_id="p")
    given = [
        (await lot.patterns.RecordPatternFeedback(pattern_id="p", helpful=helpful)).feedback
        for helpful in (True, False)
    ]
    read = await lot.patterns.GetPattern(pattern_id="p", include_feedback=True)
    assert list(read.feedback) == given[::-1]
    assert [entry.sequence for entry in read.feedback] == [2, 1]
    assert not (await lot.patterns.GetPattern(pattern_id="p")).feedback


async def test_a_repeat_counts_once(lot):
    await saved(lot, pattern_id="p")
    first = await lot.patterns.RecordPatternFeedback(pattern_id="p", helpful=True, request_id="r")
    again = await lot.patterns.RecordPatternFeedback(pattern_id="p", helpful=True, request_id="r")
    assert again == first
    failed = await failure(
        lot.patterns.RecordPatternFeedback(pattern_id="p", helpful=False, request_id="r")
    )
    assert failed.reason == "REQUEST_ID_REUSED"


async def test_feedback_that_says_nothing_or_too_much_is_refused(lot):
    await saved(lot, pattern_id="p")
    failed = await failure(lot.patterns.RecordPatternFeedback(pattern_id="p", text="only words"))
    assert failed.reason == "REQUEST_INVALID"
    assert "helpful or confidence_adjustment must be set" in str(failed.fields) + failed.message
    failed = await failure(
        lot.patterns.RecordPatternFeedback(pattern_id="p", confidence_adjustment=1.5)
    )
    assert "confidence_adjustment" in failed.fields
    failed = await failure(lot.patterns.RecordPatternFeedback(pattern_id="nope", helpful=True))
    assert (failed.code, failed.reason) == ("NOT_FOUND", "PATTERN_NOT_FOUND")
    assert (await lot.patterns.GetPattern(pattern_id="p")).pattern.confidence == 0.5


@pytest.mark.parametrize("paths", [[], ["*"]])
async def test_an_edit_of_what_was_read_keeps_what_feedback_moved_and_says_so(lot, paths):
    pattern = await saved(lot, pattern_id="p")
    await lot.patterns.RecordPatternFeedback(pattern_id="p", helpful=True)
    pattern.title = "new"
    answer = await lot.patterns.UpdatePattern(
        pattern_id="p", pattern=pattern, update_mask={"paths": paths}, etag=pattern.etag
    )
    assert (answer.pattern.title, answer.pattern.confidence) == ("new", 0.6)
    [notice] = answer.notices
    assert notice.code == outcome_pb2.NOTICE_CODE_FIELDS_UNCHANGED
    assert notice.field == "pattern.confidence"
    answer = await lot.patterns.UpdatePattern(
        pattern_id="p", pattern={"confidence": 0.2}, update_mask={"paths": ["confidence"]}
    )
    assert answer.pattern.confidence == 0.2
    assert not answer.notices


async def test_candidates_are_the_much_used_and_uncertain(lot):
    for name, uses, confidence in (("much", 4, 0.5), ("sure", 4, 1.0), ("little", 1, 0.5)):
        await saved(lot, name, pattern_id=name, confidence=confidence)
        for _ in range(uses):
            await lot.patterns.RecordOutcome(pattern_ids=[name], outcome=SUCCESS)
    await saved(lot, "never", pattern_id="never")
    answer = await lot.patterns.ListFeedbackCandidates()
    assert [pattern.pattern_id for pattern in answer.patterns] == ["much", "little"]
    assert list(answer.scores) == [2, 1]
    assert (answer.examined_count, answer.exact) == (3, True)
    [one] = (await lot.patterns.ListFeedbackCandidates(limit=1)).patterns
    assert one.pattern_id == "much"
    answer = await lot.patterns.ListFeedbackCandidates(filter={"min_usage_count": 5})
    assert not answer.patterns
