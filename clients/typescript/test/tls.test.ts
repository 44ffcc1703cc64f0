import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { createLotClient, type LotClientOptions, lotError } from "../src/index.js";
import { AdminService } from "../src/gen/lot/v1/admin_service_pb.js";
import { MemoryService } from "../src/gen/lot/v1/memory_service_pb.js";

const address = process.env.LOT_TEST_TLS_ADDRESS ?? "";
const forAgents = process.env.LOT_TEST_TLS_CLIENT_ADDRESS ?? "";
const skip = address === "" && "no server with TLS; `make test-typescript` starts one";
const pem = (name: string) => readFileSync(`${process.env.LOT_TEST_TLS_FOLDER}/${name}`);
const KEY = "lot_k1_secret";

/** Saves a pattern; the error's text, or "saved". */
async function save(options: LotClientOptions): Promise<string> {
  const client = createLotClient({ namespace: `test-${randomUUID()}`, timeoutMs: 2000, ...options });
  try {
    const { created } = await client.patterns.savePattern({ pattern: { task: "Parse a CSV file" } });
    return created ? "saved" : "not saved";
  } catch (error) {
    return lotError(error)?.message ?? String(error);
  } finally {
    client.close();
  }
}

test("a server with TLS is used like any", { skip }, async () => {
  assert.equal(await save({ address, tls: { ca: pem("ca.pem") } }), "saved");
  assert.equal(await save({ address: `https://${address}`, tls: { ca: pem("ca.pem") } }), "saved");
});

test("a server that is not trusted is refused", { skip }, async () => {
  assert.match(await save({ address, tls: { ca: pem("stranger.pem") } }), /certificate/);
  assert.match(await save({ address, tls: {} }), /certificate/);
  const elsewhere = { ca: pem("ca.pem"), servername: "elsewhere.test" };
  assert.match(await save({ address, tls: elsewhere }), /altnames/);
});

test("a client certificate is shown", { skip }, async () => {
  const ca = pem("ca.pem");
  const tls = { ca, cert: pem("agent.pem"), key: pem("agent.key") };
  assert.equal(await save({ address: forAgents, tls }), "saved");
  assert.notEqual(await save({ address: forAgents, tls: { ca } }), "saved");
});

test("the key is sent with each call, unary or stream", async () => {
  const seen: (string | null)[] = [];
  const routes = connectNodeAdapter({
    routes: (router) => {
      router.service(AdminService, {
        listNamespaces: (_, { requestHeader }) => {
          seen.push(requestHeader.get("authorization"));
          return {};
        },
      });
      router.service(MemoryService, {
        watchChanges: async function* (_, { requestHeader }) {
          seen.push(requestHeader.get("authorization"));
          yield {};
        },
      });
    },
  });
  const server = createServer(routes).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const local = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = createLotClient({ address: local, apiKey: KEY });
  await client.admin.listNamespaces({});
  for await (const _ of client.memories.watchChanges({})) {
    break;
  }
  client.close();
  server.close();
  assert.deepEqual(seen, [`Bearer ${KEY}`, `Bearer ${KEY}`]);
});

test("a key is not sent unencrypted beyond loopback", () => {
  for (const beyond of ["lot.example.test:50051", "10.0.0.7:50051", "http://[fe80::1]:50051"]) {
    assert.throws(
      () => createLotClient({ address: beyond, apiKey: KEY }),
      (error: Error) => /is not sent to .* unencrypted/.test(error.message) && !error.message.includes(KEY),
    );
    createLotClient({ address: beyond, apiKey: KEY, allowPlaintextKey: true }).close();
  }
  for (const near of ["localhost:1", "127.9.9.9:1", "[::1]:1", "https://lot.example.test"]) {
    createLotClient({ address: near, apiKey: KEY }).close();
  }
  createLotClient({ address: "lot.example.test:1", apiKey: KEY, tls: {} }).close();
});

test("what makes no sense is refused", () => {
  const cases: [LotClientOptions, RegExp][] = [
    [{ address: "a:1", apiKey: "two words" }, /apiKey is not an API key/],
    [{ address: "a:1", apiKey: "line\nbreak" }, /apiKey is not an API key/],
    [{ address: "http://a:1", tls: {} }, /tls needs an https address/],
    [{ address: "a:1", tls: { cert: "x" } }, /tls.cert and tls.key need each other/],
  ];
  for (const [options, message] of cases) {
    assert.throws(() => createLotClient(options), message);
  }
});
