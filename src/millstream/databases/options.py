"""Parses the address of a table in a database: `postgres:shop.counts?server=db:5432&user=ann`.

A password is never written into an address, which is shown in logs and on the page. The address
names its location: `password=env:PGPASSWORD` or `password=file:/run/secrets/pg`. It is read for
every connection, so that it may change while an application runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from millstream.errors import DefinitionError, InputError
from millstream.model.duration import SECOND, microseconds
from millstream.nearest import did_you_mean

POSTGRES, CASSANDRA = "postgres", "cassandra"
"""The formats of addresses."""
CONSISTENCIES = ("ONE", "LOCAL_ONE", "TWO", "THREE", "LOCAL_QUORUM", "QUORUM", "EACH_QUORUM", "ALL")
TLS_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
MOST_TTL = 20 * 365 * 86_400
"""The longest time to live that Cassandra accepts, in seconds."""
SECRET_FORMS = "env:VARIABLE or file:PATH"
COLUMN_FORMS = ("typed", "json")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,47}")
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+)(?::(\d{1,5}))?")
_KNOWN = {
    POSTGRES: ("server", "database", "user", "password", "tls", "columns"),
    CASSANDRA: (
        *("server", "datacenter", "user", "password", "tls", "consistency", "ttl", "replication"),
        "columns",
    ),
}
_PORTS = {POSTGRES: 5432, CASSANDRA: 9042}


@dataclass(frozen=True, slots=True)
class Server:
    """A host and a port."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class DatabaseOptions:
    """The checked options of a table in a database."""

    format: str
    schema: str | None
    """PostgreSQL: a schema, or None for the first of the search path. Cassandra: the keyspace."""
    table: str
    servers: tuple[Server, ...] = ()
    """Empty for PostgreSQL: its environment variables name the server (PGHOST, PGPORT)."""
    database: str | None = None
    user: str | None = None
    password: str | None = None
    """The location of the password, never the password itself."""
    tls: str | None = None
    consistency: str = "LOCAL_QUORUM"
    ttl: int | None = None
    """Seconds that a row lives."""
    datacenter: str | None = None
    replication: int | None = None
    """Copies in a keyspace that is created here; None: the keyspace must exist."""
    typed: bool = True
    """True if a dataclass's fields are columns of their own."""

    @property
    def shown(self) -> str:
        """The address as errors show it."""
        table = self.table if self.schema is None else f"{self.schema}.{self.table}"
        return f"{self.format}:{table}"

    def secret(self) -> str | None:
        """The password; InputError if it is not where the address says."""
        return None if self.password is None else read_secret(self.password, self.shown)


def database_options(
    format: str, name: str, given: Mapping[str, str], where: str
) -> DatabaseOptions:
    """Parses the options of an address; `where` starts the error message if one is wrong.

    >>> options = database_options("postgres", "shop.counts", {"server": "db"}, "sink 'counts'")
    >>> options.shown, options.servers
    ('postgres:shop.counts', (Server(host='db', port=5432),))
    """
    where = f"{where}: {format}:{name}"
    for word in given:
        if word not in _KNOWN[format]:
            raise DefinitionError(
                f"{where}: {word!r} is not an option; {did_you_mean(word, _KNOWN[format])}"
            )
    schema, table = _table(format, name, where)
    if format == CASSANDRA and "server" not in given:
        raise DefinitionError(
            f"{where}: server must name one node or more; write for example "
            f"{format}:{name}?server=127.0.0.1:9042"
        )
    if "password" in given:
        check_secret(given["password"], f"{where}: password")
    return DatabaseOptions(
        format,
        schema,
        table,
        _servers(given.get("server"), _PORTS[format], where),
        given.get("database"),
        given.get("user"),
        given.get("password"),
        _one_of(given, "tls", TLS_MODES if format == POSTGRES else ("on", "off"), None, where),
        _one_of(given, "consistency", CONSISTENCIES, "LOCAL_QUORUM", where) or "",
        _check_ttl(given["ttl"], where) if "ttl" in given else None,
        given.get("datacenter"),
        _copies(given.get("replication"), where),
        _one_of(given, "columns", COLUMN_FORMS, "typed", where) == "typed",
    )


def check_secret(reference: str, where: str) -> None:
    """Raises DefinitionError unless `reference` locates a secret. The message does not show it,
    since it may be the secret itself."""
    kind, colon, rest = reference.partition(":")
    if kind not in ("env", "file") or not colon or not rest:
        raise DefinitionError(
            f"{where} must be {SECRET_FORMS}, which locates the secret, never the secret itself: "
            "addresses are shown in logs and on the page"
        )


def read_secret(reference: str, where: str) -> str:
    """Reads the secret from `env:VARIABLE` or `file:PATH`, without the end of line."""
    kind, _, place = reference.partition(":")
    if kind == "env":
        value = os.environ.get(place)
        if value is None:
            raise InputError(f"{where}: the password must be in the variable {place}; set it")
        return value
    try:
        return Path(place).read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise InputError(f"{where}: the password must be in the file {place}: {why}") from None


def _table(format: str, name: str, where: str) -> tuple[str | None, str]:
    parts = name.split(".")
    form = "KEYSPACE.TABLE" if format == CASSANDRA else "TABLE or SCHEMA.TABLE"
    right = len(parts) == 2 or (len(parts) == 1 and format == POSTGRES)
    if not right or not all(_NAME.fullmatch(part) for part in parts):
        raise DefinitionError(
            f"{where}: must name {form}, each with a letter or _ first, then letters, digits or "
            f"_, and at most 48 characters; got {name!r}"
        )
    return (parts[0] if len(parts) == 2 else None), parts[-1]


def _servers(given: str | None, port: int, where: str) -> tuple[Server, ...]:
    servers = []
    for text in given.split(",") if given is not None else ():
        match = _SERVER.fullmatch(text.strip())
        if match is None or not 0 < int(match[2] or port) < 65_536:
            raise DefinitionError(
                f"{where}: server must be HOST, HOST:PORT or several of them with commas between; "
                f"got {text!r}"
            )
        servers.append(Server(match[1].strip("[]"), int(match[2] or port)))
    return tuple(servers)


def _one_of(
    given: Mapping[str, str], word: str, known: tuple[str, ...], default: str | None, where: str
) -> str | None:
    if word not in given:
        return default
    right = {name.lower(): name for name in known}.get(given[word].lower())
    if right is None:
        raise DefinitionError(
            f"{where}: {word} must be one of {', '.join(known)}; got {given[word]!r}"
        )
    return right


def _check_ttl(text: str, where: str) -> int:
    seconds = microseconds(text, f"{where}: ttl") // SECOND
    if not 1 <= seconds <= MOST_TTL:
        raise DefinitionError(f"{where}: ttl must be from 1s to 7300d; got {text!r}")
    return seconds


def _copies(text: str | None, where: str) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"[1-9]\d?", text):
        raise DefinitionError(f"{where}: replication must be a number of copies; got {text!r}")
    return int(text)


def quoted(name: str) -> str:
    """Quotes a name for SQL or CQL; keeps its capitals."""
    return '"' + name.replace('"', '""') + '"'
