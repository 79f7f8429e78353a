"""Opens sessions of Cassandra.

cassandra-driver is the extra `cassandra`. Its threads do not survive a fork: open a session in the
process that uses it.
"""

from __future__ import annotations

import logging
import ssl
from typing import Any, NamedTuple

from millstream.databases.options import DatabaseOptions
from millstream.errors import DefinitionError

CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 10.0


class Opened(NamedTuple):
    """A cluster, and a session of it."""

    cluster: Any
    session: Any

    def close(self) -> None:
        self.cluster.shutdown()


def client(where: str) -> Any:
    """The library; DefinitionError, which says what to install, if it is missing."""
    try:
        import cassandra.cluster
    except ImportError:
        raise DefinitionError(
            f"{where}: Cassandra needs the library cassandra-driver: "
            "pip install 'millstream[cassandra]'"
        ) from None
    return cassandra


def connect(options: DatabaseOptions) -> Opened:
    """Opens a session with the address's consistency; raises the driver's errors."""
    client(options.shown)
    from cassandra import ConsistencyLevel
    from cassandra.auth import PlainTextAuthProvider
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
    from cassandra.policies import (
        ConstantReconnectionPolicy,
        DCAwareRoundRobinPolicy,
        RoundRobinPolicy,
        TokenAwarePolicy,
    )

    # The driver logs each lost connection. We report a failed batch ourselves.
    logging.getLogger("cassandra").addHandler(logging.NullHandler())
    near = (
        RoundRobinPolicy()
        if options.datacenter is None
        else DCAwareRoundRobinPolicy(options.datacenter)
    )
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(near),
        consistency_level=getattr(ConsistencyLevel, options.consistency),
        request_timeout=REQUEST_SECONDS,
    )
    password = options.secret()
    cluster = Cluster(
        contact_points=[(server.host, server.port) for server in options.servers],
        port=options.servers[0].port,
        auth_provider=None
        if options.user is None
        else PlainTextAuthProvider(options.user, password or ""),
        ssl_context=ssl.create_default_context() if options.tls == "on" else None,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        reconnection_policy=ConstantReconnectionPolicy(1.0, max_attempts=None),
        connect_timeout=CONNECT_SECONDS,
        control_connection_timeout=CONNECT_SECONDS,
    )
    try:
        return Opened(cluster, cluster.connect())
    except BaseException:
        cluster.shutdown()
        raise


def is_passing(error: Exception) -> bool:
    """True if a retry may succeed: nodes are away, slow, overloaded or refuse us."""
    client("cassandra")
    from cassandra import (
        AuthenticationFailed,
        CoordinationFailure,
        OperationTimedOut,
        RequestExecutionException,
        Timeout,
        Unauthorized,
        Unavailable,
    )
    from cassandra.cluster import NoHostAvailable
    from cassandra.connection import ConnectionException

    temporary = (
        *(NoHostAvailable, OperationTimedOut, RequestExecutionException, ConnectionException),
        *(Unavailable, Timeout, CoordinationFailure, Unauthorized, AuthenticationFailed, OSError),
    )
    return isinstance(error, temporary)


def one_line(error: Exception) -> str:
    """The driver's message, in one line."""
    text = "; ".join(str(error).strip().splitlines()) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:300]}…"
