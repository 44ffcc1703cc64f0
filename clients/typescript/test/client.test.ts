import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, test } from "node:test";
import {
  Code,
  createLotClient,
  EpisodeStatus,
  type LotError,
  lotError,
  Outcome,
  PatternKind,
} from "../src/index.js";

const address = process.env.LOT_ADDRESS ?? "";
const skip = address === "" && "LOT_ADDRESS names no server; `make test-typescript` starts one";
const client = createLotClient({ address: address || "nowhere", namespace: `test-${randomUUID()}` });
after(() => client.close());

/** The error of a call that must fail. */
async function failure(call: Promise<unknown>): Promise<LotError> {
  try {
    await call;
  } catch (error) {
    const decoded = lotError(error);
    assert.ok(decoded, String(error));
    return decoded;
  }
  return assert.fail("the call succeeded");
}

test("a saved pattern comes back as it was given", { skip }, async () => {
  const { pattern, created } = await client.patterns.savePattern({
    patternId: "deploy",
    pattern: {
      task: "Deploy the billing service",
      kind: PatternKind.CODE,
      actions: [{ tool: "kubectl", args: { file: "a.yaml", replicas: 2 } }],
      labels: { team: "billing" },
      metadata: { nested: [1, "two", null] },
    },
  });
  const found = await client.patterns.getPattern({ patternId: "deploy" });

  assert.ok(created);
  assert.deepEqual(found.pattern, pattern);
  assert.deepEqual(found.pattern?.actions[0]?.args, { file: "a.yaml", replicas: 2 });
  assert.deepEqual(found.pattern?.metadata, { nested: [1, "two", null] });
});

test("recall gives only what the filter lets through", { skip }, async () => {
  await client.patterns.savePattern({ pattern: { task: "Parse a CSV file", language: "ts" } });
  await client.patterns.savePattern({ pattern: { task: "Parse a CSV file", language: "go" } });
  const { hits } = await client.patterns.recallPatterns({
    query: "read comma separated values",
    filter: { languages: ["typescript"], minSuccessRate: 0.9 },
  });

  assert.deepEqual(
    hits.map((hit) => [hit.pattern?.task, hit.pattern?.language]),
    [["Parse a CSV file", "typescript"]],
  );
});

test("a stream stores its events in order", { skip }, async () => {
  const { episode } = await client.episodes.startEpisode({ episode: { task: "Import customers" } });
  const episodeId = episode?.episodeId ?? "";
  async function* messages() {
    yield { episodeId };
    for (const first of [1, 3, 5]) {
      yield {
        events: [first, first + 1].map((n) => ({
          sequence: BigInt(n),
          eventType: "row",
          data: { n },
        })),
      };
    }
  }
  const acknowledged: bigint[] = [];
  for await (const answer of client.episodes.recordEvents(messages())) {
    acknowledged.push(answer.lastSequence);
  }
  const { events } = await client.episodes.listEpisodeEvents({ episodeId });
  const ended = await client.episodes.endEpisode({ episodeId, status: EpisodeStatus.SUCCEEDED });

  assert.deepEqual(acknowledged, [0n, 2n, 4n, 6n]);
  assert.deepEqual(
    events.map((event) => [event.sequence, event.data?.n]),
    [1, 2, 3, 4, 5, 6].map((n) => [BigInt(n), n]),
  );
  assert.equal(ended.episode?.eventCount, 6n);
});

test("an outcome moves the pattern, once for a request id", { skip }, async () => {
  const query = "order the items of a list";
  await client.patterns.savePattern({ patternId: "sort", pattern: { task: "Sort a list" } });
  const { retrievalId } = await client.patterns.recallPatterns({ query });
  const request = {
    patternIds: ["sort"],
    outcome: Outcome.FAILURE,
    retrievalId,
    query,
    requestId: randomUUID(),
  };
  await client.patterns.recordOutcome(request);
  const { patterns } = await client.patterns.recordOutcome(request);

  assert.equal(patterns[0]?.outcomes?.failureCount, 1n);
  assert.equal(patterns[0]?.outcomes?.successRate.toFixed(2), "0.70");
});

test("an error tells its reason, facts and broken rules", { skip }, async () => {
  const missing = await failure(client.patterns.getPattern({ patternId: "nowhere" }));
  const invalid = await failure(
    client.patterns.savePattern({ pattern: { task: "", confidence: 2 }, patternId: "not allowed" }),
  );

  assert.equal(missing.code, Code.NotFound);
  assert.equal(missing.reason, "PATTERN_NOT_FOUND");
  assert.equal(missing.metadata.id, "nowhere");
  assert.equal(invalid.reason, "REQUEST_INVALID");
  assert.deepEqual(
    invalid.violations.map((violation) => violation.field).sort(),
    ["pattern.confidence", "pattern.task", "pattern_id"],
  );
});

test("a namespace in the request comes before the client's", { skip }, async () => {
  const elsewhere = { namespace: `test-${randomUUID()}`, patternId: "only-here" };
  await client.patterns.savePattern({ ...elsewhere, pattern: { task: "A task" } });

  assert.ok((await client.patterns.getPattern(elsewhere)).pattern);
  const here = await failure(client.patterns.getPattern({ patternId: "only-here" }));
  assert.equal(here.reason, "PATTERN_NOT_FOUND");
});

test("a deadline ends a call, and other errors are none of ours", { skip }, async () => {
  const hasty = createLotClient({ address, timeoutMs: 0.01 });
  const late = await failure(hasty.patterns.recallPatterns({ query: "anything" }));
  hasty.close();

  assert.equal(late.code, Code.DeadlineExceeded);
  assert.equal(lotError(new Error("another")), undefined);
});
