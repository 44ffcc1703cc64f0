"""Sessions: values, a window of messages, a sliding life, and who writes them at once."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.errors import (
    RequestIdReusedError,
    SessionFullError,
    SessionNotFoundError,
)
from lot_grpc.domain.session import DEFAULT_TTL, Session, SessionMessage, SessionValue
from lot_grpc.services.records.collections import SESSION_PARTS, SESSIONS, TOMBSTONES
from lot_grpc.services.sessions.rows import Terms
from lot_grpc.services.sessions.session_messages import Appended, MessageDraft
from tests.contract.clock import FixedClock
from tests.services.world import (
    DAY,
    HOUR,
    NS,
    Interleaving,
    SharedStore,
    World,
    open_world,
    rows,
    sweep,
)

SECOND = 1_000_000


async def append(
    world: World, content: str = "hello", session_id: str = "s", **named: Any
) -> Appended:
    terms = Terms(named.pop("max_messages", 0), named.pop("ttl", None))
    request_id = named.pop("request_id", "")
    message = SessionMessage("user", content, **named)
    draft = MessageDraft(session_id, message, terms, request_id)
    return await world.services.sessions.messages.append(NS, draft)


async def put(
    world: World, key: str, value: bytes = b"v", session_id: str = "s", ttl: int | None = None
) -> int:
    return await world.services.sessions.values.put(NS, session_id, key, value, ttl)


async def got(world: World, session_id: str = "s", limit: int = 0) -> Session:
    return await world.services.sessions.sessions.get(NS, session_id, limit)


def contents(session: Session) -> list[str]:
    return [one.content for one in session.messages]


def sequences(session: Session) -> list[int]:
    return [one.sequence for one in session.messages]


async def absent(world: World, session_id: str = "s") -> bool:
    """Whether it is absent everywhere."""
    services = world.services
    for call in (
        services.sessions.sessions.get(NS, session_id),
        services.sessions.values.get(NS, session_id, "k"),
        services.sessions.sessions.clear(NS, session_id),
        services.sessions.sessions.clear(NS, session_id, ["k"]),
        services.sessions.sessions.clear(NS, session_id, messages_only=True),
    ):
        try:
            await call
        except SessionNotFoundError:
            continue
        return False
    return True


# --- what is kept -----------------------------------------------------------------------------


async def test_a_session_comes_to_be_with_its_first_write_and_keeps_all_in_order():
    world = await open_world()
    assert await absent(world)
    assert await put(world, "k", b"1") == world.clock.now() + DEFAULT_TTL
    first = await append(world, "one", name="ann", metadata=b"\x0a\x00", message_time=5)
    assert first.message == SessionMessage("user", "one", "ann", b"\x0a\x00", 5, 1)
    world.clock.advance(3)
    second = await append(world, "two")
    assert (second.message.sequence, second.message.message_time) == (2, world.clock.now())
    assert second.message_count == 2
    await put(world, "漢字%_.=", b"\x00\xff")
    session = await got(world)
    assert session == Session(
        NS,
        "s",
        50,
        DEFAULT_TTL,
        2,
        world.clock.now() - 3 * SECOND,
        world.clock.now(),
        world.clock.now() + DEFAULT_TTL,
        {
            "k": SessionValue(b"1", update_time=world.clock.now() - 3 * SECOND),
            "漢字%_.=": SessionValue(b"\x00\xff", update_time=world.clock.now()),
        },
        (first.message, second.message),
    )


async def test_a_value_is_put_over_the_former_one_and_read_by_its_key():
    world = await open_world()
    values = world.services.sessions.values
    for value in (b"1", b"", b"3"):
        await put(world, "k", value)
        got_back = await values.get(NS, "s", "k")
        assert got_back is not None
        assert got_back.data == value
    assert await values.get(NS, "s", "K") is None
    assert await world.store.count(SESSION_PARTS, NS) == 1


async def test_beyond_the_window_the_oldest_fall_out_and_are_deleted():
    world = await open_world()
    for number in range(60):
        told = await append(world, f"{number}")
        assert told.message_count == min(number + 1, 50)
    session = await got(world)
    assert contents(session) == [f"{n}" for n in range(10, 60)]
    assert sequences(session) == list(range(11, 61))
    assert await world.store.count(SESSION_PARTS, NS) == 49, "the latest is in the row"
    assert contents(await got(world, limit=3)) == ["57", "58", "59"]
    assert len((await got(world, limit=1000)).messages) == 50


async def test_the_window_is_narrowed_and_widened_from_then_on():
    world = await open_world()
    for number in range(10):
        await append(world, f"{number}", max_messages=7)
    assert (await append(world, "10", max_messages=3)).message_count == 3
    assert contents(await got(world)) == ["8", "9", "10"]
    assert await world.store.count(SESSION_PARTS, NS) == 2
    told = [(await append(world, f"{n}", max_messages=5 if n == 11 else 0)) for n in range(11, 15)]
    session = await got(world)
    assert (session.max_messages, contents(session)) == (5, ["10", "11", "12", "13", "14"])
    assert told[-1].message_count == 5


async def test_a_window_that_was_widened_counts_what_is_there():
    world = await open_world()
    for number in range(4):
        await append(world, f"{number}", max_messages=2)
    told = await append(world, "4", max_messages=10)
    assert told.message_count == len((await got(world)).messages) == 3


# --- its life ---------------------------------------------------------------------------------


async def test_every_write_renews_the_life_and_reading_does_not():
    world = await open_world()
    clear = world.services.sessions.sessions.clear
    await put(world, "k", ttl=10 * SECOND)
    for write in (
        lambda: put(world, "k"),
        lambda: append(world),
        lambda: clear(NS, "s", ["none"]),
        lambda: clear(NS, "s", messages_only=True),
    ):
        world.clock.advance(9)
        await write()
        assert (await got(world)).expire_time == world.clock.now() + 10 * SECOND
    world.clock.advance(9)
    await got(world)
    world.clock.advance(1)
    assert await absent(world)


async def test_a_ttl_holds_from_the_write_that_gave_it():
    world = await open_world()
    await append(world)
    told = await append(world, ttl=5 * SECOND)
    assert told.expire_time == world.clock.now() + 5 * SECOND
    assert await put(world, "k") == world.clock.now() + 5 * SECOND
    assert await put(world, "k", ttl=7 * SECOND) == world.clock.now() + 7 * SECOND
    assert (await got(world)).ttl == 7 * SECOND


@pytest.mark.parametrize("swept", [False, True])
async def test_what_lapsed_is_absent_and_the_next_of_its_id_begins_empty(swept):
    world = await open_world()
    for number in range(5):
        await append(world, f"old {number}", max_messages=3, ttl=DAY * SECOND)
    await put(world, "k", b"old")
    world.clock.advance(DAY)
    assert await absent(world)
    if swept:
        await sweep(world)
        assert await rows(world.store, SESSION_PARTS, NS) == []
        assert await world.store.expired(SESSIONS, limit=10) == []
    assert (await append(world, "new")).message.sequence == 1
    session = await got(world)
    assert (contents(session), session.values, session.max_messages) == (["new"], {}, 50)
    assert session.create_time == world.clock.now()
    assert await world.services.sessions.values.get(NS, "s", "k") is None
    assert await rows(world.store, SESSION_PARTS, NS) == []


async def test_a_sweep_takes_what_lapsed_with_all_of_it_and_nothing_else():
    world = await open_world()
    for number in range(450):
        await put(world, "k", session_id=f"short{number}", ttl=SECOND)
    for _ in range(2):
        await append(world, session_id="short7")
        await append(world, session_id="long")
    world.clock.advance(2)
    await sweep(world)
    assert [row.payload["session_id"] for row in await rows(world.store, SESSIONS, NS)] == ["long"]
    parts = await rows(world.store, SESSION_PARTS, NS)
    assert [part.payload["session_id"] for part in parts] == ["long"]
    assert await world.store.expired(SESSIONS, limit=10) == []


async def test_on_a_shared_store_a_sweep_leaves_what_lapsed_just_now():
    """For a process whose clock is behind it is there."""
    clock = FixedClock()
    world = await open_world(SharedStore(clock), clock)
    for _ in range(2):
        await append(world, ttl=SECOND)
    clock.advance(30)
    await sweep(world)
    assert len(await world.store.expired(SESSIONS, limit=10)) == 1
    assert len(await rows(world.store, SESSION_PARTS, NS)) == 1
    clock.advance(60)
    await sweep(world)
    assert await world.store.expired(SESSIONS, limit=10) == []
    assert await rows(world.store, SESSION_PARTS, NS) == []


# --- clearing ---------------------------------------------------------------------------------


async def test_a_session_that_was_cleared_is_absent_and_its_id_is_free():
    world = await open_world()
    await append(world)
    await put(world, "k")
    for _ in range(2):
        await append(world, session_id="other")
    await world.services.sessions.sessions.clear(NS, "s")
    assert await absent(world)
    assert [p.payload["session_id"] for p in await rows(world.store, SESSION_PARTS, NS)] == [
        "other"
    ]
    (stone,) = await rows(world.store, TOMBSTONES, NS)
    assert (stone.payload["resource_kind"], stone.payload["id"], stone.payload["done"]) == (
        "session",
        "s",
        True,
    )
    assert (await append(world, "new")).message.sequence == 1
    assert contents(await got(world)) == ["new"]


async def test_just_keys_or_just_messages_are_cleared():
    world = await open_world()
    clear = world.services.sessions.sessions.clear
    for key in "abcd":
        await put(world, key)
    for number in range(3):
        await append(world, f"{number}")
    await clear(NS, "s", ["a", "none"])
    session = await got(world)
    assert (list(session.values), contents(session)) == (["b", "c", "d"], ["0", "1", "2"])
    await clear(NS, "s", messages_only=True)
    session = await got(world)
    assert (list(session.values), contents(session)) == (["b", "c", "d"], [])
    assert session.last_sequence == 3
    told = await append(world, "after")
    assert (told.message.sequence, told.message_count) == (4, 1)
    await clear(NS, "s", ["b", "c"], messages_only=True)
    session = await got(world)
    assert (list(session.values), contents(session)) == (["d"], [])
    assert await world.store.count(SESSION_PARTS, NS) == 1


# --- bounds -----------------------------------------------------------------------------------


async def test_a_thousand_values_and_no_more():
    world = await open_world()
    for number in range(1000):
        await put(world, f"k{number}")
    with pytest.raises(SessionFullError, match="1,000 values"):
        await put(world, "one more")
    await put(world, "k7", b"other")
    assert len((await got(world)).values) == 1000
    await world.services.sessions.sessions.clear(NS, "s", ["k1"])
    await put(world, "one more")
    with pytest.raises(SessionFullError):
        await put(world, "two more")
    assert await world.services.sessions.values.get(NS, "s", "two more") is None


async def test_values_of_8_mib_together_and_no_more():
    world = await open_world()
    large = b"x" * (256 * 1024)
    for number in range(31):
        await put(world, f"k{number}", large)
    with pytest.raises(SessionFullError, match="8 MiB"):
        await put(world, "more", large)
    for _ in range(40):
        await put(world, "k3", large)
    with pytest.raises(SessionFullError, match="8 MiB"):
        await put(world, "more", large)
    await put(world, "k3", b"small")
    await put(world, "more", large)


async def test_a_session_larger_than_an_answer_gives_the_latest_messages_that_fit():
    world = await open_world()
    for number in range(10):
        await append(world, f"{number}" * 1000)
    sessions = world.services.sessions.sessions
    found = await sessions.get(NS, "s", max_bytes=5000)
    assert ([one.sequence for one in found.messages], found.ended_early) == ([7, 8, 9, 10], True)
    assert not (await sessions.get(NS, "s", 4, 5000)).ended_early
    await put(world, "k", b"v" * 6000)
    found = await sessions.get(NS, "s", max_bytes=500)
    assert ([one.sequence for one in found.messages], found.omitted_keys) == ([10], ("k",))
    found = await sessions.get(NS, "s", max_bytes=500, before=10)
    assert ([one.sequence for one in found.messages], found.ended_early) == ([9], True)
    assert not (await sessions.get(NS, "s", max_bytes=500, before=2)).ended_early


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
    assert len(row.payload["unsettled_requests"]) == 1


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
        clearing(processes[1], messages_only=True),
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
            await sessions.clear(NS, "s", messages_only=True)
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
