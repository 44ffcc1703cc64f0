export { Code } from "@connectrpc/connect";
export { createLotClient, type LotClient, type LotClientOptions } from "./client.js";
export type { TlsOptions } from "./credentials.js";
export { type LotError, lotError, type Violation } from "./errors.js";
export * from "./gen/index.js";
export { fromValue, toValue } from "./values.js";
