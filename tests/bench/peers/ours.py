"""lot-grpc as a subject: a real server on loopback, with its client in another process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc

import lot_grpc
from lot_grpc.evaluation.as_pattern import are_code, as_pattern
from lot_grpc.evaluation.dataset import Dataset
from lot_grpc.pb.lot.v1 import pattern_pb2, pattern_service_pb2, pattern_service_pb2_grpc
from tests.bench import processes, stores
from tests.bench.peers.inputs import EVAL, FIRST

OURS = "lot-grpc"
FLUSHED = "lot-grpc, LOT_SYNC=always"
"""Flushes each write to the disk, as some peers do; only its writes are measured."""
_BATCH = 50
_DEADLINE = 120.0


class Ours:
    """Carries out the commands of ``tests.bench.peers.worker``."""

    def __init__(
        self,
        client: processes.Client,
        address: str,
        stub: Any,
        dataset: Dataset | None,
        durable: str,
    ) -> None:
        self._durable = durable
        self._client = client
        self._address = address
        self._stub = stub
        self._dataset = dataset
        self._commands = {
            "about": self._about,
            "fill": self._fill,
            "answers": self._answers,
            "recall": self._calls("recall"),
            "store": self._calls("save"),
        }

    @classmethod
    @contextmanager
    def started(
        cls, folder: Path, log: Path, dataset: Dataset | None, *, flushed: bool
    ) -> Iterator[Ours]:
        """Start on a copy of the store that ``inputs.write`` filled."""
        store = stores.sparse_copy(folder / "ours", log.with_suffix(".store"))
        sync, durable = ("always", "power loss") if flushed else ("off", "SIGKILL")
        with ExitStack() as stack:
            server = stack.enter_context(
                processes.real_server(store, log, LOT_MAINTENANCE="off", LOT_SYNC=sync)
            )
            client = stack.enter_context(processes.client(log.with_suffix(".client")))
            channel = stack.enter_context(grpc.insecure_channel(server.address))
            stub = pattern_service_pb2_grpc.PatternServiceStub(channel)
            yield cls(client, server.address, stub, dataset, durable)

    def do(self, name: str, **arguments: Any) -> dict[str, Any]:
        done: dict[str, Any] = self._commands[name](**arguments)
        return done

    def _about(self) -> dict[str, Any]:
        return {"version": lot_grpc.__version__, "durable": self._durable, "threads": True}

    def _calls(self, kind: str) -> Any:
        def calls(first: int, count: int, clients: int, seconds: float) -> dict[str, Any]:
            del seconds  # the client always makes all calls
            return self._client.do(
                "calls",
                address=self._address,
                kind=kind,
                first=FIRST + first,
                count=count,
                clients=clients,
            )

        return calls

    def _fill(self, file: str) -> dict[str, Any]:
        """Store the data set for retrieval; the items are in the store from the start."""
        if file != EVAL or not self._dataset:
            return {}
        documents = [document for document in self._dataset.documents if not document.blank]
        code = are_code(documents)
        items = []
        for number, document in enumerate(documents):
            content = as_pattern(document, code=code)
            pattern = pattern_pb2.Pattern(
                task=content.task, title=content.title, code=content.code, language=content.language
            )
            if code:
                pattern.kind = pattern_pb2.PATTERN_KIND_CODE
            items.append(
                pattern_service_pb2.SavePatternItem(pattern=pattern, pattern_id=f"d{number}")
            )
        self._ids = [document.id for document in documents]
        for start in range(0, len(items), _BATCH):
            request = pattern_service_pb2.BatchSavePatternsRequest(
                namespace=EVAL, items=items[start : start + _BATCH]
            )
            self._stub.BatchSavePatterns(request, timeout=_DEADLINE)
        return {}

    def _answers(
        self, queries: Sequence[tuple[str, dict[str, Any]]], limit: int = 5
    ) -> dict[str, Any]:
        found = []
        for query, where in queries:
            narrowed = pattern_pb2.PatternFilter(min_success_rate=where["success_rate"])
            if where["language"]:
                narrowed.languages.append(where["language"])
            request = pattern_service_pb2.RecallPatternsRequest(
                namespace=where["tenant"], query=query, filter=narrowed, limit=limit
            )
            response = self._stub.RecallPatterns(request, timeout=_DEADLINE)
            ids = [hit.pattern.pattern_id for hit in response.hits]
            if where["tenant"] == EVAL:
                ids = [self._ids[int(one[1:])] for one in ids]
            found.append(ids)
        return {"ids": found}
