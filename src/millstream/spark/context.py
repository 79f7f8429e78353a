"""A SparkContext for Millstream: quiet, without a web page, tuned for short jobs.

docs/operations.md gives the reason of each setting that is not Spark's default; the figures are in
docs/design/2026-11-17-batches-as-spark-jobs.md.

The JVM is in a session of its own, so that signals to our process group (Ctrl-C, SIGTERM of a
service manager) reach only the driver, which then ends in order. It ends when its standard input
does: with this process, however that ends.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from millstream.errors import RunError
from millstream.spark.class_archive import use_options
from millstream.spark.jvm_noise import filtered_stderr

JAVA = 17
JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
CLOSE_SECONDS = 10.0
SOCKETS = "spark.python.unix.domain.socket.dir"
_LOGGING = Path(__file__).with_name("log4j2.properties")
_socket_folders: dict[SparkContext, str | None] = {}
"""The folder of the sockets of each context; asked of its JVM, it would go with it."""


def open_context(app: str, master: str, memory: str, java: str | None = None) -> SparkContext:
    """A SparkContext in a JVM of its own; RunError says why there is none.

    `java` are options of the JVM in the place of those that use the class archive.
    """
    _check_java()
    # What fails, Millstream says itself.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    _share_path()
    conf = _settings(app, master, memory, use_options() if java is None else java)
    try:
        with filtered_stderr() as stderr:
            gateway = launch_gateway(conf, {"stderr": stderr, "start_new_session": True})
        context = SparkContext(conf=conf, gateway=gateway)
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RunError(
            f"Spark did not start (master {master}, memory {memory}): {first}; is there a Java "
            f"{JAVA} or later, and is --memory enough (1g is the default)?"
        ) from None
    context.setLogLevel("FATAL")
    # It would print a traceback when the JVM is gone, which the driver says itself.
    context._accumulatorServer.handle_error = _say_nothing  # type: ignore[method-assign]
    _socket_folders[context] = conf.get(SOCKETS)
    return context


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """A filter of the root logger, at which py4j logs that the JVM is gone."""
    return "py4j" not in record.pathname


def _say_nothing(request: object, client_address: object) -> None:
    pass


def _settings(app: str, master: str, memory: str, options: str) -> SparkConf:
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
        # Over TCP a Python task stalls some 40 ms on its first input.
        ("spark.python.unix.domain.socket.enabled", "true"),
        ("spark.python.worker.reuse", "true"),
        ("spark.python.daemon.module", "millstream.spark.daemon"),
        ("spark.speculation", "false"),
        # Spark remembers a thousand jobs and stages for a page that Millstream never opens.
        ("spark.ui.retainedJobs", "10"),
        ("spark.ui.retainedStages", "10"),
        ("spark.ui.retainedTasks", "100"),
        # The JVM plans and moves a few large rows; its optimising compiler and its concurrent
        # collector would only take the cores from the Python workers.
        ("spark.driver.extraJavaOptions", java),
        ("spark.shuffle.compress", "false"),
    ):
        conf.set(name, value)
    if master.startswith("local"):
        # Whoever reaches a socket may use it: so they lie where only this user may look.
        conf.set(SOCKETS, mkdtemp(prefix="millstream-"))
        return conf
    # Executors are processes of their own, on this machine.
    conf.set("spark.executor.memory", memory)
    conf.set("spark.executor.extraJavaOptions", java)
    conf.set("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
    # An executor that is gone refuses at once: there is nothing to wait for.
    conf.set("spark.shuffle.io.retryWait", "500ms")
    return conf


def close_context(context: SparkContext, patience: float = CLOSE_SECONDS) -> None:
    """Stop Spark and end its JVM, whatever state they are in."""
    gateway = SparkContext._gateway
    sockets = _socket_folders.pop(context, None)
    try:
        context.stop()
    except (Py4JError, OSError):
        SparkContext._active_spark_context = None  # it is gone: the next one may be opened
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    SparkContext._gateway = SparkContext._jvm = None
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
    if sockets:
        shutil.rmtree(sockets, ignore_errors=True)


def _check_java() -> None:
    """Spark starts a Java that is found as it finds it; say so before it fails with a traceback."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    if found is None:
        where = f"JAVA_HOME is {home}, and has no bin/java" if home else "no java is on the PATH"
        raise RunError(
            f"Spark needs a Java runtime, version {JAVA} or later; {where}: install one (Debian, "
            "Ubuntu: apt-get install default-jre-headless) or set JAVA_HOME"
        )


def _with_retries(master: str) -> str:
    """A local master that tries a failed task again, as a cluster does."""
    local = re.fullmatch(r"local\[([^,\]]+)\]", master)
    return f"local[{local.group(1)},4]" if local else master


def _share_path() -> None:
    """Let Spark's Python workers import what the driver can."""
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    ours = [entry for entry in sys.path if entry and os.path.isdir(entry)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*ours, *filter(None, known)]))
