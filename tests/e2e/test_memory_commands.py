"""`lot-grpc recall`, `patterns`, `stats`, `errors` and `context` on a real server."""

from __future__ import annotations

import json
import re
import subprocess

from google.protobuf.json_format import ParseDict

from lot_grpc.pb.lot.v1 import (
    error_solution_pb2,
    pattern_pb2,
    pattern_service_pb2,
    task_context_pb2,
)
from lot_grpc.pb.lot.v1.outcome_pb2 import OUTCOME_FAILURE, OUTCOME_SUCCESS
from tests.e2e.process import PATIENCE, command, environment, run
from tests.e2e.test_live_commands import NASTY, Calls, steering


def save(calls: Calls, pattern_id: str, task: str, **fields) -> None:
    request = pattern_service_pb2.SavePatternRequest(
        namespace=calls.namespace,
        pattern_id=pattern_id,
        pattern=pattern_pb2.Pattern(task=task, **fields),
    )
    calls.patterns.SavePattern(request, timeout=PATIENCE)


def use(calls: Calls, pattern_id: str, outcome) -> None:
    request = pattern_service_pb2.RecordOutcomeRequest(
        namespace=calls.namespace, pattern_ids=[pattern_id], outcome=outcome, query="fetch a page"
    )
    calls.patterns.RecordOutcome(request, timeout=PATIENCE)


def solve(calls: Calls, solution_id: str, message: str, **fields) -> None:
    request = error_solution_pb2.SaveErrorSolutionRequest(
        namespace=calls.namespace,
        error_solution_id=solution_id,
        error_solution=error_solution_pb2.ErrorSolution(error_message=message, **fields),
    )
    calls.memories.SaveErrorSolution(request, timeout=PATIENCE)


def test_patterns_are_found_listed_shown_and_counted(running, data):
    calls = Calls(running.address, "for-the-patterns")
    save(calls, "retry", "retry a failed HTTP request with backoff", language="python")
    save(calls, "cake", NASTY, language="go", category="kitchen")
    save(
        calls, "code", "fetch a web page", language="python",
        kind=pattern_pb2.PATTERN_KIND_CODE, code="def fetch():\n\treturn get()\n",
    )  # fmt: skip
    for outcome in (OUTCOME_SUCCESS, OUTCOME_FAILURE):
        use(calls, "retry", outcome)
    asked = ("-a", running.address, "-n", calls.namespace)

    found = run(data, "recall", "send the request again when it fails", *asked)
    assert (found.code, found.stderr) == (0, "")
    assert steering(found.stdout) == []
    first = next(line for line in found.stdout.splitlines() if re.match(r" *0\.\d\d", line))
    assert re.fullmatch(
        r" *0\.\d\d +0\.\d\d +0\.70 +2 +task +python +retry +retry a .*backo\S* *", first
    )
    assert re.search(r"1\.00 +not used yet +task +go +cake +wipe\\x1b\[2J it", found.stdout)

    ids = json.loads(run(data, "recall", "x y", "--kind", "code", "--json", *asked).stdout)["hits"]
    assert [one["pattern"]["pattern_id"] for one in ids] == ["code"]
    explained = run(data, "recall", "request", "--language", "py", "--explain", *asked).stdout
    assert re.search(r"matching +2 of 3 patterns", explained)
    assert re.search(r"languages +excludes 1", explained)
    assert re.search(r"retry +score 0\.\d+ = 0\.\d+ · 0\.\d+ similarity \+", explained)
    nothing = run(data, "recall", "request", "--language", "cobol", *asked)
    assert (nothing.code, nothing.stdout) == (0, "No patterns match.\n")

    def listed(*options: str) -> list[str]:
        lines = run(data, "patterns", "--json", *options, *asked).stdout.splitlines()
        return [ParseDict(json.loads(line), pattern_pb2.Pattern()).pattern_id for line in lines]

    assert listed() == ["code", "cake", "retry"]
    assert listed("--limit", "2") == ["code", "cake"]
    assert listed("--all", "--language", "py") == ["code", "retry"]
    assert listed("--min-usage", "1") == listed("--min-success-rate", "0.1", "-l", "9")[2:]
    shown = run(data, "patterns", "retry", *asked).stdout
    assert re.search(r"outcomes +1 of 2 worked, 1 failed; rate 0\.70; reliability 0\.\d\d", shown)
    assert re.search(r"failure +\S+ +fetch a page *\n.*success +\S+ +fetch a page", shown)
    code = run(data, "patterns", "code", *asked).stdout
    assert code.endswith("\ndef fetch():\n    return get()\n")
    missing = run(data, "patterns", "nobody", *asked)
    assert (missing.code, missing.stdout) == (1, "")
    assert "NOT_FOUND PATTERN_NOT_FOUND: " in missing.stderr

    stats = run(data, "stats", *asked)
    assert (stats.code, stats.stderr) == (0, "")
    assert re.search(r"count +3, 1 used, 2 not used yet", stats.stdout)
    assert re.search(r"uses +2: 1 worked, 0 in part, 1 failed \(50\.0%\)", stats.stdout)
    assert re.search(r"^ *2 +1 +0\.700 +2 +50\.0% +python", stats.stdout, re.MULTILINE)
    assert re.search(r"^ *1 +0 +0 +kitchen", stats.stdout, re.MULTILINE)
    assert re.search(r"store +edge, .* free", stats.stdout)


def test_what_fixed_an_error_is_found(running, data):
    calls = Calls(running.address, "for-the-errors")
    solve(
        calls, "yaml", "ModuleNotFoundError: No module named 'yaml'",
        resolution="pip install PyYAML", language="python",
    )  # fmt: skip
    solve(
        calls, "pil", "ModuleNotFoundError: No module named 'PIL'",
        steps=["pip install Pillow", NASTY], language="python",
    )  # fmt: skip
    solve(
        calls, "no", "ModuleNotFoundError: No module named 'PIL'",
        resolution="pip install PIL", worked=False, language="python",
    )  # fmt: skip
    log = "".join(f"collected item {n}\n" for n in range(5000))
    asked = ("errors", "-", "-a", running.address, "-n", calls.namespace)
    done = subprocess.run(
        command(*asked),
        input=f"{log}\x1b[31mModuleNotFoundError\x1b[0m: No module named 'PIL'\n",
        env=environment(data),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert re.match(r"note: searching for only the last 65,\d+ of [\d,]+ bytes", done.stderr)
    assert steering(done.stdout) == []
    helped, apart = done.stdout.split("Tried without success")
    assert re.search(r"steps +1\. pip install Pillow +\n +2\. wipe\\x1b\[2J it", helped)
    assert helped.index("pip install Pillow") < helped.index("pip install PyYAML")
    assert re.search(r"differs +name PIL here, yaml there", helped)
    assert re.search(r"tried +pip install PIL +\n", apart)

    line = ("errors", "No module named 'yaml'", "--type", "ModuleNotFoundError", "--json")
    [told] = run(data, *line, *asked[2:]).stdout.splitlines()
    answer = ParseDict(json.loads(told), error_solution_pb2.FindErrorSolutionsResponse())
    assert answer.hits[0].error_solution.error_solution_id == "yaml"
    none = run(data, "errors", "boom", "--language", "cobol", *asked[2:])
    assert (none.code, none.stdout) == (0, "No known solution.\n")


def test_what_is_known_of_a_task_is_told(running, data):
    calls = Calls(running.address, "for-the-context")
    save(calls, "retry", "retry a failed HTTP request with backoff", language="python")
    error = "ModuleNotFoundError: No module named 'yaml'"
    solve(calls, "yaml", error, resolution="pip install PyYAML")
    asked = ("-a", running.address, "-n", calls.namespace)
    task = f"retry the HTTP request; {error}"
    told = run(data, "context", task, *asked)
    assert (told.code, told.stderr) == (0, "")
    assert "retry a failed HTTP request with backoff" in told.stdout
    assert "pip install PyYAML" in told.stdout
    [line] = run(data, "context", task, "--json", *asked).stdout.splitlines()
    answer = ParseDict(json.loads(line), task_context_pb2.GetTaskContextResponse())
    assert answer.prompt_text.rstrip("\n") == told.stdout.rstrip("\n")
    assert [hit.pattern.pattern_id for hit in answer.patterns] == ["retry"]
    short = run(data, "context", task, "--max-tokens", "60", *asked)
    assert short.code == 0
    assert len(short.stdout) < len(told.stdout)
    assert "raise --max-tokens" in short.stderr
    missing = run(data, "context", "--task-id", "nobody", *asked)
    assert (missing.code, missing.stdout) == (1, "")
    assert "NOT_FOUND EPISODE_NOT_FOUND: " in missing.stderr
