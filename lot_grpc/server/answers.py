"""Keeps responses small enough for any client: gRPC clients reject over 4 MiB by default.

A page ends when it is full, and its token continues there. A response without pages omits the long
fields of its last items, then the last items themselves, and says so in a notice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Final, Generic, TypeVar

from google.protobuf.message import Message

from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.server.masks import Tree, keep, nested, read_tree

T = TypeVar("T")
R = TypeVar("R", bound=Message)

ANSWER_BYTES: Final = 3 * 2**20
"""Size limit of a response. A single item may exceed it; the contract keeps those below 3.2 MiB."""

answer_bytes: ContextVar[int] = ContextVar("lot_answer_bytes", default=ANSWER_BYTES)
"""The limit of the current call: lower if the server sends only smaller messages."""

_FRAME = 6
"""Bytes around an item of a list: its field number and its length."""

_NOTICES = 4096
"""Bytes reserved for notices and a token."""

_LONG = (16 * 1024, 256)
"""Fields over these many bytes are omitted: first the really long ones, then all but short ones."""

_PROTECTED = ("error", "notices")
"""Fields that report results are never omitted."""

_NARROWING: Final = ("limit", "page_size", "history_limit", "message_limit", "read_mask")
"""Request fields that make the response smaller."""


class Page(Generic[T, R]):
    """The list of a response, filled up to the size limit."""

    def __init__(
        self, request: Any, response: R, to_pb: Callable[[T], Message], reserved: int = 0
    ) -> None:
        """``reserved``: bytes for its other fields. Raises RequestInvalidError (read_mask)."""
        [(name, kind)] = _list_fields(response.DESCRIPTOR)
        self._response: Any = response
        self._items = getattr(response, name)
        self._to_pb = to_pb
        masked = "read_mask" in request.DESCRIPTOR.fields_by_name
        self._tree = read_tree(request.read_mask, kind) if masked else None
        self._room = record_budget() - reserved
        self.full = False
        """Whether another item did not fit."""

    def fits(self, thing: T) -> bool:
        """Add one more item, or return False if it does not fit; the first always fits."""
        message = self._to_pb(thing)
        if self._tree is not None:
            keep(message, self._tree)
        size = message.ByteSize() + _FRAME
        if self._items and size > self._room:
            self.full = True
            return False
        self._items.append(message)
        self._room -= size
        return True

    def ending(self, next_page_token: str) -> R:
        """The response, with its token."""
        self._response.next_page_token = next_page_token
        response: R = self._response
        return response


def record_budget() -> int:
    """Bytes available for the items of a response."""
    return answer_bytes.get() - _NOTICES


def shortened(field: str, why: str) -> outcome_pb2.Notice:
    """The notice of a response that omits something."""
    return outcome_pb2.Notice(
        code=outcome_pb2.NOTICE_CODE_RESPONSE_TRUNCATED,
        field=field,
        message=f"{field} would make the response larger than {answer_bytes.get():,} bytes: {why}",
    )


class Shape:
    """The shape of an RPC's responses, and how to make them fit."""

    def __init__(self, request_type: type[Message], response_type: type[Message]) -> None:
        fields = request_type.DESCRIPTOR.fields_by_name
        self.narrowing = ", ".join(one for one in _NARROWING if one in fields) or "limit, page_size"
        answered = response_type.DESCRIPTOR.fields_by_name
        self._noticed = "notices" in answered
        self._masked = "read_mask" in fields and "next_page_token" not in answered
        self._kind: Any = None
        self._inside = ""
        if self._masked:  # the resource itself, or the first field of a hit
            _, self._kind = next(_list_fields(response_type.DESCRIPTOR))
            if self._kind.name.endswith("Hit"):
                first = self._kind.fields[0]
                self._inside, self._kind = first.name, first.message_type

    def mask(self, request: Any) -> Tree | None:
        """The fields of each item that the request reads; None: all. Raises RequestInvalidError."""
        return read_tree(request.read_mask, self._kind) if self._masked else None

    def fit(self, response: Any, tree: Tree | None, bound: int) -> None:
        """Omit what the mask excludes and what does not fit."""
        if tree is not None:
            for _, items in _lists(response, nest=False):
                for item in items:
                    keep(getattr(item, self._inside) if self._inside else item, tree)
        if self._noticed and response.ByteSize() > bound:
            self._shorten(response, bound)

    def _shorten(self, response: Any, bound: int) -> None:
        size = response.ByteSize() + _NOTICES
        lists = list(_lists(response))
        if not lists:
            return
        first: dict[str, int] = {}
        left_out: dict[str, None] = {}
        for longest in _LONG:
            ranked = [(n, path, item) for path, items in lists for n, item in enumerate(items)]
            for n, path, item in sorted(ranked, key=lambda one: -one[0]):
                if size <= bound:
                    break
                before = item.ByteSize()
                names = list(clear_long(item, longest))
                if names:
                    size -= before - item.ByteSize()
                    left_out.update(dict.fromkeys(names))
                    first[path] = min(n, first.get(path, n))
        words = [f"long fields are omitted from {path}[{n}] on" for path, n in first.items()]
        if left_out:
            words[-1] += f" ({', '.join(left_out)})"
        for path, items in lists:
            if size > bound and path != "results":  # one for each item of the request
                count = len(items)
                while items and size > bound:
                    size -= items.pop().ByteSize() + _FRAME
                words.append(f"{count - len(items)} of {count} {path} are omitted")
        why = f"{'; '.join(words)}; read them by ID, or request less ({self.narrowing})"
        response.notices.append(shortened(next(iter(first), lists[0][0]), why))


def _list_fields(kind: Any) -> Iterator[tuple[str, Any]]:
    """A type's lists of messages and their item types, except maps and notices."""
    for field in kind.fields:
        of = field.message_type
        if not field.is_repeated or of is None or of.GetOptions().map_entry:
            continue
        if field.name != "notices":
            yield field.name, of


def _lists(message: Any, prefix: str = "", *, nest: bool = True) -> Iterator[tuple[str, Any]]:
    """The lists of a response and of its singular messages."""
    for name, _ in _list_fields(message.DESCRIPTOR):
        yield prefix + name, getattr(message, name)
    for field, value in message.ListFields():
        if nest and nested(field):
            yield from _lists(value, f"{prefix}{field.name}.")


def clear_long(message: Any, longest: int, prefix: str = "") -> Iterator[str]:
    """Clear fields longer than ``longest``, also in nested messages; yield their paths."""
    for field, value in message.ListFields():
        path = prefix + field.name
        if nested(field):
            yield from clear_long(value, longest, f"{path}.")
        elif field.name not in _PROTECTED and _size(message, field.name, value) > longest:
            message.ClearField(field.name)
            yield path


def _size(message: Any, name: str, value: Any) -> int:
    size: int = type(message)(**{name: value}).ByteSize()
    return size
