"""Six other causes, that kinds, rules and levels of grouping were not chosen by: see ``causes``.

One of them, the printer, is none of ``domain.failures.kinds``. Whoever changes kinds, rules or
levels looking at these has to write others.
"""

from __future__ import annotations

from tests.failures.causes import Causes

HELD_OUT: Causes = {
    "setting is missing": (
        ("KeyError", "'{name}_API_KEY' is not set in os.environ"),
        ("", "environment variable {name} is required but was not found"),
        ("ConfigError", "no value for {name}.url in {path}"),
        ("", "panic: missing required env var {name}"),
        ("NoCredentialsError", "Unable to locate credentials, please set the access key"),
        ("", "the configuration {path} has no entry {name}"),
        ("ImproperlyConfigured", "The SECRET_KEY setting must not be empty."),
        ("", "dotenv: {path} was not loaded, {name} is undefined"),
    ),
    "versions do not fit": (
        ("ResolutionImpossible", "{name} 2.{n} depends on {name}-core<2 but 2.{n} is pinned"),
        ("", "npm ERR! ERESOLVE unable to resolve dependency tree"),
        ("", "Because {name} requires python >=3.12, version solving failed."),
        ("", "peer dependency conflict: {name} wants react 17, react 18 is installed"),
        ("", "error: failed to select a version for `{name}` which could resolve this conflict"),
        ("VersionConflict", "({name} 1.{n}, Requirement.parse('{name}>=2'))"),
        ("", "go: {name} requires go >= 1.{n} (running go 1.19)"),
        ("", "the installed {name} is too old for this package, upgrade it first"),
    ),
    "code does not compile": (
        ("SyntaxError", "invalid syntax ({path}, line {n})"),
        ("", "{path}({n},{n}): error TS1005: ';' expected."),
        ("", "error: expected one of `.`, `;` or an operator, found `{name}`"),
        ("IndentationError", "unindent does not match any outer indentation level"),
        ("", "{path}:{n}: syntax error: unexpected newline, expecting comma or )"),
        ("", "javac: class, interface, or enum expected"),
        ("", "the generated program has an unclosed bracket in line {n}"),
        ("", "compilation of {name} failed with {n} errors"),
    ),
    "element is not on the page": (
        ("NoSuchElementException", "Unable to locate element: #{name}"),
        ("", "locator.click: Timeout {m}ms exceeded, waiting for selector '.{name}'"),
        ("ElementNotInteractableException", "element not interactable: button {name}"),
        ("", "no node found for selector: #{name}"),
        ("", "the button {name} is not on the page any more"),
        ("StaleElementReferenceException", "element is not attached to the page document"),
        ("", "could not find the form field {name} in the browser window"),
        ("", "expected to find link {name} in the DOM but it was never rendered"),
    ),
    "schema is out of date": (
        ("psycopg2.errors.UndefinedColumn", 'column "{name}" of relation "users" does not exist'),
        ("sqlite3.OperationalError", "no such table: {name}"),
        ("", "ERROR 1054 (42S22): Unknown column '{name}' in 'field list'"),
        ("", 'relation "{name}" does not exist'),
        ("PrismaError", "The table `{name}` does not exist in the current database."),
        ("", "Invalid object name 'dbo.{name}'."),
        ("", "{n} migrations are pending, the table {name} lacks a column"),
        ("ORA-00942", "table or view does not exist"),
    ),
    "printer does not print": (
        ("PrintError", "paper jam in tray {n} of printer {name}"),
        ("", "the printer {name} is out of paper"),
        ("", "print job {m} held: toner is low"),
        ("IppError", "printer-state-reasons: media-empty-error on {name}"),
        ("", "cover of the printer is open, job {m} was not printed"),
        ("", "{name}: printer is offline, {n} documents are queued"),
        ("", "nothing came out of the printer, the cartridge is empty"),
        ("", "printing {path} failed because a sheet is stuck"),
    ),
}
