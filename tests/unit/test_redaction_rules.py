"""Files with redaction rules of the operator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lot_grpc.domain.errors import RedactionRulesInvalidError
from lot_grpc.redaction import SecretFinder, read_rules

ACME = """
[[rules]]
name = "acme_key"
keywords = ["acme-"]
pattern = 'acme-([0-9a-f]{12})'
entropy = 2.0
unless = 'acme-0000'
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rules.toml"


def test_rules_of_the_operator_come_with_those_of_the_package(file: Path):
    file.write_text(ACME)
    finder = SecretFinder(read_rules([file]))
    text = "use acme-4f2a9c0b1d3e, not acme-00004f2a9c0b or acme-111111111111"
    assert finder.redact(text)[0] == text.replace("4f2a9c0b1d3e", "[REDACTED:acme_key]")
    assert finder.redact("password = hunter22")[1] == ["password"]


def test_the_example_of_the_page_works(file: Path):
    page = Path(__file__).parents[2] / "docs" / "security.md"
    examples = re.findall(r"^```toml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    [example] = [one for one in examples if "[[rules]]" in one]
    file.write_text(example)
    finder = SecretFinder(read_rules([file]))
    key = "4f2a9c0b1d3e" * 2 + "0a7b6c5d"
    assert finder.redact(f"ACME-? acme-{key}")[0] == "ACME-? acme-[REDACTED:acme_key]"


def test_a_rule_without_keywords_searches_every_text(file: Path):
    file.write_text("[[rules]]\nname = 'badge'\npattern = '#[0-9]{6}#'\n")
    finder = SecretFinder(read_rules([file]))
    assert finder.redact("at #123456# now") == ("at [REDACTED:badge] now", ["badge"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[rules", "is not valid TOML"),
        ("rules = 1", "needs a list of [[rules]]"),
        ("other = 1\n" + ACME, "needs a list of [[rules]]"),
        ("rules = [1]", "rule 1: must be a table"),
        ("[[rules]]\npattern = 'x'", "rule 1: needs a name"),
        ("[[rules]]\nname = 'Big'\npattern = 'x'", "rule 1: needs a name"),
        ("[[rules]]\nname = 'a'", "rule a: pattern: is missing or empty"),
        ("[[rules]]\nname = 'a'\npattern = '('", "rule a: pattern: RE2 rejects it: missing )"),
        ("[[rules]]\nname = 'a'\npattern = 'x*'", "rule a: pattern: must not match an empty text"),
        ("[[rules]]\nname = 'a'\npattern = 'x'\nunless = '('", "rule a: unless: RE2 rejects it"),
        ("[[rules]]\nname = 'a'\npattern = 'x'\nentrpy = 3", "rule a: entrpy: no such field"),
        ("[[rules]]\nname = 'a'\npattern = 'x'\nentropy = '3'", "rule a: entropy: has the wrong"),
        ("[[rules]]\nname = 'a'\npattern = 'x'\nentropy = true", "rule a: entropy: has the wrong"),
        ("[[rules]]\nname = 'a'\npattern = 'x'\ncheck = 'luhn'", "rule a: check: must be one of"),
        ("[[rules]]\nname = 'a'\npattern = 'x'\nkeywords = ['']", "rule a: keywords: must be"),
        (ACME + ACME, "rule acme_key: occurs twice"),
        (ACME.replace("acme_key", "jwt"), "rule jwt: there is a rule of this name"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_the_rule(file: Path, text: str, said: str):
    file.write_text(text)
    with pytest.raises(RedactionRulesInvalidError) as caught:
        read_rules([file])
    assert caught.value.message.startswith(f"redaction rules {file}: ")
    assert said in caught.value.message


def test_a_file_that_is_absent_or_not_text_or_too_large_is_refused(file: Path):
    with pytest.raises(RedactionRulesInvalidError, match="cannot be read: No such file"):
        read_rules([file])
    file.write_bytes(b"\xff")
    with pytest.raises(RedactionRulesInvalidError, match="is not valid TOML"):
        read_rules([file])
    file.write_text("#" * (2**20 + 1))
    with pytest.raises(RedactionRulesInvalidError, match="larger than 1 MiB"):
        read_rules([file])


def test_a_rule_that_is_switched_off_must_exist():
    with pytest.raises(RedactionRulesInvalidError, match="rule pasword: no such rule; the rules"):
        read_rules(off=["pasword"])
