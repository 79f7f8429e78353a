"""Opens a SparkContext for Millstream: quiet, without a web page, tuned for short jobs.

docs/operations.md gives the reason for each setting that is not Spark's default; the figures are in
docs/design/2026-11-17-batches-as-spark-jobs.md.

The JVM and the workers' daemon run in sessions of their own, so that signals to our process group
(Ctrl-C, SIGTERM of a service manager) reach only the driver, which then ends in order. And Linux
may share the cores among sessions first (autogroup): then tasks leave the server, which is in our
session, its part. The JVM ends when its standard input is closed, so it ends with this process,
however that ends.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

from millstream.errors import RunError
from millstream.settings.cluster_options import master_kind
from millstream.settings.setting_parts import ClusterSettings
from millstream.spark import early_daemon
from millstream.spark.class_archive_path import use_options
from millstream.spark.cluster_conf import ARCHIVE, SECRET, ClusterAccess, cluster_conf
from millstream.spark.jvm_noise import filtered_stderr

JAVA = 17
JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
CLOSE_SECONDS = 10.0
SOCKETS = "spark.python.unix.domain.socket.dir"
_LOGGING = Path(__file__).with_name("log4j2.properties")
_socket_folders: dict[SparkContext, str | None] = {}
"""The folder of each context's sockets. Kept here, since the JVM may be gone when it is needed."""
_left_folders: set[str] = set()
"""The folders that still exist: a process may end before its context has opened."""
_early_daemons: dict[SparkContext, subprocess.Popen[bytes] | None] = {}
_set_aside: dict[SparkContext, tuple[Any, Any]] = {}
"""For each context: the JVM of an earlier, stopped session of this process."""


def open_context(
    app: str,
    master: str,
    memory: str,
    java: str | None = None,
    access: ClusterAccess | None = None,
) -> SparkContext:
    """Opens a SparkContext in its own JVM; raises RunError with the reason if that fails.

    `java`: JVM options that replace those for the class archive. `access` is for a cluster.
    """
    access = access or ClusterAccess()
    _check_java()
    # Millstream reports failures itself.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)
    os.environ["PYSPARK_PYTHON"] = access.python or sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    _share_path()
    # The JVM of a stopped session is still there: Spark would use it, with that session's settings.
    earlier = SparkContext._gateway, SparkContext._jvm
    if SparkContext._active_spark_context is None:
        SparkContext._gateway = SparkContext._jvm = None
    conf = _settings(app, master, memory, use_options() if java is None else java, access)
    daemon = early_daemon.start(conf.get(SOCKETS) or "") if _is_in_one_process(master) else None
    try:
        with filtered_stderr() as stderr:
            gateway = launch_gateway(conf, {"stderr": stderr, "start_new_session": True})
        _convert_without_pandas(gateway)
        if access.secret:
            conf.set(SECRET, access.secret)  # only now: anyone can read the JVM's command line
        context = SparkContext(conf=conf, gateway=gateway)
    except Exception as error:
        SparkContext._gateway, SparkContext._jvm = earlier
        if daemon is not None:
            early_daemon.end(daemon, CLOSE_SECONDS)
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RunError(
            f"Spark did not start (master {master}, memory {memory}): {first}; is there a Java "
            f"{JAVA} or later, and is --memory enough (1g is the default)?{_of_master(master)}"
        ) from None
    if access.runtime is not None:
        context.addArchive(f"{access.runtime}#{ARCHIVE}")
    context.setLogLevel("FATAL")
    # It would print a traceback when the JVM is gone, which the driver reports itself.
    context._accumulatorServer.handle_error = _say_nothing  # type: ignore[method-assign]
    _socket_folders[context] = conf.get(SOCKETS)
    _early_daemons[context] = daemon
    _set_aside[context] = earlier
    return context


def _of_master(master: str) -> str:
    if master.startswith("local"):
        return ""
    return (
        " Does the master answer, and does it have the same secret and encryption (--secret-file, "
        "--no-encrypt)?"
    )


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """A filter for the root logger, to which py4j logs that the JVM is gone."""
    return "py4j" not in record.pathname


def _say_nothing(request: object, client_address: object) -> None:
    pass


def _settings(app: str, master: str, memory: str, options: str, access: ClusterAccess) -> SparkConf:
    java = f"{JVM} {options} -Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    conf = SparkConf(loadDefaults=False)
    for name, value in (
        ("spark.app.name", f"millstream-{app}"),
        ("spark.master", _with_retries(master)),
        ("spark.driver.memory", memory),
        ("spark.ui.enabled", "false"),
        ("spark.ui.showConsoleProgress", "false"),
        ("spark.driver.bindAddress", "127.0.0.1"),
        ("spark.driver.host", "127.0.0.1"),
        # Over TCP a Python task stalls for about 40 ms on its first input.
        ("spark.python.unix.domain.socket.enabled", "true"),
        ("spark.python.worker.reuse", "true"),
        ("spark.python.daemon.module", "millstream.spark.daemon"),
        ("spark.speculation", "false"),
        # Spark remembers a thousand jobs and stages for a page that Millstream never opens.
        ("spark.ui.retainedJobs", "10"),
        ("spark.ui.retainedStages", "10"),
        ("spark.ui.retainedTasks", "100"),
        # The JVM only plans and moves a few large rows; its optimising compiler and its concurrent
        # collector would just take cores from the Python workers.
        ("spark.driver.extraJavaOptions", java),
        ("spark.shuffle.compress", "false"),
    ):
        conf.set(name, value)
    # Anyone who can reach a socket may use it, so the sockets are in a folder that only this user
    # may enter. On other machines the workers' daemon makes such a folder itself.
    folder = mkdtemp(prefix="millstream-")
    _left_folders.add(folder)
    conf.set(SOCKETS, folder)
    if not master.startswith("local"):
        # Executors are separate processes, and have our files only if they are on this machine.
        elsewhere = JVM if access.listen else java
        cluster = cluster_conf(access, memory, elsewhere, os.environ["PYTHONPATH"])
        cluster.pop(SECRET, None)
        for name, value in cluster.items():
            conf.set(name, value)
    for name, value in access.spark.items():
        ours = conf.get(name) if name.endswith("extraJavaOptions") else None
        conf.set(name, f"{ours} {value}" if ours else value)
    return conf


def open_for(app: str, cluster: ClusterSettings) -> SparkContext:
    """Opens a SparkContext according to the settings of a run."""
    kind = master_kind(cluster.master)
    local = kind is None or kind == "local"
    plain = ClusterAccess(spark=cluster.spark)
    access = plain if local else ClusterAccess.of(cluster, os.environ)
    return open_context(app, cluster.master, cluster.memory, access=access)


def close_context(context: SparkContext, patience: float = CLOSE_SECONDS) -> None:
    """Stops Spark and ends its JVM, whatever state they are in."""
    gateway = SparkContext._gateway
    sockets, daemon = _socket_folders.pop(context, None), _early_daemons.pop(context, None)
    accumulators: Any = context._accumulatorServer
    # Its thread looks once a second whether it should end: nobody need wait for that.
    context._accumulatorServer = None  # type: ignore[assignment]
    try:
        context.stop()
    except (Py4JError, OSError):
        SparkContext._active_spark_context = None  # it is gone: another may be opened
    if accumulators is not None:
        threading.Thread(target=_shut_down, args=(accumulators,), daemon=True).start()
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    SparkContext._gateway, SparkContext._jvm = _set_aside.pop(context, (None, None))
    if gateway is not None:
        try:
            gateway.shutdown()
        except (Py4JError, OSError):
            pass
    if process is not None:
        if process.stdin is not None:
            process.stdin.close()  # which ends it
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if daemon is not None:
        early_daemon.end(daemon, patience)
    if sockets:
        _left_folders.discard(sockets)
        shutil.rmtree(sockets, ignore_errors=True)


@atexit.register
def _remove_folders() -> None:
    for folder in _left_folders:
        shutil.rmtree(folder, ignore_errors=True)


def _shut_down(accumulators: Any) -> None:
    with suppress(OSError):  # its socket may have gone with the folder
        accumulators.shutdown()


class _NumpyConverter:
    """Asks a converter of pyspark about NumPy's objects only: to be asked, it imports pandas."""

    def __init__(self, converter: Any) -> None:
        self._converter = converter
        self.convert = converter.convert

    def can_convert(self, given: object) -> bool:
        numpy = any(kind.__module__ == "numpy" for kind in type(given).__mro__)
        return numpy and bool(self._converter.can_convert(given))


def _convert_without_pandas(gateway: Any) -> None:
    """Saves the import of pandas at the first call of the JVM, which asks all converters."""
    client = gateway._gateway_client
    client.converters = [
        _NumpyConverter(converter)
        if isinstance(converter, NumpyArrayConverter | NumpyScalarConverter)
        else converter
        for converter in client.converters
    ]


def _check_java() -> None:
    """Raises RunError if Spark would find no Java: Spark itself would fail with a traceback."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME is {home}, and has no bin/java" if home else "no java is on the PATH"
        raise RunError(
            f"Spark needs a Java runtime, version {JAVA} or later; {where}: install one (Debian, "
            "Ubuntu: apt-get install default-jre-headless) or set JAVA_HOME"
        )


def _with_retries(master: str) -> str:
    """Makes a local master retry a failed task, as a cluster does."""
    local = re.fullmatch(r"local\[([^,\]]+)\]", master)
    return f"local[{local.group(1)},4]" if local else master


def _is_in_one_process(master: str) -> bool:
    """True if tasks run in the driver's JVM, so that there is one daemon."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def _share_path() -> None:
    """Lets Spark's Python workers import what the driver can import."""
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    ours = [entry for entry in sys.path if entry and os.path.isdir(entry)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*ours, *filter(None, known)]))
