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
    ),
    ("the command ran too long and was stopped, execution time limit exceeded",),
    ("connection refused, the service is not running",),
    (
        "connection reset by peer",
        "the connection was closed unexpectedly, broken pipe, socket hang up",
    ),
    ("host name could not be resolved", "unknown host, DNS lookup failed"),
    ("network is unreachable, no route to host",),
    (
        "certificate verification failed",
        "TLS handshake failed, certificate is self-signed or not trusted",
    ),
    (
        "too many requests, rate limit exceeded",
        "request quota is used up, the client is throttled and must slow down",
    ),
    ("service unavailable, the server is overloaded", "internal server error, bad gateway"),
    (
        "unauthorized: credentials are missing or invalid, login failed",
        "token, session or credentials have expired",
    ),
    (
        "permission denied, access is forbidden",
        "insufficient rights, operation is not permitted",
    ),
    ("resource was not found, no such object",),
    ("no such file or directory", "the file does not exist"),
    ("it exists already, duplicate",),
    (
        "no space left on device, the disk is full",
        "disk quota exceeded, not enough storage is free",
    ),
    (
        "out of memory, cannot allocate memory",
        "the process was killed because it used too much memory, heap exhausted",
        "memory allocation failed, bad alloc, OOM",
    ),
    ("too many open files",),
    ("read-only file system",),
    ("input/output error, the file is corrupted, checksum mismatch",),
    (
        "module or package not found, cannot import it",
        "a dependency is missing, class or library is not installed",
        "cannot load library or file that is required",
    ),
    ("incompatible versions of dependencies, requirements cannot be resolved",),
    ("command not found, the executable is missing",),
    ("address already in use", "the port is occupied by another process"),
    ("deadlock, the resource is locked by another process", "could not acquire the lock"),
    (
        "merge conflict, both sides changed the same lines",
        "the patch does not apply, conflicts must be resolved",
    ),
    ("version mismatch, it was modified concurrently, precondition failed",),
    (
        "syntax error in source code, unexpected token",
        "compile error, the code does not build",
    ),
    ("wrong type of value, type mismatch",),
    (
        "null or undefined value, the attribute does not exist",
        "null pointer dereference, nil or None is no object",
    ),
    ("name or variable is not defined",),
    ("key not found in dictionary", "index out of range"),
    ("division by zero, arithmetic overflow",),
    ("invalid argument, value out of the allowed range",),
    ("input does not match the schema, a required field is missing",),
    (
        "invalid JSON, the document cannot be parsed",
        "malformed response, unexpected end of data while decoding",
    ),
    ("cannot decode text, invalid UTF-8 character",),
    ("test failed, assertion failed, expected another value",),
    ("lint or formatting check failed",),
    ("SQL error, no such table or column",),
    ("unique or foreign key constraint violated",),
    ("configuration or environment variable is missing",),
    ("segmentation fault, the process crashed by a signal",),
    ("command failed with non-zero exit code",),
    ("maximum recursion depth exceeded, stack overflow",),
    (
        "the prompt is too long, token limit of the model exceeded",
        "the payload is too large",
    ),
    ("the model refused to answer, content was filtered",),
    ("gave up after too many attempts without progress",),
    ("cancelled by the user, interrupted",),
    ("the result is wrong, the output differs from what was asked",),
    ("operation is not supported or not implemented",),
    ("push rejected, unknown revision, not a git repository",),
    ("container image cannot be pulled or started",),
    ("element was not found on the page",),
    ("unknown tool, malformed tool call",),
    ("insufficient credit, payment required, billing limit reached",),
)
