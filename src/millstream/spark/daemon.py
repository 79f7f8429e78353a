"""The process that forks Spark's Python workers: pyspark's daemon, silent when Spark stops.

When Spark stops, it first closes the sockets of its workers. A worker that has not ended by then
tries to report that its input is gone, fails because nobody listens, and would print a traceback.

Anyone who can reach the daemon's socket may use it, so the socket is in a folder that only this
user may enter: the driver's folder or, on another machine, one that is made here.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from pyspark import daemon

FOLDER = "PYTHON_WORKER_FACTORY_SOCK_DIR"
"""The environment variable in which Spark passes the folder for the socket."""
_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Runs a task in a worker; ends the process quietly if Spark has closed the connection."""
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        os._exit(0)


@contextmanager
def private_sockets() -> Iterator[None]:
    """Makes sure that no other user can reach the daemon's socket."""
    folder = os.environ.get(FOLDER)
    if folder is None or _is_private(folder):
        yield
        return
    with TemporaryDirectory(prefix="millstream-", ignore_cleanup_errors=True) as private:
        os.environ[FOLDER] = private
        yield


def _is_private(folder: str) -> bool:
    try:
        status = os.stat(folder)
    except OSError:
        return False
    return status.st_uid == os.getuid() and not status.st_mode & 0o077


if __name__ == "__main__":
    daemon.worker = worker
    with private_sockets():
        daemon.manager()
