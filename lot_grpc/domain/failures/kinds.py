"""Kinds of failures that software and agents meet, each told in a few ways.

They are landmarks: an error is compared by what it says and also by which of these it is near to,
since two wordings of one cause have few words in common but lie near the same landmarks (explicit
semantic analysis; Gabrilovich and Markovitch, 2007). No failure is put into one of them: a cause
that is none of these is told by its own words alone.
"""

from __future__ import annotations

from typing import Final

KINDS: Final[tuple[tuple[str, ...], ...]] = (
    (
        "the connection timed out",
        "the server did not answer in time, deadline exceeded while connecting",
        "request timed out, read timeout, gateway timeout",
    ),
    (
        "the command ran too long and was stopped, execution time limit exceeded",
        "the job was killed after its time limit",
    ),
    ("the test timed out, it took longer than its timeout",),
    (
        "connection refused, the service is not running",
        "could not connect to the server, nothing is listening there",
    ),
    (
        "connection reset by peer",
        "the connection was closed unexpectedly, broken pipe, socket hang up",
        "remote end closed the connection without a response",
    ),
    (
        "host name could not be resolved",
        "unknown host, DNS lookup failed",
        "name or service is not known",
    ),
    (
        "network is unreachable, no route to host",
        "the network is down, no internet connection",
    ),
    (
        "certificate verification failed",
        "TLS handshake failed, certificate is self-signed or not trusted",
        "certificate signed by an unknown authority, issuer is unknown",
    ),
    (
        "too many requests, rate limit exceeded",
        "request quota is used up, the client is throttled and must slow down",
    ),
    (
        "service unavailable, the server is overloaded, try again later",
        "internal server error, bad gateway",
    ),
    (
        "unauthorized: credentials are missing or invalid, login failed",
        "token, session or credentials have expired",
        "authentication failed, wrong password or invalid API key",
    ),
    (
        "permission denied, access is forbidden",
        "insufficient rights, operation is not permitted",
        "you are not allowed to do this, access denied by policy",
        "it belongs to another user and may not be changed",
    ),
    (
        "resource was not found, HTTP not found",
        "the requested object, page or ticket does not exist",
    ),
    (
        "no such file or directory",
        "the file does not exist",
        "cannot open file, path not found",
    ),
    (
        "no space left on device, the disk is full",
        "disk quota exceeded, not enough storage is free",
        "not enough disk space, no bytes are free on the volume",
    ),
    (
        "out of memory, cannot allocate memory",
        "the process was killed because it used too much memory, heap exhausted",
        "memory allocation failed, bad alloc, OOM killed",
    ),
    ("too many open files, file descriptors are used up",),
    ("read-only file system, cannot write",),
    (
        "input/output error, the file is corrupted",
        "checksum mismatch, the hash differs",
    ),
    (
        "module or package not found, cannot import it",
        "a dependency is missing, class or library is not installed",
        "cannot load library or file that is required",
    ),
    (
        "incompatible versions of dependencies",
        "requirements conflict, dependencies cannot be resolved",
        "version is not supported, a newer version is required",
    ),
    (
        "command not found, the executable is missing",
        "the program is not installed or not on PATH, is not recognized as a command",
    ),
    (
        "address already in use",
        "the port is occupied by another process",
        "another server is listening on the port already",
    ),
    (
        "deadlock, the resource is locked by another process",
        "could not acquire the lock, lock wait timeout",
        "transactions wait for each other",
    ),
    (
        "merge conflict, both sides changed the same lines",
        "conflicts must be resolved before the commit",
        "cannot merge, there are unmerged files",
    ),
    ("the patch does not apply, the text to replace was not found in the file",),
    (
        "version mismatch, it was modified concurrently, precondition failed",
        "optimistic lock failed, the revision is stale",
    ),
    (
        "syntax error in source code, unexpected token",
        "compile error, the code does not build",
        "unexpected indent, missing bracket",
    ),
    (
        "wrong type of value, type mismatch",
        "cannot convert, incompatible types, expected another type",
        "unsupported operand types",
    ),
    (
        "null or undefined value, the attribute does not exist",
        "null pointer dereference, nil or None is no object",
        "cannot read property of undefined",
    ),
    (
        "name or variable is not defined",
        "undeclared identifier, undefined reference",
    ),
    (
        "key not found in dictionary or map",
        "no such key or element",
    ),
    (
        "index out of range",
        "array index out of bounds",
    ),
    (
        "division by zero",
        "arithmetic overflow, number too large",
    ),
    ("invalid argument, value out of the allowed range",),
    (
        "input does not match the schema, a required field is missing",
        "validation failed, field is required",
    ),
    (
        "invalid JSON, the document cannot be parsed",
        "malformed response, unexpected end of data while decoding",
        "expecting a value or a comma, unexpected character while parsing",
    ),
    (
        "cannot decode text, invalid UTF-8 character",
        "codec cannot encode or decode bytes",
    ),
    (
        "test failed, assertion failed",
        "expected one value but got another one, not equal",
    ),
    (
        "lint or formatting check failed",
        "style violations were found, line too long",
    ),
    (
        "no such table or column, relation does not exist",
        "database migration failed, schema is out of date",
        "SQL syntax error near",
    ),
    (
        "unique constraint violated, duplicate key",
        "a row with this id exists already in the table",
        "duplicate entry, the record exists already",
    ),
    (
        "foreign key constraint failed, a referenced row is missing",
        "value violates a check or not-null constraint",
    ),
    ("file or directory exists already",),
    (
        "configuration or environment variable is missing",
        "setting is not set, configuration file is invalid",
    ),
    (
        "segmentation fault, core dumped",
        "the process crashed, it was killed by a signal",
    ),
    (
        "command failed with non-zero exit code",
        "process exited with status, build step failed",
    ),
    (
        "maximum recursion depth exceeded, stack overflow",
        "endless recursion",
    ),
    (
        "the prompt is too long, token limit of the model exceeded",
        "input does not fit into the context window",
    ),
    ("the payload is too large, request entity exceeds the size limit",),
    (
        "the model refused to answer, content was filtered",
        "blocked by safety policy",
    ),
    ("the model is overloaded or does not exist",),
    (
        "gave up after too many attempts without progress",
        "maximum number of steps or iterations reached",
    ),
    (
        "cancelled by the user, interrupted",
        "the task was aborted",
    ),
    (
        "the result is wrong, the output differs from what was asked",
        "hallucinated, made up an answer",
    ),
    (
        "operation is not supported or not implemented",
        "feature is not available here",
    ),
    (
        "push rejected, remote contains work that is not there locally",
        "non-fast-forward, failed to push some refs",
    ),
    (
        "unknown branch or revision, not a git repository",
        "reference not found in the repository",
    ),
    (
        "container image cannot be pulled",
        "container or pod failed to start, crash loop",
    ),
    (
        "element was not found on the page",
        "selector did not match, element is not clickable",
    ),
    (
        "unknown tool, malformed tool call",
        "tool arguments are invalid or missing",
    ),
    (
        "insufficient credit, payment required",
        "billing limit reached, budget is used up",
    ),
    (
        "data race, concurrent modification",
        "use after free, memory corruption",
    ),
    (
        "numbers do not add up, totals differ",
        "data is inconsistent, rows are missing",
    ),
)
