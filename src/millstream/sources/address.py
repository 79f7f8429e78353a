"""Addresses such as `json:DIR`, from which a source reads or to which a sink writes.

`log:DIR` is an event log; `log` alone is the stream's own, in the store. `sqlite:FILE` is an SQLite
file, for a sink only.

The address of a service names a topic or a table, with options: `kafka:TOPIC?servers=HOST:PORT`,
`postgres:TABLE?server=HOST:PORT`, `cassandra:KEYSPACE.TABLE?server=HOST:PORT`. Tables are for sinks
only. A sink to `parquet:DIR?columns=json` keeps values as JSON text.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode

from millstream.errors import InputError
from millstream.nearest import nearest

LOG = "log"
SQLITE = "sqlite"
PARQUET = "parquet"
KAFKA = "kafka"
POSTGRES = "postgres"
CASSANDRA = "cassandra"
FORMATS = {"json": "json", "jsonl": "json", "csv": "csv", "text": "text"}
FORMATS |= {PARQUET: PARQUET, LOG: LOG, SQLITE: SQLITE, KAFKA: KAFKA}
FORMATS |= {POSTGRES: POSTGRES, "postgresql": POSTGRES, CASSANDRA: CASSANDRA}
"""Every accepted name of a format, with its canonical name."""
COLUMNS = "?columns="
"""The option of a Parquet sink."""
SERVICES = {KAFKA: "topic", POSTGRES: "table", CASSANDRA: "table"}
"""Formats whose address is not a path but a name in a service, with the noun for what it names."""


@dataclass(frozen=True, slots=True)
class Address:
    """A format by its canonical name, and a path as given; empty for the store's own log.

    >>> address = parse_address("kafka:clicks?servers=a:9092,b:9092")
    >>> address.path, address.option("servers"), address.option("delivery")
    ('clicks', 'a:9092,b:9092', None)
    >>> str(address)
    'kafka:clicks?servers=a:9092,b:9092'
    """

    format: str
    path: str
    options: tuple[tuple[str, str], ...] = ()
    """The options of a service or of a Parquet sink, in the order given."""

    @property
    def is_service(self) -> bool:
        """True if the path is a name in a service, not in a file system."""
        return self.format in SERVICES

    def option(self, name: str) -> str | None:
        return dict(self.options).get(name)

    def __str__(self) -> str:
        options = urlencode(self.options, safe="/:,@", quote_via=quote)
        return f"{self.format}:{self.path}{'?' if options else ''}{options}"


def parse_address(text: str, where: str = "address") -> Address:
    """Parses an address; if it is invalid, `where` begins the InputError."""
    known = ", ".join(sorted(set(FORMATS.values())))
    name, colon, path = text.partition(":")
    if not path and name.strip().lower() == LOG:
        return Address(LOG, "")
    if not colon:
        raise InputError(
            f"{where}: must be FORMAT:DIRECTORY; got {text!r} without a colon; "
            f"write for example json:{text or 'data'}"
        )
    form = FORMATS.get(name.strip().lower())
    if form is None:
        near = nearest(name.strip(), FORMATS)
        hint = "" if near is None else f"; did you mean {FORMATS[near]}:{path}?"
        raise InputError(f"{where}: the format must be one of {known}; got {name!r}{hint}")
    options: tuple[tuple[str, str], ...] = ()
    if form in SERVICES:
        path, _, query = path.partition("?")
        options = tuple(parse_qsl(query, keep_blank_values=True))
    elif form == PARQUET and COLUMNS in path:
        path, _, columns = path.partition(COLUMNS)
        options = (("columns", columns),)
    if not path:
        noun, example = ("file", "data.db") if form == SQLITE else ("directory", "data")
        noun, example = (SERVICES[form], "clicks") if form in SERVICES else (noun, example)
        raise InputError(f"{where}: {text!r} names no {noun}; write for example {form}:{example}")
    return Address(form, path, options)
