import assert from "node:assert/strict";
import { createServer, type Http2Server, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { createLotClient, lotError } from "../src/index.js";
import { ErrorInfoSchema, RetryInfoSchema } from "../src/gen/google/rpc/error_details_pb.js";
import { AdminService } from "../src/gen/lot/v1/admin_service_pb.js";
import { EpisodeService } from "../src/gen/lot/v1/episode_service_pb.js";
import { LearningService } from "../src/gen/lot/v1/learning_service_pb.js";
import { MemoryService } from "../src/gen/lot/v1/memory_service_pb.js";
import { PatternService } from "../src/gen/lot/v1/pattern_service_pb.js";

const services = {
  patterns: PatternService,
  episodes: EpisodeService,
  memories: MemoryService,
  learning: LearningService,
  admin: AdminService,
};

function failure(code: Code, reason = "", retryAfterMs = 0): ConnectError {
  const error = new ConnectError("scripted", code);
  if (reason) {
    error.details.push({ desc: ErrorInfoSchema, value: { reason, domain: "lot.v1" } });
  }
  if (retryAfterMs) {
    const retryDelay = { nanos: retryAfterMs * 1e6 };
    error.details.push({ desc: RetryInfoSchema, value: { retryDelay } });
  }
  return error;
}

/** Keeps a pattern once for each request id, and fails by a script first. */
class Store {
  script: ConnectError[] = [];
  ids: string[] = [];
  saved = new Map<string, string>();

  routes = (router: ConnectRouter) =>
    router.service(PatternService, {
      savePattern: ({ requestId, pattern }) => {
        this.ids.push(requestId);
        this.#step();
        this.saved.set(requestId, pattern?.task ?? "");
        return { created: true };
      },
      deletePattern: () => {
        this.ids.push("");
        this.#step();
        return { deleted: true };
      },
    });

  #step() {
    const error = this.script.shift();
    if (error) {
      throw error;
    }
  }
}

class Served {
  #server!: Http2Server;
  #sessions = new Set<ServerHttp2Session>();
  port = 0;

  constructor(private readonly routes: (router: ConnectRouter) => unknown) {}

  async start(): Promise<string> {
    const routes = (router: ConnectRouter) => void this.routes(router);
    this.#server = createServer(connectNodeAdapter({ routes }));
    this.#server.on("session", (session) => {
      this.#sessions.add(session);
      session.on("close", () => this.#sessions.delete(session));
    });
    await new Promise<void>((resolve) => this.#server.listen(this.port, "127.0.0.1", resolve));
    this.port = (this.#server.address() as AddressInfo).port;
    return `127.0.0.1:${this.port}`;
  }

  /** Gracefully: running calls end, then the connections. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const session of this.#sessions) {
      session.close();
    }
    await closed;
  }
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test("what passes is repeated with the same request id", async () => {
  const store = new Store();
  const served = new Served(store.routes);
  const client = createLotClient({ address: await served.start() });
  const overloaded = failure(Code.ResourceExhausted, "OVERLOADED", 1);
  const stopping = failure(Code.Unavailable, "SHUTTING_DOWN", 1);
  store.script = [overloaded, stopping, failure(Code.FailedPrecondition, "NAMESPACE_CLEARING", 1)];
  store.script.push(failure(Code.Canceled));
  await client.patterns.savePattern({ pattern: { task: "A task" } });
  assert.equal(store.ids.length, 5);
  assert.equal(new Set(store.ids).size, 1);
  assert.ok(store.ids[0]);

  store.ids = [];
  store.script = [overloaded, stopping];
  await assert.rejects(
    client.patterns.deletePattern({ patternId: "p" }),
    (error) => lotError(error)?.reason === "SHUTTING_DOWN",
  );
  assert.equal(store.ids.length, 2);
  store.script = [failure(Code.ResourceExhausted, "STORAGE_FULL")];
  await assert.rejects(client.patterns.savePattern({ pattern: { task: "A task" } }));
  client.close();
  await served.stop();
});

test("repeats end with the deadline", async () => {
  const served = new Served(() => {});
  const address = await served.start();
  await served.stop();
  const client = createLotClient({ address, timeoutMs: 500 });
  await assert.rejects(
    client.patterns.savePattern({ pattern: { task: "A task" } }),
    (error) => lotError(error)?.code === Code.Unavailable,
  );
  client.close();
});

test("a restart fails no save and doubles none", async () => {
  const store = new Store();
  const served = new Served(store.routes);
  const client = createLotClient({ address: await served.start() });
  const saved: string[] = [];
  let over = false;
  const callers = [...Array(8).keys()].map(async (caller) => {
    for (let n = 0; !over; n++) {
      const task = `task ${n} of caller ${caller}`;
      await client.patterns.savePattern({ pattern: { task } });
      saved.push(task);
      await sleep(1);
    }
  });
  const more = async () => {
    for (const before = saved.length; saved.length < before + 16; ) {
      await sleep(5);
    }
  };
  for (let restart = 0; restart < 2; restart++) {
    await more();
    await served.stop();
    await sleep(50);
    await served.start();
  }
  await more();
  over = true;
  await Promise.all(callers);
  client.close();
  await served.stop();

  assert.deepEqual([...store.saved.values()].sort(), saved.sort());
});

test("every call is in the namespace", async () => {
  const came: string[] = [];
  const take = (message: Message) => {
    came.push((message as unknown as { namespace: string }).namespace);
    return {};
  };
  const served = new Served((router) => {
    for (const service of Object.values(services)) {
      for (const rpc of service.methods) {
        router.rpc(rpc, answerer(rpc.methodKind, take) as never);
      }
    }
  });
  const client = createLotClient({ address: await served.start(), namespace: "team-a" });
  let calls = 0;
  for (const [name, service] of Object.entries(services)) {
    for (const rpc of service.methods) {
      calls++;
      came.length = 0;
      const stub = client[name as keyof typeof services] as unknown as Record<string, Call>;
      const streams = rpc.methodKind === "bidi_streaming" || rpc.methodKind === "client_streaming";
      const answer = stub[rpc.localName]?.(streams ? twice() : {});
      if (rpc.methodKind === "unary") {
        await answer;
      } else {
        for await (const _ of answer as AsyncIterable<unknown>);
      }
      assert.deepEqual(came, streams ? ["team-a", ""] : ["team-a"], rpc.name);
    }
  }
  client.close();
  await served.stop();
  assert.ok(calls > 70);
});

type Call = (request: unknown) => Promise<unknown> | AsyncIterable<unknown>;

async function* twice() {
  yield {};
  yield {};
}

function answerer(kind: string, take: (message: Message) => object) {
  if (kind === "unary") {
    return take;
  }
  if (kind === "server_streaming") {
    return async function* (message: Message) {
      yield take(message);
    };
  }
  return async function* (messages: AsyncIterable<Message>) {
    for await (const message of messages) {
      yield take(message);
    }
  };
}
