import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";

/** Puts a namespace into requests that name none; of a stream, into its first message. */
export function inNamespace(namespace: string): Interceptor {
  return (next) => (request) => {
    const { input } = request.method;
    return next(
      request.stream
        ? { ...request, message: firstIn(namespace, input, request.message) }
        : { ...request, message: filled(namespace, input, request.message) },
    );
  };
}

async function* firstIn(namespace: string, type: DescMessage, messages: AsyncIterable<Message>) {
  let first = true;
  for await (const message of messages) {
    yield first ? filled(namespace, type, message) : message;
    first = false;
  }
}

/** A copy with the namespace, since the caller may send the message again by another client. */
function filled(namespace: string, type: DescMessage, message: Message): Message {
  if (type.field.namespace === undefined || (message as { namespace?: string }).namespace) {
    return message;
  }
  return { ...message, namespace } as Message;
}
