"""Where the archive of the classes that Spark loads is kept (`class_archive`)."""

from __future__ import annotations

import os
import shutil
from hashlib import sha256
from pathlib import Path

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


def _java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    return None if java is None else Path(java).resolve()
