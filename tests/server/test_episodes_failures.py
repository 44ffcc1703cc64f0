"""AnalyzeFailures on the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.server.episodes import FAILED, SUCCEEDED

FIRST = datetime(2024, 1, 1, tzinfo=UTC)


async def recorded(lot, name, days=0, *, events=(), **episode):
    end = FIRST + timedelta(days=days)
    episode = {"task": "Deploy the site", "status": FAILED, "end_time": end, **episode}
    await lot.episodes.RecordEpisode(
        episode={"start_time": end, **episode}, episode_id=name, events=events
    )


async def test_failures_of_one_error_with_other_names_are_one_group(lot):
    steps = [
        {"event_type": "tool_call", "data": {"tool": "bash"}},
        {"event_type": "tool_error", "data": {"error": "seen"}},
    ]
    for day, file in enumerate(("/a/b.txt", "/c.txt", "/d/e/f.txt")):
        error = {"type": "FileNotFoundError", "message": f"No such file or directory: '{file}'"}
        await recorded(lot, f"e{day}", day, error=error, events=steps, tools_used=["git"])
    await recorded(lot, "silent")
    await recorded(lot, "good", 9, status=SUCCEEDED, approach="canary")
    answer = await lot.episodes.AnalyzeFailures()
    assert (answer.failed_count, answer.analyzed_count, answer.group_count) == (4, 4, 2)
    assert (answer.signature_count, answer.compared_signature_count) == (1, 1)
    group, silent = answer.groups
    assert group.signature == "FileNotFoundError: No such file or directory: '<name>'"
    assert (group.count, group.share, group.trend) == (3, 0.75, 0.0)
    assert list(group.signatures) == [group.signature]
    assert group.signature_count == 1
    assert list(group.example_episode_ids) == ["e2", "e1", "e0"]
    assert group.example_error.type == "FileNotFoundError"
    assert group.example_error.message == "No such file or directory: '/d/e/f.txt'"
    assert group.first_time.ToDatetime(UTC) == FIRST
    assert group.last_time.ToDatetime(UTC) == FIRST + timedelta(days=2)
    assert (group.failed_after_event_type, group.failed_after_tool) == ("tool_call", "bash")
    assert group.failed_after_share == 1.0
    assert list(group.tools) == ["bash", "git"]
    assert (group.last_good_episode_id, group.last_good_approach) == ("good", "canary")
    assert group.last_good_similarity == pytest.approx(1)
    assert (silent.signature, silent.count) == ("", 1)
    assert not silent.HasField("example_error")
    assert not silent.signatures
    assert silent.failed_after_event_type == ""


async def test_a_share_that_grows_has_a_trend_per_day(lot):
    for day in range(10):
        word = "walnut" if day < 5 else "sunset"
        await recorded(lot, f"e{day}", day, error={"type": word.title(), "message": word})
    answer = await lot.episodes.AnalyzeFailures(similarity=1)  # by signature alone
    trends = {group.example_error.message: group for group in answer.groups}
    # Five days of 0 and five of 1 over 0 .. 9: the sums of squares are 82.5 and 12.5.
    assert trends["sunset"].trend == pytest.approx(12.5 / 82.5)
    assert trends["walnut"].trend == pytest.approx(-12.5 / 82.5)
    assert trends["sunset"].trend_significant


async def test_a_filter_and_a_limit_narrow_what_is_told(lot):
    for name, category in (("walnut", "web"), ("sunset", "data"), ("harbour", "data")):
        await recorded(lot, name, category=category, error={"message": name})
    answer = await lot.episodes.AnalyzeFailures(
        filter={"categories": ["data"]}, limit=1, similarity=1
    )
    assert (answer.failed_count, answer.group_count, len(answer.groups)) == (2, 2, 1)
    none = await lot.episodes.AnalyzeFailures(filter={"statuses": [SUCCEEDED]})
    assert (none.failed_count, len(none.groups)) == (0, 0)


async def test_how_like_errors_must_be_is_the_callers_choice(lot):
    for name in ("connection to the server refused", "connection to the server was refused"):
        await recorded(lot, name.replace(" ", "-"), error={"message": name})
    merged = await lot.episodes.AnalyzeFailures()
    assert (merged.group_count, merged.compared_signature_count) == (1, 2)
    assert merged.groups[0].signature_count == 2
    apart = await lot.episodes.AnalyzeFailures(similarity=1)
    assert (apart.group_count, apart.compared_signature_count) == (2, 0)
    all_in_one = await lot.episodes.AnalyzeFailures(similarity=0)
    assert all_in_one.group_count == 1
