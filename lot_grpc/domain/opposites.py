"""Words of opposite meaning, which an embedding hardly tells apart.

"Enable dark mode" and "Disable dark mode" have a cosine of .96 but are different tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

_SIDES: Final = """
    enable activate | disable deactivate
    allow permit authorize grant admit | deny forbid block ban prohibit revoke
    approve accept | reject refuse decline dismiss deny
    enable allow | block forbid disable prohibit
    add insert append attach include | remove delete drop detach exclude omit erase
    create make generate add | delete remove destroy drop purge discard erase
    assign register | unassign deregister
    increase raise grow extend boost double | decrease reduce lower shrink shorten cut limit halve
    expand enlarge widen increase | contract shrink narrow reduce
    upgrade increment maximize | downgrade decrement minimize
    start begin launch run boot | stop end halt terminate quit kill shutdown finish abort
    start resume continue run | pause suspend cancel stop
    open | close closed shut
    show display reveal expose unhide view | hide conceal mask collapse
    install setup deploy provision | uninstall teardown undeploy deprovision
    connect join link attach bind mount | disconnect leave unlink detach unbind unmount
    merge join combine | split separate
    lock freeze | unlock unfreeze thaw
    encrypt encode serialize | decrypt decode deserialize
    compress zip pack | decompress unzip unpack extract
    push send upload export | pull receive download import fetch
    write emit publish | read consume unpublish
    subscribe follow optin | unsubscribe unfollow optout
    login signin | logout signout
    commit apply do | rollback revert undo
    undo | redo
    buy purchase | sell refund return
    borrow | lend
    accept | reject
    like upvote | dislike downvote
    promote | demote
    save store keep retain preserve | lose discard delete forget
    archive | unarchive restore
    backup | restore
    pass succeed success successful | fail failure failed
    win | lose
    expand | collapse
    mute silence | unmute
    pin | unpin
    check tick select mark | uncheck untick deselect unmark
    encourage | discourage
    ascend ascending | descend descending
    attack | defend
    arrive enter come | depart exit leave
    rise | fall
    load | unload
    allocate | free release
    acquire | release
    build | destroy demolish
    hire | fire
    lengthen | shorten
    accelerate speed | slow throttle
    warm heat | cool
    fill | empty clear drain
    inflate | deflate
    sync | desync
    prepend | append
    before prior | after
    above over | below under beneath
    with | without
    true yes | false no
    always | never
    all every | none
    first | last
    next | previous prior
    old oldest older | new newest newer
    old oldest older | young youngest younger
    early earliest earlier | late latest later
    high highest higher upper | low lowest lower
    top | bottom
    left | right
    front forward ahead | back backward behind
    north | south
    east | west
    large largest larger big biggest bigger huge | small smallest smaller tiny little
    long longest longer | short shortest shorter
    many most more | few fewest fewer least less
    max maximum maximal | min minimum minimal
    cheap cheapest cheaper | expensive costly
    fast fastest faster quick | slow slowest slower
    good best better | bad worst worse
    light lighter | dark darker heavy
    hot | cold
    public | private
    internal inner inside | external outer outside
    inbound incoming ingress inward | outbound outgoing egress outward
    local | remote
    local | global
    sync synchronous synchronously | async asynchronous asynchronously
    static | dynamic
    mutable | immutable
    mandatory required | optional
    positive | negative
    odd | even
    horizontal horizontally | vertical vertically
    online | offline
    full | empty
    present | absent missing
    alive live | dead
    allow whitelist allowlist | blacklist blocklist denylist
    deposit | withdraw
    same equal identical | different unequal
    readonly | readwrite writable writeable
    checkin | checkout
    on | off
    in | out
    up | down
    from | to
    strict strictly | lenient loose loosely
    manual manually | automatic automatically
    temporary temporarily | permanent permanently
"""
"""A line has words of one sense before the bar and their opposites behind it."""

PARTICLES: Final = frozenset(("on", "off", "in", "out", "up", "down", "from", "to"))
"""So frequent that they count as opposites only in texts that otherwise differ little."""

_LONGEST_WORD: Final = 40
"""Characters of a word; longer ones are data and have no opposite."""

PAIRED: Final = (
    ("en", "de"), ("en", "dis"), ("in", "ex"), ("in", "de"), ("im", "ex"), ("in", "out"),
    ("up", "down"), ("over", "under"), ("pre", "post"), ("on", "off"), ("inter", "intra"),
)  # fmt: skip
"""Beginnings that make a word and its opposite: encode and decode, include and exclude."""

_NEGATING: Final = ("un", "dis", "de", "non", "in", "im", "ir", "il", "anti", "mis")
_COMPOUNDING: Final = frozenset((*_NEGATING[:4], *(one for pair in PAIRED for one in pair))) - {
    "in",
    "im",
    "on",
    "ex",
}
"""Beginnings that make an opposite with a hyphen too: "non-empty"."""

_SWAPS: Final = (
    *((beginning, "") for beginning in _NEGATING),
    *PAIRED,
    *((other, one) for one, other in PAIRED),
)

_LEAST_REST: Final = 4
"""Letters behind such a beginning: so "do" and "undo" stand in the list."""

_EXCEPTIONS: Final = """
    design detail discover inform install display dispatch dispose dissolve depending
    describe device deliver deposit depart default demand deport define delay devote until
    inside insight instance institute increase intend intent intention intense import
    impress improve impart inspect inflow indent index denote derive desire desert degrade
    deprive demise defend detest defer debate decline dismay distill district disease
    discount disco unit unite inverse invest involve invent inventory invoice impose implant
    imprint discipline misses mission depot departure deployed department describes
    dispatcher designer installer details information
"""
_NOT_OPPOSED: Final = frozenset(_EXCEPTIONS.split())
"""Words that only look as if they began so."""


def _table() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for line in _SIDES.strip().splitlines():
        one, other = (side.split() for side in line.split("|"))
        for word in one:
            table.setdefault(word, set()).update(other)
        for word in other:
            table.setdefault(word, set()).update(one)
    return {word: frozenset(opposite - {word}) for word, opposite in table.items()}


_TABLE: Final = _table()


def one_word(parts: Sequence[str]) -> str:
    """A compound as one word if its opposite is that of the whole ("read-only"); else ""."""
    whole = "".join(parts)
    known = whole in _TABLE or parts[0] in _COMPOUNDING
    return whole if len(parts) > 1 and known else ""


def opposites_among(words: Iterable[str]) -> dict[str, frozenset[str]]:
    """Of each of these words those of them that are its opposites, where there are any."""
    by_base: dict[str, set[str]] = {}
    for word in words:
        for base in _bases(word):
            by_base.setdefault(base, set()).add(word)
    found: dict[str, set[str]] = {}
    for word in set().union(*by_base.values()):
        for base in _opposites_of(word):
            for other in by_base.get(base, ()):
                found.setdefault(word, set()).add(other)
                found.setdefault(other, set()).add(word)
    return {word: frozenset(others) for word, others in found.items()}


@lru_cache(maxsize=8_192)
def _bases(word: str) -> frozenset[str]:
    """What a word may be without its ending, and the word itself: "disabling", "disable"."""
    found = {word}
    for ending, instead in (("s", ""), ("es", ""), ("ies", "y"), ("ied", "y"), ("d", ""),
                            ("ed", ""), ("ing", ""), ("ing", "e")):  # fmt: skip
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 2:
            found.add(rest + instead)
            if ending in ("ed", "ing") and rest[-1] == rest[-2]:
                found.add(rest[:-1])
    return frozenset(found)


@lru_cache(maxsize=8_192)
def _opposites_of(word: str) -> frozenset[str]:
    """The base forms of what may be opposite to a word (by rule some that are no words)."""
    if len(word) > _LONGEST_WORD:
        return frozenset()
    listed: set[str] = set()
    made: set[str] = set()
    for base in _bases(word):
        listed |= _TABLE.get(base, frozenset())
        if base in _NOT_OPPOSED:
            continue
        if len(base) >= _LEAST_REST:
            made.update(beginning + base for beginning in _NEGATING)
        for beginning, instead in _SWAPS:
            rest = base.removeprefix(beginning)
            if rest != base and len(rest) >= _LEAST_REST:
                made.add(instead + rest)
    return frozenset(listed | made - _NOT_OPPOSED)
