"""Checks, without running the peers, that they get the same vectors and queries as lot-grpc."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lot_grpc.embedding.catalog import DEFAULT_MODEL, card_of
from lot_grpc.embedding.model import OnnxEncoder
from lot_grpc.embedding.model_files import locate
from lot_grpc.pb.lot.v1 import pattern_service_pb2
from tests.bench import data
from tests.bench.peers import inputs
from tests.bench.peers.adapters import PEERS
from tests.bench.peers.model import Model
from tests.bench.peers.ours import FLUSHED, OURS
from tests.bench.peers.table import Measured, markdown

ROOT = Path(__file__).parents[3]


@pytest.mark.model
def test_peers_get_the_same_vectors_as_lot_grpc() -> None:
    card = card_of(DEFAULT_MODEL)
    files = locate(card)
    model = Model(files.folder / files.model_file, card.query_prefix)
    ours = OnnxEncoder(files)
    for clients in (1, 2):
        model.ready_for(clients)
        for text in (data.sentence(1), "Grüße, 漢字", "word " * 700):
            assert np.dot(model.document(text), ours.encode(text)) > 0.99999
            query = ours.encode(card.query_prefix + text)
            assert np.dot(model.query(text), query) > 0.99999


def test_peers_get_the_same_queries_as_lot_grpc() -> None:
    for number in (inputs.FIRST, inputs.FIRST + 1):
        query, where = inputs._query(number)
        raw = data.recall(number, bare=False)
        ours = pattern_service_pb2.RecallPatternsRequest.FromString(raw)
        assert query == ours.query
        assert [where["language"]] == ours.filter.languages
        assert where["success_rate"] == ours.filter.min_success_rate


def test_every_peer_has_a_pinned_version_and_is_installed() -> None:
    pinned = set(re.findall(r"^(\S+)==", _text("tests/bench/peers/requirements.txt"), re.MULTILINE))
    names = re.search(r"^PEERS := ((?:.*\\\n)*.*)$", _text("Makefile"), re.MULTILINE)
    assert names
    installed = names[1].replace("\\", " ").split()
    assert pinned.issuperset(installed)
    assert {peer.package for peer in PEERS.values()} <= set(installed)


def test_the_tables_say_who_is_ahead_and_who_is_missing() -> None:
    measured = [Measured(name, "1", "SIGKILL", threads=True) for name in (OURS, "bare limit", "A")]
    for one, seconds in zip(measured, (0.004, 0.001, 0.002), strict=True):
        for key in (("recall", False), ("recall", True), ("store", False)):
            one.rounds[key].append({"times": [seconds] * 3, "seconds": 3 * seconds})
    flushed = Measured(FLUSHED, "1", "power loss", threads=True)
    flushed.rounds["store", False].append({"times": [0.09], "seconds": 0.09})
    measured[2].durable = flushed.durable
    measured.append(flushed)
    text = markdown(measured, {"B": "cannot be imported"}, _Options(), None)
    assert "Ahead of lot-grpc in recalls of one client: A (2.00 x)." in text
    assert "Ahead of lot-grpc with `LOT_SYNC=always` in writes: A (45.00 x)." in text
    assert "4.00 x the bare limit (goal missed: ≤ 2)" in text
    assert "Not measured: B, cannot be imported" in text
    assert "| **lot-grpc 1** | **250** | **4.0 ms** | **4.0 ms** | **4.00** | **250** |" in text


class _Options:
    clients = 8


def _text(name: str) -> Any:
    return (ROOT / name).read_text()
