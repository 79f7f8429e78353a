"""The bytes of a package: a zip that is the same for the same content.

Entries are stored, not compressed, so a small archive cannot expand into a large one, and the bytes
do not depend on the version of a compressor. The entries have a fixed order and a fixed date.
The reader takes the entries one after the other, and writes an archive of them again. It accepts
only bytes that are equal to that, so nothing can hide in an archive that another zip program would
see.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from millstream.errors import PackageError
from millstream.packages.manifest import MOST_FILES, check_paths, check_size

MANIFEST, SIGNATURE, FILES = "manifest.json", "signature.json", "files/"
_ENTRY = struct.Struct("<4s5H3L2H")
"""Mark, version, flags, method, time, date, crc, packed size, size, sizes of name and extra."""
_ENTRY_MARK = b"PK\x03\x04"
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Archive:
    """The entries of a package, not verified yet."""

    manifest: bytes
    files: Mapping[str, bytes]
    signature: bytes | None = None


def write_archive(archive: Archive) -> bytes:
    """Returns the zip of these entries."""
    entries = {MANIFEST: archive.manifest}
    if archive.signature is not None:
        entries[SIGNATURE] = archive.signature
    for path in sorted(archive.files):
        entries[f"{FILES}{path}"] = archive.files[path]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as zipped:
        for name, data in entries.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.create_system = 3  # the same bytes on every system
            entry.external_attr = 0o100644 << 16
            zipped.writestr(entry, data)
    return buffer.getvalue()


def read_archive(data: bytes) -> Archive:
    """Reads a zip that `write_archive` wrote. Raises PackageError for any other bytes."""
    check_size(len(data))
    entries: dict[str, bytes] = {}
    for name, content in _entries(data):
        entries[name] = content
        if len(entries) > MOST_FILES + 2:
            raise PackageError(f"package: must have at most {MOST_FILES} files; got more")
    manifest, signature = entries.pop(MANIFEST, None), entries.pop(SIGNATURE, None)
    if manifest is None:
        raise PackageError(
            f"package: must be a zip that `millstream pack` made, and have a {MANIFEST}; got "
            f"{len(data)} bytes that have none; fetch it, or pack it, again"
        )
    check_paths(entries)
    files = {
        name.removeprefix(FILES): content
        for name, content in entries.items()
        if name.startswith(FILES)
    }
    archive = Archive(manifest, files, signature)
    if write_archive(archive) != data:
        raise PackageError(
            "package: must be a zip as `millstream pack` writes it, byte for byte; got one that "
            "was changed, or was made by another program; fetch it, or pack it, again"
        )
    return archive


def _entries(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields the entries before the zip's directory. Irregularities are found by the comparison in
    `read_archive`."""
    at = 0
    while data[at : at + 4] == _ENTRY_MARK and at + _ENTRY.size <= len(data):
        *_, size, _, name_size, extra_size = _ENTRY.unpack_from(data, at)
        start = at + _ENTRY.size + name_size + extra_size
        name = data[at + _ENTRY.size : at + _ENTRY.size + name_size]
        yield name.decode("utf-8", "replace"), data[start : start + size]
        at = start + size
