"""What Spark starts as its workers' daemon hands over to the early one (`early_daemon`).

It sends its environment, its arguments and its standard streams, by which Spark speaks with its
daemon, through a socket, and waits for the end. It imports no more than that needs.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys

NAME = "daemon"
"""The socket's name in the private folder of the sockets."""
LENGTH = struct.Struct("<I")
STREAMS = (0, 1, 2)
TAKEN = b"y"


def hand_over(folder: str | None) -> bool:
    """Hands this process's part to the early daemon and waits for its end; False if there is none,
    or if it refuses."""
    if folder is None or not os.path.exists(path := os.path.join(folder, NAME)):
        return False
    given = json.dumps([dict(os.environ), sys.argv[1:]]).encode()
    with socket.socket(socket.AF_UNIX) as daemon:
        try:
            daemon.connect(path)
            socket.send_fds(daemon, [LENGTH.pack(len(given))], STREAMS)
            daemon.sendall(given)
            if daemon.recv(1) != TAKEN:
                return False
        except OSError:
            return False
        for stream in STREAMS:
            os.close(stream)  # only the daemon has Spark's streams: they are closed when it ends
        try:
            daemon.recv(1)
        except OSError:
            pass
        return True


def taken_from(spark: socket.socket) -> tuple[dict[str, str], list[str], list[int]]:
    """Returns the environment, the arguments and the streams that the other process sends."""
    head, streams, _, _ = socket.recv_fds(spark, LENGTH.size, len(STREAMS))
    with spark.makefile("rb") as reading:
        environment, arguments = json.loads(reading.read(*LENGTH.unpack(head)))
    return environment, arguments, streams
