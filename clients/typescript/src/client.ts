import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { AdminService } from "./gen/lot/v1/admin_service_pb.js";
import { EpisodeService } from "./gen/lot/v1/episode_service_pb.js";
import { LearningService } from "./gen/lot/v1/learning_service_pb.js";
import { MemoryService } from "./gen/lot/v1/memory_service_pb.js";
import { PatternService } from "./gen/lot/v1/pattern_service_pb.js";
import { inNamespace } from "./namespace.js";
import { repeating } from "./repeat.js";
import { identifying } from "./request-ids.js";
import { checkRequest, checkRequests } from "./values.js";

/** How to reach a server, and as whom. */
export interface LotClientOptions {
  /** Host and port, for example `127.0.0.1:50051`, or a URL (`https://…` for TLS). */
  address: string;
  /** Tenant of all calls that name none; empty is `default`. */
  namespace?: string;
  /** Deadline of calls that name none, with all their tries, in ms; 30,000 unless given. Streams have none unless theirs says so. */
  timeoutMs?: number;
}

/** The services of a server, typed, over one connection. */
export interface LotClient {
  readonly patterns: Client<typeof PatternService>;
  readonly episodes: Client<typeof EpisodeService>;
  readonly memories: Client<typeof MemoryService>;
  readonly learning: Client<typeof LearningService>;
  readonly admin: Client<typeof AdminService>;
  /** Close the connection. Running calls fail with `Code.Canceled`. */
  close(): void;
}

/**
 * Connects with the first call.
 *
 * Unary calls that fail temporarily are retried until their deadline: the server is unreachable,
 * restarting, or says how long to wait. Retried are reads, and writes with a `requestId`; the client
 * generates one if the caller set none. Other writes are retried only after OVERLOADED, which is sent
 * before anything is done. Streams are not retried.
 *
 * If a call that failed may have been carried out, and the caller repeats it within 10 minutes, it gets
 * the same `requestId`, so it is done only once.
 */
export function createLotClient(options: LotClientOptions): LotClient {
  const { address, namespace = "", timeoutMs = 30_000 } = options;
  const baseUrl = address.includes("://") ? address : `http://${address}`;
  // A server whose machine is gone is noticed within a minute of an open call.
  const sessionManager = new Http2SessionManager(baseUrl, { pingIntervalMs: 30_000 });
  const interceptors = namespace === "" ? [] : [inNamespace(namespace)];
  const plain = createGrpcTransport({ baseUrl, sessionManager, interceptors });
  let closed = false;
  const unary = identifying(repeating(plain.unary.bind(plain), timeoutMs, () => closed));
  const transport: Transport = {
    unary: (method, signal, timeout, header, message, ...rest) => {
      checkRequest(method.input, message);
      return unary(method, signal, timeout, header, message, ...rest);
    },
    stream: (method, signal, timeout, header, messages, ...rest) =>
      plain.stream(method, signal, timeout, header, checkRequests(method.input, messages), ...rest),
  };
  const client = <S extends DescService>(service: S) => createClient(service, transport);
  return {
    patterns: client(PatternService),
    episodes: client(EpisodeService),
    memories: client(MemoryService),
    learning: client(LearningService),
    admin: client(AdminService),
    close: () => {
      closed = true;
      sessionManager.abort();
    },
  };
}
