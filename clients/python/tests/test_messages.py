"""Plain values become messages, or are refused."""

from datetime import UTC, datetime, timedelta

import pytest
from lot_client.messages import build
from lot_client.pb.lot.v1.memory_pb2 import Memory
from lot_client.pb.lot.v1.pattern_pb2 import Pattern, PatternFilter
from lot_client.pb.lot.v1.pattern_service_pb2 import RecordOutcomeRequest, SavePatternRequest


def test_values_of_all_kinds_are_taken():
    made = build(
        SavePatternRequest,
        {
            "pattern": {
                "kind": "code",
                "complexity": "COMPLEXITY_LOW",
                "actions": [{"tool": "a", "args": {"x": [1, {"y": None}]}}],
                "labels": {"a": "b"},
                "ttl": 1.5,
            },
            "pattern_id": None,
        },
    )

    assert made.pattern.kind == Pattern(kind=2).kind
    assert made.pattern.complexity == 1
    assert made.pattern.actions[0].args["x"][0] == 1
    assert made.pattern.labels["a"] == "b"
    assert made.pattern.ttl.ToTimedelta() == timedelta(seconds=1.5)
    assert build(SavePatternRequest, {"pattern": made.pattern}).pattern == made.pattern


def test_instants_keep_their_time_zone():
    instant = datetime.fromisoformat("2026-05-01T12:00:00+02:00")
    made = build(PatternFilter, {"created_after": instant, "kinds": ["TASK", "LEARNED"]})

    assert made.created_after.ToDatetime(UTC) == instant
    assert list(made.kinds) == [1, 3]


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"titel": "x"}, TypeError, "no field 'titel'"),
        ({"kind": "RECIPE"}, ValueError, "use one of TASK, CODE, LEARNED, DISTILLED"),
        ({"tags": "http"}, TypeError, "tags must be a list"),
        ({"actions": ["click"]}, TypeError, "actions must be a dict or Action"),
        ({"expire_time": datetime(2026, 5, 1)}, ValueError, "time zone"),  # noqa: DTZ001
        ({"title": 3}, TypeError, "title"),
    ],
)
def test_what_does_not_fit_is_refused(fields: dict, error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        build(Pattern, fields)


def test_details_and_falsy_values_arrive():
    memory = build(Memory, {"project": {"path": "a/b"}, "importance": 0.0})
    request = build(RecordOutcomeRequest, {"reward": 0.0, "pattern_ids": ("a",)})

    assert memory.WhichOneof("details") == "project"
    assert memory.HasField("importance")
    assert request.HasField("reward")
