"""The packages that a node refuses: changed, too large, or not allowed."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packages.samples import APP, WORDS, key_in, packed

from millstream.errors import CommandError, PackageError
from millstream.packages.archive import Archive, read_archive, write_archive
from millstream.packages.keys import Allowed, allowed_of, new_key
from millstream.packages.manifest import MOST_BYTES, MOST_FILES, digest, encoded, read_manifest
from millstream.packages.package import open_package, packaged, read_package

FILES = {"app.py": APP, "packed_words.py": WORDS}


def test_a_signed_package_is_opened(tmp_path: Path) -> None:
    """Its files and its manifest are those that were packed; the hash names it."""
    key, allowed = key_in(tmp_path)
    data = packed(FILES, key)
    package = open_package(data, allowed)
    assert package.sha256 == digest(data)
    assert package.files == {path: text.encode() for path, text in FILES.items()}
    assert package.manifest.app == "logs"
    assert package.signed_by in allowed.keys


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    """The order of the files makes no difference, and every unzip reads the package."""
    key, _ = key_in(tmp_path)
    data = packed(FILES, key)
    assert data == packed(dict(reversed(FILES.items())), key)
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        assert zipped.testzip() is None
        assert zipped.read("files/packed_words.py") == WORDS.encode()


def test_no_byte_can_be_changed(tmp_path: Path) -> None:
    """Each byte of a package, flipped in one bit or lost, makes it one that is refused: in the
    archive's own headers, the manifest, the signature and every file."""
    key, allowed = key_in(tmp_path)
    data = packed(FILES, key)
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << (at % 8)
        with pytest.raises(PackageError):
            open_package(bytes(changed), allowed)
    for cut in (*range(0, len(data), 7), len(data) - 1):
        with pytest.raises(PackageError):
            open_package(data[:cut], allowed)
    for more in (b"\0", b"PK\x05\x06"):
        with pytest.raises(PackageError):
            open_package(data + more, allowed)
        with pytest.raises(PackageError):
            open_package(more + data, allowed)


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_refused_and_no_other_error_is_raised(noise: bytes, like_a_zip: bool) -> None:
    """For any bytes an agent only sees PackageError."""
    data = (b"PK\x03\x04" if like_a_zip else b"") + noise
    with pytest.raises(PackageError):
        open_package(data, Allowed(hashes=frozenset({digest(data)})))


def test_a_package_by_another_key_is_refused(tmp_path: Path) -> None:
    """The error says whose keys are allowed, whose came, and what to do."""
    _, allowed = key_in(tmp_path)
    other, others = key_in(tmp_path, "other.key")
    with pytest.raises(PackageError, match=r"release\.key\.pub.*got a signature by.*--allow"):
        open_package(packed(FILES, other), allowed)
    assert open_package(packed(FILES, other), others)
    both = allowed_of([str(tmp_path)])
    assert len(both.keys) == 2
    assert open_package(packed(FILES, other), both) == open_package(packed(FILES, other), others)


def test_a_signature_is_of_one_manifest(tmp_path: Path) -> None:
    """Moved to another package, or with the allowed key's name on another's signature, it is no
    signature."""
    key, allowed = key_in(tmp_path)
    other, _ = key_in(tmp_path, "other.key")
    good, strange = read_archive(packed(FILES, key)), read_archive(packed(FILES, other))
    changed = read_archive(packed({**FILES, "packed_words.py": WORDS + "# more\n"}))
    moved = write_archive(Archive(changed.manifest, changed.files, good.signature))
    with pytest.raises(PackageError, match="the package was changed"):
        open_package(moved, allowed)
    assert good.signature is not None
    assert strange.signature is not None
    claim = msgspec.json.decode(good.signature)
    claim["signature"] = msgspec.json.decode(strange.signature)["signature"]
    forged = msgspec.json.Encoder(order="sorted").encode(claim)
    with pytest.raises(PackageError, match="never signed by this key"):
        open_package(write_archive(Archive(good.manifest, good.files, forged)), allowed)


def test_one_package_can_be_allowed_by_its_hash() -> None:
    """Without any key; another one is refused, and the error has its hash."""
    data, other = packed(FILES), packed({**FILES, "packed_words.py": WORDS + "# more\n"})
    allowed = allowed_of([f"sha256:{digest(data).upper()}"])
    assert open_package(data, allowed).signed_by is None
    with pytest.raises(PackageError, match=f"without a signature.*sha256:{digest(other)}"):
        open_package(other, allowed)
    with pytest.raises(PackageError, match="nothing"):
        open_package(data, Allowed())


@pytest.mark.parametrize(
    "path",
    [
        *("../evil.py", "a/../../evil.py", "/etc/evil.py", "./evil.py", "a//evil.py", "a/", ""),
        *("C:evil.py", "a\\evil.py", "evil\0.py", "evil\n.py", "a/.", "..", "x" * 300),
    ],
)
def test_no_path_leads_out_of_the_folder(path: str) -> None:
    """Not even in a package that is allowed by its hash."""
    files = {"app.py": APP.encode(), path: b"x = 1\n"}
    manifest = msgspec.structs.replace(
        read_package(packed({"app.py": APP})).manifest, files=packaged(files)
    )
    with pytest.raises(PackageError, match="must lead down"):
        read_manifest(encoded(manifest))
    data = write_archive(Archive(encoded(manifest), files))
    with pytest.raises(PackageError):
        open_package(data, Allowed(hashes=frozenset({digest(data)})))


@pytest.mark.parametrize("other", ["APP.py", "app.py/evil.py"])
def test_no_path_hides_another(other: str) -> None:
    """Two that are one on some disks, or a file that is a folder too, are refused."""
    with pytest.raises(PackageError, match="pack it again"):
        packed({"app.py": APP, other: ""})


def deflated(files: dict[str, bytes]) -> bytes:
    """A zip as other programs write it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, data in files.items():
            zipped.writestr(name, data)
    return out.getvalue()


def bomb() -> bytes:
    """A few kilobytes that an unzip would make gigabytes of: entries that share one content."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    kernel = packer.compress(bytes(1 << 20)) + packer.flush()
    return deflated({"manifest.json": b"{}"}) + kernel


@pytest.mark.parametrize(
    "data",
    [
        deflated({"manifest.json": b"{}", "files/app.py": bytes(1 << 24)}),
        bomb(),
        bytes(MOST_BYTES + 1),
        write_archive(Archive(b"{}", {f"{n}.py": b"" for n in range(MOST_FILES + 1)})),
        struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 33, 0, 2**32 - 1, 2**32 - 1, 1, 0),
        deflated({}),
    ],
    ids=["deflated", "bomb", "large", "many", "claims", "empty"],
)
def test_what_would_grow_is_refused(data: bytes) -> None:
    """Nothing is ever decompressed; sizes and counts are bounded before anything is read."""
    with pytest.raises(PackageError):
        open_package(data, Allowed(hashes=frozenset({digest(data)})))


def changed_manifest(change: Callable[[dict[str, object]], None]) -> bytes:
    archive = read_archive(packed(FILES))
    manifest = msgspec.json.decode(archive.manifest)
    change(manifest)
    return write_archive(
        Archive(msgspec.json.Encoder(order="sorted").encode(manifest), archive.files)
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: one.update(format=2), "format 1; got 2"),
        (lambda one: one.update(more=1), "unknown field"),
        (lambda one: one.update(file="other.py"), "must be among its files"),
        (lambda one: one["files"][0].update(size=3), r"got a difference in app\.py"),
        (lambda one: one["files"].pop(), r"got a difference in packed_words\.py"),
        (
            lambda one: one["files"].append({"path": "x.py", "size": 0, "sha256": ""}),
            r"got a difference in x\.py",
        ),
    ],
)
def test_a_manifest_must_say_what_is_there(
    change: Callable[[dict[str, object]], None], said: str
) -> None:
    """Every file with its size and hash, no more and no less."""
    data = changed_manifest(change)
    with pytest.raises(PackageError, match=said):
        open_package(data, Allowed(hashes=frozenset({digest(data)})))


def test_keys_are_kept(tmp_path: Path) -> None:
    """A private key is its owner's alone, is not overwritten, and does not sign if others can read
    it; what is no key is refused, with the file's name."""
    key, _ = key_in(tmp_path)
    assert key.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CommandError, match=r"release\.key must be a new file"):
        new_key(key)
    key.chmod(0o644)
    with pytest.raises(CommandError, match="chmod 600"):
        packed(FILES, key)
    strange = tmp_path / "strange.pub"
    strange.write_text("no key")
    for words, said in (
        ([str(strange)], r"strange\.pub: must be a public key"),
        ([str(key)], r"release\.key: must be a public key"),
        ([str(tmp_path / "none.pub")], "cannot be read"),
        (["sha256:12"], "64 hex digits"),
    ):
        with pytest.raises(CommandError, match=said):
            allowed_of(words)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CommandError, match=r"\*\.pub; got none"):
        allowed_of([str(tmp_path / "empty")])
