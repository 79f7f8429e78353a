"""A real HTTP receiver on loopback that does what a test tells it to.

with Receiver([503, 429, 200]) as there: ...        # the answers in order; then always 200
there.got                                           # every request: its key, its body

An answer is a status; `Answer(status, retry_after, body)`; or a way to fail: CUT (the connection
ends without an answer), HALF (it ends within the answer's head), BROKEN (a whole head, 200, and
then it ends within the body), HANG (no answer until the test is over).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple

CUT, HALF, BROKEN, HANG = "cut", "half", "broken", "hang"


class Answer(NamedTuple):
    status: int
    retry_after: str | None = None
    body: bytes = b""


class Got(NamedTuple):
    """A request as it came."""

    id: str
    body: dict[str, Any]
    type: str


class Receiver:
    """A context manager; `url` is where it listens."""

    def __init__(self, answers: Iterable[Answer | int | str] = ()) -> None:
        self.got: list[Got] = []
        self.answers = list(answers)
        self.asked = threading.Event()
        """Set by the first request."""
        self._over = threading.Event()
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                receiver._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def __enter__(self) -> Receiver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def keys(self) -> list[str]:
        """The event keys of what was sent, in order."""
        return [got.body["key"] for got in self.got]

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        with self._lock:
            self.got.append(
                Got(
                    handler.headers["Idempotency-Key"],
                    json.loads(body),
                    handler.headers["Content-Type"],
                )
            )
            answer = self.answers.pop(0) if self.answers else 200
        self.asked.set()
        if answer == HANG:
            self._over.wait(30)
        if answer in (CUT, HALF, BROKEN, HANG):
            head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"
            handler.wfile.write({CUT: b"", HANG: b"", HALF: head[:12], BROKEN: head}[str(answer)])
            handler.close_connection = True
            return
        given = answer if isinstance(answer, Answer) else Answer(int(answer))
        handler.send_response(given.status)
        if given.retry_after is not None:
            handler.send_header("Retry-After", given.retry_after)
        handler.send_header("Content-Length", str(len(given.body)))
        handler.end_headers()
        handler.wfile.write(given.body)
