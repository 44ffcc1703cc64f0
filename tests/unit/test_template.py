"""Templates: alignment, slots and the pattern that generalises a group."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lot_grpc.domain.alignment import common, common_to_all, gaps
from lot_grpc.domain.distillation import (
    GroupSummary,
    best_members,
    confidence_of,
    generalised,
    summed,
)
from lot_grpc.domain.outcomes import Outcome, OutcomeStats
from lot_grpc.domain.pattern import Action, Pattern, PatternContent, PatternKind
from lot_grpc.domain.slots import Slots, kind_of, plain_value
from lot_grpc.domain.template import align_actions, align_texts
from lot_grpc.domain.text_form import folded, without_breaks
from tests.unit import made

SEQUENCES = st.lists(st.sampled_from("abcd"), max_size=12)


def is_within(part: list[str], whole: list[str]) -> bool:
    left = iter(whole)
    return all(item in left for item in part)


# --- alignment --------------------------------------------------------------------------------


@given(SEQUENCES, SEQUENCES)
def test_what_two_have_in_common_is_in_both_and_the_longest(one, other):
    found = common(one, other)
    assert is_within(found, one)
    assert is_within(found, other)
    lengths = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for a, left in enumerate(one):
        for b, right in enumerate(other):
            lengths[a + 1][b + 1] = (
                lengths[a][b] + 1 if left == right else max(lengths[a][b + 1], lengths[a + 1][b])
            )
    assert len(found) == lengths[-1][-1]


@given(st.lists(SEQUENCES, min_size=1, max_size=5))
def test_gaps_and_constants_make_up_each_sequence(sequences):
    constant = common_to_all(sequences)
    for whole in sequences:
        pieces: list[str] = []
        for number, (start, end) in enumerate(gaps(constant, whole)):
            pieces += whole[start:end]
            pieces += constant[number : number + 1]
        assert pieces == whole


# --- texts ------------------------------------------------------------------------------------


def template(*texts: str) -> tuple[str, dict[str, list[str]]]:
    slots = Slots()
    return align_texts(texts).render(slots), slots.examples(10, 200)


@pytest.mark.parametrize(
    ("texts", "expected", "values"),
    [
        (
            ["Log in to shop.com as Alice Smith", "log in to foo.org as Bob"],
            "Log in to {host} as {name}",
            {"host": ["shop.com", "foo.org"], "name": ["Alice Smith", "Bob"]},
        ),
        (
            ["Dis\u00adable Ana", "\uff24isable Bob"],
            "Disable {name}",
            {"name": ["Ana", "Bob"]},
        ),
        (
            ["Cancel order #1234, please.", "Cancel order #98, please."],
            "Cancel order #{number}, please.",
            {"number": ["1234", "98"]},
        ),
        (
            ["Move 3 files to /tmp/a", "Move 12 files to ~/b/c"],
            "Move {number} files to {path}",
            {"number": ["3", "12"], "path": ["/tmp/a", "~/b/c"]},
        ),
        (
            ["Copy 1 to 2 at once", "Copy 3 to 4 at once"],
            "Copy {number} to {number_2} at once",
            {"number": ["1", "3"], "number_2": ["2", "4"]},
        ),
        (
            ['Search for "red shoes" now', 'Search for "hat" now'],
            "Search for {quoted} now",
            {"quoted": ["red shoes", "hat"]},
        ),
        (
            ["Open https://a.io/x?y=1 in a tab", "Open http://b.io in a tab"],
            "Open {url} in a tab",
            {"url": ["https://a.io/x?y=1", "http://b.io"]},
        ),
        (
            ["Find the cheapest kayak here", "Find the most recent blue car here"],
            "Find the {text} here",
            {"text": ["cheapest kayak", "most recent blue car"]},
        ),
        (["Open the door", "Open the door now"], "Open the door {text}", {"text": ["now"]}),
        (["Just the same", "just THE same"], "Just the same", {}),
    ],
)
def test_what_varies_becomes_a_slot_named_by_what_it_holds(texts, expected, values):
    assert template(*texts) == (expected, values)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (
            ["Lock the door of room 1", "lock the door of room 2", "Bolt the door of room 3"],
            "Lock or bolt the door of room {number}",
        ),
        (
            ["Please check it now", "Please take a look at it now", "Please SSH into it now"],
            "Please check or take a look at or SSH into it now",
        ),
        (["Fix the bug in Ana", "Quickly fix the bug in Bob"], "{name} Fix the bug in {name_2}"),
        (["Open a.md. Print it.", "Open b.md. Burn it."], "Open {text} it."),
        ([f"{verb} all of the rooms" for verb in ["Lock", "Bolt", "Seal", "Shut", "Bar"]], None),
    ],
)
def test_what_a_task_says_is_done_is_no_slot(texts, expected):
    aligned = align_texts(texts)
    assert aligned.tells_enough == (expected is not None)
    if expected:
        assert aligned.render(Slots(), as_task=True) == expected


def test_the_same_values_are_the_same_slot_wherever_they_stand():
    shown, slots = template("Swap 1 and 2, then 1 again", "Swap 7 and 8, then 7 again")
    assert shown == "Swap {number} and {number_2}, then {number} again"
    assert slots == {"number": ["1", "7"], "number_2": ["2", "8"]}


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
@example(["\uf900", "e\u0301 a"])
def test_filling_the_slots_of_a_member_gives_its_text_but_for_case_space_and_form(texts):
    aligned = align_texts(texts)
    for number, text in enumerate(texts):
        filled = [piece if isinstance(piece, str) else piece[number] for piece, _ in aligned.pieces]
        assert _letters("".join(filled)) == _letters(text)
    assert 0 <= aligned.constant_share <= 1


def _letters(text: str) -> str:
    return folded("".join(without_breaks(text).split()))


def test_a_text_without_end_is_aligned_at_its_beginning():
    words = [f"w{n}" for n in range(5000)]
    one, other = " ".join(["alpha", *words]), " ".join(["beta", *words, "more"])
    shown, slots = template(one, other)
    assert shown.startswith("{text} w0 w1 ")
    assert len(slots) == 2


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["$12.50", "$3"], "price"),
        (["20%", "5%"], "percentage"),
        (["2024-01-31", "2025-02-01"], "date"),
        (["a@b.org"], "email"),
        (["src/app/main.py", "setup.py"], "path"),
        (["3", "four"], "text"),
        (["3", ""], "number"),
        ([], "text"),
    ],
)
def test_kinds_of_values(values, kind):
    assert kind_of(values) == kind


def test_values_are_compared_without_quotes_and_fractions():
    assert [plain_value(v) for v in (3.0, 2.5, '"x y"', True, None, "“a b”")] == [
        "3", "2.5", "x y", "true", "none", "a b",
    ]  # fmt: skip


# --- actions ----------------------------------------------------------------------------------


def test_steps_that_all_take_are_aligned_and_their_arguments_generalised():
    slots = Slots()
    aligned = align_actions(
        [
            [
                Action("open", {"url": "https://a.io", "wait": 1.0}),
                Action("type", {"text": "Hello Ann, welcome back to the shop", "more": {"n": 1.0}}),
            ],
            [
                Action("open", {"url": "https://b.io", "wait": 1.0, "tab": 2.0}),
                Action("scroll"),
                Action("type", {"text": "Hello Bob, welcome back to the shop", "more": {"n": 2.0}}),
            ],
        ]
    )
    aligned.learn_keys(slots)
    assert aligned.render(slots) == (
        Action("open", {"url": "{url}", "wait": 1.0}),
        Action(
            "type",
            {"text": "Hello {name}, welcome back to the shop", "more": {"n": "{n}"}},
        ),
    )
    assert slots.examples(5, 50) == {
        "url": ["https://a.io", "https://b.io"],
        "name": ["Ann", "Bob"],
        "n": ["1", "2"],
    }


def test_without_a_common_step_there_are_no_actions():
    aligned = align_actions([[Action("a"), Action("b")], [Action("c")]])
    assert aligned.render(Slots()) == ()


# --- the whole pattern ------------------------------------------------------------------------


def pattern(task: str, outcomes: OutcomeStats | None = None, **named: object) -> Pattern:
    content = PatternContent(task, **named)  # type: ignore[arg-type]
    return Pattern("ns", task, content, outcomes or OutcomeStats(), 1, 0, 0)


FACTS = GroupSummary(("x", "y", "z"), 3, 1, 0.85)


def test_fields_stay_that_all_share_and_terms_that_half_have():
    content = generalised(
        [
            pattern("do a thing", category="c", tags=("t", "u"), labels={"k": "v"}, approach="x"),
            pattern("do a thong", category="c", tags=("t", "v"), labels={"k": "v"}, approach="y"),
            pattern("do a thung", category="c", tags=("w", "u"), labels={"k": "w"}, code="1"),
        ],
        FACTS,
    )
    assert (content.category, content.approach, content.code) == ("c", "", "")
    assert (content.tags, content.labels) == (("t", "u"), {"k": "v"})
    assert content.kind is PatternKind.DISTILLED
    assert content.source_pattern_ids == ("x", "y", "z")


def test_a_template_that_would_say_nothing_is_not_made():
    content = generalised([pattern("Buy milk today"), pattern("Sell all cars")], FACTS)
    assert content.task == "Buy milk today"


def test_a_name_in_an_argument_names_the_slot_in_the_text_too():
    members = [
        pattern(
            f"Send a mail to {who} about {n:.0f} orders",
            actions=(Action("send", {"to": who, "count": n}),),
        )
        for who, n in (("Ann", 2.0), ("Bob", 3.0))
    ]
    content = generalised(members, FACTS)
    assert content.task == "Send a mail to {to} about {count} orders"
    assert content.actions == (Action("send", {"to": "{to}", "count": "{count}"}),)


@given(st.lists(made.patterns, min_size=1, max_size=5))
def test_any_patterns_generalise_to_one_that_may_be_stored(members):
    content = generalised(members, FACTS)
    content.check()
    assert generalised(members, FACTS) == content
    assert content.expire_time is None
    assert not content.pinned


def test_the_best_members_are_taken_in_the_order_given():
    members = [pattern(str(n)) for n in range(150)]
    good = OutcomeStats().record(Outcome.SUCCESS, 1)
    members[140] = pattern("140", good)
    chosen = best_members(members)
    assert [one.pattern_id for one in chosen] == [*map(str, range(99)), "140"]


# --- counters ---------------------------------------------------------------------------------

OUTCOMES = st.builds(
    OutcomeStats,
    success_rate=st.floats(0, 1),
    success_count=st.integers(0, 50),
    failure_count=st.integers(0, 50),
    partial_count=st.integers(0, 50),
)


@given(st.lists(OUTCOMES, min_size=1, max_size=6))
def test_counts_are_summed_and_the_rate_lies_between_the_members(outcomes):
    total = summed(outcomes)
    assert total.usage_count == sum(one.usage_count for one in outcomes)
    rates = [one.success_rate for one in outcomes]
    assert min(rates) - 1e-9 <= total.success_rate <= max(rates) + 1e-9
    assert 0 <= confidence_of(total) <= 1


def test_a_rate_counts_by_how_often_it_was_tried():
    tried = OutcomeStats(0.9, success_count=9, failure_count=1)
    assert summed([tried, OutcomeStats(0.1)]).success_rate == pytest.approx(0.9)
    assert confidence_of(OutcomeStats(0.1)) == 0.5
