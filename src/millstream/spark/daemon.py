"""The process that forks Spark's Python workers: pyspark's daemon, silent when Spark stops.

When Spark stops, it first closes the sockets of its workers. A worker that has not ended by then
tries to report that its input is gone, fails because nobody listens, and would print a traceback.

Anyone who can reach the daemon's socket may use it, so the socket is in a folder that only this
user may enter: the driver's folder or, on another machine, one that is made here.

Workers inherit its module path, without Spark's archives where it can be (`worker_path`), and what
it has imported: what a task needs is imported once, and its memory is shared. Spark's own daemon
imports nothing that may start a thread, since a fork copies only the thread that forks. NumPy and
Arrow do start threads when they are imported. They only wait when this process forks, which it does
while it has nothing else to do, and both libraries prepare their threads and locks for a fork.

If the driver has started this process before Spark does (`early_daemon`), what Spark starts hands
over to that one.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from tempfile import TemporaryDirectory

from millstream.spark.daemon_handover import hand_over

FOLDER = "PYTHON_WORKER_FACTORY_SOCK_DIR"
"""The environment variable in which Spark passes the folder for the socket."""

if __name__ == "__main__" and hand_over(os.environ.get(FOLDER)):  # before anything is imported
    os._exit(0)

from millstream.spark.worker_path import use_installed_pyspark  # noqa: E402

use_installed_pyspark()

from pyspark import daemon  # noqa: E402

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


def import_what_tasks_need() -> None:
    """Imports it; if that fails, a worker reports it, with the task that needs it."""
    with suppress(ImportError):
        import_module("millstream.spark.worker")


def serve() -> None:
    """Forks workers until Spark ends."""
    daemon.worker = worker
    with private_sockets():
        daemon.manager()


if __name__ == "__main__":
    import_what_tasks_need()
    serve()
