"""`millstream tokens`: manages a file of tokens for a server, each with its rights."""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import msgspec

from millstream.errors import CommandError
from millstream.model.duration import UNITS, microseconds
from millstream.notices import say
from millstream.server.access.grants import (
    TokenEntry,
    check_entry,
    hash_of,
    read_tokens,
    written_tokens,
)

FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
EXPIRES = click.option("--expires", metavar="IN", help="The token expires after this, as in 90d.")


@click.group()
def tokens() -> None:
    """Make and replace the tokens of a server.

    FILE has the names, rights and hashes of tokens; no token can be derived from it. A server that
    was started with --tokens FILE follows its changes: no restart is needed.

    \b
    Examples:
        millstream tokens add tokens.toml dashboard --read
        millstream tokens add tokens.toml shop --send --stream checkins
        millstream serve --tokens tokens.toml
        millstream tokens rotate tokens.toml shop
        millstream tokens retire tokens.toml shop
        millstream tokens remove tokens.toml dashboard
    """


@tokens.command()
@FILE
@click.argument("name")
@click.option("--read", is_flag=True, help="May read.")
@click.option("--send", is_flag=True, help="May send events.")
@click.option("--agent", is_flag=True, help="May be used by an agent.")
@click.option("--all", is_flag=True, help="May do everything.")
@click.option(
    "--update", "updates", multiple=True, metavar="NAME", help="Only slates of this update."
)
@click.option("--stream", "streams", multiple=True, metavar="NAME", help="Only this stream.")
@EXPIRES
def add(
    file: Path,
    name: str,
    updates: tuple[str, ...],
    streams: tuple[str, ...],
    expires: str | None,
    **rights: bool,
) -> None:
    """Add a token and print it. It is shown only this once."""
    entries = _entries(file)
    if name in entries:
        raise CommandError(f"{file} has a token {name!r} already; rotate or remove it")
    may = [right for right, given in rights.items() if given]
    if not may:
        raise CommandError("say what the token may do: --read, --send, --agent or --all")
    token, hashed = _new_token()
    entries[name] = msgspec.convert(
        {
            "may": may,
            "sha256": [hashed],
            "updates": list(updates) or None,
            "streams": list(streams) or None,
            "expires": _until(expires),
        },
        TokenEntry,
    )
    check_entry(file, name, entries[name])
    _write(file, entries)
    click.echo(token)


@tokens.command()
@FILE
@click.argument("name")
@EXPIRES
def rotate(file: Path, name: str, expires: str | None) -> None:
    """Replace a token and print the new one; both are valid until the old one is retired."""
    entries = _entries(file)
    entry = _known(file, entries, name)
    token, hashed = _new_token()
    entries[name] = msgspec.structs.replace(
        entry, sha256=[*entry.sha256[-1:], hashed], expires=_until(expires) or entry.expires
    )
    _write(file, entries)
    click.echo(token)
    say(f"the old token is valid until you run: millstream tokens retire {file} {name}")


@tokens.command()
@FILE
@click.argument("name")
def retire(file: Path, name: str) -> None:
    """Revoke the old token after a rotation."""
    entries = _entries(file)
    entry = _known(file, entries, name)
    entries[name] = msgspec.structs.replace(entry, sha256=entry.sha256[-1:])
    _write(file, entries)


@tokens.command()
@FILE
@click.argument("name")
def remove(file: Path, name: str) -> None:
    """Revoke a token."""
    entries = _entries(file)
    _known(file, entries, name)
    del entries[name]
    _write(file, entries)


@tokens.command("list")
@FILE
def list_(file: Path) -> None:
    """Print the names and rights of the tokens."""
    for name, entry in read_tokens(file).items():
        scope = [f"update {update}" for update in entry.updates or ()]
        scope += [f"stream {stream}" for stream in entry.streams or ()]
        line = f"{name}: {', '.join(entry.may)}"
        line += f", only of {', '.join(scope)}" if scope else ""
        line += f", until {entry.expires.isoformat()}" if entry.expires else ""
        line += ", being rotated" if len(entry.sha256) > 1 else ""
        click.echo(line)


def _entries(file: Path) -> dict[str, TokenEntry]:
    return read_tokens(file) if file.exists() else {}


def _known(file: Path, entries: dict[str, TokenEntry], name: str) -> TokenEntry:
    if name not in entries:
        raise CommandError(f"{file} has no token {name!r}; it has {', '.join(entries) or 'none'}")
    return entries[name]


def _new_token() -> tuple[str, str]:
    token = secrets.token_urlsafe(32)
    return token, hash_of(token.encode())


def _until(expires: str | None) -> datetime | None:
    if expires is None:
        return None
    seconds = microseconds(expires, "--expires") / UNITS["s"]
    return (datetime.now(UTC) + timedelta(seconds=seconds)).replace(microsecond=0)


def _write(file: Path, entries: dict[str, TokenEntry]) -> None:
    """Replaces the file atomically: a server that reads it sees the old or the new."""
    fresh = file.with_name(f".{file.name}.tmp")
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w") as out:
            out.write(written_tokens(entries))
        os.replace(fresh, file)
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror or error}") from None
