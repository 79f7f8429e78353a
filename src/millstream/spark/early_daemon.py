"""Starts the workers' daemon beside the JVM, instead of from it when the first job comes.

The daemon (`daemon`) needs 0.4 s for its imports, and the JVM a second and a half before it wants
one. So the driver starts it first, without Spark: it imports, and waits at a socket. What Spark
then starts as its daemon finds the socket and hands over (`daemon_handover`). The early daemon is
Spark's daemon from then on, and ends as one does: with the stream from Spark. Before, it ends with
its standard input, which is the driver's.

An environment with which it would have started differently, such as another seed of hashes, is
refused. Then, and wherever there is no early daemon, the process that Spark starts is the daemon.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping

from millstream.spark.daemon_handover import NAME, STREAMS, TAKEN, taken_from

_AS_SPARK_SETS = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "YES"}
_OF_SHELL = {"_", "OLDPWD", "PWD", "SHLVL"}
_OF_SPARK = ("PYSPARK_", "PYTHON_", "SPARK_", "_PYSPARK_")
"""Prefixes of variables that are read only when they are needed, as those of a shell are."""


def start(folder: str) -> subprocess.Popen[bytes]:
    """Starts the daemon, for the JVM that uses this folder for its sockets."""
    seed = os.environ.get("PYTHONHASHSEED", "0")  # as pyspark does
    return subprocess.Popen(
        [sys.executable, "-m", __name__, folder],
        env=os.environ | _AS_SPARK_SETS | {"PYTHONHASHSEED": seed},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # as the JVM, and for the same reasons: see `context`
    )


def end(process: subprocess.Popen[bytes], patience: float) -> None:
    """Ends the daemon if Spark has not taken it; otherwise it has ended with Spark, or is about
    to."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def take_over(folder: str) -> bool:
    """Waits for the process that Spark starts, and takes its part; False if it is not to be."""
    path = os.path.join(folder, NAME)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(1)
        from millstream.spark.daemon import import_what_tasks_need

        import_what_tasks_need()
        ready, _, _ = select.select([0, listening.fileno()], [], [])
        if listening.fileno() not in ready:
            return False  # the driver has ended
        spark, _ = listening.accept()
        os.unlink(path)
    environment, arguments, streams = taken_from(spark)
    if not suits(os.environ, environment):
        return False
    for stream, at in zip(streams, STREAMS, strict=True):
        os.dup2(stream, at)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments
    spark.sendall(TAKEN)
    os.register_at_fork(after_in_child=spark.close)  # it is closed when this process ends
    return True


def suits(ours: Mapping[str, str], theirs: Mapping[str, str]) -> bool:
    """True if a process with our environment can do the work of one with theirs."""
    from millstream.spark.worker_path import without_archives

    differing = {name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)}
    differing -= _OF_SHELL
    if "PYTHONPATH" in differing:
        path, rest = (each.get("PYTHONPATH", "").split(os.pathsep) for each in (theirs, ours))
        if without_archives(path) == rest:
            differing.remove("PYTHONPATH")
    return all(name.startswith(_OF_SPARK) for name in differing)


def leave_out_setpgid() -> None:
    """Leaves out the first call of `os.setpgid`: by it pyspark's daemon becomes the leader of a
    group, as the leader of a session is already; so the system refuses it."""
    setpgid = os.setpgid

    def left_out(pid: int, group: int) -> None:
        os.setpgid = setpgid

    os.setpgid = left_out


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if take_over(sys.argv[1]):
        from millstream.spark.daemon import serve

        leave_out_setpgid()
        serve()


if __name__ == "__main__":
    main()
