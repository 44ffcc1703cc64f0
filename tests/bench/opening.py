"""What no start can do without: loading the model, and opening the store in a folder.

    python -m tests.bench.opening FOLDER

prints ``opened`` when it has done both. It loads what the server loads, so also the model a second
time for texts that are alone, and opens all shards that are there. Nothing is checked but that the
model's file is the one that was verified before.
"""

from __future__ import annotations

import sys
from pathlib import Path

import qdrant_edge as edge

from lot_grpc.embedding.catalog import DEFAULT_MODEL, card_of
from lot_grpc.embedding.hash_record import HashRecord, default_record
from lot_grpc.embedding.model import OnnxEncoder
from lot_grpc.embedding.model_files import locate
from lot_grpc.embedding.workers import usable_cores

if __name__ == "__main__":
    record = default_record()
    files = (
        locate(card_of(DEFAULT_MODEL), hash_of=HashRecord(record).sha256)
        if record
        else locate(card_of(DEFAULT_MODEL))
    )
    encoder = OnnxEncoder(files, threads=usable_cores())
    configs = Path(sys.argv[1]).glob("*/edge_config.json")
    shards = [edge.EdgeShard.load(str(config.parent)) for config in configs]
    print("opened", flush=True)
