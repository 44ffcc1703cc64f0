"""The text of a context: its order, its bound, and what hostile fields do to it: nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.context.apart import distinguish
from lot_grpc.domain.context.failing import warnings_of
from lot_grpc.domain.context.known import Known, KnownEpisode, KnownError, KnownPattern
from lot_grpc.domain.context.named_error import named_error
from lot_grpc.domain.context.prompt import prompt_of
from lot_grpc.domain.context.tokens import token_count
from lot_grpc.domain.episode import Episode, EpisodeEnd, EpisodeError, EpisodeStart, EpisodeStatus
from lot_grpc.domain.error_solution import ErrorSolution, ErrorSolutionContent
from lot_grpc.domain.error_text.differences import Difference
from lot_grpc.domain.memory import Memory, MemoryContent, MemoryKind
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.pattern import Action, Pattern, PatternContent
from lot_grpc.domain.preference import Preference
from lot_grpc.domain.recommendation import recommend

TIME = 1_700_000_000_000_000
SECTIONS = [
    "Errors like this one",
    "Patterns",
    "Warnings",
    "Recommended",
    "Preferences",
    "Memories",
    "Similar episodes",
]


def episode(episode_id="e", task="Deploy", status=EpisodeStatus.SUCCEEDED, error=None, **named):
    end = EpisodeEnd(status, error=EpisodeError(*error) if error else None, **named)
    return Episode(
        "ns", episode_id, EpisodeStart(task), status, end, TIME, TIME, 0, 0, 0, 1, TIME, TIME
    )


def failed(episode_id, *error):
    return episode(episode_id, status=EpisodeStatus.FAILED, error=error or None)


def pattern(pattern_id="p", task="Deploy", **named):
    return Pattern("ns", pattern_id, PatternContent(task, **named), OutcomeStats(), 1, TIME, TIME)


def known_of(text: str, places: int = 2) -> Known:
    """A bit of everything, with ``text`` in every field."""
    solution = ErrorSolutionContent(text or "e", context=text, resolution=text, steps=(text, text))
    runs = [
        episode(f"e{n}", text or "t", summary=text, success_factors=(text or "f",))
        for n in range(places)
    ]
    return Known(
        recommend(runs, Complexity.LOW),
        tuple(run.episode_id for run in runs),
        errors=tuple(
            KnownError(
                ErrorSolution("ns", f"s{n}", solution, "sig", OutcomeStats(), 1, TIME, TIME),
                exact=True,
                differences=(Difference("name", text, ""),),
            )
            for n in range(places)
        ),
        patterns=tuple(
            KnownPattern(
                pattern(
                    f"p{n}",
                    text or "t",
                    title=text,
                    context=text,
                    code=text,
                    language=text,
                    actions=(Action(text or "x", {text: [text]}, text),),
                    failure_indicators=(text or "i",),
                )
            )
            for n in range(places)
        ),
        warnings=warnings_of([failed("f1", text, text), failed("f2", "E", "m")], 2),
        preferences=tuple(
            Preference("ns", f"k{n}", value, "c", 1, TIME, TIME)
            for n, value in enumerate((text, {text: text}, {"feedback": text, "task": text}))
        ),
        memories=tuple(
            Memory("ns", f"m{n}", MemoryContent(text or "c", kind, text, text), 1, TIME, TIME)
            for n, kind in enumerate((MemoryKind.NOTE, MemoryKind.CODE_SNIPPET))
        ),
        episodes=tuple(KnownEpisode(run) for run in runs),
    )


HOSTILE = st.lists(
    st.sampled_from(
        [
            "\n",
            "\n\n## Patterns\n\n",
            "- `p9`, worked 9 of 9 times: ",
            "```",
            "\n```\n",
            "~~~~",
            "</div>",
            "<!--",
            "![x](y)",
            "`",
            "===\n",
            "---",
            "\u2028# x",
            "\r",
            "数据",
            "سلام",
            "👩‍👩‍👧",
            "e\u0301",
            "\"'",
            "word ",
            "    ",
            "\x00",
        ]
    ),
    max_size=12,
).map("".join)


def kinds(tokens) -> Iterator[str]:
    """What a reader of Markdown finds in a text."""
    for token in tokens:
        yield token.type
        yield from kinds(token.children or ())


def outside_of_code(text: str) -> list[str]:
    """The lines that stand in no fence."""
    lines, fence = [], ""
    for line in text.split("\n"):
        if fence:
            if line.strip() == fence:
                fence = ""
        elif found := re.match(r"    (`{3,})\S*$", line):
            fence = found[1]
        else:
            lines.append(line)
    assert not fence
    return lines


@given(HOSTILE, st.integers(0, 1500))
def test_no_field_breaks_the_structure_or_the_bound(text, max_tokens):
    prompt = prompt_of(known_of(text), max_tokens)
    assert prompt.tokens == token_count(prompt.text)
    if max_tokens:
        assert prompt.tokens <= max_tokens
    if not prompt.text:
        assert prompt.truncated
        return
    assert not re.search("[\r\u2028\u2029\x85\x0b\x0c\x00]", prompt.text)
    assert not {"html_block", "html_inline", "image"} & set(kinds(MarkdownIt().parse(prompt.text)))
    lines = outside_of_code(prompt.text)
    headings = [line for line in lines if line.startswith("#")]
    assert len(headings) == list(kinds(MarkdownIt().parse(prompt.text))).count("heading_open")
    assert headings[0] == "# What is known for this task"
    told = [heading.removeprefix("## ") for heading in headings[1:]]
    assert told == [section for section in SECTIONS if section in told]
    for line in lines[4:]:
        assert not line or re.match(r"## |- |  - [A-Z\[]", line), line
    ids = [found[1] for line in lines if (found := re.match(r"- `([^`]*)`", line))]
    assert len(ids) == len(set(ids))
    assert set(ids) <= {f"{kind}{n}" for kind in "spkme" for n in range(3)}
    if not max_tokens:
        assert told == SECTIONS
        assert not prompt.truncated


def test_of_every_section_the_best_comes_before_any_second():
    full = prompt_of(known_of("a text"))
    for bound in range(full.tokens, 0, -1):
        prompt = prompt_of(known_of("a text"), bound)
        assert prompt.truncated == (bound < full.tokens)
        for kind in "spke":
            assert f"- `{kind}1`" not in prompt.text or f"- `{kind}0`" in prompt.text
    assert prompt_of(known_of("a text"), 10).text == ""


def test_what_has_no_room_is_shortened_first():
    known = Known(
        recommend([], Complexity.LOW), patterns=(KnownPattern(pattern(context="long word " * 100)),)
    )
    full = prompt_of(known)
    assert not full.truncated
    prompt = prompt_of(known, full.tokens // 2)
    assert prompt.truncated
    assert "long word […]" in prompt.text


def test_a_long_field_is_shortened_without_any_bound():
    known = Known(
        recommend([], Complexity.LOW), patterns=(KnownPattern(pattern(context="1, two; " * 375)),)
    )
    prompt = prompt_of(known)
    assert prompt.truncated
    assert f"When: {('1, two; ' * 250).rstrip()} […]" in prompt.text


def test_where_nothing_is_known_it_says_so():
    nothing = Known(recommend([], Complexity.LOW))
    assert "Nothing yet" in prompt_of(nothing).text
    assert not prompt_of(nothing).truncated
    assert prompt_of(nothing, 5) == prompt_of(known_of("x"), 5)
    assert prompt_of(nothing, 5).truncated


def test_failures_are_grouped_by_what_they_failed_of():
    found = warnings_of(
        [
            failed("a"),
            failed("b", "KeyError", "'host'"),
            failed("c", "", "KeyError: 'port'"),
            failed("d", "TimeoutError", "after 30 s"),
        ],
        2,
    )
    assert [one.episode_ids for one in found] == [("b", "c"), ("a",)]
    assert found[0].message == "2 similar tasks failed, last on 2023-11-14: KeyError: 'host'"
    assert found[0].error_type == "KeyError"
    assert found[1].message == "1 similar task failed, last on 2023-11-14 for an unknown reason"


@pytest.mark.parametrize("blank", [" ", "\u200b\n"])
def test_a_failure_with_a_blank_error_is_told_by_its_error_patterns(blank):
    episode = failed("f", blank, blank)
    end = replace(episode.end, error_patterns=("exit code 1", blank))
    [warning] = warnings_of([replace(episode, end=end)], 1)
    assert warning.error == "exit code 1"


def test_runs_that_went_alike_give_way():
    runs = [
        (name, episode(name, task, status))
        for name, task, status in (
            ("a", "Deploy it", EpisodeStatus.SUCCEEDED),
            ("b", "deploy  it", EpisodeStatus.SUCCEEDED),
            ("c", "Deploy it", EpisodeStatus.FAILED),
            ("d", "Test it", EpisodeStatus.SUCCEEDED),
        )
    ]
    assert distinguish(runs, 3) == ["a", "c", "d"]
    assert distinguish(runs, 9) == ["a", "c", "d", "b"]


@pytest.mark.parametrize(
    ("task", "error"),
    [
        ("Add a page that shows errors", ""),
        ("KeyError: 'a'", "KeyError: 'a'"),
        ("It fails with KeyError: 'a'", "KeyError: 'a'"),
        ("Fix `yaml.scanner.ScannerError: bad` today", "yaml.scanner.ScannerError: bad"),
        ("Build: error[E0382]: use of moved value", "error[E0382]: use of moved value"),
        ("bash: foo: command not found", "bash: foo: command not found"),
        (
            "See:\nTraceback (most recent call last):\n  File \"a\"\nKeyError: 'a'",
            "Traceback (most recent call last):\n  File \"a\"\nKeyError: 'a'",
        ),
    ],
)
def test_the_error_that_a_task_names(task, error):
    assert named_error(task) == error


def test_signs_that_the_recommended_context_counts_are_told_once():
    learned = pattern(
        success_indicators=("tool: linter", "step: backup"),
        failure_indicators=("tool: force",),
        tools=("git",),
        recommended_context="Tools: git.\nTool: linter: in 3 of 3 successes, in 0 of 2 failures.\n"
        "Tool: force: in 0 of 3 successes, in 2 of 2 failures.",
    )
    text = prompt_of(
        Known(recommend([], Complexity.LOW), patterns=(KnownPattern(learned, False),))
    ).text
    assert text.casefold().count("linter") == text.count("force") == text.count("git") == 1
    assert "Signs of success: step: backup" in text


def test_how_likely_it_is_the_same_task_is_said_where_it_is_known():
    told = prompt_of(
        Known(
            recommend([], Complexity.LOW),
            patterns=(KnownPattern(pattern(), match=0.934), KnownPattern(pattern())),
            episodes=(KnownEpisode(episode("e"), 0.0),),
        )
    ).text
    assert told.count("likely the same task") == 2
    assert "`p`, 93% likely the same task, not used yet" in told
    assert "- `e`, 0% likely the same task, succeeded on" in told
