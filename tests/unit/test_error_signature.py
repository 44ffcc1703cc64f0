from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.error_text.line import short_type
from tests.errors.reading import signature_of

PYTHON_TRACE = """Traceback (most recent call last):
  File "/srv/app/main.py", line 12, in <module>
    run()
  File "/srv/app/jobs.py", line 40, in run
    raise InvoiceLost(f"job {job} failed")
app.errors.InvoiceLost: job 17 failed
with more on another line"""

PYTHON_CHAIN = """Traceback (most recent call last):
  File "a.py", line 1, in f
    cache["k"]
KeyError: 'k'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 9, in g
    raise LookupError("no entry for k")
LookupError: no entry for k
"""

PYTHON_GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "x.py", line 3, in <module>
  |     raise group
  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "x.py", line 9, in f
    |     raise ValueError("bad port 70000")
    | ValueError: bad port 70000
    +------------------------------------
"""

NODE_TRACE = """/app/server.js:3
  config.load();
         ^

TypeError: config.load is not a function
    at Object.<anonymous> (/app/server.js:3:10)
    at Module._compile (node:internal/modules/cjs/loader:1376:14)
"""

NODE_CAUSE = """Error: could not start
    at start (/app/a.js:4:9) {
  [cause]: Error: connect ECONNREFUSED 10.0.0.7:6379
      at TCPConnectWrap.afterConnect (node:net:1595:16)
"""

NODE_MODULE = """node:internal/modules/cjs/loader:1143
  throw err;
  ^

Error: Cannot find module 'left-pad'
Require stack:
- /app/index.js
    at Module._resolveFilename (node:internal/modules/cjs/loader:1140:15)
"""

GO_PANIC = """panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.pick(...)
\t/src/main.go:8
main.main()
\t/src/main.go:12 +0x1d
exit status 2"""

RUST_PANIC = """thread 'main' panicked at src/main.rs:4:37:
called `Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound }
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"""

RUST_PANIC_OLD = (
    "thread 'main' panicked at 'index out of bounds: the len is 3 but the index is 9', a.rs:2:5"
)

RUSTC = """error[E0382]: borrow of moved value: `names`
 --> src/main.rs:5:20
  |
4 |     let taken = names;
"""

JAVA_TRACE = """Exception in thread "main" com.example.StartFailed: cannot start
\tat com.example.App.start(App.java:31)
Caused by: com.example.PoolError: no pool
\tat com.example.Pool.open(Pool.java:12)
Caused by: java.net.ConnectException: Connection refused
\tat java.base/sun.nio.ch.Net.pollConnect(Native Method)
\t... 14 more
"""

READ = [
    ("", PYTHON_TRACE, "InvoiceLost: job <number> failed"),
    ("", PYTHON_CHAIN, "LookupError: no entry for <name>"),
    ("", PYTHON_GROUP, "ValueError: bad port <number>"),
    ("", NODE_TRACE, "TypeError: <name> is not a function"),
    ("", NODE_CAUSE, "ECONNREFUSED: connect ECONNREFUSED <address>"),
    ("", NODE_MODULE, "Error: Cannot find module '<name>'"),
    ("", GO_PANIC, "panic: runtime error: index out of range [<number>] with length <number>"),
    ("", RUST_PANIC_OLD,
     "panic: index out of bounds: the len is <number> but the index is <number>"),
    ("", RUSTC, "E0382: borrow of moved value: '<name>'"),
    ("", JAVA_TRACE, "ConnectException: Connection refused"),
    ("", "bash: line 3: kubectl: command not found", "<name>: command not found"),
    ("", "cat: /etc/app.conf: No such file or directory", "<path>: No such file or directory"),
    ("", "./main.go:5:2: undefined: parse", "undefined: <name>"),
    ("", "src/a.ts(3,5): error TS2304: Cannot find name 'foo'.",
     "TS2304: Cannot find name '<name>'"),
    ("", "Error: ENOENT: no such file or directory, open '/a'",
     "ENOENT: no such file or directory, open '<name>'"),
    ("Error", "ENOENT: no such file or directory, open '/a'",
     "ENOENT: no such file or directory, open '<name>'"),
    ("TimeoutError", "TimeoutError", "TimeoutError"),
    ("app.InvoiceLost", "InvoiceLost: job 3", "InvoiceLost: job <number>"),
    ("OSError", "PermissionError: denied", "OSError: PermissionError: denied"),
    ("asyncio.exceptions.TimeoutError", "", "TimeoutError"),
    ("", " \n ", ""),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "message", "expected"), READ)
def test_the_line_that_says_what_went_wrong_is_the_signature(kind, message, expected):
    assert signature_of(kind, message) == expected


def test_rust_tells_what_it_unwrapped_on_the_next_line():
    assert signature_of("", RUST_PANIC).startswith("panic: called '<name>' on an")


ALIKE = [
    (("ModuleNotFoundError", "No module named 'yaml'"),
     ("", "ModuleNotFoundError: No module named 'cv2'")),
    (("", "dial tcp 127.0.0.1:5432: connect: connection refused"),
     ("", "dial tcp [::1]:6379: connect: connection refused")),
    (("", "Error: connect ECONNREFUSED 127.0.0.1:5432"),
     ("", "Error: connect ECONNREFUSED ::1:5432")),
    (("Error", "connect ECONNREFUSED 127.0.0.1:5432"),
     ("ECONNREFUSED", "Error: connect ECONNREFUSED ::1:5432")),
    (("", "Error: getaddrinfo ENOTFOUND db.internal"), ("", "getaddrinfo ENOTFOUND cache")),
    (("", "Error: spawn ffmpeg ENOENT"), ("Error", "spawn git ENOENT")),
    (("", "timed out after 30 seconds"), ("", "timed out after 1.5s")),
    (("", "timed out after 500ms"), ("", "timed out after 2 minutes")),
    (("", "cannot open /a/b/c.txt"), ("", "cannot open C:\\Users\\me\\x.txt")),
    (("", "cannot open ./a.py:12:3"), ("", "cannot open ../b/c/d.py:9:1")),
    (("", "needs pydantic>=2.1.0, found 1.10.13"), ("", "needs pydantic>=3.0, found 2.9")),
    (("", "object at 0x7f3a12bc"), ("", "object at 0x1")),
    (("", "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 is unknown"),
     ("", "commit 1a2b3c4 is unknown")),
    (("", "run 6f1c2a9e-1111-4222-8333-123456789abc is gone"),
     ("", "run 00000000-aaaa-bbbb-cccc-0123456789ab is gone")),
    (("", "GET https://a.example/x?y=1 failed"), ("", "GET http://localhost:8080/ failed")),
    (("", "2026-01-02T03:04:05Z it broke"), ("", "2031-12-31 23:59:59,123 it broke")),
    (("java.net.ConnectException", "Connection refused"),
     ("ConnectException", "Connection refused")),
    (("", "com.acme.Foo@1b6d3586 is closed"), ("", "org.other.deep.Bar@7ab2 is closed")),
    (("", "\x1b[31mTypeError: x is not defined\x1b[0m"), ("", "TypeError: y is not defined")),
    (("E0382", "borrow of moved value: `a`"), ("", RUSTC)),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_differs_from_case_to_case_does_not_count(one, other):
    assert signature_of(*one) == signature_of(*other)


DIFFERENT = [
    (("TypeError", "x failed"), ("ValueError", "x failed")),
    (("", "AttributeError: 'NoneType' object has no attribute 'a'"),
     ("", "AttributeError: 'dict' object has no attribute 'a'")),
    (("", "Cannot read properties of undefined (reading 'a')"),
     ("", "Cannot read properties of null (reading 'a')")),
    (("", "OSError: [Errno 111] refused"), ("", "OSError: [Errno 110] refused")),
    (("", "request failed with status 404"), ("", "request failed with status 500")),
    (("", "error[E0382]: use of moved value: `x`"), ("", "error[E0505]: use of moved value: `x`")),
    (("", "Type 'string' is not assignable to type 'number'"),
     ("", "Type 'string' is not assignable to type 'boolean'")),
    (("", "Build failed:\nno space left"), ("", "Build failed:\nbad syntax")),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_says_which_error_it_is_counts(one, other):
    assert signature_of(*one) != signature_of(*other)


letters = string.ascii_letters + string.digits + "_-"
names = st.text(letters, min_size=1, max_size=30).filter(
    lambda name: name.casefold() not in {"nil", "none", "nonetype", "null", "undefined"}
)
numbers = st.integers(0, 10**9)


@given(names, names, numbers, numbers, numbers)
def test_any_name_line_or_port_has_the_same_signature(one, other, line, port, count):
    def message(name: str, n: int, m: int) -> str:
        where = f"/srv/{name}/x.py:{n} of 10.0.0.1:{m % 65536}"
        return f'no entry "{name}" at {where}, tried {n} times'

    assert signature_of("", message(one, line, port)) == signature_of("", message(other, count, 1))


@given(st.text(max_size=300), st.text(max_size=2000))
def test_a_signature_is_one_short_line_of_every_message(kind, message):
    made = signature_of(kind, message)
    assert len(made) < 450 + len(short_type(kind))
    assert made == signature_of(kind, message)


@given(
    st.sampled_from([PYTHON_TRACE, NODE_TRACE, GO_PANIC, RUSTC, JAVA_TRACE]), st.integers(1, 500)
)
def test_the_depth_of_a_trace_does_not_count(trace, depth):
    lines = trace.splitlines()
    frame = next(n for n, line in enumerate(lines) if re.match(r"\s+(at |File |/src|-->)", line))
    deeper = [*lines[: frame + 1], *[lines[frame]] * depth, *lines[frame + 1 :]]
    assert signature_of("", "\n".join(deeper)) == signature_of("", trace)


@pytest.mark.parametrize(
    "piece",
    ["'", "a.", "a/", "/", "-", "1.", "deadbeef", "\n\tat ", "a\n", "a: ", " error: ", "Error", "[",
     "::", "a::", "a-", "`", "\x1b[", "thread 'main' panicked at '", "Caused by: ", "x 'y", "\\",
     "Traceback (most recent call last):\n", "a.b.C", "1-", "::1", "@a"],
)  # fmt: skip
def test_a_message_of_64_kib_is_read_whatever_it_repeats(piece):
    message = (piece * (65536 // len(piece)))[:65535] + "!"
    assert len(signature_of("", message)) < 450


def test_the_cause_at_the_very_end_of_a_long_trace_is_found():
    frames = "\tat com.example.Deep.call(Deep.java:1)\n" * 1500
    message = f"a.B: outer\n{frames}Caused by: java.io.IOException: disk is gone\n{frames[:400]}"
    assert signature_of("", message) == "IOException: disk is gone"


def test_of_a_long_signature_the_end_still_counts():
    long = "word and " * 60
    assert signature_of("", f"{long}one") != signature_of("", f"{long}two")
