import type { DescField, DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { fromJson, toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";

const MAX_DEPTH = 16;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * The `Value` of a JSON value, for preferences and values of sessions.
 *
 * Throws a `TypeError` that names the path for what is not JSON or would come back as something else.
 */
export function toValue(json: JsonValue): Value {
  checkJson(json, "value", 0);
  return fromJson(ValueSchema, json);
}

/** The JSON value that a `Value` holds; null without one. */
export function fromValue(value: Value | undefined): JsonValue {
  return value?.kind.case === undefined ? null : toJson(ValueSchema, value);
}

/** Throws a `TypeError` for a request with a `Struct` that would not arrive as the caller gave it. */
export function checkRequest(type: DescMessage, request: unknown, path = ""): void {
  for (const field of type.fields) {
    const { message } = field;
    const isStruct = message?.typeName === "google.protobuf.Struct";
    if (message === undefined || (message.typeName.startsWith("google.protobuf.") && !isStruct)) {
      continue;
    }
    const check = isStruct ? checkStruct : checkRequest.bind(undefined, message);
    const value = valueOf(field, request as Record<string, unknown>);
    const where = path === "" ? field.localName : `${path}.${field.localName}`;
    if (value === undefined || value === null) {
      continue;
    }
    if (field.fieldKind === "message") {
      check(value, where);
    } else {
      for (const [key, item] of Object.entries(value)) {
        check(item, step(where, field.fieldKind === "list" ? Number(key) : key));
      }
    }
  }
}

/** The requests of a stream, each checked. */
export async function* checkRequests<T>(type: DescMessage, requests: AsyncIterable<T>) {
  for await (const request of requests) {
    checkRequest(type, request);
    yield request;
  }
}

function checkStruct(value: unknown, path: string): void {
  if (!isPlainObject(value)) {
    throw refused(path, `is ${kindOf(value)}, not a plain object`);
  }
  checkJson(value, path, 0);
}

function valueOf(field: DescField, message: Record<string, unknown>): unknown {
  if (field.oneof === undefined) {
    return message[field.localName];
  }
  const chosen = message[field.oneof.localName] as { case?: string; value?: unknown } | undefined;
  return chosen?.case === field.localName ? chosen.value : undefined;
}

function checkJson(value: unknown, path: string, depth: number): asserts value is JsonValue {
  switch (typeof value) {
    case "boolean":
      return;
    case "number":
      if (!Number.isFinite(value)) {
        throw refused(path, `is ${value}; it must be neither NaN nor infinity`);
      }
      return;
    case "string":
      checkText(value, path);
      return;
    case "object":
      if (value === null) {
        return;
      }
      if (depth >= MAX_DEPTH) {
        throw refused(path, `must be nested at most ${MAX_DEPTH} deep`);
      }
      if (Array.isArray(value)) {
        // By number, since entries leave out the holes of an array.
        for (let number = 0; number < value.length; number++) {
          checkJson(value[number], step(path, number), depth + 1);
        }
        return;
      }
      if (isPlainObject(value)) {
        checkObject(value, path, depth + 1);
        return;
      }
  }
  throw refused(path, `is ${kindOf(value)}, which is not JSON; ${instead(value)}`);
}

function checkObject(value: JsonObject, path: string, depth: number): void {
  for (const [key, item] of Object.entries(value)) {
    const where = step(path, key);
    if (key === "__proto__") {
      throw refused(where, "is a key that an object cannot carry safely; use another name");
    }
    checkText(key, where);
    checkJson(item, where, depth);
  }
}

function checkText(text: string, path: string): void {
  if (text.includes("\0")) {
    throw refused(path, "must not contain NUL (U+0000)");
  }
  if (LONE_SURROGATE.test(text)) {
    throw refused(path, "holds a lone surrogate, which UTF-8 does not have; use toWellFormed()");
  }
}

function step(path: string, key: string | number): string {
  return typeof key === "string" && NAME.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
}

function isPlainObject(value: unknown): value is JsonObject {
  if (typeof value !== "object" || value === null) {
    return false;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  // An object of another realm (node:vm) has another Object.prototype, which has no prototype either.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function kindOf(value: unknown): string {
  if (typeof value !== "object" || value === null) {
    return value === undefined ? "undefined" : `a ${typeof value}`;
  }
  return `of type ${value.constructor?.name ?? "Object"}`;
}

function instead(value: unknown): string {
  if (value === undefined) {
    return "leave the key out, or give null";
  }
  if (typeof value === "bigint") {
    return "give String() of it, or Number() of it if it is a safe integer";
  }
  if (value instanceof Date) {
    return "give its toISOString()";
  }
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) {
    return "encode it as text, for example with base64";
  }
  return "give a string, a number, an array or a plain object";
}

function refused(path: string, text: string): TypeError {
  return new TypeError(`${path} ${text}`);
}
