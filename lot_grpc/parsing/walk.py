"""A walk over a syntax tree that finds the pieces, without recursion, however deep the tree."""

from __future__ import annotations

from typing import Final

from tree_sitter import Node, Tree

from lot_grpc.domain.code_shapes import CodeForm
from lot_grpc.domain.errors import LimitExceededError
from lot_grpc.domain.pattern import CodeKind
from lot_grpc.parsing.found import PARTS, Found
from lot_grpc.parsing.frames import Frame, Owned, calls_itself, is_sole
from lot_grpc.parsing.rules import Definition, Handler, NodeTraits, Place, Rules

MAX_PIECES: Final = 2_000
"""Maximum number of pieces of a text. A text with more is refused: none is omitted silently."""

MAX_BROKEN: Final = 50
"""Places that could not be parsed which are reported individually; the others are counted."""

_BESIDE_KEPT = 200
"""Comments that are kept until a definition to which they may belong."""

_NAMED_FUNCTIONS = frozenset({CodeForm.FUNCTION, CodeForm.METHOD})


class Walk:
    """Walks one tree; afterwards the results are in its attributes.

    Attributes:
        found: the pieces with their kinds, unordered.
        broken: the first places that could not be parsed, with the names around each.
        broken_count: the number of all such places.
        owned: methods written outside their type, by type.
    """

    def __init__(self, tree: Tree, source: bytes, rules: Rules) -> None:
        self._tree = tree
        self._source = source
        self._rules = rules
        self._watched = rules.watched
        self._path: list[Node] = []
        self._beside: list[list[Node]] = [[]]
        self._loops: list[tuple[int, NodeTraits]] = []
        self._frames = [Frame(-1, NodeTraits(), None, ())]
        self._opened = 0
        self.found: list[tuple[Found, CodeKind]] = []
        self.broken: list[tuple[Node, tuple[str, ...]]] = []
        self.broken_count = 0
        self.owned: dict[str, Owned] = {}

    def run(self) -> None:
        """Walk. Raises LimitExceededError."""
        rules, path, beside = self._rules, self._path, self._beside
        aside = rules.comments | rules.leading
        cursor = self._tree.walk()
        while True:
            node = cursor.node
            assert node is not None
            kind = node.type
            if node.is_error or node.is_missing:
                self._note_broken(node)
            if kind in aside:
                if len(beside[-1]) < _BESIDE_KEPT:
                    beside[-1].append(node)
            elif kind in self._watched and node.is_named:
                self._enter(node, kind)
            if kind not in rules.comments and cursor.goto_first_child():
                path.append(node)
                beside.append([])
                continue
            self._leave(kind)
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    return
                beside.pop()
                self._leave(path.pop().type)

    def _leave(self, kind: str) -> None:
        """Leave a node, after everything below it."""
        depth = len(self._path)
        while self._loops and self._loops[-1][0] == depth:
            self._loops.pop()[1].loop_depth -= 1
        while self._frames[-1].depth == depth:
            self._close(self._frames.pop())
        if kind not in self._rules.comments and kind not in self._rules.leading:
            self._beside[-1].clear()

    def _note_broken(self, node: Node) -> None:
        if any(above.is_error for above in self._path[-3:]):
            return
        self.broken_count += 1
        if len(self.broken) < MAX_BROKEN:
            self.broken.append((node, self._frames[-1].scope))

    # --- entering -----------------------------------------------------------------------------

    def _enter(self, node: Node, kind: str) -> None:
        rules, frame = self._rules, self._frames[-1]
        place = Place(node, self._source, self._path, frame.form, frame.traits)
        if kind in rules.definitions:
            definition = rules.definitions[kind](place)
            if definition is not None:
                self._open_definition(node, definition)
                return
        if kind in rules.statements and len(self._path) == 1 and len(self._frames) == 1:
            self._open_part(node, CodeForm.STATEMENT, NodeTraits())
        if kind in rules.loops:
            self._open_loop(node)
        seen = NodeTraits()
        handler = None
        if kind in rules.handlers:
            handler = rules.handlers[kind](Place(node, self._source, self._path, frame.form, seen))
        if handler is not None:
            self._open_handler(node, handler)
        place.traits = self._frames[-1].traits
        place.traits.take_in(seen)
        if kind in rules.decisions or kind in rules.loops:
            place.traits.complexity += 1
        if kind in rules.watch:
            rules.watch[kind](place)
        if kind in rules.calls:
            self._note_call(place, kind)

    def _open_definition(self, node: Node, definition: Definition) -> None:
        outside = self._frames[-1]
        scope = outside.scope
        if definition.form is CodeForm.METHOD and definition.owner:
            scope = (*scope, definition.owner)
        frame = Frame(
            len(self._path),
            outside.traits.inside()
            if definition.form is None
            else NodeTraits(tags=set(definition.tags)),
            definition.form,
            (*scope, definition.name),
            definition=definition,
        )
        self._frames.append(frame)
        if definition.form is CodeForm.METHOD:
            self._note_method(outside, definition)
        if definition.form is None:
            return
        if definition.body is None and definition.form is not CodeForm.CLASS:
            return  # a mere declaration is not worth keeping
        aside = self._beside[-1 - self._steps_up(node, definition.outer)]
        frame.found = Found(
            definition.form,
            definition.outer,
            frame.traits,
            scope,
            definition,
            tuple(one for one in aside if one.type in self._rules.leading),
            tuple(one for one in aside if one.type in self._rules.comments),
        )
        self._count_piece()
        self._note_value(definition, frame.traits)

    def _steps_up(self, node: Node, outer: Node) -> int:
        """How many levels above a node the one to extract is."""
        if node == outer:
            return 0
        steps = 1
        while self._path[-steps] != outer:
            steps += 1
        return steps

    def _note_value(self, definition: Definition, traits: NodeTraits) -> None:
        """Note the name with which a body ends, which is its value in Rust."""
        body = definition.body
        count = body.named_child_count if body is not None else 0
        last = body.named_child(count - 1) if body is not None and count else None
        if last is not None and last.type == "identifier":
            traits.returned.add(Place(last, self._source, (), None, traits).text(last))

    def _note_method(self, outside: Frame, definition: Definition) -> None:
        owner = definition.owner or (outside.definition.owner if outside.definition else "")
        if owner:
            owned = self.owned.setdefault(owner, Owned({}))
            owned.names[definition.name] = None
            owned.count += 1
        if outside.found is not None and outside.found.form is CodeForm.CLASS:
            outside.found.methods[definition.name] = None
            outside.found.method_count += 1

    def _open_loop(self, node: Node) -> None:
        if len(self._frames) == 1:
            self._open_part(node, CodeForm.LOOP, NodeTraits())
        traits = self._frames[-1].traits
        traits.tags.add("iteration")
        if traits.loop_depth:
            traits.tags.add("nested_loops")
        traits.loop_depth += 1
        self._loops.append((len(self._path), traits))

    def _open_handler(self, node: Node, handler: Handler) -> None:
        frame = self._frames[-1]
        frame.traits.caught |= dict.fromkeys(handler.caught)
        frame.traits.tags.add("error_handling")
        if frame.traits.in_handler:  # it is part of the outer one's text
            return
        traits = NodeTraits(
            loop_depth=frame.traits.loop_depth,
            in_handler=True,
            tags={"error_handling"},
            caught=dict.fromkeys(handler.caught),
        )
        if handler.propagates:
            traits.tags.add("error_propagation")
            part = Frame(len(self._path), traits, None, frame.scope, part=CodeForm.HANDLER)
            self._frames.append(part)
            return
        self._open_part(node, CodeForm.HANDLER, traits)

    def _open_part(self, node: Node, form: CodeForm, traits: NodeTraits) -> None:
        outside = self._frames[-1]
        frame = Frame(len(self._path), traits, outside.form, outside.scope, part=form)
        if outside.part in {None, CodeForm.STATEMENT}:
            frame.found = Found(form, node, traits, outside.scope)
            frame.found.sole = outside.part is None and is_sole(
                node, outside.definition, self._rules
            )
            self._count_piece()
        self._frames.append(frame)

    def _count_piece(self) -> None:
        self._opened += 1
        if self._opened > MAX_PIECES:
            raise LimitExceededError(
                f"the code has more than {MAX_PIECES:,} pieces; send it in smaller parts",
                limit=MAX_PIECES,
                given=f"more than {MAX_PIECES}",
            )

    def _note_call(self, place: Place, kind: str) -> None:
        called = self._rules.calls[kind](place)
        around = (frame for frame in reversed(self._frames) if frame.form and not frame.part)
        holder = next(around, None)
        if called is not None and holder is not None and calls_itself(holder, called):
            place.traits.self_calls += 1

    # --- leaving ------------------------------------------------------------------------------

    def _close(self, frame: Frame) -> None:
        outside, found = self._frames[-1], frame.found
        if found is not None:
            found.tell_shapes()
        if frame.part or frame.form is None:
            outside.traits.take_in(frame.traits)
        elif frame.form is CodeForm.METHOD:
            self._note_complexity(outside, frame)
        if found is None or found.node.has_error:
            return
        if found.form is CodeForm.STATEMENT:
            self._close_statement(found)
            return
        alone = None
        if found.form in _NAMED_FUNCTIONS:
            alone = next((p for p, _ in self.found if p.sole and p.scope == frame.scope), None)
        kind = found.kind(handles_alone=alone is not None)
        if kind is CodeKind.ERROR_HANDLER and alone is not None:
            self.found = [(one, its) for one, its in self.found if one is not alone]
        self.found.append((found, kind))

    def _close_statement(self, found: Found) -> None:
        """A statement is a piece if it is asynchronous, and then nothing inside it is one."""
        if "async" in found.traits.tags:
            self.found = [
                (one, kind)
                for one, kind in self.found
                if one.form not in PARTS or one.start < found.start
            ]
            self.found.append((found, CodeKind.ASYNC))

    def _note_complexity(self, outside: Frame, frame: Frame) -> None:
        definition, complexity = frame.definition, frame.traits.complexity
        owner = definition.owner if definition is not None else ""
        if not owner and outside.definition is not None:
            owner = outside.definition.owner
        if owner in self.owned:
            self.owned[owner].highest = max(self.owned[owner].highest, complexity)
        if outside.found is not None and outside.found.form is CodeForm.CLASS:
            outside.found.highest = max(outside.found.highest, complexity)
