"""Reindexing to another model while the server runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from lot_grpc.domain.counting import counted
from lot_grpc.domain.errors import (
    EmbeddingModelUnavailableError,
    ReindexOfflineOnlyError,
    ReindexRunningError,
    StartupError,
)
from lot_grpc.ports import Embedder
from lot_grpc.services.reindex.vector_rebuild import VectorRebuild, drop_stale
from lot_grpc.services.runtime import Runtime

OpenModel: TypeAlias = Callable[[str], Awaitable[Embedder]]
"""Opens a model by its name. Raises ``StartupError``."""

_PROGRESS_SECONDS = 0.5
_CATCH_UP = 64
"""At most this many records are embedded while calls are held up, at the first attempt."""


class ReindexPhase(StrEnum):
    """The phase of a reindex."""

    PREPARING = "PREPARING"
    EMBEDDING = "EMBEDDING"
    SWITCHING = "SWITCHING"
    DONE = "DONE"


@dataclass(frozen=True, slots=True)
class ReindexStep:
    """The progress of a reindex. ``resource_kind``: the current one, or empty. Times in seconds.

    ``done`` and ``total`` count records with vectors; ``remaining`` None while unknown.
    """

    phase: ReindexPhase
    resource_kind: str = ""
    done: int = 0
    total: int = 0
    elapsed: float = 0.0
    remaining: float | None = None
    detail: str = ""


async def no_other_model(model: str) -> Embedder:
    """Refuse every model."""
    raise StartupError(f"this server was started without a way to open model {model!r}")


class Reindexer:
    """Runs one reindex at a time."""

    def __init__(self, runtime: Runtime, open_model: OpenModel) -> None:
        self._runtime = runtime
        self._store = runtime.stack.model
        self._open_model = open_model
        self._running = False

    async def run(self, name: str, *, dry_run: bool = False) -> AsyncGenerator[ReindexStep, None]:
        """Embed everything with the model ``name`` and switch to it; yields the progress.

        If closed early it stops, and a later run resumes. Raises ReindexRunningError,
        ReindexOfflineOnlyError, EmbeddingModelUnavailableError, EmbeddingFailedError.
        """
        if not self._store.exclusive:
            raise ReindexOfflineOnlyError
        if self._running:
            raise ReindexRunningError
        self._running = True
        run = _Run(self._runtime)
        work = asyncio.create_task(run.work(name, self._open_model, dry_run=dry_run))
        try:
            yield run.step()
            while not work.done():
                await asyncio.wait([work], timeout=_PROGRESS_SECONDS)
                if not work.done():
                    yield run.step()
            work.result()
            yield run.step()
        finally:
            work.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await work
            self._store.rebuilding = False
            self._store.let_go()
            self._running = False


class _Run:
    """The work of one run, and its progress."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.stack.model
        self._registry = runtime.registry
        self._model = runtime.model
        self._gate = runtime.gate
        self._phase = ReindexPhase.PREPARING
        self._kind = self._detail = ""
        self._done = self._total = self._first = 0
        self._began = time.monotonic()
        self._embedding_since = 0.0

    def step(self) -> ReindexStep:
        """The current progress."""
        now = time.monotonic()
        return ReindexStep(
            self._phase,
            self._kind,
            min(self._done, self._total),
            self._total,
            now - self._began,
            self._remaining(now),
            self._detail,
        )

    def _remaining(self, now: float) -> float | None:
        made = self._done - self._first
        if self._phase is not ReindexPhase.EMBEDDING or made <= 0:
            return None
        return max(0.0, (self._total - self._done) * (now - self._embedding_since) / made)

    async def work(self, name: str, open_model: OpenModel, *, dry_run: bool) -> None:
        """Run all steps."""
        self._detail = f"opening {name}"
        try:
            target = await open_model(name)
        except StartupError as error:
            raise EmbeddingModelUnavailableError(name, error.message) from error
        try:
            await self._with(target, dry_run=dry_run)
        finally:
            if not self._model.serves(target):
                await target.close()

    async def _with(self, target: Embedder, *, dry_run: bool) -> None:
        rebuilding = VectorRebuild(self._store.inner, self._registry, target, self._store.turn)
        self._total = await rebuilding.total()
        if dry_run:
            self._phase = ReindexPhase.DONE
            self._detail = f"{counted(self._total, 'record')} to embed; nothing was changed"
            return
        if not await rebuilding.begin():
            self._phase, self._done = ReindexPhase.DONE, self._total
            self._detail = f"{target.contract.model} is already in use; nothing to do"
            return
        self._store.rebuilding = True
        self._phase = ReindexPhase.EMBEDDING
        self._detail = f"embedding with {target.contract.model}"
        self._done = self._first = self._total - await rebuilding.left()
        self._embedding_since = time.monotonic()
        await self._until_switched(rebuilding, target)
        self._store.rebuilding = False
        await drop_stale(self._store.inner, self._registry)
        contract = target.contract
        self._phase, self._kind, self._done = ReindexPhase.DONE, "", self._total
        self._detail = (
            f"{contract.model} is now in use, with {contract.dimensions} dimensions; set "
            "LOT_EMBEDDING_MODEL (and LOT_EMBEDDING_PROVIDER, LOT_EMBEDDING_PATH) to it before the "
            "next start"
        )

    async def _until_switched(self, rebuilding: VectorRebuild, target: Embedder) -> None:
        """Embed what lacks the new vectors, and switch once few enough have been added since.

        It ends however much is written: until all are embedded, no more is admitted than the
        initial number plus twice the spare; and each time that more than the bound was added
        between that and the switch, the bound is doubled.
        """
        spare = bound = _CATCH_UP
        while True:
            self._phase = ReindexPhase.EMBEDDING
            self._store.hold_back(spare)
            await rebuilding.embed_all(self._report_progress)
            self._store.let_go()  # those who wait are inside the gate
            self._phase = ReindexPhase.SWITCHING
            async with self._gate.alone():
                if await rebuilding.left() > bound:
                    spare, bound = 0, 2 * bound
                    continue
                await rebuilding.embed_all(self._report_progress)
                # Not to be stopped between the contract and what serves.
                switching = asyncio.create_task(self._switch(rebuilding, target))
                try:
                    await asyncio.shield(switching)
                finally:
                    await asyncio.wait([switching])
                return

    async def _switch(self, rebuilding: VectorRebuild, target: Embedder) -> None:
        try:
            await rebuilding.name_it()
        except Exception:
            if not await rebuilding.is_named():
                raise
        former = self._model.switch(target, rebuilding.epoch)
        await former.close()  # no call is inside the gate, so it is unused

    def _report_progress(self, collection: str, done: int) -> None:
        self._kind = self._registry.counted_as[collection]
        self._done += done
        self._store.embedded(done)
        self._total = max(self._total, self._done)
