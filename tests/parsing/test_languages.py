# ruff: noqa: E501 - code in the tables stays on one line
"""What is found in each language, piece by piece."""

from __future__ import annotations

import pytest

from lot_grpc.parsing.code import parse_code
from lot_grpc.parsing.interface import LANGUAGES
from tests.parsing.samples import SAMPLES

FOUND: dict[str, list[tuple[str, str, int, int, int, str]]] = {
    "go": [
        ("class", "Server", 6, 8, 3, "class struct"),
        ("class", "Store", 11, 14, 1, "class interface"),
        ("method", "Server.Load", 19, 29, 3, "error_handling error_propagation method"),
        ("error_handler", "Server.Load", 21, 23, 2, "error_handling"),
        ("algorithm", "Server.depth", 31, 36, 2, "method recursion"),
        ("async", "Watch", 38, 47, 4, "async channel function goroutine iteration select"),
        ("error_handler", "Close", 49, 53, 2, "error_handling function"),
        ("function", "Max", 55, 60, 3, "function"),
        ("function", "square", 62, 62, 1, "function"),
    ],
    "java": [
        ("class", "Orders", 4, 46, 3, "class"),
        ("method", "Orders.Orders", 8, 10, 1, "method"),
        ("method", "Orders.load", 13, 23, 2, "error_handling method raises"),
        ("error_handler", "Orders.load", 16, 22, 2, "error_handling raises"),
        ("async", "Orders.loadLater", 25, 27, 1, "async method"),
        ("algorithm", "Orders.factorial", 29, 31, 2, "method recursion"),
        ("method", "Orders.log", 33, 33, 1, "method"),
        ("method", "Orders.log", 35, 41, 3, "method"),
        ("method", "Orders.show", 43, 43, 1, "method"),
        ("method", "Orders.show", 45, 45, 1, "method"),
        ("class", "Store", 48, 52, 1, "class interface"),
        ("method", "Store.has", 51, 51, 1, "method"),
        ("class", "Color", 54, 54, 1, "class enum"),
        ("method", "Color.next", 54, 54, 1, "method"),
        ("class", "Point", 56, 58, 1, "class record"),
        ("method", "Point.sum", 57, 57, 1, "method"),
    ],
    "javascript": [
        ("async", "loadSettings", 7, 17, 3, "async await error_handling function raises"),
        ("error_handler", "loadSettings", 9, 16, 3, "async await error_handling raises"),
        ("algorithm", "pairs", 19, 27, 5, "function iteration nested_loops"),
        ("class", "Queue", 29, 46, 1, "class"),
        ("method", "Queue.constructor", 32, 35, 1, "method"),
        ("method", "Queue.of", 37, 39, 1, "method"),
        ("async", "Queue.drain", 41, 43, 1, "async await method promise"),
        ("method", "Queue.isFull", 45, 45, 1, "method"),
        ("function", "naturals", 48, 51, 2, "function generator iteration"),
        ("function", "Button", 53, 53, 1, "function"),
        ("async", "", 55, 57, 1, "async error_handling promise"),
        ("algorithm", "module.exports.depth", 59, 61, 2, "function recursion"),
    ],
    "python": [
        ("class", "Cart", 7, 24, 2, "class"),
        ("method", "Cart.size", 13, 15, 1, "method"),
        ("algorithm", "Cart.walk", 17, 20, 2, "iteration method recursion"),
        ("method", "Cart.empty", 22, 24, 1, "method"),
        ("error_handler", "read_config", 27, 36, 2, "error_handling function"),
        ("async", "fetch", 41, 47, 3, "async await error_handling function iteration raises"),
        ("error_handler", "fetch", 43, 46, 2, "async await error_handling"),
        ("algorithm", "total", 50, 54, 2, "accumulation function iteration"),
        ("algorithm", "find_first", 57, 61, 3, "function iteration search"),
        ("algorithm", "bisect", 64, 72, 3, "binary_search function iteration"),
        ("algorithm", "merge_sort", 75, 79, 2, "divide_and_conquer function recursion"),
        ("function", "counted", 82, 87, 1, "function"),
        ("function", "counted.wrapper", 83, 85, 1, "function"),
        ("function", "double", 90, 90, 1, "function"),
        ("algorithm", "", 92, 94, 3, "iteration nested_loops"),
    ],
    "rust": [
        ("class", "Order", 4, 8, 2, "class struct"),
        ("class", "State", 10, 13, 1, "class enum"),
        ("class", "impl Order", 15, 26, 2, "class impl"),
        ("method", "Order::new", 16, 18, 1, "method"),
        ("algorithm", "Order::depth", 20, 25, 2, "method recursion"),
        ("class", "Display for Order", 28, 32, 1, "class impl"),
        ("method", "Order::fmt", 29, 31, 1, "method"),
        ("class", "Store", 34, 40, 1, "class trait"),
        ("method", "Store::has", 37, 39, 1, "method"),
        ("function", "read", 43, 54, 5, "error_handling error_propagation function"),
        ("error_handler", "read", 46, 53, 4, "error_handling"),
        ("async", "main", 56, 62, 2, "async async_block await error_handling function spawn"),
        ("error_handler", "main", 59, 61, 2, "async await error_handling"),
        ("algorithm", "sums::total", 65, 71, 2, "accumulation function iteration"),
    ],
    "typescript": [
        ("class", "Store", 1, 4, 1, "class interface"),
        ("class", "Users", 6, 24, 4, "class"),
        ("method", "Users.constructor", 8, 8, 1, "method"),
        ("async", "Users.get", 11, 14, 1, "async method"),
        ("error_handler", "Users.put", 16, 23, 4, "error_handling method raises"),
        ("class", "Shape", 26, 28, 1, "class"),
        ("function", "math.clamp", 31, 33, 3, "function"),
        ("function", "identity", 36, 36, 1, "function"),
    ],
}
"""Kind, name, first and last line, cyclomatic complexity, tags; in the order of the text."""


def test_each_language_has_a_sample():
    assert tuple(sorted(SAMPLES)) == LANGUAGES == tuple(sorted(FOUND))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sample_gives_just_its_pieces(language):
    parsed = parse_code(SAMPLES[language], language)
    assert parsed.unparsed == ()
    assert [
        (
            piece.kind.value,
            piece.name,
            piece.first_line,
            piece.last_line,
            piece.cyclomatic_complexity,
            " ".join(piece.tags),
        )
        for piece in parsed.pieces
    ] == FOUND[language]


def pieces(code, language):
    return {piece.name: piece for piece in parse_code(code, language).pieces}


def sample(language):
    """The definitions of a sample, by name."""
    found = parse_code(SAMPLES[language], language).pieces
    return {piece.name: piece for piece in reversed(found)}


@pytest.mark.parametrize(
    ("language", "name", "parameters", "signature"),
    [
        ("python", "Cart.walk", ("node", "depth"), "def walk(self, node, depth=0)"),
        ("python", "fetch", ("url", "tries", "options"), "async def fetch(url, *, tries=3, **options)"),
        ("javascript", "loadSettings", ("id", "{ cache = true }", "rest"),
         "export async function loadSettings(id, { cache = true } = {}, ...rest)"),
        ("javascript", "Queue.isFull", (), "isFull = ()"),
        ("typescript", "Users.get", ("id", "fresh"), "async get(id: string, fresh?: boolean): Promise<User>"),
        ("typescript", "identity", ("value",), "export const identity = <T,>(value: T): T"),
        ("go", "Max", ("a", "b", "more"), "func Max[T Ordered](a, b T, more ...T) T"),
        ("go", "Server.Load", ("id",), "func (s *Server) Load(id string) (*Order, error)"),
        ("rust", "Order::depth", ("node",), "fn depth(&self, node: &Node) -> usize"),
        ("rust", "read", ("path",), "pub fn read(path: &str) -> Result<i64, Error>"),
        ("java", "Orders.loadLater", ("id",), "CompletableFuture<T> loadLater(String id)"),
        ("java", "Point", ("x", "y"), "record Point(int x, int y)"),
    ],
)  # fmt: skip
def test_parameters_and_signature(language, name, parameters, signature):
    piece = sample(language)[name]
    assert piece.parameters == parameters
    assert piece.signature == signature


@pytest.mark.parametrize(
    ("language", "name", "methods", "count"),
    [
        ("python", "Cart", ("size", "walk", "empty"), 3),
        ("javascript", "Queue", ("constructor", "of", "drain", "isFull"), 4),
        ("typescript", "Store", ("get", "put"), 2),
        ("typescript", "Shape", ("area",), 1),
        ("go", "Server", ("Load", "depth"), 2),
        ("go", "Store", ("Get", "Close"), 2),
        ("rust", "Order", ("new", "depth", "fmt"), 3),
        ("rust", "impl Order", ("new", "depth"), 2),
        ("rust", "Display for Order", ("fmt",), 1),
        ("rust", "Store", ("get", "has"), 2),
        ("java", "Orders", ("Orders", "load", "loadLater", "factorial", "log", "show"), 8),
    ],
)
def test_methods_of_a_class(language, name, methods, count):
    piece = sample(language)[name]
    assert piece.methods == methods
    assert piece.method_count == count


@pytest.mark.parametrize(
    ("language", "name", "caught"),
    [
        ("python", "read_config", ("FileNotFoundError", "json.JSONDecodeError")),
        ("javascript", "loadSettings", ("SyntaxError",)),
        ("typescript", "Users.put", ("Conflict", "Closed")),
        ("go", "Close", ("os.ErrClosed",)),
        ("rust", "read", ("ParseIntError::Overflow",)),
        ("java", "Orders.load", ("SQLException", "TimeoutException")),
    ],
)
def test_errors_that_are_handled_by_type(language, name, caught):
    assert sample(language)[name].caught == caught


@pytest.mark.parametrize(
    ("language", "name", "doc"),
    [
        ("python", "Cart", "What a customer wants to buy. Not yet paid."),
        ("python", "fetch", "# Fetch a page,\n# with retries."),
        ("typescript", "Users.get", "// Gets one user."),
        ("go", "Server.Load", "// Load reads an order. It is nil when there is none."),
        ("rust", "Order", "/// An order of a customer.\n"),
        ("java", "Orders.load", "/** Loads one order. */"),
        ("python", "Cart.empty", ""),
        ("java", "Orders.loadLater", ""),
    ],
)
def test_documentation_beside_or_inside(language, name, doc):
    assert sample(language)[name].doc == doc


def test_a_comment_with_a_line_between_belongs_to_nothing():
    assert pieces("# About the file.\n\ndef f(): pass\n", "python")["f"].doc == ""


def test_what_belongs_to_a_definition_is_cut_out_with_it():
    assert sample("python")["Cart.size"].code.startswith("@property\n")
    assert sample("python")["Cart"].code.startswith("@dataclass\nclass Cart")
    assert sample("rust")["Order"].code.startswith("#[derive(Debug, Clone)]\npub struct")
    assert sample("typescript")["Users.get"].code.startswith("@Cached(60)\n")
    assert sample("typescript")["identity"].code.startswith("export const identity")
    assert sample("java")["Orders.load"].code.startswith("@Override")


# --- complexity -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "code", "complexity"),
    [
        ("python", "def f(a):\n  return 1", 1),
        ("python", "def f(a):\n  if a:\n    pass\n  elif b:\n    pass\n  else:\n    pass", 3),
        ("python", "def f(a):\n  return [x for x in a if x and y or z]", 5),
        ("python", "def f(a):\n  return 1 if a else 2", 2),
        ("python", "def f(a):\n  match a:\n    case 1: pass\n    case x if x > 2: pass\n    case _: pass", 4),
        ("python", "def f(a):\n  with a:\n    assert a\n  try: pass\n  except A: pass\n  except B: pass\n  finally: pass", 3),
        ("python", "def f(a):\n  def g(b):\n    if b: pass\n  g = lambda: 1 if a else 2", 1),
        ("python", "def f(a):\n  use(lambda: 1 if a else 2)", 2),
        ("javascript", "function f(a) { switch (a) { case 1: case 2: break; default: } }", 3),
        ("javascript", "function f(a) { do { a ??= b ?? c; } while (a && b || c) }", 5),
        ("javascript", "function f(a) { for (const k in a) {} for (;;) {} while (a) {} }", 4),
        ("typescript", "function f(a: number) { return a ? 1 : 2; }", 2),
        ("go", "package p\nfunc f(a any) { switch a.(type) { case int, string: default: } }", 2),
        ("go", "package p\nfunc f(a int) { switch { case a > 1 && a < 3: } ; for range 3 {} }", 4),
        ("rust", "fn f(a: u8) { match a { 1 => {} 2 | 3 => {} _ => {} } }", 3),
        ("rust", "fn f(a: u8) { if let Some(x) = y && x > 1 {} let Some(z) = w else { return }; }", 4),
        ("rust", "fn f(a: u8) -> R { loop { a()?; } while b {} }", 4),
        ("java", "class A { int f(int a) { do {} while (a > 1); return a > 1 || b ? 1 : 2; } }", 4),
        ("java", "class A { int f(int a) { return switch (a) { case 1, 2 -> 1; default -> 2; }; } }", 2),
    ],
)  # fmt: skip
def test_cyclomatic_complexity(language, code, complexity):
    found = parse_code(code, language)
    assert found.unparsed == ()
    piece = next(piece for piece in found.pieces if piece.name.rpartition(".")[2] == "f")
    assert piece.cyclomatic_complexity == complexity


# --- what is told surely, and what is not -----------------------------------------------------


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "class A:\n  def get(self, x): return get(x)"),
        ("python", "class A:\n  def close(self): self.inner.close()"),
        ("python", "def f(f): return f(1)"),
        ("python", "def f():\n  def g(): return f()\n  return g"),
        ("python", "def f(a): return a.f()"),
        ("javascript", "class A { get(x) { return get(x); } }"),
        ("javascript", "exports.q = function () { return q(); };"),
        ("go", "package p\nfunc (s *S) f() { f() }"),
        ("go", "package p\nfunc (s *S) f() { s.next.f() }"),
        ("rust", "impl A { fn f(&self) { f() } }"),
        ("java", "class A { void f() { f(1); } void f(int a) {} }"),
        ("java", "class A { void f(B b) { f(b.c()); } void f(C c) {} }"),
        ("java", "class A { A() { this.b.A(); } }"),
    ],
)
def test_a_call_of_something_else_by_the_same_name_is_no_recursion(language, code):
    assert not [p for p in parse_code(code, language).pieces if "recursion" in p.tags]


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "class A:\n  @classmethod\n  def f(cls): return cls.f()"),
        ("python", "class A:\n  @staticmethod\n  def f(): return A.f()"),
        ("python", "def f(a): return map(lambda x: f(x), a)"),
        ("javascript", "class A { f() { return this.f(); } }"),
        ("javascript", "const f = (n) => n && f(n - 1);"),
        ("javascript", "exports.q = function w() { return w(); };"),
        ("rust", "impl A { fn f() { Self::f() } }"),
        ("rust", "fn f<T>() { f::<T>() }"),
        ("java", "class A { void f(int a) { this.f(a); } void f() {} }"),
    ],
)
def test_recursion(language, code):
    assert [p for p in parse_code(code, language).pieces if "recursion" in p.tags]


@pytest.mark.parametrize(
    ("language", "code", "shape"),
    [
        ("python", "def f(a):\n  while a:\n    if a.ok:\n      return a", "search"),
        ("python", "def f(a):\n  for x in a:\n    return x", "search"),
        ("python", "def f(a):\n  for x in a:\n    use(x)\n  for y in a:\n    use(y)", "nested_loops"),
        ("python", "def f(a):\n  for x in a:\n    a.n += x\n  return b", "accumulation"),
        ("python", "def f(a):\n  for x in a:\n    if not x.ok:\n      return False\n  return True", "search"),
        ("python", "def f(a):\n  for x in a:\n    run(lambda: 1 if x else x)\n    if b:\n      return b", "search"),
        ("python", "def f(a):\n  return (a + 1) // 2", "binary_search"),
        ("python", "def f(h, i):\n  while i:\n    parent = (i - 1) >> 1\n    i = parent", "binary_search"),
        ("java", "class A { void f(int l, int h) { while (l < h) { use((l + h) / 2); } } }", "binary_search"),
        ("python", "def f(n, q):\n  while n > q:\n    q = 9 // n\n    n = n + q >> 1", "binary_search"),
        ("python", "def f(a, b):\n  while a:\n    if (a + b) // 2 > 1: a = b", "binary_search"),
        ("python", "def f(a):\n  for x in a:\n    use(x // 2)", "binary_search"),
        ("python", "def f(n): return n < 2 or f(n - 1) + f(n - 2)", "divide_and_conquer"),
        ("go", "package p\nfunc f(a []A) error { for _, x := range a { if err := x.Do(); err != nil { return err } }\n return nil }", "search"),
    ],
)  # fmt: skip
def test_a_shape_that_cannot_be_told_surely_is_not_told(language, code, shape):
    assert not [p for p in parse_code(code, language).pieces if shape in p.tags]


@pytest.mark.parametrize(
    ("language", "code", "shape"),
    [
        ("java", "class A { int f(int[] a, int x) { int l = 0, h = 9; while (l < h) { int m = l + (h - l) / 2; if (a[m] < x) l = m + 1; else h = m; } return l; } }", "binary_search"),
        ("java", "class A { int f(int l, int h) { int m = (l + h) >>> 1; return l < h ? f(m, h) : l; } }", "binary_search"),
        ("javascript", "function f(l, h) { while (l < h) { const m = Math.floor((l + h) / 2); l = m; } }", "binary_search"),
        ("go", "package p\nfunc f(l, h int) { for l < h { m := (l + h) / 2; l = m } }", "binary_search"),
        ("go", "package p\nfunc f(i, j int) { for i < j { h := int(uint(i+j) >> 1); j = h } }", "binary_search"),
        ("rust", "fn f(mut l: u8, h: u8) { while l < h { let m = l + (h - l) / 2; l = m; } }", "binary_search"),
        ("go", "package p\nfunc f(a []int) int { for i := 0; i < 3; i++ { if a[i] > 1 { return i } }\n return 0 }", "search"),
        ("java", "class A { B f(List<B> a) { for (B b : a) { if (b.ok()) { return b; } } return null; } }", "search"),
        ("java", "class A { int f(int[] a) { for (int i = 0; i < 3; i++) if (a[i] > 1) return i; return 0; } }", "search"),
        ("javascript", "function f(a) { for (const [k, v] of a) { if (v) return k; } }", "search"),
        ("javascript", "function f(a) { for (let i = 0; i < 3; i++) { if (a[i]) return a[i].b; } }", "search"),
        ("rust", "fn f(a: &[u8]) -> u8 { for (i, x) in a.iter().enumerate() { if *x > 1 { return i; } } 0 }", "search"),
        ("go", "package p\nfunc f(a []int) int { t := 0; for _, x := range a { t += x }; return t }", "accumulation"),
        ("java", "class A { int f(int[] a) { int t = 0; for (int x : a) t += x; return t; } }", "accumulation"),
        ("javascript", "function f(a) { let t = 0; for (const x of a) t += x; return t; }", "accumulation"),
        ("go", "package p\nfunc f(a []int) []int { m := len(a) / 2; return g(f(a[:m]), f(a[m:])) }", "divide_and_conquer"),
    ],
)  # fmt: skip
def test_a_shape_that_the_tree_proves_is_told(language, code, shape):
    parsed = parse_code(code, language)
    assert not parsed.unparsed
    assert [p.kind.value for p in parsed.pieces if shape in p.tags] == ["algorithm"]


def test_a_try_without_a_handler_only_cleans_up():
    found = pieces("def f():\n  try:\n    g()\n  finally:\n    h()\n", "python")
    assert found["f"].kind.value == "function"
    assert "error_handling" not in found["f"].tags


def test_a_handler_inside_of_a_handler_is_part_of_it():
    code = (
        "def f():\n  g()\n  try:\n    h()\n  except A:\n    try:\n      i()\n"
        "    except B:\n      pass\n"
    )
    handlers = [p for p in parse_code(code, "python").pieces if p.form.value == "handler"]
    assert [(p.first_line, p.last_line, p.caught) for p in handlers] == [(3, 9, ("A", "B"))]


def test_code_at_the_top_level():
    python = parse_code("try:\n  import a\nexcept ImportError:\n  a = None\n", "python")
    assert [(p.kind.value, p.name, p.caught) for p in python.pieces] == [
        ("error_handler", "", ("ImportError",))
    ]
    script = parse_code("app.get('/', (q, r) => { try { a() } catch (e) { b() } });", "javascript")
    assert [p.kind.value for p in script.pieces] == ["error_handler"]
    waiting = parse_code("try { await a() } catch (e) { b() }\nawait c();", "javascript")
    assert [p.kind.value for p in waiting.pieces] == ["error_handler", "async"]
    held = parse_code("run(async () => { try { await a() } catch (e) { b() } });", "javascript")
    assert [p.kind.value for p in held.pieces] == ["async"]


def test_what_is_in_an_object_belongs_to_the_function_around_it():
    code = "const f = (n) => { for (const k of n) { const o = { a: n ? f(k) : 1 }; use(o); } };"
    [piece] = parse_code(code, "javascript").pieces
    assert piece.cyclomatic_complexity == 3
    assert "recursion" in piece.tags


def test_methods_of_a_class_without_a_name_are_not_those_of_the_class_around_it():
    code = "class A { Runnable r = new Runnable() { public void run() {} }; void f() {} }"
    found = pieces(code, "java")
    assert found["A"].methods == ("f",)
    assert "A.Runnable.run" in found


def test_typescript_takes_casts_and_elements_alike():
    cast = parse_code("function f(x: any) { return <T>x; }", "typescript")
    element = parse_code("function f(x: any) { return <T>{x}</T>; }", "typescript")
    assert not cast.unparsed
    assert not element.unparsed
    assert len(cast.pieces) == len(element.pieces) == 1
