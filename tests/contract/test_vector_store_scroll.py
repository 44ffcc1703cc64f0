"""What every store promises of a scroll that continues."""

from __future__ import annotations

import pytest

from lot_grpc.ports import IdIn, Order, Record, VectorStore
from tests.contract.comparing import assert_same_records
from tests.contract.records import ALL, fill


@pytest.mark.category("scroll")
async def test_a_scroll_by_id_pages_through_everything_once(
    store: VectorStore, oracle: VectorStore
) -> None:
    await fill(store, oracle)
    for namespace in ("a", None):
        want = await oracle.scroll("things", namespace, (), limit=ALL)
        for limit in (1, 37, ALL):
            got: list[Record] = []
            while page := await store.scroll(
                "things", namespace, (), limit=limit, after=got[-1].id if got else ""
            ):
                got += page
            assert_same_records(got, want, (namespace, limit))
    gone = (await store.scroll("things", "a", (), limit=9))[8].id
    rest = await oracle.scroll("things", "a", (), limit=ALL, after=gone)
    await store.delete("things", "a", [IdIn((gone,))])
    assert_same_records(await store.scroll("things", "a", (), limit=ALL, after=gone), rest, gone)
    with pytest.raises(ValueError, match="continues by a condition"):
        await store.scroll("things", "a", (), limit=9, after=gone, order=Order("n"))
