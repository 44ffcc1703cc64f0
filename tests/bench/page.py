"""Writes tables of results into the page on benchmarks, each between two markers."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

NAME = "docs/benchmarks.md"
_PAGE = Path(__file__).parents[2] / NAME
_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimd", "asimddp", "i8mm")
"""The processor features that decide how fast a model with 8-bit integers runs."""


def write(section: str, text: str, page: Path = _PAGE) -> None:
    """Replace the text between ``<!-- section: begin -->`` and ``<!-- section: end -->``."""
    begin, end = f"<!-- {section}: begin -->", f"<!-- {section}: end -->"
    before, found, rest = page.read_text().partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise ValueError(f"{page} has no {begin} … {end}")
    page.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}")


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def load() -> float:
    """The load average of the last minute."""
    return os.getloadavg()[0]


def machine(load_before: float) -> str:
    """The date, the machine, the versions and the load."""
    cpu = Path("/proc/cpuinfo")
    text = cpu.read_text() if cpu.exists() else ""
    model = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*: (.+)$", text, re.MULTILINE)
    known = flags[1].split() if flags else []
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    parts = [
        f"{datetime.now(UTC):%Y-%m-%d}",
        f"{os.cpu_count()} cores ({model[1] if model else platform.machine()}"
        f"; {' '.join(flag for flag in _FLAGS if flag in known)})",
        f"{memory:.0f} GiB",
        f"{platform.system()} {platform.release()}",
        f"Python {platform.python_version()}",
        f"ONNX Runtime {version('onnxruntime')}",
        f"load {load_before:.1f} before, {load():.1f} after",
    ]
    return ", ".join(parts)
