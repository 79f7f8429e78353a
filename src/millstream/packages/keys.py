"""Ed25519 keys, and the packages that the operator of a node allows.

A private key is a PEM file that only its owner may read. The public key is beside it, in a file
with the suffix `.pub`. A node allows a key, and thus every package that its owner signs, or the
hash of one package. Only keys need the library `cryptography`; hashes do not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millstream.errors import CommandError, PackageError
from millstream.extras import needed_by
from millstream.model.place import shown_path
from millstream.packages.manifest import Signature

HASH = "sha256:"
_CONTEXT = b"millstream package 1\n"
"""A prefix of the signed bytes, so that a signature for another purpose is not valid for a
package."""
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Allowed:
    """The packages that may run on a node."""

    keys: Mapping[str, str] = field(default_factory=dict)
    """Public keys in hex, with the file that each was read from."""
    hashes: frozenset[str] = frozenset()
    """The sha256 of single packages."""

    def __str__(self) -> str:
        keys = [f"the key {file}" for file in self.keys.values()]
        return (
            ", ".join([*keys, *(f"{HASH}{digest}" for digest in sorted(self.hashes))]) or "nothing"
        )


def allowed_of(words: Iterable[str]) -> Allowed:
    """Parses the values of `--allow`: FILE.pub, a folder of such files, or sha256:HEX."""
    keys, hashes = dict[str, str](), set[str]()
    for word in words:
        if word.startswith(HASH):
            hashes.add(_hash(word))
            continue
        path = Path(word)
        files = sorted(path.glob("*.pub")) if path.is_dir() else [path]
        if not files:
            raise CommandError(
                f"--allow {word}: must have files of public keys, *.pub; got none; copy those that "
                "`millstream pack --new-key` wrote there"
            )
        for file in files:
            keys[read_public_key(file)] = shown_path(file)
    return Allowed(keys, frozenset(hashes))


def new_key(path: Path) -> Path:
    """Creates a private key, and the public key beside it. Returns the path of the public key."""
    public = path.with_name(f"{path.name}.pub")
    for file in (path, public):
        if file.exists():
            raise CommandError(
                f"--new-key: {shown_path(file)} must be a new file, but it exists; name another, "
                "or remove it if no node allows it"
            )
    serialization, ed25519 = _library()
    key = ed25519.Ed25519PrivateKey.generate()
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(
        encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    shared = key.public_key().public_bytes(
        encoding, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    _write_new(path, private, 0o600)
    _write_new(public, shared, 0o644)
    return public


def sign(manifest: bytes, key_file: Path) -> Signature:
    """Signs a manifest with the private key in a file."""
    key = _read(key_file, _private, "a private key that `millstream pack --new-key` made")
    if key_file.stat().st_mode & 0o077:
        raise CommandError(
            f"{shown_path(key_file)}: a private key must be readable by its owner alone; got mode "
            f"{key_file.stat().st_mode & 0o777:o}; chmod 600 {shown_path(key_file)}"
        )
    raw_signature = key.sign(_CONTEXT + manifest)
    public = key.public_key().public_bytes_raw().hex()
    return Signature(key=public, signature=raw_signature.hex())


def check_signature(manifest: bytes, signature: Signature, allowed: Allowed) -> None:
    """Raises PackageError unless an allowed key has signed the manifest."""
    if signature.key not in allowed.keys:
        raise PackageError(
            f"package: must be signed by a key that is allowed here ({allowed}); got a signature "
            f"by the key {signature.key[:64]}; if you trust its owner, add --allow with the "
            "owner's FILE.pub"
        )
    _, ed25519 = _library()
    from cryptography.exceptions import InvalidSignature

    try:
        key = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.key))
        key.verify(bytes.fromhex(signature.signature), _CONTEXT + manifest)
    except (InvalidSignature, ValueError):
        raise PackageError(
            f"package: must have a signature of its manifest by the key "
            f"{allowed.keys[signature.key]}; got another one: the package was changed, or was "
            "never signed by this key; do not use it, and fetch it, or pack and sign it, again"
        ) from None


def read_public_key(path: Path) -> str:
    """Returns the public key in a file, in hex."""
    key = _read(path, _public, "a public key that `millstream pack --new-key` made")
    raw: bytes = key.public_bytes_raw()
    return raw.hex()


def _hash(word: str) -> str:
    text = word.removeprefix(HASH).lower()
    if len(text) != 64 or not _HEX.issuperset(text):
        raise CommandError(
            f"--allow {HASH}HEX must have the 64 hex digits that `millstream pack` printed; "
            f"got {word!r}"
        )
    return text


def _private(data: bytes) -> Any:
    serialization, ed25519 = _library()
    key = serialization.load_pem_private_key(data, password=None)
    return key if isinstance(key, ed25519.Ed25519PrivateKey) else None


def _public(data: bytes) -> Any:
    serialization, ed25519 = _library()
    key = serialization.load_pem_public_key(data)
    return key if isinstance(key, ed25519.Ed25519PublicKey) else None


def _read(path: Path, parse: Callable[[bytes], Any], must: str) -> Any:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CommandError(
            f"{shown_path(path)}: must be {must}; it cannot be read: {error.strerror or error}"
        ) from None
    try:
        key = parse(data)
    except (ValueError, TypeError):  # TypeError: a private key with a password
        key = None
    except Exception as error:
        if type(error).__name__ != "UnsupportedAlgorithm":
            raise
        key = None
    if key is None:
        raise CommandError(f"{shown_path(path)}: must be {must}; got something else")
    return key


def _write_new(path: Path, data: bytes, mode: int) -> None:
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
    except OSError as error:
        raise CommandError(
            f"{shown_path(path)}: the key cannot be written: {error.strerror or error}"
        ) from None
    with os.fdopen(file, "wb") as out:
        out.write(data)


def _library() -> tuple[Any, Any]:
    """Imports the library only when a key is used: agents whose jobs are data do not need
    cryptography."""
    with needed_by("a key"):
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    return serialization, ed25519
