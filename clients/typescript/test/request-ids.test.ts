import assert from "node:assert/strict";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { MemoryService } from "../src/gen/lot/v1/memory_service_pb.js";
import { createLotClient, type LotClient, lotError } from "../src/index.js";

/** A server whose first calls fail with codes; `ids` are those of its requests. */
async function scripted(fails: (Code | undefined)[], run: (client: LotClient, ids: string[]) => Promise<void>) {
  const ids: string[] = [];
  const step = async (signal: AbortSignal) => {
    const code = fails.shift();
    if (code === Code.DeadlineExceeded) {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    }
    if (code !== undefined) {
      throw new ConnectError("scripted", code);
    }
    return {};
  };
  const server = http2.createServer(
    connectNodeAdapter({
      routes: (router) =>
        router.service(MemoryService, {
          createMemory: (request, context) => {
            ids.push(request.requestId);
            return step(context.signal);
          },
          batchCreateMemories: (request, context) => {
            ids.push(...request.items.map((item) => item.requestId));
            return step(context.signal);
          },
        }),
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const client = createLotClient({ address: `127.0.0.1:${port}`, namespace: "team" });
  try {
    await run(client, ids);
  } finally {
    client.close();
    server.close();
  }
}

test("the same call after an uncertain failure has the same request id", () =>
  scripted([Code.DeadlineExceeded, Code.Internal], async (client, ids) => {
    const create = (content: string, timeoutMs = 30_000) =>
      client.memories.createMemory({ memory: { content } }, { timeoutMs }).catch(lotError);
    const failed = await create("one", 300);
    assert.ok(failed && "requestId" in failed);
    assert.equal(failed.code, Code.DeadlineExceeded);
    assert.equal(failed.requestId, ids[0]);
    await create("one");
    await create("two");
    await create("one");
    await create("one");
    assert.ok(ids[0]);
    assert.deepEqual([ids[1], ids[3]], [ids[0], ids[0]]);
    assert.notEqual(ids[2], ids[0]);
    assert.notEqual(ids[4], ids[0]);
  }));

test("a refused call and one with an id of its own are no repeats", () =>
  scripted([Code.InvalidArgument], async (client, ids) => {
    const memory = { content: "one" };
    await client.memories.createMemory({ memory }).catch(lotError);
    await client.memories.createMemory({ memory });
    await client.memories.createMemory({ memory, requestId: "mine" });
    assert.notEqual(ids[0], ids[1]);
    assert.equal(ids[2], "mine");
  }));

test("items of a batch have ids that a repeat keeps", () =>
  scripted([Code.Unknown], async (client, ids) => {
    const items = [{ memory: { content: "one" } }, { requestId: "mine" }, {}];
    await client.memories.batchCreateMemories({ items }).catch(lotError);
    await client.memories.batchCreateMemories({ items });
    assert.deepEqual(ids.slice(0, 3), ids.slice(3));
    assert.equal(ids[1], "mine");
    assert.equal(new Set(ids.slice(0, 3)).size, 3);
  }));
