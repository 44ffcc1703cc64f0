"""Spans belong to the call that they were begun in, and to none outside of one."""

from __future__ import annotations

import asyncio

import pytest

from lot_grpc.telemetry import spans
from lot_grpc.telemetry.spans import Span, Tracer, annotate, annotate_content, remote_parent, span

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def tracer(ended: list[Span], ratio: float = 1.0, *, contents: bool = False) -> Tracer:
    return Tracer(ended.append, ratio, contents=contents)


def begun(of: Tracer) -> Span:
    made = of.begin("call", None, {"a": "b"})
    assert made is not None
    return made


async def test_spans_of_the_tasks_of_a_call_are_its_children() -> None:
    ended: list[Span] = []

    async def work(name: str) -> None:
        with span(name):
            await asyncio.sleep(0)
            with span(f"in {name}"):
                annotate("seen", name)

    with begun(tracer(ended)) as root:
        await asyncio.gather(work("one"), work("two"))
    parents = {one.name: one.parent.name if one.parent else "" for one in ended}
    assert parents == {"in one": "one", "in two": "two", "one": "call", "two": "call", "call": ""}
    assert {one.trace.id for one in ended} == {root.trace.id}
    assert root.attributes["seen"] in ("one", "two"), "annotations are of the call"
    assert root.attributes["a"] == "b"
    assert all(one.begin_time <= one.end_time for one in ended)


def test_outside_a_call_there_are_no_spans() -> None:
    annotate("a", "b")
    annotate_content("a", "b")
    with span("x") as made:
        assert made is None


async def test_a_task_that_outlives_its_call_adds_nothing_to_it() -> None:
    ended: list[Span] = []
    over = asyncio.Event()

    async def later() -> None:
        await over.wait()
        with span("late"):
            pass

    with begun(tracer(ended)):
        task = asyncio.create_task(later())
    over.set()
    await task
    assert [one.name for one in ended] == ["call"]


def test_a_call_has_a_limited_number_of_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "MAX_CHILDREN", 3)
    ended: list[Span] = []
    with begun(tracer(ended)):
        for _ in range(10):
            with span("x"):
                pass
    assert len(ended) == 4


def test_a_block_that_fails_names_its_error_and_a_call_does_not() -> None:
    ended: list[Span] = []
    with pytest.raises(KeyError), begun(tracer(ended)), span("x"):
        raise KeyError
    assert [(one.name, one.error) for one in ended] == [("x", "KeyError"), ("call", "")]


def test_contents_are_left_out_unless_they_are_allowed() -> None:
    for contents in (False, True):
        with begun(tracer([], contents=contents)) as root:
            annotate_content("text", "x" * 10_000)
        assert ("text" in root.attributes) is contents
    assert len(str(root.attributes["text"])) == 4096


def test_the_ratio_decides_unless_the_caller_does() -> None:
    never, always = tracer([], 0.0), tracer([], 1.0)
    assert never.begin("x", None, {}) is None
    assert always.begin("x", None, {}) is not None
    half = tracer([], 0.5)
    sampled = sum(half.begin("x", None, {}) is not None for _ in range(2000))
    assert 800 < sampled < 1200
    for flags, traced in (("01", True), ("00", False), ("03", True)):
        parent = remote_parent([("traceparent", f"00-{TRACE}-{PARENT}-{flags}")])
        made = never.begin("x", parent, {}) or always.begin("x", parent, {})
        assert (made is not None) is traced


def test_the_span_of_a_caller_is_taken_over() -> None:
    found = remote_parent(
        [
            ("user-agent", "x"),
            ("traceparent", f"00-{TRACE}-{PARENT}-01"),
            ("tracestate", "a=1"),
            ("tracestate", "b=2"),
        ]
    )
    assert found is not None
    assert (found.trace_id, found.span_id) == (int(TRACE, 16), int(PARENT, 16))
    assert found.sampled
    assert found.state == "a=1,b=2"
    later = remote_parent([("traceparent", f"cc-{TRACE}-{PARENT}-01-more")])
    assert later is not None


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE}-{PARENT}-0g",
        b"bytes",
    ],
)
def test_what_is_no_parent_begins_a_trace_of_its_own(value: object) -> None:
    assert remote_parent([("traceparent", value)]) is None


def test_two_parents_are_none() -> None:
    parent = ("traceparent", f"00-{TRACE}-{PARENT}-01")
    assert remote_parent([parent, parent]) is None


def test_a_state_that_is_too_long_is_dropped_and_the_parent_stays() -> None:
    found = remote_parent(
        [("traceparent", f"00-{TRACE}-{PARENT}-01"), ("tracestate", f"a={'x' * 600}")]
    )
    assert found is not None
    assert found.state == ""
