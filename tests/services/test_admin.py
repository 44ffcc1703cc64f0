"""What the service says of itself."""

from __future__ import annotations

from lot_grpc.domain.errors import EmbeddingUnavailableError
from lot_grpc.ports import Embedding
from lot_grpc.testing.hashing import HashingEmbedder
from tests.services.world import open_world


class Caching(HashingEmbedder):
    """One that answers a text it knows without its model, as the real ones do."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self._known: dict[str, Embedding] = {}

    async def embed_query(self, text: str) -> Embedding:
        if text not in self._known:
            if self.away:
                raise EmbeddingUnavailableError("the endpoint is away", url="http://here")
            self._known[text] = await super().embed_query(text)
        return self._known[text]


async def test_a_model_that_went_away_is_not_called_ready_because_of_a_cache():
    embedder = Caching()
    world = await open_world(embedder=embedder)
    admin = world.services.admin
    assert [check.ok for check in await admin.ready_checks()] == [True, True, True]
    embedder.away = True
    model, store, indexing = await admin.ready_checks()
    assert (model.ok, store.ok, indexing.ok) == (False, True, True)
    assert "away" in model.detail
