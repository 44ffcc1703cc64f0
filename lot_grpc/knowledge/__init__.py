"""The knowledge that comes with the server, and how packs of it are read."""

from __future__ import annotations

from lot_grpc.knowledge.loading import built_in_packs, read_packs

__all__ = ["built_in_packs", "read_packs"]
