"""Links lead somewhere, every page can be reached, and what a page names exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import typer

from lot_grpc.cli.app import app
from lot_grpc.telemetry.conventions import MEMORY_OPERATIONS
from lot_grpc.telemetry.metrics import ALL
from tests.docs.contract import names, settings
from tests.docs.pages import (
    DOCS,
    PAGES,
    ROOT,
    anchors_of,
    commands_of,
    links_of,
    name_of,
    places_of,
    prose_of,
    references_of,
)
from tests.docs.pages import names_in as names_in_module
from tests.telemetry.queries import alert_queries

ADRS = sorted((DOCS / "adr").glob("[0-9]*.md"))
NAMING_CODE = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "proto" / "README.md",
    DOCS / "architecture.md",
    DOCS / "data-model.md",
    *(DOCS / "execution-paths").glob("*.md"),
    *(DOCS / "adr").glob("*.md"),
]

COMMANDS = {
    name: {
        "--help",
        *(
            option
            for each in (command, *getattr(command, "commands", {}).values())
            for one in each.params
            for option in (*one.opts, *one.secondary_opts)
        ),
    }
    for name, command in typer.main.get_command(app).commands.items()  # type: ignore[attr-defined]
}
"""The options of each command of ``lot-grpc``, with those of the commands in it."""
SETTINGS = {
    *settings(),
    "LOT_CONFIG",
    *("LOT_CLIENT_API_KEY", "LOT_CLIENT_API_KEY_FILE"),
    *("LOT_CLIENT_TLS_CA", "LOT_CLIENT_TLS_CERT", "LOT_CLIENT_TLS_KEY"),
    "LOT_EMBEDING_MODEL",  # misspelt to show what happens then
}

OTHER_NAMES = {
    *("async_block", "binary_search", "divide_and_conquer", "error_handling", "error_propagation"),
    *("nested_loops", "caught_errors", "cyclomatic_complexity", "first_line", "last_line"),
    *("method_count", "map_err", "duration_seconds", "tool_name", "half_life_days"),
    *("best_practices", "common_errors", "design_patterns", "include_file", "snake_case"),
    *("CompletableFuture", "ModuleNotFoundError", "BadRequest", "ErrorInfo", "RetryInfo"),
    *("call_id", "duration_ms", "more_ids"),
    *("lot_namespaces", "lot_role"),
    "test_planted_causes_are_found_and_hardly_anything_else",
}
"""Tags, keys of metadata and the like, which guides name and the contract does not."""

OBSERVED = {
    *(f"{metric.name}{ending}" for metric in ALL for ending in ("", "_total")),
    *MEMORY_OPERATIONS.values(),
    *(query.name for query in alert_queries()),
    "trace_id",
}
"""Names of metrics, alerts and traces."""

each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


# --- links ------------------------------------------------------------------------------------


@each_page
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target, anchor in links_of(page):
        assert target.exists(), f"{target} does not exist"
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), f"{name_of(target)} has no heading #{anchor}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen:
            seen.add(page)
            waiting += [target for target, _ in links_of(page) if target in PAGES]
    assert [name_of(page) for page in PAGES if page not in seen] == []


def test_the_index_names_every_guide() -> None:
    linked = {target for target, _ in links_of(DOCS / "index.md")}
    guides = {page for page in DOCS.glob("*.md") if page.name != "index.md"}
    assert guides <= linked, sorted(name_of(page) for page in guides - linked)


# --- code -------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", NAMING_CODE, ids=name_of)
def test_files_and_functions_that_a_page_names_exist(page: Path) -> None:
    missing = []
    for path, name in references_of(page):
        file = ROOT / path
        if not file.is_file():
            missing.append(path)
        elif name and name not in names_in_module(file):
            missing.append(f"{path}::{name}")
    assert not missing


@pytest.mark.parametrize("page", NAMING_CODE, ids=name_of)
def test_what_a_page_says_is_in_a_file_is_defined_there(page: Path) -> None:
    missing = [
        f"{name} of {path}"
        for name, path in places_of(page)
        if name not in names_in_module(ROOT / path)
    ]
    assert not missing


def test_the_architecture_names_every_package() -> None:
    page = prose_of(DOCS / "architecture.md")
    packages = [
        folder
        for parent in (ROOT / "lot_grpc", ROOT / "lot_grpc" / "services")
        for folder in sorted(parent.iterdir())
        if (folder / "__init__.py").is_file()
    ]
    missing = [name_of(one) for one in packages if f"`{name_of(one)}/" not in page]
    assert not missing


@each_page
def test_what_a_page_tells_to_run_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for command in commands_of(page, "make"):
        called = re.findall(r"make((?: [a-z][a-z-]*(?!\S))*)", command)[0].split()
        assert targets.issuperset(called), command
    for command in commands_of(page, "lot-grpc"):
        for name, rest in re.findall(r"\blot-grpc ([a-z][a-z-]*)(.*)", command):
            assert name in COMMANDS, command
            options = re.findall(r"(?<!\S)--[a-z-]+", re.sub(r"\s#.*|\s\|.*|\".*?\"", "", rest))
            assert COMMANDS[name].issuperset(options), command
    for command in commands_of(page, "python"):
        for module in re.findall(r"python -m (tests[\w.]*|lot_grpc[\w.]*)", command):
            path = ROOT.joinpath(*module.split("."))
            assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), module


@each_page
def test_every_setting_that_a_page_names_exists(page: Path) -> None:
    named = set(re.findall(r"\bLOT_[A-Z0-9_]*[A-Z0-9]\b(?!…)", page.read_text()))
    assert named <= SETTINGS


def test_pages_that_code_and_contract_refer_to_exist() -> None:
    named = {
        (name_of(file), page)
        for file in _texts()
        if file.suffix != ".md"
        for page in re.findall(r"\bdocs/[\w/-]+\.md\b", file.read_text())
    }
    assert [(file, page) for file, page in sorted(named) if not (ROOT / page).is_file()] == []


GENERATED = {DOCS / "data-model.md", DOCS / "metrics.md"}  # which name keys and labels
GUIDES = sorted({*DOCS.glob("*.md")} - GENERATED)


@pytest.mark.parametrize("page", GUIDES, ids=name_of)
def test_fields_and_calls_that_a_guide_names_exist(page: Path) -> None:
    named = {
        match[1]
        for text in re.findall(r"`([^`]+)`", prose_of(page))
        if (
            match := re.fullmatch(
                r"(?:\w+Service\.)?([a-z]+(?:_[a-z]+)+|(?:[A-Z][a-z]+){2,})", text
            )
        )
    }
    known = names() | OTHER_NAMES | OBSERVED
    assert named <= known, sorted(named - known)


# --- decisions --------------------------------------------------------------------------------


def test_the_decisions_are_numbered_without_gaps_and_listed_by_title() -> None:
    listed = re.findall(
        r"^- \[(\d{4})\]\((\S+)\) (.+)$", (DOCS / "adr" / "README.md").read_text(), re.MULTILINE
    )
    titles = {page.name: page.read_text().splitlines()[0] for page in ADRS}
    assert {file: f"# {number}. {title}" for number, file, title in listed} == titles
    assert len(listed) == len(titles), "listed twice"


@pytest.mark.parametrize("page", ADRS, ids=lambda page: page.stem)
def test_a_decision_has_its_parts_and_is_short(page: Path) -> None:
    text = page.read_text()
    assert re.findall(r"^(?:## .*|Status: \w+)$", text, re.MULTILINE) == [
        "Status: accepted",
        "## Context",
        "## Decision",
        "## Consequences",
    ]
    assert len(text.splitlines()) <= 45


# --- words ------------------------------------------------------------------------------------

ABSENT = re.compile(
    r"\b(the design (has|says|names|document)|[Ss]tage[ -][0-9]|[Ss]eed 0[0-9]{2}\b"
    r"|[Ii]ssue #?[0-9]|[Dd]ecision [0-9]|the first product|decisions\.md)"
)
"""What was written for those who built it, and which no reader has."""


def _texts() -> list[Path]:
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    ours = (
        "lot_grpc/",
        "proto/lot/",
        "docs/",
        "clients/",
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "Makefile",
        "pyproject.toml",
    )
    suffixes = {".py", ".proto", ".md", ".toml", ".ts", ".go", ""}
    return [
        ROOT / file
        for file in files
        if file.startswith(ours)
        and Path(file).suffix in suffixes
        and (ROOT / file).is_file()  # it may be deleted and not yet committed
    ]


def test_no_text_refers_to_what_its_reader_does_not_have() -> None:
    found = [
        f"{name_of(file)}: {match[0]}"
        for file in _texts()
        for match in ABSENT.finditer(file.read_text())
    ]
    assert not found
