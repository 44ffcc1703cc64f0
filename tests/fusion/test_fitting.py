"""Numbers fitted with one set left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from lot_grpc.domain.fusion import FusionWeights, Overlap, Relevance
from lot_grpc.evaluation.dataset import EvalQuery
from tests.fusion.__main__ import main
from tests.fusion.fitting import Answered, SearchedSet, by_weight, fit

PROSE, CODE = (Overlap(0.1, 4), False), (Overlap(0.1, 4), True)
LIKE = (Overlap(0.42, 4), False)


def best_at(weight: float) -> list[float]:
    """The values of a query that is best answered with one weight."""
    return [1 - abs(step / 20 - weight) / 50 for step in range(21)]


def made(name: str, form: Answered, telling: Answered | None = None) -> SearchedSet:
    return SearchedSet(name, [(form, telling or form)] * 3)


def ascending(values: Sequence[float]) -> bool:
    return list(values) == sorted(values)


def test_a_query_is_worked_out_for_each_weight():
    found = [
        ("right", Relevance("1", 0, 0.9, 0.2, 0)),
        ("wrong", Relevance("2", 0, 0.5, 0.8, 0)),
        ("given", Relevance("3", 0, 1.0, 1.0, 0)),
    ]
    query = EvalQuery("q", "?", {"right": 1.0}, frozenset({"given"}))
    values = by_weight(found, query)
    assert values[0] == pytest.approx(1 / np.log2(3))
    assert values[-1] == 1.0
    assert ascending(values)


def test_a_hybrid_lies_between_two_weights():
    one = made("prose", Answered(best_at(0.0), *PROSE))
    weights = FusionWeights(prose=0.42)
    assert one.hybrid(weights) == pytest.approx(1 - 0.42 / 50)
    assert one.legs(weights) == pytest.approx((1 - 1 / 50, 1.0))
    assert one.gap(weights) == pytest.approx(-0.42 / 50)


def test_function_words_count_where_the_numbers_say_so():
    form, telling = Answered(best_at(0.05), *LIKE), Answered([0.0] * 21, *PROSE)
    one = made("form", form, telling)
    assert one.hybrid(FusionWeights(like=0.4)) == pytest.approx(1.0)
    assert one.hybrid(FusionWeights(like=0.45)) == 0.0


def test_a_set_that_is_left_out_has_no_say():
    bests = {"a": (0.5, PROSE), "b": (0.4, PROSE), "c": (0.7, CODE), "d": (0.9, CODE)}
    sets = [made(name, Answered(best_at(best), *it)) for name, (best, it) in bests.items()]
    served, left_out = fit(sets)
    chosen = {one.left_out.name: one.weights for one in left_out}
    assert chosen["a"].prose < chosen["b"].prose
    assert chosen["d"].code < chosen["c"].code
    assert chosen["a"].prose <= served.prose <= chosen["b"].prose


@pytest.mark.exhaustive
@pytest.mark.timeout(120)
def test_the_command_names_each_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        texts = {"d1": f"Book a hotel {name}", "d2": "Cancel the order", "d3": "Parse a date"}
        rows = [f'{{"id": "{key}", "text": "{text}"}}' for key, text in texts.items()]
        (tmp_path / name / "corpus.jsonl").write_text("\n".join(rows))
        (tmp_path / name / "queries.jsonl").write_text('{"id": "q", "text": "cancel my order"}')
        (tmp_path / name / "qrels.tsv").write_text("q\td2\t1\n")
    assert main(["--data", str(tmp_path / "one"), "--data", str(tmp_path / "two")]) == 0
    lines = capsys.readouterr().out.splitlines()
    firsts = [line.split()[:5] for line in lines[2:4]]
    assert firsts == [[name, *["1.0000"] * 4] for name in ("one", "two")]
