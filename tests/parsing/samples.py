"""Code as people write it, a sample a language."""

from __future__ import annotations

PYTHON = '''\
"""Orders."""

import asyncio
from dataclasses import dataclass


@dataclass
class Cart:
    """What a customer wants to buy. Not yet paid."""

    items: list[str]

    @property
    def size(self) -> int:
        return len(self.items)

    def walk(self, node, depth=0):
        """Visit a tree of items."""
        for child in node.children:
            self.walk(child, depth + 1)

    @staticmethod
    def empty():
        return Cart([])


def read_config(path: str) -> dict:
    """Read the configuration.

    Missing files give an empty one.
    """
    try:
        return parse(open(path))
    except (FileNotFoundError, json.JSONDecodeError) as error:
        log.warning("no config: %s", error)
        return {}


# Fetch a page,
# with retries.
async def fetch(url, *, tries=3, **options):
    for attempt in range(tries):
        try:
            return await get(url, **options)
        except asyncio.TimeoutError:
            await asyncio.sleep(2**attempt)
    raise OSError(url)


def total(prices):
    result = 0
    for price in prices:
        result += price
    return result


def find_first(items, wanted):
    for index, item in enumerate(items):
        if item == wanted:
            return index
    return -1


def bisect(numbers, wanted):
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


def merge_sort(numbers):
    if len(numbers) < 2:
        return numbers
    middle = len(numbers) // 2
    return merge(merge_sort(numbers[:middle]), merge_sort(numbers[middle:]))


def counted(function):
    def wrapper(*args):
        wrapper.calls += 1
        return function(*args)

    return wrapper


double = lambda x: x * 2

for row in table:
    for cell in row:
        print(cell)
'''

JAVASCRIPT = """\
import { readFile } from "node:fs/promises";

/**
 * Loads the settings of a user.
 * @param {string} id
 */
export async function loadSettings(id, { cache = true } = {}, ...rest) {
  const path = `/users/${id}`;
  try {
    return JSON.parse(await readFile(path));
  } catch (error) {
    if (error instanceof SyntaxError) {
      return {};
    }
    throw error;
  }
}

const pairs = (rows) => {
  const found = [];
  for (const one of rows) {
    for (const other of rows) {
      if (one !== other && one.id === other.id) found.push([one, other]);
    }
  }
  return found;
};

class Queue extends Base {
  #items = [];

  constructor(size) {
    super();
    this.size = size;
  }

  static of(...items) {
    return new Queue(items.length);
  }

  async drain() {
    await Promise.all(this.#items);
  }

  isFull = () => this.#items.length >= this.size;
}

function* naturals() {
  let n = 0;
  while (true) yield n++;
}

const Button = ({ label }) => <button>{label}</button>;

fetch("/health")
  .then((answer) => answer.json())
  .catch((error) => console.error(error));

module.exports.depth = function depth(node) {
  return node ? 1 + Math.max(depth(node.left), depth(node.right)) : 0;
};
"""

TYPESCRIPT = """\
interface Store<T> {
  get(id: string): Promise<T>;
  put(id: string, value: T): void;
}

@Injectable()
export class Users implements Store<User> {
  constructor(private readonly db: Db) {}

  // Gets one user.
  @Cached(60)
  async get(id: string, fresh?: boolean): Promise<User> {
    return this.db.one<User>(id);
  }

  put(id: string, value: User): void {
    try {
      this.db.write(id, value);
    } catch (error) {
      if (error instanceof Conflict || error instanceof Closed) return;
      throw error;
    }
  }
}

export abstract class Shape {
  abstract area(): number;
}

namespace math {
  export function clamp(x: number, low = 0, high = 1): number {
    return x < low ? low : x > high ? high : x;
  }
}

export const identity = <T,>(value: T): T => value;
"""

GO = """\
package orders

import "errors"

// Server answers orders.
type Server struct {
	db *DB
}

// Store is what a server needs.
type Store interface {
	Get(id string) (*Order, error)
	Close() error
}

type ID string

// Load reads an order. It is nil when there is none.
func (s *Server) Load(id string) (*Order, error) {
	row, err := s.db.Row(id)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", id, err)
	}
	order, err := decode(row)
	if err != nil {
		return nil, err
	}
	return order, nil
}

func (s *Server) depth(n *Node) int {
	if n == nil {
		return 0
	}
	return 1 + s.depth(n.Next)
}

func Watch(ctx context.Context, events <-chan Event, out chan<- string) {
	for {
		select {
		case event := <-events:
			go handle(event)
		case <-ctx.Done():
			return
		}
	}
}

func Close(c io.Closer) {
	if err := c.Close(); errors.Is(err, os.ErrClosed) {
		log.Print(err)
	}
}

func Max[T Ordered](a, b T, more ...T) T {
	if a > b && len(more) == 0 {
		return a
	}
	return b
}

var square = func(x int) int { return x * x }
"""

RUST = """\
//! Orders.

/// An order of a customer.
#[derive(Debug, Clone)]
pub struct Order<T> {
    id: u64,
    items: Vec<T>,
}

pub enum State {
    Open,
    Closed,
}

impl<T: Clone> Order<T> {
    pub fn new(id: u64) -> Self {
        Order { id, items: vec![] }
    }

    fn depth(&self, node: &Node) -> usize {
        match &node.next {
            Some(next) => 1 + self.depth(next),
            None => 0,
        }
    }
}

impl<T> Display for Order<T> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "{}", self.id)
    }
}

pub trait Store {
    fn get(&self, id: u64) -> Option<State>;

    fn has(&self, id: u64) -> bool {
        self.get(id).is_some()
    }
}

/// Reads a number. Fails softly.
pub fn read(path: &str) -> Result<i64, Error> {
    let text = std::fs::read_to_string(path)?;
    let parsed = text.trim().parse();
    match parsed {
        Ok(number) => Ok(number),
        Err(ParseIntError::Overflow(_)) if path.is_empty() => Ok(0),
        Err(error) => {
            warn(&error);
            Err(error.into())
        }
    }
}

#[tokio::main]
async fn main() {
    let task = tokio::spawn(async move { work().await });
    if let Err(error) = task.await {
        eprintln!("{error}");
    }
}

mod sums {
    pub fn total(numbers: &[i64]) -> i64 {
        let mut total = 0;
        for number in numbers {
            total += number;
        }
        total
    }
}
"""

JAVA = """\
package shop;

/** Keeps orders. Thread-safe. */
@Service
public class Orders<T extends Order> implements Store<T> {
    private final Db db;

    public Orders(Db db) {
        this.db = db;
    }

    /** Loads one order. */
    @Override
    public T load(String id, int... versions) throws ShopException {
        check(id);
        try (Connection connection = db.open()) {
            return connection.read(id);
        } catch (SQLException | TimeoutException error) {
            throw new ShopException(error);
        } finally {
            log(id);
        }
    }

    CompletableFuture<T> loadLater(String id) {
        return CompletableFuture.supplyAsync(() -> load(id));
    }

    int factorial(int n) {
        return n <= 1 ? 1 : n * factorial(n - 1);
    }

    void log(String text) { log(text, 1); }

    void log(String text, int level) {
        switch (level) {
            case 0: break;
            case 1, 2: print(text); break;
            default: warn(text);
        }
    }

    void show(Object thing) { show(thing.toString()); }

    void show(String text) { print(text); }
}

interface Store<T> {
    T load(String id, int... versions);

    default boolean has(String id) { return load(id) != null; }
}

enum Color { RED, GREEN; Color next() { return RED; } }

record Point(int x, int y) {
    int sum() { return x + y; }
}
"""

SAMPLES = {
    "go": GO,
    "java": JAVA,
    "javascript": JAVASCRIPT,
    "python": PYTHON,
    "rust": RUST,
    "typescript": TYPESCRIPT,
}
