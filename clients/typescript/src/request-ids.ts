import { createHash, randomUUID } from "node:crypto";
import { create, type Message, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { REQUEST_ID_KEY } from "./errors.js";
import { hasIds, itemsOf } from "./repeat.js";

const KEPT_MS = 10 * 60_000;
const MOST_KEPT = 1024;

/** Codes of failed calls that may have been carried out nevertheless. */
const UNCERTAIN = new Set([
  Code.Canceled,
  Code.Unknown,
  Code.DeadlineExceeded,
  Code.ResourceExhausted,
  Code.Aborted,
  Code.Internal,
  Code.Unavailable,
]);

type Fields = Message & Record<string, unknown>;

/**
 * Gives a request id to each write that takes one and has none, in a batch to each item. The same
 * call, made again after a failure that may have been carried out, has the same one.
 */
export function identifying(unary: Transport["unary"]): Transport["unary"] {
  const failed = new FailedCalls();
  return async (method, signal, timeout, header, input, values) => {
    const type = method.input;
    if (!hasIds(type)) {
      return unary(method, signal, timeout, header, input, values);
    }
    const request = create(type, input);
    const message = request as Fields;
    const key = createHash("sha256").update(`${type.typeName}\0`).update(toBinary(type, request));
    const call = key.digest("base64");
    let requestId = failed.take(call) ?? randomUUID();
    const items = itemsOf(type)?.localName;
    let identified: Fields;
    if (items === undefined) {
      requestId = (message.requestId as string) || requestId;
      identified = { ...message, requestId };
    } else {
      const each = (message[items] as Fields[]).map((item, number) => ({
        ...item,
        requestId: item.requestId || `${requestId}-${number}`,
      }));
      identified = { ...message, [items]: each };
    }
    try {
      return await unary(method, signal, timeout, header, identified as typeof input, values);
    } catch (error) {
      if (error instanceof ConnectError) {
        error.metadata.set(REQUEST_ID_KEY, requestId);
        if (UNCERTAIN.has(error.code)) {
          failed.keep(call, requestId);
        }
      }
      throw error;
    }
  };
}

/** Recently failed calls that may have been carried out, with their request ids. */
class FailedCalls {
  readonly #calls = new Map<string, { requestId: string; until: number }>();

  take(call: string): string | undefined {
    const failed = this.#calls.get(call);
    this.#calls.delete(call);
    return failed !== undefined && failed.until > Date.now() ? failed.requestId : undefined;
  }

  keep(call: string, requestId: string): void {
    this.#calls.set(call, { requestId, until: Date.now() + KEPT_MS });
    const [oldest] = this.#calls.keys();
    if (this.#calls.size > MOST_KEPT && oldest !== undefined) {
      this.#calls.delete(oldest);
    }
  }
}
