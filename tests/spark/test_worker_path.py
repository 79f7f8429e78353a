"""The module path of Spark's Python workers: the installed pyspark where it is that of Spark."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import pyspark
import pytest

from millstream.spark.worker_path import without_archives

PARTS = {"pyspark": "4.3.0", "py4j": "0.10.9.9"}


def installed(folder: Path, **versions: str) -> str:
    """Makes a folder with packages of these versions installed."""
    for package, version in versions.items():
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").touch()
        (folder / package / "version.py").write_text(f"__version__ = '{version}'\n")
    return str(folder)


def archives(folder: Path, pyspark: str = "4.3.0", py4j: str = "0.10.9.9") -> list[str]:
    """Makes the archives that Spark puts in front of the path; the jar need not exist."""
    folder.mkdir(parents=True)
    packed = folder / "pyspark.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("pyspark/version.py", f"__version__ = '{pyspark}'\n")
    named = folder / f"py4j-{py4j}-src.zip"
    return [str(packed), str(named), str(folder / "spark-core_2.13-4.3.0.jar")]


def test_archives_of_the_installed_version_are_left_out(tmp_path: Path) -> None:
    """The rest of the path keeps its order; an archive of other code stays."""
    code, site = str(tmp_path / "code.zip"), installed(tmp_path / "site", **PARTS)
    path = [code, *archives(tmp_path / "spark"), "", site]
    assert without_archives(path) == [code, "", site]


@pytest.mark.parametrize("package", PARTS)
def test_archives_of_another_version_stay(tmp_path: Path, package: str) -> None:
    site = installed(tmp_path / "site", **PARTS | {package: "4.2.1"})
    path = [*archives(tmp_path / "spark"), site]
    assert without_archives(path) == path


@pytest.mark.parametrize("package", PARTS)
def test_archives_stay_where_a_package_is_not_installed(tmp_path: Path, package: str) -> None:
    """As on a host of a cluster whose Python has nothing, or only a part."""
    others = {name: version for name, version in PARTS.items() if name != package}
    path = [*archives(tmp_path / "spark"), installed(tmp_path / "site", **others)]
    assert without_archives(path) == path


def test_a_part_of_the_installed_package_needs_no_version(tmp_path: Path) -> None:
    """The archive in the installed package's own folder is not opened."""
    site = installed(tmp_path / "site", **PARTS)
    library = tmp_path / "site" / "pyspark" / "python" / "lib"
    path = [str(library / "pyspark.zip"), str(library / "py4j-0.10.9.9-src.zip"), site]
    assert without_archives(path) == [site]


def test_a_path_without_archives_stays() -> None:
    assert without_archives(sys.path) == sys.path


@pytest.mark.spark
def test_workers_import_the_installed_pyspark(spark: Any) -> None:
    """In a worker of our own context, pyspark is the driver's, and no archive is searched."""

    def found(_: object) -> tuple[str, list[str]]:
        import sys

        import pyspark

        ends = ("pyspark.zip", "-src.zip", ".jar")
        archives = [*filter(lambda entry: entry.endswith(ends), sys.path)]
        return str(pyspark.__file__), archives

    (answer,) = spark.parallelize([0], 1).map(found).collect()
    assert answer == (pyspark.__file__, [])
