"""Tokens, each with a name and kept as a hash, and the rights that they grant.

A file of tokens is TOML, one table per token:

    [dashboard]
    may = ["read"]                    # read, send, agent, all
    updates = ["count"]               # optional: only the slates of these updates,
    streams = ["alerts"]              # and only these streams
    sha256 = ["9f86d081..."]          # of the token; two while it is being replaced
    expires = 2027-01-01T00:00:00Z    # optional

`millstream tokens` writes it. The file reveals no token: those that the command creates have 256
random bits, so a plain SHA-256 of one cannot be reversed.

*read* is every GET, *send* is sending events and records of feeds, *agent* is the requests of
agents to the root, *all* is everything. A token with names is for nothing else: not the page, not
`/status`. It cannot be used to find out whether anything else exists.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from millstream.errors import DefinitionError

Right = Literal["read", "send", "agent", "all", "any"]
"""`any`: every token is enough."""


class Need(NamedTuple):
    """The needs of a request: a right, and the update or stream that it names, if any."""

    right: Right
    kind: Literal["", "update", "stream"] = ""
    name: str = ""


class TokenEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A token in a file of tokens."""

    may: list[Literal["read", "send", "agent", "all"]]
    sha256: list[str]
    updates: list[str] | None = None
    streams: list[str] | None = None
    expires: datetime | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """The rights of a token."""

    name: str
    """The name of the token, for the access log."""
    rights: frozenset[str]
    named: frozenset[tuple[str, str]] | None = None
    """The updates and streams that it is for, as (kind, name); None: all."""
    expires: float | None = None
    """Seconds since the epoch."""

    def permits(self, need: Need) -> bool:
        """True if the grant is enough for a request with this need."""
        if "all" in self.rights or need.right == "any":
            return True
        if need.right not in self.rights:
            return False
        if self.named is None or need.right == "agent":
            return True
        return (need.kind, need.name) in self.named


EVERYONE = Grant("", frozenset({"all"}))
"""The grant of every request to a server without tokens."""


def hash_of(token: bytes) -> str:
    """Returns the hash by which a token is stored."""
    return sha256(token).hexdigest()


def read_tokens(path: Path) -> dict[str, TokenEntry]:
    """Reads the tokens of a file, by name; raises DefinitionError if the file is not valid."""
    try:
        tables = tomllib.loads(path.read_text())
    except OSError as error:
        raise DefinitionError(
            f"the file of tokens {path} cannot be read: {error.strerror or error}"
        ) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DefinitionError(f"the file of tokens {path} must be TOML; {error}") from None
    return {name: _entry(path, name, table) for name, table in tables.items()}


def written_tokens(entries: Mapping[str, TokenEntry]) -> str:
    """Returns the content of a file with these tokens."""
    lines = ["# Made with: millstream tokens. It has hashes of tokens, and no token.\n"]
    for name, entry in entries.items():
        lines.append(f"[{_text(name)}]")
        for field, value in msgspec.structs.asdict(entry).items():
            if isinstance(value, datetime):
                lines.append(f"{field} = {value.isoformat()}")
            elif value is not None:
                lines.append(f"{field} = [{', '.join(map(_text, value))}]")
        lines.append("")
    return "\n".join(lines)


def grants_of(entries: Mapping[str, TokenEntry]) -> dict[str, Grant]:
    """Returns the grant of each token, by its hash."""
    return {
        hashed.lower(): Grant(
            name,
            frozenset(entry.may),
            _named(entry),
            None if entry.expires is None else entry.expires.timestamp(),
        )
        for name, entry in entries.items()
        for hashed in entry.sha256
    }


def _named(entry: TokenEntry) -> frozenset[tuple[str, str]] | None:
    if entry.updates is None and entry.streams is None:
        return None
    updates, streams = entry.updates or (), entry.streams or ()
    return frozenset(
        [("update", name) for name in updates] + [("stream", name) for name in streams]
    )


def _entry(path: Path, name: str, table: Any) -> TokenEntry:
    if isinstance(table, dict) and "expires" in table:
        table = {**table, "expires": _moment(table["expires"])}
    try:
        entry = msgspec.convert(table, TokenEntry)
    except msgspec.ValidationError as error:
        raise DefinitionError(
            f"the file of tokens {path}, [{name}]: {error}; write a token like "
            '[dashboard] may = ["read"] sha256 = ["..."]'
        ) from None
    check_entry(path, name, entry)
    return entry


def _moment(value: Any) -> Any:
    """Adds UTC to a TOML time without a zone; turns a date into its beginning."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if isinstance(value, datetime) and value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return value


def check_entry(path: Path, name: str, entry: TokenEntry) -> None:
    """Raises DefinitionError if a token of a file is not valid."""
    where = f"the file of tokens {path}, [{name}]"
    for hashed in entry.sha256:
        if len(hashed) != 64 or set(hashed.lower()) - set("0123456789abcdef"):
            raise DefinitionError(
                f"{where}: sha256 must be 64 hexadecimal digits, as millstream tokens writes them; "
                f"got one of {len(hashed)} characters"
            )
    if "all" in entry.may and _named(entry) is not None:
        raise DefinitionError(
            f"{where}: a token that may do all cannot be limited to some updates or streams; "
            'give it may = ["read", "send"], or leave the names out'
        )


def _text(value: str) -> str:
    """Writes a basic TOML string; a JSON string is one."""
    return msgspec.json.encode(value).decode()
