"""A package whose bytes are checked before any use.

`read_package` checks that the bytes are a complete package: its form, its limits, its paths and the
hash of every file. `open_package` first checks that it may run here: the node must allow its hash,
or the key that signed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from millstream.errors import PackageError
from millstream.packages.archive import Archive, read_archive, write_archive
from millstream.packages.keys import Allowed, check_signature
from millstream.packages.manifest import (
    PackagedFile,
    PackageManifest,
    Signature,
    check_size,
    digest,
    encoded,
    read_manifest,
    read_signature,
)


@dataclass(frozen=True, slots=True)
class Package:
    """The verified content of a package."""

    sha256: str
    """The hash of all its bytes, which identifies it."""
    manifest: PackageManifest
    files: Mapping[str, bytes] = field(repr=False)
    signed_by: str | None = None
    """The public key that its signature names, in hex. Only `open_package` verifies the
    signature."""


def open_package(data: bytes, allowed: Allowed) -> Package:
    """Returns the package in these bytes if it may run on this node; otherwise raises
    PackageError."""
    check_size(len(data))
    archive = read_archive(data)
    if digest(data) not in allowed.hashes:
        if archive.signature is None:
            raise PackageError(
                f"package: must be signed by a key that is allowed here ({allowed}), or be allowed "
                "by its hash; got one without a signature; sign it with `millstream pack APP "
                f"--sign KEYFILE`, or add --allow sha256:{digest(data)}"
            )
        check_signature(archive.manifest, read_signature(archive.signature), allowed)
    return _checked(data, archive)


def read_package(data: bytes) -> Package:
    """Returns the package in these bytes. Does not check its signature: for a package that was made
    here, and for the root, which does not run it."""
    return _checked(data, read_archive(data))


def write_package(
    manifest: PackageManifest, files: Mapping[str, bytes], signature: Signature | None = None
) -> bytes:
    """Returns the bytes of a package. They are the same for the same content."""
    signed = None if signature is None else encoded(signature)
    data = write_archive(Archive(encoded(manifest), files, signed))
    read_package(data)  # fail here rather than at every reader
    return data


def packaged(files: Mapping[str, bytes]) -> tuple[PackagedFile, ...]:
    """Returns files as a manifest lists them."""
    return tuple(
        PackagedFile(path, len(files[path]), digest(files[path])) for path in sorted(files)
    )


def _checked(data: bytes, archive: Archive) -> Package:
    manifest = read_manifest(archive.manifest)
    files = packaged(archive.files)
    if files != manifest.files:
        listed = {file.path: file for file in manifest.files}
        wrong = [file.path for file in files if listed.pop(file.path, None) != file]
        raise PackageError(
            "package: every file must be as its manifest says, and no other may be there; got "
            f"a difference in {', '.join([*wrong, *listed])}; the package was changed: do not use "
            "it, and fetch it, or pack it, again"
        )
    signature = None if archive.signature is None else read_signature(archive.signature)
    return Package(
        digest(data), manifest, archive.files, None if signature is None else signature.key
    )
