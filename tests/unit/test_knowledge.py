"""The packs that come with the server, and the reading of others."""

from __future__ import annotations

import asyncio
import importlib
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.domain.errors import KnowledgePackInvalidError
from lot_grpc.domain.memory import MemoryKind
from lot_grpc.domain.pattern import PatternKind
from lot_grpc.knowledge import built_in_packs, read_packs
from lot_grpc.knowledge.loading import BUILT_IN
from tests.errors.reading import signature_of

PACKS = {pack.name: pack for pack in built_in_packs()}
DESIGN = PACKS["design_patterns"].patterns
PRACTICES = PACKS["best_practices"].memories
ERRORS = PACKS["common_errors"].error_solutions
DOCS = Path(__file__).parents[2] / "docs" / "knowledge.md"


# --- what comes with the server ---------------------------------------------------------------


def test_the_promised_knowledge_is_there_in_several_languages():
    def languages(entries: object, start: str) -> set[str]:
        assert isinstance(entries, dict)
        return {one.language for entry, one in entries.items() if entry.startswith(start)}

    for name in ("singleton", "factory", "async_context_manager", "repository"):
        assert {"python", "typescript", "go"} <= languages(DESIGN, f"{name}."), name
    for name in ("error_handling", "async_await", "type_hints"):
        assert {"python", "typescript"} <= languages(PRACTICES, f"{name}."), name
    for name in ("module_not_found", "timeout", "connection_refused"):
        assert {"python", "javascript", "go"} <= languages(ERRORS, f"{name}."), name
    assert {one.error_type for entry, one in ERRORS.items() if entry.startswith("none_type")} == {
        "TypeError", "AttributeError",
    }  # fmt: skip


def test_each_thing_says_what_an_agent_needs():
    for entry, pattern in DESIGN.items():
        assert pattern.kind is PatternKind.CODE, entry
        assert pattern.code_kind, entry
        assert pattern.title, entry
        assert len(pattern.context) > 150, entry
        assert pattern.code, entry
        assert pattern.success_indicators, entry
        assert pattern.failure_indicators, entry
        assert entry.endswith(f".{pattern.language}")
    for entry, memory in PRACTICES.items():
        assert memory.kind is MemoryKind.BEST_PRACTICE, entry
        assert memory.content.count("\n- ") >= 5, entry
    for entry, solution in ERRORS.items():
        assert solution.resolution, entry
        assert len(solution.steps) >= 4, entry


def test_no_two_common_errors_share_a_signature():
    signatures = [solution.error.signature for solution in ERRORS.values()]
    assert len(set(signatures)) == len(signatures)


NOTHING: Any = None


def _import_what_is_not_there() -> None:
    importlib.import_module("no_such_module_for_this_test")


def _subscript_none() -> None:
    NOTHING[0]


def _read_from_none() -> None:
    NOTHING.group()


def _iterate_none() -> None:
    list(NOTHING)


def _connect_to_nobody() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    socket.create_connection(("127.0.0.1", port))


def _time_out() -> None:
    async def wait() -> None:
        async with asyncio.timeout(0):
            await asyncio.sleep(10)

    asyncio.run(wait())


@pytest.mark.parametrize(
    ("cause", "entry"),
    [
        (_import_what_is_not_there, "module_not_found.python"),
        (_subscript_none, "none_type.subscript.python"),
        (_read_from_none, "none_type.attribute.python"),
        (_iterate_none, "none_type.iterable.python"),
        (_time_out, "timeout.asyncio.python"),
        pytest.param(
            _connect_to_nobody,
            "connection_refused.python",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="its number is Linux's"),
        ),
    ],
)
def test_an_error_as_python_really_raises_it_has_the_signature_of_its_solution(cause, entry):
    with pytest.raises(Exception) as caught:
        cause()
    error = caught.value
    told = str(error) or type(error).__name__
    assert signature_of(type(error).__name__, told) == ERRORS[entry].error.signature


@pytest.mark.parametrize(
    ("kind", "message", "entry"),
    [
        ("", "node:internal/modules/cjs/loader:1404\n  throw err;\n  ^\n\nError: Cannot find "
         "module 'lodash'\nRequire stack:\n- /app/a.js\n    at Module._resolveFilename (x.js:1:2)",
         "module_not_found.node"),
        ("", "a/b/main.go:7:3: no required module provides package github.com/x/y/v2; to add it:\n"
         "\tgo get github.com/x/y/v2", "module_not_found.go"),
        ("", "error[E0432]: unresolved import `tokio`\n --> src/main.rs:1:5",
         "module_not_found.rust"),
        ("", "Exception in thread \"main\" java.lang.RuntimeException: no\n\tat A.main(A.java:3)\n"
         "Caused by: java.lang.ClassNotFoundException: com.mysql.cj.jdbc.Driver\n\t... 1 more",
         "module_not_found.java"),
        ("TypeError", "Cannot read properties of undefined (reading 'length')",
         "undefined_property.javascript"),
        ("", "panic: runtime error: invalid memory address or nil pointer dereference\n[signal "
         "SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]\n\ngoroutine 1 [running]:",
         "nil_pointer.go"),
        ("", "Exception in thread \"main\" java.lang.NullPointerException: Cannot invoke "
         "\"java.util.List.size()\" because \"list\" is null\n\tat A.main(A.java:3)",
         "null_pointer.java"),
        ("Error", "connect ECONNREFUSED ::1:6379", "connection_refused.node"),
        ("", "dial tcp [::1]:5432: connect: connection refused", "connection_refused.go"),
        ("", "Caused by: java.net.ConnectException: Connection refused", "connection_refused.java"),
        ("TimeoutError", "The operation was aborted due to timeout", "timeout.fetch.javascript"),
    ],
)  # fmt: skip
def test_an_error_as_other_languages_print_it_has_the_signature_of_its_solution(
    kind, message, entry
):
    assert signature_of(kind, message) == ERRORS[entry].error.signature


# --- the code in it ---------------------------------------------------------------------------


def code_of(language: str) -> list[str]:
    return [entry for entry, pattern in DESIGN.items() if pattern.language == language]


@pytest.mark.parametrize("entry", code_of("python"))
def test_python_code_runs(entry, tmp_path):
    file = tmp_path / "code.py"
    file.write_text(DESIGN[entry].code)
    subprocess.run([sys.executable, "-W", "error", str(file)], check=True, timeout=60)


@pytest.mark.skipif(shutil.which("gofmt") is None, reason="needs Go")
@pytest.mark.parametrize("entry", code_of("go"))
def test_go_code_is_formatted(entry):
    code = DESIGN[entry].code + "\n"
    done = subprocess.run(
        ["gofmt"], input=code, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == code


# --- reading others ---------------------------------------------------------------------------

GOOD = """
name = "own"
[[memories]]
id = "a"
content = "c"
"""


def read(tmp_path: Path, text: str):
    file = tmp_path / "own.toml"
    file.write_text(text)
    return read_packs([file])[-1]


def test_a_pack_of_ones_own_comes_behind_those_of_the_server(tmp_path):
    pack = read(tmp_path, GOOD)
    assert (pack.name, pack.size, pack.id_of("a")) == ("own", 1, "seed:own:a")
    assert read_packs([]) == built_in_packs()


BROKEN = [
    ("name = ", "", "", "is not valid TOML"),
    ("name = 'Own'", "", "name", "lower-case letters"),
    (GOOD.replace("own", "common_errors"), "", "name", "already exists"),
    ("name = 'own'", "", "", "needs 1 to 1000 entries, has 0"),
    (GOOD.replace("name", "title = 'x'\nname", 1), "", "title", "no such field"),
    ("name = 'own'\nmemories = 3", "", "memories", "write each entry as [[memories]]"),
    (GOOD.replace('id = "a"', ""), "memories, entry 1", "id", "needs an id"),
    (GOOD.replace('"a"', '"a b"'), "memories, entry 1", "id", "needs an id"),
    (GOOD + "[[memories]]\nid = 'a'\ncontent = 'd'", "memories, entry 2 (a)", "id", "has this id"),
    (GOOD.replace("content", "contents"), "memories, entry 1 (a)", "contents",
     "known fields: content"),
    (GOOD.replace('content = "c"', ""), "memories, entry 1 (a)", "content", "is required"),
    (GOOD.replace('"c"', "3"), "memories, entry 1 (a)", "content", "should be text, is a number"),
    (GOOD + "kind = 'poem'", "memories, entry 1 (a)", "kind", "should be one of fact"),
    (GOOD + "importance = 1.5", "memories, entry 1 (a)", "importance", "from 0 to 1"),
    (GOOD + "importance = nan", "memories, entry 1 (a)", "importance", "from 0 to 1"),
    (GOOD + "pinned = 1", "memories, entry 1 (a)", "pinned", "true or false"),
    (GOOD + "tags = ['x', 'x']", "memories, entry 1 (a)", "tags", "duplicate item"),
    (GOOD + "tags = ['']", "memories, entry 1 (a)", "tags", "empty item"),
    (GOOD + "labels = {'a=b' = 'c'}", "memories, entry 1 (a)", "labels", "'a=b'"),
    (GOOD + "labels = {'\u00e9' = '', 'e\u0301' = ''}", "memories, entry 1 (a)", "labels", "form"),
    (GOOD + "title = '" + "x" * 1025 + "'", "memories, entry 1 (a)", "title", "1,024 bytes"),
    ("name = 'own'\n[[patterns]]\nid = 'p'\ntask = 't'\ncode_kind = 'class'",
     "patterns, entry 1 (p)", "code_kind", "only allowed for kind CODE"),
    ("name = 'own'\n[[patterns]]\nid = 'p'\ntask = 't'\nactions = [{args = 1}]",
     "patterns, entry 1 (p)", "actions", "a tool"),
    ("name = 'own'\n[[error_solutions]]\nid = 'e'\nerror_message = 'm'",
     "error_solutions, entry 1 (e)", "resolution", "needs a resolution or steps"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "entry", "field", "problem"), BROKEN)
def test_a_broken_pack_is_told_with_file_entry_and_field(tmp_path, text, entry, field, problem):
    with pytest.raises(KnowledgePackInvalidError) as caught:
        read(tmp_path, text)
    error = caught.value
    assert error.metadata == {"file": str(tmp_path / "own.toml"), "entry": entry, "field": field}
    assert problem in error.message
    for part in (str(tmp_path / "own.toml"), entry, field):
        assert part in error.message


def test_a_pack_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(KnowledgePackInvalidError, match="No such file"):
        read_packs([tmp_path / "none.toml"])
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(KnowledgePackInvalidError, match="is not valid TOML"):
        read_packs([tmp_path / "bad.toml"])


def test_the_example_of_the_docs_is_a_pack_with_each_kind(tmp_path):
    [example] = re.findall(r"```toml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    pack = read(tmp_path, example)
    assert len(pack.patterns) == len(pack.memories) == len(pack.error_solutions) == 1


def test_the_docs_name_every_field_of_an_entry():
    from lot_grpc.knowledge.fields import ERROR_SOLUTION, MEMORY, PATTERN

    text = DOCS.read_text()
    for fields in (PATTERN, MEMORY, ERROR_SOLUTION):
        for name in fields.readers:
            assert f"`{name}`" in text, name


def test_the_packs_are_among_the_files_of_the_package():
    files = {path.name for path in BUILT_IN.glob("*.toml")}
    assert files == {f"{name}.toml" for name in PACKS}
    pyproject = (BUILT_IN.parents[1] / "pyproject.toml").read_text()
    assert '"knowledge/*.toml"' in pyproject
