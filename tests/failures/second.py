"""Six more causes of the development set.

They were held out at first: grouping was pure (1.0) but fell into 9 to 12 groups.
"""

from __future__ import annotations

from tests.failures.causes import Causes

SECOND: Causes = {
    "host name is unknown": (
        ("Error", "getaddrinfo ENOTFOUND {host}"),
        ("socket.gaierror", "[Errno -2] Name or service not known"),
        ("", "dial tcp: lookup {host} on {ip}:53: no such host"),
        ("java.net.UnknownHostException", "{host}"),
        ("", "curl: (6) Could not resolve host: {host}"),
        ("requests.exceptions.ConnectionError", "Temporary failure in name resolution"),
        ("", "net::ERR_NAME_NOT_RESOLVED at https://{host}/"),
        ("", "the DNS server has no record of {host}"),
        ("dns.resolver.NXDOMAIN", "The DNS query name does not exist: {host}."),
    ),
    "merge conflict": (
        ("", "CONFLICT (content): Merge conflict in {path}"),
        ("", "Automatic merge failed; fix conflicts and then commit the result."),
        ("", "error: could not apply {hash}... update {name}\nResolve all conflicts manually"),
        ("", "Pull request {n} is not mergeable: it has conflicts with the base branch"),
        ("GitCommandError", "git merge {name} exited with code 1: CONFLICT (modify/delete)"),
        ("", "the branches {name} and main changed the same lines of {path}; cannot merge"),
        ("", "error: Merging is not possible because you have unmerged files."),
        ("MergeConflictError", "{n} files are in conflict after the rebase onto {name}"),
    ),
    "certificate is not trusted": (
        (
            "ssl.SSLCertVerificationError",
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local"
            " issuer certificate (_ssl.c:{m})",
        ),
        ("Error", "self signed certificate in certificate chain"),
        ("", "x509: certificate signed by unknown authority"),
        (
            "javax.net.ssl.SSLHandshakeException",
            "PKIX path building failed: unable to find valid certification path to requested"
            " target",
        ),
        ("", "curl: (60) SSL certificate problem: unable to get local issuer certificate"),
        ("", "the TLS certificate of {host} is not trusted by this machine"),
        ("Error", "UNABLE_TO_VERIFY_LEAF_SIGNATURE: unable to verify the first certificate"),
        ("", "invalid peer certificate: UnknownIssuer"),
        ("", "server certificate verification failed. CAfile: {path} CRLfile: none"),
    ),
    "no valid JSON": (
        ("json.decoder.JSONDecodeError", "Expecting value: line 1 column 1 (char 0)"),
        ("SyntaxError", "Unexpected token < in JSON at position {n}"),
        ("", "invalid character '<' looking for beginning of value"),
        (
            "com.fasterxml.jackson.core.JsonParseException",
            "Unrecognized token '{name}': was expecting (JSON String, Number, Array, Object)",
        ),
        ("", "the model answered with text that is not valid JSON"),
        ("SyntaxError", "Unexpected end of JSON input"),
        ("", "could not parse the arguments of {name} as JSON: missing comma at line {n}"),
        ("serde_json::Error", "EOF while parsing a value at line {n} column {m}"),
        ("System.Text.Json.JsonException", "'<' is an invalid start of a value. Path: $"),
    ),
    "port is taken": (
        ("Error", "listen EADDRINUSE: address already in use :::{m}"),
        ("OSError", "[Errno 98] Address already in use"),
        ("", "listen tcp :{m}: bind: address already in use"),
        ("java.net.BindException", "Address already in use (Bind failed)"),
        ("", "Web server failed to start. Port {m} was already in use."),
        ("", "something else is listening on port {m}"),
        (
            "",
            "Only one usage of each socket address (protocol/network address/port) is normally"
            " permitted.",
        ),
        ("", "Bind for 0.0.0.0:{m} failed: port is already allocated"),
        ("", "could not start {name}: port {m} is taken by process {n}"),
    ),
    "permission is denied": (
        ("PermissionError", "[Errno 13] Permission denied: '{path}'"),
        ("Error", "EACCES: permission denied, open '{path}'"),
        ("", "open {path}: permission denied"),
        ("java.nio.file.AccessDeniedException", "{path}"),
        ("", "the agent has no right to write to {path}"),
        ("UnauthorizedAccessException", "Access to the path '{path}' is denied."),
        ("", "mkdir: cannot create directory '{path}': Permission denied"),
        ("Error", "EPERM: operation not permitted, unlink '{path}'"),
        ("", "{path} is owned by root and may not be changed by {name}"),
    ),
}
