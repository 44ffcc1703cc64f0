"""Generate the client for threads, `_sync`, from the one for asyncio, `_async`.

    python clients/python/generate_sync.py           # write `_sync`
    python clients/python/generate_sync.py --check   # exit 1 if it is not what would be written

Run it with a Python that has ruff. What no rule can translate stands in `_primitives.py`, which is
written by hand on both sides.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

RUFF = Path(sys.executable).with_name("ruff")
PACKAGE = Path(__file__).parent / "src" / "lot_client"
BY_HAND = {"__init__.py", "_primitives.py"}

RULES = {
    r"\(await (self\.call\([^()]*\))\)": r"\1",  # parentheses that only `await` needs
    r"\bawait ": "",
    r"\basync (def|for|with)\b": r"\1",
    r"\b__a(enter|exit|iter|next)__\b": r"__\1__",
    r"\bStopAsyncIteration\b": "StopIteration",
    r"\bAsync([A-Z]\w*)": r"\1",  # AsyncLotClient, AsyncIterator
    r"\b_async\b": "_sync",
    r"\bimport asyncio\n": "import time\n",
    r"\basyncio\.sleep\b": "time.sleep",
    r"\bgrpc\.aio\b": "grpc",
    r"for item in (.*):\n +yield item\n": r"yield from \1\n",
    # What docstrings say:
    r"for one event loop. Create it where that loop runs\.": "for any number of threads.",
    r"any task of its loop": "any number of threads",
    r"\b(any|one|background)(\s+)task\b": r"\1\2thread",
}


def main() -> int:
    """Write or check; the exit code is 0 if `_sync` is what `_async` says."""
    parser = argparse.ArgumentParser(description="Generate the client for threads.")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 on differences")
    check: bool = parser.parse_args().check
    different = differences(PACKAGE / "_async", PACKAGE / "_sync", write=not check)
    for path in different:
        sys.stdout.write(f"{'differs' if check else 'written'}: {path.name}\n")
    if check and different:
        sys.stderr.write("run: make client-sync\n")
    return int(check and bool(different))


def differences(source: Path, target: Path, *, write: bool) -> list[Path]:
    """Files in ``target`` that are not as generated; with ``write`` they are made so."""
    expected = {
        target / path.name: generated(path)
        for path in sorted(source.glob("*.py"))
        if path.name not in BY_HAND
    }
    present = {
        path: path.read_text("utf-8") for path in target.glob("*.py") if path.name not in BY_HAND
    }
    stale = sorted(present.keys() - expected.keys())
    different = [path for path, text in expected.items() if present.get(path) != text]
    if write:
        for path in stale:
            path.unlink()
        for path in different:
            path.write_text(expected[path], "utf-8")
    return stale + different


def generated(source: Path) -> str:
    """The module for threads, formatted like the rest of the code."""
    text = f"# Generated from _async/{source.name}: do not edit.\n"
    text += translated(source.read_text("utf-8"))
    place = PACKAGE / "_sync" / source.name
    for arguments in (["check", "--fix-only", "--quiet"], ["format"]):
        done = subprocess.run(  # noqa: S603 - our own command
            [RUFF, *arguments, f"--stdin-filename={place}", "-"],
            input=text,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            check=True,
        )
        text = done.stdout
    return text


def translated(text: str) -> str:
    """The same code for threads."""
    for pattern, replacement in RULES.items():
        text = re.sub(pattern, replacement, text)
    return text


if __name__ == "__main__":
    sys.exit(main())
