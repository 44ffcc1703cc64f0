"""Erases what belongs to a subject.

An intent names the subject and the records in progress, so that a process that finds it finishes
the erasure: their retrievals can be found only by these names once the records are gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import ContentionError, NamespaceClearingError, NotFoundError
from lot_grpc.domain.ids import ResourceRef, point_id
from lot_grpc.domain.subject import Erased, mentions
from lot_grpc.domain.text_form import folded
from lot_grpc.kernel.intents import recover
from lot_grpc.ports import Equals, IdIn, Record
from lot_grpc.services.clearing.subject_records import SubjectRecords, shown_key, shown_ref
from lot_grpc.services.operations import ResourcesByKind
from lot_grpc.services.records.collections import CONTEXT_STATS, OUTCOMES, REQUESTS, RETRIEVALS
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.scanning import scan

NAMED_AT_MOST = 1000
"""How many of the erased records are named."""

_AT_ONCE = 500
_INTENT = "erasure"


class SubjectEraser:
    """Finds and erases what belongs to subjects, and finishes interrupted erasures."""

    def __init__(self, runtime: Runtime, resources: ResourcesByKind) -> None:
        self.records = SubjectRecords(runtime.store, runtime.registry)
        self._store = runtime.store
        self._time = runtime.time
        self._retrievals = runtime.retrievals
        self._resources = resources

    async def count(self, namespace: str, subject: str) -> Erased:
        """What an erasure would erase."""
        await self._retrievals.flush()
        refs = [
            ResourceRef(ResourceKind(spec.kind), record.payload[spec.id_key])
            async for spec, record in self.records.own(namespace, subject)
        ]
        shown = [shown_key(one.kind, one.id) for one in refs]
        found = [one async for one in self.records.retrievals(namespace, subject, shown)]
        texts = [one async for one in self._outcomes(namespace, subject, found)]
        refs += [ResourceRef(ResourceKind.RETRIEVAL, one.payload["retrieval_id"]) for one in found]
        counts = Counter(str(one.kind) for one in refs)
        return Erased(counts, tuple(refs[:NAMED_AT_MOST]), len(texts))

    async def erase(self, namespace: str, subject: str) -> Erased:
        """Erase all there is; what is stored meanwhile may be left.

        If it is interrupted, the rest is erased by recovery, or by the next call. Raises
        NamespaceClearingError, ContentionError.
        """
        return await self._carry_out(await self._begin(namespace, subject))

    async def finish(self, before: int) -> int:
        """Finish interrupted erasures of any process; return how many."""
        return await recover(
            self._store,
            REQUESTS,
            Equals("kind", _INTENT),
            self._carry_out,
            before=before,
            leaving=(NamespaceClearingError, ContentionError),
        )

    # --- inside -------------------------------------------------------------------------------

    async def _begin(self, namespace: str, subject: str) -> Record:
        """The intent; that of an interrupted erasure is gone on with."""
        point = point_id(namespace, _INTENT, subject)
        payload = {
            "kind": _INTENT,
            "subject": subject,
            "shown": [],
            "done": False,
            "create_time": self._time.now(),
        }
        intent = Record(point, namespace, payload)
        if await self._store.insert(REQUESTS, [intent]):
            return intent
        found = await self._store.get(REQUESTS, namespace, [point])
        return found.get(point, intent)

    async def _carry_out(self, intent: Record) -> Erased:
        counts: Counter[str] = Counter()
        named: list[ResourceRef] = []
        texts = 0
        previous: list[str] | None = None
        shown: list[str] = intent.payload["shown"]
        while shown != previous:  # the same again has expired, and is swept
            gone, changed = await self._erase_some(intent, shown)
            counts += Counter(str(one.kind) for one in gone)
            named += gone
            texts += changed
            previous, shown = shown, await self._next(intent)
        await self._store.delete(REQUESTS, intent.namespace, [IdIn((intent.id,))])
        return Erased(dict(counts), tuple(named[:NAMED_AT_MOST]), texts)

    async def _erase_some(
        self, intent: Record, shown: Sequence[str]
    ) -> tuple[list[ResourceRef], int]:
        """Erase these records, then their retrievals; say which, and how many texts of others."""
        namespace, subject = intent.namespace, intent.payload["subject"]
        refs = [shown_ref(one) for one in shown]
        gone = [ref for ref in refs if await self._delete(namespace, ref)]
        forgotten, changed = await self._forget(namespace, subject, shown)
        return gone + forgotten, changed

    async def _next(self, intent: Record) -> list[str]:
        """The next records to erase, once they are written down."""
        namespace, subject = intent.namespace, intent.payload["subject"]
        shown: list[str] = []
        async with aclosing(self.records.own(namespace, subject)) as found:
            async for spec, record in found:
                shown.append(shown_key(spec.kind, record.payload[spec.id_key]))
                if len(shown) == _AT_ONCE:
                    break
        if shown:
            await self._store.update(REQUESTS, namespace, intent.id, set={"shown": shown})
        return shown

    async def _delete(self, namespace: str, ref: ResourceRef) -> bool:
        try:
            await self._resources.of(ref.kind).delete(namespace, ref.id)
        except NotFoundError:
            return False
        return True

    async def _forget(
        self, namespace: str, subject: str, shown: Sequence[str]
    ) -> tuple[list[ResourceRef], int]:
        """Erase retrievals, and their queries elsewhere; say which, and how many outcomes."""
        await self._retrievals.flush()
        found = [one async for one in self.records.retrievals(namespace, subject, shown)]
        changed = 0
        async for outcome in self._outcomes(namespace, subject, found):
            emptied = {"query": "", "note": ""}
            changed += await self._store.update(OUTCOMES, namespace, outcome.id, set=emptied)
        async for stats in self._stats(namespace, subject, found):
            await self._store.delete(CONTEXT_STATS, namespace, [IdIn((stats.id,))])
        for start in range(0, len(found), _AT_ONCE):
            points = tuple(one.id for one in found[start : start + _AT_ONCE])
            await self._store.delete(RETRIEVALS, namespace, [IdIn(points)])
            self._retrievals.drop(points)
        kind = ResourceKind.RETRIEVAL
        return [ResourceRef(kind, one.payload["retrieval_id"]) for one in found], changed

    async def _outcomes(
        self, namespace: str, subject: str, retrievals: Sequence[Record]
    ) -> AsyncIterator[Record]:
        """The outcomes of other records that mention the subject or are of these retrievals."""
        named = {one.payload["retrieval_id"] for one in retrievals}
        is_mentioned = mentions(subject)
        keys = ("query", "note", "retrieval_id")
        async for record in scan(self._store, OUTCOMES, namespace, [], payload=keys):
            text = f"{record.payload.get('query', '')}\n{record.payload.get('note', '')}"
            if text != "\n" and (record.payload.get("retrieval_id") in named or is_mentioned(text)):
                yield record

    async def _stats(
        self, namespace: str, subject: str, retrievals: Sequence[Record]
    ) -> AsyncIterator[Record]:
        """The context stats of the queries of these retrievals, or that mention the subject."""
        queries = {folded(one.payload["query"]) for one in retrievals}
        is_mentioned = mentions(subject)
        async for record in scan(self._store, CONTEXT_STATS, namespace, [], payload=("query",)):
            query = record.payload.get("query", "")
            if folded(query) in queries or is_mentioned(query):
                yield record
