from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

from lot_grpc.evaluation.picture import draw
from lot_grpc.evaluation.results import result_of
from tests.evaluation.made import measured

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*results):
    return ElementTree.fromstring(draw([result_of(one, {}) for one in results]))


def bars(picture, leg):
    return [
        rect
        for rect in picture.iter(f"{SVG}rect")
        if rect.get("class") == leg and rect.find(f"{SVG}title") is not None
    ]


def test_it_is_well_formed_whatever_a_set_is_called():
    picture = drawn(measured({"dense": [0.5, 1.0]}, '<"R&D">'))
    assert picture.tag == f"{SVG}svg"
    assert '<"R&D">' in [text.text for text in picture.iter(f"{SVG}text")]


def test_a_bar_is_as_high_as_its_mean_and_says_it():
    picture = drawn(measured({"dense": [0.5] * 9, "bm25": [1.0] * 9}))
    half, whole = bars(picture, "dense")[0], bars(picture, "bm25")[0]
    assert float(whole.get("height")) == 2 * float(half.get("height"))
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert {".500", "1.000", "made", "9 queries"} <= set(texts)


def test_whiskers_span_the_interval():
    result = result_of(measured({"dense": [0.0, 1.0] * 20}), {})
    picture = ElementTree.fromstring(draw([result]))
    one = result.legs["dense"]["ndcg@10"]
    path = next(iter(picture.iter(f"{SVG}path")))
    found = re.match(r"M\S+ ([\d.]+)V([\d.]+)", path.get("d", ""))
    assert found is not None
    top, bottom = found.groups()
    height = float(bars(picture, "dense")[0].get("height")) / one.mean
    assert abs((float(bottom) - float(top)) / height - (one.high - one.low)) < 0.01


def test_sets_stand_beside_each_other_inside_the_picture():
    values = {"dense": [0.5], "bm25": [0.5], "hybrid": [0.5], "rerank": [0.5]}
    picture = drawn(measured(values, "a"), measured(values, "b" * 60), measured(values, "c"))
    spans = sorted(
        (float(bar.get("x")), float(bar.get("x")) + float(bar.get("width")))
        for leg in values
        for bar in bars(picture, leg)
    )
    assert len(spans) == 12
    assert all(left[1] < right[0] for left, right in pairwise(spans))
    assert spans[-1][1] < float(picture.get("width"))


def test_it_has_colours_for_light_and_dark_pages_and_a_legend_of_its_legs_only():
    text = draw([result_of(measured({"dense": [0.5], "hybrid": [0.6]}), {})])
    assert "prefers-color-scheme: dark" in text
    assert ">hybrid</text>" in text
    assert ">bm25</text>" not in text
