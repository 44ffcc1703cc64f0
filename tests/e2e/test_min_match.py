"""Nothing fits: every recall and the context, with the real model on a real server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import (
    episode_pb2,
    episode_service_pb2,
    error_solution_pb2,
    memory_pb2,
    memory_service_pb2,
    outcome_pb2,
    pattern_pb2,
    pattern_service_pb2,
    task_context_pb2,
)
from tests.e2e.process import PATIENCE, run
from tests.e2e.test_live_commands import Calls

STORED = (
    "Add pagination to the REST endpoint of the orders",
    "Rotate the signing keys of the payment gateway",
    "Write a migration that adds an index on the users table",
    "Disable two-factor authentication for all users",
)
LIKE = "Rotate the signing keys of the billing gateway"
UNLIKE = "Bake a chocolate cake for the birthday party"
OPPOSITE = "Enable two-factor authentication for all users"
ERROR = "ModuleNotFoundError: No module named 'yaml'"
LEAST, STRICT = 0.05, 0.5

Ask = Callable[..., Any]


def fill(calls: Calls) -> None:
    """Each of ``STORED`` as a pattern, an episode and a memory, and the solution of an error."""
    named: dict[str, Any] = {"namespace": calls.namespace}
    for number, task in enumerate(STORED):
        calls.patterns.SavePattern(
            pattern_service_pb2.SavePatternRequest(
                **named, pattern=pattern_pb2.Pattern(task=task), pattern_id=f"p-{number}"
            ),
            timeout=PATIENCE,
        )
        calls.episodes.RecordEpisode(
            episode_service_pb2.RecordEpisodeRequest(
                **named,
                episode=episode_pb2.Episode(task=task, status=episode_pb2.EPISODE_STATUS_SUCCEEDED),
            ),
            timeout=PATIENCE,
        )
        calls.memories.CreateMemory(
            memory_service_pb2.CreateMemoryRequest(**named, memory=memory_pb2.Memory(content=task)),
            timeout=PATIENCE,
        )
    calls.memories.SaveErrorSolution(
        error_solution_pb2.SaveErrorSolutionRequest(
            **named,
            error_solution=error_solution_pb2.ErrorSolution(
                error_message=ERROR, resolution="pip install pyyaml"
            ),
        ),
        timeout=PATIENCE,
    )


def asking(calls: Calls) -> dict[str, Ask]:
    """The recalls of tasks, by what they find."""
    named: dict[str, Any] = {"namespace": calls.namespace}
    return {
        "patterns": lambda query, **more: calls.patterns.RecallPatterns(
            pattern_service_pb2.RecallPatternsRequest(**named, query=query, **more),
            timeout=PATIENCE,
        ),
        "episodes": lambda query, **more: calls.episodes.RecallEpisodes(
            episode_service_pb2.RecallEpisodesRequest(**named, query=query, **more),
            timeout=PATIENCE,
        ),
        "memories": lambda query, **more: calls.memories.SearchMemories(
            memory_service_pb2.SearchMemoriesRequest(**named, query=query, **more),
            timeout=PATIENCE,
        ),
    }


@pytest.fixture(scope="module")
def calls(running) -> Calls:
    calls = Calls(running.address, "nothing-fits")
    fill(calls)
    return calls


@pytest.mark.parametrize("kind", ["patterns", "episodes", "memories"])
def test_a_recall_answers_with_what_fits_or_with_nothing(calls, kind):
    ask = asking(calls)[kind]
    assert len(ask(UNLIKE).hits) == len(STORED)
    nothing = ask(UNLIKE, min_match=LEAST)
    assert not nothing.hits
    [notice] = nothing.notices
    assert notice.code == outcome_pb2.NOTICE_CODE_NOTHING_FITS
    assert "all of the 4 nearest" in notice.message
    like = ask(LIKE, min_match=STRICT)
    [hit] = like.hits
    assert hit.match_probability >= STRICT
    assert not like.notices
    assert not ask(OPPOSITE, min_match=STRICT).hits


def test_the_page_is_filled_from_below_it(calls):
    """The opposite is the most similar; what fits is below it."""
    paraphrase = "Switch on 2FA for every user"
    pattern = pattern_pb2.Pattern(task=paraphrase)
    calls.patterns.SavePattern(
        pattern_service_pb2.SavePatternRequest(
            namespace="below", pattern=pattern, pattern_id="fits"
        ),
        timeout=PATIENCE,
    )
    calls.patterns.SavePattern(
        pattern_service_pb2.SavePatternRequest(
            namespace="below", pattern=pattern_pb2.Pattern(task=STORED[3]), pattern_id="opposite"
        ),
        timeout=PATIENCE,
    )
    request = pattern_service_pb2.RecallPatternsRequest(namespace="below", query=OPPOSITE, limit=1)
    [first] = calls.patterns.RecallPatterns(request, timeout=PATIENCE).hits
    assert first.pattern.pattern_id == "opposite"
    request.min_match = STRICT
    [fits] = calls.patterns.RecallPatterns(request, timeout=PATIENCE).hits
    assert fits.pattern.pattern_id == "fits"


def test_the_same_error_is_found_and_another_is_not(calls):
    request = error_solution_pb2.FindErrorSolutionsRequest(
        namespace=calls.namespace, error_message=ERROR, min_match=1.0
    )
    [hit] = calls.memories.FindErrorSolutions(request, timeout=PATIENCE).hits
    assert hit.match == error_solution_pb2.ERROR_MATCH_EXACT_SIGNATURE
    assert not hit.HasField("match_probability")
    request.error_message = "error[E0382]: borrow of moved value: `queue`"
    request.min_match = 0.02
    answer = calls.memories.FindErrorSolutions(request, timeout=PATIENCE)
    assert not answer.hits
    [notice] = answer.notices
    assert notice.code == outcome_pb2.NOTICE_CODE_NOTHING_FITS


def test_a_context_of_what_fits_or_of_nothing(calls):
    request = task_context_pb2.GetTaskContextRequest(
        namespace=calls.namespace, task=LIKE, min_match=STRICT, min_similarity=0
    )
    context = calls.memories.GetTaskContext(request, timeout=PATIENCE)
    for kind in (context.patterns, context.episodes, context.memories):
        [hit] = kind
        assert hit.match_probability >= STRICT
    request.task = UNLIKE
    nothing = calls.memories.GetTaskContext(request, timeout=PATIENCE)
    for kind in (nothing.patterns, nothing.episodes, nothing.memories):
        assert not kind
    assert [one.code for one in nothing.notices] == [outcome_pb2.NOTICE_CODE_NOTHING_FITS]


def test_the_commands_say_that_nothing_fits(running, calls, data):
    at = ("-a", running.address, "-n", calls.namespace, "--min-match", str(LEAST))
    for command in ("recall", "context"):
        said = run(data, command, UNLIKE, *at)
        assert said.code == 0, said.stderr
        assert "nothing fits: all of the" in said.stderr
    said = run(data, "errors", "error[E0382]: borrow of moved value: `queue`", *at)
    assert (said.code, said.stdout) == (0, "No known solution.\n")
    assert "nothing fits" in said.stderr
    refused = run(data, "recall", UNLIKE, "-a", running.address, "--min-match", "7")
    assert refused.code == 2
    assert "--min-match" in refused.stderr
