"""Two statements are alike where names or a clause differ, and not where one says another thing."""

from __future__ import annotations

import pytest

from lot_grpc.domain.error_text.signature import read_error, same_error

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
]
TWO = [
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
