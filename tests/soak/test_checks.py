"""The checker finds each kind of damage; without damage it finds nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from tests.soak import content
from tests.soak.books import Told
from tests.soak.stored import StoredPattern
from tests.soak.world import AGENT, SINGLE, World


def test_without_damage_nothing_is_wrong():
    assert World().wrong() == []


def test_what_is_in_doubt_may_be_missing():
    world = World()
    world.events(SINGLE).pop()
    world.stored.episodes[SINGLE].event_count = 1
    world.events("agent-0-2").pop()
    world.stored.episodes["agent-0-2"].event_count = 2
    world.offline[SINGLE] = [1]
    world.offline["agent-0-2"] = [1, 2]
    hot = world.stored.patterns["hot-0"]
    hot.log, hot.counts, hot.usage = hot.log[:1], {"SUCCESS": 1}, 1
    world.told = [
        Told("UPDATED", "PATTERN", "hot-0", 1) if told.id == "hot-0" else told
        for told in world.told
    ]
    assert world.wrong() == []


def test_things_told_again_are_no_damage():
    world = World()
    world.told.insert(3, world.told[2])
    world.told.append(world.told[-1])
    assert world.wrong() == []


def _renumber(world: World) -> None:
    """So that only the lost or added event is wrong, not its number."""
    events = world.events()
    events[:] = [(n, digest) for n, (_, digest) in enumerate(events, 1)]
    world.stored.episodes[AGENT].event_count = len(events)
    world.offline[AGENT] = [n for n, _ in events]


def lost_last_event(world: World) -> None:
    world.events().pop()
    _renumber(world)


def lost_event(world: World) -> None:
    del world.events()[2]
    _renumber(world)
    world.book.state, world.book.acked = "left", 0


def doubled_event(world: World) -> None:
    world.events().insert(2, world.events()[1])
    _renumber(world)


def event_nobody_sent(world: World) -> None:
    world.events().append((6, content.event_digest(AGENT, 6)))
    _renumber(world)


def swapped_events(world: World) -> None:
    events = world.events()
    events[1], events[2] = (2, events[2][1]), (3, events[1][1])


def listed_out_of_order(world: World) -> None:
    events = world.events()
    events[1], events[2] = events[2], events[1]
    world.offline[AGENT] = [n for n, _ in events]


def changed_event(world: World) -> None:
    world.events()[3] = (4, content.event_digest("another", 4))


def gap(world: World) -> None:
    del world.events("agent-0-2")[1]
    world.stored.episodes["agent-0-2"].event_count = 2
    world.offline["agent-0-2"] = [1, 3]


def wrong_event_count(world: World) -> None:
    world.stored.episodes["agent-0-2"].event_count += 1


def lost_episode(world: World) -> None:
    del world.stored.episodes[AGENT]
    del world.offline[AGENT]
    world.told = [told for told in world.told if told.id != AGENT]


def lost_end(world: World) -> None:
    world.stored.episodes[AGENT].status = "RUNNING"
    world.told = [told for told in world.told if told.id != AGENT or told.version == 0]


def unfinished_recorder(world: World) -> None:
    world.book.state = "open"


def unfinished_end(world: World) -> None:
    world.book.state = "ending"


def lost_outcome(world: World) -> None:
    hot = world.stored.patterns["hot-1"]
    hot.log, hot.counts, hot.usage = [], {}, 0
    world.told = [
        Told("STORED", "PATTERN", "hot-1", 0) if told.id == "hot-1" else told for told in world.told
    ]


def doubled_outcome(world: World) -> None:
    hot = world.stored.patterns["hot-0"]
    hot.log.append(hot.log[1])
    hot.counts["FAILURE"], hot.usage = 2, 3
    world.told.append(Told("UPDATED", "PATTERN", "hot-0", 3))


def counter_beside_its_log(world: World) -> None:
    world.stored.patterns["hot-0"].usage = 3
    world.told.append(Told("UPDATED", "PATTERN", "hot-0", 3))


def kind_beside_its_log(world: World) -> None:
    world.stored.patterns["hot-0"].counts = {"SUCCESS": 2}


def other_outcome(world: World) -> None:
    hot = world.stored.patterns["hot-1"]
    hot.log, hot.counts = [("o1", "PARTIAL")], {"PARTIAL": 1}


def outcome_nobody_recorded(world: World) -> None:
    hot = world.stored.patterns["hot-2"]
    hot.log, hot.counts, hot.usage = [("o1", "SUCCESS")], {"SUCCESS": 1}, 1
    world.told.append(Told("UPDATED", "PATTERN", "hot-2", 1))


def lost_pattern(world: World) -> None:
    del world.stored.patterns["p1"]
    world.told.append(Told("DELETED", "PATTERN", "p1", 0))


def doubled_pattern(world: World) -> None:
    world.stored.patterns["p9"] = StoredPattern("a task")
    world.told.append(Told("STORED", "PATTERN", "p9", 0))


def pattern_came_back(world: World) -> None:
    world.stored.patterns["p2"] = StoredPattern("of short life")
    world.told = [told for told in world.told if (told.type, told.id) != ("DELETED", "p2")]


def changed_pattern(world: World) -> None:
    world.stored.patterns["p1"].task = "another task"


def lost_edit(world: World) -> None:
    world.stored.patterns["p1"].version = 0
    world.told = [told for told in world.told if (told.type, told.id) != ("UPDATED", "p1")]


def lost_single_event(world: World) -> None:
    del world.events(SINGLE)[0]
    world.events(SINGLE)[0] = (1, world.events(SINGLE)[0][1])
    world.stored.episodes[SINGLE].event_count = 1
    world.offline[SINGLE] = [1]


def doubled_single_event(world: World) -> None:
    world.events(SINGLE).append((3, world.events(SINGLE)[1][1]))
    world.stored.episodes[SINGLE].event_count = 3
    world.offline[SINGLE] = [1, 2, 3]


def single_event_nobody_sent(world: World) -> None:
    world.events(SINGLE)[1] = (2, content.event_digest(SINGLE, 99))


def lost_whole_episode(world: World) -> None:
    del world.stored.episodes["ep-1"]
    del world.offline["ep-1"]
    world.told = [told for told in world.told if told.id != "ep-1"]


def torn_whole_episode(world: World) -> None:
    world.events("ep-1").pop()
    world.stored.episodes["ep-1"].event_count = 1
    world.offline["ep-1"] = [1]


def doubled_whole_episode(world: World) -> None:
    world.stored.episodes["ep-2"] = copy.deepcopy(world.stored.episodes["ep-1"])
    world.offline["ep-2"] = [1, 2]
    world.told.append(Told("STORED", "EPISODE", "ep-2", 1))


def lost_memory(world: World) -> None:
    del world.stored.memories["m1"]
    world.told = [told for told in world.told if told.id != "m1"]


def changed_memory(world: World) -> None:
    world.stored.memories["m1"] = "another"


def memory_came_back(world: World) -> None:
    world.stored.memories["m2"] = "two"
    world.told[-1] = Told("STORED", "MEMORY", "m2", 0)


def never_told(world: World) -> None:
    world.told = [told for told in world.told if told.id != "m1"]


def delete_never_told(world: World) -> None:
    world.told = [told for told in world.told if told.id != "m2"]


def delete_told_as_last_stored(world: World) -> None:
    world.told = [told for told in world.told if (told.type, told.id) != ("DELETED", "p2")]


def told_after_its_delete(world: World) -> None:
    world.told += [Told("UPDATED", "PATTERN", "p2", 0), Told("DELETED", "PATTERN", "p2", 0)]


def told_backwards(world: World) -> None:
    world.told += [Told("UPDATED", "PATTERN", "p1", 0), Told("UPDATED", "PATTERN", "p1", 1)]


def last_state_never_told(world: World) -> None:
    world.told = [told for told in world.told if (told.type, told.id) != ("UPDATED", "p1")]


def told_as_deleted(world: World) -> None:
    world.told.append(Told("DELETED", "MEMORY", "m1", 0))


def store_lacks_an_event(world: World) -> None:
    world.offline[AGENT].pop()


def store_has_an_event_twice(world: World) -> None:
    world.offline[AGENT].append(3)


def store_has_events_of_nothing(world: World) -> None:
    world.offline["gone"] = [1]


DAMAGES = [
    lost_last_event, lost_event, doubled_event, event_nobody_sent, swapped_events,
    listed_out_of_order, changed_event, gap, wrong_event_count, lost_episode, lost_end,
    unfinished_recorder, unfinished_end, lost_outcome, doubled_outcome, counter_beside_its_log,
    kind_beside_its_log, other_outcome, outcome_nobody_recorded, lost_pattern, doubled_pattern,
    pattern_came_back, changed_pattern, lost_edit, lost_single_event, doubled_single_event,
    single_event_nobody_sent, lost_whole_episode, torn_whole_episode, doubled_whole_episode,
    lost_memory, changed_memory, memory_came_back, never_told, delete_never_told,
    delete_told_as_last_stored, told_after_its_delete, told_backwards, last_state_never_told,
    told_as_deleted, store_lacks_an_event, store_has_an_event_twice, store_has_events_of_nothing,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_each_kind_of_damage_is_found(damage: Callable[[World], None]):
    world = World()
    damage(world)
    assert world.wrong()
