from __future__ import annotations

from xml.etree import ElementTree

from tests.learn.made import reported
from tests.learn.picture import draw

SVG = "{http://www.w3.org/2000/svg}"


def drawn(**named) -> ElementTree.Element:
    return ElementTree.fromstring(draw(reported(**named)))


def curves(picture: ElementTree.Element, kind: str) -> list[str]:
    paths = picture.iter(f"{SVG}path")
    return [path.get("d", "") for path in paths if path.get("class") == f"curve {kind}"]


def test_it_says_in_words_what_it_shows():
    told = drawn(asked=0.61).findtext(f"{SVG}desc") or ""
    assert "after 60 asks" in told
    assert "BALANCED 0.610" in told


def test_every_ranking_has_a_curve_in_both_panels_and_one_in_the_legend():
    picture = drawn()
    for kind in ("balanced", "reliable", "explore", "beta-mean"):
        assert len(curves(picture, kind)) == 3


def test_a_greater_share_is_drawn_higher():
    def height(asked: float) -> float:
        steady = curves(drawn(asked=asked), "balanced")[1]
        return float(steady.rsplit(" ", 1)[1])

    assert height(0.7) < height(0.5)


def test_all_lies_within_the_page():
    picture = drawn(asked=0.99, never=0.9)
    width, height = float(picture.get("width", 0)), float(picture.get("height", 0))
    for circle in picture.iter(f"{SVG}circle"):
        assert 0 <= float(circle.get("cx", -1)) <= width
        assert 0 <= float(circle.get("cy", -1)) <= height


def test_the_dots_tell_their_gates():
    told = [circle.findtext(f"{SVG}title") for circle in drawn().iter(f"{SVG}circle")]
    assert "weighted, no margin: 50.0%, +0.100" in told
    assert "outcomes alone, margin 0: 0.0%, +0.000" in told
