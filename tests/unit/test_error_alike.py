"""Two statements are alike where names or a clause differ, and not where one says another thing."""

from __future__ import annotations

import pytest

from lot_grpc.domain.error_text.signature import read_error, same_error, same_errors

SAME = [
    (
        "Could not find module wombat in any of the configured search folders",
        "Could not find module quokka in any of the configured search folders",
    ),
    (
        'Received message larger than max ("8388608" vs. 4194304)',
        "rpc error: code = Internal desc = grpc: received message larger than max (5 vs. 4)",
    ),
    (
        "Can't locate JSON.pm in @INC (@INC contains: /usr/share/perl5 .) at /opt/run.pl line 12.",
        "Can't locate DBD/Pg.pm in @INC (you may need to install the DBD::Pg module)"
        " (@INC contains: /etc/perl) at -e line 1.",
    ),
    (
        "PHP Fatal error:  Uncaught Error: Call to undefined function mb_strlen() in /srv/a.php:12",
        "Fatal error: Uncaught Error: Call to undefined function curl_init() in /var/b.php:88",
    ),
    (
        "[in#0 @ 0x55d0] Error opening input: Invalid data found when processing input",
        "Error opening input: Invalid data found when processing input",
    ),
    (
        "Server api/web1 is DOWN, reason: Layer4 connection problem, check duration: 0ms.",
        "[WARNING]  (8) : Server feed/b is DOWN, reason: Layer4 connection problem,"
        " check duration: 1ms. 1 active and 0 backup servers left.",
    ),
    ("ValueError: cannot parse manifest 'a'", "ConfigError: could not parse manifest 'b'"),
    ("Error: in prepare, no such table: orders", "OperationalError: no such table: posts"),
    ("unrecognized directive: <proxy>", "Error: adapting config: unrecognized directive: 'cache'"),
    (
        "index [orders] blocked by: read-only / allow delete",
        "index [feed] blocked by: read-only / allow delete",
    ),
    (
        "app.rb:3:in 'total': undefined method 'price' for nil (NoMethodError)",
        "NoMethodError (undefined method 'title' for nil):\n\napp/a.rb:9:in 'show'",
    ),
    (
        "It seems there is already an archive at 'a'",
        "It seems there is already an archive at 'b'; not unpacking",
    ),
    (
        "Execution context was destroyed, most likely because of a navigation",
        "Error: Protocol error (Runtime.call): Execution context was destroyed",
    ),
    (
        "NotFoundError: NotFoundError(404, 'absent', 'no such index [orders]', orders)",
        "no such index [feed]",
    ),
    (
        '{"level":"fatal","msg":"discovery failed","error":"member 8e9e05c5 is already enrolled"}',
        "member 91bc3c39 is already enrolled",
    ),
    (
        "Error reading a: Error making API request.\n\nErrors:\n\n* Vault is sealed",
        "Error writing b: Error making API request.\n\nErrors:\n\n"
        "* error checking token: Vault is sealed",
    ),
    (
        "E: Could not get lock a. It is held by process 12 (apt)\n"
        "E: Unable to acquire the frontend lock (a), is another process using it?",
        "E: Could not get lock b - open (11: Resource temporarily unavailable)\n"
        "E: Unable to acquire the frontend lock (b), is another process using it?",
    ),
    (
        "The box 'a' could not be found or\ncould not be accessed in the remote catalog.",
        "The box 'b' could not be found or\ncould not be accessed in the remote catalog.\n"
        "Please log in",
    ),
]
TWO = [
    (
        "loading config: http app: listen tcp :80: bind: address already in use",
        "loading config: http app: listen tcp :80: bind: permission denied",
    ),
    (
        "Error reading a: Error making API request.\n\nErrors:\n\n* Vault is sealed",
        "Error reading a: Error making API request.\n\nErrors:\n\n* permission denied",
    ),
    (
        "zone a: loading of the file failed: not found\nzone a: not loaded due to errors.",
        "zone b: NS 'a' has no address records\nzone b: not loaded due to errors.",
    ),
    ("SQLSTATE[42S02]: table or view not found: 'a'", "ORA-00942: table or view not found: 'a'"),
    ("wg-quick: 'wg0' already exists", "ldap_add: Already exists (68)"),
    ("wg-quick: 'wg0' already exists", "A repository already exists at 'a'"),
    ("gpg: [stdin]: encryption failed: No public key", "gpg: Can't check signature: No public key"),
    (
        "proxy: dial tcp 10.0.0.1:80: connect: connection refused",
        "couldn't get the list of groups: dial tcp 10.0.0.2:6443: connect: connection refused",
    ),
    ("Unable to lock database: Permission denied",
     "failed to synchronize all databases (unable to lock database)"),
    ('relation "orders" does not exist', 'column "paid" of relation "orders" does not exist'),
    ("jq: error: Cannot index string with string", "jq: error: Cannot index array with string"),
    ("password authentication failed for user x", "password change failed for user x"),
    (
        "connection to server at 10.0.0.1 failed: too many clients already",
        "connection to server at 10.0.0.1 failed: password authentication rejected",
    ),
    (
        "sed: -e expression #1, char 7: unterminated `s' command",
        "sed: -e expression #1, char 7: unknown option to `s'",
    ),
    (
        "the configured certificate for this host was accepted by the client",
        "the configured certificate for this host was not accepted by the client",
    ),
    (
        "cp: cannot stat 'a': No such file or directory",
        "a.c:1:10: fatal error: b.h: No such file or directory",
    ),
    ("svn: E170001: Authentication failed", "MongoServerError: Authentication failed"),
    (
        "AH00072: the listening socket could not be bound to its address",
        "AH00015: the listening socket could not be bound to its address",
    ),
    (
        "SSLError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed:"
        " certificate has expired (_ssl.c:1007)",
        "SSLError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed:"
        " self-signed certificate (_ssl.c:997)",
    ),
    (
        "curl: (60) SSL certificate problem: unable to get local issuer certificate",
        "curl: (60) SSL certificate problem: certificate is not yet valid",
    ),
    (
        "OCI runtime create failed: unable to start the process: exec: 'a': permission denied",
        "OCI runtime create failed: unable to start the process: exec: 'b':"
        " executable file not found in $PATH",
    ),
    ("tar: Unexpected EOF in archive", "gzip: stdin: not in gzip format"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_error_in_other_words(one: str, other: str):
    first, second = read_error("", one), read_error("", other)
    assert same_error(first, second)
    assert same_error(second, first)


@pytest.mark.parametrize(("one", "other"), TWO)
def test_two_errors_in_like_words(one: str, other: str):
    first, second = read_error("", one), read_error("", other)
    assert not same_error(first, second)
    assert not same_error(second, first)


def test_what_differs_is_named_also_without_quotes():
    one, other = (
        read_error("", f"Could not find module {name} in any of the configured search folders")
        for name in ("wombat", "quokka")
    )
    signatures = same_error(one, other)
    assert signatures
    names = [{part.text for part in signature.names} for signature in signatures]
    assert names[0] - names[1] == {"wombat"}
    assert names[1] - names[0] == {"quokka"}


def test_errors_of_equal_words_are_compared_once_with_the_same_result():
    stored = [
        read_error("", text.replace("'a'", f"'{name}'").replace("orders", name))
        for pair in SAME
        for text in pair
        for name in ("wombat", "quokka")
    ]
    for text, _ in SAME:
        one = read_error("", text)
        assert same_errors(one, stored) == [same_error(one, other) for other in stored]
