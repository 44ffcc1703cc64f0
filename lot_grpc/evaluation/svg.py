"""Shared parts of pictures: colours for light and dark pages, and text."""

from __future__ import annotations

from xml.sax.saxutils import escape

COLOURS = {
    "blue": ("#2f6fb3", "#5b9fe6"),
    "orange": ("#c77700", "#e0a03a"),
    "green": ("#2e8b57", "#4fbf85"),
    "purple": ("#8e4fb0", "#bd86dd"),
    "red": ("#b8433f", "#e5736f"),
}
"""Colours of series, each for a light and a dark page."""

_LIGHT = """
  .page { fill: #ffffff } .text { fill: #1f2328 } .soft { fill: #59636e }
  .grid { stroke: #d1d9e0 } .line { stroke: #1f2328; stroke-width: 1.5 }
  .value { paint-order: stroke; stroke: #ffffff; stroke-width: 3px }
"""
_DARK = """
    .page { fill: #0d1117 } .text { fill: #f0f6fc } .soft { fill: #9198a1 }
    .grid { stroke: #3d444d } .line { stroke: #f0f6fc } .value { stroke: #0d1117 }
"""
_FONT = """
  text { font: 13px system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif }
  .title { font-size: 16px; font-weight: 600 } .small { font-size: 11px }
"""


def style(light: str, dark: str) -> str:
    """The style sheet, with a picture's own rules for light and dark pages."""
    return f"{_LIGHT}{light}  @media (prefers-color-scheme: dark) {{{_DARK}{dark}  }}{_FONT}"


def text(x: float, y: float, label: str, kind: str, anchor: str) -> str:
    """A line of text. ``kind``: its classes; ``anchor``: start, middle or end."""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(label)}</text>'


def head(width: int, height: int, title: str, description: str, sheet: str) -> list[str]:
    """The opening tag, title, style and background. ``sheet`` is from ``style``."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>",
        f"<style>{sheet}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
    ]
