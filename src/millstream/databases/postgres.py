"""Opens connections to PostgreSQL.

psycopg is the extra `postgres`. Options that an address leaves out come from libpq's own settings:
PGHOST, PGUSER, PGPASSWORD, a service file, ~/.pgpass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.databases.options import DatabaseOptions
from millstream.errors import DefinitionError

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS = 5
LOCK_TIMEOUT = "10s"
"""The longest wait for another session's lock. After that the statement fails."""
SILENCE_MS = 30_000
"""A connection counts as lost after this time without an acknowledgement of sent data."""


def connect(
    options: DatabaseOptions, *, autocommit: bool = False
) -> psycopg.Connection[tuple[Any, ...]]:
    """Opens a connection; psycopg.OperationalError if this fails."""
    driver = client(options.shown)
    arguments = {
        "host": ",".join(server.host for server in options.servers) or None,
        "port": ",".join(str(server.port) for server in options.servers) or None,
        "dbname": options.database,
        "user": options.user,
        "password": options.secret(),
        "sslmode": options.tls,
    }
    connection: psycopg.Connection[tuple[Any, ...]] = driver.connect(
        **{word: value for word, value in arguments.items() if value is not None},
        autocommit=autocommit,
        connect_timeout=CONNECT_SECONDS,
        application_name="millstream",
        options=f"-c lock_timeout={LOCK_TIMEOUT} -c client_min_messages=error",
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=SILENCE_MS,
    )
    return connection


def client(where: str) -> Any:
    """The library; DefinitionError, which says what to install, if it is missing."""
    try:
        import psycopg
    except ImportError:
        raise DefinitionError(
            f"{where}: PostgreSQL needs the library psycopg: pip install 'millstream[postgres]'"
        ) from None
    return psycopg


def is_passing(error: Exception) -> bool:
    """True if a retry may succeed: the server is away, busy, full or refuses us."""
    driver = client("postgres")
    refused = driver.errors.InsufficientPrivilege
    return isinstance(
        error, (driver.OperationalError, driver.InterfaceError, driver.InternalError, refused)
    )


def one_line(error: Exception) -> str:
    """The server's message, in one line."""
    return "; ".join(str(error).strip().splitlines()) or type(error).__name__
