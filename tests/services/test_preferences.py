"""Preferences: put, read, listed, deleted, with their history."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lot_grpc.domain.errors import (
    EtagMismatchError,
    PreferenceNotFoundError,
    RequestIdReusedError,
)
from lot_grpc.domain.preference import HISTORY, Preference
from lot_grpc.services.preferences.preferences import PreferenceDraft
from lot_grpc.services.records.collections import PREFERENCE_REVISIONS, PREFERENCES
from tests.contract.clock import FixedClock
from tests.services.world import (
    NS,
    Interleaving,
    SharedStore,
    World,
    judgement,
    open_world,
    rows,
    sweep,
)

VALUES = [None, False, True, 0.0, 1.0, -0.5, "", "dark", [], [1.0, "1"], {}, {"a": {"b": [None]}}]


async def put(world: World, value: Any, key: str = "k", **named: Any) -> Preference:
    draft = PreferenceDraft(key, value, **named)
    return (await world.services.preferences.put(NS, draft)).preference


async def history(world: World, limit: int = 100, key: str = "k") -> list[Any]:
    _, found = await world.services.preferences.get_with_history(NS, key, limit)
    return [(one.revision, one.value) for one in found]


async def test_every_json_value_is_given_back_and_its_forerunner_is_history():
    world = await open_world()
    for number, value in enumerate(VALUES, 1):
        world.clock.advance(1)
        stored = await put(world, value)
        assert stored == await world.services.preferences.get(NS, "k")
        assert (stored.value, stored.revision) == (value, number)
        assert type(stored.value) is type(value)
        assert stored.update_time - stored.create_time == (number - 1) * 1_000_000
    former = list(enumerate(VALUES, 1))[:-1]
    assert await history(world) == former[::-1]
    assert await history(world, 3) == former[:-4:-1]
    assert await history(world, 0) == []


async def test_the_first_put_creates_and_a_category_stays_until_another_is_given():
    world = await open_world()
    preferences = world.services.preferences
    first = await preferences.put(NS, PreferenceDraft("k", 1.0))
    assert (first.created, first.preference.category) == (True, "general")
    second = await preferences.put(NS, PreferenceDraft("k", 2.0, "editor"))
    assert (second.created, second.preference.category) == (False, "editor")
    assert (await put(world, 3.0)).category == "editor"
    _, former = await preferences.get_with_history(NS, "k", 10)
    assert [one.category for one in former] == ["editor", "general"]


async def test_the_value_it_has_is_no_new_revision_but_the_same_value_in_another_category_is():
    world = await open_world()
    first = await put(world, {"b": 1.0, "a": [True]})
    world.clock.advance(5)
    assert await put(world, {"a": [True], "b": 1.0}) == first
    assert await put(world, {"a": [True], "b": 1.0}, category="general") == first
    other = await put(world, {"a": [True], "b": 1.0}, category="other")
    assert (other.revision, other.category) == (2, "other")
    assert (await put(world, {"a": [1.0], "b": 1.0})).revision == 3, "true is not 1"


async def test_an_etag_must_be_that_of_the_present_value():
    world = await open_world()
    first = await put(world, 1.0)
    second = await put(world, 2.0, etag=first.etag)
    with pytest.raises(EtagMismatchError):
        await put(world, 3.0, etag=first.etag)
    with pytest.raises(EtagMismatchError):
        await world.services.preferences.delete(NS, "k", first.etag)
    with pytest.raises(PreferenceNotFoundError, match="without an etag"):
        await put(world, 3.0, "other", etag=first.etag)
    assert await world.services.preferences.get(NS, "k") == second


async def test_an_etag_of_a_deleted_preference_does_not_fit_the_next_of_the_key():
    world = await open_world()
    first = await put(world, 1.0)
    await world.services.preferences.delete(NS, "k", first.etag)
    world.clock.advance(1)
    assert (await put(world, 1.0)).etag != first.etag


async def test_a_request_that_is_sent_again_puts_nothing_and_tells_how_it_stands():
    world = await open_world()
    preferences = world.services.preferences
    draft = PreferenceDraft("k", 1.0, request_id="r")
    assert (await preferences.put(NS, draft)).created
    again = await preferences.put(NS, draft)
    assert (again.created, again.preference.revision) == (True, 1)
    await put(world, 2.0)
    later = await preferences.put(NS, draft)
    assert (later.preference.value, later.preference.revision) == (2.0, 2)
    with pytest.raises(RequestIdReusedError):
        await put(world, 5.0, request_id="r")


async def test_a_request_with_an_etag_that_is_sent_again_is_no_mismatch():
    world = await open_world()
    first = await put(world, 1.0)
    for _ in range(2):
        second = await put(world, 2.0, etag=first.etag, request_id="r")
        assert second.revision == 2


async def test_a_request_that_is_sent_again_does_not_bring_a_deleted_one_back():
    world = await open_world()
    await put(world, 1.0, request_id="r")
    await world.services.preferences.delete(NS, "k")
    with pytest.raises(PreferenceNotFoundError, match="deleted after this request"):
        await put(world, 1.0, request_id="r")
    other = await put(world, "another")
    with pytest.raises(PreferenceNotFoundError, match="deleted after this request"):
        await put(world, 1.0, request_id="r")
    assert await world.services.preferences.get(NS, "k") == other


async def test_requests_that_are_done_are_dropped_from_the_preference():
    world = await open_world()
    for number in range(20):
        await put(world, float(number), request_id=f"r{number}")
    (record,) = await rows(world.store, PREFERENCES, NS)
    assert len(record.payload["pending_requests"]) == 1


async def test_no_more_than_the_latest_former_values_are_kept():
    world = await open_world()
    for value in ("old", "new"):
        await put(world, value, "other")
    for number in range(HISTORY + 12):
        await put(world, float(number))
    assert await world.store.count(PREFERENCE_REVISIONS, NS) == HISTORY + 1
    assert await history(world, key="other") == [(1, "old")]
    found = await history(world)
    assert found == [(n, n - 1.0) for n in range(HISTORY + 11, 11, -1)]


async def test_deleting_takes_the_history_along_and_the_key_begins_anew():
    world = await open_world()
    for value in ("old", "older", "oldest"):
        await put(world, value)
    await put(world, 1.0, "other")
    await put(world, 2.0, "other")
    assert await history(world, key="other") == [(1, 1.0)]
    await world.services.preferences.delete(NS, "k")
    assert await world.services.preferences.find(NS, "k") is None
    with pytest.raises(PreferenceNotFoundError):
        await world.services.preferences.get(NS, "k")
    with pytest.raises(PreferenceNotFoundError):
        await world.services.preferences.delete(NS, "k")
    assert [r.payload["key"] for r in await rows(world.store, PREFERENCE_REVISIONS, NS)] == [
        "other"
    ]
    again = await put(world, "new")
    assert (again.revision, await history(world)) == (1, [])


async def test_a_list_is_newest_first_by_creation_in_pages_and_by_category():
    world = await open_world()
    preferences = world.services.preferences
    for number in range(7):
        await put(world, number, f"k{number}", category=f"c{number % 3}")
    await put(world, "again", "k0")
    keys, after = [], None
    while True:
        page = await preferences.list_page(NS, (), 3, after)
        keys += [one.key for one in page.items]
        assert len(page.items) <= 3
        if (after := page.next) is None:
            break
    assert keys == [f"k{number}" for number in range(6, -1, -1)]
    some = await preferences.list_page(NS, ("c0", "c2"), 10, None)
    assert [one.key for one in some.items] == ["k6", "k5", "k3", "k2", "k0"]
    assert (await preferences.list_page("other", (), 10, None)).items == []
    assert (await preferences.list_page(NS, ("none",), 10, None)).items == []


async def test_puts_at_once_from_two_processes_lose_no_value():
    clock = FixedClock()
    world = await open_world(Interleaving(SharedStore(clock)), clock)
    processes = [world, world.another_process()]
    await asyncio.gather(*(put(processes[n % 2], f"value {n}") for n in range(24)))
    present = await world.services.preferences.get(NS, "k")
    values = [value for _, value in await history(world)]
    assert present.revision == 24
    assert sorted([*values, present.value]) == sorted(f"value {n}" for n in range(24))


async def test_one_of_two_puts_with_one_etag_wins():
    clock = FixedClock()
    world = await open_world(Interleaving(SharedStore(clock)), clock)
    first = await put(world, "first")
    told = await asyncio.gather(
        *(put(world, f"{n}", etag=first.etag) for n in range(5)), return_exceptions=True
    )
    won = [one for one in told if isinstance(one, Preference)]
    assert [one.revision for one in won] == [2]
    assert all(isinstance(one, EtagMismatchError) for one in told if one not in won)


@pytest.mark.parametrize("seed", range(12))
async def test_puts_and_deletes_at_once_leave_no_history_of_what_is_gone(seed):
    clock = FixedClock()
    world = await open_world(Interleaving(SharedStore(clock), seed), clock)
    preferences = world.services.preferences

    async def deletes() -> None:
        for _ in range(3):
            try:
                await preferences.delete(NS, "k")
            except PreferenceNotFoundError:
                await asyncio.sleep(0)

    await asyncio.gather(*(put(world, f"{n}") for n in range(8)), deletes(), deletes())
    present = await preferences.find(NS, "k")
    former = await rows(world.store, PREFERENCE_REVISIONS, NS)
    if present is None:
        assert former == []
    else:
        told = sorted(row.payload["revision"] for row in former)
        assert told == list(range(1, present.revision))


async def test_feedback_and_puts_share_a_preference():
    world = await open_world()
    praise = judgement(text="Perfect summary, thanks!", task="t")
    learned = (await world.services.learning.feedback_handler.submit(NS, praise)).preference
    assert learned is not None
    assert (learned.revision, learned.category) == (1, "learned")
    await put(world, "mine", learned.key, request_id="r")
    again = (await world.services.learning.feedback_handler.submit(NS, praise)).preference
    assert again is not None
    assert again.revision == 3
    assert [value for _, value in await history(world, key=learned.key)] == ["mine", learned.value]


async def test_feedback_whose_preference_was_deleted_does_not_bring_it_back_when_it_is_repeated():
    world = await open_world()
    praise = judgement(text="Perfect summary, thanks!", task="t", request_id="r")
    submitting = world.services.learning.feedback_handler
    learned = (await submitting.submit(NS, praise)).preference
    assert learned is not None
    world.clock.advance(1)
    (event,) = await rows(world.store, "learning_events", NS)
    await world.store.update("learning_events", NS, event.id, set={"applied": False})
    await world.services.preferences.delete(NS, learned.key)
    assert (await submitting.submit(NS, praise)).preference is None
    await sweep(world)
    assert await world.services.preferences.find(NS, learned.key) is None
    fresh = judgement(text="Perfect summary, thanks!", task="t", request_id="another")
    assert (await submitting.submit(NS, fresh)).preference is not None


async def test_texts_of_any_script_are_given_back_as_they_came():
    world = await open_world()
    texts = ["日本語の設定", "الإعدادات", "🙂👨‍👩‍👧", "é ≠ é", "100%_a.b=c'\"\\", "\u202eabc"]
    for number, text in enumerate(texts):
        await put(world, {text: [text]}, f"k{number}", category=text)
        page = await world.services.preferences.list_page(NS, (text,), 10, None)
        assert [(one.value, one.category) for one in page.items] == [({text: [text]}, text)]


async def test_a_put_that_a_delete_overtakes_leaves_no_former_value_of_what_is_gone():
    """Another process deletes between what a put reads and its first write."""
    clock = FixedClock()
    world = await open_world(SharedStore(clock), clock)
    await put(world, "old")
    other = world.another_process()
    insert = world.store.insert

    async def overtaken(collection: str, records: Any) -> Any:
        if collection == PREFERENCE_REVISIONS:
            await other.services.preferences.delete(NS, "k")
        return await insert(collection, records)

    world.store.insert = overtaken
    assert (await put(world, "new")).revision == 1
    assert await rows(world.store, PREFERENCE_REVISIONS, NS) == []


async def test_a_delete_that_died_is_finished_before_its_key_is_put_and_deleted_again():
    world = await open_world()
    await put(world, "old")
    await put(world, "older")
    delete = world.store.delete

    async def dies(collection: str, *given: Any) -> int:
        if collection == PREFERENCE_REVISIONS:
            raise RuntimeError("the process died")
        return int(await delete(collection, *given))

    world.store.delete = dies
    with pytest.raises(RuntimeError):
        await world.services.preferences.delete(NS, "k")
    world.store.delete = delete
    await put(world, "new")
    await world.services.preferences.delete(NS, "k")
    assert await rows(world.store, PREFERENCE_REVISIONS, NS) == []
