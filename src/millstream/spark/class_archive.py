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
import sys
from pathlib import Path
from uuid import uuid4

from millstream.spark.class_archive_path import archive_path
from millstream.spark.context import close_context, open_context


def make() -> Path | None:
    """Makes the archive unless it exists: starts Spark once, runs a job, and ends it.

    Returns None if it cannot be made here; Spark then starts without it.
    """
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


if __name__ == "__main__":
    archive = make()
    print(f"class archive: {archive or 'none; Spark starts without it'}", file=sys.stderr)
