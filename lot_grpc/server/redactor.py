"""Takes secrets out of messages, by a plan made once for each type, and finds them in records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from lot_grpc.pb.buf.validate import validate_pb2
from lot_grpc.redaction import SecretFinder
from lot_grpc.server.structural_checks import Path, member, render, subscript

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

    def search(self, payload: Mapping[str, Any], *path: str) -> list[tuple[str, list[str]]]:
        """The secrets in the texts of a stored record, which may be nested at will."""
        texts = list(self._texts(payload, path))
        # As a rule sees them; one look at all of them is much faster than one at each.
        raw = "\n".join(f'{key}="{text}"' for _, key, text in texts)
        if not self.finder.may_find(raw.encode(errors="surrogatepass")):
            return []
        found = []
        for at, key, text in texts:
            if rules := self.finder.redact_member(key, text)[1]:
                found.append((self._shown(at), rules))
        return found

    def _texts(
        self, payload: Mapping[str, Any], path: tuple[str | int, ...]
    ) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
        """The texts with their paths and keys; the keys of what is nested are texts, too."""
        left: list[tuple[Any, tuple[str | int, ...], str]] = [
            (value, (*path, name), name)
            for name, value in payload.items()
            if self._names or not is_identifier(name)
        ]
        while left:
            value, at, key = left.pop()
            if isinstance(value, str):
                yield at, key, value
            elif isinstance(value, list):
                left += ((item, (*at, index), key) for index, item in enumerate(value))
            elif isinstance(value, dict):
                for name, item in value.items():
                    yield (*at, name), "", name
                    left.append((item, (*at, name), name))

    def _shown(self, at: tuple[str | int, ...]) -> str:
        """A path as violations have it, without secrets."""
        path: Path = None
        for step in at:
            path = (path, step if isinstance(step, int) else member(self.finder.redact(step)[0]))
        return render(path)


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
    return bool(named) or is_identifier(field.name)


def is_identifier(name: str) -> bool:
    """Whether a field or a key of a record with this name names something."""
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
