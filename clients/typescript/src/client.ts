import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { AdminService } from "./gen/lot/v1/admin_service_pb.js";
import { EpisodeService } from "./gen/lot/v1/episode_service_pb.js";
import { LearningService } from "./gen/lot/v1/learning_service_pb.js";
import { MemoryService } from "./gen/lot/v1/memory_service_pb.js";
import { PatternService } from "./gen/lot/v1/pattern_service_pb.js";
import { baseUrlOf, checkKey, type TlsOptions, withKey } from "./credentials.js";
import { inNamespace } from "./namespace.js";
import { repeating } from "./repeat.js";
import { identifying } from "./request-ids.js";
import { checkRequest, checkRequests } from "./values.js";

/** How to reach a server, and as whom. */
export interface LotClientOptions {
  /** Host and port, for example `127.0.0.1:50051`, or a URL (`https://…` for TLS). */
  address: string;
  /** How the connection is encrypted; an empty object trusts what Node trusts. */
  tls?: TlsOptions;
  /** Sent with each call. Without TLS only to this machine. */
  apiKey?: string;
  /** Send `apiKey` without TLS beyond this machine, where others may read it. */
  allowPlaintextKey?: boolean;
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
 * Connects with the first call. Throws a `TypeError` for options that contradict each other, and for an
 * API key that is none or would be sent unencrypted.
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
  const { address, tls, apiKey = "", namespace = "", timeoutMs = 30_000 } = options;
  const baseUrl = baseUrlOf(address, tls);
  checkKey(apiKey, baseUrl, options.allowPlaintextKey ?? false);
  // A server whose machine is gone is noticed within a minute of an open call.
  const sessionManager = new Http2SessionManager(baseUrl, { pingIntervalMs: 30_000 }, tls);
  const interceptors = [
    ...(namespace === "" ? [] : [inNamespace(namespace)]),
    ...(apiKey === "" ? [] : [withKey(apiKey)]),
  ];
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
