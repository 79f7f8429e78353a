"""The process that forks Spark's Python workers: pyspark's own, without a word when Spark goes.

When Spark stops it closes the sockets of its workers first. A worker that is not ended in the same
moment answers that its input is gone, to nobody, and would print the traceback of that.
"""

from __future__ import annotations

import os
import socket

from pyspark import daemon

_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """One task in a worker; a worker that Spark hung up on ends."""
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
