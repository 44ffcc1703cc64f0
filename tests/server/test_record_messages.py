from __future__ import annotations

from google.protobuf.struct_pb2 import Value

from lot_grpc.ports import Record
from lot_grpc.server.codec.record_messages import RecordMessages


class Made:
    """Makes messages of a size, and counts them."""

    def __init__(self, size: int = 10) -> None:
        self.size = size
        self.count = 0

    def __call__(self) -> Value:
        self.count += 1
        return Value(string_value=f"{self.count}".ljust(self.size))


def record(point: str = "a", **payload: object) -> Record:
    return Record(point, "n", {"task": "sort", **payload})


def test_an_equal_record_has_the_message_made_before() -> None:
    messages, made = RecordMessages(), Made()
    first = messages.of(record(tags=["x"]), made)
    assert messages.of(record(tags=["x"]), made) == first
    assert made.count == 1


def test_a_changed_record_gets_a_new_message() -> None:
    messages, made = RecordMessages(), Made()
    before = messages.of(record(usage_count=1), made)
    after = messages.of(record(usage_count=2), made)
    assert Value.FromString(before) != Value.FromString(after)
    assert messages.of(record(usage_count=2), made) == after
    assert messages.of(record(), made) not in (before, after)


def test_the_least_recently_used_is_dropped_when_the_limit_is_reached() -> None:
    messages, made = RecordMessages(limit=9_000), Made()
    for point in ("a", "b", "a", *map(str, range(7)), "a"):
        messages.of(record(point), made)
    assert made.count == 9
    messages.of(record("b"), made)
    assert made.count == 10


def test_the_bytes_of_replaced_and_dropped_messages_are_free_again() -> None:
    messages, made = RecordMessages(limit=11_000), Made(size=1_000)
    for number in range(100):
        messages.of(record("a", number=number), made)
        messages.of(record("b"), made)
    assert made.count == 101


def test_a_large_message_is_not_kept() -> None:
    messages, made = RecordMessages(), Made(size=20_000)
    assert messages.of(record(), made) != messages.of(record(), made)
