"""Finds secrets in a text, and takes them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.secret_values import CHECKS, entropy
from lot_grpc.redaction.rules import Rule
from lot_grpc.regexes import Literals, SpanRegex

_EXAMPLE: Final = SpanRegex(
    r"(?i)x{4}|\*{3}|\.{3}|…|\[redacted|<[a-z]|\$\{|\{\{|example|sample|dummy|placeholder|change.?me"
    r"|your[_-]|insert|0123456|1234567890|abcdefgh|-here"
)
"""What only a placeholder contains: keys are random, and these are too long to occur by chance."""


_SURROGATES: Final = "surrogatepass"
"""How text is encoded: names of files in a log may have surrogates."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A secret in a text: where, in bytes of its UTF-8, and the rule that found it."""

    start: int
    end: int
    rule: str


class SecretFinder:
    """Finds what any of the rules calls a secret. Safe to use from several threads."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)
        words: dict[str, list[int]] = {}
        for number, rule in enumerate(self._rules):
            for word in rule.keywords:
                words.setdefault(word.lower(), []).append(number)
        self._words = Literals(words)
        self._rules_of = list(words.values())
        self._always = [number for number, rule in enumerate(self._rules) if not rule.keywords]

    def may_find(self, raw: bytes) -> bool:
        """False if texts within these bytes, such as a serialized message, have no secret."""
        return bool(self._always) or bool(self._words.found(raw))

    def find(self, text: str) -> list[Finding]:
        """The secrets in a text, in order; none overlap."""
        return self._find(_encoded(text))

    def redact(self, text: str, limit: int = 0) -> tuple[str, list[str]]:
        """The text without its secrets, and the rules that found some, in the order of the text.

        Each is replaced by ``[REDACTED:rule]``. If the result has more than ``limit`` bytes (0: no
        limit) then each replacement is cut to the length of what it replaces.
        """
        raw = _encoded(text)
        findings = self._find(raw)
        if not findings:
            return text, []
        made = _without(raw, findings, cut=False)
        if limit and len(made) > limit:
            made = _without(raw, findings, cut=True)
        return made.decode(errors=_SURROGATES), [finding.rule for finding in findings]

    def redact_member(self, key: str, text: str, limit: int = 0) -> tuple[str, list[str]]:
        """The value of a key without its secrets: also if only the key shows that it is one."""
        made, rules = self.redact(text, limit)
        head = _encoded(f'{key}="')
        if self.may_find(head):
            body = _encoded(made)
            for finding in self._find(head + body + b'"'):
                if (finding.start, finding.end) == (len(head), len(head) + len(body)):
                    return f"[REDACTED:{finding.rule}]", [finding.rule]
        return made, rules

    def _find(self, raw: bytes) -> list[Finding]:
        numbers = set(self._always)
        for word in self._words.found(raw):
            numbers.update(self._rules_of[word])
        found: list[tuple[int, int, int]] = []
        for number in numbers:
            rule = self._rules[number]
            for match, secret in rule.pattern.spans(raw):
                if _is_secret(rule, raw[slice(*match)], raw[slice(*secret)]):
                    found.append((*secret, number))
        return [Finding(start, end, self._rules[n].name) for start, end, n in _merged(found)]


def _merged(found: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Spans in order; those that overlap as one, with the number of the first rule."""
    merged: list[tuple[int, int, int]] = []
    for start, end, number in sorted(found):
        if merged and start < merged[-1][1]:
            first, last, other = merged[-1]
            merged[-1] = first, max(last, end), min(other, number)
        else:
            merged.append((start, end, number))
    return merged


def _encoded(text: str) -> bytes:
    return text.encode(errors=_SURROGATES)


def _is_secret(rule: Rule, match: bytes, secret: bytes) -> bool:
    if rule.unless is not None and rule.unless.occurs_in(match):
        return False
    if _EXAMPLE.occurs_in(secret):
        return False
    if not rule.entropy and not rule.check:
        return True
    text = secret.decode(errors="replace")
    return entropy(text) >= rule.entropy and (not rule.check or CHECKS[rule.check](text))


def _without(raw: bytes, findings: Sequence[Finding], *, cut: bool) -> bytes:
    parts: list[bytes] = []
    end = 0
    for finding in findings:
        mark = f"[REDACTED:{finding.rule}]".encode()
        parts += [raw[end : finding.start], mark[: finding.end - finding.start] if cut else mark]
        end = finding.end
    return b"".join([*parts, raw[end:]])
