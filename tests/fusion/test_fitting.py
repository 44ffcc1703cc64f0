"""Numbers fitted with one set left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lot_grpc.domain.fusion import FusionWeights, Overlap, Relevance
from lot_grpc.evaluation.dataset import EvalQuery
from tests.fusion.__main__ import main
from tests.fusion.conversations import conversations
from tests.fusion.fitting import Answered, SearchedSet, by_weight, fit, misleads

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


def test_the_likeness_is_what_chance_reaches_in_the_median_of_the_other_sets():
    def wrong(*likenesses: float) -> SearchedSet:
        rows = [Answered([0.5] * 21, Overlap(it, 4), wrong=True) for it in likenesses]
        return SearchedSet("", [(one, one) for one in rows])

    right = Answered([0.5] * 21, Overlap(1.0, 4))
    low, middle, high = wrong(0.1, 0.2), wrong(*[0.1] * 18, 0.42, 0.42), wrong(0.9)
    middle = SearchedSet("", [*middle.answered, *[(right, right)] * 9])
    assert middle.chance == pytest.approx(0.42)
    served, left_out = fit([low, middle, high])
    assert served.like == 0.4
    assert [one.weights.like for one in left_out] == [0.65, 0.55, 0.3]


def test_a_hit_misleads_that_leads_the_words_and_is_not_right():
    found = [
        ("right", Relevance("1", 0, 0.9, 0.2, 0)),
        ("wrong", Relevance("2", 0, 0.5, 0.8, 0)),
    ]
    query = EvalQuery("q", "?", {"right": 1.0, "wrong": 0.0})
    assert misleads(found, query)
    assert not misleads(found, replace(query, exclude=frozenset({"wrong"})))
    assert not misleads(found[:1], query)
    assert not misleads([], query)


def test_the_halves_of_the_conversations_are_all_of_their_questions():
    one, other = ({it.id for it in conversations(half).queries} for half in (0, 1))
    assert not one & other
    assert one | other == {it.id for it in conversations().queries}
    assert abs(len(one) - len(other)) <= 1


@pytest.mark.exhaustive
@pytest.mark.timeout(120)
def test_the_command_names_each_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    texts = {"d1": "Book a hotel", "d2": "Cancel the order", "d3": "Parse a date"}
    rows = [f'{{"id": "{key}", "text": "{text}"}}' for key, text in texts.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(rows))
    (tmp_path / "queries.jsonl").write_text('{"id": "q", "text": "cancel my order"}')
    (tmp_path / "qrels.tsv").write_text("q\td2\t1\n")
    assert main(["--data", str(tmp_path)]) == 0
    given, own = (line.split()[:5] for line in capsys.readouterr().out.splitlines()[2:4])
    assert given == [tmp_path.name, *["1.0000"] * 4]
    assert own[0] == "conversations"
