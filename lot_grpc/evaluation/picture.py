"""nDCG@10 by set and leg as an SVG that is readable on a light and on a dark page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from lot_grpc.evaluation.bootstrap import Estimate
from lot_grpc.evaluation.metrics import NDCG
from lot_grpc.evaluation.results import Result

_BAR, _GAP, _BETWEEN = 40, 6, 44
"""Widths: of a bar, between bars, between sets."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 20, 84, 50
_HEIGHT = 260
"""Of the value 1."""
_CAP = 5
_LETTER = 8
"""About the width of a letter of a set's name."""
_LEGS = ("dense", "bm25", "hybrid", "rerank")
_STYLE = """
  .page { fill: #ffffff } .text { fill: #1f2328 } .soft { fill: #59636e }
  .grid { stroke: #d1d9e0 } .line { stroke: #1f2328; stroke-width: 1.5 }
  .value { paint-order: stroke; stroke: #ffffff; stroke-width: 3px }
  .dense { fill: #2f6fb3 } .bm25 { fill: #c77700 } .hybrid { fill: #2e8b57 }
  .rerank { fill: #8e4fb0 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } .text { fill: #f0f6fc } .soft { fill: #9198a1 }
    .grid { stroke: #3d444d } .line { stroke: #f0f6fc } .value { stroke: #0d1117 }
    .dense { fill: #5b9fe6 } .bm25 { fill: #e0a03a } .hybrid { fill: #4fbf85 }
    .rerank { fill: #bd86dd }
  }
  text { font: 13px system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif }
  .title { font-size: 16px; font-weight: 600 } .small { font-size: 11px }
"""


@dataclass(frozen=True, slots=True)
class _Set:
    name: str
    queries: int
    legs: Mapping[str, Estimate]

    @property
    def width(self) -> int:
        """Of its bars, or of its name if that is wider."""
        bars = len(self.legs) * (_BAR + _GAP) - _GAP
        return max(bars, _LETTER * max(len(self.name), len(f"{self.queries:,} queries")))


def draw(results: Sequence[Result]) -> str:
    """The whole SVG. Bars are means, whiskers 95 % intervals."""
    sets = [
        _Set(
            one.measured.dataset.name,
            len(one.measured.dataset.answerable),
            {leg: metrics[NDCG] for leg, metrics in one.legs.items()},
        )
        for one in results
    ]
    legs = [leg for leg in _LEGS if any(leg in one.legs for one in sets)]
    inner = sum(one.width for one in sets) + _BETWEEN * len(sets)
    width = max(_LEFT + inner + _RIGHT, 420)
    height = _TOP + _HEIGHT + _BOTTOM
    label = "; ".join(
        f"{one.name}: " + ", ".join(f"{leg} {value.mean:.3f}" for leg, value in one.legs.items())
        for one in sets
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">',
        f"<title>nDCG@10 by set and way of searching</title><desc>{escape(label)}</desc>",
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
        _text(_LEFT, 28, "nDCG@10 by set and way of searching", "text title", "start"),
        *_legend(legs),
        *_grid(width),
    ]
    left = _LEFT + _BETWEEN // 2
    for one in sets:
        parts += _bars(one, left)
        left += one.width + _BETWEEN
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(legs: Sequence[str]) -> list[str]:
    parts, left = [], _LEFT
    for leg in legs:
        parts.append(f'<rect class="{leg}" x="{left}" y="42" width="12" height="12" rx="2"/>')
        parts.append(_text(left + 18, 53, leg, "text", "start"))
        left += 18 + _LETTER * len(leg) + 20
    parts.append(_text(left, 53, "whiskers: 95 % interval", "soft small", "start"))
    return parts


def _grid(width: int) -> list[str]:
    parts = []
    for step in range(6):
        value = step / 5
        y = _y(value)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{width - _RIGHT}" y1="{y:g}" y2="{y:g}"/>'
        )
        parts.append(_text(_LEFT - 8, y + 4, f"{value:.1f}", "soft", "end"))
    return parts


def _bars(one: _Set, left: int) -> list[str]:
    middle = left + one.width / 2
    x = middle - (len(one.legs) * (_BAR + _GAP) - _GAP) / 2
    parts = []
    for leg, value in one.legs.items():
        top, center = _y(value.mean), x + _BAR / 2
        high, low = _y(value.high), _y(value.low)
        parts.append(
            f'<rect class="{leg}" x="{x:g}" y="{top:.1f}" width="{_BAR}" '
            f'height="{_y(0) - top:.1f}" rx="2"><title>{escape(one.name)}, {leg}: '
            f"{value.mean:.3f} ({value.low:.3f} to {value.high:.3f})</title></rect>"
        )
        parts.append(
            f'<path class="line" fill="none" d="M{center:g} {high:.1f}V{low:.1f}'
            f"M{center - _CAP:g} {high:.1f}h{2 * _CAP}"
            f'M{center - _CAP:g} {low:.1f}h{2 * _CAP}"/>'
        )
        shown = f"{value.mean:.3f}".removeprefix("0")
        parts.append(_text(center, high - 6, shown, "text small value", "middle"))
        x += _BAR + _GAP
    parts.append(_text(middle, _y(0) + 20, one.name, "text", "middle"))
    parts.append(_text(middle, _y(0) + 36, f"{one.queries:,} queries", "soft small", "middle"))
    return parts


def _y(value: float) -> float:
    return _TOP + _HEIGHT * (1 - value)


def _text(x: float, y: float, text: str, kind: str, anchor: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'
