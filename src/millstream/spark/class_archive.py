"""An archive of the classes that Spark loads, with which its JVM starts in two thirds of the time.

A JVM that finds such an archive maps it instead of reading, checking and linking thousands of
classes (class-data sharing). It is made once for each installation of Java and PySpark, by

    python -m millstream.spark.class_archive

which `make setup` does too, and is stored in the user's cache folder. Starts use it if it exists.
If Java or Spark have changed since, the archive has another name; and a JVM that does not trust an
archive starts without it.
"""

from __future__ import annotations

import os
import shutil
import sys
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import pyspark

OFF = "MILLSTREAM_CLASS_ARCHIVE"
"""The environment variable that disables the archive if it is set to `off`."""


def archive_path() -> Path | None:
    """Returns the path of the archive for this Java and PySpark, whether or not it exists.

    None if there is no Java, or if the archive is off.
    """
    java = _java()
    if java is None or os.environ.get(OFF, "").lower() == "off":
        return None
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    library = java.parents[1] / "lib" / "modules"
    stamp = library.stat().st_mtime_ns if library.exists() else java.stat().st_mtime_ns
    versions = f"{java} {stamp} {pyspark.__file__} {pyspark.__version__}"
    return Path(cache) / "millstream" / f"spark-{sha256(versions.encode()).hexdigest()[:16]}.jsa"


def use_options() -> str:
    """Returns the JVM options that use the archive; empty if there is none."""
    path = archive_path()
    if path is None or not path.exists() or " " in str(path):
        return ""
    return f"-XX:SharedArchiveFile={path} -Xlog:disable"


def make() -> Path | None:
    """Makes the archive unless it exists: starts Spark once, runs a job, and ends it.

    Returns None if it cannot be made here; Spark then starts without it.
    """
    from millstream.spark.context import close_context, open_context

    path = archive_path()
    if path is None or path.exists():
        return path
    if " " in str(path):  # the JVM's options are separated by spaces
        return None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{uuid4().hex}.jsa")
        context = open_context(
            "archive", "local[1]", "1g", java=f"-XX:ArchiveClassesAtExit={fresh} -Xlog:disable"
        )
        numbers = context.parallelize(range(2), 2).map(_keyed).partitionBy(2)
        numbers.mapPartitions(iter).collect()
        close_context(context, patience=120.0)
        os.replace(fresh, path)
    except OSError:
        return None
    for old in path.parent.glob(".*.jsa"):  # left by interrupted attempts
        old.unlink(missing_ok=True)
    return path


def _keyed(number: int) -> tuple[int, bytes]:
    return number, b""


def _java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    return None if java is None else Path(java).resolve()


if __name__ == "__main__":
    archive = make()
    print(f"class archive: {archive or 'none; Spark starts without it'}", file=sys.stderr)
