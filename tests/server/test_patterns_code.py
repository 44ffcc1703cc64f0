"""ExtractPatternsFromCode on the wire."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct

from lot_grpc.pb.lot.v1 import outcome_pb2
from tests.parsing.samples import SAMPLES
from tests.server.patterns import P
from tests.server.service import Lot
from tests.server.wire import failure

CODE = """\
class Stack:
    def push(self, item):
        self.items.append(item)

    def depth(self, node):
        return 1 + self.depth(node.next) if node else 0
"""


async def extracted(lot: Lot, code: str = CODE, language: str = "python", **fields):
    return await lot.patterns.ExtractPatternsFromCode(code=code, language=language, **fields)


async def test_pieces_come_as_patterns_that_are_stored(lot):
    answer = await extracted(
        lot, language="py", context="a shop", success_metrics={"tests": 3, "success_rate": 0.5}
    )
    assert [(p.title, P.CodeKind.Name(p.code_kind)) for p in answer.patterns] == [
        ("Stack", "CODE_KIND_CLASS"),
        ("Stack.push", "CODE_KIND_METHOD"),
        ("Stack.depth", "CODE_KIND_ALGORITHM"),
    ]
    assert answer.created_count == 3
    assert not answer.unparsed
    assert not answer.notices
    stack, push, _ = answer.patterns
    assert stack.kind == P.PATTERN_KIND_CODE
    assert (stack.language, stack.context) == ("python", "a shop")
    assert stack.code == CODE.rstrip("\n")
    assert stack.outcomes.success_rate == 0.5
    metadata = stack.metadata
    assert (metadata["method_count"], list(metadata["methods"])) == (2, ["push", "depth"])
    assert metadata["success_metrics"]["tests"] == 3
    assert (push.metadata["first_line"], push.metadata["last_line"]) == (2, 3)
    assert push.complexity == outcome_complexity("LOW")
    for pattern in answer.patterns:
        assert (await lot.patterns.GetPattern(pattern_id=pattern.pattern_id)).pattern == pattern


def outcome_complexity(name: str) -> int:
    return outcome_pb2.DESCRIPTOR.enum_types_by_name["Complexity"].values_by_name[
        f"COMPLEXITY_{name}"
    ].number  # fmt: skip


@pytest.mark.parametrize("language", sorted(SAMPLES))
async def test_each_language_gives_pieces_that_an_update_takes_as_they_are(lot, language):
    answer = await extracted(lot, SAMPLES[language], language)
    assert len(answer.patterns) > 5
    for pattern in answer.patterns:
        again = await lot.patterns.UpdatePattern(pattern_id=pattern.pattern_id, pattern=pattern)
        assert again.pattern.metadata == pattern.metadata


async def test_a_dry_run_stores_nothing(lot):
    dry = await extracted(lot, dry_run=True)
    assert len(dry.patterns) == dry.created_count == 3
    assert not (await lot.patterns.ListPatterns()).patterns
    real = await extracted(lot)
    assert [p.pattern_id for p in dry.patterns] == [p.pattern_id for p in real.patterns]


async def test_the_same_again_is_no_success(lot):
    first = await extracted(lot)
    again = await extracted(lot, success_metrics={"success_rate": 1})
    assert list(again.patterns) == list(first.patterns)
    assert again.created_count == 0
    assert [(n.code, n.field) for n in again.notices] == [
        (outcome_pb2.NOTICE_CODE_FIELDS_UNCHANGED, "patterns.metadata.success_metrics")
    ]
    assert len((await lot.patterns.ListPatterns()).patterns) == 3


async def test_broken_code_gives_what_parses_and_says_what_did_not(lot):
    answer = await extracted(lot, CODE + "\ndef broken(:\n    pass\n")
    assert len(answer.patterns) == 3
    assert list(answer.unparsed) == ["line 8, column 12: ) is missing in broken"]
    nothing = await extracted(lot, "x = 1\n")
    assert not nothing.patterns
    assert not nothing.unparsed


async def test_recall_finds_a_piece_by_its_kind_and_what_it_does(lot):
    await extracted(lot)
    answer = await lot.patterns.RecallPatterns(
        query="push an item on a stack",
        filter={"code_kinds": [P.CODE_KIND_METHOD], "languages": ["py"]},
    )
    assert [hit.pattern.title for hit in answer.hits] == ["Stack.push"]


async def test_long_code_tells_that_the_model_did_not_read_all_of_it(lot):
    code = "def f():\n" + "".join(f"    value_{n} = compute_{n}()\n" for n in range(9_000))
    answer = await extracted(lot, code[: code.rindex("\n", 0, 250_000)])
    assert len(answer.patterns) == 1
    assert [(notice.code, notice.field) for notice in answer.notices] == [
        (outcome_pb2.NOTICE_CODE_TEXT_TRUNCATED, "patterns.code")
    ]


# --- refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "path", "rule"),
    [
        ({"code": ""}, "code", "string.min_len"),
        ({"code": "x" * (2**20 + 1)}, "code", "string.max_bytes"),
        ({"code": "x = 1\n" * 900_000}, "code", "string.max_bytes"),  # 5 MB
        ({"code": "a\0b"}, "code", None),
        ({"code": "\x01\x02\x7f\x03" * 9}, "code", "code.text"),
        ({"language": ""}, "language", "string.min_len"),
        ({"language": "cobol"}, "language", "language.grammar"),
        ({"context": "x" * 65_537}, "context", "string.max_bytes"),
        ({"success_metrics": {"success_rate": 2}}, "success_metrics.success_rate",
         "success_rate.range"),
        ({"success_metrics": {"text": "x" * 65_537}}, "success_metrics", "struct.max_bytes"),
    ],
)  # fmt: skip
async def test_what_is_no_code_is_refused(lot, fields, path, rule):
    failed = await failure(
        lot.patterns.ExtractPatternsFromCode(**{"code": "x = 1", "language": "python", **fields})
    )
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_INVALID")
    assert set(failed.fields) == {path}
    assert rule is None or failed.fields[path] == rule
    assert not (await lot.patterns.ListPatterns()).patterns


async def test_metrics_that_metadata_could_not_hold_are_refused(lot):
    def deep(levels: int) -> Struct:
        inner: Any = 1
        for _ in range(levels):
            inner = {"a": inner}
        struct = Struct()
        struct.update(inner)
        return struct

    failed = await failure(extracted(lot, success_metrics=deep(16)))
    assert failed.fields == {"success_metrics": "struct.depth"}
    answer = await extracted(lot, success_metrics=deep(15))
    for pattern in answer.patterns:
        await lot.patterns.UpdatePattern(pattern_id=pattern.pattern_id, pattern=pattern)


async def test_too_many_pieces_are_refused_whole(lot):
    failed = await failure(extracted(lot, "def f(): pass\n" * 2_001))
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "LIMIT_EXCEEDED")
    assert failed.metadata["limit"] == "2000"
    assert "smaller parts" in failed.message
    assert not (await lot.patterns.ListPatterns()).patterns


@pytest.mark.parametrize("unit", ["A<", "a.b<"])
async def test_code_that_costs_the_parser_too_much_is_refused(lot, unit):
    failed = await failure(extracted(lot, unit * 20_000, "java"))
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "LIMIT_EXCEEDED")
    assert failed.metadata == {"limit": "512 MiB of memory", "given": str(len(unit) * 20_000)}
    assert "smaller parts" in failed.message
    assert (await extracted(lot)).created_count == 3


async def test_other_calls_are_answered_while_code_is_parsed(lot):
    code = "".join(f"x{n} = [a for a in b if a]\n" for n in range(30_000))
    busy = asyncio.ensure_future(extracted(lot, code))
    answered = 0
    while not busy.done():
        await lot.admin.GetServerInfo()
        answered += 1
    await busy
    assert answered > 5
