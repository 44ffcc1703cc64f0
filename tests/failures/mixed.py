"""Kinds of failures that must not run together, each told in four ways or more.

A half was looked at while the rules were made (``DEV``); of ``HELD`` only figures were.
"""

from __future__ import annotations

from tests.failures.causes import Causes

DEV: Causes = {
    "rate limit": (
        ("", "429 Too Many Requests from api.{host}"),
        ("", "rate limit exceeded, retry after {n}s"),
        ("RateLimitError", "You have exceeded the request rate for model {name}"),
        ("", "the client was throttled: {n} requests per minute are allowed"),
        ("HTTPError", "429 Client Error: Too Many Requests for url: https://{host}/v1/{name}"),
    ),
    "database time-out": (
        ("", "connection to database timed out"),
        ("", "could not obtain connection within {n} s"),
        (
            "sqlalchemy.exc.TimeoutError",
            "QueuePool limit of size {n} overflow {n} reached, connection timed out, timeout {n}",
        ),
        ("psycopg.OperationalError", 'connection timeout expired to server at "{ip}", port 5432'),
    ),
    "permission": (
        ("PermissionError", "[Errno 13] Permission denied: '{path}'"),
        ("", "403 Forbidden: you do not have access to {name}"),
        ("Error", "EACCES: permission denied, open '{path}'"),
        ("", "user {name} is not authorized to perform s3:PutObject"),
    ),
    "out of memory": (
        ("MemoryError", "Unable to allocate {n}.0 GiB for an array"),
        ("", "java.lang.OutOfMemoryError: Java heap space"),
        ("", "process {m} was OOM killed"),
        ("", "CUDA out of memory. Tried to allocate {n} MiB"),
    ),
    "assertion": (
        ("AssertionError", "assert {n} == {m}"),
        ("", "expected {n} but got {m}"),
        ("", "1 failed, {n} passed: test_{name} assertion failed"),
        ("AssertionError", "Lists differ: [{n}] != [{m}]"),
    ),
    "syntax": (
        ("SyntaxError", "invalid syntax ({name}.py, line {n})"),
        ("SyntaxError", "Unexpected token '}}' in {path}"),
        ("", "{path}:{n}:1: error: expected ';' before '}}' token"),
        ("IndentationError", "unexpected indent"),
    ),
    "disk full": (
        ("OSError", "[Errno 28] No space left on device: '{path}'"),
        ("", "ENOSPC: no space left on device, write"),
        ("", 'could not extend file "{path}": disk is full'),
        ("", "disk quota exceeded for {name}"),
    ),
}

HELD: Causes = {
    "connection refused": (
        ("ConnectionRefusedError", "[Errno 111] Connection refused"),
        ("Error", "connect ECONNREFUSED {ip}:{m}"),
        ("", "dial tcp {ip}:{m}: connect: connection refused"),
        ("", "Failed to connect to {host} port {m}: Connection refused"),
    ),
    "not found": (
        ("FileNotFoundError", "[Errno 2] No such file or directory: '{path}'"),
        ("Error", "ENOENT: no such file or directory, stat '{path}'"),
        ("", "cat: {path}: No such file or directory"),
        ("", "the input file {path} does not exist"),
    ),
    "module missing": (
        ("ModuleNotFoundError", "No module named '{name}'"),
        ("Error", "Cannot find module '{name}'"),
        ("", "error: package {name}.util does not exist"),
        ("ImportError", "{name} is not installed"),
    ),
    "credentials": (
        ("AuthenticationError", "Incorrect API key provided: sk-{hash}"),
        ("", "401 Unauthorized: token has expired"),
        ("", 'FATAL: password authentication failed for user "{name}"'),
        ("", "login failed: invalid credentials for {name}"),
    ),
    "merge conflict": (
        ("", "CONFLICT (content): Merge conflict in {path}"),
        ("", "Automatic merge failed; fix conflicts and then commit the result."),
        ("", "error: could not apply {hash}... both modified {path}"),
        ("GitCommandError", "cannot merge, you have unmerged files in {path}"),
    ),
    "type": (
        ("TypeError", "unsupported operand type(s) for +: 'int' and 'str'"),
        ("", "error TS2322: Type 'string' is not assignable to type 'number'."),
        ("TypeError", "expected str, got NoneType"),
        ("", "cannot use {name} (type int) as type string in argument"),
    ),
    "DNS": (
        ("Error", "getaddrinfo ENOTFOUND {host}"),
        ("", "curl: (6) Could not resolve host: {host}"),
        ("gaierror", "[Errno -2] Name or service not known"),
        ("", "dial tcp: lookup {host}: no such host"),
    ),
}

RATE_LIMITS: tuple[str, ...] = (
    "429 Too Many Requests from api",
    "rate limit exceeded, retry after 20s",
    "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000",
    "ThrottlingException: Rate exceeded",
    "Too many requests, please slow down",
    "HTTP 429: quota exceeded for requests per minute",
    "openai.RateLimitError: Error code: 429 - rate limit",
    "API rate limit exceeded for user ID 12345",
    "Request was throttled. Expected available in 34 seconds.",
    "RateLimitError: 429 rate_limit_error: number of tokens has exceeded your per-minute limit",
    "RESOURCE_EXHAUSTED: Quota exceeded for quota metric 'Read requests'",
    "secondary rate limit: please wait a few minutes before you try again",
    "rate limited by upstream, backing off for 30s",
    "the provider returned status 429",
    "retry limit for rate limited request exceeded after 5 attempts",
)

DATABASE_TIMEOUTS: tuple[str, ...] = (
    "connection to database timed out",
    "could not obtain connection within 30s",
    "psycopg2.OperationalError: could not connect to server: Connection timed out",
    "database query timed out after 30 seconds",
    "HikariPool-1 - Connection is not available, request timed out after 30000ms",
    "sqlalchemy.exc.TimeoutError: QueuePool limit of size 5 reached, connection timed out",
    "canceling statement due to statement timeout",
    "timeout expired while waiting for a database connection from the pool",
    "pymongo.errors.ServerSelectionTimeoutError: db-1:27017: timed out",
    "Lock wait timeout exceeded; try restarting transaction",
    "timed out connecting to postgres at db-01:5432",
    "SQLTimeoutException: query exceeded 10 s",
    "database connection timeout after 5000 ms",
    "OperationalError: (2003, \"Can't connect to MySQL server on 'db' (timed out)\")",
    "redis.exceptions.TimeoutError: Timeout reading from socket",
)
"""Five of one and two of the other, drawn at random, were mixed in a quarter of all draws."""
