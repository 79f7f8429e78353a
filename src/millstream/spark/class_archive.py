"""An archive of the classes that Spark loads, with which its JVM starts in two thirds of the time.

A JVM that finds such an archive maps it in place of reading, checking and linking
thousands of classes (class-data sharing). It is made once for a Java and a PySpark, by

    python -m millstream.spark.class_archive

which `make setup` does too, and lies in the user's cache folder. Starts use it if it is there. If
Java or Spark have changed since, the name is another; and a JVM that does not trust an archive does
without it.
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
"""Set to `off`, no archive is used."""


def archive_path() -> Path | None:
    """Where the archive for this Java and this PySpark lies or would lie; None if it is off."""
    java = _java()
    if java is None or os.environ.get(OFF, "").lower() == "off":
        return None
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    library = java.parents[1] / "lib" / "modules"
    stamp = library.stat().st_mtime_ns if library.exists() else java.stat().st_mtime_ns
    known = f"{java} {stamp} {pyspark.__file__} {pyspark.__version__}"
    return Path(cache) / "millstream" / f"spark-{sha256(known.encode()).hexdigest()[:16]}.jsa"


def use_options() -> str:
    """The JVM's options to use the archive, if there is one."""
    path = archive_path()
    if path is None or not path.exists() or " " in str(path):
        return ""
    return f"-XX:SharedArchiveFile={path} -Xlog:disable"


def make() -> Path | None:
    """Make the archive unless it is there: start Spark once, run a job, and end it.

    None if it cannot be made here; Spark then starts as it does without.
    """
    from millstream.spark.context import close_context, open_context

    path = archive_path()
    if path is None or path.exists() or " " in str(path):
        return path
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
    for old in path.parent.glob(".*.jsa"):  # of a try that was cut off
        old.unlink(missing_ok=True)
    return path


def _keyed(number: int) -> tuple[int, bytes]:
    return number, b""


def _java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    return None if found is None else Path(found).resolve()


if __name__ == "__main__":
    made = make()
    print(f"class archive: {made or 'none; Spark starts without it'}", file=sys.stderr)
