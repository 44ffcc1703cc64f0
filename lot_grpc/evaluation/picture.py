"""nDCG@10 by set and leg as an SVG that is readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from lot_grpc.evaluation.bootstrap import Estimate
from lot_grpc.evaluation.metrics import NDCG
from lot_grpc.evaluation.results import Result
from lot_grpc.evaluation.svg import COLOURS, head, style, text

_BAR, _GAP, _BETWEEN = 40, 6, 44
"""Widths: of a bar, between bars, between sets."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 20, 84, 50
_HEIGHT = 260
"""Height of the value 1."""
_CAP = 5
_LETTER = 8
"""Approximate width of a letter of a set's name."""
_LEGS = ("dense", "bm25", "hybrid", "rerank")
_COLOUR_OF = {"dense": "blue", "bm25": "orange", "hybrid": "green", "rerank": "purple"}


@dataclass(frozen=True, slots=True)
class _Set:
    name: str
    queries: int
    legs: Mapping[str, Estimate]

    @property
    def width(self) -> int:
        """The width of its bars, or of its name if that is wider."""
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
    title = "nDCG@10 by set and way of searching"
    parts = [
        *head(width, height, title, label, _sheet()),
        text(_LEFT, 28, title, "text title", "start"),
        *_legend(legs),
        *_grid(width),
    ]
    left = _LEFT + _BETWEEN // 2
    for one in sets:
        parts += _bars(one, left)
        left += one.width + _BETWEEN
    return "\n".join([*parts, "</svg>"]) + "\n"


def _sheet() -> str:
    light, dark = (
        "".join(f"  .{leg} {{ fill: {COLOURS[name][page]} }}\n" for leg, name in _COLOUR_OF.items())
        for page in (0, 1)
    )
    return style(light, dark)


def _legend(legs: Sequence[str]) -> list[str]:
    parts, left = [], _LEFT
    for leg in legs:
        parts.append(f'<rect class="{leg}" x="{left}" y="42" width="12" height="12" rx="2"/>')
        parts.append(text(left + 18, 53, leg, "text", "start"))
        left += 18 + _LETTER * len(leg) + 20
    parts.append(text(left, 53, "whiskers: 95 % interval", "soft small", "start"))
    return parts


def _grid(width: int) -> list[str]:
    parts = []
    for step in range(6):
        value = step / 5
        y = _y(value)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{width - _RIGHT}" y1="{y:g}" y2="{y:g}"/>'
        )
        parts.append(text(_LEFT - 8, y + 4, f"{value:.1f}", "soft", "end"))
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
        parts.append(text(center, high - 6, shown, "text small value", "middle"))
        x += _BAR + _GAP
    parts.append(text(middle, _y(0) + 20, one.name, "text", "middle"))
    parts.append(text(middle, _y(0) + 36, f"{one.queries:,} queries", "soft small", "middle"))
    return parts


def _y(value: float) -> float:
    return _TOP + _HEIGHT * (1 - value)
