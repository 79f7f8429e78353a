"""A root for tests of agents: a real socket, the server's answers, and the rule that it takes by.

It takes a message if it has none of its (node, pane) yet, and ignores the whole of it otherwise;
what it took it tells. `answers` are given before that, one to each post: a status, or "cut" to take
the message and close the connection without a word.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

import millstream as ms
from millstream.agent.delivery.bodies import body_of
from millstream.agent.delivery.outbox import OutboxEntry
from millstream.trees.messages import News, NewsQuestion
from millstream.trees.news_board import NewsBoard
from millstream.windows.panes.message import Message, manifest
from millstream.windows.placed import PlacedJob


def add(a: int, b: int) -> int:
    return a + b


def no_map(record: Any) -> Any:
    return ()


def placed(*nodes: str, **options: Any) -> PlacedJob:
    """A job of counts whose values can be merged."""
    job = ms.windows.Job(**{"map": no_map, "combine": add, "range": "10s", **options})
    return PlacedJob(job, "counts", nodes or ("a", "b"))


def message(
    node: str, pane: int, until: int | None = None, tree: str = "", **partials: int
) -> Message:
    """Makes the message of a node about a pane, or about an empty run."""
    told = manifest("data" if partials else "empty", 0)
    told.records = sum(partials.values())
    end = pane + 1 if until is None else until
    return Message(
        tree=tree or node,
        pane=pane,
        until=end,
        nodes={node: told},
        partials=partials,
        span="time/10000000/10000000/10000000",
    )


def entry(
    node: str, pane: int, until: int | None = None, tree: str = "", **partials: int
) -> OutboxEntry:
    """The same, for an outbox."""
    said = message(node, pane, until, tree, **partials)
    return OutboxEntry("counts", node, pane, said.until, body_of(said), {"after": said.until})


MOST_PANES = 10_000_000
"""The most panes of a message: this root keeps each of them, and there are too many empty ones
since 1970."""


class Scoreboard:
    """The accepted panes, by the root's rule."""

    def __init__(self) -> None:
        self.panes: set[tuple[str, int]] = set()
        self.values: dict[tuple[int, str], int] = {}
        self.repeated = 0

    def take(self, line: bytes) -> bool:
        said = json.loads(line)
        if said["until"] - said["pane"] > MOST_PANES:
            raise AssertionError(f"{said['pane']} to {said['until']}: give times near the clock's")
        panes = {
            (node, pane) for node in said["nodes"] for pane in range(said["pane"], said["until"])
        }
        if panes & self.panes:
            self.repeated += 1
            return False
        self.panes |= panes
        for key, value in said["partials"].items():
            place = said["pane"], key
            number = value["sum"] if isinstance(value, dict) else value  # of the algebra, or plain
            self.values[place] = self.values.get(place, 0) + number
        return True


class Root:
    """The server. `Root(port)` comes back where one has stopped."""

    def __init__(
        self, port: int = 0, *, tells: bool = True, token: str = "", certificate: Path | None = None
    ) -> None:
        self.board = Scoreboard()
        self.posts: list[tuple[str, str, bytes]] = []
        """Path, idempotency key and body of each request."""
        self.answers: deque[int | str] = deque()
        self.told: list[Any] = []
        self.tells = tells
        self.token = token
        self.asked: list[NewsQuestion] = []
        """Questions for news."""
        self._connections: list[socket.socket] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False
        scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            scheme = "https"
        self.port: int = self._server.server_address[1]
        self.url = f"{scheme}://{'localhost' if certificate else '127.0.0.1'}:{self.port}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Be gone: connections that are open break too."""
        self._server.shutdown()
        self._server.server_close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def post(self, path: str, key: str, body: bytes) -> tuple[int, dict[str, Any]]:
        self.posts.append((path, key, body))
        answer = self.answers.popleft() if self.answers else 200
        if isinstance(answer, int) and answer != 200:
            return answer, {"error": f"the root said {answer}"}
        lines = body.splitlines()
        if answer == "refused":
            return 200, {"refused_count": 1, "refused": [{"line": 1, "error": "it is odd"}]}
        for line in lines:
            said = json.loads(line)
            if self.board.take(line) and self.tells:
                panes = {"pane": said["pane"], "until": said["until"]}
                self.told.append({"accepted": {**panes, "nodes": list(said["nodes"])}})
        if answer == "cut":
            raise ConnectionError
        return 200, {"accepted": len(lines), "refused": [], "refused_count": 0}

    def news(self, query: str) -> News:
        given = parse_qs(query)
        after = given.get("after")
        question = NewsQuestion(
            given.get("node", []), given.get("life", [""])[0], int(after[0]) if after else None
        )
        self.asked.append(question)
        board = NewsBoard("root", "store")
        for number, told in enumerate(self.told):
            board.take(told, number)
        return board.answer(question)

    def _handler(root) -> Callable[..., BaseHTTPRequestHandler]:  # noqa: N805  the outer self
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                root._connections.append(self.connection)

            def do_GET(self) -> None:
                path = urlsplit(self.path)
                known: dict[str, Callable[[], Any]] = {"/healthz": lambda: {"ok": True}}
                known["/jobs/counts/news"] = lambda: root.news(path.query)
                if path.path in known:
                    self.say(200, known[path.path]())
                else:
                    self.say(404, {"error": "there is no such job"})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if root.token and self.headers["Authorization"] != f"Bearer {root.token}":
                    self.say(401, {"error": "this token is not the server's"})
                    return
                if self.path.startswith("/agents/"):
                    self.say(404, {"error": "this root places no agents"})
                    return
                try:
                    self.say(*root.post(self.path, self.headers["Idempotency-Key"], body))
                except ConnectionError:
                    self.close_connection = True

            def say(self, status: int, value: Any) -> None:
                content = msgspec.json.encode(value)
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                if status == 503:
                    self.send_header("Retry-After", "2")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                pass

        return Handler


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def until(true: Callable[[], object]) -> None:
    """Waits for an action of another thread, and fails if it does not happen."""
    patience = time.monotonic() + 30
    while not true():
        assert time.monotonic() < patience, "it did not happen"
        time.sleep(0.002)
