"""A TCP proxy in front of a server that cuts connections when it is told to.

The client keeps one address, while the server behind it may come and go.
"""

from __future__ import annotations

import socket
import struct
import threading
from types import TracebackType

RESET = struct.pack("ii", 1, 0)
"""Close with a reset, as a dying machine does."""


class CuttingProxy:
    """A context manager. `target` is (host, port), None while there is no server."""

    def __init__(self, target: tuple[str, int] | None) -> None:
        self.target = target
        self.lose_answers = 0
        """The number of answers to lose: the request arrives, its answer does not, the connection
        ends."""
        self.lost = 0
        self.connections = 0
        """The number of connections that reached the server."""
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Break every connection."""
        with self._lock:
            opened, self._open = self._open, set()
        for one in opened:
            self._break(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # the listener is closed
            try:
                assert self.target is not None
                server = socket.create_connection(self.target, timeout=5)
                server.settimeout(None)
            except (AssertionError, OSError):
                self._break(client)
                continue
            with self._lock:
                self._open |= {client, server}
                self.connections += 1
            for source, sink, answers in ((client, server, False), (server, client, True)):
                threading.Thread(
                    target=self._pump, args=(source, sink, answers), daemon=True
                ).start()

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        try:
            while data := source.recv(65536):
                if answers and self._loses():
                    break
                sink.sendall(data)
        except OSError:
            pass
        with self._lock:
            self._open -= {source, sink}
        self._break(source)
        self._break(sink)

    def _loses(self) -> bool:
        with self._lock:
            if self.lose_answers <= 0:
                return False
            self.lose_answers -= 1
            self.lost += 1
            return True

    @staticmethod
    def _break(one: socket.socket) -> None:
        try:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            one.shutdown(socket.SHUT_RDWR)  # wakes whoever reads it
        except OSError:
            pass
        one.close()
