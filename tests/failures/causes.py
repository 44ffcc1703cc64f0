"""Six planted causes of failures, each told in many words: what grouping was tuned on.

``{name}`` and the like are filled in anew for each episode (``made``). Whoever changes rules or
levels looks at these and never at ``held_out``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Told = tuple[str, str]
"""Error type, "" for none, and message."""

Causes = Mapping[str, Sequence[Told]]

DEVELOPMENT: Causes = {
    "database does not answer": (
        ("Error", "connect ETIMEDOUT {ip}:5432"),
        ("", "could not connect to server: Connection timed out ({host}:5432)"),
        ("psycopg2.OperationalError", "connection to {host} failed: timeout expired after {n}s"),
        ("", "timed out while waiting for the database to accept the connection"),
        (
            "java.sql.SQLTransientConnectionException",
            "HikariPool-{n} - Connection is not available, request timed out after {m}ms.",
        ),
        ("", "dial tcp {ip}:5432: i/o timeout"),
        (
            "pymysql.err.OperationalError",
            "(2003, \"Can't connect to MySQL server on '{host}' (timed out)\")",
        ),
        ("Npgsql.NpgsqlException", "The connection attempt timed out after {n} seconds"),
        ("", "sqlx::Error: pool timed out while waiting for an open connection"),
        ("", "the postgres server at {host} did not answer within {n} seconds"),
    ),
    "too many requests": (
        ("openai.RateLimitError", "Error code: 429 - Rate limit reached for organization {name}"),
        ("", "HTTP 429 Too Many Requests: retry after {n} seconds"),
        ("ThrottlingException", "Rate exceeded"),
        ("", "The API refused the call because we sent too many requests in the last minute"),
        ("github.RateLimitExceededException", "API rate limit exceeded for user ID {m}."),
        ("Error", "Request failed with status code 429"),
        ("", "Quota exceeded for quota metric 'Read requests' and limit 'per minute'"),
        ("", "slow down: you are being rate limited, try again in {m}ms"),
        ("tenacity.RetryError", "gave up after {n} attempts, the service kept throttling us"),
        ("TooManyRequestsError", "exceeded {n} calls per second on {host}"),
    ),
    "out of memory": (
        (
            "MemoryError",
            "Unable to allocate {n}.2 GiB for an array with shape ({m}, {n}) and type float64",
        ),
        ("", "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory"),
        ("java.lang.OutOfMemoryError", "Java heap space"),
        ("torch.cuda.OutOfMemoryError", "CUDA out of memory. Tried to allocate {n}.00 GiB"),
        ("", "Container {name} was OOMKilled (memory limit {m}Mi)"),
        ("", "the worker was killed by the kernel because it used too much memory"),
        ("", "Out of memory: Killed process {m} ({name}) total-vm:{m}kB, anon-rss:{n}kB"),
        ("std::bad_alloc", "std::bad_alloc"),
        ("", "ran out of RAM while loading {path}; {n} GB were needed"),
        ("", "fatal error: runtime: cannot allocate {m}-byte block: out of memory"),
    ),
    "dependency is missing": (
        ("ModuleNotFoundError", "No module named '{name}'"),
        ("Error", "Cannot find module '{name}'\nRequire stack:\n- {path}"),
        ("", "no required module provides package github.com/{name}/{name}; to add it: go get"),
        ("", "error[E0432]: unresolved import `{name}`"),
        ("java.lang.ClassNotFoundException", "com.{name}.Client"),
        ("", "the dependency {name} is not installed in this environment"),
        ("", "error TS2307: Cannot find module '{name}' or its type declarations."),
        ("LoadError", "cannot load such file -- {name}"),
        ("", "Module not found: Error: Can't resolve '{name}' in '{path}'"),
        ("ImportError", "import of {name} failed: package is missing, run pip install {name}"),
        ("ERR_MODULE_NOT_FOUND", "Cannot find package '{name}' imported from {path}"),
    ),
    "disk is full": (
        ("OSError", "[Errno 28] No space left on device: '{path}'"),
        ("Error", "ENOSPC: no space left on device, write"),
        ("", "write {path}: no space left on device"),
        ("java.io.IOException", "No space left on device"),
        ("", 'could not extend file "{path}": the disk is full'),
        ("", "There is not enough space on the disk."),
        ("sqlite3.OperationalError", "database or disk is full"),
        ("", "the volume {name} has 0 bytes free, cannot save the artifact"),
        ("", "failed to register layer: write {path}: no space left on device"),
        ("", "Disk quota exceeded while writing {path}"),
    ),
    "credentials have expired": (
        (
            "botocore.exceptions.ClientError",
            "An error occurred (ExpiredToken) when calling the PutObject operation: The provided"
            " token has expired.",
        ),
        ("", "401 Unauthorized: access token expired at {time}"),
        ("jwt.exceptions.ExpiredSignatureError", "Signature has expired"),
        ("TokenExpiredError", "jwt expired"),
        (
            "google.auth.exceptions.RefreshError",
            "invalid_grant: Token has been expired or revoked.",
        ),
        ("", "your session has expired, please log in again"),
        ("", "the credentials for {name} are no longer valid, they ran out on {time}"),
        (
            "",
            "fatal: Authentication failed for 'https://{host}/{name}.git': the personal access"
            " token has expired",
        ),
        ("InvalidAuthenticationToken", "Access token has expired or is not yet valid."),
        ("Error", "Request failed with status code 401"),
    ),
}
