"""After a compaction of all, no file has a byte of what was deleted or overwritten."""

from __future__ import annotations

import os
import random
import secrets
import signal
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lot_grpc.ports import CollectionSpec, Equals, IdIn, Index, Range, Record, SearchQuery
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.edge_maintenance import compact_folder
from tests.contract.clock import FixedClock
from tests.remains import files_with
from tests.storage.samples import sample_id

WIDE = CollectionSpec(
    "wide",
    dense={"text": 64},
    sparse=("bm25",),
    indexes={"word": Index.KEYWORD, "n": Index.INTEGER},
)
PLAIN = CollectionSpec("plain", indexes={"word": Index.KEYWORD})


def marked() -> str:
    """A text that no other has, too random to be shortened by compression."""
    return secrets.token_hex(24)


def unit(seed: int) -> list[float]:
    rng = random.Random(f"{seed}")
    values = [rng.gauss(0, 1) for _ in range(64)]
    length = sum(value * value for value in values) ** 0.5
    return [struct.unpack("f", struct.pack("f", value / length))[0] for value in values]


def record(n: int, word: str) -> Record:
    payload = {"n": n, "word": word, "body": f"a body with {word} in it, number {n}"}
    return Record(sample_id(n), "a", payload, {"text": unit(n)})


def traces(n: int, word: str) -> list[bytes]:
    """What the record is recognised by: its word, and parts of its vector."""
    floats = [struct.pack("<3f", *unit(n)[at : at + 3]) for at in range(0, 61, 12)]
    return [word.encode(), *floats]


async def opened(folder: Path) -> EdgeStore:
    store = EdgeStore(folder, FixedClock(), min_free_bytes=0)
    await store.ensure_collections([WIDE, PLAIN])
    return store


async def filled(folder: Path, word: str, *, others: int) -> EdgeStore:
    store = await opened(folder)
    for start in range(0, others, 500):
        batch = [record(n, f"other-{n}") for n in range(start, min(start + 500, others))]
        await store.put(WIDE.name, batch)
    await store.put(PLAIN.name, [Record(sample_id(n), "a", {"word": f"o{n}"}) for n in range(3)])
    await store.put(WIDE.name, [record(-1, word)])
    await store.put(PLAIN.name, [Record(sample_id(-1), "a", {"word": word})])
    return store


async def _deleted(store: EdgeStore) -> None:
    assert await store.delete(WIDE.name, "a", [Range("n", lt=0)]) == 1
    assert await store.delete(PLAIN.name, "a", [IdIn((sample_id(-1),))]) == 1


async def _replaced(store: EdgeStore) -> None:
    other = record(-1, "harmless")
    await store.put(WIDE.name, [Record(other.id, "a", other.payload, {"text": unit(-2)})])
    await store.put(PLAIN.name, [Record(sample_id(-1), "a", {"word": "harmless"})])


async def _updated(store: EdgeStore) -> None:
    """The payload alone; the vector stays, and is replaced by the next write."""
    new = {"word": "harmless", "body": "harmless"}
    assert await store.update(WIDE.name, "a", sample_id(-1), set=new)
    assert await store.update(PLAIN.name, "a", sample_id(-1), set={"word": "harmless"})
    await store.set_vectors(WIDE.name, [Record(sample_id(-1), "a", {}, {"text": unit(-2)})])


REMOVALS = {"deleted": _deleted, "replaced": _replaced, "updated": _updated}


@pytest.mark.parametrize("others", [5, 6_000], ids=["few", "indexed"])
@pytest.mark.parametrize("removal", REMOVALS)
async def test_no_byte_is_left(tmp_path: Path, removal: str, others: int) -> None:
    folder, word = tmp_path / "data", marked()
    store = await filled(folder, word, others=others)
    await store.close()
    if others > 1_000:
        list(compact_folder(folder, [WIDE.name, PLAIN.name]))  # an index to be removed from
    before = files_with(folder, traces(-1, word))
    assert {"wide", "plain"} == {one.partition("/")[0] for one in before}
    assert any(
        "chunk" in one or "matrix" in one for one in files_with(folder, traces(-1, word)[1:])
    )
    store = await opened(folder)
    await REMOVALS[removal](store)
    await store.close()
    assert files_with(folder, traces(-1, word)), "without a compaction it is still there"
    for done in compact_folder(folder):
        assert not done.skipped
    assert files_with(folder, traces(-1, word)) == []
    store = await opened(folder)
    left = others + (removal != "deleted")
    assert await store.count(WIDE.name, "a") == left
    query = SearchQuery("text", unit(3), 1, [])
    [hits] = (await store.search(WIDE.name, "a", [query])).hits
    assert list(hits) == [sample_id(3)]
    await store.close()


async def test_what_is_written_after_it_survives_a_crash(tmp_path: Path) -> None:
    """The log goes on counting where it was: Edge would ignore writes with earlier numbers."""
    folder = tmp_path / "data"
    store = await filled(folder, marked(), others=20)
    await _deleted(store)
    await store.close()
    list(compact_folder(folder))
    store = await opened(folder)
    assert await store.update(WIDE.name, "a", sample_id(3), set={"word": "after"})
    await store.put(WIDE.name, [record(4, "after"), record(99, "after")])
    _copy(folder, tmp_path / "crashed")  # nothing was flushed
    await store.close()
    for copy in (folder, tmp_path / "crashed"):
        store = await opened(copy)
        assert await store.count(WIDE.name, "a", [Equals("word", "after")]) == 3
        assert await store.count(WIDE.name, "a") == 21
        await store.close()


async def test_only_what_was_written_to_is_done_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    await (await filled(folder, marked(), others=5)).close()
    assert {one.collection: one.changed for one in compact_folder(folder)} == {
        "plain": True,
        "wide": True,
    }
    await (await opened(folder)).close()
    assert [one.changed for one in compact_folder(folder)] == [False, False]
    store = await opened(folder)
    assert await store.update(PLAIN.name, "a", sample_id(1), set={"word": "x"})
    await store.close()
    assert {one.collection: one.changed for one in compact_folder(folder)} == {
        "plain": True,
        "wide": False,
    }


def _copy(folder: Path, to: Path) -> None:
    """Copy with the holes."""
    subprocess.run(["cp", "-a", "--sparse=always", str(folder), str(to)], check=True)


@pytest.mark.parametrize("at", range(12))
async def test_it_can_be_killed_anywhere(tmp_path: Path, at: int) -> None:
    folder, word = tmp_path / "data", marked()
    store = await filled(folder, word, others=20)
    await _deleted(store)
    await store.close()
    child = os.fork()
    if not child:
        _die_at(at)
        list(compact_folder(folder))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "it died before it was done"
    store = await opened(folder)
    assert await store.count(WIDE.name, "a") == 20
    assert await store.count(WIDE.name, None) == 20, "and nothing of ours is left"
    await store.put(WIDE.name, [record(50, "after")])
    await store.close()
    list(compact_folder(folder))
    assert files_with(folder, traces(-1, word)) == []
    store = await opened(folder)
    assert await store.count(WIDE.name, "a") == 21
    await store.close()


def _die_at(number: int) -> None:
    """Kill this process at the given step: before or after each of the steps of an erasure."""
    from lot_grpc.storage import edge_erasure, edge_maintenance

    left = number

    def step() -> None:
        nonlocal left
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    def around(call: Callable[..., object]) -> Callable[..., object]:
        def stepping(*given: object, **named: object) -> object:
            step()
            result = call(*given, **named)
            step()
            return result

        return stepping

    for name in ("close_log", "touch", "log_state"):
        setattr(edge_maintenance, name, around(getattr(edge_maintenance, name)))
    edge_erasure._replace = around(edge_erasure._replace)  # type: ignore[assignment]
