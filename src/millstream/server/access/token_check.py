"""The tokens of a server, read again when their files change: replacing one needs no restart.

If a file can no longer be read, or is not valid, the tokens stay as they were, and the server says
so once. To revoke a token, delete its table, or its hash, in the file.
"""

from __future__ import annotations

import base64
import binascii
import os
import time
from collections.abc import Callable
from pathlib import Path

from millstream.errors import DefinitionError
from millstream.server.access.grants import EVERYONE, Grant, grants_of, hash_of, read_tokens
from millstream.server.options import ServerOptions

LOOK_SECONDS = 1.0
REMEMBERED = 256
"""Authorization headers whose grant is known without hashing."""


class TokenCheck:
    """Finds the grant of a request's Authorization header. Used on the event loop."""

    def __init__(
        self,
        options: ServerOptions,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Raises DefinitionError if a file of tokens is not valid."""
        self._given = None if options.token is None else options.token.encode()
        self._file, self._tokens = options.token_file, options.tokens
        self._say = say
        self._clock, self._wall = clock, wall
        self._seen: list[tuple[int, int, int] | None] = []
        self._look_at = 0.0
        self._grants: dict[str, Grant] = {}
        self._known: dict[bytes, Grant] = {}
        self.needed = options.guarded
        """True if a request must bring a token."""
        if self.needed:
            self._read()

    def grant(self, authorization: bytes | None) -> Grant | None:
        """Returns the grant of the header; None if it has no valid token of this server."""
        if not self.needed:
            return EVERYONE
        if self._clock() >= self._look_at:
            self._follow()
        if authorization is None:
            return None
        grant = self._known.get(authorization)
        if grant is None:
            # Looked up by its hash, so that the time it takes reveals nothing about the token.
            grant = self._grants.get(hash_of(token_in(authorization)))
            if grant is None:
                return None
            if len(self._known) < REMEMBERED:
                self._known[authorization] = grant
        return grant if grant.expires is None or self._wall() < grant.expires else None

    def _follow(self) -> None:
        self._look_at = self._clock() + LOOK_SECONDS
        if self._signatures() != self._seen:
            try:
                self._read()
            except DefinitionError as error:
                self._say(f"{error}; the tokens are as they were before the file was changed")

    def _read(self) -> None:
        self._look_at = self._clock() + LOOK_SECONDS
        self._seen = self._signatures()
        grants: dict[str, Grant] = {}
        if self._tokens is not None:
            grants |= grants_of(read_tokens(self._tokens))
        token = self._given if self._file is None else read_token(self._file).encode()
        if token is not None:
            grants[hash_of(token)] = Grant("token", EVERYONE.rights)
        self._grants = grants
        self._known.clear()

    def _signatures(self) -> list[tuple[int, int, int] | None]:
        return [_signature(path) for path in (self._file, self._tokens) if path is not None]


def read_token(file: Path) -> str:
    """Returns the one token in a file; raises DefinitionError if there is none."""
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DefinitionError(f"the token file {file} cannot be read: {reason}") from None
    if not token:
        raise DefinitionError(f"the token file {file} is empty; write one line of text into it")
    return token


def token_in(authorization: bytes) -> bytes:
    """Returns the token in an Authorization header; empty if it has none.

    >>> token_in(b"Bearer abc"), token_in(b"Basic " + base64.b64encode(b"me:a:c")), token_in(b"x")
    (b'abc', b'a:c', b'')
    """
    scheme, _, rest = authorization.partition(b" ")
    if scheme.lower() == b"bearer":
        return rest.strip()
    if scheme.lower() == b"basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
        except binascii.Error:
            pass
    return b""


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
