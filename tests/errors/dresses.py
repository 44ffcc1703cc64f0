"""What surrounds, precedes and rewrites the lines of an error on its way to whoever reads it.

A dress makes a text of an error and leaves what tells the error readable; None where it cannot
(a cut would take the line away). Those in ``HELD`` are for judging only.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tests.errors.cases import Text

Dress = Callable[[Text], str | None]
_START = datetime(2026, 3, 3, 10, 11, 12, tzinfo=UTC)


def _time(n: int, step: float = 0.137) -> datetime:
    return _START + timedelta(seconds=round(n * step, 3))


def _stamp(n: int, digits: int = 7) -> str:
    fraction = f"{(1_234_567_89 + n * 137_000_111) % 10**9:09}"[:digits]
    return f"{_time(n):%Y-%m-%dT%H:%M:%S}.{fraction}Z"


def _each(of: Callable[[int], str], after: str = "") -> Dress:
    """A prefix to every line, made of its number."""
    return lambda text: "".join(f"{of(n)}{line}{after}\n" for n, line in enumerate(text.lines))


def _around(before: str, behind: str = "") -> Dress:
    return lambda text: f"{before}{text}{behind}"


def _both(inner: Dress, outer: Dress) -> Dress:
    def dressed(text: Text) -> str | None:
        made = inner(text)
        return None if made is None else outer(Text(tuple(made.splitlines())))

    return dressed


# --- what runners and log collectors put before lines -------------------------------------------


def _compose_mixed(text: Text) -> str:
    made = ["Attaching to api-1, db-1"]
    for n, line in enumerate(text.lines):
        made.append(f"api-1  | {line}")
        if n % 3 == 1:
            made.append(f"db-1   | {_time(n):%Y-%m-%d %H:%M:%S} UTC [{27 + n}] LOG:  checkpoint ok")
    return "\n".join([*made, "api-1 exited with code 1"])


def _github(text: Text) -> str:
    lines = [
        "##[group]Run make check", "make check", "shell: /usr/bin/bash -e {0}", "##[endgroup]",
        *text.lines, "##[error]Process completed with exit code 1.",
    ]  # fmt: skip
    return "".join(f"{_stamp(n)} {line}\n" for n, line in enumerate(lines))


def _github_marked(text: Text) -> str:
    lines = [f"##[error]{line}" if n in text.telling else line for n, line in enumerate(text.lines)]
    lines = ["##[group]Run make check", "##[endgroup]", *lines]
    lines.append("##[error]Process completed with exit code 2.")
    return "".join(f"{_stamp(n)} {line}\n" for n, line in enumerate(lines))


def _github_cli(text: Text) -> str:
    lines = [*text.lines, "##[error]Process completed with exit code 1."]
    return "".join(f"build\tRun checks\t{_stamp(n)} {line}\n" for n, line in enumerate(lines))


def _jenkins(text: Text) -> str:
    before = ["Started by timer", "Running on agent-3 in /var/jenkins/workspace/nightly"]
    before += ["[Pipeline] stage", "[Pipeline] { (Build)", "[Pipeline] sh", "+ make check"]
    behind = ["[Pipeline] }", "[Pipeline] // stage", "[Pipeline] End of Pipeline"]
    behind += ["ERROR: script returned exit code 1", "Finished: FAILURE"]
    return "".join(
        f"[{_stamp(n, 3)}] {line}\n" for n, line in enumerate([*before, *text.lines, *behind])
    )


def _gitlab(text: Text) -> str:
    before = [
        "\x1b[0KRunning with gitlab-runner 17.5.0 (1b2c3d4e)\x1b[0;m",
        "section_start:1772532672:step_script\r\x1b[0K\x1b[0K\x1b[36;1mExecuting step_script"
        "\x1b[0;m\x1b[0;m",
        "\x1b[32;1m$ make check\x1b[0;m",
    ]
    behind = [
        "section_end:1772532699:step_script\r\x1b[0K\x1b[0K\x1b[36;1mCleaning up\x1b[0;m\x1b[0;m",
        "\x1b[31;1mERROR: Job failed: exit code 1\x1b[0;m",
    ]
    return "\n".join([*before, *text.lines, *behind])


def _gitlab_times(text: Text) -> str:
    lines = ["$ make check", *text.lines, "ERROR: Job failed: exit code 1"]
    return "".join(f"{_stamp(n, 6)} 01O {line}\n" for n, line in enumerate(lines))


def _azure(text: Text) -> str:
    lines = ["##[section]Starting: Check", "Task         : Command line", "Version      : 2.250.1"]
    lines += ["Generating script.", "========== Starting Command Output ==========", *text.lines]
    lines += ["##[error]Bash exited with code '1'.", "##[section]Finishing: Check"]
    return "".join(f"{_stamp(n)} {line}\n" for n, line in enumerate(lines))


def _buildkit(text: Text) -> str:
    made = ["#11 [6/8] COPY . .", "#11 DONE 0.1s", "", "#12 [7/8] RUN make check"]
    made += [f"#12 {0.4 + n * 0.07:.3f} {line}".rstrip() for n, line in enumerate(text.lines)]
    made.append('#12 ERROR: process "/bin/sh -c make check" did not complete successfully: exit '
                "code: 1")  # fmt: skip
    made += ["------", " > [7/8] RUN make check:"]
    made += [f"{0.4 + n * 0.07:.3f} {line}".rstrip() for n, line in enumerate(text.lines)][-10:]
    made += ["------", "Dockerfile:14", "--------------------", "  13 |     COPY . ."]
    made += ["  14 | >>> RUN make check", "  15 |     EXPOSE 8080", "--------------------"]
    made.append('ERROR: failed to solve: process "/bin/sh -c make check" did not complete '
                "successfully: exit code: 1")  # fmt: skip
    return "\n".join(made)


def _mail(text: Text) -> str:
    quoted = "".join(f">> {line}\n" for line in text.lines)
    return f"On Tue, 3 Mar 2026 at 10:11, Ines Roth wrote:\n> It fails like this:\n>\n{quoted}"


PREFIXES: dict[str, Dress] = {
    "compose": _each(lambda _: "api-1  | "),
    "compose_mixed": _compose_mixed,
    "journald": _each(lambda n: f"{_time(n):%b %d %H:%M:%S} web-03 worker[2317]: "),
    "syslog": _each(lambda n: f"<11>1 {_stamp(n, 3)} web-03 worker 2317 - - "),
    "cri": _each(lambda n: f"{_stamp(n, 9)} stderr F "),
    "kubectl_timestamps": _each(lambda n: f"{_stamp(n, 9)} "),
    "kubectl_prefix": _each(lambda _: "[pod/web-7c9d8b6f5-x2x9k/app] "),
    "github": _github,
    "github_marked": _github_marked,
    "jenkins": _jenkins,
    "jenkins_clock": _each(lambda n: f"[{_time(n):%H:%M:%S}] "),
    "gitlab": _gitlab,
    "azure": _azure,
    "buildkit": _buildkit,
    "rank": _each(lambda _: "[rank0]: "),
    "quoted": _each(lambda _: "> "),
    "mail": _mail,
    "numbered_bar": _each(lambda n: f"{n + 118} | "),
    "numbered_colon": _each(lambda n: f"{n + 1}: "),
    "numbered_tab": _each(lambda n: f"{n + 1:6}\t"),
    "indented": _each(lambda _: "    "),
}


# --- how a text is written into another ----------------------------------------------------------


def _coloured(text: Text) -> str:
    """Colours, one in another, as compilers and test runners nest them."""
    made = []
    for n, line in enumerate(text.lines):
        head, space, rest = line.partition(" ")
        made.append(
            f"\x1b[1m\x1b[31m{head}\x1b[39m\x1b[22m{space}\x1b[1m{rest}\x1b[0m"
            if n in text.telling or n % 2
            else f"\x1b[2m{line}\x1b[0m\x1b[K"
        )
    return "\n".join(made)


def _progress_bar(text: Text) -> str:
    bar = "".join(f"\r{'#' * n:<10} {n * 10:3}%" for n in range(11))
    return f"{bar}\r{text}"


def _progress_in_line(text: Text) -> str:
    """A spinner that is drawn over by each line."""
    return "\n".join(f"\r⠋ building\r⠙ building\r\x1b[2K{line}" for line in text.lines)


def _json_lines(text: Text) -> str:
    return "".join(
        json.dumps({"level": "error", "msg": line, "time": _stamp(n, 3)}) + "\n"
        for n, line in enumerate(text.lines)
    )


def _docker_json(text: Text) -> str:
    return "".join(
        json.dumps({"log": f"{line}\n", "stream": "stderr", "time": _stamp(n, 9)}) + "\n"
        for n, line in enumerate(text.lines)
    )


def _quotes(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


ESCAPES: dict[str, Dress] = {
    "ansi": _coloured,
    "crlf": lambda text: str(text).replace("\n", "\r\n"),
    "progress_bar": _progress_bar,
    "json_string": lambda text: json.dumps(str(text)),
    "json_unquoted": lambda text: json.dumps(str(text))[1:-1],
    "json_log": lambda text: json.dumps(
        {"level": "error", "msg": str(text).strip(), "time": _stamp(1, 3)}
    ),
    "json_lines": _json_lines,
    "docker_json": _docker_json,
    "logfmt": lambda text: f"time={_stamp(1, 3)} level=error msg={_quotes(str(text).strip())}",
    "repr": lambda text: repr(str(text)),
    "bytes_repr": lambda text: repr(str(text).encode()),
    "runtime_error": lambda text: f"RuntimeError({str(text)!r})",
    "html": lambda text: html.escape(str(text)),
    "html_pre": lambda text: f'<pre class="log"><code>{html.escape(str(text))}</code></pre>',
}


# --- what stands around --------------------------------------------------------------------------

_OK = "".join(
    f"[{n:3}/300] Building CXX object src/CMakeFiles/core.dir/unit_{n:03}.cc.o\n"
    if n % 3
    else f"ok {n} - unit {n:03} ({n % 17} ms)\n"
    for n in range(1, 301)
)
_DEPRECATED = """\
npm warn deprecated inflight@1.0.6: This module is not supported, and leaks memory.
npm warn deprecated glob@7.2.3: Glob versions prior to v9 are no longer supported
(node:4211) [DEP0040] DeprecationWarning: The `punycode` module is deprecated.
(Use `node --trace-deprecation ...` to show where the warning was created)
DEPRECATION: Legacy editable install of shop is deprecated. pip 25.3 will enforce this change.
WARNING: file encoding is not set, using platform encoding UTF-8, i.e. the build is dependent!
"""
_WRAPPER = """\
Traceback (most recent call last):
  File "/opt/ci/run.py", line 88, in <module>
    subprocess.run(command, check=True)
  File "/usr/lib/python3.12/subprocess.py", line 571, in run
    raise CalledProcessError(retcode, process.args,
subprocess.CalledProcessError: Command '['make', 'check']' returned non-zero exit status 1.
"""
_LIFECYCLE = """\
npm ERR! code ELIFECYCLE
npm ERR! errno 1
npm ERR! shop@1.4.0 check: `make check`
npm ERR! Exit status 1
npm ERR!
npm ERR! Failed at the shop@1.4.0 check script.
npm ERR! This is probably not a problem with npm. There is likely additional logging output above.
"""


def _middle_cut(text: Text) -> str | None:
    """Three lines or more of the middle are gone."""
    third = len(text.lines) // 3
    gone = range(third, len(text.lines) - third)
    if len(gone) < 3 or not text.telling or text.telling & set(gone):
        return None
    lines = [*text.lines[:third], f"[{len(gone)} lines truncated]", *text.lines[gone.stop :]]
    return "\n".join(lines)


def _head_cut(text: Text) -> str | None:
    """The first third of the lines is gone."""
    first = len(text.lines) // 3
    if not first or not text.telling or text.telling & set(range(first)):
        return None
    return "\n".join(text.lines[first:])


AROUND: dict[str, Dress] = {
    "fence": _around("I get this when I build, any idea?\n\n```\n", "```\n\nThanks in advance!\n"),
    "chat": _around("Hi, since this morning our build fails with the following output:\n"),
    "prompt_make": _around("$ make\n"),
    "prompt_bash": _around("ines@build-7:~/shop$ npm test\n", "ines@build-7:~/shop$ \n"),
    "prompt_powershell": _around("PS C:\\work\\shop> npm test\n"),
    "truncated_front": _around("[1423 lines truncated]\n"),
    "truncated_dots": _around("... (output truncated)\n"),
    "truncated_middle": _middle_cut,
    "head_cut": _head_cut,
    "tail_make": _around("", "make[1]: *** [Makefile:3: all] Error 2\nmake: *** [all] Error 2\n"),
    "tail_github": _around("", "Error: Process completed with exit code 1.\n"),
    "tail_travis": _around("", 'The command "npm test" exited with 1.\n'),
    "tail_gitlab": _around("", "ERROR: Job failed: exit code 1\n"),
    "tail_npm": _around("", _LIFECYCLE),
    "tail_subprocess": _around("", _WRAPPER),
    "front_exit_code": _around("Error: Exit code 1\n"),
    "front_progress": _around(_OK),
    "front_deprecated": _around(_DEPRECATED),
}


# --- for judging only ----------------------------------------------------------------------------


def _cdata(text: Text) -> str:
    return (
        '<testcase classname="check" name="all" time="0.12">\n'
        f"  <system-err><![CDATA[{text}]]></system-err>\n</testcase>\n"
    )


def _heroku(n: int) -> str:
    return f"{_time(n):%Y-%m-%dT%H:%M:%S}.{n * 1371 % 10**6:06}+00:00 app[web.1]: "


def _logged(n: int) -> str:
    return f"{_time(n):%Y-%m-%d %H:%M:%S},{n * 137 % 1000:03} ERROR [worker-1] shop.runner - "


HELD: dict[str, Dress] = {
    "github_cli": _github_cli,
    "gitlab_times": _gitlab_times,
    "heroku": _each(_heroku),
    "pm2": _each(lambda _: "0|api      | "),
    "turbo": _each(lambda _: "@shop/web:check: "),
    "vagrant": _each(lambda _: "    default: "),
    "packer": _each(lambda _: "==> amazon-ebs.web: "),
    "log4j": _each(_logged),
    "stern": _each(lambda _: "web-7c9d8b6f5-x2x9k app "),
    "elapsed": _each(lambda n: f"[{n * 0.37:8.3f}s] "),
    "seconds": _each(lambda n: f"{1772532672 + n // 3}.{n * 137 % 1000:03} "),
    "diff": _each(lambda _: "+ "),
    "comment": _each(lambda _: "# "),
    "tabbed": _each(lambda _: "\t"),
    "yaml_block": lambda text: "status: failed\noutput: |\n"
    + "".join(f"  {line}\n" for line in text.lines),
    "cdata": _cdata,
    "json_twice": lambda text: json.dumps(json.dumps({"error": str(text)})),
    "json_nested": lambda text: json.dumps(
        {"ok": False, "result": {"exit_code": 1, "stdout": "", "stderr": str(text)}}, indent=2
    ),
    "lines_repr": lambda text: repr(list(text.lines)),
    "spinner": _progress_in_line,
    "tool_result": lambda text: f"<returncode>1</returncode>\n<output>\n{text}</output>\n",
    "prompt_zsh": _around("➜  shop git:(main) ✗ npm test\n"),
    "template": _around("### Describe the bug\n\nThe build is broken.\n\n### Logs\n\n```shell\n",
                        "```\n\n### Environment\n\n- OS: Ubuntu 24.04\n"),
    "elided": _around("[...]\n", "[...]\n"),
    "tail_circleci": _around("", "\nExited with code exit status 1\n"),
    "tail_yarn": _around("", "error Command failed with exit code 1.\ninfo Visit "
                         "https://yarnpkg.com/en/docs/cli/run for documentation about this.\n"),
    "tail_buildkite": _around("", "🚨 Error: The command exited with status 1\n"
                              "user command error: exit status 1\n"),
}  # fmt: skip

DRESSES: dict[str, Dress] = {**PREFIXES, **ESCAPES, **AROUND}


def _pairs() -> dict[str, Dress]:
    """Two at once: what stands around or a colour, then a prefix, then an escape."""
    inner = {**AROUND, "ansi": ESCAPES["ansi"], "rank": PREFIXES["rank"]}
    outer = {**PREFIXES, **ESCAPES}
    some = [(one, other) for one in inner for other in outer if one != other]
    return {f"{one}+{other}": _both(inner[one], outer[other]) for one, other in some[7::29]}


PAIRS = _pairs()
HELD_PAIRS: dict[str, Dress] = {
    f"{one}+{other}": _both({**DRESSES, **HELD}[one], {**DRESSES, **HELD}[other])
    for one, other in [
        ("ansi", "heroku"), ("tail_make", "pm2"), ("front_deprecated", "github_cli"),
        ("rank", "cri"), ("compose", "json_string"), ("head_cut", "log4j"), ("chat", "comment"),
        ("numbered_tab", "yaml_block"), ("quoted", "crlf"), ("turbo", "github"),
    ]
}  # fmt: skip


def dresses_of(part: str) -> dict[str, Dress]:
    """``dev``: those that rules may be tuned on. Else all."""
    known = {**DRESSES, **PAIRS}
    return known if part == "dev" else {**known, **HELD, **HELD_PAIRS}
