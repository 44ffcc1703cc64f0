"""Texts that cost a parser the most: unclosed, nested and repeated tokens of each grammar, by seed.

``python -m tests.parsing.hostile SEEDS BYTES [LANGUAGE ...]`` parses them in the sandbox and prints
what came of them and the most memory that any process took, as one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import resource
import sys
from collections import Counter
from pathlib import Path

from lot_grpc.domain.errors import LimitExceededError
from lot_grpc.parsing.interface import LANGUAGES
from lot_grpc.parsing.sandbox import SANDBOX

_COMMON = ["(", ")", "[", "]", "{", "}", "a", "0", ".", ",", ";", ":", "=", "+", "-", "*", "&", "!",
           "<", ">", '"', "'", "\n", " ", "\\", "é", "//", "/*", "a(", "a[", "a.b", "a,", "if ",
           "return ", "\ufeff", "\U0001f642"]  # fmt: skip

TOKENS = {
    "go": ["func(", "func f() {", "map[", "[]", "chan ", "<-", "struct {", "interface {", "`", "a{",
           "switch {", "case a:", "go ", ":=", "a[b, ", "type a[b ", "*", "...", "package p\n"],
    "java": ["A<", "a.b<", "A<A<", "A<?,", "(A<", "new A<", "@A(", "@", "class A {", "a -> ", "<A>",
             "A[]", "switch (a) {", "case a -> ", "(A) ", "::", "? ", "& ", "extends A<", '"""',
             "try (", "void a(", "instanceof A "],
    "javascript": ["function(", "() => ", "async ", "class {", "`${", "`", "</", "<a>", "<a ", "/a",
                   "...", "a ? ", "yield ", "await ", "new ", "{a: ", "[...", "=> {", "#a "],
    "python": ["def f(", "lambda: ", "lambda a=", "if a:\n ", "f'{", "f'''{", "@", "not ", "await ",
               "for a in ", "class A:\n", "match a:\n case ", "'''", "async ", "*", "**", ":=",
               "with a as ", "try:\n", "a if b else ", "print >>"],
    "rust": ["fn f<", "A<", "a::<", "<A as ", "impl<", "dyn ", "&'a ", "'a: ", "|a| ", "macro! {",
             "$(", "r#", 'r#"', "match a {", "=> ", "unsafe {", "for<'a> ", "where A: ", "#[",
             "a!(", "..", "async move {", "?"],
    "typescript": ["A<", "a<", "<A>", "(a: ", "a as ", "{ [a in ", "A extends B ? ", "infer ",
                   "keyof ", "typeof ", "(a?: ", "=> ", "abstract class A<", "`${", "<a>", "<a ",
                   "readonly ", "A | ", "A & ", "new () => ", "a!", "declare ", "import(",
                   "a satisfies "],
}  # fmt: skip
"""Of each language what opens, nests, or is understood in several ways."""


def hostile_code(language: str, seed: int, size: int) -> str:
    """A text of about ``size`` characters; the same for the same seed."""
    chance = random.Random(f"{language} {seed}")
    tokens = _COMMON + 3 * TOKENS[language]

    def some(most: int) -> str:
        return "".join(chance.choice(tokens) for _ in range(chance.randint(1, most)))

    unit, close = some(3), some(2)
    count = size // len(unit)
    half = count // 2
    texts = [
        unit * count,  # unclosed
        unit * half + close * half,  # closed, in some way
        some(6) + unit * count + some(6),
        unit * (count // 50) + some(4) * (size // 8),  # two things after one another
        "".join(chance.choice([unit, close]) for _ in range(count)),
        "".join(chance.choice(tokens) for _ in range(size // 3)),
    ]
    return chance.choice(texts)[: 2 * size]


async def _run(seeds: range, size: int, languages: list[str]) -> Counter[str]:
    came = Counter[str]()
    for language in languages:
        for seed in seeds:
            try:
                await SANDBOX.parse(hostile_code(language, seed, size), language)
                came["parsed"] += 1
            except LimitExceededError as error:
                came[str(error.metadata["limit"])] += 1
    return came


if __name__ == "__main__":
    came = asyncio.run(
        _run(range(int(sys.argv[1])), int(sys.argv[2]), sys.argv[3:] or [*LANGUAGES])
    )
    SANDBOX.close()
    # VmHWM is of this program alone; ru_maxrss remembers what the process was before.
    own = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert own is not None
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps({"came": came, "server_mib": int(own[1]) >> 10, "child_mib": child >> 10}))
