from __future__ import annotations

import pytest

from lot_grpc.domain.error_text.headline import looks_like_error

ERRORS = [
    "Fix ModuleNotFoundError: No module named 'yaml' in the importer",
    "Why do I get a KeyError when the port is missing?",
    "the build says npm ERR! code ELIFECYCLE\nnpm ERR! errno 1",
    "npm ERR! code ELIFECYCLE",
    "The service cannot start: connect ECONNREFUSED 127.0.0.1:5432",
    "make: *** [Makefile:3: all] Error 2",
    "gmake[2]: *** No rule to make target 'x'.  Stop.",
    "src/main.c:3:4: error: expected ';' before 'return'",
    "error[E0382]: borrow of moved value: `names`",
    "Get rid of TS2322 in the settings page",
    "deploy.sh: line 4: kubectl: command not found",
    "zsh: command not found: cargo",
    "cat: /etc/app.conf: No such file or directory",
    "The job panicked at src/main.rs:4:37",
    "panic: runtime error: index out of range [5] with length 3",
    "Traceback (most recent call last):\n  File 'x'",
    "pytest exited with code 2, find out why",
    "\x1b[31mTypeError\x1b[0m: x is not iterable",
    "Look at this log:\n" + 5000 * "fine\n" + "java.lang.IllegalStateException: no pool",
]
TASKS = [
    "",
    "Show an error page when the payment is refused",
    "Handle exceptions in the form",
    "Improve the error message: it should say what to do",
    "Add error handling to the API and write tests for it",
    "Log errors with their stack trace",
    "Fix the login bug",
    "Make the button that is not used grey",
    "Design the page for permission denied",
    "Exit with a code that scripts can read",
    "Add E2E tests for the shop",
    "Write a Terror story",
    f"Summarise:\n{'word ' * 20_000}",
]


@pytest.mark.parametrize("task", ERRORS)
def test_a_task_that_names_an_error_is_told(task):
    assert looks_like_error(task)


@pytest.mark.parametrize("task", TASKS)
def test_a_task_that_speaks_of_errors_in_general_names_none(task):
    assert not looks_like_error(task)


@pytest.mark.parametrize("piece", ["a", "A", "Aa_", "Error", "x:1", "a:1:1: ", "is not ", "\x1b["])
def test_a_task_of_64_kib_is_read_whatever_it_repeats(piece):
    assert not looks_like_error((piece * 65_536)[:65_536])
