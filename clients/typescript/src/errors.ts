import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.js";

/** Key of an error's metadata, set by the client: the request id of the call. */
export const REQUEST_ID_KEY = "lot-request-id";

/** A rule of the contract that a field of the request breaks. */
export interface Violation {
  /** Path of the field, for example `pattern.task`. */
  field: string;
  /** A sentence for people. */
  description: string;
  /** The rule's id, for example `string.max_bytes`. */
  rule: string;
}

/** What is known of a failed call. */
export interface LotError {
  code: Code;
  /** A sentence for people. */
  message: string;
  /**
   * A name of `lot.v1.ErrorReason` without its prefix, for example `PATTERN_NOT_FOUND`. Empty: the
   * answer did not come from lot-grpc itself, for example because nothing listens at the address.
   */
  reason: string;
  /** Facts beside the reason, as `error_reason.proto` lists them. */
  metadata: Record<string, string>;
  /** Broken rules of a REQUEST_INVALID; the server lists the first 20. */
  violations: Violation[];
  /** How long to wait before a repeat, if the server says so. */
  retryAfterMs: number | undefined;
  /**
   * Of the write that failed, to repeat it by another client; of a batch the id of the n-th item is
   * `${requestId}-n`. Empty: the call takes none.
   */
  requestId: string;
}

/** Decodes what a call threw; `undefined` if that was no failed call. */
export function lotError(error: unknown): LotError | undefined {
  if (!(error instanceof ConnectError)) {
    return undefined;
  }
  const [info] = error.findDetails(ErrorInfoSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  const delay = retry?.retryDelay;
  return {
    code: error.code,
    message: error.rawMessage,
    reason: info?.reason ?? "",
    metadata: { ...info?.metadata },
    violations: error
      .findDetails(BadRequestSchema)
      .flatMap((bad) => bad.fieldViolations)
      .map(({ field, description, reason }) => ({ field, description, rule: reason })),
    retryAfterMs: delay && Number(delay.seconds) * 1000 + delay.nanos / 1e6,
    requestId: error.metadata.get(REQUEST_ID_KEY) ?? "",
  };
}
