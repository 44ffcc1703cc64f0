import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, type Transport } from "@connectrpc/connect";
import { type LotError, lotError } from "./errors.js";

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 2000;

/** Retries unary calls until their deadline, as long as that is safe and may help. */
export function repeating(
  unary: Transport["unary"],
  timeoutMs: number,
  isClosed: () => boolean,
): Transport["unary"] {
  return async (method, signal, timeout = timeoutMs, header, input, values) => {
    const end = Date.now() + (timeout > 0 ? timeout : Number.POSITIVE_INFINITY);
    const reads = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
    const safe = reads || hasIds(method.input);
    for (let failures = 1, left = timeout; ; failures++) {
      try {
        return await unary(method, signal, left, header, input, values);
      } catch (error) {
        const failure = lotError(error);
        // OVERLOADED is sent before anything is done, so even an unsafe call may be repeated.
        const again = failure && isTransient(failure) && (safe || failure.reason === "OVERLOADED");
        const least = failure?.retryAfterMs ?? FIRST_DELAY_MS;
        left = end - Date.now();
        if (!again || least >= left || signal?.aborted || isClosed()) {
          throw error;
        }
        await pause(Math.min(delayMs(failures, failure), Math.max(least, left / 2)), signal);
        left = timeout > 0 ? end - Date.now() : timeout;
        if ((timeout > 0 && left <= 0) || signal?.aborted || isClosed()) {
          throw error;
        }
      }
    }
  };
}

/** How long to wait after so many failures in a row. */
function delayMs(failures: number, { retryAfterMs = 0 }: LotError): number {
  const spread = 0.5 + Math.random() / 2;
  const grown = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1));
  return Math.max(grown * spread, retryAfterMs * (0.5 + spread));
}

/** Whether the same call may succeed a little later. A lost connection has many codes, but no reason. */
function isTransient({ code, reason, message, retryAfterMs }: LotError): boolean {
  if (code === Code.Unavailable || retryAfterMs !== undefined) {
    return true;
  }
  const lost = [Code.Canceled, Code.Aborted].includes(code);
  return reason === "" && (lost || (code === Code.Internal && /http\/?2|session/i.test(message)));
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
}

/** Of a batch the field of the items, which have the request ids. */
export function itemsOf(type: DescMessage): DescField | undefined {
  return type.fields.find(
    (field) => field.fieldKind === "list" && field.message?.field.requestId !== undefined,
  );
}

export function hasIds(type: DescMessage): boolean {
  return type.field.requestId !== undefined || itemsOf(type) !== undefined;
}
