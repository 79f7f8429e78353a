"""Runs a server in this process, from start to stop.

The server takes the store's lock, binds, and writes its address into the lock once it listens. It
serves until it is told to stop. Then it takes no new request, gives running requests one second to
finish, and closes.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import gc
import logging
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace

import uvicorn

from millstream.errors import DefinitionError, MillstreamError
from millstream.server.access.access_log import AccessLog
from millstream.server.access.guard import SECURITY_HEADERS
from millstream.server.app import build_app
from millstream.server.http.connection import Connection, sweep
from millstream.server.http.descriptors import fitted
from millstream.server.http.tls_entry import TlsEntry
from millstream.server.lock import ServerLock
from millstream.server.open_store import OpenStore
from millstream.server.options import ServerOptions, check, warnings
from millstream.server.service import Service
from millstream.stores.shared.follower_process import FollowerChild, FollowOrder

logger = logging.getLogger("millstream.server")

PATIENCE = 1
"""Seconds that running requests have to finish when the server stops."""
SWITCH_SECONDS = 0.0005
"""The longest time for which a reading thread may hold up the event loop: a tenth of Python's
default."""

M_MMAP_THRESHOLD = -3
MMAP_BYTES = 256 << 10
COLLECTED = 50_000
"""New objects per garbage collection. Bodies create many, which reference counting frees."""


def serve(
    options: ServerOptions,
    stop: threading.Event | None,
    ready: Callable[[str], None],
    *,
    beside: bool = False,
) -> None:
    """Serves until `stop` is set (None: until the process ends); `ready` is called with the URL.

    `beside` marks a server that belongs to a run and ends with it. For a store in a place, a child
    process keeps a local mirror up to date, and the mirror is served.
    """
    options = replace(options, host=options.host.strip("[]"))
    check(options)
    for sentence in warnings(options):
        print(f"millstream: warning: {sentence}", file=sys.stderr, flush=True)
    Connection.most = fitted(options.connections)
    if not options.place:
        _serve(options, stop, ready, beside=beside)
        return
    order = FollowOrder(
        address=options.place,
        cache=options.cache,
        shards=options.shards,
        wait=options.wait,
        module="millstream.server.mirror_process",
    )
    follower = FollowerChild.start(order, logger.warning, stop)
    if follower is not None:
        with closing(follower):
            _serve(replace(options, store=follower.folder), stop, ready, beside=beside)


def _serve(
    options: ServerOptions,
    stop: threading.Event | None,
    ready: Callable[[str], None],
    *,
    beside: bool,
) -> None:
    with (
        closing(OpenStore(options.store.absolute())) as store,
        closing(ServerLock(store.path, beside=beside)) as lock,
        closing(_bound(options.host, options.port)) as listening,
        _access_log(options.access_log) as access_log,
    ):
        options = replace(options, store=store.path, port=listening.getsockname()[1])
        url = address(options)
        service = Service(options, store, url, access_log=access_log)
        Connection.refusals = access_log
        server = _StoreServer(_config(service), service, lock, stop, ready)
        switch_interval, threshold = sys.getswitchinterval(), gc.get_threshold()
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.freeze()
        gc.set_threshold(COLLECTED, *threshold[1:])
        _return_memory()
        try:
            server.run([listening])
        finally:
            gc.set_threshold(*threshold)
            sys.setswitchinterval(switch_interval)


def _return_memory() -> None:
    """Makes glibc return the memory of large bodies and answers to the system when it is freed.

    By default glibc keeps it, and keeps more the longer the process runs.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # another C library
    mallopt(M_MMAP_THRESHOLD, MMAP_BYTES)


@contextmanager
def _access_log(file: str) -> Iterator[AccessLog | None]:
    if not file:
        yield None
        return
    try:
        log = AccessLog(file)
    except OSError as error:
        raise DefinitionError(
            f"server: the access log {file} cannot be written: {error.strerror or error}; name "
            "another file with --access-log, or - for stderr"
        ) from None
    with closing(log):
        yield log


def address(options: ServerOptions) -> str:
    """Returns the URL of a bound server."""
    host = f"[{options.host}]" if ":" in options.host else options.host
    return f"{'https' if options.tls_cert else 'http'}://{host}:{options.port}"


class _StoreServer(uvicorn.Server):
    """uvicorn's server, stopped by an event instead of signals; starts and stops the service."""

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
        return nullcontext()  # signals belong to the caller

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
        if self._service.access_log is not None:
            self._service.access_log.flush()
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
        log_level="critical",  # the application logs what goes wrong in a request
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
            "both must be PEM files, and the key must match the certificate and have no password"
        ) from error
    if config.ssl is not None:
        # TlsEntry accepts connections before their handshake: its module says why.
        TlsEntry.context, config.ssl = config.ssl, None
        config.http_protocol_class = TlsEntry
    return config


def _bound(host: str, port: int) -> socket.socket:
    """Returns a socket bound to the address, not yet listening."""
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
        return "ports below 1024 need special rights; name a higher one with --port"
    return error.strerror or str(error)
