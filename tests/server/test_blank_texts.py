"""A text of which nothing is seen is none: another field stands for it, or the call is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from lot_grpc.domain.text_form import visible
from lot_grpc.pb.lot.v1 import memory_pb2
from tests.server.service import Lot
from tests.server.wire import failure

BLANK: Final = {
    "spaces": "   ",
    "lines": "\n\t\r\n",
    "zero-width": "\u200b\u200d\u2060\ufeff",
    "no-break": "\u00a0\u2003\u3000",
    "controls": "\x07\x1b",
    "direction": "\u202a\u202c\u2066\u2069",
}
SEEN: Final = (
    "a",
    ".",
    " \u200ba\n",
    "!!!",
    "\u8a00",
    "\u0645",
    "\U0001f469\u200d\U0001f680",
    "e\u0301",
)


@pytest.fixture(params=list(BLANK.values()), ids=list(BLANK))
def blank(request: Any) -> str:
    return request.param  # type: ignore[no-any-return]


def _pattern(text: str) -> Any:
    return {"pattern": {"task": text}}


def _memory(text: str) -> Any:
    return {"memory": {"content": text}}


def _solution(text: str) -> Any:
    return {"error_solution": {"error_message": text, "resolution": "r"}}


REFUSED: Final[dict[str, tuple[str, Callable[[Lot, str], Any]]]] = {
    "save a pattern": (
        "pattern.task", lambda lot, text: lot.patterns.SavePattern(**_pattern(text))
    ),
    "save patterns": (
        "items[0].pattern.task",
        lambda lot, text: lot.patterns.BatchSavePatterns(items=[_pattern(text)]),
    ),
    "edit a pattern": (
        "pattern.task",
        lambda lot, text: lot.patterns.UpdatePattern(pattern_id="p", **_pattern(text)),
    ),
    "create a memory": (
        "memory.content", lambda lot, text: lot.memories.CreateMemory(**_memory(text))
    ),
    "create memories": (
        "items[0].memory.content",
        lambda lot, text: lot.memories.BatchCreateMemories(items=[_memory(text)]),
    ),
    "edit a memory": (
        "memory.content",
        lambda lot, text: lot.memories.UpdateMemory(memory_id="m", **_memory(text)),
    ),
    "save a solution": (
        "error_solution.error_message",
        lambda lot, text: lot.memories.SaveErrorSolution(**_solution(text)),
    ),
    "edit a solution": (
        "error_solution.error_message",
        lambda lot, text: lot.memories.UpdateErrorSolution(
            error_solution_id="u", **_solution(text)
        ),
    ),
    "save a blank resolution": (
        "error_solution",
        lambda lot, text: lot.memories.SaveErrorSolution(
            error_solution={"error_message": "e", "resolution": text, "steps": [text]}
        ),
    ),
    "edit to a blank resolution": (
        "error_solution",
        lambda lot, text: lot.memories.UpdateErrorSolution(
            error_solution_id="u", error_solution={"resolution": text}
        ),
    ),
    "start an episode": (
        "episode.task", lambda lot, text: lot.episodes.StartEpisode(episode={"task": text})
    ),
    "record an episode": (
        "episode.task",
        lambda lot, text: lot.episodes.RecordEpisode(
            episode={"task": text, "summary": text, "status": 2}
        ),
    ),
    "record an episode by its summary": (
        "episode.task",
        lambda lot, text: lot.episodes.RecordEpisode(episode={"summary": text, "status": 2}),
    ),
    "judge": ("", lambda lot, text: lot.learning.SubmitFeedback(text=text)),
}  # fmt: skip


@pytest.mark.parametrize("call", REFUSED)
async def test_a_blank_text_is_refused_like_a_missing_one(lot, blank, call):
    await lot.patterns.SavePattern(pattern={"task": "t"}, pattern_id="p")
    await lot.memories.CreateMemory(memory={"content": "c"}, memory_id="m")
    await lot.memories.SaveErrorSolution(**_solution("e"), error_solution_id="u")
    field, made = REFUSED[call]
    for text in (blank, ""):
        if not text and call.startswith("edit"):
            continue  # without a mask an empty field is no edit
        failed = await failure(made(lot, text))
        assert failed.reason == "REQUEST_INVALID"
        assert field in failed.fields, text


async def test_a_summary_stands_for_a_blank_task(lot, blank):
    episode = {"task": blank, "summary": "Renamed the branch", "status": 2}
    made = (await lot.episodes.RecordEpisode(episode=episode)).episode
    assert made.task == "Renamed the branch"


async def test_a_task_stands_for_a_blank_title(lot, blank):
    await lot.patterns.SavePattern(pattern={"task": "Rename a branch", "title": blank})
    code = {
        "content": "f()",
        "kind": memory_pb2.MEMORY_KIND_CODE_SNIPPET,
        "title": blank,
        "language": "python",
    }
    await lot.memories.CreateMemory(memory=code)
    found = await lot.memories.GetTaskContext(task="Rename a branch f()", min_similarity=0)
    lines = [line.rstrip() for line in found.prompt_text.splitlines()]
    assert sum(line.endswith((": Rename a branch", ": python")) for line in lines) == 2, lines


async def test_an_approach_at_the_start_stands_for_a_blank_one(lot, blank):
    episode = {"task": "t", "approach": "by hand"}
    await lot.episodes.StartEpisode(episode=episode, episode_id="e")
    ended = await lot.episodes.EndEpisode(episode_id="e", status=2, approach=blank)
    assert ended.episode.approach == "by hand"


def test_what_is_seen_is_kept_as_it_is():
    assert [visible(text) for text in SEEN] == list(SEEN)
    assert [visible(text) for text in BLANK.values()] == [""] * len(BLANK)
