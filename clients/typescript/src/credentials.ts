import type { Interceptor } from "@connectrpc/connect";

/** What the encrypted connection needs; all in PEM, as text or as read from a file. */
export interface TlsOptions {
  /** Certificates that vouch for the server's; without it those that Node trusts. */
  ca?: string | Buffer;
  /** Certificate to show, for a server that requires one; its chain may follow in it. */
  cert?: string | Buffer;
  /** The private key of `cert`. */
  key?: string | Buffer;
  /** Host name to expect in the server's certificate; otherwise that of the address. */
  servername?: string;
}

/** The URL of an address. */
export function baseUrlOf(address: string, tls: TlsOptions | undefined): string {
  if (tls !== undefined && (tls.cert === undefined) !== (tls.key === undefined)) {
    throw new TypeError("tls.cert and tls.key need each other; give both, or neither");
  }
  if (!address.includes("://")) {
    return `${tls === undefined ? "http" : "https"}://${address}`;
  }
  if (tls !== undefined && !address.startsWith("https://")) {
    throw new TypeError(`tls needs an https address, which ${address} is not`);
  }
  return address;
}

/** Refuses a key that is none, or that others could read on its way. */
export function checkKey(apiKey: string, baseUrl: string, plaintext: boolean): void {
  if (!/^[!-~]*$/.test(apiKey)) {
    throw new TypeError("apiKey is not an API key: a key is ASCII text without spaces");
  }
  if (apiKey !== "" && !baseUrl.startsWith("https://") && !plaintext && !isLoopback(baseUrl)) {
    throw new TypeError(
      `the API key is not sent to ${baseUrl} unencrypted: pass tls, or allowPlaintextKey if nobody ` +
        "can listen on the network path",
    );
  }
}

/** Whether only this machine is reached; a name other than localhost may be any. */
function isLoopback(baseUrl: string): boolean {
  const { hostname } = new URL(baseUrl);
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
}

/** Sends the key with each call. */
export function withKey(apiKey: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${apiKey}`);
    return next(request);
  };
}
