"""Takes secrets out of the texts of requests, before anything reads, compares or stores them.

Only texts are changed. What identifies something stays as it is: ids, namespaces, keys, etags,
cursors and filters.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from lot_grpc.domain.errors import RequestInvalidError, Violation
from lot_grpc.pb.buf.validate import validate_pb2
from lot_grpc.pb.lot.v1 import outcome_pb2, transfer_pb2
from lot_grpc.redaction import SecretFinder
from lot_grpc.server.call import Call, Handler, Method
from lot_grpc.server.codec.transfer import Reading, is_shortened, readable_form, row_from_pb
from lot_grpc.server.server_state import ServerState
from lot_grpc.server.status import MAX_VIOLATIONS
from lot_grpc.server.structural_checks import Path, member, render, subscript
from lot_grpc.services.resources import REGISTRY
from lot_grpc.telemetry.metrics import REDACTIONS

MOST_NOTICES: Final = 50
"""Fields with a notice of their own; a last notice counts the rest."""

_THREAD_BYTES: Final = 16 * 1024
"""Larger requests are searched in a thread: a MiB takes some 10 ms, or a second if it is nothing
but secrets."""

_RULES: Any = vars(validate_pb2)["field"]
_IDENTIFIERS: Final = frozenset(
    (
        "after_cursor",
        "cursor",
        "etag",
        "id",
        "key",
        "keys",
        "model",
        "namespace",
        "page_token",
        "subject",
    )
)


def redaction(method: Method, handler: Handler, state: ServerState) -> Handler:
    """Redacts the requests of writes, and of reads whose query is stored in a receipt.

    A request that is repeated is the same again: request ids and the joining of repeats come after.
    """
    finder = state.guards.secrets
    if finder is None or not concerned(method):
        return handler
    imports = method.request_type is transfer_pb2.ImportRequest
    if not imports and "notices" not in method.response_type.DESCRIPTOR.fields_by_name:
        raise TypeError(f"{method.name} stores texts, but its response has no notices")
    redactor = Redactor(finder, method.request_type)

    async def redact(call: Call, message: Message) -> None:
        if message.ByteSize() > _THREAD_BYTES:
            found = await asyncio.to_thread(redactor.redact, message)
        else:
            found = redactor.redact(message)
        call.notices += notices_of(found)
        for _, rules in found:
            for rule in rules:
                REDACTIONS.add(rule)

    async def redacted(call: Call) -> Any:
        if method.client_streaming:

            async def each(message: Message) -> None:
                await redact(call, message)

            call.request.on_each(_refuse_secrets(finder) if imports else each)
        else:
            await redact(call, call.request)
        return await handler(call)

    return redacted


def concerned(method: Method) -> bool:
    """Whether texts of its requests are stored."""
    receipt = "retrieval_id" in method.response_type.DESCRIPTOR.fields_by_name
    return (method.writes or receipt) and Plan.of(method.request_type.DESCRIPTOR).has_texts


def notices_of(found: list[tuple[str, list[str]]]) -> list[outcome_pb2.Notice]:
    """A notice for each field that was changed: which, and the rules, never the secret."""
    notices = [
        outcome_pb2.Notice(
            code=outcome_pb2.NOTICE_CODE_REDACTED,
            field=field,
            message=f"redacted before it was stored: {', '.join(dict.fromkeys(rules))}",
        )
        for field, rules in found[:MOST_NOTICES]
    ]
    if more := len(found) - len(notices):
        text = f"{more} more fields were redacted"
        notices.append(outcome_pb2.Notice(code=outcome_pb2.NOTICE_CODE_REDACTED, message=text))
    return notices


def _refuse_secrets(finder: SecretFinder) -> Any:
    """The check of an import, whose records are stored as they were exported, or not at all.

    It searches what would be stored, which is the stored form: the readable form beside it may omit
    what an earlier version did not know.
    """
    redactor = Redactor(finder, transfer_pb2.ExportRecord)
    reading = Reading("", exact=False, collections=REGISTRY.exported, dimensions=0)

    def violations(request: Any) -> Iterator[Violation]:
        for number, record in enumerate(request.records):
            path = f"records[{number}]"
            try:
                row = row_from_pb(record, path, reading)
                shown = readable_form(row)
            except RequestInvalidError:
                continue  # the servicer reads it in the same way, and refuses all of the request
            for field, rules in secrets_in(redactor, shown, row.record.payload):
                yield Violation(
                    f"{path}.{field}",
                    f"redact.{rules[0]}",
                    "contains a secret, and an import stores records as exported: edit or "
                    "delete the record where it was exported, or import it with LOT_REDACT=false "
                    "and use `lot-grpc scan` to find what to edit",
                )

    async def check(request: Any) -> None:
        found = await asyncio.to_thread(lambda: list(violations(request)))
        if found:
            raise RequestInvalidError(found[:MAX_VIOLATIONS], len(found[MAX_VIOLATIONS:]))

    return check


def secrets_in(
    redactor: Redactor, record: Any, payload: Mapping[str, Any]
) -> list[tuple[str, list[str]]]:
    """Fields of an exported record with secrets, and the rules. The record stays as it is.

    ``payload``: what is stored of it. It is searched if the readable form shows no secret, since it
    has the same again, and if that omits long fields.
    """
    copy = transfer_pb2.ExportRecord()
    copy.CopyFrom(record)
    copy.ClearField("vectors")
    copy.ClearField("stored_form")
    found = redactor.redact(copy)
    if not found or is_shortened(record):
        found += redactor.search(payload, ((None, "stored_form"), "row"))
    return found


class Redactor:
    """Redacts messages of one type."""

    def __init__(self, finder: SecretFinder, kind: type[Message], *, names: bool = False) -> None:
        """``names``: also ids, keys and filters. To find secrets there, not to store the result."""
        self.finder = finder
        self._names = names
        self._plan = Plan.of(kind.DESCRIPTOR, names=names)

    def redact(self, message: Message) -> list[tuple[str, list[str]]]:
        """Replace the secrets in a message; the paths of the changed fields, and the rules."""
        if not self.finder.may_find(message.SerializeToString()):
            return []
        walk = _Walk(self.finder)
        walk.message(message, None, self._plan)
        return walk.found

    def search(self, payload: Mapping[str, Any], path: Path) -> list[tuple[str, list[str]]]:
        """The secrets in the texts of a stored record, which may be nested at will."""
        walk = _Walk(self.finder)
        left: list[tuple[Any, Path, str]] = [
            (value, (path, member(self.finder.redact(name)[0])), name)
            for name, value in payload.items()
            if self._names or not _is_identifier(name)
        ]
        while left:
            value, at, key = left.pop()
            if isinstance(value, str):
                walk.add(self.finder.redact_member(key, value)[1], at)
            elif isinstance(value, list):
                left += ((item, (at, index), key) for index, item in enumerate(value))
            elif isinstance(value, dict):
                for name, item in value.items():
                    shown, rules = self.finder.redact(name)
                    inside = (at, member(shown))
                    walk.add(rules, inside)
                    left.append((item, inside, name))
        return walk.found


class Plan:
    """The fields of a type that can have texts. Types may be recursive."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, int]] = []
        """With the limit of each in bytes; 0: none."""
        self.lists: list[tuple[str, int, bool]] = []
        """Lists of texts, and whether these must differ."""
        self.maps: list[tuple[str, Plan | None, int]] = []
        """Maps; of messages, or of texts with the limit of each."""
        self.messages: list[tuple[str, Plan]] = []
        self.many: list[tuple[str, Plan]] = []
        self.well_known: str = ""
        """Struct, Value or ListValue, if the type is one of them."""
        self.key_of: Callable[[Any], str] | None = None
        """The key of what is in it, if it has one: it may show that a value is a secret."""
        self.has_texts = False

    @classmethod
    def of(cls, descriptor: Any, *, names: bool = False) -> Plan:
        """The plan of a type; ``names``: with what identifies."""
        plans: dict[str, Plan] = {}
        plan = _plan(descriptor, plans, names=names)
        plan.has_texts = any(
            one.texts or one.lists or one.maps or one.well_known for one in plans.values()
        )
        return plan


def _plan(kind: Descriptor, plans: dict[str, Plan], *, names: bool) -> Plan:
    if kind.full_name in plans:
        return plans[kind.full_name]
    plans[kind.full_name] = plan = Plan()
    if kind.file.package == "google.protobuf":
        plan.well_known = kind.name if kind.name in {"Struct", "Value", "ListValue"} else ""
        return plan
    fields = kind.fields_by_name
    if "key" in fields and "value" in fields:
        plan.key_of = attrgetter("key")
    elif "preference" in fields and "history" in fields:
        plan.key_of = attrgetter("preference.key")  # former values do not repeat it
    for field in kind.fields:
        of = field.message_type
        if of is None:
            if field.type == FieldDescriptor.TYPE_STRING and (names or not _identifies(field)):
                rules = field.GetOptions().Extensions[_RULES]
                if field.is_repeated:
                    limit = rules.repeated.items.string.max_bytes
                    plan.lists.append((field.name, limit, rules.repeated.unique))
                else:
                    plan.texts.append((field.name, rules.string.max_bytes))
        elif of.GetOptions().map_entry:
            if of.fields_by_name["key"].type == FieldDescriptor.TYPE_STRING:
                item = of.fields_by_name["value"].message_type
                child = _plan(item, plans, names=names) if item is not None else None
                limit = field.GetOptions().Extensions[_RULES].map.values.string.max_bytes
                plan.maps.append((field.name, child, limit))
        elif names or not of.name.endswith("Filter"):
            child = _plan(of, plans, names=names)
            (plan.many if field.is_repeated else plan.messages).append((field.name, child))
    return plan


def _identifies(field: FieldDescriptor) -> bool:
    """Whether a text names something, and so must stay as it is."""
    rules = field.GetOptions().Extensions[_RULES]
    named = (rules.repeated.items.string if field.is_repeated else rules.string).pattern
    return bool(named) or _is_identifier(field.name)


def _is_identifier(name: str) -> bool:
    return name in _IDENTIFIERS or name.endswith(("_id", "_ids"))


class _Walk:
    """One walk over one message."""

    def __init__(self, finder: SecretFinder) -> None:
        self._finder = finder
        self.found: list[tuple[str, list[str]]] = []

    def message(self, message: Any, path: Path, plan: Plan, key: str = "") -> None:
        """Redact the fields that the plan names. ``key`` is that of the message, if it has one."""
        if plan.well_known:
            self.value(message, path, plan.well_known, key)
            return
        if plan.key_of is not None:
            key = plan.key_of(message)
        for name, limit in plan.texts:
            if text := getattr(message, name):
                text, rules = self._finder.redact(text, limit)
                if self.add(rules, (path, name)):
                    setattr(message, name, text)
        for name, limit, unique in plan.lists:
            self.list(getattr(message, name), (path, name), limit, unique=unique)
        for name, item, limit in plan.maps:
            self.map(getattr(message, name), (path, name), item, limit)
        for name, child in plan.messages:
            if message.HasField(name):
                self.message(getattr(message, name), (path, name), child, key)
        for name, child in plan.many:
            for index, each in enumerate(getattr(message, name)):
                self.message(each, ((path, name), index), child, key)

    def add(self, rules: list[str], path: Path) -> bool:
        """Note what was found; whether it is anything."""
        if rules:
            self.found.append((render(path), rules))
        return bool(rules)

    def list(self, texts: Any, path: Path, limit: int, *, unique: bool) -> None:
        """A list of texts; of unique ones that became equal, one stays."""
        changed = False
        for index, text in enumerate(texts):
            made, rules = self._finder.redact(text, limit)
            if self.add(rules, (path, index)):
                texts[index] = made
                changed = True
        if changed and unique:
            texts[:] = list(dict.fromkeys(texts))

    def map(self, entries: Any, path: Path, plan: Plan | None, limit: int) -> None:
        """A map of texts (``plan`` is None), or of messages."""
        counts: Counter[str] = Counter()
        for key in list(entries):
            at = (path, subscript(self._finder.redact(key)[0]))
            value = entries[key]
            if isinstance(value, Message):
                if plan is not None:
                    self.message(value, at, plan, key)
            elif isinstance(value, str):
                value, rules = self._finder.redact_member(key, value, limit)
                if self.add(rules, at):
                    entries[key] = value
            self.key(entries, key, at, counts)

    def key(self, entries: Any, key: str, at: Path, counts: Counter[str]) -> None:
        """A key of a map or Struct: its entry moves to the redacted one.

        ``counts``: how many keys became the same; each gets a number, so that no value is lost.
        """
        made, rules = self._finder.redact(key)
        if not self.add(rules, at):
            return
        free = made
        while free in entries:
            counts[made] += 1
            free = f"{made} {counts[made] + 1}"
        if isinstance(entries[key], Message):
            entries[free].CopyFrom(entries[key])
        else:
            entries[free] = entries[key]
        del entries[key]

    # --- JSON -----------------------------------------------------------------------------------

    def value(self, value: Any, path: Path, kind: str, key: str) -> None:
        """A Struct, a ListValue or a Value, under a key that may show what its texts are."""
        if kind == "Value":
            kind = value.WhichOneof("kind") or ""
            if kind == "string_value":
                text, rules = self._finder.redact_member(key, value.string_value)
                if self.add(rules, path):
                    value.string_value = text
                return
            value = getattr(value, kind) if kind in {"struct_value", "list_value"} else None
        if kind in {"Struct", "struct_value"}:
            self.struct(value.fields, path)
        elif kind in {"ListValue", "list_value"}:
            for index, item in enumerate(value.values):
                self.value(item, (path, index), "Value", key)

    def struct(self, fields: Any, path: Path) -> None:
        """The members of an object."""
        counts: Counter[str] = Counter()
        for key in list(fields):
            at = (path, member(self._finder.redact(key)[0]))
            self.value(fields[key], at, "Value", key)
            self.key(fields, key, at, counts)
