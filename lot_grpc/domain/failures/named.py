"""The kinds of failure that an error names explicitly.

Similarity of meaning mixes causes that look alike: a rate limit and a database time-out are both
calls that did not get through. If two errors name their kinds and have none in common, they have
different causes, however near their meanings are. An error that names no kind, as most do, may be
grouped with any other.
"""

from __future__ import annotations

import re
from typing import Final

from lot_grpc.domain.failures.wording import LONGEST

_KINDS: Final = {
    "rate limit": r"rate.?limit|too many requests|throttl|slow down|rate exceeded|request rate"
    r"|requests? per (?:second|minute|hour|day)|(?<!disk )quota exceeded|\bstatus 429\b",
    "time-out": r"time[ds]?[ -]?out|deadline exceeded|exceeded (?:its|the) deadline"
    r"|took (?:too long|longer)|too slow|within \d+(?:\.\d+)? ?(?:m?s|sec|min)",
    "refused": r"connection refused|refused (?:the|our) connection|nothing is listening",
    "reset": r"connection (?:was )?(?:reset|aborted|closed)|broken pipe|hang ?up",
    "name resolution": r"(?:resolve|find|unknown|no such) host|name resolution|\bdns\b"
    r"|host name not found|name or service not known|nodename nor servname",
    "certificate": r"certificate|\b(?:tls|ssl) (?:handshake|error)",
    "credentials": r"unauthorized(?! access)|authentication (?:failed|error|required)|api key"
    r"|log ?in failed|(?:invalid|wrong|missing|expired|bad) (?:credentials|password|token)"
    r"|token (?:has )?expired",
    "permission": r"permission denied|forbidden|access (?:is )?denied|unauthorized access"
    r"|not (?:authorized|permitted)",
    "memory": r"out of memory|\boom\b|memory error|heap space|bad.alloc"
    r"|(?:allocate|allocation)\b.*\b(?:memory|bytes|[gm]ib)",
    "disk": r"no space left|disk (?:is )?full|disk quota|disk space|insufficient storage",
    "file": r"no such file|file not found|file does not exist",
    "module": r"no module named|module not found|(?:find|resolve) (?:module|package)"
    r"|shared (?:object|librar)",
    "command": r"command not found|not recognized as|executable\b.{0,80}\bnot found",
    "port": r"address (?:is )?already in use|port \S{1,20} is (?:already )?(?:in use|allocated)",
    "lock": r"deadlock|could not (?:acquire|obtain) (?:the )?lock|lock (?:wait|timeout)",
    "merge": r"merge conflict|merge failed|unmerged|fix conflicts",
    "syntax": r"syntax ?error|invalid syntax|unexpected (?:token|indent|eof|end of input)"
    r"|parse error|expected '[^\w\s]'",
    "type": r"type error|not assignable|incompatible types?|type mismatch|mismatched types"
    r"|unsupported operand",
    "assertion": r"assert|expected \S{1,40} (?:but )?(?:got|was|to)\b|not equal",
    "duplicate": r"duplicate (?:key|entry)|unique constraint|already exists",
    "context": r"context (?:length|window)|prompt is too long|maximum context|too many tokens",
}
_NAMED: Final = {name: re.compile(form) for name, form in _KINDS.items()}


def named_kinds(plain: str, message: str) -> frozenset[str]:
    """The kinds that an error names, in plain words (``wording``) or as it was printed."""
    text = f"{plain[:LONGEST]}\n{message[:LONGEST]}".casefold()
    return frozenset(name for name, form in _NAMED.items() if form.search(text))
