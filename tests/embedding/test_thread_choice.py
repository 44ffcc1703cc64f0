"""One thread or several, whichever was faster lately."""

from __future__ import annotations

from lot_grpc.embedding.thread_choice import ThreadChoice


def chosen(choice: ThreadChoice, one: float, several: float, rounds: int = 512) -> list[bool]:
    """What it chooses for texts of 20 tokens that take so many seconds."""
    choices = []
    for _ in range(rounds):
        choices.append(choice.several())
        seconds = several if choices[-1] else one
        choice.record(several=choices[-1], seconds=seconds, tokens=20)
    return choices


def test_the_faster_way_is_taken_and_the_other_tried_now_and_then():
    for one, several in ((2.0, 1.0), (1.0, 2.0)):
        faster = [way == (several < one) for way in chosen(ThreadChoice(), one, several)]
        assert faster.count(False) in range(4, 9)
        assert False in faster[-128:], "it goes on trying"


def test_it_follows_when_the_other_way_becomes_faster():
    choice = ThreadChoice()
    chosen(choice, one=2.0, several=1.0)
    assert chosen(choice, one=2.0, several=3.0)[256:].count(True) <= 3
    assert chosen(choice, one=2.0, several=1.0)[256:].count(False) <= 3


def test_one_slow_text_changes_nothing():
    choice = ThreadChoice()
    chosen(choice, one=2.0, several=1.0)
    choice.record(several=True, seconds=100.0, tokens=20)
    assert chosen(choice, one=2.0, several=1.0).count(False) in range(3, 6)


def test_times_are_compared_by_token():
    choice = ThreadChoice()
    choice.several()
    choice.record(several=True, seconds=10.0, tokens=200)
    choice.several()
    choice.record(several=False, seconds=2.0, tokens=20)
    assert choice.several()


def test_a_trial_that_failed_is_made_again():
    choice = ThreadChoice()
    assert [choice.several() for _ in range(4)] == [True, False, False, False]
    choice.record(several=False, seconds=1.0, tokens=20)
    assert choice.several(), "there is nothing yet to compare it with"
