"""One collection of the Edge store: a shard in a folder of its own.

Opens or creates the shard, brings its schema up to the spec, and tracks what the store needs to
know: when the next record expires, how much is not flushed yet, and whether its folder still
exists.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import qdrant_edge as edge
from qdrant_edge import UpdateOperation

from lot_grpc.domain.errors import StartupError, StoreUnavailableError
from lot_grpc.ports import (
    EXPIRES_KEY,
    AnyOf,
    CollectionSpec,
    Equals,
    Micros,
    Missing,
    Not,
    Range,
    Record,
    Where,
)
from lot_grpc.storage import durable
from lot_grpc.storage.checks import require_same
from lot_grpc.storage.edge_create import NEVER_OPENED, create
from lot_grpc.storage.edge_empty import EmptyShard, creating
from lot_grpc.storage.edge_repair import mend
from lot_grpc.storage.edge_schema import (
    CONFIG_NAME,
    add_vectors,
    complete_schema,
    vectors_in,
)
from lot_grpc.storage.edge_sync import ShardSync
from lot_grpc.storage.json_path import json_path
from lot_grpc.storage.manifest import Manifest
from lot_grpc.storage.recent import RecentRecords

_FLUSH_EVERY_POINTS = 10_000
"""Bounds the replay at the next start to a quarter of a second, and how long a flush blocks the
event loop: about 25 ms, where twice as many points take 45."""

RECENT_BYTES = 56 * 2**20
"""For each collection with vectors: about 10,000 patterns of ordinary size."""

_INCOMPATIBLE = "Incompatible configs"
"""Edge's error text for a shard whose files disagree on its vectors."""


class _EdgeErrors:
    """Turns Edge's bare ``Exception`` (and a Rust panic) into ``StoreUnavailableError``.

    Its ``ValueError`` and ``TypeError`` mean a bug of ours and pass through.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None and (kind is Exception or kind.__name__ == "PanicException"):  # type: ignore[union-attr]
            raise StoreUnavailableError(
                "the embedded store failed; the cause is in the log, "
                "and a restart reopens the store from its write-ahead log"
            ) from error


EDGE_ERRORS = _EdgeErrors()


class Shard:
    """An open collection. ``raw`` is Edge's own handle; calls to it hold the GIL.

    A collection that has had no record yet has no folder; ``create`` creates its shard.
    """

    def __init__(
        self, folder: Path, spec: CollectionSpec, search_threads: int, manifest: Manifest
    ) -> None:
        self.spec = spec
        self._folder = folder
        self._search_threads = search_threads
        self._manifest = manifest
        self.recent = RecentRecords(RECENT_BYTES if spec.dense else 0)
        """Only for collections that recall reads; logs are read once."""
        self.unflushed = 0
        self._unsynced = False
        self._disk_sync = ShardSync(folder)
        self._looked = float("-inf")
        self.raw: edge.EdgeShard | EmptyShard = EmptyShard()
        self._places = _inodes(folder.parent)
        self.next_expiry: Micros | None = None
        self._filled: set[str] = set()
        self._absent: set[str] = set()
        """Indexed keys that no record has, or has had since the shard was opened."""
        if folder.exists():
            self._open()

    def create(self) -> None:
        """Create the shard unless it exists. Called before records are written."""
        if isinstance(self.raw, EmptyShard):
            self.require_there()
            with creating(self._folder):
                self._open()
            self._manifest.opened(self.spec.name, self.count())
            self._manifest.save()

    def _open(self) -> None:
        raw = _opened(self._folder, self.spec, self._search_threads)
        try:
            self._places = _inodes(
                self._folder, self._folder / "wal", *(self._folder / "segments").iterdir()
            )
            with EDGE_ERRORS:
                complete_schema(raw, self._folder, self.spec)
                indexed = raw.info().payload_schema
            self._absent = {key for key in self.spec.indexes if not indexed[json_path(key)].points}
            self.raw = raw
            self.find_next_expiry()
            self._filled = {name for name in self.spec.vector_names if self._is_filled(name)}
        except BaseException:
            self.raw = EmptyShard()
            raw.close()
            raise

    def require_there(self, *, within_seconds: float = 0) -> None:
        """Raise if its folder is no longer the one that was opened: a write would be lost.

        A check costs a fifth of a write, so its result may be reused for ``within_seconds``. Writes
        made in that time are no more at risk than those made just before the folder went away.
        """
        now = time.monotonic()
        if now - self._looked < within_seconds:
            return
        for place, inode in self._places:
            require_same(place, inode)
        self._looked = now

    def count(self) -> int:
        """Exactly how many records there are, expired ones included."""
        with EDGE_ERRORS:
            return self.raw.count(edge.CountRequest(True, None))

    def list_files(self) -> None:
        """Expect the current files at the next start."""
        self._manifest.note(self.spec.name)
        self._manifest.save()

    def extend(self, spec: CollectionSpec) -> None:
        """Add the vectors that a spec names and the shard lacks."""
        if not isinstance(self.raw, EmptyShard):
            add_vectors(self.raw, self._folder, spec)
            self._schema_changed()
        self.spec = self.spec.extended(spec)
        # An unfinished attempt may have left vectors that `note_vectors` has not seen.
        new = {name for name in spec.vector_names if name not in self._filled}
        self._filled |= {name for name in new if self._is_filled(name)}

    def drop_vectors(self, names: Sequence[str]) -> None:
        """Drop named vectors; unknown names are ignored."""
        if not isinstance(self.raw, EmptyShard):
            dense, sparse = vectors_in(self._folder)
            self._manifest.forget(self.spec.name)
            for name in names:
                if name in dense or name in sparse:
                    self.raw.update(UpdateOperation.delete_vector_name(name))
            self._schema_changed()
            self.list_files()
        self.spec = self.spec.without(names)
        self._filled.difference_update(names)

    def wrote(self, points: int, added: int) -> None:
        """Count written and added points, and flush when a crash would have too many to replay."""
        self._manifest.add(self.spec.name, added)
        self.unflushed += points
        self._unsynced = True
        if self.unflushed >= _FLUSH_EVERY_POINTS:
            self.flush()
            self.list_files()

    def deleting(self, ids: Sequence[Any]) -> UpdateOperation:
        """The operation that deletes these points, which must exist."""
        self._manifest.add(self.spec.name, -len(ids))
        return UpdateOperation.delete_points(list(ids))

    def flush(self) -> bool:
        """Flush writes to disk; return whether there were any."""
        if not self.unflushed:
            return False
        self.require_there()
        self.raw.flush()
        self.unflushed = 0
        return True

    def sync(self) -> None:
        """Make everything written so far survive a power loss."""
        if not self._unsynced:
            return
        self.require_there()
        if not self._disk_sync.sync_log():
            self.raw.flush()
            self.unflushed = 0
            self._disk_sync.sync_files()
        self._unsynced = False

    def _schema_changed(self) -> None:
        """Make the next sync flush: files of vectors were added or removed."""
        self._disk_sync = ShardSync(self._folder)
        self._unsynced = True

    def close(self) -> None:
        """Flush and close; close even if the flush fails, as on a full disk.

        If its folder is gone, it stays open until the process ends: Edge flushes by path when it
        closes, which would damage a backup restored there in the meantime.
        """
        try:
            self.require_there()
        except StoreUnavailableError:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.raw))
            raise
        try:
            self.raw.flush()
        finally:
            self.raw.close()

    def note(self, records: Sequence[Record]) -> None:
        """Take note of records about to be written: their ids, vector names, keys and expiry."""
        self.recent.forget(record.id for record in records)
        self.note_vectors(records)
        self.note_payloads(record.payload for record in records)

    def note_payloads(self, payloads: Iterable[Mapping[str, Any]]) -> None:
        """Remember the keys and the earliest expiry of payloads about to be written."""
        for payload in payloads:
            self._absent.difference_update(payload)
            expires = payload.get(EXPIRES_KEY)
            if expires is not None and (self.next_expiry is None or expires < self.next_expiry):
                self.next_expiry = expires

    def has(self, vector: str) -> bool:
        """Whether any record has, or had, this vector; if not, a search by it can be skipped."""
        return vector in self._filled

    def excludes(self, where: Where) -> bool:
        """Whether no record can meet the conditions, known without a search."""
        absent = self._absent
        return any(
            isinstance(one, Not)
            and isinstance(one.condition, Missing)
            and one.condition.key in absent
            for one in where
        )

    def needed(self, where: Where) -> Where:
        """The conditions without those that every record meets, since none has the key.

        Each condition costs a search a tenth of a millisecond at 5,000 records.
        """
        return [
            one
            for one in where
            if not (
                isinstance(one, Not)
                and isinstance(one.condition, Equals | AnyOf | Range)
                and one.condition.key in self._absent
            )
        ]

    def note_vectors(self, records: Iterable[Record]) -> None:
        """Remember the vector names of records about to be written."""
        for record in records:
            self._filled.update(record.vectors)

    def _is_filled(self, vector: str) -> bool:
        with EDGE_ERRORS:
            found, _ = self.raw.scroll(
                edge.ScrollRequest(
                    limit=1,
                    filter=edge.Filter(must=[edge.HasVectorCondition(vector)]),
                    with_payload=False,
                    with_vector=False,
                )
            )
        return bool(found)

    def expired_at(self, now: Micros) -> Micros | None:
        """``now`` if anything may have expired, else None, which spares reads the condition."""
        return now if self.next_expiry is not None and self.next_expiry <= now else None

    def find_next_expiry(self) -> None:
        """Look the earliest expiry up in the shard."""
        first, _ = self.raw.scroll(
            edge.ScrollRequest(
                limit=1,
                order_by=edge.OrderBy(EXPIRES_KEY, edge.Direction.Asc),
                with_payload=[EXPIRES_KEY],
                with_vector=False,
            )
        )
        payload = first[0].payload if first else None
        self.next_expiry = payload[EXPIRES_KEY] if payload else None


def shard_folders(folder: Path) -> list[Path]:
    """The shards below a data folder, by name."""
    found = (config.parent for config in folder.glob(f"*/{CONFIG_NAME}"))
    return sorted(shard for shard in found if not shard.name.startswith("."))


def _opened(folder: Path, spec: CollectionSpec, search_threads: int) -> edge.EdgeShard:
    never_opened = folder / NEVER_OPENED
    if not folder.exists() or never_opened.exists():
        with EDGE_ERRORS:
            create(folder, spec, search_threads)
    shard = load(folder)
    durable.remove(never_opened)  # or the next start would take its records for none
    return shard


def load(folder: Path) -> edge.EdgeShard:
    """The shard in a folder, repaired if the process died while a vector was added or dropped.

    Raises:
        StartupError: Edge cannot open it.
    """
    try:
        with EDGE_ERRORS:
            return _loaded(folder)
    except Exception as error:
        raise StartupError(
            f"the collection {folder.name!r} in {folder} cannot be opened (the log has the cause); "
            "restore the data folder from a backup, or move this folder away and start without its "
            "data: `lot-grpc serve --accept-loss`",
            path=folder,
            collection=folder.name,
        ) from error


def _loaded(folder: Path) -> edge.EdgeShard:
    try:
        return edge.EdgeShard.load(str(folder))
    except Exception as error:
        if _INCOMPATIBLE not in str(error) or not mend(folder):
            raise
    return edge.EdgeShard.load(str(folder))


def _inodes(*folders: Path) -> list[tuple[str, int]]:
    return [(str(folder), folder.stat().st_ino) for folder in folders]
