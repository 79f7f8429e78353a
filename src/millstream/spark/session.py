"""A Spark session for Millstream: quiet, without a web page, tuned for short batches.

docs/operations.md gives the reason of each setting that is not Spark's default; the figures are in
docs/design/2026-11-15-one-heartbeat-source.md.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from pathlib import Path
from tempfile import gettempdir

from pyspark.sql import SparkSession

from millstream.errors import RunError
from millstream.spark.quiet import quiet_stderr

CHECKPOINT_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
JAVA = 17
JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_LOGGING = Path(__file__).with_name("log4j2.properties")


def open_session(app: str, master: str, memory: str) -> SparkSession:
    """The session of this process, made if there is none."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # what fails, Millstream says itself
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    _share_path()
    logging_file = _LOGGING.as_uri()
    builder = (
        SparkSession.builder.appName(f"millstream-{app}")
        .master(_with_retries(master))
        .config("spark.driver.memory", memory)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(Path(gettempdir()) / "millstream-warehouse"))
        # Our frames are few and large; Spark's own planning is the cost of a small batch.
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.speculation", "false")
        .config("spark.python.worker.reuse", "true")
        # A local checkpoint needs no checksummed file system: Millstream keeps its own checksum.
        .config("spark.sql.streaming.checkpointFileManagerClass", CHECKPOINT_MANAGER)
        .config("spark.hadoop.fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem")
        .config("spark.sql.streaming.minBatchesToRetain", "10")
        .config("spark.sql.streaming.numRecentProgressUpdates", "2")
        # Spark remembers a thousand jobs, stages and plans for a page that Millstream never opens.
        .config("spark.ui.retainedJobs", "10")
        .config("spark.ui.retainedStages", "10")
        .config("spark.ui.retainedTasks", "100")
        .config("spark.sql.ui.retainedExecutions", "10")
        # The JVM plans and moves a few large rows; its optimising compiler and its concurrent
        # collector would only take the cores from the Python workers.
        .config("spark.driver.extraJavaOptions", f"{JVM} -Dlog4j2.configurationFile={logging_file}")
        .config("spark.shuffle.compress", "false")
    )
    if not master.startswith("local"):
        for name, value in _executors(memory, f"{JVM} -Dlog4j2.configurationFile={logging_file}"):
            builder = builder.config(name, value)
    _check_java()
    try:
        with quiet_stderr():
            session = builder.getOrCreate()
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RunError(
            f"Spark did not start (master {master}, memory {memory}): {first}; is there a Java "
            f"{JAVA} or later, and is --memory enough (1g is the default)?"
        ) from None
    session.sparkContext.setLogLevel("FATAL")
    return session


def _executors(memory: str, options: str) -> list[tuple[str, str]]:
    """What a cluster's executors need besides: they are processes of their own, on this machine."""
    return [
        ("spark.executor.memory", memory),
        ("spark.executor.extraJavaOptions", options),
        ("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"]),
        # An executor that is gone refuses at once: there is nothing to wait for.
        ("spark.shuffle.io.retryWait", "500ms"),
    ]


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
