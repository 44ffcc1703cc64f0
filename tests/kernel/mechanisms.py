"""Each mechanism of the kernel in its smallest use, of which it is proven by deaths."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from lot_grpc.domain.errors import NotFoundError
from lot_grpc.domain.ids import new_id, point_id
from lot_grpc.kernel.apply_once import NewChanges, Target, apply_new, apply_once
from lot_grpc.kernel.compare_and_set import compare_and_set, insert_new, update_as_read
from lot_grpc.kernel.create import CreateOnce, Creation, Kind
from lot_grpc.kernel.idempotency import (
    CREATE_TIME,
    REQUESTS,
    IdempotencyKey,
    IdempotencyStore,
)
from lot_grpc.kernel.intents import SORT_KEY, Journal, Mark
from lot_grpc.kernel.tombstones import TOMBSTONES, Tombstone, Tombstones
from lot_grpc.ports import CollectionSpec, Equals, Index, Range, Record, VectorStore
from tests.contract.clock import FixedClock

NS = "team"
THINGS, CHANGES, PARTS = "things", "changes", "parts"
EVER = 2**62

_B, _I, _K = Index.BOOL, Index.INTEGER, Index.KEYWORD
SPECS = [
    CollectionSpec(REQUESTS, indexes={"kind": _K, "done": _B}),
    CollectionSpec(TOMBSTONES, indexes={"done": _B}),
    CollectionSpec(THINGS, indexes={"revision": _I, SORT_KEY: _I, "open": _B}),
    CollectionSpec(CHANGES, indexes={"applied": _B}),
    CollectionSpec(PARTS, indexes={"thing": _K, SORT_KEY: _I}),
]


class Process:
    """One process: the kernel over a store, without anything of its own that a death would take."""

    def __init__(self, store: VectorStore, clock: FixedClock) -> None:
        self.store = store
        self.clock = clock
        self.idempotency = IdempotencyStore(store, clock)
        self.tombstones = Tombstones(store, clock)
        self.create = CreateOnce(store, self.idempotency, self.tombstones)
        self.changes = Journal(store, CHANGES, Mark("applied"))
        self.wishes = Journal(store, THINGS, Mark("open", True, False), ids_return=True)

    async def thing(self, id: str) -> Record | None:
        found = await self.store.get(THINGS, NS, [point(id)])
        return found.get(point(id))

    async def rows(self, collection: str) -> list[Record]:
        return await self.store.scroll(collection, NS, [], limit=1000)


Step = Callable[[Process], Awaitable[Any]]


async def nothing(process: Process) -> None:
    pass


@dataclass(frozen=True)
class Mechanism:
    """``step`` is a call that a client sends again; ``recover`` is what housekeeping does.

    ``check`` holds whenever nothing is under way and what was left is recovered; ``outcome`` is
    what the call has come to once it was carried out.
    """

    name: str
    begin: Step
    step: Step
    recover: Step
    check: Step
    outcome: Callable[[Process], Awaitable[Any]]

    def __str__(self) -> str:
        return self.name


def point(id: str) -> str:
    return point_id(NS, "thing", id)


def thing(id: str, process: Process, **payload: Any) -> Record:
    now = process.clock.now()
    born = {"id": id, "revision": 1, SORT_KEY: now, CREATE_TIME: now}
    return Record(point(id), NS, {**born, **payload})


async def a_thing(process: Process) -> None:
    await process.store.insert(THINGS, [thing("a", process, count=0, pending=[])])


# --- compare-and-set --------------------------------------------------------------------------


async def doubles(process: Process) -> None:
    """Brings a thing from 1 to 2, whoever else writes other keys of it."""

    async def attempt() -> None:
        record = await process.thing("a")
        if record is None:
            await insert_new(process.store, THINGS, thing("a", process, count=2))
        elif record.payload["count"] < 2:
            await update_as_read(process.store, THINGS, record, {"count": 2}, "revision")

    await compare_and_set("thing", "a", attempt)


async def count_of_a(process: Process) -> Any:
    record = await process.thing("a")
    return record and (record.payload["count"], record.payload["revision"])


# --- idempotency ------------------------------------------------------------------------------


async def writes_as_planned(process: Process) -> Any:
    key = IdempotencyKey(NS, "Write", "r", "content", {"id": new_id("t")})
    entry = await process.idempotency.begin(key)
    if entry.result is not None:
        return entry.result
    await process.store.insert(THINGS, [thing(entry.plan["id"], process)])
    await process.idempotency.finish(entry, {"id": entry.plan["id"]})
    return entry.plan


async def number_of_things(process: Process) -> int:
    return len(await process.rows(THINGS))


async def one_thing_at_most(process: Process) -> None:
    assert await number_of_things(process) <= 1


# --- create -----------------------------------------------------------------------------------

KIND = Kind("Create", THINGS, "thing", "id", lambda _, own: point(own), NotFoundError)


def creates(id: str, request_id: str) -> Step:
    async def step(process: Process) -> Any:
        creation = Creation(
            namespace=NS, id=id or new_id("t"), request_id=request_id, content_hash="content"
        )
        await process.create.insert(KIND, creation, lambda own: thing(own, process))

    return step


async def answer_to_a_repeat(process: Process) -> Any:
    """A repeat is answered with what its first try came to: that it created the thing."""
    await one_thing_at_most(process)
    creation = Creation(namespace=NS, id=new_id("t"), request_id="r", content_hash="content")
    _, created = await process.create.insert(KIND, creation, lambda own: thing(own, process))
    return created


# --- apply once -------------------------------------------------------------------------------


async def targets(process: Process) -> None:
    """One that remembers changes in a list, and one that remembers them in a mapping."""
    names: list[tuple[str, Any]] = [("a", []), ("b", {})]
    for name, pending in names:
        await process.store.insert(THINGS, [thing(name, process, count=0, pending=pending)])
    await applies("earlier")(process)


def applies(change: str) -> Step:
    async def step(process: Process) -> None:
        payload = {"change": change, "applied": False, CREATE_TIME: process.clock.now()}
        row = Record(point_id(NS, "change", change), NS, payload)
        await process.changes.write([row])
        await takes_in(process, row)

    return step


async def takes_in(process: Process, row: Record) -> None:
    """To three targets, of which the last one is made by its first change."""
    for name in ("a", "b", "c"):
        await applied_to(process, row, name, remember=1 if name == "b" else None)
    await process.changes.finish(NS, row.id)


async def applied_to(process: Process, row: Record, name: str, remember: object = None) -> None:
    target = Target("thing", name, NS, THINGS, point(name), "pending")

    async def add(record: Record | None, pending: Any) -> Record | None:
        if record is None:
            made = thing(name, process, count=1, pending=pending)
            return await insert_new(process.store, THINGS, made)
        changed = {"count": record.payload["count"] + 1, "pending": pending}
        return await update_as_read(process.store, THINGS, record, changed, "revision")

    args = (process.store, process.changes, row.id, target, add)
    assert await apply_once(*args, remember=remember) is not None


def apply_together(*changes: str) -> Step:
    """Changes that come at the same time, with targets as read before: one write for each target.

    What a target has by then is left to ``apply_once``, and so is the one made by its first change.
    """

    async def step(process: Process) -> None:
        read = [record for name in "ad" if (record := await process.thing(name)) is not None]
        now = process.clock.now()
        journal = [
            Record(
                point_id(NS, "change", change),
                NS,
                {"change": change, "applied": False, CREATE_TIME: now},
            )
            for change in changes
        ]
        written = await process.changes.write(journal)
        new = [row.id for row in journal if row.id in written]
        batch = [
            NewChanges(record, new, {"count": record.payload["count"] + len(new)})
            for record in read
            if new
        ]
        args = (process.store, process.changes, THINGS, batch, "pending", "revision")
        await apply_new(*args)
        for row in journal:
            await take_in_lists(process, row)
        await process.changes.finish_all([(NS, row.id) for row in journal])

    return step


async def take_in_lists(process: Process, row: Record) -> None:
    for name in "adc":
        await applied_to(process, row, name)


async def two_targets(process: Process) -> None:
    for name in "ad":
        await process.store.insert(THINGS, [thing(name, process, count=0, pending=[])])
    await apply_together("earlier")(process)


async def applies_open_ones_to_lists(process: Process) -> None:
    async def finish(row: Record) -> None:
        await take_in_lists(process, row)
        await process.changes.finish(NS, row.id)

    await process.changes.recover(EVER, finish)


async def applies_what_is_open(process: Process) -> None:
    async def finish(row: Record) -> None:
        await takes_in(process, row)

    await process.changes.recover(EVER, finish)


async def counted_once(process: Process) -> None:
    changes = await process.rows(CHANGES)
    assert all(row.payload["applied"] for row in changes), "a change was never applied"
    for row in await process.rows(THINGS):
        assert row.payload["count"] == len(changes), row.payload
        assert set(row.payload["pending"]) <= {change.id for change in changes}


async def counts(process: Process) -> Any:
    return sorted((row.payload["id"], row.payload["count"]) for row in await process.rows(THINGS))


# --- intents ----------------------------------------------------------------------------------


async def leaves_a_wish(process: Process) -> None:
    """A write that says in itself what is still to follow, and then does it."""
    await process.store.insert(THINGS, [thing("w", process, open=True)])
    record = await process.thing("w")
    if record is not None and record.payload["open"]:
        await fulfils(process, record)


async def fulfils(process: Process, record: Record) -> None:
    for number in range(3):
        part = Record(point_id(NS, "part", str(number)), NS, {"thing": "w", SORT_KEY: number})
        await process.store.insert(PARTS, [part])
    await process.wishes.finish(NS, process.wishes.name(record))


async def fulfils_open_wishes(process: Process) -> None:
    async def finish(record: Record) -> None:
        await fulfils(process, record)

    await process.wishes.recover(EVER, finish)


async def no_wish_is_half(process: Process) -> None:
    things, parts = await process.rows(THINGS), await process.rows(PARTS)
    assert not [row for row in things if row.payload["open"]]
    assert len(parts) == 3 * len(things)


async def parts(process: Process) -> Any:
    return [len(await process.rows(collection)) for collection in (THINGS, PARTS)]


# --- tombstones -------------------------------------------------------------------------------


async def a_thing_with_parts(process: Process) -> None:
    await process.store.insert(THINGS, [thing("a", process)])
    for number in range(3):
        payload = {"thing": "a", SORT_KEY: process.clock.now() + number}
        await process.store.insert(PARTS, [Record(point_id(NS, "part", str(number)), NS, payload)])


async def deletes(process: Process) -> None:
    record = await process.thing("a")
    if record is not None:
        await finishes_delete(process, await process.tombstones.begin("thing", "a", record))


async def finishes_delete(process: Process, stone: Tombstone) -> None:
    async def drop_parts(left: Record | None) -> None:
        older = [Range(SORT_KEY, lt=left.payload[SORT_KEY])] if left else []
        await process.store.delete(PARTS, NS, [Equals("thing", stone.id), *older])

    await process.tombstones.carry_out(stone, THINGS, point(stone.id), drop_parts)


async def finishes_deletes(process: Process) -> None:
    async def finish(stone: Tombstone) -> None:
        await finishes_delete(process, stone)

    await process.tombstones.recover(EVER, finish)


async def no_delete_is_half(process: Process) -> None:
    assert all(row.payload["done"] for row in await process.rows(TOMBSTONES))
    assert len(await process.rows(PARTS)) == (3 if await process.thing("a") else 0)


MECHANISMS = [
    Mechanism("compare and set", a_thing, doubles, nothing, nothing, count_of_a),
    Mechanism("compare and set, first write", nothing, doubles, nothing, nothing, count_of_a),
    Mechanism(
        "idempotency", nothing, writes_as_planned, nothing, one_thing_at_most, number_of_things
    ),
    Mechanism("create", nothing, creates("", "r"), nothing, one_thing_at_most, answer_to_a_repeat),
    Mechanism(
        "create under an id",
        nothing,
        creates("a", "r"),
        nothing,
        one_thing_at_most,
        answer_to_a_repeat,
    ),
    Mechanism("apply once", targets, applies("this"), applies_what_is_open, counted_once, counts),
    Mechanism(
        "apply together",
        two_targets,
        apply_together("this", "that"),
        applies_open_ones_to_lists,
        counted_once,
        counts,
    ),
    Mechanism("intents", nothing, leaves_a_wish, fulfils_open_wishes, no_wish_is_half, parts),
    Mechanism(
        "tombstones", a_thing_with_parts, deletes, finishes_deletes, no_delete_is_half, parts
    ),
]
