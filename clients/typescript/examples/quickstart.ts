// One round of learning: recall, work, record what happened, say how it went.
// Start a server with `make run`, then `npm run example`. LOT_ADDRESS names another server.
import { createLotClient, EpisodeStatus, Outcome } from "../src/index.js";

const TASK = "Add a health check endpoint to the orders service";

const client = createLotClient({
  address: process.env.LOT_ADDRESS ?? "127.0.0.1:50051",
  namespace: "quickstart",
});

await client.patterns.savePattern({
  pattern: {
    task: "Add an HTTP endpoint to an Express service",
    actions: [
      { tool: "edit", args: { file: "src/routes.ts" }, note: "a route, typed" },
      { tool: "npm test" },
    ],
    language: "typescript",
    tags: ["http"],
  },
});

const recall = await client.patterns.recallPatterns({
  query: TASK,
  filter: { languages: ["typescript"] },
  limit: 3,
});
const hit = recall.hits[0];
const best = hit?.pattern;
if (best === undefined) {
  throw new Error("nothing recalled");
}
console.log(`nearest pattern: ${best.task}, similarity ${hit?.similarity.toFixed(2)}`);
console.log(`it is for the same task with a probability of ${hit?.matchProbability?.toFixed(2)}`);

const started = await client.episodes.startEpisode({ episode: { task: TASK, category: "backend" } });
const episodeId = started.episode?.episodeId ?? "";

/** The first message opens the stream, each later one carries events. */
async function* work(actions: { tool: string }[]) {
  yield { episodeId };
  let sequence = 0n;
  for (const { tool } of actions) {
    sequence += 1n;
    yield { events: [{ sequence, eventType: "tool_call", data: { tool, ok: true } }] };
  }
}
for await (const { lastSequence } of client.episodes.recordEvents(work(best.actions))) {
  console.log(`events stored: ${lastSequence}`);
}
await client.episodes.endEpisode({ episodeId, status: EpisodeStatus.SUCCEEDED, reward: 1 });

const { patterns } = await client.patterns.recordOutcome({
  patternIds: [best.patternId],
  outcome: Outcome.SUCCESS,
  retrievalId: recall.retrievalId,
  query: TASK,
});
console.log(`success rate now ${patterns[0]?.outcomes?.successRate.toFixed(2)}`);
client.close();
