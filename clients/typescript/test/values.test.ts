import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, test } from "node:test";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { createLotClient, fromValue, toValue } from "../src/index.js";

const address = process.env.LOT_ADDRESS ?? "";
const skip = address === "" && "LOT_ADDRESS names no server; `make test-typescript` starts one";
const client = createLotClient({ address: address || "nowhere", namespace: `test-${randomUUID()}` });
after(() => client.close());

let deep: JsonObject = {};
for (let level = 1; level < 16; level++) {
  deep = { deep };
}
const numbers: JsonObject = {
  port: 8080,
  times: 4,
  share: 0.1,
  big: 1.5e18,
  safe: Number.MAX_SAFE_INTEGER,
  minus: -0,
  list: [1, -2.5, null, true, "", { none: 0 }],
  "odd key": "é😀",
};
const loop: unknown[] = [];
loop.push(loop);

/** Casts, as callers in plain JavaScript can give anything. */
const metadata = (value: unknown) => ({ ids: [0, { "odd key": value }] }) as JsonObject;

const refusals: [string, unknown, RegExp][] = [
  ["a bigint", 5n, /String\(\) of it/],
  ["a large bigint", 10157896543210987n, /not JSON/],
  ["a Date", new Date(), /of type Date.*toISOString/],
  ["a Buffer", Buffer.from("abc"), /of type Buffer.*base64/],
  ["bytes", new Uint8Array(3), /base64/],
  ["an ArrayBuffer", new ArrayBuffer(3), /base64/],
  ["a Map", new Map([["a", 1]]), /of type Map/],
  ["a Set", new Set([1]), /of type Set/],
  ["an instance", new (class Point {})(), /of type Point/],
  ["NaN", Number.NaN, /neither NaN nor infinity/],
  ["infinity", Number.NEGATIVE_INFINITY, /neither NaN nor infinity/],
  ["undefined", undefined, /leave the key out, or give null/],
  ["a hole", new Array(1), /undefined/],
  ["a function", () => 1, /a function/],
  ["a symbol", Symbol("a"), /a symbol/],
  ["__proto__", JSON.parse('{"__proto__": {"admin": true}}'), /__proto__/],
  ["NUL", "a\0b", /NUL/],
  ["NUL in a key", { "a\0b": 1 }, /NUL/],
  ["a lone surrogate", "\ud800", /lone surrogate/],
  ["a loop", loop, /at most 16 deep/],
  ["depth", deep, /at most 16 deep/],
];

for (const [name, value, text] of refusals) {
  test(`${name} is refused with a TypeError that names the path`, async () => {
    const named = (error: unknown) =>
      error instanceof TypeError &&
      error.message.startsWith('pattern.actions[0].args.ids[1]["odd key"]') &&
      text.test(error.message);
    const pattern = { task: "a task", actions: [{ tool: "run", args: metadata(value) }] };

    await assert.rejects(client.patterns.savePattern({ pattern }), named);
    assert.throws(() => toValue(metadata(value)), TypeError);
  });
}

test("what is no plain object is refused where a Struct stands", async () => {
  const memory = { content: "a", metadata: new Map() as unknown as JsonObject };
  await assert.rejects(client.memories.createMemory({ memory }), /memory.metadata is of type Map/);
});

test("a stream refuses it too", { skip }, async () => {
  async function* messages() {
    yield { episodeId: "e", events: [{ eventType: "x", data: { n: 5n } as unknown as JsonObject }] };
  }
  const answers = client.episodes.recordEvents(messages())[Symbol.asyncIterator]();
  await assert.rejects(answers.next(), /events\[0\]\.data\.n is a bigint/);
});

test("numbers come back from a server as they were given", { skip }, async () => {
  const pattern = { task: "Start it", actions: [{ tool: "run", args: numbers }], metadata: numbers };
  const saved = await client.patterns.savePattern({ pattern, patternId: "numbers" });
  const found = await client.patterns.getPattern({ patternId: "numbers" });
  await client.memories.putPreference({ key: "port", value: toValue(numbers) });
  const { preference } = await client.memories.getPreference({ key: "port" });

  assert.deepEqual(saved.pattern?.actions[0]?.args, numbers);
  assert.deepEqual(found.pattern?.metadata, numbers);
  assert.deepEqual(fromValue(preference?.value), numbers);
});

test("a Value holds any JSON", () => {
  const values: JsonValue[] = [8080, 0, 0.1, null, true, false, "", "a", [], {}, [numbers], deep];
  for (const value of values) {
    assert.deepEqual(fromValue(toValue(value)), value);
  }
  assert.equal(fromValue(undefined), null);
});

test("an object of another realm is plain", () => {
  const other = Object.assign(Object.create(null) as object, { n: 1 }) as JsonObject;
  assert.deepEqual(fromValue(toValue(other)), { n: 1 });
});
