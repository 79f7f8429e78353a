"""A package whose bytes were checked before anything of them is used.

`read_package` checks that the bytes are one whole package: its form, its limits, its paths and the
hash of every file. `open_package` first asks whether it may run here: its hash or the key that has
signed it must be allowed on the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from millstream.errors import PackageError
from millstream.packages.archive import Archive, read_archive, write_archive
from millstream.packages.keys import Allowed, check_signature
from millstream.packages.manifest import (
    Manifest,
    PackagedFile,
    Signature,
    check_size,
    digest,
    encoded,
    read_manifest,
    read_signature,
)


@dataclass(frozen=True, slots=True)
class Package:
    """Verified content."""

    sha256: str
    """Of all its bytes: what it is known by."""
    manifest: Manifest
    files: Mapping[str, bytes] = field(repr=False)
    signed_by: str | None = None
    """The public key that its signature names, in hex; only `open_package` has verified it."""


def open_package(data: bytes, allowed: Allowed) -> Package:
    """The package in these bytes, if it may run on this node; PackageError if not."""
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
    """The package in these bytes, whoever signed it: for those who made it."""
    return _checked(data, read_archive(data))


def write_package(
    manifest: Manifest, files: Mapping[str, bytes], signature: Signature | None = None
) -> bytes:
    """The bytes of a package: the same for the same content."""
    signed = None if signature is None else encoded(signature)
    data = write_archive(Archive(encoded(manifest), files, signed))
    read_package(data)  # nobody would take what this refuses
    return data


def packaged(files: Mapping[str, bytes]) -> tuple[PackagedFile, ...]:
    """Files as a manifest lists them."""
    return tuple(
        PackagedFile(path, len(files[path]), digest(files[path])) for path in sorted(files)
    )


def _checked(data: bytes, archive: Archive) -> Package:
    manifest = read_manifest(archive.manifest)
    found = packaged(archive.files)
    if found != manifest.files:
        said = {file.path: file for file in manifest.files}
        wrong = [file.path for file in found if said.pop(file.path, None) != file]
        raise PackageError(
            "package: every file must be as its manifest says, and no other may be there; got "
            f"{', '.join([*wrong, *said])} otherwise; the package was changed: do not use it, and "
            "fetch it, or pack it, again"
        )
    signature = None if archive.signature is None else read_signature(archive.signature)
    return Package(
        digest(data), manifest, archive.files, None if signature is None else signature.key
    )
