"""A recorder and its process: the end of the interpreter, and forks."""

import os
import subprocess
import sys
import textwrap

import grpc
import pytest
from lot_client import LotClient, LotError
from scripted import Scripted, ends


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_end_of_the_interpreter_waits_for_open_recorders(server: Scripted):
    code = """
        import os
        from lot_client import LotClient
        recorder = LotClient(os.environ["LOT_ADDRESS"]).recorder("A task", max_delay=30.0)
        recorder.__enter__()
        for n in range(250):
            recorder.record("step", {"n": n})
    """
    done = run_python(code, LOT_ADDRESS=server.address)

    assert (done.returncode, done.stderr) == (0, "")
    assert [event.data["n"] for event in server.stored] == list(range(250))
    assert server.ends == []


def test_the_end_of_the_interpreter_does_not_wait_for_ever(server: Scripted):
    server.answering += [ends(grpc.StatusCode.UNAVAILABLE)] * 10_000
    code = """
        import os
        from lot_client import LotClient
        client = LotClient(os.environ["LOT_ADDRESS"])
        recorder = client.recorder("A task", atexit_timeout=0.2)
        recorder.__enter__()
        recorder.record("step")
    """
    done = run_python(code, LOT_ADDRESS=server.address)

    assert done.returncode == 0
    assert "was not recorded to its end: DEADLINE_EXCEEDED" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_is_refused_and_harms_nothing(server: Scripted):
    code = """
        import os, sys
        from lot_client import LotClient, LotError
        with LotClient(os.environ["LOT_ADDRESS"]) as client:
            with client.recorder("A task") as recorder:
                recorder.record("parent")
                child = os.fork()
                if not child:
                    said = ""
                    try:
                        recorder.record("child")
                    except LotError as error:
                        said = str(error)
                    os._exit(0 if "belongs to the parent" in said else 1)
                assert os.waitpid(child, 0)[1] == 0
                recorder.record("parent")
    """
    done = run_python(code, LOT_ADDRESS=server.address)

    assert done.returncode == 0, done.stderr
    assert [event.event_type for event in server.stored] == ["parent", "parent"]
    assert len(server.ends) == 1


def test_a_recorder_records_once_and_within_its_block(server: Scripted):
    with LotClient(server.address) as client:
        recorder = client.recorder("A task")
        with pytest.raises(LotError, match="within its `with` block"):
            recorder.record("step")
        with recorder:
            assert recorder.state == "RECORDING"
        with pytest.raises(LotError, match="within its `with` block"):
            recorder.record("step")
        with pytest.raises(ValueError, match="records once"):
            recorder.__enter__()
