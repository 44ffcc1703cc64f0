"""Sessions that several write to at once, or again."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.errors import RequestIdReusedError, SessionNotFoundError
from lot_grpc.services.records.collections import SESSION_PARTS, SESSIONS
from tests.contract.clock import FixedClock
from tests.services.session_steps import SECOND, absent, append, contents, got, put, sequences
from tests.services.world import HOUR, NS, Interleaving, SharedStore, World, open_world, rows, sweep

# --- repeats ----------------------------------------------------------------------------------


async def test_a_message_is_not_appended_twice():
    world = await open_world()
    first = await append(world, "one", request_id="r")
    world.clock.advance(1)
    again = await append(world, "one", request_id="r")
    assert again.message == first.message
    await append(world, "two", max_messages=1)
    later = await append(world, "one", request_id="r")
    assert (later.message, later.message_count) == (first.message, 1)
    assert contents(await got(world)) == ["two"]
    with pytest.raises(RequestIdReusedError):
        await append(world, "other", request_id="r")
    with pytest.raises(RequestIdReusedError):
        await append(world, "one", session_id="t", request_id="r")


async def test_a_repeat_does_not_bring_a_cleared_session_back():
    world = await open_world()
    await append(world, "one", request_id="r")
    await world.services.sessions.sessions.clear(NS, "s")
    with pytest.raises(SessionNotFoundError, match="use a new request_id"):
        await append(world, "one", request_id="r")
    await append(world, "another")
    with pytest.raises(SessionNotFoundError, match="use a new request_id"):
        await append(world, "one", request_id="r")
    assert contents(await got(world)) == ["another"]


async def test_a_repeat_does_not_carry_a_message_into_the_next_session():
    world = await open_world()
    await append(world, "one", request_id="r", ttl=HOUR * SECOND)
    world.clock.advance(HOUR)
    with pytest.raises(SessionNotFoundError, match="use a new request_id"):
        await append(world, "one", request_id="r", ttl=HOUR * SECOND)
    await append(world, "another")
    with pytest.raises(SessionNotFoundError):
        await append(world, "one", request_id="r", ttl=HOUR * SECOND)
    assert contents(await got(world)) == ["another"]


async def test_requests_that_are_done_are_dropped_from_the_session():
    world = await open_world()
    for number in range(20):
        await append(world, request_id=f"r{number}")
    (row,) = await rows(world.store, SESSIONS, NS)
    assert len(row.payload["pending_requests"]) == 1


# --- several writers --------------------------------------------------------------------------


def two_processes(seed: int = 7) -> tuple[Any, FixedClock]:
    clock = FixedClock()
    return Interleaving(SharedStore(clock), seed), clock


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("requests", [False, True])
async def test_appends_at_once_from_two_processes_lose_nothing_and_share_no_number(seed, requests):
    world = await open_world(*two_processes(seed))
    processes = [world, world.another_process()]
    told = await asyncio.gather(
        *(
            append(processes[n % 2], f"{n}", request_id=f"r{n}" if requests else "")
            for n in range(40)
        )
    )
    numbers = {one.message.content: one.message.sequence for one in told}
    assert sorted(numbers.values()) == list(range(1, 41))
    session = await got(world)
    assert sequences(session) == list(range(1, 41))
    assert {one.content: one.sequence for one in session.messages} == numbers
    assert session.last_sequence == 40


async def test_one_request_sent_by_two_processes_at_once_is_one_message():
    world = await open_world(*two_processes())
    processes = [world, world.another_process()]
    for number in range(20):
        told = await asyncio.gather(
            *(append(one, f"{number}", request_id=f"r{number}") for one in processes * 2)
        )
        assert len({one.message for one in told}) == 1
    assert contents(await got(world)) == [f"{number}" for number in range(20)]


async def test_values_put_at_once_from_two_processes_are_all_there():
    world = await open_world(*two_processes())
    processes = [world, world.another_process()]
    await asyncio.gather(*(put(processes[n % 2], f"k{n}", b"%d" % n) for n in range(30)))
    values = {key: value.data for key, value in (await got(world)).values.items()}
    assert values == {f"k{n}": b"%d" % n for n in range(30)}


@pytest.mark.parametrize("seed", range(10))
async def test_writes_and_clearings_at_once_leave_no_part_of_what_is_gone(seed):
    world = await open_world(*two_processes(seed))
    processes = [world, world.another_process()]

    async def clearing(one: World, **which: Any) -> None:
        for _ in range(3):
            try:
                await one.services.sessions.sessions.clear(NS, "s", **which)
            except SessionNotFoundError:
                await asyncio.sleep(0)

    await asyncio.gather(
        *(append(processes[n % 2], f"{n}", request_id=f"r{n}" if n % 3 else "") for n in range(12)),
        *(put(processes[n % 2], f"k{n}") for n in range(8)),
        clearing(processes[0]),
        clearing(processes[1]),
        clearing(processes[0], keys=["k1", "k2"]),
        clearing(processes[1], clear_messages=True),
    )
    there = await rows(world.store, SESSIONS, NS)
    parts = await rows(world.store, SESSION_PARTS, NS)
    generations = {row.payload["sort_key"] for row in there}
    assert {part.payload["generation"] for part in parts} <= generations
    if there:
        session = await got(world)
        first = session.last_sequence - len(session.messages) + 1
        assert sequences(session) == list(range(first, session.last_sequence + 1))


async def test_a_reader_never_sees_a_gap_while_others_write():
    world = await open_world(*two_processes())
    processes = [world, world.another_process()]
    done = False

    async def reads() -> int:
        count = 0
        while not done:
            try:
                session = await got(world)
            except SessionNotFoundError:
                continue
            numbers = sequences(session)
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else 1
            count += 1
        return count

    reading = asyncio.create_task(reads())
    await asyncio.gather(*(append(processes[n % 2], f"{n}", max_messages=5) for n in range(40)))
    done = True
    assert await reading > 5


# --- against a model --------------------------------------------------------------------------


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from([0, 0, 0, 1, 3])),
        st.tuples(st.just("put"), st.sampled_from("abc")),
        st.tuples(st.just("keys"), st.sampled_from("abc")),
        st.tuples(st.just("messages"), st.none()),
        st.tuples(st.just("clear"), st.none()),
        st.tuples(st.just("wait"), st.sampled_from([1, 5, 10])),
        st.tuples(st.just("sweep"), st.none()),
    ),
    max_size=30,
)


class Model:
    """What a session should be, in plain Python."""

    def __init__(self) -> None:
        self.there = False
        self.expires = 0

    def write(self, now: int) -> None:
        if not self.there or now >= self.expires:
            self.there, self.last, self.window = True, 0, 4
            self.values: dict[str, bytes] = {}
            self.messages: list[tuple[int, str]] = []
        self.expires = now + 10 * SECOND

    def alive(self, now: int) -> bool:
        return self.there and now < self.expires


@given(STEPS)
async def test_a_session_is_what_a_plain_model_says(steps):
    world, model = await open_world(), Model()
    sessions, number = world.services.sessions.sessions, 0
    ttl = 10 * SECOND
    for step, given_value in steps:
        now, number = world.clock.now(), number + 1
        alive = model.alive(now)
        if step == "append":
            new = not alive
            model.write(now)
            model.window = given_value or (50 if new else model.window)
            model.last += 1
            model.messages = [*model.messages, (model.last, f"{number}")][-model.window :]
            told = await append(world, f"{number}", max_messages=given_value, ttl=ttl)
            assert told.message.sequence == model.last
            assert told.message_count == len(model.messages)
        elif step == "put":
            new = not alive
            model.write(now)
            model.window = 50 if new else model.window
            model.values[given_value] = b"%d" % number
            await put(world, given_value, b"%d" % number, ttl=ttl)
        elif step == "wait":
            world.clock.advance(given_value)
        elif step == "sweep":
            await sweep(world)
        elif not alive:
            assert await absent(world)
        elif step == "clear":
            await sessions.clear(NS, "s")
            model.there = False
        elif step == "keys":
            await sessions.clear(NS, "s", [given_value])
            model.write(now)
            model.values.pop(given_value, None)
        else:
            await sessions.clear(NS, "s", clear_messages=True)
            model.write(now)
            model.messages = []
        if model.alive(world.clock.now()):
            session = await got(world)
            assert {key: one.data for key, one in session.values.items()} == model.values
            assert [(one.sequence, one.content) for one in session.messages] == model.messages
            assert session.expire_time == model.expires
        else:
            assert await absent(world)


async def test_a_process_that_died_between_making_a_session_and_its_first_write_is_cleaned_after():
    world = await open_world()
    for _ in range(2):
        await append(world, "old", ttl=SECOND)
    world.clock.advance(2)
    delete = world.store.delete

    async def dies(*_: Any) -> int:
        raise RuntimeError("the process died")

    world.store.delete = dies
    with pytest.raises(RuntimeError):
        await append(world, "new")
    world.store.delete = delete
    session = await got(world)
    assert (session.messages, session.values) == ((), {})
    assert [p.payload["content"] for p in await rows(world.store, SESSION_PARTS, NS)] == ["old"]
    await sweep(world)
    assert await rows(world.store, SESSION_PARTS, NS) == []
    assert (await append(world, "next")).message.sequence == 1


async def test_many_writers_in_one_process_go_one_after_the_other():
    world = await open_world()
    rng = random.Random(3)
    await asyncio.gather(*(append(world, f"{rng.random()}", max_messages=200) for _ in range(200)))
    (row,) = await rows(world.store, SESSIONS, NS)
    assert row.payload["revision"] == 201, "each took one renewal"
