"""Steps with episodes, and what is extracted from them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from lot_grpc.domain.episode import EpisodeError, EpisodeStart, EpisodeStatus
from lot_grpc.domain.errors import EpisodeNotFoundError
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.extraction.pattern_extraction import ExtractionDraft
from tests.services.steps.base import Step
from tests.services.world import DAY, World, call, end, event, events, start, whole


async def running(world: World, ns: str) -> None:
    await world.services.episodes.creator.start(ns, start(episode_id="e"))
    for n in range(2):
        await world.services.episodes.recorder.record_event(ns, "e", event(text=f"before {n}"), "")


def starts(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.episodes.creator.start(ns, start(**named))

    return run


def one_event(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.episodes.recorder.record_event(
            ns, "e", event(text="x"), request_id
        )

    return run


async def streams(world: World, ns: str) -> None:
    """A client's stream: opens, is told what is stored, and sends the rest."""
    recorder = world.services.episodes.recorder
    writer = await recorder.open(ns, "e", TakeoverPolicy.REPLACE)
    try:
        await recorder.append(writer, [event(1, "before 0"), event(2, "before 1"), *events(3, 6)])
        await recorder.append(writer, events(5, 9))
    finally:
        await recorder.close(writer)


def ends(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.episodes.ender.end(ns, "e", end(summary="done"), request_id)

    return run


async def used_by_others(world: World, ns: str) -> None:
    """``u`` was used once, ``v`` never; ``e`` is running."""
    for name in ("u", "v"):
        await world.services.episodes.creator.start(ns, start(episode_id=name))
    given = end(used_episode_ids=("u",))
    await world.services.episodes.creator.record(ns, whole(1, episode_id="f", end=given))
    await running(world, ns)


def ends_with_use(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        given = end(used_episode_ids=("u", "v"))
        return await world.services.episodes.ender.end(ns, "e", given, request_id)

    return run


def records_with_use(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        given = whole(2, end=end(used_episode_ids=("v", "u")), **named)
        return await world.services.episodes.creator.record(ns, given)

    return run


async def left(world: World, ns: str) -> None:
    """``e`` has two events and is due to be abandoned."""
    await running(world, ns)
    world.clock.advance(DAY)


async def abandons(world: World, ns: str) -> None:
    await world.services.episodes.abandoner.sweep()


async def abandoned(world: World, ns: str) -> None:
    await left(world, ns)
    await abandons(world, ns)


async def recorded(world: World, ns: str) -> None:
    """``e`` is ended and has five events, ``f`` still runs and has two."""
    await world.services.episodes.creator.record(ns, whole(5, episode_id="e"))
    await world.services.episodes.creator.start(ns, start(episode_id="f"))
    for n in range(2):
        await world.services.episodes.recorder.record_event(ns, "f", event(text=f"event {n}"), "")


def deletes_episode(episode_id: str) -> Step:
    async def run(world: World, ns: str) -> None:
        with suppress(EpisodeNotFoundError):
            await world.services.episodes.episodes.delete_with_events(ns, episode_id)

    return run


def records(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.episodes.creator.record(ns, whole(5, **named))

    return run


async def two_logins(world: World, ns: str) -> None:
    for number in range(2):
        await login(world, ns, f"before{number}")


async def login(world: World, ns: str, episode_id: str, extract: bool = False) -> None:
    given = EpisodeDraft(
        EpisodeStart("log in", task_type="login"),
        episode_id,
        end=end(),
        events=(call("browser"),),
        extract=extract,
    )
    await world.services.episodes.creator.record(ns, given)
    if extract:
        await world.services.extraction.episodes.take(ns, episode_id)


async def three_logins(world: World, ns: str) -> None:
    await two_logins(world, ns)
    await world.services.episodes.creator.start(ns, start("log in", "e", task_type="login"))


async def saved_before(world: World, ns: str) -> None:
    """The lesson is there already, and the group learned from."""
    await two_logins(world, ns)
    await login(world, ns, "first", extract=True)


async def records_login(world: World, ns: str) -> None:
    await login(world, ns, "e", extract=True)


async def ends_login(world: World, ns: str) -> None:
    await world.services.episodes.ender.end(ns, "e", end(), "r", extract=True)
    await world.services.extraction.episodes.take(ns, "e")


async def failing(world: World, ns: str) -> None:
    """A test that failed, was mended, and failed otherwise."""
    await world.services.episodes.creator.start(ns, start("mend", "e"))
    for one in (call("pytest", error="KeyError: 'a'"), call("pip"), call("pytest")):
        await world.services.episodes.recorder.record_event(ns, "e", one, "")


async def ends_failing(world: World, ns: str) -> None:
    failed = end(EpisodeStatus.FAILED, error=EpisodeError("OSError", "disk full"))
    await world.services.episodes.ender.end(ns, "e", failed, "r", extract=True)
    await world.services.extraction.episodes.take(ns, "e")


async def records_mending(world: World, ns: str) -> None:
    events = (call("pytest", error="KeyError: 'a'"), call("pip"), call("pytest"))
    given = EpisodeDraft(EpisodeStart("mend"), "e", end=end(), events=events, extract=True)
    await world.services.episodes.creator.record(ns, given)
    await world.services.extraction.episodes.take(ns, "e")


async def extracts(world: World, ns: str) -> None:
    await world.services.extraction.patterns.extract(ns, ExtractionDraft(min_samples=2))


async def learned_before(world: World, ns: str) -> None:
    await two_logins(world, ns)
    await extracts(world, ns)
    await login(world, ns, "later")
