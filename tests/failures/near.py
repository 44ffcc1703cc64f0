"""Six causes in pairs of one kind: what grouping by meaning most easily runs together.

Looked at for the level at which groups are apart, as ``causes`` is.
"""

from __future__ import annotations

from tests.failures.causes import Causes

NEAR: Causes = {
    "the model's answer takes too long": (
        ("openai.APITimeoutError", "Request timed out."),
        ("", "the language model did not answer within {n} seconds"),
        ("ReadTimeout", "HTTPSConnectionPool(host='{host}', port=443): Read timed out."),
        ("", "completion request to {host} exceeded its deadline of {n} s"),
    ),
    "the tests take too long": (
        ("", "test_{name} exceeded timeout of {m} ms for a test"),
        ("Failed", "Timeout >{n}.0s in test_{name}"),
        ("", "the test suite was stopped after {n} minutes"),
        ("", "Timeout - Async callback was not invoked within the {m} ms test timeout"),
    ),
    "a file is missing": (
        ("FileNotFoundError", "[Errno 2] No such file or directory: '{path}'"),
        ("Error", "ENOENT: no such file or directory, open '{path}'"),
        ("", "open {path}: no such file or directory"),
        ("", "the file {path} does not exist"),
    ),
    "an issue or a page is missing": (
        ("HTTPError", "404 Client Error: Not Found for url: https://{host}/{name}"),
        ("Error", "Request failed with status code 404"),
        ("NotFoundError", "the ticket {n} does not exist"),
        ("", "GET https://{host}/{name} returned HTTP 404"),
    ),
    "a key is missing": (
        ("KeyError", "'{name}'"),
        ("", "dictionary has no key '{name}'"),
        ("java.util.NoSuchElementException", "key {name} not found in map"),
        ("KeyError", '"{name}"'),
    ),
    "nothing is there": (
        ("TypeError", "'NoneType' object is not subscriptable"),
        ("TypeError", "Cannot read properties of undefined (reading '{name}')"),
        ("java.lang.NullPointerException", 'Cannot invoke "{name}.get()" because it is null'),
        ("", "runtime error: invalid memory address or nil pointer dereference"),
    ),
}
