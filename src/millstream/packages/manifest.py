"""The manifest of a package, and the limits that a package must stay within.

The signature is over the manifest, and the manifest has the hash of every file.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Literal, TypeVar

import msgspec

from millstream.errors import PackageError
from millstream.model.size import MIB

FORMAT = 1
MOST_BYTES = 16 * MIB
"""The maximum size of a whole package."""
MOST_FILES = 1_000
MOST_PATH = 200
encoded = msgspec.json.Encoder(order="sorted").encode
"""Returns the canonical encoding of a manifest or a signature."""


class PackagedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file: its path relative to the application's folder, with `/` as the separator."""

    path: str
    size: int
    sha256: str


class PackageManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of a package."""

    format: int = FORMAT
    app: str
    """The application's name."""
    file: str
    """The application's file, one of `files`."""
    name: str = ""
    """The App in that file, if it has several."""
    jobs: tuple[str, ...]
    """The jobs that take panes from agents."""
    created_by: str
    """The version of Millstream that packed it."""
    files: tuple[PackagedFile, ...]


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A signature of a manifest."""

    algorithm: Literal["ed25519"] = "ed25519"
    key: str
    """The public key, in hex. A hint: only keys that the node allows are tried."""
    signature: str


Content = TypeVar("Content", PackageManifest, Signature)


def read_manifest(data: bytes) -> PackageManifest:
    """Decodes a manifest. Raises PackageError if it exceeds the limits."""
    manifest = _decoded(data, PackageManifest, "manifest.json")
    if manifest.format != FORMAT:
        raise PackageError(
            f"package: manifest.json must be of format {FORMAT}; got {manifest.format}; install "
            "the version of Millstream that packed it, or pack it with this one"
        )
    paths = [file.path for file in manifest.files]
    check_paths(paths)
    if manifest.file not in paths:
        raise PackageError(
            f"package: its file {manifest.file!r} must be among its files; there are "
            f"{', '.join(paths) or 'none'}; pack it again"
        )
    return manifest


def read_signature(data: bytes) -> Signature:
    return _decoded(data, Signature, "signature.json")


def check_paths(paths: Iterable[str]) -> None:
    """Raises PackageError if a path could lead out of the folder that it is unpacked into, or
    collide with another path there."""
    folders, seen = set[str](), dict[str, str]()
    all_paths = list(paths)
    for path in all_paths:
        steps = path.split("/")
        is_bad = (
            not path
            or len(path) > MOST_PATH
            or any(step in ("", ".", "..") for step in steps)
            or any(character in '\\:*?"<>|' or not character.isprintable() for character in path)
        )
        if is_bad:
            raise PackageError(
                "package: a path must lead down from the application's folder, as in "
                f"'lib/words.py', in at most {MOST_PATH} plain characters; got {path[:300]!r}; "
                "do not use it, and pack it again"
            )
        if path.casefold() in seen:
            raise PackageError(
                f"package: paths must differ in more than case; got {seen[path.casefold()]!r} "
                f"and {path!r}; rename one and pack it again"
            )
        seen[path.casefold()] = path
        folders.update("/".join(steps[:depth]).casefold() for depth in range(1, len(steps)))
    for path in all_paths:
        if path.casefold() in folders:
            raise PackageError(
                f"package: {path!r} must be a file or a folder; got both; pack it again"
            )


def check_size(size: int) -> None:
    """Raises PackageError if a package is too large."""
    if size > MOST_BYTES:
        raise PackageError(
            f"package: must be at most {MOST_BYTES} bytes; got {size}; leave out what the jobs do "
            "not need, or install it on the nodes"
        )


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _decoded(data: bytes, kind: type[Content], name: str) -> Content:
    try:
        content = msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PackageError(
            f"package: {name} must be what `millstream pack` writes: {error}; if a newer version "
            "packed it, install that one here"
        ) from None
    if encoded(content) != data:  # another encoding could hide something
        raise PackageError(f"package: {name} must be encoded as `millstream pack` does; pack again")
    return content
