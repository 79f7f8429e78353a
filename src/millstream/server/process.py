"""A server from its start to its end, in this process.

It takes the store's lock, binds, and writes its address into the lock once it listens. It serves
until it is told to stop; then it takes no new request, gives those under way a second, and closes.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace

import uvicorn

from millstream.errors import DefinitionError, MillstreamError
from millstream.server.app import build_app
from millstream.server.connection import Connection, sweep
from millstream.server.descriptors import fitted
from millstream.server.guard import SECURITY_HEADERS
from millstream.server.lock import ServerLock
from millstream.server.open_store import OpenStore
from millstream.server.options import Options, check
from millstream.server.service import Service

PATIENCE = 1
"""Seconds that requests under way are given when the server stops."""
SWITCH_SECONDS = 0.0005
"""How long a reading thread may keep the event loop waiting: a tenth of the interpreter's usual."""


def serve(
    options: Options,
    stop: threading.Event | None,
    ready: Callable[[str], None],
    *,
    beside: bool = False,
) -> None:
    """Serve until `stop` is set (None: until the process is ended); `ready` gets the address.

    `beside` is said of a server that belongs to a run and ends with it.
    """
    options = replace(options, host=options.host.strip("[]"))
    check(options)
    Connection.most = fitted(options.connections)
    with (
        closing(OpenStore(options.store.absolute())) as store,
        closing(ServerLock(store.path, beside=beside)) as lock,
        closing(_bound(options.host, options.port)) as listening,
    ):
        options = replace(options, store=store.path, port=listening.getsockname()[1])
        url = address(options)
        service = Service(options, store, url)
        server = _Server(_config(service), service, lock, stop, ready)
        usual = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)
        try:
            server.run([listening])
        finally:
            sys.setswitchinterval(usual)


def address(options: Options) -> str:
    """Where a bound server is found."""
    host = f"[{options.host}]" if ":" in options.host else options.host
    return f"{'https' if options.tls_cert else 'http'}://{host}:{options.port}"


class _Server(uvicorn.Server):
    """uvicorn's, stopped by an event and not by signals, with the service's start and stop."""

    def __init__(
        self,
        config: uvicorn.Config,
        service: Service,
        lock: ServerLock,
        stop: threading.Event | None,
        ready: Callable[[str], None],
    ) -> None:
        super().__init__(config)
        self._service = service
        self._lock = lock
        self._stop = stop
        self._ready = ready

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()  # they are whoever's who called

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self._service.start()
        await super().startup(sockets)
        self._lock.announce(self._service.url)
        self._ready(self._service.url)

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:  # about once a second
            now = asyncio.get_running_loop().time()
            sweep(self.server_state.connections, now, self._service.options)
            self._lock.follow()
        if self._stop is not None and self._stop.is_set():
            self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.stopping.set()
        await super().shutdown(sockets)
        await self._service.stop()


def _config(service: Service) -> uvicorn.Config:
    options = service.options
    config = uvicorn.Config(
        build_app(service),
        loop="uvloop",
        http=Connection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="critical",  # what goes wrong in a request is logged by the application
        access_log=False,
        proxy_headers=False,
        server_header=False,
        headers=SECURITY_HEADERS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=PATIENCE,
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
    )
    try:
        config.load()
    except (ssl.SSLError, OSError) as error:
        raise DefinitionError(
            f"server: TLS with {options.tls_cert} and {options.tls_key} cannot work: {error}; "
            "both must be PEM files, and the key must be the certificate's, without a password"
        ) from error
    return config


def _bound(host: str, port: int) -> socket.socket:
    """A socket at the address, not yet listening."""
    listening: socket.socket | None = None
    try:
        family, kind, proto, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, proto)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        return listening
    except OSError as error:
        if listening is not None:
            listening.close()
        raise MillstreamError(f"server: cannot bind to {host}:{port}: {_why(error)}") from error


def _why(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"{error.strerror}; the host must be an address of this machine"
    if error.errno == errno.EADDRINUSE:
        return "another program listens there; name another port with --port, or 0 for any"
    if error.errno == errno.EADDRNOTAVAIL:
        return "it is not an address of this machine; name one that is with --host"
    if error.errno == errno.EACCES:
        return "ports below 1024 need rights; name a higher one with --port"
    return error.strerror or str(error)
