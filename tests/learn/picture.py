"""How ranking learns, as an SVG: over the asks, through the change, and by the margin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lot_grpc.evaluation.svg import COLOURS, head, style, text
from tests.learn.measuring import BALANCED, BETA, EXPLORE, RELIABLE, Bounds, Measured, Report
from tests.learn.replaying import Point
from tests.learn.report import margins
from tests.learn.worlds import mean

_WIDTH, _HEIGHT = 300, 240
"""Of a panel's inside."""
_LEFT, _BETWEEN, _RIGHT, _TOP, _BOTTOM = 52, 64, 40, 110, 52
_COLOUR_OF = {BALANCED: "green", RELIABLE: "purple", EXPLORE: "orange", BETA: "blue"}
_WEIGHTED, _FREE = "weighted", "outcomes alone"
_MARGIN_COLOUR = {_WEIGHTED: "green", _FREE: "red"}
Spot = tuple[float, float]


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    ticks: Sequence[float]
    shown: Callable[[float], str]

    def part(self, value: float) -> float:
        """Where it lies between the ends, in [0, 1]."""
        return (min(self.high, max(self.low, value)) - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class _Panel:
    """One chart; ``left`` is where its inside begins."""

    left: float
    title: str
    x: _Axis
    y: _Axis

    def at(self, spot: Spot) -> Spot:
        """Where a spot lies in the picture."""
        return (
            self.left + _WIDTH * self.x.part(spot[0]),
            _TOP + _HEIGHT * (1 - self.y.part(spot[1])),
        )

    def frame(self) -> list[str]:
        right, bottom = self.left + _WIDTH, _TOP + _HEIGHT
        parts = [text(self.left, _TOP - 16, self.title, "text", "start")]
        for tick in self.y.ticks:
            _, y = self.at((self.x.low, tick))
            parts.append(
                f'<line class="grid" x1="{self.left:g}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
            )
            parts.append(text(self.left - 8, round(y + 4, 1), self.y.shown(tick), "soft", "end"))
        for tick in self.x.ticks:
            x, _ = self.at((tick, self.y.low))
            parts.append(text(round(x, 1), bottom + 20, self.x.shown(tick), "soft small", "middle"))
        return parts

    def curve(self, spots: Sequence[Spot], kind: str, told: str) -> str:
        places = [self.at(spot) for spot in spots]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        return f'<path class="curve {kind}" d="{path}"><title>{told}</title></path>'


def draw(report: Report) -> str:
    """The whole SVG; means over the seeds."""
    width = round(_LEFT + 3 * _WIDTH + 2 * _BETWEEN + _RIGHT)
    title = f"How ranking learns: {report.tasks.name}"
    parts = [
        *head(width, _TOP + _HEIGHT + _BOTTOM, title, _description(report), _sheet()),
        text(_LEFT, 28, title, "text title", "start"),
        *_legend(),
        *_learning(report),
        *_changing(report),
        *_by_gate(report),
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _kind(name: str) -> str:
    return name.lower().replace(" ", "-")


def _sheet() -> str:
    colours = {**_COLOUR_OF, **_MARGIN_COLOUR}
    light, dark = (
        "".join(_rule(_kind(name), COLOURS[colour][page]) for name, colour in colours.items())
        for page in (0, 1)
    )
    own = "  .curve { fill: none; stroke-width: 2.5 } .dot { fill: currentColor; stroke: none }\n"
    return style(f"{own}  .bound {{ stroke-dasharray: 5 4 }}\n{light}", dark)


def _rule(kind: str, colour: str) -> str:
    return f"  .{kind} {{ stroke: {colour}; color: {colour} }}\n"


def _description(report: Report) -> str:
    ends = {
        name: mean([one.learned[name].steady[-1].asked for one in report.measured])
        for name in report.measured[0].learned
    }
    told = ", ".join(f"{name} {value:.3f}" for name, value in ends.items())
    return f"Expected share of successes after {report.wanted.asks:,} asks: {told}"


def _legend() -> list[str]:
    parts, left = [], float(_LEFT)
    for name in _COLOUR_OF:
        parts.append(f'<path class="curve {_kind(name)}" d="M{left:g} 50h18"/>')
        parts.append(text(left + 24, 54, name, "text", "start"))
        left += 24 + 8 * len(name) + 24
    parts.append(f'<path class="line bound" d="M{left:g} 50h18"/>')
    parts.append(text(left + 24, 54, "oracle (above) and RELEVANCE", "text", "start"))
    said = "expected share of successes on queries asked before"
    parts.append(text(_LEFT, 74, said, "soft small", "start"))
    return parts


# --- over the asks ----------------------------------------------------------------------------


def _learning(report: Report) -> list[str]:
    panel = _Panel(_LEFT, "over the asks", _asks(report.wanted.asks), _shares(report))
    series = {name: [one.learned[name].steady for one in report.measured] for name in _COLOUR_OF}
    bounds = _dashed(panel, report.measured, lambda one: one.before, 0, report.wanted.asks)
    return [*panel.frame(), *bounds, *_curves(panel, series)]


def _changing(report: Report) -> list[str]:
    wanted = report.wanted
    start, change, end = wanted.changed[0], wanted.change_at, wanted.asks_with_change
    left = _LEFT + _WIDTH + _BETWEEN
    title = f"all chances drawn anew after {change:,}"
    panel = _Panel(left, title, _asks(end, start), _shares(report))
    series = {name: [one.learned[name].changed for one in report.measured] for name in _COLOUR_OF}
    return [
        *panel.frame(),
        *_dashed(panel, report.measured, lambda one: one.before, start, change),
        *_dashed(panel, report.measured, lambda one: one.after, change, end),
        *_curves(panel, series),
    ]


def _asks(end: int, start: int = 0) -> _Axis:
    return _Axis(
        start, max(end, start + 1), (start, (start + end) // 2, end), lambda x: f"{x:,.0f}"
    )


def _shares(report: Report) -> _Axis:
    """Up to .8 where no oracle is above it."""
    oracles = [bounds.oracle.asked for one in report.measured for bounds in (one.before, one.after)]
    most = 4 if max(oracles) <= 0.8 else 5
    return _Axis(0.0, most / 5, [step / 5 for step in range(most + 1)], lambda y: f"{y:.1f}")


def _dashed(
    panel: _Panel,
    measured: Sequence[Measured],
    bounds_of: Callable[[Measured], Bounds],
    start: int,
    end: int,
) -> list[str]:
    bounds = [bounds_of(one) for one in measured]
    levels = {
        "RELEVANCE": mean([one.relevance.asked for one in bounds]),
        "oracle": mean([one.oracle.asked for one in bounds]),
    }
    parts = []
    for name, level in levels.items():
        (x, y), (to, _) = panel.at((start, level)), panel.at((end, level))
        parts.append(
            f'<path class="line bound" d="M{x:.1f} {y:.1f}H{to:.1f}">'
            f"<title>{name} {level:.3f}</title></path>"
        )
    return parts


def _curves(panel: _Panel, series: dict[str, list[tuple[Point, ...]]]) -> list[str]:
    parts = []
    for name, runs in series.items():
        spots = [
            (float(points[0].asks), mean([point.asked for point in points]))
            for points in zip(*runs, strict=True)
        ]
        parts.append(panel.curve(spots, _kind(name), f"{name} {spots[-1][1]:.3f}"))
    return parts


# --- by the margin ------------------------------------------------------------------------------


def _by_gate(report: Report) -> list[str]:
    rows = margins(report)
    curves = {
        _WEIGHTED: [(row.way, row.gain) for row in rows],
        _FREE: [(row.free_way, row.free_gain) for row in rows],
    }
    gains = [gain for spots in curves.values() for _, gain in spots]
    low, high = min(-0.05, *gains), max(0.05, *gains)
    panel = _Panel(
        _LEFT + 2 * (_WIDTH + _BETWEEN),
        "by the margin: gain, never asked",
        _Axis(0.0, 1.0, [step / 4 for step in range(5)], lambda x: f"{x:.0%}"),
        _Axis(low, high, (low, 0.0, high), lambda y: f"{y:+.2f}" if y else "0"),
    )
    parts = panel.frame()
    for name, spots in curves.items():
        parts.append(panel.curve(spots, _kind(name), name))
        for row, spot in zip(rows, spots, strict=True):
            x, y = panel.at(spot)
            margin = "no margin" if row.margin >= 1 else f"margin {row.margin:g}"
            told = f"{name}, {margin}: {spot[0]:.1%}, {spot[1]:+.3f}"
            parts.append(_dot(name, x, y, told))
    bottom, x = _TOP + _HEIGHT + 40, panel.left
    parts.append(text(x, bottom, "of the way on queries asked", "soft small", "start"))
    for name, shift in ((_WEIGHTED, 166.0), (_FREE, 236.0)):
        parts.append(_dot(name, x + shift, bottom - 4))
        parts.append(text(x + shift + 8, bottom, name, "soft small", "start"))
    return parts


def _dot(name: str, x: float, y: float, told: str = "") -> str:
    title = f"<title>{told}</title>" if told else ""
    return f'<circle class="dot {_kind(name)}" cx="{x:.1f}" cy="{y:.1f}" r="3.5">{title}</circle>'
