"""Extraction through the services: what is learned, kept, brought up to date."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from lot_grpc.domain.episode import EpisodeStart, EpisodeStatus
from lot_grpc.domain.errors import EmbeddingFailedError
from lot_grpc.domain.outcomes import wilson_lower_bound
from lot_grpc.domain.pattern import PatternContent, PatternType
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.extraction import digest_reader, evidence_collector
from lot_grpc.services.extraction.pattern_extraction import ExtractionDraft
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.records.collections import EPISODES, PATTERNS
from lot_grpc.services.records.episodes import EXTRACTION, REQUESTED, episode_point
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.world import (
    NS,
    Interleaving,
    call,
    end,
    open_world,
    outcome,
    payloads,
    rows,
    step,
)

FAILED = EpisodeStatus.FAILED


async def record(world, task, *events, ns=NS, status=EpisodeStatus.SUCCEEDED, ending=(), **named):
    own = {key: named.pop(key) for key in ("episode_id", "extract") if key in named}
    given = EpisodeDraft(
        EpisodeStart(task, **named), end=end(status, **dict(ending)), events=events, **own
    )
    recorded = await world.services.episodes.creator.record(ns, given)
    if own.get("extract"):
        return (
            await world.services.extraction.episodes.take(ns, recorded.episode.episode_id)
        ).patterns
    return recorded.episode


async def unreachable(texts):
    raise EmbeddingFailedError("the model cannot be reached")


async def extract(world, ns=NS, **named):
    return await world.services.extraction.patterns.extract(ns, ExtractionDraft(**named))


async def logins(world, first=0, count=4, **named):
    for number in range(first, first + count):
        await record(world, f"Log in to site {number}", call("browser"), task_type="login", **named)


# --- planted causes ---------------------------------------------------------------------------

GOOD = {"term: oauth", "tool: linter", "tool: rollback", "step: backup", "steps: plan → review"}
BAD = {"term: legacy", "tool: force_push", "step: skip_tests", "steps: guess → deploy"}


async def plant(world, rng: random.Random) -> None:
    """200 episodes: words and steps at random, and nine causes, each seen on both sides."""
    words = [f"word{chr(97 + a)}{chr(97 + b)}" for a in range(20) for b in range(20)]
    weights = [1 / (rank + 3) for rank in range(len(words))]
    tools = [f"tool{number}" for number in range(12)]
    others = ["plan", "review", "observe", "guess", "deploy", "think", "note"]
    for number in range(200):
        won = rng.random() < 0.6
        text = rng.choices(words, weights, k=10)
        steps = [
            call(rng.choice(tools)) if rng.random() < 0.6 else step(rng.choice(others))
            for _ in range(rng.randrange(6, 20))
        ]
        causes = [(True, name) for name in sorted(GOOD)] + [(False, name) for name in sorted(BAD)]
        for good, name in causes:
            if rng.random() > (0.7 if good == won else 0.2):
                continue
            kind, _, what = name.partition(": ")
            at = rng.randrange(len(steps) + 1)
            if kind == "term":
                text.append(what)
            elif kind == "tool":
                steps.insert(at, call(what))
            else:
                steps[at:at] = [step(one) for one in what.split(" → ")]
        await record(
            world,
            f"Task {number}: {' '.join(text)}",
            *steps,
            task_type="planted",
            status=EpisodeStatus.SUCCEEDED if won else FAILED,
        )


async def test_planted_causes_are_found_and_hardly_anything_else():
    right = found = planted = 0
    for seed in range(5):
        world = await open_world()
        await plant(world, random.Random(seed))
        [pattern] = (await extract(world)).patterns
        told = set(pattern.content.success_indicators), set(pattern.content.failure_indicators)
        right += len(told[0] & GOOD) + len(told[1] & BAD)
        found += len(told[0]) + len(told[1])
        planted += len(GOOD) + len(BAD)
    assert right / found >= 0.95
    assert right / planted >= 0.9


async def test_without_a_cause_nothing_is_found():
    rng = random.Random(3)
    world = await open_world()
    for number in range(60):
        await record(
            world,
            f"Task {number} {rng.choice(['red', 'green', 'blue'])}",
            *[call(rng.choice("abcdef")) for _ in range(8)],
            task_type="noise",
            status=rng.choice([EpisodeStatus.SUCCEEDED, FAILED]),
        )
    [pattern] = (await extract(world)).patterns
    assert (pattern.content.success_indicators, pattern.content.failure_indicators) == ((), ())


# --- what a pattern says ------------------------------------------------------------------------


async def test_a_pattern_says_what_its_successes_did():
    world = await open_world()
    for number in range(6):
        extra = [call(f"tool{number}")] if number % 2 else []
        await record(
            world,
            f"Deploy service {number}",
            call("git", note="pull first"),
            *extra,
            call("docker"),
            call("docker"),
            call("kubectl"),
            category="ops",
            approach="incremental" if number else "standard",
            labels={"language": "golang"},
            ending={"success_factors": ("small steps",)},
        )
    await record(world, "Deploy service by hand", call("ssh"), category="ops", status=FAILED)
    [pattern] = (await extract(world)).patterns
    content = pattern.content
    assert [(a.tool, a.note) for a in content.actions] == [
        ("git", "pull first"), ("docker", ""), ("kubectl", ""),
    ]  # fmt: skip
    assert content.tools == ("docker", "git", "kubectl")
    assert content.approach == "incremental"
    assert content.success_factors == ("small steps",)
    assert content.language == ""  # not all say one
    assert content.category == "ops"
    assert content.task.startswith('Carry out ops tasks, such as "Deploy service')
    assert content.confidence == pytest.approx(wilson_lower_bound(6, 7))
    assert pattern.outcomes.success_rate == pytest.approx(6 / 7)
    assert pattern.outcomes.usage_count == 0


async def test_the_made_regex_matches_new_tasks_of_the_group_and_not_those_of_others():
    world = await open_world()
    resource_kinds = ["users", "orders", "invoices", "teams", "tags", "notes", "files", "plans"]
    for number, resource_kind in enumerate(resource_kinds * 3):
        await record(world, f"Create an endpoint for {resource_kind}", task_type="api_route")
        await record(world, f"Migrate the table of {resource_kind}", task_type="schema")
        await record(world, f"Write {number} tests of {resource_kind}", task_type="testing")
    await extract(world)
    matching = world.services.recall.learned_tasks.matching
    by_task = {
        record.id: record.payload["task_type"] for record in await rows(world.store, PATTERNS)
    }

    async def types_of(query):
        return {by_task[point] for point in await matching(NS, [query], [])}

    assert await types_of("Create endpoints for customers") == {"api_route"}
    assert await types_of("Change an API route") == {"api_route"}
    assert await types_of("Migrate the customers table") == {"schema"}
    assert await types_of("Paint the wall") == set()


async def test_tasks_without_type_or_category_are_grouped_by_their_words():
    world = await open_world()
    for number in range(3):
        await record(world, f"Refund order {number} of 'user {number}'")
        await record(world, f"Ship /tmp/parcel{number} today")
    patterns = (await extract(world)).patterns
    assert len(patterns) == 2
    assert len({pattern.pattern_id for pattern in patterns}) == 2
    whole = (await extract(world, regex="refund|ship")).patterns
    assert [p.content.metadata["extraction"]["group_by"] for p in whole] == ["regex"]
    assert len(whole[0].content.source_episode_ids) == 6


async def test_running_episodes_teach_nothing():
    world = await open_world()
    await logins(world, count=2)
    given = EpisodeDraft(EpisodeStart("Log in", task_type="login"))
    await world.services.episodes.creator.start(NS, given)
    answer = await extract(world)
    assert (answer.patterns, answer.episode_count) == ([], 2)


async def test_a_long_episode_is_read_at_both_ends(monkeypatch):
    monkeypatch.setattr(digest_reader, "READ_EVENTS", 2)
    world = await open_world()
    for _ in range(3):
        await record(world, "Go", *[call(name) for name in "abcdef"], task_type="long")
    [pattern] = (await extract(world)).patterns
    assert [action.tool for action in pattern.content.actions] == ["a", "b", "e", "f"]


async def test_the_newest_of_a_group_are_read(monkeypatch):
    monkeypatch.setattr(evidence_collector, "MOST_OF_GROUP", 3)
    world = await open_world()
    await logins(world, count=5)
    [pattern] = (await extract(world)).patterns
    told = pattern.content.metadata["extraction"]
    assert (told["episode_count"], told["group_count"]) == (3, 5)


# --- again ------------------------------------------------------------------------------------


async def test_more_episodes_update_the_same_pattern_and_leave_outcomes_and_edits():
    world = await open_world()
    await logins(world, count=3)
    [first] = (await extract(world)).patterns
    await outcome(world, first.pattern_id)
    wanted: dict[str, Any] = {
        "approach": "mine",
        "tags": ("kept",),
        "title": "Logging in",
        "confidence": 0.9,
    }
    edit = PatternEdit(PatternContent("", **wanted), frozenset(wanted))
    edited = await world.services.patterns.patterns.update(NS, first.pattern_id, edit, "")
    await logins(world, first=3, count=3, approach="standard")
    [second] = (await extract(world)).patterns
    assert second.pattern_id == first.pattern_id
    assert second.outcomes.usage_count == 1
    assert len(second.content.source_episode_ids) == 6
    for name, value in wanted.items():
        assert getattr(second.content, name) == value
    assert second.revision == edited.pattern.revision + 1
    before = await rows(world.store, PATTERNS)
    assert (await extract(world)).patterns == [second]
    assert await rows(world.store, PATTERNS) == before


async def test_a_pattern_never_used_takes_the_new_rate_of_its_group():
    world = await open_world()
    await logins(world, count=3)
    [first] = (await extract(world)).patterns
    await record(world, "Log in to site 9", task_type="login", status=FAILED)
    [second] = (await extract(world)).patterns
    assert (first.outcomes.success_rate, second.outcomes.success_rate) == (1.0, 0.75)


async def test_a_dry_run_of_an_update_tells_what_it_comes_to():
    world = await open_world()
    await logins(world, count=3)
    await extract(world)
    await logins(world, first=3, count=3)
    before = await rows(world.store, PATTERNS)
    dry = (await extract(world, dry_run=True)).patterns
    assert await rows(world.store, PATTERNS) == before
    assert (await extract(world)).patterns == dry


async def test_each_type_regex_and_namespace_has_a_pattern_of_its_own():
    world = await open_world()
    await logins(world, count=3)
    await logins(world, count=3, status=FAILED)
    await logins(world, count=3, ns="other")
    asked: list[tuple[str, dict[str, Any]]] = [
        (NS, {}),
        (NS, {"pattern_type": PatternType.FAILURE}),
        (NS, {"regex": "log"}),
        ("other", {}),
    ]
    ids = [
        pattern.pattern_id
        for ns, named in asked
        for pattern in (await extract(world, ns, **named)).patterns
    ]
    assert len(set(ids)) == 4


async def test_two_that_extract_at_once_come_to_one_pattern():
    world = await open_world()
    await logins(world)
    both = await asyncio.gather(extract(world), extract(world.another_process()))
    assert len(await payloads(world, PATTERNS)) == 1
    assert both[0].patterns[0].content == both[1].patterns[0].content


# --- lessons at the end of an episode ---------------------------------------------------------


async def test_a_success_is_saved_with_what_it_did():
    world = await open_world()
    [pattern] = await record(
        world,
        "Log in",
        step("thought"),
        call("browser", args={"url": "x"}, note="open"),
        call("blob", args={"text": "x" * 5000}),
        episode_id="e",
        extract=True,
        context="the shop",
        ending={"success_factors": ("calm",), "tools_used": ("eyes",)},
    )
    assert [(a.tool, dict(a.args), a.note) for a in pattern.content.actions] == [
        ("browser", {"url": "x"}, "open"), ("blob", {}, ""),
    ]  # fmt: skip
    assert pattern.content.tools == ("eyes", "browser", "blob")
    assert pattern.content.source_episode_ids == ("e",)


async def test_a_group_is_read_again_when_it_has_grown_by_a_tenth():
    world = await open_world()
    counts = []
    for number in range(25):
        extracted = await record(world, f"Log in {number}", task_type="login", extract=True)
        learned = [p for p in extracted if p.content.metadata]
        counts.append(learned[0].content.metadata["extraction"]["episode_count"] if learned else 0)
    assert counts[:12] == [0, 0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 11]
    assert counts[-1] < 25
    [pattern] = (await extract(world)).patterns
    assert pattern.content.metadata["extraction"]["episode_count"] == 25


async def test_a_learned_pattern_that_was_deleted_comes_back_just_when_it_is_asked_for():
    world = await open_world()
    await logins(world, count=3, extract=True)
    [pattern] = (await extract(world)).patterns
    await world.services.patterns.patterns.delete(NS, pattern.pattern_id, "")
    await logins(world, first=3, count=1, extract=True)
    stored = [row["pattern_id"] for row in await payloads(world, PATTERNS)]
    assert pattern.pattern_id not in stored
    assert (await extract(world)).patterns[0].pattern_id == pattern.pattern_id


async def test_two_that_end_an_episode_at_once_count_it_once():
    store = Interleaving(InMemoryStore(FixedClock()))
    world = await open_world(store)
    await record(world, "Log in", call("browser"), episode_id="first", extract=True)
    await record(world, "Log in", call("browser"), episode_id="e")
    other = world.another_process()
    both = await asyncio.gather(
        *[w.services.extraction.episodes.take(NS, "e") for w in (world, other)]
    )
    [one], [two] = [extracted.patterns for extracted in both]
    assert one.pattern_id == two.pattern_id
    [stored] = await payloads(world, PATTERNS)
    assert (stored["usage_count"], stored["source_episode_ids"]) == (1, ["first", "e"])


async def test_what_somebody_wrote_over_the_count_of_a_group_is_no_error():
    world = await open_world()
    await logins(world, count=3, extract=True)
    [pattern] = (await extract(world)).patterns
    edit = PatternEdit(PatternContent("", metadata={"extraction": "x"}), frozenset({"metadata"}))
    await world.services.patterns.patterns.update(NS, pattern.pattern_id, edit, "")
    await logins(world, first=3, count=1, extract=True)
    [found] = await world.services.patterns.patterns.get_many(NS, (pattern.pattern_id,))
    assert found.content.metadata["extraction"]["group_count"] == 4


async def test_a_wish_that_cannot_be_carried_out_now_stays_open_and_stops_nothing(monkeypatch):
    world = await open_world()
    await record(world, "Log in", call("browser"), episode_id="e")
    point = episode_point(NS, "e")
    await world.store.update(EPISODES, NS, point, set={EXTRACTION: REQUESTED})
    monkeypatch.setattr(world.embedder, "embed_documents", unreachable)
    done = await world.services.housekeeping.roll_forward(starting=True)
    assert done.counts["extractions"] == 0
    assert await payloads(world, PATTERNS) == []
    monkeypatch.undo()
    done = await world.services.housekeeping.roll_forward(starting=True)
    assert done.counts["extractions"] == 1


async def test_a_wish_that_a_dead_process_left_is_carried_out_by_the_sweep():
    world = await open_world()
    episode = await record(world, "Log in", call("browser"), episode_id="e")
    point = episode_point(NS, episode.episode_id)
    await world.store.update(EPISODES, NS, point, set={EXTRACTION: REQUESTED})
    done = await world.services.housekeeping.roll_forward(starting=True)
    assert done.counts["extractions"] == 1
    assert [row["task"] for row in await payloads(world, PATTERNS)] == ["Log in"]
    done = await world.services.housekeeping.roll_forward(starting=True)
    assert done.counts["extractions"] == 0


async def test_a_repeat_long_after_the_request_was_forgotten_counts_nothing():
    world = await open_world()
    first = await record(world, "Log in", call("browser"), episode_id="e", extract=True)
    world.clock.advance(3 * 24 * 3600)
    await world.services.housekeeping.drop_expired()
    again = await record(world, "Log in", call("browser"), episode_id="e", extract=True)
    assert again == first
    assert again[0].outcomes.usage_count == 0


@pytest.mark.parametrize(
    ("pattern_type", "cited", "silent"),
    [
        (PatternType.SUCCESS, "Ship the web shop", "Ship the old mailer"),
        (PatternType.FAILURE, "Ship the old mailer", "Ship the web shop"),
    ],
)
async def test_a_pattern_names_tasks_that_went_its_way(world, pattern_type, cited, silent):
    for _ in range(3):
        await record(world, "Ship the web shop", task_type="ship")
        await record(world, "Ship the old mailer", task_type="ship", status=EpisodeStatus.FAILED)
    [learned] = (await extract(world, pattern_type=pattern_type)).patterns
    task = learned.content.task
    assert cited in task
    assert silent not in task


@pytest.mark.parametrize(
    ("pattern_type", "line"),
    [
        (PatternType.SUCCESS, "Tools: helm."),
        (PatternType.FAILURE, "Tools: kubectl (of the failures)."),
    ],
)
async def test_the_tools_of_failures_are_not_what_is_needed(world, pattern_type, line):
    for _ in range(3):
        await record(world, "Ship it", call("helm"), task_type="ship")
        failed = EpisodeStatus.FAILED
        await record(world, "Ship it", call("kubectl"), task_type="ship", status=failed)
    [learned] = (await extract(world, pattern_type=pattern_type)).patterns
    assert learned.content.recommended_context.splitlines()[0] == line
