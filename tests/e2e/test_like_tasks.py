"""What is learned from like tasks, with the real model on a real server."""

from __future__ import annotations

from lot_grpc.pb.lot.v1 import (
    admin_service_pb2,
    admin_service_pb2_grpc,
    episode_pb2,
    episode_service_pb2,
    learning_service_pb2_grpc,
    outcome_pb2,
    pattern_pb2,
    pattern_service_pb2,
    recommendation_pb2,
    task_context_pb2,
)
from tests.e2e.process import PATIENCE
from tests.e2e.test_live_commands import Calls

SUCCEEDED, FAILED = episode_pb2.EPISODE_STATUS_SUCCEEDED, episode_pb2.EPISODE_STATUS_FAILED
TASK = "Implement GitHub OAuth login"
PROVIDERS = (
    "Google", "GitLab", "Microsoft", "Okta", "Facebook", "Slack", "Auth0", "Bitbucket", "Twitter"
)  # fmt: skip


def record(calls: Calls, episode_id: str, task: str, status=SUCCEEDED, **fields) -> None:
    request = episode_service_pb2.RecordEpisodeRequest(
        namespace=calls.namespace,
        episode_id=episode_id,
        episode=episode_pb2.Episode(task=task, status=status, **fields),
    )
    calls.episodes.RecordEpisode(request, timeout=PATIENCE)


def test_nine_like_tasks_that_went_well_are_recommended_from_a_text_alone(running):
    calls = Calls(running.address, "nine-like-tasks")
    for name in PROVIDERS:
        approach = "incremental" if name > "G" else ""
        record(calls, name, f"Implement OAuth2 login with {name}", approach=approach)
    record(calls, "bad", "Implement OAuth2 login with Apple", FAILED)
    record(calls, "far", "Water the plants in the garden", approach="hose")
    learning = learning_service_pb2_grpc.LearningServiceStub(calls.channel)
    for category in ("", "auth"):
        advised = learning.GetRecommendations(
            recommendation_pb2.GetRecommendationsRequest(
                namespace=calls.namespace, task=TASK, category=category
            ),
            timeout=PATIENCE,
        ).recommendations
        assert (advised.similar_count, advised.approach) == (9, "incremental")
        assert (advised.succeeded_count, advised.compared_count) == (9, 10)
        assert advised.sentences[0] == (
            "9 of 10 similar tasks succeeded (90%). Consider following similar approaches."
        )
    context = task_context_pb2.GetTaskContextRequest(namespace=calls.namespace, task=TASK)
    text = calls.memories.GetTaskContext(context, timeout=PATIENCE).prompt_text
    assert advised.sentences[0] in text
    context.task = "Bake a cake for the birthday party"
    told = calls.memories.GetTaskContext(context, timeout=PATIENCE)
    assert told.recommendations.similar_count == 0
    assert "## Recommended" not in told.prompt_text


SUMMARIES = {
    "jwt": ("Implemented JWT authentication with Redis", "Implement OAuth2 authentication"),
    "csv": ("Import of the customer list now skips broken rows", "load clients from a CSV file"),
    "dns": ("Moved the records of example.org to the new name servers", "migrate DNS of a domain"),
    "pdf": ("Invoices are rendered as PDF and mailed to the customer", "send bills by e-mail"),
}
"""What was done, and what is asked later, in other words."""


def test_episodes_are_found_by_what_their_summaries_say(running):
    calls = Calls(running.address, "summaries")
    for name, (summary, _) in SUMMARIES.items():
        record(calls, f"bare-{name}", "", summary=summary)
        record(calls, f"ticket-{name}", f"Work on ticket {name}", summary=summary)
    for name in ("a", "b", "c"):
        record(calls, name, f"Work on ticket {name}")
    for name, (_, asked) in SUMMARIES.items():
        request = episode_service_pb2.RecallEpisodesRequest(
            namespace=calls.namespace, query=asked, limit=2
        )
        hits = calls.episodes.RecallEpisodes(request, timeout=PATIENCE).hits
        assert {hit.episode.episode_id for hit in hits} == {f"bare-{name}", f"ticket-{name}"}, asked


def test_an_opposite_is_near_and_another_task(running):
    calls = Calls(running.address, "opposites")
    tasks = {
        "opposite": "Disable two-factor authentication for all users",
        "paraphrase": "Switch on 2FA for every user",
    }
    for name, task in tasks.items():
        request = pattern_service_pb2.SavePatternRequest(
            namespace=calls.namespace, pattern=pattern_pb2.Pattern(task=task), pattern_id=name
        )
        calls.patterns.SavePattern(request, timeout=PATIENCE)
    recall = pattern_service_pb2.RecallPatternsRequest(
        namespace=calls.namespace, query="Enable two-factor authentication for all users"
    )
    found = calls.patterns.RecallPatterns(recall, timeout=PATIENCE).hits
    near = {hit.pattern.pattern_id: hit for hit in found}
    assert near["opposite"].similarity > 0.8
    assert near["opposite"].match_probability < 0.2
    assert near["paraphrase"].match_probability > 0.5


def test_a_context_on_seeded_knowledge_holds_what_is_for_the_task(running):
    calls = Calls(running.address, "seeded-context")
    admin = admin_service_pb2_grpc.AdminServiceStub(calls.channel)
    seed = admin_service_pb2.SeedKnowledgeRequest(namespace=calls.namespace)
    admin.SeedKnowledge(seed, timeout=PATIENCE)
    request = task_context_pb2.GetTaskContextRequest(
        namespace=calls.namespace,
        task="Fix the failing login test: ModuleNotFoundError: No module named 'jwt'",
    )
    near = calls.memories.GetTaskContext(request, timeout=PATIENCE)
    ids = [hit.error_solution.error_solution_id for hit in near.error_solutions]
    assert ids == ["seed:common_errors:module_not_found.python"]
    assert "```go" not in near.prompt_text
    languages = {hit.pattern.language for hit in near.patterns}
    languages |= {hit.memory.language for hit in near.memories}
    assert languages <= {"python", ""}
    [notice] = near.notices
    assert notice.code == outcome_pb2.NOTICE_CODE_UNLIKELY_OMITTED
    request.min_similarity = 0
    nearest = calls.memories.GetTaskContext(request, timeout=PATIENCE)
    assert len(nearest.error_solutions) == 3
    assert near.prompt_token_count < nearest.prompt_token_count / 3
