"""`lot-grpc stats` against a server that answers as it is told."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from google.protobuf.json_format import ParseDict

from lot_grpc.cli.stats import counts_text, size_text
from lot_grpc.pb.lot.v1 import admin_service_pb2
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as service_pb
from tests.cli.patterns import START, pattern
from tests.cli.test_episodes import ran, rows_of


def tell_stats(fake) -> None:
    fake.patterns.stats = service_pb.GetPatternStatsResponse(
        total_count=1500, used_count=500, average_success_rate=0.9, min_success_rate=0.1,
        max_success_rate=1.0, average_used_success_rate=0.75, total_usage_count=4000,
        total_success_count=3000, total_partial_count=200, total_failure_count=800,
        success_share=0.775, pinned_count=2, most_used_pattern_id="p-7",
        by_kind={"TASK": 1000, "CODE": 500, "LEARNED": 0}, by_code_kind={"ERROR_HANDLER": 3},
        by_pattern_type={"SUCCESS": 1500},
        by_language={f"lang-{n:02}": 100 - n for n in range(13)}, by_category={"back": 7},
    )  # fmt: skip
    few = service_pb.GetPatternStatsResponse(
        total_count=100, used_count=40, average_used_success_rate=0.5, total_usage_count=80,
        success_share=0.625,
    )  # fmt: skip
    never = service_pb.GetPatternStatsResponse(total_count=99, average_success_rate=1)
    fake.patterns.narrow_stats = {"lang-00": few, "lang-01": never, "back": few}
    info = admin_service_pb2.GetServerInfoResponse(
        version="1.2.3", backend="edge", model="some/model", dimensions=384,
        record_counts={"PATTERN": 1500, "EPISODE_EVENT": 2, "SESSION": 0},
    )  # fmt: skip
    info.store.used_bytes, info.store.free_bytes, info.store.writable = 3 * 2**20, 2**40, True
    info.start_time.FromDatetime(START)
    info.server_time.FromDatetime(START.replace(hour=15))
    fake.admin.info = info


def test_stats_are_told_in_one_screen(runner, fake):
    tell_stats(fake)
    result = ran(runner, fake, "stats", "-n", "team")
    assert (result.exit_code, result.stderr) == (0, "")
    rows = rows_of(result.stdout)
    assert rows["version"] == "1.2.3"
    assert rows["store"] == "edge, 3.0 MiB used, 1.0 TiB free"
    assert rows["model"] == "some/model, 384 dimensions"
    assert rows["holds"] == "1,500 patterns, 2 episode events"
    assert rows["up for"] == "3 h"
    assert "Patterns in team\n" in result.stdout
    assert rows["count"] == "1,500, 500 used, 1,000 not used yet, 2 pinned"
    assert rows["kinds"] == "task 1,000, code 500"
    assert rows["code"] == "error handler 3"
    assert rows["success rate"] == (
        "0.750 on average of those used; 0.900 of all, from 0.100 to 1.000"
    )
    assert rows["uses"] == "4,000: 3,000 worked, 200 in part, 800 failed (77.5%)"
    assert rows["most used"] == "p-7"
    lines = {line.split()[-1]: line.split() for line in result.stdout.splitlines() if line.strip()}
    assert lines["lang-00"] == ["100", "40", "0.500", "80", "62.5%", "lang-00"]
    assert lines["lang-01"] == ["99", "0", "0", "lang-01"]
    assert lines["back"] == ["7", "40", "0.500", "80", "62.5%", "back"]
    assert lines["more"] == ["267", "3", "more"]
    assert "lang-10" not in lines
    assert len(result.stdout.splitlines()) <= 40


def test_each_language_is_asked_for_with_the_same_filter(runner, fake):
    tell_stats(fake)
    options = ["--language", "a", "--language", "b", "--task-type", "c", "--min-usage", "2"]
    assert ran(runner, fake, "stats", *options, "-n", "team").exit_code == 0
    whole, *narrow = fake.patterns.requests
    assert list(whole.filter.languages) == ["a", "b"]
    assert [list(one.filter.languages) for one in narrow] == [
        *([f"lang-{n:02}"] for n in range(10)),
        ["a", "b"],
    ]
    assert list(narrow[-1].filter.categories) == ["back"]
    assert {(one.namespace, *one.filter.task_types) for one in narrow} == {("team", "c")}
    assert {one.filter.min_usage_count for one in narrow} == {2}


@pytest.mark.parametrize("told", [True, False])
def test_stats_of_nothing_say_so(runner, fake, told):
    fake.admin.info.store.writable = True
    fake.admin.info.store.free_bytes = 2**30 if told else 0
    result = ran(runner, fake, "stats")
    assert result.exit_code == 0
    rows = rows_of(result.stdout)
    nothing = "nothing" if told else "nothing that these credentials may see"
    assert (rows["holds"], rows["count"]) == (nothing, "none")
    assert "success rate" not in rows


def test_a_store_that_takes_no_writes_is_told(runner, fake):
    tell_stats(fake)
    fake.admin.info.store.writable = False
    fake.admin.info.store.detail = "the disk is full"
    assert "rejects writes: the disk is full" in ran(runner, fake, "stats").stdout


def test_stats_as_json_are_both_answers(runner, fake):
    tell_stats(fake)
    [line] = ran(runner, fake, "stats", "--json").stdout.splitlines()
    told = json.loads(line)
    assert set(told) == {"server", "patterns"}
    assert ParseDict(told["patterns"], service_pb.GetPatternStatsResponse()) == fake.patterns.stats
    info = ParseDict(told["server"], admin_service_pb2.GetServerInfoResponse())
    assert info == fake.admin.info
    assert len(fake.patterns.requests) == 1


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (2**50, "1024.0 TiB"), (1536, "1.5 KiB")],
)
def test_sizes_are_told_in_the_unit_that_fits(size, shown):
    assert size_text(size) == shown


def test_counts_are_told_largest_first():
    assert (
        counts_text({"B": 1, "A": 1, "LONG_NAME": 1000, "NONE": 0}) == "long name 1,000, a 1, b 1"
    )


def test_a_reader_that_has_enough_ends_it_quietly(fake):
    # More than a pipe holds.
    fake.patterns.patterns = [pattern(n, task="x" * 1000) for n in range(500)]
    command = [sys.executable, "-m", "lot_grpc", "patterns", "--all", "--json", "-a", fake.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        said = running.stderr.read()
    assert (running.returncode, said) == (141, b"")
