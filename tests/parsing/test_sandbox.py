"""No text costs the server memory or time without bound, whatever becomes of who parses it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lot_grpc.domain.errors import LimitExceededError, OverloadedError
from lot_grpc.parsing import sandbox
from lot_grpc.parsing.code import parse_code
from lot_grpc.parsing.interface import LANGUAGES
from lot_grpc.parsing.sandbox import Sandbox
from tests.parsing.samples import SAMPLES

LONG = "".join(f"x{n} = f(a, b) + g[{n}]\n" for n in range(160_000))


@pytest.fixture
def box():
    box = Sandbox()
    yield box
    box.close()


@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_sandbox_gives_what_the_parser_gives(language):
    code = SAMPLES[language] + "\n(" + SAMPLES[language]
    assert await sandbox.SANDBOX.parse(code, language) == parse_code(code, language)


@pytest.mark.parametrize("unit", ["A<", "a.b<", "A<A<"])
async def test_what_takes_too_much_memory_is_refused(unit, monkeypatch):
    monkeypatch.setattr(sandbox, "MAX_MEMORY_BYTES", 128 * 2**20)
    with pytest.raises(LimitExceededError, match=r"128 MiB of memory .* send it in smaller parts"):
        await sandbox.SANDBOX.parse(unit * 20_000, "java")
    assert await sandbox.SANDBOX.parse(SAMPLES["java"], "java")


async def test_what_takes_too_much_time_is_refused(monkeypatch):
    monkeypatch.setattr(sandbox, "MAX_CPU_SECONDS", 1)
    with pytest.raises(LimitExceededError, match=r"1 s of CPU time .* smaller parts"):
        await sandbox.SANDBOX.parse(LONG, "python")


async def test_a_limit_of_the_parser_arrives_with_its_figures():
    with pytest.raises(LimitExceededError, match="more than 2,000 pieces") as raised:
        await sandbox.SANDBOX.parse("def f(): pass\n" * 2_001, "python")
    assert raised.value.metadata == {"limit": "2000", "given": "more than 2000"}


async def test_a_fault_of_the_parser_names_its_place_and_not_the_code(box):
    with pytest.raises(RuntimeError, match="KeyError at") as raised:
        await box.parse("secret = 1", "cobol")
    assert "secret" not in str(raised.value)
    assert await box.parse("def f(): pass", "python")


async def test_a_helper_that_was_killed_is_started_again(box):
    await box.parse("x = 1", "python")
    os.kill(box._helper.pid, signal.SIGKILL)
    box._helper.wait()
    assert (await box.parse("def f(): pass", "python")).pieces


async def test_a_helper_that_is_ended_at_work_does_not_finish_it_and_says_to_repeat(box):
    await box.parse("x = 1", "python")
    while _children(box._helper.pid):
        await asyncio.sleep(0.001)
    work = asyncio.ensure_future(box.parse(LONG, "python"))
    while not _children(box._helper.pid):
        await asyncio.sleep(0.001)
    box.close()  # the text and all
    with pytest.raises(OverloadedError, match="retry") as raised:
        await work
    assert raised.value.metadata == {"limit": "1 parser process"}


async def test_a_helper_that_cannot_start_is_an_overload(box, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(OverloadedError, match=r"cannot start.*retry later") as raised:
        await box.parse("x = 1", "python")
    assert raised.value.metadata == {"limit": "1 parser process"}


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_the_helper_has_no_files_of_the_server_and_stays_when_the_group_is_stopped(
    box, tmp_path
):
    with (tmp_path / "lock").open("w"):
        await box.parse("x = 1", "python")
        held = {str(one.readlink()) for one in Path(f"/proc/{box._helper.pid}/fd").iterdir()}
    assert len(held) == 3
    assert all(one.startswith("pipe:") or one == "/dev/null" for one in held)
    pid = box._helper.pid
    assert os.getpgid(pid) != os.getpgid(0)  # Ctrl-C in a terminal is for the server
    os.kill(pid, signal.SIGTERM)
    await box.parse("x = 1", "python")
    assert box._helper.pid == pid


_PARENT = """\
import asyncio, sys
from lot_grpc.parsing.sandbox import SANDBOX
asyncio.run(SANDBOX.parse("x = 1", "python"))
print(SANDBOX._helper.pid, flush=True)
sys.stdin.read()
"""


def test_the_helper_ends_when_its_server_is_killed():
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert _alive(pid)
        parent.kill()
        parent.wait()
        while _alive(pid):  # the test's own time limit ends this
            os.sched_yield()


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def parsed_hostile(seeds: int, size: int, *languages: str) -> None:
    """Any text is parsed or refused, within the memory that the limit allows."""
    command = [sys.executable, "-m", "tests.parsing.hostile", str(seeds), str(size), *languages]
    done = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    assert sum(done["came"].values()) == seeds * len(languages)
    assert done["server_mib"] < 200
    assert done["child_mib"] < 600


def test_a_sample_of_hostile_texts_is_parsed_or_refused():
    parsed_hostile(3, 4_000, *LANGUAGES)


@pytest.mark.exhaustive
@pytest.mark.parametrize("language", LANGUAGES)
def test_hostile_texts_are_parsed_or_refused(language):
    parsed_hostile(20, 60_000, language)
