"""What idempotency records, journals and tombstones say beside surviving deaths."""

from __future__ import annotations

import pytest

from lot_grpc.domain.errors import NotFoundError, RequestIdReusedError
from lot_grpc.domain.ids import REQUEST_ID_LIFE, new_id, point_id
from lot_grpc.kernel.create import Creation
from lot_grpc.kernel.idempotency import CREATE_TIME, IdempotencyKey
from lot_grpc.kernel.intents import recover
from lot_grpc.kernel.tombstones import TOMBSTONES, Tombstone
from lot_grpc.ports import Equals, Record
from tests.kernel.mechanisms import (
    CHANGES,
    EVER,
    KIND,
    NS,
    THINGS,
    Process,
    applies,
    counted_once,
    deletes,
    point,
    targets,
    thing,
)
from tests.kernel.test_compare_and_set import opened


def key(request_id: str = "r", content: str = "content", **plan: str) -> IdempotencyKey:
    return IdempotencyKey(NS, "Write", request_id, content, plan)


def creation(id: str = "", request_id: str = "r") -> Creation:
    return Creation(
        namespace=NS, id=id or new_id("t"), request_id=request_id, content_hash="content"
    )


async def created(process: Process, given: Creation) -> tuple[str, bool]:
    record, new = await process.create.insert(KIND, given, lambda own: thing(own, process))
    return record.payload["id"], new


# --- idempotency ------------------------------------------------------------------------------


async def test_a_request_with_other_content_is_refused():
    process = await opened()
    await process.idempotency.begin(key())
    with pytest.raises(RequestIdReusedError):
        await process.idempotency.begin(key(content="other"))
    with pytest.raises(RequestIdReusedError):
        await process.idempotency.find(key(content="other"))


async def test_a_batch_enters_each_request_once_and_refuses_only_what_differs():
    process = await opened()
    given = [key("a"), key("a"), key("a", "other"), key("b")]
    one, again, other, b = await process.idempotency.begin_many(given)
    assert not isinstance(one, RequestIdReusedError)
    assert not isinstance(again, RequestIdReusedError)
    assert not isinstance(b, RequestIdReusedError)
    assert isinstance(other, RequestIdReusedError)
    assert (one.first, again.first, b.first) == (True, False, True)


async def test_of_two_tries_that_plan_anew_one_plan_stands():
    process = await opened()
    one = await process.idempotency.begin(key(id="1"))
    other = await process.idempotency.begin(key(id="2"))
    assert other.plan == {"id": "1"}
    one = await process.idempotency.replan(one, {"id": "3"})
    other = await process.idempotency.replan(other, {"id": "4"})
    assert one.plan == other.plan == {"id": "3"}


async def test_a_request_is_remembered_for_a_day():
    process = await opened()
    await process.idempotency.begin(key())
    process.clock.advance(REQUEST_ID_LIFE / 1_000_000 - 1)
    assert await process.idempotency.find(key()) is not None
    process.clock.advance(2)
    assert await process.idempotency.find(key()) is None
    assert (await process.idempotency.begin(key(content="other"))).first


# --- create -----------------------------------------------------------------------------------


async def test_what_another_call_created_is_not_taken_for_ones_own():
    """The first try found another's record of the id, and died before it could say so."""
    process = await opened()
    await process.create.enter(KIND, [creation("a")])
    assert await created(process, creation("a")) == ("a", False)
    assert await created(process, creation("a")) == ("a", False)


async def test_a_repeat_is_answered_as_the_first_try_whatever_the_record_is_by_now():
    process = await opened()
    assert await created(process, creation("a")) == ("a", False)

    def refuse(stored: Record) -> None:
        raise AssertionError("it has other content by now")

    given = (KIND, creation("a"), lambda own: thing(own, process), refuse)
    record, new = await process.create.insert(*given)
    assert (record.payload["id"], new) == ("a", False)


async def test_a_repeat_does_not_bring_back_what_was_deleted():
    for finished in (True, False):
        process = await opened()
        given = creation()
        if finished:
            await created(process, given)
        else:  # it died before it was marked done
            await process.create.enter(KIND, [given])
            await process.store.insert(THINGS, [given.sign(thing(given.id, process))])
        process.clock.advance(1)
        record = await process.thing(given.id)
        assert record is not None
        stone = await process.tombstones.begin("thing", given.id, record)
        assert await process.tombstones.carry_out(stone, THINGS, record.id)
        for _ in range(2):
            with pytest.raises(NotFoundError, match="it was deleted after this request"):
                await created(process, creation())


async def test_a_repeat_knows_the_record_of_a_first_try_that_died_before_its_end():
    process = await opened()
    first, again = creation(), creation()
    await process.create.enter(KIND, [first])
    await process.create.enter(KIND, [again])
    assert again.id == first.id
    assert again.repeated
    assert await process.create.earlier(KIND, again) is None
    await process.store.insert(THINGS, [first.sign(thing(first.id, process))])
    earlier = await process.create.earlier(KIND, again)
    assert earlier is not None
    assert (earlier.record.id, earlier.created) == (point(first.id), True)
    assert not earlier.result


async def test_of_two_tries_at_the_same_time_both_created_it():
    """The second one had looked for the record just before the first one wrote it."""
    process = await opened()
    first, again = creation(), creation()
    await process.create.enter(KIND, [first])
    await process.create.enter(KIND, [again])
    assert await created(process, first) == (first.id, True)
    args = (KIND, again, lambda own: thing(own, process), lambda stored: None)
    record, new = await process.create._insert(*args)
    assert (record.payload["id"], new) == (first.id, True)


async def test_a_request_id_that_was_used_for_something_else_is_refused():
    process = await opened()
    await created(process, creation())
    other = creation()
    other.content_hash = "other"
    with pytest.raises(RequestIdReusedError):
        await created(process, other)


# --- journals ---------------------------------------------------------------------------------


async def test_a_target_drops_the_names_of_what_is_done():
    process = await opened()
    await targets(process)
    for number in range(5):
        await applies(f"change {number}")(process)
    await counted_once(process)
    record = await process.thing("c")
    assert record is not None
    assert len(record.payload["pending"]) == 1


async def test_a_change_that_was_done_deleted_and_written_again_is_open_again():
    process = await opened()
    await targets(process)
    await applies("change")(process)
    await process.store.delete(CHANGES, NS, [Equals("change", "change")])
    row = Record(
        point_id(NS, "change", "change"), NS, {"change": "change", "applied": False, CREATE_TIME: 0}
    )
    assert await process.changes.write([row]) == {row.id}
    assert await process.changes.done(NS, [row.id]) == set()


async def test_finishing_the_wish_of_one_does_not_finish_that_of_another_that_took_its_id():
    process = await opened()
    former = thing("w", process, open=True)
    process.clock.advance(1)
    another = thing("w", process, open=True)
    await process.wishes.write([another])
    await process.wishes.finish(NS, process.wishes.name(former))
    assert await process.thing("w") == another


async def test_recovery_leaves_what_is_too_young_and_what_fails_and_ends():
    process = await opened()
    rows = [
        Record(point_id(NS, "change", str(number)), NS, {"applied": False, CREATE_TIME: number})
        for number in range(1200)
    ]
    await process.changes.write(rows)
    finished = []

    async def finish(row: Record) -> None:
        if row.payload[CREATE_TIME] == 3:
            raise ZeroDivisionError
        finished.append(row.payload[CREATE_TIME])
        await process.changes.finish(NS, row.id)

    args = (process.store, CHANGES, Equals("applied", False), finish)
    assert await recover(*args, before=699, leaving=(ZeroDivisionError,)) == len(finished)
    assert sorted(finished) == [number for number in range(700) if number != 3]
    with pytest.raises(ZeroDivisionError):
        await recover(*args, before=EVER)


async def test_recovery_of_what_nothing_closes_ends():
    process = await opened()
    rows = [Record(point_id(NS, "change", str(n)), NS, {"applied": False}) for n in range(700)]
    await process.store.insert(CHANGES, rows)
    seen = []

    async def finish(row: Record) -> None:
        seen.append(row.id)

    await recover(process.store, CHANGES, Equals("applied", False), finish)
    assert len(seen) == len(set(seen)) == 700


# --- tombstones -------------------------------------------------------------------------------


async def test_a_delete_spares_what_was_changed_since_it_was_read_and_what_took_the_id():
    process = await opened()
    record = await process.thing("a")
    assert record is not None
    stone = await process.tombstones.begin("thing", "a", record)
    await process.store.update(THINGS, NS, record.id, set={"revision": 2})
    assert not await process.tombstones.carry_out(stone, THINGS, record.id)
    await deletes(process)
    process.clock.advance(1)
    another = thing("a", process)
    await process.store.insert(THINGS, [another])
    left: list[Record | None] = []

    async def drop(found: Record | None) -> None:
        left.append(found)

    assert await process.tombstones.carry_out(stone, THINGS, record.id, drop)
    assert left == [another] == [await process.thing("a")]


async def test_a_delete_that_another_process_finishes_spares_what_was_changed_since():
    process = await opened()
    await process.store.update(THINGS, NS, point("a"), set={"count": 1})
    record = await process.thing("a")
    assert record is not None
    await process.tombstones.begin("thing", "a", record, ("count",))
    await process.store.update(THINGS, NS, record.id, set={"count": 2})

    async def finish(stone: Tombstone) -> None:
        assert not await process.tombstones.carry_out(stone, THINGS, record.id)

    assert await process.tombstones.recover(EVER, finish) == 1
    assert await process.thing("a") is not None


@pytest.mark.parametrize(("earlier", "later"), [((1, 5), (1, 9)), ((1, 5), (2, 5))])
async def test_finishing_an_old_delete_does_not_finish_a_newer_one_of_the_same_id(earlier, later):
    process = await opened()
    records = [
        Record("x", NS, {"revision": revision, "sort_key": key})
        for revision, key in (earlier, later)
    ]
    old, new = [await process.tombstones.begin("thing", "mine", record) for record in records]
    unfinished = []

    async def see(stone: Tombstone) -> None:
        unfinished.append(stone)

    await process.tombstones.finish(old)
    assert await process.tombstones.recover(EVER, see) == 1
    assert unfinished == [new]
    assert await process.tombstones.recover(new.delete_time - 1, see) == 0
    await process.tombstones.finish(new)
    assert await process.tombstones.recover(EVER, see) == 0
    assert len(await process.rows(TOMBSTONES)) == 1
