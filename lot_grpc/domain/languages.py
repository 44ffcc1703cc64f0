"""Names of languages, so that one language has one name."""

from __future__ import annotations

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


def language_name(given: str) -> str:
    """The one name of a language: lower case, trimmed, aliases mapped (``py`` → ``python``)."""
    name = given.strip().lower()
    return _ALIASES.get(name, name)
