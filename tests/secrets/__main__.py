"""Prints precision and recall of the redaction rules, by rule, on both sets.

``python -m tests.secrets [-v]``: with the texts that were missed or wrongly found.
``python -m tests.secrets FILE…``: what is found in texts of your own (.jsonl, also gzipped, or
plain), by rule and per MB; never the text itself.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lot_grpc.redaction import SecretFinder, read_rules
from tests.secrets.measure import cases, measured


def main(arguments: list[str]) -> None:
    rules = read_rules()
    finder = SecretFinder(rules)
    files = [Path(name) for name in arguments if not name.startswith("-")]
    if files:
        return _print_files(finder, files)
    for name in ("fit", "held_out"):
        result = measured(finder, cases(name))
        print(f"{name}: precision {result.precision:.3f}, recall {result.recall:.3f}")
        for rule in rules:
            total, found = result.total[rule.name], result.found[rule.name]
            wrong, named = result.wrong[rule.name], result.named[rule.name]
            if total or wrong:
                print(
                    f"  {rule.name:22} found {found:3} of {total:3}, by name {named:3}, "
                    f"{wrong} wrong"
                )
        if "-v" in arguments:
            for case in result.missed_cases:
                print("  missed", case.rule, repr(case.text[:200]))
            for by, case in result.wrong_cases:
                print("  wrong", by, repr(case.text[:200]))
    return None


def _print_files(finder: SecretFinder, files: list[Path]) -> None:
    counts: Counter[str] = Counter()
    size = 0
    started = time.perf_counter()
    for path in files:
        for text in _texts(path):
            size += len(text.encode())
            counts.update(finding.rule for finding in finder.find(text))
    seconds = time.perf_counter() - started
    print(f"{size / 1e6:.1f} MB, {seconds * 1e6 / (size / 1024):.1f} us per KB with reading")
    for rule, count in counts.most_common():
        print(f"  {rule:22} {count}")
    print(f"  {'all':22} {counts.total()}, {counts.total() / (size / 1e6):.2f} per MB")


def _texts(path: Path) -> Iterator[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        if ".json" not in path.name:
            yield file.read()
        elif ".jsonl" in path.name:
            for line in file:
                yield from _strings(json.loads(line))
        else:
            yield from _strings(json.load(file))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


if __name__ == "__main__":
    main(sys.argv[1:])
