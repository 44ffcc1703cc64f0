"""`lot-grpc export` and `lot-grpc import` on real servers, also with files that are not whole."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.struct_pb2 import Value

from lot_grpc.cli.transfer_file import read_messages, write_message, write_title
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from tests.e2e.process import PATIENCE, ROOT, Served, command, environment, run, serve
from tests.sampling import one_in
from tests.transfer.filling import Filling
from tests.transfer.measure import contents, measure, same

pytestmark = pytest.mark.model


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kill", one_in(2, [False, True]))
def test_a_store_that_is_moved_is_the_same_whatever_dies(kill: bool, tmp_path: Path, capsys):
    """The measurement itself, smaller: it fails where two exports differ."""
    measure(tmp_path, 500, 2000, vectors=False, kill=kill)
    printed = capsys.readouterr().out
    assert printed.count("the same 2,542 records") == (5 if kill else 1)


@pytest.fixture(scope="module")
def filled(module_path: Path) -> Iterator[Served]:
    """A server of its own: what is exported is counted."""
    served = serve(module_path / "data", module_path / "log")
    try:
        Filling(served.address, 150, 720).fill()
        yield served
    finally:
        served.stop()


def lot(served: Served, *arguments: str):
    return run(served.data, *arguments, "--address", served.address)


@pytest.fixture
def exported(filled: Served, tmp_path: Path) -> Path:
    file = tmp_path / "all.lot"
    done = lot(filled, "export", str(file), "--json")
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout)["record_counts"]["EPISODE_EVENT"] == 720
    return file


def test_dry_runs_write_and_store_nothing(filled: Served, exported: Path, tmp_path: Path):
    missing = tmp_path / "none.lot"
    counted = lot(filled, "export", str(missing), "--dry-run")
    assert counted.code == 0
    assert "would be exported" in counted.stdout
    assert not missing.exists()
    checked = lot(filled, "import", str(exported), "-n", "dry", "--dry-run", "--json")
    assert checked.code == 0
    told = json.loads(checked.stdout)
    assert (told["complete"], told["imported_count"]) == (True, sum(1 for _ in contents(exported)))
    shown = lot(filled, "import", str(exported), "-n", "dry", "--dry-run").stdout
    assert f"records, including internal ones: {told['imported_count']:,} imported" in shown
    there = lot(filled, "export", "-", "-n", "dry", "--dry-run", "--json")
    assert sum(json.loads(there.stdout)["record_counts"].values()) == 0


def test_some_kinds_through_a_pipe(filled: Served, exported: Path, tmp_path: Path):
    def piped(*arguments: str, given: bytes = b"") -> bytes:
        done = subprocess.run(
            command(*arguments, "--address", filled.address),
            env=environment(filled.data),
            cwd=ROOT,
            input=given,
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )
        return done.stdout

    written = piped("export", "-", "--kind", "memory", "--kind", "decision", "--vectors")
    told = json.loads(piped("import", "-", "-n", "piped", "--json", given=written))
    assert set(told["imported_counts"]) == {"MEMORY", "DECISION"}
    file = tmp_path / "piped.lot"
    file.write_bytes(written)
    with file.open("rb") as opened:
        records = [one for message in read_messages(opened, "") for one in message.records]
    assert all(one.vectors for one in records if one.HasField("memory"))


def test_a_file_that_was_cut_off_says_so_and_what_was_imported(filled: Served, exported: Path):
    raw = exported.read_bytes()
    for name, size in (("cut", len(raw) * 2 // 3), ("end", len(raw) - 1), ("empty", 0)):
        cut = exported.with_name(f"{name}.lot")
        cut.write_bytes(raw[:size])
        done = lot(filled, "import", str(cut), "-n", name, "--json")
        assert done.code == 1
        assert "was cut off" in done.errors
        assert "importing it again is harmless" in done.errors
        told = json.loads(done.stdout)
        assert not told["complete"]
        assert (told["imported_count"] > 0) == (name != "empty")
        whole = lot(filled, "import", str(exported), "-n", name, "--json")
        assert whole.code == 0
        assert json.loads(whole.stdout)["unchanged_count"] == told["imported_count"]


def test_files_that_are_none_or_damaged_or_of_a_later_version(filled: Served, exported: Path):
    raw = bytearray(exported.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    later = exported.with_name("later.lot")
    with later.open("wb") as opened:
        write_title(opened)
        header = pb.ExportHeader(format_version=99)
        write_message(opened, pb.ExportResponse(header=header))
        write_message(opened, pb.ExportResponse(summary=pb.ExportSummary()))
    for content, told in (
        (bytes(raw), "is damaged"),
        (b"PK\x03\x04 something else\n", "is not an export of lot-grpc"),
        (b"lot-grpc export 2\n...", "has format 2; this version of lot-grpc reads format 1"),
        (later.read_bytes(), "this server supports up to format 1"),
    ):
        file = exported.with_name("bad.lot")
        file.write_bytes(content)
        done = lot(filled, "import", str(file), "-n", "bad")
        assert done.code == 1
        assert told in done.errors
    missing = lot(filled, "import", str(exported.with_name("missing.lot")))
    assert missing.code == 1
    assert "No such file" in missing.errors


def test_an_export_goes_on_with_its_part_only(filled: Served, exported: Path, tmp_path: Path):
    raw = exported.read_bytes()
    file, part = tmp_path / "again.lot", tmp_path / "again.lot.part"
    part.write_bytes(raw[: len(raw) // 2])
    other = lot(filled, "export", str(file), "--vectors")
    assert other.code == 1
    assert "remove it to start over" in other.errors
    done = lot(filled, "export", str(file))
    assert done.code == 0, done.stderr
    assert "resuming" in done.stderr
    assert not part.exists()
    assert same(exported, file) > 100


def test_conflicts_are_told_with_what_to_do(filled: Served, exported: Path):
    into = ("import", str(exported), "-n", "conflicts")
    assert lot(filled, *into).code == 0
    file = exported.with_name("other.lot")
    assert lot(filled, "export", str(file), "-n", "conflicts", "--kind", "preference").code == 0
    from lot_grpc.cli.connection import connected
    from lot_grpc.pb.lot.v1 import memory_service_pb2_grpc, preference_pb2

    with connected(filled.address) as channel:
        memory_service_pb2_grpc.MemoryServiceStub(channel).PutPreference(
            preference_pb2.PutPreferenceRequest(
                namespace="conflicts", key="theme0", value=Value(string_value="blue")
            )
        )
    again = ("import", str(file), "-n", "conflicts")
    failed = lot(filled, *again)
    assert failed.code == 1
    assert "--conflict-policy skip keeps the stored records" in failed.errors
    assert lot(filled, *again, "--conflict-policy", "sometimes").code == 2
    skipped = lot(filled, *again, "--conflict-policy", "skip", "--json")
    assert json.loads(skipped.stdout)["skipped_count"] == 1
    replaced = lot(filled, *again, "--conflict-policy", "overwrite", "--json")
    assert json.loads(replaced.stdout)["imported_counts"] == {"PREFERENCE": 1}
    back = exported.with_name("back.lot")
    assert lot(filled, "export", str(back), "-n", "conflicts", "--kind", "preference").code == 0
    assert same(file, back) == 6  # two of them, each with two former values


def test_a_file_that_goes_on_behind_its_end_is_refused(filled: Served, exported: Path):
    with exported.open("ab") as file:
        file.write(exported.read_bytes())
    joined = lot(filled, "import", str(exported), "-n", "joined")
    assert joined.code == 1
    assert "has data after the end" in joined.errors


def test_an_export_of_nothing_leaves_a_file_that_is_there(filled: Served, exported: Path):
    before = exported.read_bytes()
    nothing = lot(filled, "export", str(exported), "-n", "misspelt")
    assert nothing.code == 1
    assert "nothing to export" in nothing.errors
    assert exported.read_bytes() == before
