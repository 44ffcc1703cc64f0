"""The table of errors: it holds what error_reason.proto promises, and statuses stay small."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from google.rpc import error_details_pb2

from lot_grpc.domain import errors
from lot_grpc.domain.errors import LotError, RequestInvalidError, Violation
from lot_grpc.pb.lot.v1 import error_reason_pb2
from lot_grpc.server.status import TABLE, cut, internal_status, to_status

PROTO = Path(__file__).parents[2] / "proto" / "lot" / "v1" / "error_reason.proto"


def promised() -> dict[str, str]:
    """The comment of each reason, in one line."""
    text = PROTO.read_text(encoding="utf-8")
    found = re.findall(r"((?:^ *//.*\n)+) *ERROR_REASON_(\w+) = \d+;", text, re.MULTILINE)
    return {
        name: " ".join(line.strip(" /") for line in comment.splitlines()) for comment, name in found
    }


PROMISED = promised()


def details_of(status: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in status.details:
        message = getattr(error_details_pb2, each.type_url.rpartition(".")[2])()
        assert each.Unpack(message)
        found[type(message).__name__] = message
    return found


def test_every_reason_of_the_contract_has_a_row_and_no_row_is_beside_it():
    names = {name.removeprefix("ERROR_REASON_") for name in error_reason_pb2.ErrorReason.keys()}  # noqa: SIM118
    assert set(TABLE) == names - {"UNSPECIFIED"}
    assert set(TABLE) <= set(PROMISED)


@pytest.mark.parametrize("reason", sorted(TABLE))
def test_code_and_retry_are_what_the_comment_of_the_reason_says(reason):
    comment = PROMISED[reason]
    match = re.search(r"Code ([A-Z_]+)", comment)
    assert match, f"no code in the comment of {reason}"
    assert TABLE[reason].code.name == match[1]
    assert (TABLE[reason].retry_seconds > 0) == ("RetryInfo" in comment)


def test_every_error_class_that_a_call_can_raise_has_a_row():
    for kind in vars(errors).values():
        if (
            isinstance(kind, type)
            and issubclass(kind, LotError)
            and not issubclass(kind, errors.StartupError)
        ):
            assert kind.reason in TABLE, kind


def test_a_missing_thing_is_named_as_a_resource():
    status = to_status(errors.PatternNotFoundError("team", "p-1", "it may have expired"))
    found = details_of(status)
    info = found["ErrorInfo"]
    assert (info.reason, info.domain) == ("PATTERN_NOT_FOUND", "lot.v1")
    assert dict(info.metadata) == {"namespace": "team", "id": "p-1"}
    resource = found["ResourceInfo"]
    assert (resource.resource_type, resource.resource_name) == ("lot.v1.Pattern", "p-1")


def test_a_taken_id_is_named_as_a_resource():
    found = details_of(to_status(errors.EpisodeIdInUseError("default", "e-1")))
    assert found["ResourceInfo"].resource_type == "lot.v1.Episode"


def test_a_failed_precondition_says_of_what():
    status = to_status(errors.EventSequenceGapError("e-1", 7, 9))
    violation = details_of(status)["PreconditionFailure"].violations[0]
    assert (violation.type, violation.subject) == ("EVENT_SEQUENCE_GAP", "e-1")
    assert details_of(status)["ErrorInfo"].metadata["expected"] == "7"


def test_retry_delay_is_given_where_waiting_helps():
    delay = details_of(to_status(errors.OverloadedError("full", limit=1)))["RetryInfo"].retry_delay
    assert delay.ToMilliseconds() == 1000
    assert "RetryInfo" not in details_of(
        to_status(errors.EtagMismatchError("pattern", "p", "1", "2"))
    )


def test_violations_are_capped_in_number_and_all_are_counted():
    status = to_status(RequestInvalidError([Violation(f"f[{i}]", "r", "bad") for i in range(25)]))
    found = details_of(status)
    assert len(found["BadRequest"].field_violations) == 20
    assert found["ErrorInfo"].metadata["violations"] == "25"
    first = found["BadRequest"].field_violations[0]
    assert (first.field, first.description, first.reason) == ("f[0]", "bad", "r")
    assert status.message == "f[0]: bad (and 24 more)"


def test_violations_are_capped_in_size():
    long = [Violation("é" * 500, "rule", "x" * 500) for _ in range(20)]
    status = to_status(RequestInvalidError(long))
    found = details_of(status)["BadRequest"]
    assert 5 < len(found.field_violations) < 20
    assert found.ByteSize() <= 4096
    assert details_of(status)["ErrorInfo"].metadata["violations"] == "20"


@pytest.mark.parametrize("text", ["x", "é", "語", "🎉", "%", "\0", "\udcff"])
def test_a_status_stays_below_6_kb_whatever_it_carries(text):
    huge = text * 100_000
    statuses = [
        to_status(RequestInvalidError([Violation(huge, huge, huge)] * 1000)),
        to_status(errors.PatternNotFoundError(huge, huge)),
        to_status(errors.EpisodeEndedError(huge, huge, huge)),
        to_status(LotError("INTERNAL", **{f"key{i}" * 99: huge for i in range(99)})),
    ]
    for status in statuses:
        assert status.ByteSize() < 6000
        assert 0 < len(status.message.encode()) <= 900


def test_cut_keeps_whole_characters():
    assert cut("abc", 12) == "abc"
    assert cut("é" * 10, 20) == "é" * 10
    assert cut("é" * 11, 20) == "é" * 8 + "…"


def test_a_reason_outside_the_contract_is_no_status():
    error = errors.StoreLockedError("another process has it")
    with pytest.raises(KeyError):
        to_status(error)


def test_an_internal_error_says_only_its_call_id():
    status = internal_status("c0ffee")
    assert "c0ffee" in status.message
    assert dict(details_of(status)["ErrorInfo"].metadata) == {"call_id": "c0ffee"}
