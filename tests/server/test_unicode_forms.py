"""One text in two Unicode forms is one text where texts are compared; what was sent comes back."""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest
from google.protobuf.message import Message

from tests.server.examples import EXAMPLES, example, method_of, path_of, places
from tests.server.service import SERVICES, Lot
from tests.server.wire import failure

WORD: Final = "Zażółć café가"
FORMS: Final = {form: unicodedata.normalize(form, WORD) for form in ("NFC", "NFD")}
WAYS: Final = [("NFC", "NFD"), ("NFD", "NFC")]
EMPTY: Final = {"string_value": "v"}


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-then-{way[1]}")
def way(request: Any) -> tuple[str, str]:
    first, second = request.param
    return FORMS[first], FORMS[second]


async def _pattern(lot: Lot, **fields: Any) -> Any:
    return (await lot.patterns.SavePattern(pattern={"task": "t", **fields})).pattern


async def _memory(lot: Lot, **fields: Any) -> Any:
    return (await lot.memories.CreateMemory(memory={"content": "c", **fields})).memory


async def _episode(lot: Lot, **fields: Any) -> Any:
    episode = {"task": "t", "status": 2, **fields}
    return (await lot.episodes.RecordEpisode(episode=episode)).episode


async def _decision(lot: Lot, **fields: Any) -> Any:
    decision = {"context": "c", "chosen_option": "o", **fields}
    return (await lot.learning.RecordDecision(decision=decision)).decision


async def _event(lot: Lot, **fields: Any) -> Any:
    event = {"event_type": "x", **fields}
    return (await lot.learning.RecordLearningEvent(learning_event=event)).learning_event


async def _solution(lot: Lot, **fields: Any) -> Any:
    solution = {"error_message": "e", "resolution": "r", **fields}
    return (await lot.memories.SaveErrorSolution(error_solution=solution)).error_solution


def _common(*single: tuple[str, str]) -> dict[str, str]:
    """The stored field by the field of the filter."""
    return {"tags_any": "tags", "tags_all": "tags", "labels": "labels", **dict(single)}


FILTERS: Final[dict[str, tuple[Callable[..., Awaitable[Any]], str, dict[str, str]]]] = {
    "pattern": (
        _pattern, "PatternService.ListPatterns",
        _common(("languages", "language"), ("task_types", "task_type"),
                ("categories", "category"), ("tools", "tools"), ("approaches", "approach")),
    ),
    "memory": (
        _memory, "MemoryService.ListMemories",
        _common(("languages", "language"), ("source_uris", "source_uri"),
                ("tech_stack", "project.tech_stack"), ("project_statuses", "project.status")),
    ),
    "episode": (
        _episode, "EpisodeService.ListEpisodes",
        _common(("categories", "category"), ("task_types", "task_type"), ("task_ids", "task_id"),
                ("approaches", "approach"), ("agent_roles", "agent_role"),
                ("tools_any", "tools_used"), ("error_types", "error.type")),
    ),
    "decision": (
        _decision, "LearningService.ListDecisions",
        {"tags_any": "tags", "labels": "labels", "agent_roles": "agent_role",
         "chosen_options": "chosen_option",
         "categories": "category", "task_ids": "task_id"},
    ),
    "learning event": (
        _event, "LearningService.ListLearningEvents",
        {"tags_any": "tags", "labels": "labels", "event_types": "event_type",
         "agent_roles": "agent_role"},
    ),
    "error solution": (
        _solution, "MemoryService.ListErrorSolutions",
        {"tags_any": "tags", "labels": "labels", "error_types": "error_type",
         "languages": "language", "categories": "categories", "signatures": "signature"},
    ),
}  # fmt: skip

_ASCII: Final = {"episode_ids"}
"""Fields of filters whose values have no second form."""

_LISTS: Final = {"tags", "tools", "categories", "project.tech_stack", "tools_used"}
"""Fields of stored things that have several texts."""


def _rpc(lot: Lot, name: str) -> Any:
    service, _, method = name.partition(".")
    return getattr(getattr(lot, service.removesuffix("Service").lower() + "s"), method)


def _nested(path: str, value: Any) -> dict[str, Any]:
    for part in reversed(path.split(".")):
        value = {part: value}
    return value  # type: ignore[no-any-return]


def _at(message: Any, path: str) -> Any:
    for part in path.split("."):
        message = getattr(message, part)
    return message


def _stored(path: str, word: str) -> Any:
    """A text as a field of the stored thing takes it."""
    if path == "labels":
        return {word: word}
    return [word] if path in _LISTS else word


def _given(kind: Any, field: str, word: str) -> Any:
    """A text as the field of a message takes it."""
    found = kind.fields_by_name[field]
    if found.message_type is not None and found.message_type.GetOptions().map_entry:
        return {word: word}
    return [word] if found.is_repeated else word


def test_the_table_has_every_text_that_a_filter_names():
    for make, rpc, fields in FILTERS.values():
        del make
        service, _, method = rpc.partition(".")
        narrowed = SERVICES[service].methods_by_name[method].input_type.fields_by_name["filter"]
        texts = {
            field.name
            for field in narrowed.message_type.fields
            if field.name == "labels" or field.type == field.TYPE_STRING
        }
        assert texts - _ASCII == fields.keys(), rpc


@pytest.mark.parametrize("kind", FILTERS)
async def test_a_filter_finds_a_text_in_its_other_form_and_gives_it_back_as_sent(lot, way, kind):
    sent, looked_for = way
    make, rpc, fields = FILTERS[kind]
    request = SERVICES[rpc.partition(".")[0]].methods_by_name[rpc.partition(".")[2]].input_type
    narrowed = request.fields_by_name["filter"].message_type
    for field, stored in fields.items():
        here = lot.on(f"{lot.namespace}-{field}".replace("_", "-"))
        if stored == "signature":
            made = await make(here, error_message=f"{sent} failed")
            other = await make(here, error_message=f"{looked_for} failed")
            assert made.signature == other.signature
            continue
        extra = {"kind": 7} if stored.startswith("project") else {}
        extra |= {"status": 3} if stored == "error.type" else {}
        made = await make(here, **_nested(stored, _stored(stored, sent)), **extra)
        await make(here, **({"task": "u"} if kind in ("pattern", "episode") else {}))
        answer = await _rpc(here, rpc)(filter={field: _given(narrowed, field, looked_for)})
        [things] = [value for _, value in answer.ListFields() if hasattr(value, "__len__")]
        assert len(things) == 1, (kind, field)
        back = _at(things[0], stored)
        assert back == _at(made, stored)
        if stored == "language":  # it has one name, in lower case
            assert back == FORMS["NFC"].lower()
        else:
            assert back == _stored(stored, sent), (kind, field)


async def test_what_is_stored_once_is_so_in_any_form(lot, way):
    first, second = way
    one = await _pattern(lot, task=f"Do {first}")
    other = await lot.patterns.SavePattern(pattern={"task": f"Do {second}", "tags": [second]})
    assert (other.pattern.pattern_id, other.created) == (one.pattern_id, False)
    assert other.pattern.task == f"Do {first}"
    exact = {"dedupe": 1}
    memory = await lot.memories.CreateMemory(memory={"content": first}, **exact)
    again = await lot.memories.CreateMemory(memory={"content": second}, **exact)
    assert (again.created, again.memory.content) == (False, first)
    assert again.memory.memory_id == memory.memory.memory_id
    solved = await _solution(lot, error_message=f"{first} failed", resolution=first)
    same = await _solution(lot, error_message=f"{second} failed", resolution=second)
    assert same.error_solution_id == solved.error_solution_id


async def test_under_one_id_the_same_in_another_form_is_a_repeat(lot, way):
    first, second = way
    for word in (first, second):
        pattern = await lot.patterns.SavePattern(
            pattern={"task": word, "tags": [word], "metadata": {word: word}}, pattern_id="p"
        )
        memory = await lot.memories.CreateMemory(
            memory={"content": word, "labels": {"k": word}}, memory_id="m", request_id="r"
        )
        decision = await lot.learning.RecordDecision(
            decision={"context": word, "chosen_option": word}, decision_id="d"
        )
    assert not pattern.created
    assert pattern.pattern.task == decision.decision.context == first
    assert memory.memory.content == first


async def test_differences_are_told_of_what_differs_only(lot, way):
    first, second = way
    await _pattern(lot, task="t", approach=first, tags=[first], context="x")
    again = await lot.patterns.SavePattern(
        pattern={"task": "t", "approach": second, "tags": [second], "context": "y"}
    )
    assert [notice.field for notice in again.notices] == ["pattern.context"]


async def test_a_query_finds_and_counts_in_any_form(lot, way):
    first, second = way
    await _memory(lot, content=f"{first} is served")
    hits = [(await lot.memories.SearchMemories(query=query)).hits[0] for query in (first, second)]
    assert hits[0] == hits[1]
    pattern = await _pattern(lot, task=f"Serve {first}")
    for query in (first, second):
        await lot.patterns.RecordOutcome(pattern_ids=[pattern.pattern_id], query=query, outcome=1)
    found = [
        (await lot.patterns.RecallPatterns(query=query, explain=True)).hits[0]
        for query in (first, second)
    ]
    assert found[0] == found[1]


async def test_a_regular_expression_matches_in_any_form(lot, way):
    first, second = way
    await _pattern(lot, task="other words", kind=3, task_type_pattern=f"^{first}+$")
    hits = (await lot.patterns.RecallPatterns(query=second)).hits
    assert [hit.pattern.task_type_pattern for hit in hits] == [f"^{first}+$"]


async def test_errors_are_the_same_in_any_form(lot, way):
    first, second = way
    await _solution(lot, error_message=f"Exception: {first} broke at {first}.py:3")
    found = await lot.memories.FindErrorSolutions(
        error_message=f"Exception: {second} broke at {second}.py:3"
    )
    assert found.hits[0].match == 1  # EXACT_SIGNATURE
    assert not found.hits[0].differences


async def test_keys_are_the_same_in_any_form(lot, way):
    first, second = way
    await lot.memories.PutSessionValue(session_id="s", key=first, value=EMPTY)
    value = await lot.memories.GetSessionValue(session_id="s", key=second)
    assert value.value.string_value == "v"
    state = {"task_type": first}
    await lot.learning.RecordSteps(steps=[{"state": state, "action": first, "reward": 0.5}])
    await lot.learning.RecordSteps(
        steps=[{"state": {"task_type": second}, "action": second, "reward": 0.5}]
    )
    best = await lot.learning.ListActionValues(state={"task_type": second})
    assert [(one.action, one.visit_count) for one in best.action_values] == [(first, 2)]


async def test_sums_count_a_text_in_its_forms_together(lot, way):
    first, second = way
    await _pattern(lot, task="a", language=first)
    await _pattern(lot, task="b", language=second)
    stats = await lot.patterns.GetPatternStats()
    assert list(stats.by_language.values()) == [2]


async def test_an_edit_is_found_by_what_it_says_and_gives_that_back(lot, way):
    first, second = way
    made = await _pattern(lot, task="a", tags=["x", first])
    for word, other in ((second, first), (first, second)):
        edited = await lot.patterns.UpdatePattern(
            pattern_id=made.pattern_id, pattern={"tags": [word], "category": word}
        )
        assert list(edited.pattern.tags) == [word]
        [found] = (await lot.patterns.ListPatterns(filter={"categories": [other]})).patterns
        assert (list(found.tags), found.category) == ([word], word)


_MAPS: Final = [
    (name, place.path)
    for name in EXAMPLES
    for place in places(method_of(name).input_type)
    if place.path.endswith('["k"]')
]


def test_every_kind_of_map_is_there():
    names = {path.rpartition(".")[2].removesuffix('["k"]') for _, path in _MAPS}
    assert names == {"labels", "metrics", "values", "value_details", "vectors"}
    assert len(_MAPS) > 20


@pytest.mark.parametrize(("name", "path"), _MAPS)
async def test_a_key_of_a_map_in_two_forms_is_refused(lot, way, name, path):
    request = example(name, lot.namespace)
    found = request
    for part in path.removesuffix('["k"]').split("."):
        found = getattr(found, part.removesuffix("[0]"))
        if part.endswith("[0]"):
            found = found[0] if found else found.add()
    value = type(found["k"])
    found.clear()
    for key in way:
        if issubclass(value, Message):
            found[key].SetInParent()
        else:
            found[key] = value(1)
    failed = await failure(lot.raw(path_of(name))(request.SerializeToString(), timeout=30))
    assert failed.reason == "REQUEST_INVALID"
    named = {field.rpartition("[")[0]: rule for field, rule in failed.fields.items()}
    assert named[path.removesuffix('["k"]')] == "map.key.form"


async def test_a_text_of_a_list_in_two_forms_is_refused(lot, way):
    twice = ["a", *way]
    memory = {"content": "c", "tags": twice}
    calls = [
        ("memory.tags", lot.memories.CreateMemory(memory=memory)),
        ("items[0].memory.tags", lot.memories.BatchCreateMemories(items=[{"memory": memory}])),
        ("keys", lot.memories.ClearSession(session_id="s", keys=twice)),
    ]
    for field, call in calls:
        assert (await failure(call)).fields == {field: "repeated.unique"}


async def test_a_repeated_selection_finds_its_action_in_any_form(lot, way):
    state = {"task_type": "t"}
    chosen = [
        await lot.learning.SelectAction(state=state, actions=[{"name": word}], request_id="r")
        for word in way
    ]
    assert chosen[0].selection_id == chosen[1].selection_id
    assert [one.action.name for one in chosen] == list(way)
    step = {"selection_id": chosen[0].selection_id, "action": way[1], "reward": 0.5}
    moved = await lot.learning.RecordSteps(steps=[step])
    assert moved.action_values[0].visit_count == 1


async def test_an_action_in_two_forms_is_refused(lot, way):
    actions = [{"name": word} for word in way]
    choose = lot.learning.SelectAction(state={"task_type": "t"}, actions=actions)
    failed = await failure(choose)
    assert failed.fields == {"actions": "select_action.actions.unique"}
