"""Receipts of a real server, over a kill and a stop."""

from __future__ import annotations

import grpc
import pytest

from lot_grpc.domain.retrieval import query_hash
from lot_grpc.pb.lot.v1 import (
    admin_service_pb2_grpc,
    learning_service_pb2_grpc,
    namespace_policy_pb2,
    outcome_pb2,
    pattern_service_pb2,
    pattern_service_pb2_grpc,
    retrieval_pb2,
)
from tests.e2e.process import PATIENCE, Served

QUERY = "log in to the zanzibar site"


def get(server: Served, retrieval_id: str) -> retrieval_pb2.Retrieval:
    request = retrieval_pb2.GetRetrievalRequest(retrieval_id=retrieval_id)
    with grpc.insecure_channel(server.address) as channel:
        stub = learning_service_pb2_grpc.LearningServiceStub(channel)
        return stub.GetRetrieval(request, timeout=PATIENCE).retrieval


def listed(server: Served) -> list[str]:
    with grpc.insecure_channel(server.address) as channel:
        stub = learning_service_pb2_grpc.LearningServiceStub(channel)
        answer = stub.ListRetrievals(retrieval_pb2.ListRetrievalsRequest(), timeout=PATIENCE)
    return [one.retrieval_id for one in answer.retrievals]


def recall(server: Served) -> str:
    with grpc.insecure_channel(server.address) as channel:
        stub = pattern_service_pb2_grpc.PatternServiceStub(channel)
        request = pattern_service_pb2.RecallPatternsRequest(query=QUERY)
        return str(stub.RecallPatterns(request, timeout=PATIENCE).retrieval_id)


def use(server: Served, retrieval_id: str) -> int:
    """Report that it worked; the number of successes so far."""
    with grpc.insecure_channel(server.address) as channel:
        stub = pattern_service_pb2_grpc.PatternServiceStub(channel)
        request = pattern_service_pb2.RecordOutcomeRequest(
            pattern_ids=["p"], retrieval_id=retrieval_id, outcome=outcome_pb2.OUTCOME_SUCCESS
        )
        answer = stub.RecordOutcome(request, timeout=PATIENCE)
    return int(answer.patterns[0].outcomes.success_count)


def prepare(server: Served, policy: namespace_policy_pb2.NamespacePolicy) -> None:
    with grpc.insecure_channel(server.address) as channel:
        patterns = pattern_service_pb2_grpc.PatternServiceStub(channel)
        request = pattern_service_pb2.SavePatternRequest(pattern_id="p")
        request.pattern.task = "log in to the site"
        patterns.SavePattern(request, timeout=PATIENCE)
        update = namespace_policy_pb2.UpdateNamespacePolicyRequest(policy=policy)
        admin_service_pb2_grpc.AdminServiceStub(channel).UpdateNamespacePolicy(
            update, timeout=PATIENCE
        )


@pytest.mark.parametrize("queries", ["TEXT", "HASH"])
def test_receipts_outlive_a_kill_and_a_stop(serve, data, queries):
    """A list writes what waits, and so does a stop; a kill loses what nobody wrote yet."""
    server = serve(data)
    value = namespace_policy_pb2.RetrievalQueries.Value(f"RETRIEVAL_QUERIES_{queries}")
    prepare(server, namespace_policy_pb2.NamespacePolicy(retrieval_queries=value))
    written = recall(server)
    assert listed(server) == [written]
    before = get(server, written)
    assert before.query == (QUERY if queries == "TEXT" else query_hash(QUERY))
    maybe_lost = recall(server)
    server.kill()
    server = serve(data)
    assert get(server, written) == before
    assert set(listed(server)) - {maybe_lost} == {written}
    assert use(server, written) == 1
    used = get(server, written)
    assert [one.outcome for one in used.items] == [outcome_pb2.OUTCOME_SUCCESS]
    last = recall(server)
    assert server.stop() == 0
    server = serve(data)
    assert get(server, written) == used
    assert [one.id for one in get(server, last).items] == ["p"]
    assert use(server, last) == 2
    assert server.stop() == 0
    stored = b"".join(one.read_bytes() for one in data.rglob("*") if one.is_file())
    assert (b"zanzibar" in stored) is (queries == "TEXT")
    assert "zanzibar" not in server.logged()
