"""A server forked from a process that has imported it: it is up five times sooner.

How a server is started for users has tests of its own (test_server_process).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import msgspec

from millstream.errors import MillstreamError
from millstream.server import __main__ as server
from millstream.server.child import ChildReport, written
from millstream.server.options import ServerOptions, check

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["millstream.server.__main__", "millstream.server.process"])


class ForkedServer:
    """Like a ServerChild that can only be killed."""

    def __init__(self, options: ServerOptions) -> None:
        check(options)
        stdin, self._stdin = _forks.Pipe(duplex=False)
        stdout, told = _forks.Pipe(duplex=False)
        stderr = Connection(os.dup(2), readable=False)
        pipes = (stdin, told, stderr)
        self._process: BaseProcess = _forks.Process(target=_serve, args=pipes, daemon=True)
        self._process.start()
        for pipe in pipes:
            pipe.close()
        os.write(self._stdin.fileno(), written(options) + b"\n")
        with os.fdopen(os.dup(stdout.fileno()), "rb") as lines:
            answer = msgspec.json.decode(lines.readline(), type=ChildReport)
        stdout.close()
        self.url = answer.url
        if answer.error:
            self.kill()
            raise MillstreamError(answer.error)

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def kill(self) -> None:
        """End it as a crash does."""
        if self._process.pid is not None:
            os.kill(self._process.pid, signal.SIGKILL)
        self._process.join()
        self._stdin.close()


def _serve(*pipes: Connection) -> None:
    os.setpgid(0, 0)
    for number, pipe in enumerate(pipes):
        os.dup2(pipe.fileno(), number)
    with open(0, encoding="utf-8") as sys.stdin:
        os._exit(server.main())
