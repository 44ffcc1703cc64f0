from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.domain.errors import (
    LotError,
    PatternIdInUseError,
    PatternNotFoundError,
    RequestIdReusedError,
    RequestInvalidError,
)
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.services.patterns.drafts import Dedupe, Saved
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.records.collections import OUTCOMES, PATTERNS, REQUESTS
from tests.services.world import DAY, NS, World, draft, outcome, payloads, save


async def count(world: World) -> int:
    return int(await world.store.count(PATTERNS, NS))


async def edit(world: World, pattern_id: str, **changes: Any) -> None:
    content = replace(PatternContent("unused"), **changes)
    await world.services.patterns.patterns.update(
        NS, pattern_id, PatternEdit(content, frozenset(changes)), ""
    )


def good(result: Saved | LotError) -> Saved:
    assert isinstance(result, Saved)
    return result


# --- by content -------------------------------------------------------------------------------


async def test_a_new_pattern_is_there_as_it_was_given(world):
    saved = await save(world, language="python", tags=("a",), initial_success_rate=0.4)
    assert saved.created
    found = await world.services.patterns.patterns.get(NS, saved.pattern.pattern_id)
    assert found == saved.pattern
    assert found.content.tags == ("a",)
    assert (found.outcomes.usage_count, found.outcomes.success_rate) == (0, 0.4)
    assert found.create_time == found.update_time == world.clock.now()


async def test_the_same_content_again_counts_as_one_success_whatever_its_first_rate(world):
    first = await save(world, initial_success_rate=0.5)
    again = await save(world, initial_success_rate=0.1, title="other title")
    assert not again.created
    assert again.pattern.pattern_id == first.pattern.pattern_id
    assert again.pattern.outcomes.usage_count == again.pattern.outcomes.success_count == 1
    assert again.pattern.outcomes.success_rate == pytest.approx(0.65)
    assert again.pattern.content.title == "", "a repeat changes nothing that callers edit"
    assert again.pattern.etag == first.pattern.etag
    assert await count(world) == 1


async def test_case_and_spaces_of_the_task_make_no_new_pattern(world):
    await save(world, "Log in to  the site")
    assert not (await save(world, "log in TO the site ")).created


async def test_another_language_makes_a_new_pattern(world):
    await save(world, language="python")
    assert (await save(world, language="go")).created


async def test_another_namespace_has_its_own_patterns(world):
    await save(world)
    other = await world.services.patterns.writer.save("other", draft())
    assert other.created
    with pytest.raises(PatternNotFoundError):
        await world.services.patterns.patterns.get(NS, other.pattern.pattern_id)


async def test_without_dedupe_the_same_content_is_another_pattern(world):
    first = await save(world)
    second = await save(world, dedupe=Dedupe.NONE)
    assert second.created
    assert second.pattern.pattern_id != first.pattern.pattern_id
    assert first.pattern.outcomes.usage_count == 0
    assert await count(world) == 2


async def test_the_learned_values_of_a_repeat_are_in_the_store(world):
    first = await save(world)
    await save(world)
    found = await world.services.patterns.patterns.get(NS, first.pattern.pattern_id)
    assert found.outcomes.usage_count == 1
    (fact,) = await payloads(world, OUTCOMES)
    assert (fact["outcome"], fact["applied"], fact["from_repeated_save"]) == ("success", True, True)


async def test_an_edited_pattern_frees_its_old_content(world):
    first = await save(world, "one")
    await edit(world, first.pattern.pattern_id, task="two")
    old = await save(world, "one")
    assert old.created
    assert old.pattern.pattern_id != first.pattern.pattern_id
    new = await save(world, "two")
    assert not new.created
    assert new.pattern.pattern_id == first.pattern.pattern_id
    assert await count(world) == 2


async def test_an_edit_there_and_back_keeps_one_pattern_of_a_content(world):
    first = await save(world, "one")
    await edit(world, first.pattern.pattern_id, task="two")
    await edit(world, first.pattern.pattern_id, task="one")
    assert not (await save(world, "one")).created
    assert (await save(world, "two")).created
    assert await count(world) == 2


async def test_a_deleted_pattern_frees_its_content(world):
    first = await save(world)
    await outcome(world, first.pattern.pattern_id)
    await world.services.patterns.patterns.delete(NS, first.pattern.pattern_id, "")
    again = await save(world)
    assert again.created
    assert again.pattern.pattern_id != first.pattern.pattern_id
    assert again.pattern.outcomes.usage_count == 0


@pytest.mark.parametrize("swept", [False, True])
async def test_an_expired_pattern_frees_its_content_and_takes_its_outcomes_along(world, swept):
    first = await save(world, ttl=1_000_000)
    await outcome(world, first.pattern.pattern_id)
    world.clock.advance(2)
    if swept:
        assert await world.services.housekeeping.drop_expired() >= 1
    again = await save(world)
    assert again.created
    assert again.pattern.outcomes.usage_count == 0
    assert again.pattern.content.expire_time is None
    assert await count(world) == 1
    assert await payloads(world, OUTCOMES) == []
    assert not (await save(world)).created


async def test_a_pattern_that_expired_is_no_hindrance_to_its_own_id(world):
    await save(world, "one", pattern_id="mine", ttl=1_000_000)
    await outcome(world, "mine", outcome=Outcome.FAILURE)
    world.clock.advance(2)
    again = await save(world, "two", pattern_id="mine")
    assert again.created
    assert again.pattern.outcomes.usage_count == 0
    assert await payloads(world, OUTCOMES) == []


# --- by id ------------------------------------------------------------------------------------


async def test_a_chosen_id_is_taken_and_saves_without_dedupe(world):
    await save(world)
    mine = await save(world, pattern_id="mine")
    assert mine.created
    assert mine.pattern.pattern_id == "mine"
    assert await count(world) == 2


async def test_the_same_content_under_the_same_id_answers_alike_and_counts_nothing(world):
    await save(world, pattern_id="mine")
    again = await save(world, pattern_id="mine")
    assert not again.created
    assert again.pattern.outcomes.usage_count == 0


async def test_an_id_in_use_by_other_content_is_refused_and_kept(world):
    await save(world, "one", pattern_id="mine")
    with pytest.raises(PatternIdInUseError):
        await save(world, "two", pattern_id="mine")
    assert (await world.services.patterns.patterns.get(NS, "mine")).content.task == "one"


async def test_a_deleted_id_may_be_used_again(world):
    await save(world, "one", pattern_id="mine")
    await outcome(world, "mine")
    await world.services.patterns.patterns.delete(NS, "mine", "")
    again = await save(world, "two", pattern_id="mine")
    assert again.created
    assert again.pattern.outcomes.usage_count == 0
    assert await payloads(world, OUTCOMES) == []


async def test_exact_with_an_id_is_refused(world):
    with pytest.raises(RequestInvalidError, match="omit pattern_id, or use NONE"):
        await save(world, pattern_id="mine", dedupe=Dedupe.EXACT)
    with pytest.raises(RequestInvalidError, match="SEMANTIC identifies the pattern by its content"):
        await save(world, pattern_id="mine", dedupe=Dedupe.SEMANTIC)
    assert await count(world) == 0


@pytest.mark.parametrize("expire_time", [0, 1_700_000_000_000_000])
async def test_an_expiry_that_has_passed_is_refused(world, expire_time):
    with pytest.raises(RequestInvalidError, match="must be in the future"):
        await save(world, expire_time=expire_time)


# --- by request id ----------------------------------------------------------------------------


async def test_a_request_again_answers_with_what_is_there_now(world):
    first = await save(world, request_id="r")
    await outcome(world, first.pattern.pattern_id)
    await edit(world, first.pattern.pattern_id, title="edited")
    again = await save(world, request_id="r")
    assert again.created == first.created is True
    assert again.pattern.pattern_id == first.pattern.pattern_id
    assert again.pattern.content.title == "edited"
    assert again.pattern.outcomes.usage_count == 1


async def test_a_request_again_after_an_edit_of_the_content_makes_no_second_pattern(world):
    first = await save(world, "one", request_id="r")
    await edit(world, first.pattern.pattern_id, task="two")
    again = await save(world, "one", request_id="r")
    assert again.pattern.pattern_id == first.pattern.pattern_id
    assert await count(world) == 1


async def test_a_repeat_of_a_repeat_counts_once(world):
    await save(world)
    merged = await save(world, request_id="r")
    again = await save(world, request_id="r")
    assert (merged.created, again.created) == (False, False)
    assert again.pattern.outcomes.usage_count == 1


async def test_a_request_id_with_other_content_is_refused(world):
    await save(world, "one", request_id="r")
    with pytest.raises(RequestIdReusedError, match="use a new request_id"):
        await save(world, "two", request_id="r")
    with pytest.raises(RequestIdReusedError):
        await save(world, "one", request_id="r", initial_success_rate=0.5)
    assert await count(world) == 1


async def test_a_request_id_is_its_namespaces_own(world):
    await save(world, "one", request_id="r")
    assert (
        await world.services.patterns.writer.save("other", draft("two", request_id="r"))
    ).created


async def test_a_content_saved_under_another_request_id_is_a_repeat(world):
    await save(world, request_id="r1")
    other = await save(world, request_id="r2")
    assert not other.created
    assert other.pattern.outcomes.usage_count == 1


async def test_a_late_retry_never_brings_back_what_was_deleted(world):
    first = await save(world, request_id="r")
    await world.services.patterns.patterns.delete(NS, first.pattern.pattern_id, "")
    with pytest.raises(PatternNotFoundError, match="it was deleted after this request"):
        await save(world, request_id="r")
    assert await count(world) == 0


async def test_a_late_retry_of_a_merged_save_does_not_bring_it_back_either(world):
    first = await save(world)
    await save(world, request_id="r")
    await world.services.patterns.patterns.delete(NS, first.pattern.pattern_id, "")
    with pytest.raises(PatternNotFoundError):
        await save(world, request_id="r")
    assert await count(world) == 0


async def test_a_refused_save_is_refused_again(world):
    await save(world, "one", pattern_id="mine")
    for _ in range(2):
        with pytest.raises(PatternIdInUseError):
            await save(world, "two", pattern_id="mine", request_id="r")


async def test_after_a_day_a_request_id_is_forgotten(world):
    await save(world, "one", request_id="r")
    world.clock.advance(DAY + 1)
    assert (await save(world, "two", request_id="r")).created
    assert await world.services.housekeeping.drop_expired() == 0, "its row was taken over"


# --- batches ----------------------------------------------------------------------------------


async def test_a_batch_answers_in_order_and_each_item_for_itself(world):
    await save(world, "taken", pattern_id="mine")
    results = await world.services.patterns.writer.save_many(
        NS,
        [
            draft("one"),
            draft("two", pattern_id="mine"),
            draft(""),
            draft("three", language="go"),
            draft("four", dedupe=Dedupe.SEMANTIC, pattern_id="four"),
        ],
    )
    assert good(results[0]).pattern.content.task == "one"
    assert isinstance(results[1], PatternIdInUseError)
    assert isinstance(results[2], RequestInvalidError)
    assert good(results[3]).pattern.content.language == "go"
    assert isinstance(results[4], RequestInvalidError)
    assert await count(world) == 3


async def test_a_content_twice_in_a_batch_is_one_pattern_and_one_success(world):
    results = await world.services.patterns.writer.save_many(
        NS, [draft("one"), draft("two"), draft("ONE"), draft("one ")]
    )
    one, two, again, third = (good(result) for result in results)
    assert (one.created, two.created, again.created, third.created) == (True, True, False, False)
    assert one.pattern.pattern_id == again.pattern.pattern_id == third.pattern.pattern_id
    found = await world.services.patterns.patterns.get(NS, one.pattern.pattern_id)
    assert found.outcomes.usage_count == 2
    assert await count(world) == 2


async def test_an_id_twice_in_a_batch_is_saved_once(world):
    results = await world.services.patterns.writer.save_many(
        NS,
        [
            draft("one", pattern_id="mine"),
            draft("one", pattern_id="mine"),
            draft("two", pattern_id="mine"),
        ],
    )
    assert (good(results[0]).created, good(results[1]).created) == (True, False)
    assert isinstance(results[2], PatternIdInUseError)
    assert await count(world) == 1


@pytest.mark.parametrize("dedupe", [Dedupe.EXACT, Dedupe.NONE])
async def test_a_request_id_twice_in_a_batch_is_one_save(world, dedupe):
    results = await world.services.patterns.writer.save_many(
        NS, [draft("one", request_id="r", dedupe=dedupe) for _ in range(2)]
    )
    first, second = (good(result) for result in results)
    assert first.pattern.pattern_id == second.pattern.pattern_id
    found = await world.services.patterns.patterns.get(NS, first.pattern.pattern_id)
    assert found.outcomes.usage_count == 0
    assert await count(world) == 1


async def test_a_request_id_twice_in_a_batch_with_other_content_is_refused(world):
    results = await world.services.patterns.writer.save_many(
        NS, [draft("one", request_id="r"), draft("two", request_id="r")]
    )
    assert good(results[0]).created
    assert isinstance(results[1], RequestIdReusedError)
    assert await count(world) == 1


async def test_a_batch_again_finds_what_it_saved(world):
    drafts = [draft(f"task {n}", request_id=f"r{n}") for n in range(3)]
    first = await world.services.patterns.writer.save_many(NS, drafts)
    again = await world.services.patterns.writer.save_many(
        NS, [*drafts, draft("more", request_id="r9")]
    )
    assert [good(r).pattern for r in again[:3]] == [good(r).pattern for r in first]
    assert all(good(result).created for result in again)
    assert await count(world) == 4


async def test_an_empty_batch_saves_nothing(world):
    assert await world.services.patterns.writer.save_many(NS, []) == []
    assert await payloads(world, REQUESTS) == []


async def test_a_text_longer_than_the_model_reads_is_told(world):
    saved = await save(world, "word " * 9000)
    assert saved.text_truncated
    assert not (await save(world, "short")).text_truncated
