from __future__ import annotations

import pytest

from lot_grpc.domain.languages import _ALIASES, language_name


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("py", "python"),
        ("Python3", "python"),
        (" JS ", "javascript"),
        ("ts", "typescript"),
        ("golang", "go"),
        ("c++", "cpp"),
        ("C#", "csharp"),
        ("Rust", "rust"),
        ("", ""),
        ("Brainfuck", "brainfuck"),
    ],
)
def test_one_language_has_one_name(given, name):
    assert language_name(given) == name


def test_naming_a_name_changes_nothing():
    for alias, name in _ALIASES.items():
        assert language_name(alias) == name
        assert language_name(name) == name, f"{alias} is mapped twice"
