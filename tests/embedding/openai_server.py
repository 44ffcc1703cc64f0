"""A server with the shape of OpenAI's ``/embeddings``, on loopback, told by a test how to fail."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lot_grpc.testing.hashing import HashingEmbedder

KEY = "sk-hush-hush"
NATIVE = 64


@dataclass
class Reply:
    """What to answer instead of vectors. ``edit`` changes the right answer."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    edit: Callable[[dict[str, Any]], Any] | None = None


@dataclass
class EmbeddingRequest:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        texts: list[str] = self.body["input"]
        return texts


class Endpoint:
    """``replies`` are used up first, then ``always``, else it answers as it should.

    Requests wait while ``gate`` is closed. ``most`` is how many were there at the same time.
    """

    def __init__(self) -> None:
        self.requests: list[EmbeddingRequest] = []
        self.replies: list[Reply] = []
        self.always: Callable[[EmbeddingRequest], Reply | None] = lambda _: None
        self.gate = threading.Event()
        self.gate.set()
        self.most = 0
        self.waiting = 0
        self.url = ""
        self.lock = threading.Lock()

    @property
    def texts(self) -> list[list[str]]:
        """The texts of each request."""
        return [request.texts for request in self.requests]

    def enter(self, request: EmbeddingRequest) -> Reply:
        with self.lock:
            self.requests.append(request)
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            reply = self.replies.pop(0) if self.replies else self.always(request) or Reply()
        assert self.gate.wait(30)
        with self.lock:
            self.waiting -= 1
        return reply

    def answer(self, request: EmbeddingRequest) -> dict[str, Any]:
        made = HashingEmbedder(request.body.get("dimensions", NATIVE))
        rows = [
            {
                "object": "embedding",
                "index": index,
                # Not of length 1, as not every server's are.
                "embedding": [3 * value for value in made._embed(text).vector],
            }
            for index, text in enumerate(request.texts)
        ]
        tokens = sum(len(text.split()) + 2 for text in request.texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "data": rows, "model": request.body["model"], "usage": usage}


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    served = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = EmbeddingRequest(self.path, headers, json.loads(raw))
            reply = served.enter(request)
            body = reply.body
            if body is None:
                right = served.answer(request)
                body = reply.edit(right) if reply.edit else right
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            try:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                self.close_connection = True  # The client did not wait.

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, *_: object) -> None:
            """A client that hung up is what some tests want."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        served.url = f"http://127.0.0.1:{server.server_port}/v1"
        try:
            yield served
        finally:
            served.gate.set()
            server.shutdown()
            thread.join()
