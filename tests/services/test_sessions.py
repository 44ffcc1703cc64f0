"""Sessions: what they hold, how long they live, how they are cleared."""

from __future__ import annotations

import pytest

from lot_grpc.domain.errors import SessionFullError
from lot_grpc.domain.session import DEFAULT_TTL, Session, SessionMessage, SessionValue
from lot_grpc.services.records.collections import SESSION_PARTS, SESSIONS, TOMBSTONES
from tests.contract.clock import FixedClock
from tests.services.session_steps import SECOND, absent, append, contents, got, put, sequences
from tests.services.world import DAY, NS, SharedStore, open_world, rows, sweep

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


async def test_the_window_of_one_session_is_not_that_of_another():
    world = await open_world()
    others = ["one", "two", "three", "four"]
    for content in others:
        await append(world, content, session_id="t")
    for number in range(4):
        await append(world, f"{number}", max_messages=2)
    assert sequences(await got(world)) == [3, 4]
    assert contents(await got(world, "t")) == others


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
        lambda: clear(NS, "s", clear_messages=True),
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
    await clear(NS, "s", clear_messages=True)
    session = await got(world)
    assert (list(session.values), contents(session)) == (["b", "c", "d"], [])
    assert session.last_sequence == 3
    told = await append(world, "after")
    assert (told.message.sequence, told.message_count) == (4, 1)
    await clear(NS, "s", ["b", "c"], clear_messages=True)
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
