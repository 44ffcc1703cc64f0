"""The parts of the soak that are fast: journals, the schedule, memory, counts, the log."""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import UTC, datetime
from operator import attrgetter

import pytest

from tests.soak import content, memory
from tests.soak.books import asked, recorded, told
from tests.soak.chaos import SERVERS_UNTIL, schedule
from tests.soak.children import logged_errors
from tests.soak.journal import Entry, Journal, faults, read
from tests.soak.memory import Sample
from tests.soak.tally import Tally
from tests.soak.verdict import Verdict


def test_a_journal_gives_back_what_was_written(tmp_path):
    journal = Journal(tmp_path / "a.journal")
    journal.write("sent", episode="e", n=1)
    journal.bad("a fault")
    again = Journal(tmp_path / "a.journal")
    assert again.entries == [
        {"kind": "sent", "episode": "e", "n": 1},
        {"kind": "bad", "what": "a fault"},
    ]
    assert faults(again.entries) == ["a fault"]


def test_a_torn_line_is_cut_off_and_costs_no_other(tmp_path):
    path = tmp_path / "a.journal"
    Journal(path).write("sent", n=1)
    with path.open("ab") as file:
        file.write(b'{"kind": "se')
    assert read(path) == [{"kind": "sent", "n": 1}]
    Journal(path).write("sent", n=2)
    assert [entry["n"] for entry in read(path)] == [1, 2]


def test_a_broken_line_in_the_middle_is_told(tmp_path):
    path = tmp_path / "a.journal"
    path.write_bytes(b'{"kind": "se\n{"kind": "sent"}\n')
    with pytest.raises(ValueError):
        read(path)


def test_an_agent_finds_in_its_journal_where_it_was():
    entries: list[Entry] = [
        {"kind": "begin", "episode": "e-1", "count": 3},
        {"kind": "sent", "episode": "e-1", "n": 3},
        {"kind": "acked", "episode": "e-1", "n": 3},
        {"kind": "ending", "episode": "e-1"},
        {"kind": "ended", "episode": "e-1"},
        {"kind": "begin", "episode": "e-2", "count": 9},
        {"kind": "sent", "episode": "e-2", "n": 5},
        {"kind": "kept", "episode": "e-2", "n": 4},
        {"kind": "acked", "episode": "e-2", "n": 2},
    ]
    first, second = recorded(entries).values()
    assert (first.state, first.acked) == ("ended", 3)
    assert (second.count, second.sent, second.kept, second.acked) == (9, 5, 4, 2)
    assert second.state == "open"


def test_a_request_is_in_doubt_until_it_is_acknowledged():
    entries: list[Entry] = [
        {"kind": "ask", "id": name, "what": "save", "fields": {}} for name in ("a", "b", "c")
    ]
    entries += [{"kind": "ack", "id": "a", "answer": {"x": 1}}, {"kind": "doubt", "id": "b"}]
    asks = asked(entries)
    assert [ask.answer for ask in asks.values()] == [{"x": 1}, None, None]
    assert [ask.settled for ask in asks.values()] == [True, True, False]


def test_changes_keep_their_order():
    entry = {
        "kind": "change",
        "type": "STORED",
        "resource_kind": "PATTERN",
        "version": 0,
        "cursor": "c",
    }
    assert [one.id for one in told([entry | {"id": "b"}, entry | {"id": "a"}])] == ["b", "a"]


@pytest.mark.parametrize("seconds", [30, 60, 600])
def test_a_schedule_follows_from_its_seed_and_spares_the_server_later(seconds):
    blows = schedule(7, seconds)
    assert blows == schedule(7, seconds) != schedule(8, seconds)
    assert all(0 <= blow.at < seconds for blow in blows)
    of_server = [blow for blow in blows if "server" in blow.action]
    assert {blow.action for blow in of_server} == {"stop server", "kill server"}
    assert all(blow.at <= SERVERS_UNTIL * seconds for blow in of_server)


def test_blows_are_as_dense_in_the_third_quarter_as_in_the_fourth():
    third: Counter[str] = Counter()
    fourth: Counter[str] = Counter()
    for seed in range(20):
        for blow in schedule(seed, 600):
            if blow.at >= 300:
                (third if blow.at < 450 else fourth)[blow.action] += 1
    for action in ("cut", "stall", "kill client"):
        assert 0.9 < third[action] / fourth[action] < 1.1


def test_growth_compares_the_medians_of_the_last_two_quarters():
    sizes = [999 if at < 50 else 100 if at < 75 else 104 for at in range(100)]
    sizes[80] = 5000  # one moment does not count
    samples = [Sample(at, size, 2 * size) for at, size in enumerate(sizes)]
    assert memory.growth(samples, 100, attrgetter("resident")) == pytest.approx(0.04)
    assert memory.growth(samples, 100, attrgetter("anonymous")) == pytest.approx(0.04)
    with pytest.raises(ValueError):
        memory.growth(samples[:70], 100, attrgetter("resident"))


def test_growth_of_either_kind_is_judged_but_the_warm_up_of_a_short_run():
    assert memory.grown_too_much({"resident": 0.05, "anonymous": 0.05}, 600) == []
    assert len(memory.grown_too_much({"resident": 0.06, "anonymous": 0.06}, 600)) == 2
    [wrong] = memory.grown_too_much({"resident": 0.06, "anonymous": 0.06}, 60)
    assert wrong.startswith("resident memory grew by 6.0%")


def test_memory_of_a_process_is_told_and_of_none_is_not():
    mine = memory.sample(os.getpid(), 3.0)
    assert mine is not None
    assert mine.at == 3.0
    assert mine.resident >= mine.anonymous >= 0
    assert mine.resident > 2**20
    assert memory.sample(2**22 + 1, 0.0) is None


def test_an_event_follows_from_its_name_and_number():
    assert content.event("e", 1) == content.event("e", 1)
    digests = {content.event_digest(name, n) for name in ("a", "b") for n in range(1, 50)}
    assert len(digests) == 98


def test_numbers_of_a_struct_are_doubles():
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert content.digest("t", {"n": 1}, at) == content.digest("t", {"n": 1.0}, at)
    assert content.digest("t", {"n": 1}, at) != content.digest("t", {"n": 2}, at)


def test_a_tally_counts_each_acknowledgement_once_while_journals_grow(tmp_path):
    tally = Tally()
    journal = Journal(tmp_path / "a.journal")
    journal.write("acked", episode="e", n=3)
    tally.read(tmp_path)
    journal.write("acked", episode="e", n=3)
    journal.write("acked", episode="e", n=5)
    journal.write("ask", id="o", what="outcome", fields={})
    tally.read(tmp_path)
    assert (tally.counts["events"], tally.counts["outcomes"]) == (5, 0)
    journal.write("ack", id="o", answer={})
    journal.write("ended", episode="e")
    tally.read(tmp_path)
    tally.read(tmp_path)
    assert (tally.counts["outcomes"], tally.counts["episodes"]) == (1, 1)


def test_errors_in_the_log_of_the_server_are_found():
    fine = json.dumps({"level": "info", "event": "an error is only spoken of"})
    bad = json.dumps({"level": "error", "event": "it broke"})
    text = "\n".join([fine, bad, "Traceback (most recent call last):", "  File …", fine])
    assert logged_errors(text) == [bad, "Traceback (most recent call last):"]
    assert logged_errors(fine) == []


def test_the_last_line_tells_all_counts_and_what_is_wrong_first():
    verdict = Verdict({"events": 1234, "cuts": 5}, {"resident": 0.0123}, seed=7, seconds=61.4)
    told = "events 1,234 · cuts 5 · resident memory +1.2% · seed 7 · 61 s · "
    assert verdict.line == told + "OK"
    verdict.wrong = ["agent-0 ended with 1:\nTraceback", "another"]
    assert verdict.line == told + "WRONG (2): agent-0 ended with 1:"
