"""Errors as tools really print them: found again at another place, and not taken for others."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from lot_grpc.domain.error_text.signature import read_error
from lot_grpc.services.errors.error_finder import ErrorAnswer, ErrorQuery
from tests.errors.reading import signature_of
from tests.services.error_messages import MISSING, PRINTED, Printed
from tests.services.world import NS, World, error_solution, open_world

ONE_TOOL_TWO_WAYS = {
    "tsc pretty", "tsc either way", "bash script", "zsh", "sh", "dash script",
}  # fmt: skip
"""Others print the same error too."""


async def find(world: World, message: str, **named: object) -> ErrorAnswer:
    return await world.services.errors.finder.find(NS, ErrorQuery("", message, **named))  # type: ignore[arg-type]


async def solved() -> World:
    """A world in which each of the errors was solved once."""
    world = await open_world()
    for printed in PRINTED:
        if printed.name not in ONE_TOOL_TWO_WAYS:
            given = error_solution(printed.stored, resolution=f"the fix of {printed.name}")
            await world.services.errors.solutions.save(NS, given)
    return world


async def test_each_error_is_found_again_at_another_place_by_its_signature():
    world = await solved()
    for printed in PRINTED:
        answer = await find(world, printed.asked)
        exact = [hit for hit in answer.hits if hit.exact]
        assert len(exact) == 1, printed.name
        if printed.name not in ONE_TOOL_TWO_WAYS:
            assert exact[0].error_solution.content.resolution == f"the fix of {printed.name}"
        assert answer.hits[0] is exact[0]


def coloured(log: str) -> str:
    return "\n".join(f"\x1b[31m{line}\x1b[0m\x1b[K" for line in log.splitlines())


def logged(log: str) -> str:
    lines = log.splitlines()
    return "\n".join(f"2026-01-02T03:{n % 60:02}:05.1234567Z {one}" for n, one in enumerate(lines))


def amid(log: str) -> str:
    """Behind hundreds of lines of a log, and before some more."""
    before = "".join(f"   ok {n}: step number {n} took {n} ms\n" for n in range(400))
    return f"{before}{log}\n" + "".join(f"   done {n}\n" for n in range(20))


def whole(log: str) -> bool:
    """Whether a log is more than its one line, which behind another would be no beginning."""
    return len(log.splitlines()) > 3 and not log.startswith("  File")


def printings() -> Iterator[tuple[str, Printed, str]]:
    for printed in PRINTED:
        yield "CRLF", printed, printed.asked.replace("\n", "\r\n")
        yield "colours", printed, coloured(printed.asked)
        yield "of a build server", printed, logged(printed.asked) if whole(printed.asked) else ""
        yield "amid a log", printed, amid(printed.asked) if whole(printed.asked) else ""


@pytest.mark.parametrize(
    ("how", "printed", "message"), [one for one in printings() if one[2]],
    ids=lambda one: str(one)[:40],
)  # fmt: skip
def test_how_a_log_is_written_makes_no_difference(how, printed, message):
    assert signature_of("", message) == signature_of("", printed.stored)


@pytest.mark.parametrize("kind", MISSING)
async def test_two_that_are_missing_with_different_fixes_are_not_confused(kind):
    world = await open_world()
    names = ["yaml", "pillow", "numpy"]
    for name in names:
        given = error_solution(MISSING[kind].format(name), resolution=f"install {name}")
        await world.services.errors.solutions.save(NS, given)
    for name in names:
        answer = await find(world, MISSING[kind].format(name))
        best, *others = answer.hits
        assert best.error_solution.content.resolution == f"install {name}"
        assert [one.part for one in best.differences if one.part != "path"] == []
        for other in others:
            assert other.exact
            assert other.score < best.score - 0.5
            [told] = [one for one in other.differences if one.part == "name"]
            assert name in told.given
            assert told.given != told.stored
    answer = await find(world, MISSING[kind].format("pandas"))
    assert all(hit.exact and hit.score < 0.42 and hit.differences for hit in answer.hits)


async def test_in_a_long_log_the_name_decides_and_not_what_stands_around():
    """The log around one is nearly that of the other."""
    world = await open_world()
    yaml, pillow = (MISSING["python trace"].format(name) for name in ("yaml", "pillow"))
    for name, log in (("yaml", amid(yaml)), ("pillow", pillow)):
        given = error_solution(log, resolution=f"install {name}")
        await world.services.errors.solutions.save(NS, given)
    answer = await find(world, amid(pillow))
    assert [hit.error_solution.content.resolution for hit in answer.hits] == [
        "install pillow", "install yaml",
    ]  # fmt: skip


def test_the_errors_of_the_table_are_not_confused_with_each_other():
    signatures: dict[str, str] = {}
    for printed in PRINTED:
        if printed.name not in ONE_TOOL_TWO_WAYS:
            made = signature_of("", printed.stored)
            assert made not in signatures, f"{printed.name} is as {signatures[made]}: {made}"
            signatures[made] = printed.name


def test_what_differs_is_named_by_what_it_is():
    given = read_error(
        "", "GET https://a.example/x by v1.2.3 of 'tool' at /a/b.py:3 was refused 7 times"
    )
    assert [(one.part, one.text) for one in given.left_out] == [
        ("url", "https://a.example/x"), ("version", "v1.2.3"), ("name", "tool"),
        ("path", "/a/b.py:3"), ("number", "7"),
    ]  # fmt: skip
    given = read_error(
        "", "lost run 6f1c2a9e-1111-4222-8333-123456789abc on 10.0.0.1:80, 2026-01-02"
    )
    assert [one.part for one in given.left_out] == ["id", "address", "time"]


def test_every_part_stands_in_the_message():
    for printed in PRINTED:
        read = read_error("", printed.asked)
        for part in read.left_out:
            assert part.text in re.sub(r"\s+", " ", read.line) or part.text in printed.asked
