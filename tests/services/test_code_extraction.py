"""Patterns out of code: once each, whatever is sent again, and found by what they do."""

from __future__ import annotations

import asyncio

import pytest

from lot_grpc.domain.errors import LimitExceededError, PatternNotFoundError, RequestInvalidError
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import CodeKind, PatternContent, PatternKind
from lot_grpc.domain.query import PatternFilter
from lot_grpc.services.extraction import code_extraction
from lot_grpc.services.extraction.code_extraction import CodeDraft
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.records.collections import OUTCOMES, PATTERNS
from tests.parsing.samples import PYTHON, SAMPLES
from tests.services.world import NS, open_world, outcome, payloads, recall, rows, save

CODE = '''\
def parse_version(text):
    """Split a version number into its parts."""
    return tuple(int(part) for part in text.split("."))


async def download(url):
    """Fetch a page over HTTP."""
    return await get(url)
'''


async def extract(world, code=CODE, language="python", **named):
    return await world.services.extraction.code.extract(NS, CodeDraft(code, language, **named))


def ids(extracted):
    return [pattern.pattern_id for pattern in extracted.patterns]


async def test_each_piece_is_a_pattern_of_its_own(world):
    extracted = await extract(world, PYTHON, context="a shop", success_metrics={"tests": 12.0})
    assert (
        extracted.created_count == len(extracted.patterns) == len(await rows(world.store, PATTERNS))
    )
    kinds = {pattern.content.code_kind for pattern in extracted.patterns}
    assert kinds == set(CodeKind) - {CodeKind.SNIPPET}
    for pattern in extracted.patterns:
        content = pattern.content
        assert (content.kind, content.language) == (PatternKind.CODE, "python")
        assert (content.context, content.metadata["success_metrics"]) == ("a shop", {"tests": 12.0})
        assert content.code in PYTHON
        assert pattern == await world.services.patterns.patterns.get(NS, pattern.pattern_id)
        assert pattern.outcomes.usage_count == 0
        assert pattern.outcomes.success_rate == 1.0


async def test_the_same_code_again_changes_nothing(world):
    first = await extract(world)
    before = await payloads(world, PATTERNS)
    world.clock.advance(60)
    again = await extract(world)
    assert again.patterns == first.patterns
    assert again.created_count == 0
    assert await payloads(world, PATTERNS) == before
    assert not await payloads(world, OUTCOMES)


async def test_what_was_edited_or_used_since_is_given_back_as_it_stands(world):
    first = await extract(world)
    parser = first.patterns[0].pattern_id
    await outcome(world, parser, outcome=Outcome.FAILURE)
    edit = PatternEdit(
        PatternContent("Read a version", tags=("mine",)), frozenset({"task", "tags"})
    )
    await world.services.patterns.patterns.update(NS, parser, edit, "")
    again = await extract(world)
    assert ids(again) == ids(first)
    assert again.patterns[0].content.tags == ("mine",)
    assert again.patterns[0].outcomes.failure_count == 1
    assert again.unchanged_fields == ()


async def test_what_was_deleted_is_stored_anew(world):
    first = await extract(world)
    await world.services.patterns.patterns.delete(NS, ids(first)[1], "")
    again = await extract(world)
    assert ids(again) == ids(first)
    assert again.created_count == 1


async def test_code_that_moved_in_its_file_is_the_same_pattern(world):
    first = await extract(world)
    moved = await extract(world, "import re\n\n\n" + CODE)
    assert ids(moved) == ids(first)
    assert moved.created_count == 0


async def test_another_context_is_another_pattern_and_other_metrics_are_told(world):
    first = await extract(world, success_metrics={"success_rate": 0.5})
    assert {pattern.outcomes.success_rate for pattern in first.patterns} == {0.5}
    there = await extract(world, context="elsewhere")
    assert not set(ids(there)) & set(ids(first))
    other = await extract(world, success_metrics={"success_rate": 0.9})
    assert other.patterns == first.patterns
    assert other.unchanged_fields == ("metadata.success_metrics",)
    assert (await extract(world)).unchanged_fields == ()


async def test_the_same_code_twice_in_a_file_is_one_pattern(world):
    extracted = await extract(world, "def f(): g()\n\n\ndef f(): g()\n")
    assert extracted.created_count == len(extracted.patterns) == 1
    named = await extract(world, "class A:\n  def f(self): g()\nclass B:\n  def f(self): g()\n")
    assert [p.content.title for p in named.patterns] == ["A", "A.f", "B", "B.f"]


async def test_a_dry_run_stores_nothing_and_gives_the_same(world):
    dry = await extract(world, dry_run=True)
    assert not await payloads(world, PATTERNS)
    real = await extract(world)
    assert dry.patterns == real.patterns
    assert dry.created_count == real.created_count == 2
    again = await extract(world, dry_run=True)
    assert again.created_count == 0
    assert again.patterns == real.patterns


async def test_two_at_once_store_each_piece_once():
    world = await open_world()
    other = world.another_process()
    told = await asyncio.gather(*(extract(w, PYTHON) for w in (world, other, world, other)))
    assert len({tuple(ids(one)) for one in told}) == 1
    assert len(await rows(world.store, PATTERNS)) == len(told[0].patterns)
    assert sum(one.created_count for one in told) == len(told[0].patterns)


async def test_nothing_crosses_namespaces(world):
    first = await extract(world)
    elsewhere = await world.services.extraction.code.extract("other", CodeDraft(CODE, "python"))
    assert ids(elsewhere) == ids(first)
    assert elsewhere.created_count == 2
    await world.services.patterns.patterns.delete("other", ids(first)[0], "")
    assert await world.services.patterns.patterns.get(NS, ids(first)[0])
    with pytest.raises(PatternNotFoundError):
        await world.services.patterns.patterns.get("other", ids(first)[0])


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("split a version number into its parts", "parse_version"),
        ("fetch a page over http", "download"),
        ("sum up the prices: total", "total"),
        ("handle a FileNotFoundError when reading the configuration", "read_config"),
        ("merge sort", "merge_sort"),
        ("find the first item", "find_first"),
    ],
)
async def test_recall_finds_a_piece_by_what_it_does(world, question, title):
    await extract(world)
    await extract(world, PYTHON)
    for task in ("Deploy the site", "Log in", "Write a letter to the customer"):
        await save(world, task)
    answer = await recall(world, question)
    assert answer.hits[0].thing.content.title == title


async def test_recall_narrows_by_kind_language_and_tag(world):
    for language, code in SAMPLES.items():
        await extract(world, code, language)
    for narrowed, holds in (
        (PatternFilter(code_kinds=(CodeKind.ERROR_HANDLER,), languages=("golang",)),
         lambda c: (c.code_kind, c.language) == (CodeKind.ERROR_HANDLER, "go")),
        (PatternFilter(code_kinds=(CodeKind.CLASS,)), lambda c: c.code_kind is CodeKind.CLASS),
        (PatternFilter(tags_any=("recursion",)), lambda c: "recursion" in c.tags),
    ):  # fmt: skip
        hits = (await recall(world, "order", narrowed=narrowed, limit=100)).hits
        assert hits
        assert all(holds(hit.thing.content) for hit in hits)


# --- refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("alias", ["py", "Python3", " PYTHON "])
async def test_a_language_goes_by_its_other_names(world, alias):
    extracted = await extract(world, language=alias)
    assert {pattern.content.language for pattern in extracted.patterns} == {"python"}


@pytest.mark.parametrize("language", ["cobol", "c++", "text", "  "])
async def test_a_language_without_a_grammar_is_refused_with_those_there_are(world, language):
    with pytest.raises(RequestInvalidError) as raised:
        await extract(world, language=language)
    [violation] = raised.value.violations
    assert violation.field == "language"
    for name in SAMPLES:
        assert name in violation.description


@pytest.mark.parametrize(
    "code", ["\x01\x02\x03\x04", "ELF\x7f\x01\x01" * 100, "\ufffdPNG\ufffd" * 9]
)
async def test_binary_is_refused(world, code):
    with pytest.raises(RequestInvalidError) as raised:
        await extract(world, code)
    assert raised.value.violations[0].field == "code"
    assert "binary" in raised.value.violations[0].description


async def test_a_rare_control_character_is_no_binary(world):
    extracted = await extract(world, CODE + "\f\nBELL = '\x07'\n")
    assert len(extracted.patterns) == 2


@pytest.mark.parametrize("rate", [-0.1, 1.5, 95])
async def test_a_success_rate_that_is_none_is_refused(world, rate):
    with pytest.raises(RequestInvalidError, match=r"in \[0, 1\]"):
        await extract(world, success_metrics={"success_rate": rate})
    assert not await payloads(world, PATTERNS)


@pytest.mark.parametrize("rate", ["high", True, None, [1.0]])
async def test_a_success_rate_that_is_no_number_is_only_carried(world, rate):
    extracted = await extract(world, success_metrics={"success_rate": rate})
    assert extracted.patterns[0].outcomes.success_rate == 1.0
    assert extracted.patterns[0].content.metadata["success_metrics"] == {"success_rate": rate}


async def test_pieces_that_come_to_too_much_with_their_context_are_refused(world):
    code = "".join(f"def f{n}(): g()\n" for n in range(60))
    with pytest.raises(LimitExceededError, match="with less context"):
        await extract(world, code, context="x" * 60_000)
    assert not await payloads(world, PATTERNS)


async def test_more_than_are_written_at_once(world, monkeypatch):
    monkeypatch.setattr(code_extraction, "_AT_ONCE", 7)
    code = "".join(f"def f{n}(): g()\n" for n in range(30))
    extracted = await extract(world, code)
    assert [p.content.title for p in extracted.patterns] == [f"f{n}" for n in range(30)]
    assert (await extract(world, code)).patterns == extracted.patterns


async def test_pieces_that_say_nothing_are_no_patterns(world):
    code = """class Missing(Exception):
    pass


class Stack:
    def __init__(self, size):
        self.size = size

    def push(self, item):
        if len(self.items) < self.size:
            self.items.append(item)


class Pool:
    def __init__(self, size):
        self.free = list(range(size))
        self.size = size


def later():
    ...


class Point:
    x: int
"""
    extracted = await extract(world, code)
    titles = [one.content.title for one in extracted.patterns]
    assert titles == ["Stack", "Stack.push", "Pool", "Point"]
    for language, empty in (("java", "class Gone extends Exception {}"), ("go", "func Later() {}")):
        prefix = "package main\n" if language == "go" else ""
        assert (await extract(world, prefix + empty, language)).patterns == ()


CONSTRUCTORS = {
    "python": """class Pool:
    def __init__(self, size):
        self.free = []
        for _ in range(size):
            self.free.append(connect())

    def take(self):
        return self.free.pop()
""",
    "typescript": """class Pool {
  constructor(size: number) {
    this.free = [];
    for (let n = 0; n < size; n++) this.free.push(connect());
  }
  take() { return this.free.pop(); }
}
""",
    "java": """class Pool {
  Pool(int size) {
    free = new ArrayList<>();
    for (int n = 0; n < size; n++) free.add(connect());
  }
  Connection take() { return free.remove(0); }
}
""",
    "rust": """impl Pool {
    pub fn new(size: usize) -> Self {
        let mut free = Vec::new();
        for _ in 0..size { free.push(connect()); }
        Pool { free }
    }
    pub fn take(&mut self) -> Option<Connection> { self.free.pop() }
}
""",
}
CONSTRUCTORS["go"] = """package pool

func NewPool(size int) *Pool {
	p := &Pool{}
	for n := 0; n < size; n++ {
		p.free = append(p.free, connect())
	}
	return p
}

type Pool struct {
	free []*Conn
}

func (p *Pool) Take() *Conn {
	return p.free[0]
}
"""
CONSTRUCTORS["javascript"] = CONSTRUCTORS["typescript"].replace(": number", "")


@pytest.mark.parametrize("language", CONSTRUCTORS)
async def test_a_constructor_however_long_is_found_as_its_class(world, language):
    code = CONSTRUCTORS[language]
    extracted = await extract(world, code, language)
    whole, take = extracted.patterns
    assert whole.content.code_kind is CodeKind.CLASS
    assert whole.content.title.split()[-1] == "Pool"
    assert take.content.title in ("Pool.take", "Pool::take", "Pool.Take")
    assert "connect()" in whole.content.code
    answer = await recall(world, "pool of connections: append connect() for each of its size")
    assert answer.hits[0].thing == whole


async def test_a_constructor_of_several_lines_is_kept_where_its_class_is_none(world):
    broken = CONSTRUCTORS["python"].replace("return self.free.pop()", "return self.(")
    extracted = await extract(world, broken)
    assert [one.content.title for one in extracted.patterns] == ["Pool.__init__"]
    assert extracted.unparsed


async def test_a_go_function_is_part_of_the_struct_that_it_makes_only(world):
    code = """package store

type Store interface {
	Get(key string) string
}

type memory[T any] struct {
	items map[string]T
}

func NewStore() Store {
	return &memory[string]{items: map[string]string{}}
}

func newMemory[T any](size int) (*memory[T], error) {
	return &memory[T]{items: make(map[string]T, size)}, nil
}

func NewName(m *memory[string]) string {
	return m.items["name"]
}

func NewOther() *other.Memory {
	return other.New(1)
}

func renew(m *memory[string]) *memory[string] {
	return m
}
"""
    extracted = await extract(world, code, "go")
    found = {one.content.title: one.content.code for one in extracted.patterns}
    assert list(found) == ["Store", "memory", "NewStore", "NewName", "NewOther", "renew"]
    assert "func newMemory" in found["memory"]
    assert (await extract(world, code, "go")).patterns == extracted.patterns
