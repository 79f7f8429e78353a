"""Applications with Python jobs, and packages of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from millstream.packages.app_files import collect
from millstream.packages.keys import Allowed, allowed_of, new_key, sign
from millstream.packages.manifest import PackageManifest, encoded
from millstream.packages.package import packaged, write_package

APP = """
import millstream as ms
from packed_words import words

app = ms.App("logs")
app.add(
    ms.windows.Job(map=words, combine=ms.algebra.sum(), range="1m"),
    name="counts",
    nodes=["web1"],
    logs=ms.windows.Logs(ts="time"),
)
"""
WORDS = """
def words(record):
    for word in record["line"].split():
        yield word, 1
"""


def packed(
    files: dict[str, str], key: Path | None = None, *, app: str = "logs", file: str = "app.py"
) -> bytes:
    """A package of these files, whatever they are."""
    data = {path: text.encode() for path, text in files.items()}
    manifest = PackageManifest(
        app=app, file=file, jobs=("counts",), created_by="test", files=packaged(data)
    )
    return write_package(manifest, data, None if key is None else sign(encoded(manifest), key))


def written(folder: Path, files: dict[str, str]) -> Path:
    """The files in a folder."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def collected(folder: Path, file: str = "app.py", key: Path | None = None) -> bytes:
    """A package of an application as `millstream pack` makes it."""
    found = collect(str(folder / file), "test")
    signature = None if key is None else sign(encoded(found.manifest), key)
    return write_package(found.manifest, found.files, signature)


@contextmanager
def modules_forgotten(folder: Path) -> Iterator[None]:
    """Forgets the modules imported from a folder afterwards: another test has modules of the same
    names."""
    before = [*sys.path]
    try:
        yield
    finally:
        sys.path[:] = before
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if file and Path(file).is_relative_to(folder):
                del sys.modules[name]


def key_in(folder: Path, name: str = "release.key") -> tuple[Path, Allowed]:
    """A new key, and a node that allows it."""
    path = folder / name
    return path, allowed_of([str(new_key(path))])
