"""The spill file by itself: what it gives back, what it cuts, what it leaves behind."""

import random
from collections import deque
from pathlib import Path

import pytest
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent
from lot_client.recorder_spill import Spill, SpillOwner

OWNER = SpillOwner("a", "e-1")


def event(sequence: int, size: int = 10) -> bytes:
    return EpisodeEvent(sequence=sequence, event_type="x" * size).SerializeToString()


def fill(path: Path, count: int) -> None:
    spill = Spill(path, 10**6)
    spill.begin(OWNER)
    for sequence in range(1, count + 1):
        spill.append(event(sequence))
    spill.close()


def left(spill: Spill) -> list[int]:
    found, place = [], spill.start
    while place < spill.end:
        data, place = spill.read(place)
        found.append(EpisodeEvent.FromString(data).sequence)
    return found


def test_a_later_one_reads_what_was_left(tmp_path: Path):
    fill(tmp_path / "spill", 3)
    spill = Spill(tmp_path / "spill", 10**6)

    assert spill.owner == OWNER
    assert (spill.count, spill.first_sequence, spill.last_sequence) == (3, 1, 3)
    assert left(spill) == [1, 2, 3]
    assert spill.torn_bytes == 0


def test_every_torn_end_is_cut_with_a_count(tmp_path: Path):
    path = tmp_path / "spill"
    fill(path, 3)
    whole = path.read_bytes()
    two = len(whole) - len(event(3)) - 8
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        spill = Spill(path, 10**6)
        assert spill.count <= 2
        assert left(spill) == list(range(1, spill.count + 1))
        assert path.stat().st_size == size - spill.torn_bytes
        assert spill.count == 2 if size >= two else spill.count < 2
        spill.close()


def test_a_damaged_event_ends_the_file(tmp_path: Path):
    path = tmp_path / "spill"
    fill(path, 3)
    damaged = bytearray(path.read_bytes())
    damaged[-len(event(3)) - 9] ^= 1  # in the second event
    path.write_bytes(damaged)
    spill = Spill(path, 10**6)

    assert left(spill) == [1]
    assert spill.torn_bytes == 2 * (len(event(2)) + 8)


def test_a_file_of_another_kind_is_left_alone(tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("my notes")
    with pytest.raises(ValueError, match="not a spill file"):
        Spill(path, 10**6)

    assert path.read_text() == "my notes"


def test_it_reads_in_order_within_bounds_however_it_is_released(tmp_path: Path):
    """A queue beside it says what has to come back."""
    path = tmp_path / "spill"
    most = 20_000
    for seed in range(20):
        dice = random.Random(seed)
        spill = Spill(path, most)
        spill.begin(OWNER)
        waiting: deque[tuple[int, int]] = deque()
        place, sequence = spill.start, 0
        for _ in range(2000):
            if dice.random() < 0.6:
                position = spill.append(event(sequence + 1, dice.randrange(1, 250)))
                if position is not None:
                    sequence += 1
                    waiting.append((sequence, position))
                else:
                    assert waiting
            elif waiting:
                for _ in range(dice.randrange(1, 1 + len(waiting))):
                    number, position = waiting.popleft()
                    data, place = spill.read(place)
                    assert EpisodeEvent.FromString(data).sequence == number
                    assert place == position
                spill.release(place)
            assert path.stat().st_size <= most
        spill.close()
        again = Spill(path, most)
        numbers = [number for number, _ in waiting]
        assert left(again)[again.count - len(numbers) :] == numbers
        assert sequence > 400  # many times what the file holds
        again.begin(OWNER)
        again.close()
