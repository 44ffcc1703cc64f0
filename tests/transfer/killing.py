"""Kills either end of an export and of an import, half-way, and goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import grpc

from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from tests.e2e.forked import Forked
from tests.e2e.process import PATIENCE, Served, serve, wait_for
from tests.transfer.measure import begun, moved, same, serving

_PATIENT = ("--timeout", "120")


def kill_exports(folder: Path, source: Served, whole: Path, options: Sequence[str]) -> None:
    """The client, then the server: each time the file comes to be the one without a death."""
    for victim in ("client", "server"):
        file = folder / f"export-without-{victim}.lot"
        part = Path(f"{file}.part")
        half = whole.stat().st_size // 2
        process = begun(source, "export", str(file), *options, *_PATIENT)
        _when(partial(_reaches, part, half), process)
        if victim == "client":
            process.kill()
            process.communicate(PATIENCE)
            assert part.exists()
            moved(source, "export", str(file), *options)
        else:
            _restarted(folder, source)
            ended_well(process)
        print(f"export without its {victim}: the same {same(whole, file):,} records", flush=True)
        assert not part.exists()


def kill_imports(folder: Path, whole: Path, options: Sequence[str]) -> None:
    """The client, then the server: each time the store comes to hold all."""
    for victim in ("client", "server"):
        with serving(folder, f"target-without-{victim}") as target:
            process = begun(target, "import", str(whole), *_PATIENT)
            total = sum(_counts(target, whole).values())
            _when(partial(_has_half, target, total), process)
            if victim == "client":
                process.kill()
                process.communicate(PATIENCE)
                moved(target, "import", str(whole))
            else:
                _restarted(folder, target)
                ended_well(process)
            again = folder / f"import-without-{victim}.lot"
            moved(target, "export", str(again), *options)
            print(
                f"import without its {victim}: the same {same(whole, again):,} records", flush=True
            )


def ended_well(process: Forked) -> dict[str, object]:
    """What a command said that was told to go on."""
    stdout, stderr = process.communicate(1200)
    assert process.returncode == 0, stdout + stderr
    told: dict[str, object] = json.loads(stdout)
    return told


def _when(condition: Callable[[], bool], process: Forked) -> None:
    wait_for(lambda: condition() or process.poll() is not None, 1200)
    assert process.poll() is None, f"it had ended before: {process.communicate(PATIENCE)}"


def _reaches(file: Path, size: int) -> bool:
    return file.exists() and file.stat().st_size >= size


def _has_half(served: Served, total: int) -> bool:
    return _there(served) * 2 >= total


def _restarted(folder: Path, served: Served) -> None:
    """Kill a server and start it again where it was."""
    served.kill()
    settings = {"LOT_ADDRESS": served.address, "LOT_MAINTENANCE": "off"}
    again = serve(served.data, folder / "again.log", settings)
    served.process, served.lines, served.log = again.process, again.lines, again.log


def _counts(served: Served, whole: Path) -> dict[str, int]:
    from lot_grpc.cli.transfer_file import count_records, read_messages

    counts: dict[str, int] = {}
    with whole.open("rb") as file:
        for message in read_messages(file, str(whole)):
            count_records(message, counts)
    return counts


def _there(served: Served) -> int:
    """How many things a server has."""
    with grpc.insecure_channel(served.address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        stub = admin_service_pb2_grpc.AdminServiceStub(channel)
        messages = list(stub.Export(pb.ExportRequest(dry_run=True)))
    return sum(messages[-1].summary.record_counts.values())
