"""Names of languages, so that one language has one name."""

from __future__ import annotations

from lot_grpc.domain.text_form import normal_form

_ALIASES = {
    "bash": "shell",
    "c++": "cpp",
    "c#": "csharp",
    "cc": "cpp",
    "cs": "csharp",
    "cxx": "cpp",
    "ecmascript": "javascript",
    "f#": "fsharp",
    "golang": "go",
    "hs": "haskell",
    "js": "javascript",
    "jsx": "javascript",
    "kt": "kotlin",
    "md": "markdown",
    "node": "javascript",
    "nodejs": "javascript",
    "objc": "objective-c",
    "pl": "perl",
    "postgres": "sql",
    "postgresql": "sql",
    "ps1": "powershell",
    "py": "python",
    "py3": "python",
    "python3": "python",
    "rb": "ruby",
    "rs": "rust",
    "sh": "shell",
    "ts": "typescript",
    "tsx": "typescript",
    "yml": "yaml",
    "zsh": "shell",
}

_OF_CODE = frozenset(
    {
        *(name for name in _ALIASES.values() if name not in ("markdown", "yaml")),
        *("c", "clojure", "dart", "elixir", "erlang", "groovy", "java", "julia", "lua"),
        *("matlab", "nim", "objective-c", "ocaml", "php", "r", "scala", "solidity", "swift"),
        *("assembly", "cobol", "delphi", "fortran", "lisp", "pascal", "racket", "scheme"),
        *("terraform", "vb", "verilog", "vhdl", "zig"),
    }
)


def language_name(given: str) -> str:
    """The one name of a language: lower case, trimmed, aliases mapped (``py`` → ``python``)."""
    name = normal_form(given.strip().lower())
    return _ALIASES.get(name, name)


def is_code(language: str) -> bool:
    """Whether a language, by its one name, is one that programs are written in."""
    return language in _OF_CODE
