"""Erases what belongs to a subject.

An intent names the subject and the records in progress, so that a process that finds it finishes
the erasure: their retrievals can be found only by these names once the records are gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TypeAlias

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import ContentionError, NamespaceClearingError, NotFoundError
from lot_grpc.domain.ids import ResourceRef, point_id
from lot_grpc.domain.subject import Erased, mentions
from lot_grpc.domain.text_form import folded
from lot_grpc.kernel.intents import recover
from lot_grpc.ports import AnyOf, Equals, IdIn, Record
from lot_grpc.services.clearing.subject_records import SubjectRecords, shown_key, shown_ref
from lot_grpc.services.operations import ResourcesByKind
from lot_grpc.services.records.collections import CONTEXT_STATS, OUTCOMES, REQUESTS, RETRIEVALS
from lot_grpc.services.records.resource_refs import RESOURCE_KIND, resource_of
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.scanning import scan

NAMED_AT_MOST = 1000
"""How many of the erased records are named."""

_AT_ONCE = 500
_INTENT = "erasure"
_TEXTS = ("query", "note")
_READ = (*_TEXTS, RESOURCE_KIND, "resource_id")

About: TypeAlias = Callable[[str], bool]


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
        found = await self.records.showing(namespace, shown)
        found |= await self.records.mentioning(namespace, subject)
        retrieval_ids = [one.payload["retrieval_id"] for one in found.values()]
        about = mentions(subject)
        outcomes = self._outcomes(namespace, retrieval_ids, about)
        own = {*refs}
        texts = {one.id async for one in outcomes if resource_of(one.payload) not in own}
        refs += [ResourceRef(ResourceKind.RETRIEVAL, one) for one in retrieval_ids]
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
        """The intent; that of an interrupted erasure is resumed."""
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
        namespace, subject = intent.namespace, intent.payload["subject"]
        gone: list[ResourceRef] = []
        texts = 0
        previous: list[str] = []
        shown = intent.payload["shown"] or await self._next(intent)
        await self._retrievals.flush()
        while shown != previous:  # the same again has expired, and is swept
            refs = [shown_ref(one) for one in shown]
            gone += [ref for ref in refs if await self._delete(namespace, ref)]
            await self._retrievals.flush()
            forgotten, changed = await self._forget(
                namespace, await self.records.showing(namespace, shown)
            )
            gone += forgotten
            texts += changed
            previous, shown = shown, await self._next(intent)
        forgotten, changed = await self._forget(
            namespace, await self.records.mentioning(namespace, subject), mentions(subject)
        )
        gone += forgotten
        await self._store.delete(REQUESTS, namespace, [IdIn((intent.id,))])
        counts = Counter(str(one.kind) for one in gone)
        return Erased(counts, tuple(gone[:NAMED_AT_MOST]), texts + changed)

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
        self, namespace: str, found: Mapping[str, Record], about: About | None = None
    ) -> tuple[list[ResourceRef], int]:
        """Erase retrievals, and their queries elsewhere; say which, and of how many outcomes.

        ``about``: also other texts of which it is true.
        """
        retrievals = list(found.values())
        retrieval_ids = [one.payload["retrieval_id"] for one in retrievals]
        changed = 0
        async for outcome in self._outcomes(namespace, retrieval_ids, about):
            emptied = {"query": "", "note": ""}
            changed += await self._store.update(OUTCOMES, namespace, outcome.id, set=emptied)
        queries = {folded(one.payload["query"]) for one in retrievals} - {""}
        if queries or about:
            stats = scan(self._store, CONTEXT_STATS, namespace, [], payload=("query",))
            async for one in stats:
                query = one.payload.get("query", "")
                if folded(query) in queries or (about is not None and about(query)):
                    await self._store.delete(CONTEXT_STATS, namespace, [IdIn((one.id,))])
        for start in range(0, len(retrievals), _AT_ONCE):
            points = tuple(one.id for one in retrievals[start : start + _AT_ONCE])
            await self._store.delete(RETRIEVALS, namespace, [IdIn(points)])
            self._retrievals.drop(points)
        return [ResourceRef(ResourceKind.RETRIEVAL, one) for one in retrieval_ids], changed

    async def _outcomes(
        self, namespace: str, retrieval_ids: Sequence[str], about: About | None
    ) -> AsyncIterator[Record]:
        """Outcomes with a text that are of these retrievals, or for which ``about`` is true."""
        for start in range(0, len(retrieval_ids), _AT_ONCE):
            theirs = [AnyOf("retrieval_id", tuple(retrieval_ids[start : start + _AT_ONCE]))]
            async for record in scan(self._store, OUTCOMES, namespace, theirs, payload=_READ):
                if _text_of(record):
                    yield record
        if about is not None:
            async for record in scan(self._store, OUTCOMES, namespace, [], payload=_READ):
                if about(_text_of(record)):
                    yield record


def _text_of(outcome: Record) -> str:
    return "\n".join(filter(None, (outcome.payload.get(key) for key in _TEXTS)))
