"""A store from which something is missing: all of its records are there, or it is not opened."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.domain.errors import LotError, StartupError, StoreUnavailableError
from lot_grpc.ports import CollectionSpec, Equals, IdIn, Index, Record, SearchQuery, SparseVector
from lot_grpc.storage.edge import _LOOK_SECONDS, EdgeStore
from lot_grpc.storage.edge_maintenance import compact_folder
from lot_grpc.storage.manifest import COUNTS_NAME, FILES_NAME, Manifest
from tests.contract.clock import FixedClock
from tests.contract.generated import uid

SPEC = CollectionSpec(
    "things",
    dense={"text": 4},
    sparse=("bm25",),
    indexes={"n": Index.INTEGER, "kind": Index.KEYWORD},
)
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # from 3.12 on

COUNT = 60
GONE = (3, COUNT - 5)
SEED = int(os.environ.get("LOT_TEST_DAMAGE_SEED", random.randrange(2**32)))
SAMPLE = 8


def thing(n: int) -> Record:
    payload = {"n": n, "kind": f"kind-{n % 5}"}
    terms = SparseVector([n % 7, 100 + n], [1.0, 2.0])
    return Record(uid(n), "a", payload, {"text": [math.cos(n), math.sin(n), 1, 0], "bm25": terms})


async def opened(folder: Path, *, accept_loss: bool = False) -> EdgeStore:
    store = EdgeStore(folder, FixedClock(), min_free_bytes=0, accept_loss=accept_loss)
    try:
        await store.ensure_collections([SPEC])
    except BaseException:
        await store.close()
        raise
    return store


async def fill(folder: Path) -> EdgeStore:
    """A half is flushed, a half is only in the log, some were deleted."""
    store = await opened(folder)
    await store.insert("things", [thing(n) for n in range(COUNT // 2)])
    await store.flush()
    await store.put("things", [thing(n) for n in range(COUNT // 4, COUNT)])
    await store.delete("things", "a", [IdIn(tuple(map(uid, GONE)))])
    return store


async def picture(folder: Path, *, accept_loss: bool = False) -> dict[str, Any]:
    """All that can be read of it."""
    store = await opened(folder, accept_loss=accept_loss)
    try:
        records = await store.scroll("things", "a", (), limit=100_000, vectors=True)
        queries = [
            SearchQuery("text", [1, 0, 0, 0], 100_000),
            SearchQuery("bm25", SparseVector([1], [1.0]), 100_000),
        ]
        return {
            "records": [
                (one.id, one.payload, [round(x, 4) for x in one.vectors["text"]])  # type: ignore[union-attr]
                for one in records
            ],
            "terms": sum("bm25" in one.vectors for one in records),
            "kinds": await store.count("things", "a", [Equals("kind", "kind-1")]),
            "found": [sorted(legs) for legs in (await store.search("things", "a", queries)).hits],
        }
    finally:
        await store.close()


def in_child(work: Callable[[], Any]) -> Any:
    """What it returned, or the sentence it failed with; damaged files may kill the process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            answer = {"ok": asyncio.run(work())}
        except LotError as error:
            answer = {"refused": error.message, "startup": isinstance(error, StartupError)}
        except BaseException as error:
            answer = {"bug": f"{type(error).__name__}: {error}"}
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        raw = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(raw) if raw else {"bug": f"status {status}"}


async def _closed(folder: Path) -> None:
    await (await fill(folder)).close()


async def _killed(folder: Path) -> None:
    await fill(folder)
    os.kill(os.getpid(), signal.SIGKILL)


async def _compacted(folder: Path) -> None:
    await _closed(folder)
    assert [done.changed for done in compact_folder(folder)]
    await (await opened(folder)).close()


STATES = {"closed": _closed, "killed": _killed, "compacted": _compacted}


@pytest.fixture(scope="module", params=STATES)
def left(request: pytest.FixtureRequest, module_path: Path) -> Path:
    """A folder as a process left it."""
    folder: Path = module_path / request.param / "data"
    folder.parent.mkdir()
    in_child(lambda: STATES[request.param](folder))
    return folder


def copy(left: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    subprocess.run(["cp", "-r", "--sparse=always", left, to], check=True)
    return to


def delete(file: Path) -> None:
    file.unlink()


def halve(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def zero(file: Path) -> None:
    size = file.stat().st_size
    os.truncate(file, 0)
    os.truncate(file, size)


def cases(left: Path) -> list[tuple[str, Callable[[Path], None]]]:
    files = sorted(file.relative_to(left) for file in left.rglob("*") if file.is_file())
    return [(str(file), harm) for file in files for harm in (delete, halve, zero)]


def walk(left: Path, work: Path, chosen: list[tuple[str, Callable[[Path], None]]]) -> None:
    whole = in_child(lambda: picture(copy(left, work)))
    assert len(whole["ok"]["records"]) == COUNT - len(GONE)
    refused = 0
    for file, harm in chosen:
        copy(left, work)
        harm(work / file)
        met = in_child(lambda: picture(work))
        if met != whole:
            refused += 1
            assert met.get("startup"), (file, harm.__name__, met)
            assert "--accept-loss" in met["refused"], (file, harm.__name__, met)
    print(f"{len(chosen)} damages, {refused} refused")


def test_any_damage_to_a_file_loses_nothing_or_refuses_the_start(
    left: Path, tmp_path: Path
) -> None:
    print(f"LOT_TEST_DAMAGE_SEED={SEED}")
    dice = random.Random(SEED)
    indexes = [case for case in cases(left) if "payload_index" in case[0]]
    rest = [case for case in cases(left) if "payload_index" not in case[0]]
    walk(left, tmp_path / "work", dice.sample(rest, SAMPLE) + dice.sample(indexes, 2))


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_every_damage_to_every_file_loses_nothing_or_refuses_the_start(
    left: Path, tmp_path: Path
) -> None:
    walk(left, tmp_path / "work", cases(left))


@pytest.mark.parametrize(
    ("gone", "named"),
    [
        ("things", "collection 'things' with 58 records is missing"),
        ("things/segments/*", "with 58 records lacks segments/"),
        ("things/segments/*/*tracker.versions", "tracker.versions"),
        ("things/wal", "lacks wal/open-1"),
        (f"{FILES_NAME} things", "collection 'things' with 58 records is missing"),
        (f"{FILES_NAME} things/segments/*", "has 0 of 58 records"),
    ],
)
def test_what_is_gone_is_named_and_accepted_once(tmp_path: Path, gone: str, named: str) -> None:
    folder = tmp_path / "data"
    in_child(lambda: _closed(folder))
    for pattern in gone.split():
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for _ in range(2):  # refused again, until it is accepted
        met = in_child(lambda: picture(folder))
        assert met["startup"], met
        assert named in met["refused"]
        assert str(folder) in met["refused"]
        assert "lot-grpc import" in met["refused"]
    accepted = in_child(lambda: picture(folder, accept_loss=True))
    assert "ok" in accepted, accepted
    assert in_child(lambda: picture(folder)) == accepted


# --- no healthy store is refused ------------------------------------------------------------------

ROUNDS = 6
NEW = CollectionSpec("things", dense={"text-1": 3})


async def _write_at_random(
    folder: Path, dice: random.Random, acknowledge: Callable[[str], None]
) -> None:
    clock = FixedClock()
    store = EdgeStore(folder, clock, min_free_bytes=0)
    await store.ensure_collections([SPEC])
    held = {one.payload["n"] for one in await store.scroll("things", "a", (), limit=10**6)}
    free = max(held, default=0) + 1
    acknowledge("open")
    while True:
        match dice.randrange(12):
            case 0 | 1 | 2 | 3:
                numbers = range(free, free + dice.choice([1, 1, 1, 30]))
                await store.insert("things", [thing(n) for n in numbers])
                free = numbers.stop
                held.update(numbers)
                acknowledge(f"add {numbers.start} {numbers.stop}")
            case 4 | 5 if held:
                old = dice.sample(sorted(held), min(len(held), 5))
                await store.put("things", [thing(n) for n in (*old, free)])
                held.add(free)
                free += 1
                acknowledge(f"add {free - 1} {free}")
            case 6 | 7 | 8 if held:
                n = dice.choice(sorted(held))
                acknowledge(f"doubt {n}")
                await store.delete("things", "a", [IdIn((uid(n),))])
                held.discard(n)
                acknowledge(f"gone {n}")
            case 9 if held:
                n = dice.choice(sorted(held))
                await store.update("things", "a", uid(n), set={"kind": "other"})
            case 10:
                await store.flush()
            case 11 if dice.random() < 0.2:
                await store.extend(NEW)
                await store.drop_vectors("things", ["text-1"])


def _killed_at_random(folder: Path, dice: random.Random) -> Iterator[str]:
    """What it acknowledged before it died."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        own = random.Random(dice.random())

        def acknowledge(line: str) -> None:
            os.write(write, f"{line}\n".encode())

        asyncio.run(_write_at_random(folder, own, acknowledge))
    os.close(write)
    with os.fdopen(read) as pipe:
        assert pipe.readline() == "open\n"
        dice.random()  # as the child
        for _ in range(dice.randrange(40)):
            yield pipe.readline().strip()
        os.kill(child, signal.SIGKILL)
        yield from (line.strip() for line in pipe if line.endswith("\n"))
    os.waitpid(child, 0)


def kill_and_look(folder: Path, rounds: int, seed: int) -> None:
    print(f"LOT_TEST_DAMAGE_SEED={seed}")
    dice = random.Random(seed)
    held: set[int] = set()
    doubt: set[int] = set()
    for _ in range(rounds):
        for line in _killed_at_random(folder, dice):
            what, *numbers = line.split() or [""]
            if what == "add":
                held.update(range(int(numbers[0]), int(numbers[1])))
            elif what == "doubt":
                doubt.add(int(numbers[0]))
            elif what == "gone":
                held.discard(int(numbers[0]))
        met = in_child(lambda: picture(folder))
        assert "ok" in met, met
        there = {record[1]["n"] for record in met["ok"]["records"]}
        assert held - doubt - there == set()
        held, doubt = there, set()


def test_a_store_that_is_killed_while_it_saves_and_deletes_is_opened(tmp_path: Path) -> None:
    kill_and_look(tmp_path / "data", ROUNDS, SEED)


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(10))
def test_a_store_that_is_killed_many_times_is_opened(tmp_path: Path, seed: int) -> None:
    kill_and_look(tmp_path / "data", 20, seed)


@pytest.mark.exhaustive
async def test_a_log_that_moved_on_to_other_files_is_not_missed(tmp_path: Path) -> None:
    folder = tmp_path / "data"

    async def write() -> None:
        store = await opened(folder)
        large = "x" * 200_000
        for n in range(500):
            await store.insert("things", [Record(uid(n), "a", {"n": n, "large": large})])
        os.kill(os.getpid(), signal.SIGKILL)

    in_child(write)
    log = [file.name for file in (folder / "things/wal").iterdir()]
    assert not {"open-1", "open-2"} <= set(log), log
    store = await opened(folder)
    assert await store.count("things", "a") == 500
    await store.close()


async def test_after_a_restart_of_the_machine_counts_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loss of power may keep the count and lose the write before it."""
    folder = tmp_path / "data"
    await (await fill(folder)).close()
    manifest = Manifest(folder)
    manifest.add("things", 5)
    manifest.close()
    with pytest.raises(StartupError, match="has 58 of 63 records"):
        await opened(folder)
    boot = tmp_path / "boot_id"
    boot.write_text("another\n")
    monkeypatch.setattr("lot_grpc.storage.manifest._BOOT", boot)
    await (await opened(folder)).close()
    assert "58 another" in " ".join((folder / COUNTS_NAME).read_text().split())


async def test_nothing_is_compacted_while_something_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    await (await fill(folder)).close()
    [versions] = folder.glob("things/segments/*/*tracker.versions")
    halve(versions)
    with pytest.raises(StartupError, match="has lost data: collection 'things'"):
        list(compact_folder(folder))


# --- the folder goes away while it is open --------------------------------------------------------


def _moved(folder: Path) -> None:
    folder.rename(folder.with_name("aside"))


def _replaced(folder: Path) -> None:
    _moved(folder)
    shutil.copytree(folder.with_name("aside"), folder)


def _deleted(folder: Path) -> None:
    shutil.rmtree(folder)


def _emptied(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _without_collection(folder: Path) -> None:
    shutil.rmtree(folder / "things")


def _without_segments(folder: Path) -> None:
    _emptied(folder / "things/segments")


def _without_log(folder: Path) -> None:
    shutil.rmtree(folder / "things/wal")


@pytest.mark.parametrize(
    "harm",
    [_moved, _replaced, _deleted, _emptied, _without_collection, _without_segments, _without_log],
)
async def test_no_write_is_acknowledged_into_a_folder_that_is_gone(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    folder = tmp_path / "data"
    store = await fill(folder)
    await store.check()
    harm(folder)
    await asyncio.sleep(_LOOK_SECONDS)
    for write in (
        store.insert("things", [thing(1000)]),
        store.put("things", [thing(1000)]),
        store.replace("things", thing(1), ()),
        store.update("things", "a", uid(1), set={"n": 1}),
        store.set_vectors("things", [thing(1)]),
        store.delete("things", "a", [IdIn((uid(1),))]),
        store.extend(NEW),
        store.drop_vectors("things", ["bm25"]),
        store.check(),
    ):
        with pytest.raises(
            StoreUnavailableError, match="so writes are rejected; move the original"
        ):
            await write
    assert await store.count("things", "a") == COUNT - len(GONE), "reads go on"
    here = set(folder.iterdir()) if folder.exists() else None
    with pytest.raises(StoreUnavailableError):
        await store.close()
    assert (set(folder.iterdir()) if folder.exists() else None) == here
    if harm is _replaced:
        met = in_child(lambda: picture(folder))
        assert len(met["ok"]["records"]) == COUNT - len(GONE), "stopping did no harm either"
    elif harm not in (_deleted, _emptied, _moved):
        assert in_child(lambda: picture(folder))["startup"]


async def test_a_folder_that_is_put_back_takes_writes_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    store = await fill(folder)
    _moved(folder)
    await asyncio.sleep(_LOOK_SECONDS)
    with pytest.raises(StoreUnavailableError):
        await store.insert("things", [thing(1000)])
    (tmp_path / "aside").rename(folder)
    assert await store.insert("things", [thing(1000)]) == {uid(1000)}
    await store.close()
    assert len(in_child(lambda: picture(folder))["ok"]["records"]) == COUNT - len(GONE) + 1
