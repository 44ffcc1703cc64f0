"""Errors as tools print them: one as it was stored, and one like it at another place.

Written for the tests in the forms of the tools, none copied. Paths, lines, names, versions, times
and the rest of the log differ between the two; the error is the same.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """``stored`` and ``asked`` are the same error; ``name`` tells the tool."""

    name: str
    stored: str
    asked: str

    def __str__(self) -> str:
        return self.name


def pytest_failure(test: str, line: int, module: str, fails: int) -> str:
    return f"""============================= test session starts ==============================
platform linux -- Python 3.11.{line % 9}, pytest-8.{line % 4}.0, pluggy-1.5.0
rootdir: /home/{module}/work
collected {fails + 11} items

tests/{module}/test_{test}.py .....F..                                     [100%]

=================================== FAILURES ===================================
_________________________ test_{test}_is_kept __________________________

    def test_{test}_is_kept():
        {module} = load("{test}")
>       assert {module}["{test}"] == {line}

tests/{module}/test_{test}.py:{line}:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

self = <{module}.Store object at 0x7f{line:06x}>, key = '{test}'

    def __getitem__(self, key):
>       return self.values[key]
E       KeyError: '{test}'

src/{module}/store.py:{line + 3}: KeyError
=========================== short test summary info ============================
FAILED tests/{module}/test_{test}.py::test_{test}_is_kept - KeyError: '{test}'
========================= {fails} failed, 11 passed in 0.{line}s =========================
"""


def pytest_assertion(test: str, line: int) -> str:
    return f"""=================================== FAILURES ===================================
______________________________ test_{test} ______________________________

    def test_{test}():
>       assert total({line}) == {line + 1}
E       assert {line} == {line + 1}
E        +  where {line} = total({line})

tests/test_{test}.py:{line}: AssertionError
=========================== short test summary info ============================
FAILED tests/test_{test}.py::test_{test} - assert {line} == {line + 1}
============================== 1 failed in 0.{line}s ===============================
"""


def pytest_collecting(module: str, path: str) -> str:
    return f"""==================================== ERRORS ====================================
___________________ ERROR collecting tests/{path}/test_it.py ____________________
ImportError while importing test module '/srv/{path}/tests/test_it.py'.
Hint: make sure your test modules/packages have valid Python names.
Traceback:
/usr/lib/python3.11/importlib/__init__.py:126: in import_module
    return _bootstrap._gcd_import(name[level:], package, level)
tests/{path}/test_it.py:3: in <module>
    import {module}
E   ModuleNotFoundError: No module named '{module}'
=========================== short test summary info ============================
ERROR tests/{path}/test_it.py
!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!
"""


def cargo_build(name: str, file: str, line: int) -> str:
    return f"""   Compiling libc v0.2.{line}
   Compiling {name} v0.{line}.0 (/home/dev/{name})
warning: unused variable: `{name}_count`
 --> src/{file}.rs:{line + 40}:9
  |
{line + 40} |     let {name}_count = 3;
  |         ^^^^^^^^^^^^ help: if this is intentional, prefix it with an underscore
  |
  = note: `#[warn(unused_variables)]` on by default

error[E0382]: borrow of moved value: `{name}`
 --> src/{file}.rs:{line}:20
  |
{line - 1} |     let {name} = vec![{line}];
  |         ---- move occurs because `{name}` has type `Vec<i32>`
{line} |     drop({name}); println!("{{:?}}", {name});
  |                                    ^^^^ value borrowed here after move

For more information about this error, try `rustc --explain E0382`.
warning: `{name}` (bin "{name}") generated 1 warning
error: could not compile `{name}` (bin "{name}") due to 1 previous error; 1 warning emitted
"""


def cargo_plain(name: str, line: int) -> str:
    return f"""error: linking with `cc` failed: exit status: 1
  |
  = note: LC_ALL="C" PATH="/usr/bin" "cc" "-m64" "/tmp/rustc{name}/symbols.o"
  = note: /usr/bin/ld: cannot find -l{name}: No such file or directory
          collect2: error: ld returned 1 exit status

error: could not compile `{name}` (lib) due to {line} previous errors
"""


def cargo_test(name: str, line: int) -> str:
    return f"""running 3 tests
test tests::{name}_is_added ... FAILED
test tests::other ... ok

failures:

---- tests::{name}_is_added stdout ----

thread 'tests::{name}_is_added' panicked at src/{name}.rs:{line}:9:
assertion `left == right` failed
  left: {line}
 right: {line + 2}
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace


failures:
    tests::{name}_is_added

test result: FAILED. 2 passed; 1 failed; 0 ignored; finished in 0.{line}s
"""


def go_test(name: str, line: int) -> str:
    return f"""=== RUN   Test{name}
    {name.lower()}_test.go:{line}: open /data/{name}.json: no such file or directory
--- FAIL: Test{name} (0.{line}s)
FAIL
FAIL\tgithub.com/acme/{name.lower()}\t0.{line}s
FAIL
"""


def go_test_panic(name: str, line: int) -> str:
    return f"""=== RUN   Test{name}
--- FAIL: Test{name} (0.00s)
panic: runtime error: invalid memory address or nil pointer dereference [recovered]
\tpanic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x{line:x} pc=0x5{line:05x}]

goroutine {line} [running]:
testing.tRunner.func1.2({{0x52{line:04x}, 0x65{line:04x}}})
\t/usr/local/go/src/testing/testing.go:1631 +0x24a
github.com/acme/{name.lower()}.Test{name}(0xc00{line:07x})
\t/home/dev/{name.lower()}/{name.lower()}_test.go:{line} +0x1d
FAIL\tgithub.com/acme/{name.lower()}\t0.{line}s
FAIL
"""


def go_build(name: str, line: int) -> str:
    return f"""# github.com/acme/{name}
./{name}.go:{line}:{line % 7 + 2}: undefined: parse{name.title()}
./{name}.go:{line + 9}:2: too many errors
"""


def go_unused(name: str, line: int) -> str:
    return f"""# github.com/acme/{name}/cmd
cmd/{name}.go:{line}:5: declared and not used: {name}Count
"""


def go_module(name: str, line: int) -> str:
    return (
        f"main.go:{line}:2: no required module provides package github.com/acme/{name}; "
        f"to add it:\n\tgo get github.com/acme/{name}\n"
    )


def maven(package: str, line: int, test: str) -> str:
    return f"""[INFO] Scanning for projects...
[INFO] -----------------------< com.acme:{package} >------------------------
[INFO] Building {package} 1.{line}.0
[INFO] Running com.acme.{package}.{test}Test
[ERROR] Tests run: {line}, Failures: 0, Errors: 1, Skipped: 0, Time elapsed: 0.{line} s <<< ERROR!
[ERROR] com.acme.{package}.{test}Test.opens -- Time elapsed: 0.{line} s <<< ERROR!
com.acme.{package}.PoolException: no pool for {test}
\tat com.acme.{package}.Pool.open(Pool.java:{line})
\tat com.acme.{package}.{test}Test.opens({test}Test.java:{line + 4})
\tat java.base/java.lang.reflect.Method.invoke(Method.java:580)
Caused by: java.net.ConnectException: Connection refused
\tat java.base/sun.nio.ch.Net.pollConnect(Native Method)
\tat java.base/sun.nio.ch.Net.pollConnectNow(Net.java:{line + 600})
\t... {line} more

[INFO] Results:
[ERROR] Errors:
[ERROR]   {test}Test.opens:{line + 4} » Pool no pool for {test}
[INFO] ------------------------------------------------------------------------
[INFO] BUILD FAILURE
[INFO] ------------------------------------------------------------------------
[INFO] Total time:  {line}.3 s
[ERROR] Failed to execute goal org.apache.maven.plugins:maven-surefire-plugin:3.2.5:test
"""


def maven_compile(package: str, line: int, symbol: str) -> str:
    return f"""[INFO] Scanning for projects...
[INFO] Compiling {line} source files with javac [debug release 17] to target/classes
[INFO] -------------------------------------------------------------
[ERROR] COMPILATION ERROR :
[INFO] -------------------------------------------------------------
[ERROR] /home/{package}/src/com/acme/{symbol}s.java:[{line},{line % 40}] cannot find symbol
  symbol:   class {symbol}
  location: class com.acme.{package}.{symbol}s
[INFO] 1 error
[INFO] BUILD FAILURE
[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.11.0:compile
"""


def javac(name: str, line: int) -> str:
    return f"""src/{name}.java:{line}: error: incompatible types: String cannot be converted to int
        int {name.lower()} = "{line}";
              ^
1 error
"""


def java_main(thread: str, name: str, line: int) -> str:
    return f"""Exception in thread "{thread}" java.lang.NullPointerException: Cannot invoke \
"String.length()" because "{name}" is null
\tat com.acme.{name.title()}.main({name.title()}.java:{line})
"""


def node(module: str, line: int, version: str) -> str:
    return f"""node:internal/modules/cjs/loader:{line + 1000}
  throw err;
  ^

Error: Cannot find module '{module}'
Require stack:
- /srv/{module}/app/index.js
    at Module._resolveFilename (node:internal/modules/cjs/loader:{line + 990}:15)
    at Object.<anonymous> (/srv/{module}/app/index.js:{line}:14) {{
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/srv/{module}/app/index.js' ]
}}

Node.js v{version}
"""


def node_property(name: str, line: int, version: str) -> str:
    return f"""/srv/app/{name}.js:{line}
  return user.{name}.length;
                    ^

TypeError: Cannot read properties of undefined (reading '{name}')
    at load (/srv/app/{name}.js:{line}:21)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)

Node.js v{version}
"""


def tsc(name: str, line: int) -> str:
    return (
        f"src/{name}/index.ts({line},{line % 9 + 3}): error TS2339: Property '{name}Of' does not "
        f"exist on type '{name.title()}'.\nsrc/{name}/index.ts({line + 4},5): error TS7006: "
        f"Parameter '{name}' implicitly has an 'any' type.\n"
    )


def tsc_pretty(name: str, line: int) -> str:
    return (
        f"\x1b[96msrc/{name}.ts\x1b[0m:\x1b[93m{line}\x1b[0m:\x1b[93m7\x1b[0m - "
        f"\x1b[91merror\x1b[0m\x1b[90m TS2339: \x1b[0mProperty '{name}Of' does not exist on type "
        f"'{name.title()}'.\n\n\x1b[7m{line}\x1b[0m   {name}.{name}Of()\n\x1b[7m  \x1b[0m\x1b[91m"
        f"     ~~~~~~\x1b[0m\n\n\nFound 1 error in src/{name}.ts\x1b[90m:{line}\x1b[0m\n"
    )


def jest(name: str, line: int) -> str:
    return f""" FAIL  src/{name}/{name}.test.ts
  ● {name} - is loaded

    TypeError: {name}.load is not a function

      {line - 1} |   it("is loaded", async () => {{
    > {line} |     await {name}.load();
         |                ^
      {line + 1} |   }});

      at Object.<anonymous> (src/{name}/{name}.test.ts:{line}:16)

Test Suites: 1 failed, {line} passed, {line + 1} total
Tests:       1 failed, {line} passed, {line + 1} total
Time:        {line}.234 s
"""


def jest_expect(name: str, line: int) -> str:
    return f"""FAIL src/{name}.test.js
  ● {name} - adds

    expect(received).toBe(expected) // Object.is equality

    Expected: {line}
    Received: {line + 7}

      at Object.toBe (src/{name}.test.js:{line}:20)

Tests:       1 failed, 1 total
"""


def npm(name: str, version: str) -> str:
    return f"""npm ERR! code ERESOLVE
npm ERR! ERESOLVE unable to resolve dependency tree
npm ERR!
npm ERR! While resolving: {name}@{version}
npm ERR! Found: react@{version}
npm ERR! A complete log of this run can be found in:
npm ERR!     /home/{name}/.npm/_logs/2026-01-02T03_04_05_678Z-debug-0.log
"""


def make(name: str, line: int) -> str:
    return f"""gcc -O2 -c {name}.c -o {name}.o
{name}.c: In function 'main':
{name}.c:{line}:5: error: 'total_{name}' undeclared (first use in this function)
   {line} |     total_{name} = 1;
      |     ^~~~~~~~~~~
make[1]: *** [Makefile:{line}: {name}.o] Error 1
make[1]: Leaving directory '/home/dev/{name}'
make: *** [Makefile:{line + 2}: all] Error 2
"""


def python_trace(module: str, line: int, user: str) -> str:
    return f"""Traceback (most recent call last):
  File "/home/{user}/app/main.py", line {line}, in <module>
    run()
  File "/home/{user}/app/{module}.py", line {line + 30}, in run
    with open("/etc/{module}.conf") as file:
         ^^^^^^^^^^^^^^^^^^^^^^^^^^^
FileNotFoundError: [Errno 2] No such file or directory: '/etc/{module}.conf'
"""


def python_chain(module: str, line: int) -> str:
    return f"""Traceback (most recent call last):
  File "/srv/{module}/db.py", line {line}, in connect
    sock = socket.create_connection(("10.0.0.{line}", 5432))
ConnectionRefusedError: [Errno 111] Connection refused

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/{module}/app.py", line {line + 7}, in <module>
    main()
sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) connection to server at \
"10.0.0.{line}", port 5432 failed: Connection refused
"""


def python_syntax(module: str, line: int) -> str:
    return f"""  File "/srv/{module}/{module}.py", line {line}
    def {module}(:
         {" " * len(module)}^
SyntaxError: invalid syntax
"""


def pip(package: str, version: str) -> str:
    return f"""Collecting requests
  Downloading requests-2.31.0-py3-none-any.whl (62 kB)
ERROR: Could not find a version that satisfies the requirement {package}=={version} (from \
versions: 0.1, {version}rc1)
ERROR: No matching distribution found for {package}=={version}
"""


def docker(name: str, step: int) -> str:
    return f"""#{step} [{step}/9] RUN make {name}
#{step} 0.{step}12 make: *** No rule to make target '{name}'.  Stop.
#{step} ERROR: process "/bin/sh -c make {name}" did not complete successfully: exit code: 2
"""


PRINTED = [
    Printed("pytest", pytest_failure("port", 31, "shop", 1), pytest_failure("host", 7, "blog", 2)),
    Printed("pytest assertion", pytest_assertion("sum", 31), pytest_assertion("total", 7)),
    Printed("pytest collecting", pytest_collecting("yaml", "a"), pytest_collecting("cv2", "b/c")),
    Printed("python trace", python_trace("shop", 3, "me"), python_trace("blog", 44, "you")),
    Printed("python chain", python_chain("shop", 3), python_chain("blog", 44)),
    Printed("python syntax", python_syntax("shop", 3), python_syntax("blog", 44)),
    Printed("pip", pip("shoplib", "1.2.3"), pip("blog-lib", "4.0.1")),
    Printed("cargo build", cargo_build("names", "main", 5), cargo_build("totals", "lib", 77)),
    Printed("cargo linking", cargo_plain("ssl", 2), cargo_plain("sqlite3", 3)),
    Printed("cargo test", cargo_test("total", 12), cargo_test("name", 90)),
    Printed("go test", go_test("Load", 12), go_test("Store", 90)),
    Printed("go test panic", go_test_panic("Load", 12), go_test_panic("Store", 90)),
    Printed("go build", go_build("load", 12), go_build("store", 90)),
    Printed("go unused", go_unused("load", 12), go_unused("store", 90)),
    Printed("go module", go_module("load", 12), go_module("store", 90)),
    Printed("maven", maven("shop", 12, "Order"), maven("blog", 90, "Post")),
    Printed(
        "maven compile", maven_compile("shop", 12, "Order"), maven_compile("blog", 90, "Post")
    ),
    Printed("javac", javac("Order", 12), javac("Post", 90)),
    Printed("java", java_main("main", "order", 12), java_main("pool-1", "post", 90)),
    Printed("node", node("left-pad", 12, "20.1.0"), node("express", 90, "22.9.1")),
    Printed(
        "node property", node_property("name", 12, "20.1.0"), node_property("items", 9, "22.9.1")
    ),
    Printed("tsc", tsc("shop", 12), tsc("blog", 90)),
    Printed("tsc pretty", tsc_pretty("shop", 12), tsc_pretty("blog", 90)),
    Printed("tsc either way", tsc("shop", 12), tsc_pretty("blog", 90)),
    Printed("jest", jest("shop", 12), jest("blog", 90)),
    Printed("jest expect", jest_expect("shop", 12), jest_expect("blog", 90)),
    Printed("npm", npm("shop", "1.2.3"), npm("blog", "4.0.1")),
    Printed("make", make("shop", 12), make("blog", 90)),
    Printed("docker", docker("shop", 5), docker("blog", 7)),
    Printed("bash", "bash: kubectl: command not found", "bash: line 12: helm: command not found"),
    Printed("bash script", "./deploy.sh: line 3: jq: command not found",
            "/opt/run.sh: line 71: yq: command not found"),
    Printed("zsh", "zsh: command not found: cargo", "zsh: command not found: rustc"),
    Printed("sh", "sh: 1: node: not found", "sh: 4: tsc: not found"),
    Printed("dash script", "./build.sh: 3: cmake: not found", "run.sh: 12: ninja: not found"),
    Printed("permission", "bash: ./deploy.sh: Permission denied",
            "bash: /opt/tools/run.sh: Permission denied"),
    Printed("mkdir", "mkdir: cannot create directory '/data': Permission denied",
            "mkdir: cannot create directory '/srv/x': Permission denied"),
    Printed("cp", "cp: cannot stat 'a.txt': No such file or directory",
            "cp: cannot stat '/etc/b.conf': No such file or directory"),
    Printed("git", "fatal: pathspec 'a.txt' did not match any files",
            "fatal: pathspec 'src/b' did not match any files"),
]  # fmt: skip

MISSING = {
    "python": "ModuleNotFoundError: No module named '{}'",
    "python trace": "Traceback (most recent call last):\n"
    '  File "/srv/{0}/x.py", line 3, in <module>\n'
    "    import {0}\nModuleNotFoundError: No module named '{0}'\n",
    "node": "Error: Cannot find module '{}'",
    "go": "main.go:3:2: no required module provides package github.com/x/{}; to add it:",
    "bash": "bash: line 1: {}: command not found",
    "rust": "error[E0432]: unresolved import `{}`",
    "java": "error: package {} does not exist",
}
"""Errors that name what is missing; the fix of one is not that of another."""
