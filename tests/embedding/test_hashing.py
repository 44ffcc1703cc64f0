from __future__ import annotations

from lot_grpc.testing.hashing import HashingEmbedder


async def test_vectors_are_the_same_in_every_process():
    # Python's own hash() differs from process to process, so the value itself is pinned.
    vector = (await HashingEmbedder(8).embed_query("retry")).vector
    assert [round(value, 3) for value in vector] == [0.0, 0.485, 0.728, 0.0, 0.0, 0.0, -0.485, 0.0]


async def test_dimensions_are_as_asked():
    embedder = HashingEmbedder(16)
    assert embedder.contract.dimensions == 16
    assert len((await embedder.embed_query("some text")).vector) == 16
