from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lot_grpc.domain import errors
from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.episode import EpisodeEnd, EpisodeError, EpisodeStatus
from lot_grpc.pb.lot.v1 import error_reason_pb2

CLASSES = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, errors.LotError)
]
CONTRACT = Path(__file__).parents[2] / "proto" / "lot" / "v1" / "error_reason.proto"
REASONS = {value.name for value in error_reason_pb2.ErrorReason.DESCRIPTOR.values}
ABSTRACT = {errors.LotError, errors.NotFoundError, errors.InUseError}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_that_callers_meet_has_a_reason_of_the_contract(cls):
    if cls in ABSTRACT or issubclass(cls, errors.StartupError):
        return
    assert f"ERROR_REASON_{cls.reason}" in REASONS


class Documented(NamedTuple):
    """The metadata of a reason. ``named``: all keys of which the comment speaks."""

    shown: frozenset[str]
    absent: frozenset[str]
    named: frozenset[str]


def documented() -> dict[str, Documented]:
    """What the contract says about the metadata of each reason."""
    found = {}
    for comment, name in re.findall(
        r"((?:^  //.*\n)+)  ERROR_REASON_(\w+) = \d+;", CONTRACT.read_text(), re.MULTILINE
    ):
        sample = "".join(re.findall(r"^  // {5}(.*)\n", comment, re.MULTILINE))
        prose = " ".join(re.findall(r"^  // (\S.*)\n", comment, re.MULTILINE))
        shown = frozenset(json.loads(sample)["metadata"]) if sample else frozenset()
        absent = frozenset(re.findall(r"`(\w+)` is absent", prose))
        found[name] = Documented(shown, absent, shown | frozenset(re.findall(r"`(\w+)`", prose)))
    return found


DOCUMENTED = documented()
EXAMPLES: dict[str, Any] = {
    "bool": True, "float": 1.0, "int": 1, "object": 1, "str": "x",
    "Sequence[str]": ["x"],
    "Sequence[Violation]": [errors.Violation("field", "rule", "must be b")],
}  # fmt: skip


def example(cls: type[errors.LotError]) -> errors.LotError:
    """An error with nothing but what its constructor requires."""
    parameters = list(inspect.signature(cls).parameters.values())
    required = [
        one
        for one in parameters
        if one.default is one.empty and one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    positional = [one for one in required if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    named = [one for one in required if one.kind is inspect.Parameter.KEYWORD_ONLY]
    return cls(
        *(EXAMPLES[one.annotation] for one in positional),
        **{one.name: EXAMPLES[one.annotation] for one in named},
    )


@pytest.mark.parametrize(
    "cls",
    [cls for cls in CLASSES if cls not in ABSTRACT and cls.reason in DOCUMENTED],
    ids=lambda cls: cls.__name__,
)
def test_every_error_has_the_metadata_that_the_contract_promises(cls):
    given = frozenset(example(cls).metadata)
    promised = DOCUMENTED[cls.reason]
    assert given >= promised.shown - promised.absent
    assert given <= promised.named, "not documented"


def test_a_key_is_absent_only_where_another_error_has_the_same_reason():
    for name, promised in DOCUMENTED.items():
        classes = [cls for cls in CLASSES if cls.reason == name and cls not in ABSTRACT]
        always = [frozenset(example(cls).metadata) for cls in classes]
        for key in promised.absent & promised.shown:
            assert any(key in keys for keys in always), (name, key)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (errors.RetrievalNotFoundError("n", "r", "send query as well, or instead"), "send query"),
        (errors.PatternIdInUseError("n", "p"), "use another ID, or UpdatePattern"),
        (errors.RequestIdReusedError("r", "SavePattern"), "use a new request_id"),
        (errors.EtagMismatchError("pattern", "p", "1", "2"), "read it again and repeat the edit"),
        (errors.ContentionError("pattern", "p"), "retry"),
        (errors.WriterReplacedError("e"), "reopen with REPLACE only if"),
        (errors.EventSequenceGapError("e", 4, 7), "resend from 4"),
        (errors.EventConflictError("e", 4), "append a new one"),
        (errors.StorageFullError(2**20, 2**22, "/x"), "free some space"),
        (errors.CompactOfflineOnlyError("edge"), "run `lot-grpc compact`"),
        (errors.EpisodeStreamOpenError("e", "close it first"), "close it first"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_the_sentence_says_what_to_do(error, advice):
    assert advice in error.message
    assert str(error) == error.message


def test_what_varies_in_a_sentence_stands_in_the_fields_too():
    gap = errors.EventSequenceGapError("e-1", 4, 7)
    assert gap.metadata == {"episode_id": "e-1", "expected": "4", "given": "7"}
    etag = errors.EtagMismatchError("pattern", "p", "1", "2")
    assert etag.metadata == {"id": "p", "given": "1", "current": "2"}
    missing = errors.PatternNotFoundError("ns", "p-1")
    assert missing.metadata == {"namespace": "ns", "id": "p-1"}
    assert missing.message == "no pattern 'p-1' in namespace 'ns'"


def test_the_folder_of_a_full_disk_is_not_told_to_callers():
    assert "/secret" not in errors.StorageFullError(1, 2, "/secret").message


def test_all_violations_are_kept_and_the_first_one_is_said():
    error = errors.RequestInvalidError(
        [errors.Violation("a", "r", "must be b"), errors.Violation("c", "r", "must be d")]
    )
    assert error.message == "a: must be b (and 1 more)"
    assert [violation.field for violation in error.violations] == ["a", "c"]


def test_an_error_belongs_to_a_failed_end_only():
    error = EpisodeError("TimeoutError", "too late")
    EpisodeEnd(EpisodeStatus.FAILED, error=error).check()
    with pytest.raises(errors.RequestInvalidError, match="only allowed with status FAILED"):
        EpisodeEnd(EpisodeStatus.SUCCEEDED, error=error).check()


def test_abandoned_is_no_end():
    assert [status.ended for status in EpisodeStatus] == [False, True, True, False]
    assert [level.value for level in Complexity] == ["low", "medium", "high"]
