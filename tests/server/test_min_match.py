"""min_match on the wire: notices, probabilities, bad values, and a model without probabilities."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import outcome_pb2
from tests.server.episodes import FAILED, SUCCEEDED
from tests.server.service import Lot, serving
from tests.server.wire import failure
from tests.services.world import CalibratedDouble

TASK, OPPOSITE = "Enable backups of the orders database", "Disable backups of the orders database"
ERROR = "the disk of the build machine is full"
CALLS = {
    "patterns": ("patterns", "RecallPatterns", "query"),
    "episodes": ("episodes", "RecallEpisodes", "query"),
    "memories": ("memories", "SearchMemories", "query"),
    "errors": ("memories", "FindErrorSolutions", "error_message"),
    "context": ("memories", "GetTaskContext", "task"),
}


async def fill(lot: Lot) -> None:
    await lot.patterns.SavePattern(pattern={"task": OPPOSITE})
    await lot.episodes.RecordEpisode(episode={"task": OPPOSITE, "status": SUCCEEDED})
    await lot.episodes.RecordEpisode(
        episode={"task": OPPOSITE, "status": FAILED, "error": {"message": "no"}}
    )
    await lot.memories.CreateMemory(memory={"content": OPPOSITE})
    await lot.memories.SaveErrorSolution(
        error_solution={"error_message": "the printer is out of paper", "resolution": "fill it"}
    )


async def asked(lot: Lot, name: str, **fields: Any) -> Any:
    stub, method, field = CALLS[name]
    text = ERROR if name == "errors" else TASK
    return await getattr(getattr(lot, stub), method)(**{field: text}, **fields)


def found(answer: Any) -> bool:
    kinds = ("hits", "patterns", "episodes", "memories", "error_solutions", "warnings")
    return any(getattr(answer, kind, ()) for kind in kinds)


@pytest.mark.parametrize("name", CALLS)
async def test_nothing_fits_is_told_with_the_best(name):
    async with serving(embedder=CalibratedDouble()) as lot:
        await fill(lot)
        near = {"min_similarity": 0.0} if name == "context" else {}
        plain = await asked(lot, name, **near)
        assert found(plain)
        assert not plain.notices
        answer = await asked(lot, name, min_match=0.9, **near)
        assert not found(answer)
        [notice] = answer.notices
        assert (notice.code, notice.field) == (outcome_pb2.NOTICE_CODE_NOTHING_FITS, "min_match")
        count = {"episodes": 2, "context": 4}.get(name, 1)
        assert f"all of the {count} nearest" in notice.message
        assert "the highest match_probability is " in notice.message
        assert answer.retrieval_id


async def test_where_nothing_is_stored_nothing_is_told():
    async with serving(embedder=CalibratedDouble()) as lot:
        for name in CALLS:
            answer = await asked(lot, name, min_match=0.9)
            assert not found(answer)
            assert not answer.notices


async def test_memories_and_errors_have_a_probability_if_it_is_asked_for():
    async with serving(embedder=CalibratedDouble()) as lot:
        await fill(lot)
        for name in ("memories", "errors"):
            [plain] = (await asked(lot, name)).hits
            assert not plain.HasField("match_probability")
            [rated] = (await asked(lot, name, min_match=0)).hits
            assert rated.HasField("match_probability")
            assert rated.match_probability < 0.5
        await lot.memories.CreateMemory(memory={"content": TASK})
        best, _ = (await asked(lot, "memories", min_match=0)).hits
        assert best.match_probability > 0.8
        [in_context] = (await asked(lot, "context")).memories
        assert in_context.match_probability == pytest.approx(best.match_probability)
        near = await asked(lot, "context", min_similarity=0)
        assert not any(hit.HasField("match_probability") for hit in near.memories)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf")])
async def test_a_minimum_outside_of_its_range_is_refused(lot, name, value):
    failed = await failure(asked(lot, name, min_match=value))
    assert failed.code == "INVALID_ARGUMENT"
    assert "min_match" in failed.fields


@pytest.mark.parametrize("name", CALLS)
async def test_another_model_has_none_and_the_call_says_what_to_do(lot, name):
    if lot.own_clock is None:
        pytest.skip("needs a server that embeds with the double")
    failed = await failure(asked(lot, name, min_match=0.1))
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "MATCH_UNAVAILABLE")
    assert "min_similarity" in failed.message
    assert failed.metadata["model"]
