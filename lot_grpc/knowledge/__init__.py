"""The knowledge that comes with the server, and the reading of knowledge packs."""

from __future__ import annotations

from lot_grpc.knowledge.loading import built_in_packs, read_packs

__all__ = ["built_in_packs", "read_packs"]
