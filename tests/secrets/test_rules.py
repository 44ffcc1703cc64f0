"""The redaction rules on both sets of texts: those they were tuned on, and those kept from them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.redaction import SecretFinder, read_rules
from tests.secrets import fit, held_out, keys
from tests.secrets.measure import Case, cases, measured

RULES = read_rules()
FINDER = SecretFinder(RULES)
FIT, HELD_OUT = cases("fit"), cases("held_out")


def test_the_sets_share_no_context():
    assert not set(fit.ANYWHERE) & set(held_out.ANYWHERE)
    assert not set(fit.NEGATIVES) & set(held_out.NEGATIVES)
    for kind, contexts in fit.PLACED.items():
        assert not set(contexts) & set(held_out.PLACED[kind]), kind


def test_there_are_keys_for_every_rule():
    assert {case.rule for case in FIT if case.rule} == {rule.name for rule in RULES}


def test_of_the_texts_it_was_tuned_on_it_finds_nearly_all_and_nothing_else():
    found = measured(FINDER, FIT)
    assert found.precision == 1
    assert found.recall > 0.99
    assert found.named == found.found


def test_of_the_texts_kept_from_it_it_finds_what_the_page_says():
    found = measured(FINDER, HELD_OUT)
    assert found.precision == 1
    assert round(found.recall, 3) == 0.995
    assert found.named == found.found


@pytest.mark.parametrize("case", [case for case in FIT + HELD_OUT if not case.secret])
def test_what_only_looks_like_a_secret_stays(case: Case):
    assert FINDER.redact(case.text) == (case.text, [])


def test_what_is_redacted_stays_as_it_is_when_redacted_again():
    for case in FIT + HELD_OUT:
        redacted, _ = FINDER.redact(case.text)
        assert FINDER.redact(redacted) == (redacted, [])
        short, _ = FINDER.redact(case.text, 1)
        assert len(short.encode()) <= len(case.text.encode())
        assert FINDER.redact(short) == (short, [])


def test_a_keyword_of_its_rule_occurs_in_every_text_with_a_secret():
    for case in FIT + HELD_OUT:
        text = case.text.encode()
        for rule in RULES:
            if any(True for _ in rule.pattern.spans(text)):
                assert any(word in case.text.lower() for word in rule.keywords), rule.name


@given(st.text(), st.sampled_from(sorted(keys.FIT)), st.integers(0, 99), st.text())
def test_any_text_around_a_key_stays_but_for_the_key(before: str, kind: str, seed: int, after: str):
    key = keys.FIT[kind](random.Random(seed))
    before, after = f"{before} ", f" {after}"
    redacted, rules = FINDER.redact(before + key + after)
    assert key not in redacted or not rules
    assert not rules or redacted == f"{before}[REDACTED:{rules[0]}]{after}" or len(rules) > 1


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300))
def test_any_text_can_be_searched(text: str):
    redacted, rules = FINDER.redact(text)
    assert (redacted == text) == (not rules)


def test_of_overlapping_secrets_nothing_stays_and_the_special_rule_gives_the_name():
    key = keys.FIT["github_token"](random.Random(1))
    redacted, rules = FINDER.redact(f'{{"api_key": "pre-{key}.suffix42"}}')
    assert redacted == '{"api_key": "[REDACTED:github_token]"}'
    assert rules == ["github_token"]


def test_a_text_of_nothing_but_secrets_is_redacted_too():
    begun = "-----BEGIN " + " ".join(("PRIVATE", "KEY-----")) + "\n" + "A" * 80 + "\n-"
    for text, mark in ((begun, "[REDACTED:private_key]-"), ("password=a1b2c3! ", "password=")):
        redacted, rules = FINDER.redact(text * 10_000)
        assert len(rules) == redacted.count("[REDACTED:") == 10_000
        assert redacted.count(mark) == 10_000


def test_what_is_kept_around_a_secret():
    assert FINDER.redact("redis://:s3cr3tWord@cache:6379/0")[0] == (
        "redis://:[REDACTED:url_password]@cache:6379/0"
    )
    assert FINDER.redact("a DB_PASSWORD=hunter22; b")[0] == "a DB_PASSWORD=[REDACTED:password]; b"


def test_a_rule_can_be_switched_off():
    finder = SecretFinder(read_rules(off=["password"]))
    assert finder.find("password = hunter22") == []
