"""The rules of a language, and the place in the tree that they get."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from lot_grpc.domain.code_shapes import CodeForm

_LONGEST_TEXT = 200


@dataclass(slots=True)
class NodeTraits:
    """What was seen in a definition, or in a part of one that is a piece by itself.

    ``complexity`` is McCabe's number so far. ``self_calls`` counts calls by its own name,
    ``halvings`` divisions by two, ``midpoints`` those that assign the middle of two other names.
    ``added`` are names that a loop adds to, ``returned`` names that are returned.
    """

    complexity: int = 1
    loop_depth: int = 0
    in_handler: bool = False
    tags: set[str] = field(default_factory=set)
    caught: dict[str, None] = field(default_factory=dict)
    self_calls: int = 0
    halvings: int = 0
    midpoints: int = 0
    added: set[str] = field(default_factory=set)
    returned: set[str] = field(default_factory=set)

    def inside(self) -> NodeTraits:
        """The initial traits of an inner scope."""
        return NodeTraits(loop_depth=self.loop_depth, in_handler=self.in_handler)

    def take_in(self, part: NodeTraits) -> None:
        """Add the traits of a part."""
        self.complexity += part.complexity - 1
        self.tags |= part.tags
        self.caught |= part.caught
        self.self_calls += part.self_calls
        self.halvings += part.halvings
        self.midpoints += part.midpoints
        self.added |= part.added
        self.returned |= part.returned


@dataclass(frozen=True, slots=True)
class Definition:
    """A named definition.

    ``form`` None: a scope that is not a piece (a module, a namespace). ``outer`` is the node to
    extract, ``body`` the node before which the signature ends. ``owner`` is the type of a method
    written outside it. For recursion, ``receivers`` are those on which a method calls itself,
    ``recursive_by_name`` says whether its bare name suffices, ``arity`` is the number of arguments
    (None: any), ``called`` the name in calls if it is not ``name``. ``doc`` is the docstring;
    comments are found separately. ``title`` replaces the name.
    """

    form: CodeForm | None
    word: str
    name: str
    outer: Node
    body: Node | None
    parameters: tuple[str, ...] = ()
    owner: str = ""
    receivers: frozenset[str] = frozenset()
    recursive_by_name: bool = True
    called: str = ""
    arity: int | None = None
    tags: tuple[str, ...] = ()
    doc: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Handler:
    """Error handling. ``propagates``: it only passes the error on."""

    caught: tuple[str, ...] = ()
    propagates: bool = False


@dataclass(slots=True)
class Place:
    """A node with its surroundings."""

    node: Node
    source: bytes
    path: Sequence[Node]
    form: CodeForm | None
    traits: NodeTraits

    def text(self, node: Node | None) -> str:
        """The source of a node, empty for None; at most 200 characters, so names only."""
        if node is None:
            return ""
        start = node.start_byte
        cut = self.source[start : min(node.end_byte, start + 4 * _LONGEST_TEXT)]
        return cut.decode(errors="ignore")[:_LONGEST_TEXT]

    def field(self, name: str, of: Node | None = None) -> Node | None:
        """A child by its name in the grammar."""
        return (of or self.node).child_by_field_name(name)

    def above(self, steps: int = 1) -> Node | None:
        """The ancestor ``steps`` levels up."""
        return self.path[-steps] if steps <= len(self.path) else None

    @property
    def in_class(self) -> bool:
        """Whether the nearest enclosing definition is a class."""
        return self.form is CodeForm.CLASS


Watch = Callable[[Place], None]
Define = Callable[[Place], Definition | None]
Handle = Callable[[Place], Handler | None]


@dataclass(frozen=True, slots=True)
class Called:
    """A call: the text before the last dot (empty for a plain name), and the name."""

    receiver: str
    name: str
    argument_count: int


@dataclass(frozen=True, slots=True)
class Rules:
    """One language, by the node types of its grammar.

    Attributes:
        joint: the separator of a qualified name.
        leading: nodes before a definition that belong to it (attributes, decorators).
        comments: comments.
        definitions, handlers: readers of possible definitions and handlers, by node type.
        loops: loops; they add one to the complexity.
        decisions: other nodes that add one.
        watch: further watchers, by node type.
        calls: readers of calls, by node type.
        statements: top-level nodes that are a piece by themselves if asynchronous.
        blocks: nodes between a body and its statements.
    """

    joint: str
    comments: frozenset[str]
    definitions: Mapping[str, Define]
    handlers: Mapping[str, Handle]
    loops: frozenset[str]
    decisions: frozenset[str]
    watch: Mapping[str, Watch]
    calls: Mapping[str, Callable[[Place], Called | None]]
    leading: frozenset[str] = frozenset()
    statements: frozenset[str] = frozenset()
    blocks: frozenset[str] = frozenset()

    @property
    def watched(self) -> frozenset[str]:
        """All node types with a meaning."""
        return frozenset(
            {
                *self.definitions,
                *self.handlers,
                *self.loops,
                *self.decisions,
                *self.watch,
                *self.calls,
                *self.statements,
            }
        )


def count_one(place: Place) -> None:
    """Add one to the complexity."""
    place.traits.complexity += 1


def note_tag(*tags: str) -> Watch:
    """A watcher that adds tags."""

    def watch(place: Place) -> None:
        place.traits.tags.update(tags)

    return watch


def names_in(node: Node | None, place: Place, kinds: frozenset[str]) -> tuple[str, ...]:
    """The outermost nodes of some types below a node, as text, each once, at most 20."""
    found: dict[str, None] = {}
    waiting = [node] if node is not None else []
    while waiting and len(found) < 20:
        one = waiting.pop()
        if one.type in kinds:
            found[place.text(one)] = None
        else:
            waiting.extend(reversed(one.named_children))
    return tuple(found)


def children_of(node: Node | None, kind: str) -> list[Node]:
    """The children of a type."""
    return [child for child in node.named_children if child.type == kind] if node else []


def first(node: Node | None) -> Node | None:
    """The first child that is not punctuation."""
    return node.named_child(0) if node is not None and node.named_child_count else None
